"""A music service as a HOOT01 worker: `musicgen_generate`, for a daemon without such a service.

It has the input and output of the daemon's own tool; only the name differs:
`lab_musicgen_generate`. The one here hums notes that it derives from the words. Put yours in `hum`.

    RINGBACK_DAEMON=tcp://127.0.0.1:5580 RINGBACK_TOKEN=.. python tests/interop/musicgen_worker.py
"""

import array
import io
import math
import os
import random
import wave

import zmq

from wire import Peer
from worker import ToolError, Worker, progress

SERVICE, RATE, NOTES = "lab", 22_050, [220.0 * 2 ** (step / 12) for step in (0, 3, 5, 7, 10, 12)]
SCHEMA = {"type": "object", "properties": {
    "prompt": {"type": "string"}, "duration": {"type": "number", "minimum": 0.5, "maximum": 120},
}}


def hum(prompt, seconds):
    """The sound in pieces of a quarter of a second: the same words, the same notes."""
    choice, frames = random.Random(prompt), round(seconds * RATE)
    for start in range(0, frames, RATE // 4):
        turn = 2 * math.pi * choice.choice(NOTES) / RATE
        length = min(RATE // 4, frames - start)
        yield array.array("h", (int(8000 * math.sin(turn * at)) for at in range(length)))


def wav(samples):
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(RATE)
        out.writeframes(samples.tobytes())
    return file.getvalue()


def musicgen(peer):
    """The tool: it yields progress, may be stopped there, and returns its answer."""

    def generate(arguments):
        prompt, seconds = arguments.get("prompt", ""), arguments.get("duration", 10.0)
        if prompt == "silence":
            raise ToolError("silence cannot be hummed")
        samples = array.array("h")
        for piece in hum(prompt, seconds):
            samples += piece
            done = len(samples) / RATE
            yield progress(100 * done / seconds, f"{done:.1f} s of {seconds:.1f} s")
        file = {"data": wav(samples), "mime_type": "audio/wav"}
        content_hash = peer.success("cas_store", file)["hash"]
        lineage = {name: arguments[name] for name in ("creator", "parent_id") if name in arguments}
        tags = ["type:audio", "tool:musicgen_generate", *arguments.get("tags", [])]
        request = {"content_hash": content_hash, "tags": tags, **lineage}
        made = peer.success("artifact_create", request)
        artifact = {"artifact_id": made["artifact_id"], "content_hash": content_hash,
                    "mime_type": "audio/wav", "duration_seconds": len(samples) / RATE}
        return {"type": "artifacts_created", "artifacts": [artifact], "backend": "worker: lab"}

    about = {"description": "Sound described in words.", "input_schema": SCHEMA}
    return {"musicgen_generate": (about, generate)}


def main():
    context, address = zmq.Context(), os.environ["RINGBACK_DAEMON"]
    token = os.environ["RINGBACK_TOKEN"]
    with Peer(context, address, token) as peer:
        with Worker(context, address, token, SERVICE, musicgen(peer)) as worker:
            print("ready", flush=True)
            worker.thread.join()


if __name__ == "__main__":
    main()
