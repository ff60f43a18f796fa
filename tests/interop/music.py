"""Music: the daemon's own tools, and a music service as a worker."""

import array
import math
import os
import socket
import struct
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from harness import TRACEPARENT, assert_error, check, store
from wire import CANCEL, STOP_LIMIT, Daemon, Peer, Subscriber

TOOL = "lab_musicgen_generate"


@contextmanager
def the_model(world):
    """The worker as a program of its own, once it reports that it serves."""
    program = Path(__file__).with_name("musicgen_worker.py")
    variables = {"RINGBACK_DAEMON": world.daemon.hoot, "RINGBACK_TOKEN": world.daemon.token}
    worker = subprocess.Popen(
        [sys.executable, str(program)], stdout=subprocess.PIPE, env=os.environ | variables
    )
    try:
        assert worker.stdout.readline() == b"ready\n", "the worker did not start"
        yield worker
    finally:
        worker.kill()
        worker.wait(STOP_LIMIT)
        worker.stdout.close()


def follow(peer, request_id):
    """The chunks of a stream, and what follows them."""
    assert (start := peer.reply(request_id))["kind"] == "stream_start", start
    chunks = []
    while (reply := peer.reply(request_id))["kind"] == "stream_chunk":
        chunks.append(reply["chunk"])
    return chunks, reply


@check
def a_model_in_python_serves_what_the_daemon_has_no_service_for(world):
    with world.peer() as peer, the_model(world):
        request = {"prompt": "a clock", "duration": 2.0}
        refused = peer.call("musicgen_generate", request, wait_ms=15000)
        assert_error(refused, "service", "tool_failed")
        asked = {"tool": TOOL, "arguments": request | {"tags": ["mine"], "creator": "ada"}}
        chunks, end = follow(peer, peer.start(asked, stream=True))
        assert chunks and all(chunk["type"] == "progress" for chunk in chunks), chunks
        assert end["kind"] == "stream_end", end
        made = end["final_response"]["artifacts"][0]
        assert made["duration_seconds"] == 2.0, made
        artifact = peer.success("artifact_get", {"id": made["artifact_id"]})
        assert artifact["creator"] == "ada" and "mine" in artifact["tags"], artifact
        again = peer.reply(peer.start(asked))["response"]["artifacts"][0]
        assert again["content_hash"] == made["content_hash"], "the same words, another sound"
        # A worker's result is content like any other: the daemon's own tools accept it.
        heard = peer.success("beatthis_analyze", {"audio_hash": made["content_hash"]}, wait_ms=15000)
        assert heard["type"] == "beats_analyzed", heard


@check
def a_model_in_python_is_checked_fails_and_is_cancelled(world):
    with world.peer() as peer, the_model(world):
        def call(stream=False, **arguments):
            return peer.start({"tool": TOOL, "arguments": arguments}, stream=stream)

        assert_error(peer.reply(call(duration=1000)), "validation", "invalid_params")
        assert_error(peer.reply(call(prompt="silence")), "service", "tool_failed", "ran")
        followed = call(stream=True, duration=120)
        assert peer.reply(followed)["kind"] == "stream_start"
        assert peer.reply(followed)["kind"] == "stream_chunk"
        peer.send(CANCEL, request_id=followed)
        while (reply := peer.reply(followed))["kind"] == "stream_chunk":
            pass
        assert_error(reply, "cancelled", "cancelled", certainty="may_have_run")
        # It was cancelled, and is free for the next call.
        done = peer.reply(call(prompt="after that", duration=0.5))
        assert done["kind"] == "success", done


# A note of four quarters at 120 a minute: one track, 96 ticks a quarter.
NOTE = (
    b"MThd\0\0\0\x06\0\0\0\x01\0\x60MTrk\0\0\0\x0d"
    b"\0\x90\x3c\x64\x83\0\x80\x3c\0\0\xff\x2f\0"
)


def quantised(samples):
    """32-bit floats as 16-bit integers, the way the daemon writes them."""
    floats = array.array("f", samples)
    return b"".join(
        # Half away from zero.
        struct.pack("<h", max(-32768, min(32767, math.floor(abs(x) * 32768 + 0.5) * (1 if x >= 0 else -1))))
        for x in floats
    )


@check
def a_subscriber_assembles_the_sound_of_a_render(world):
    topics = ["stream.started", "stream.data.", "stream.ended", "heads"]
    with world.peer() as peer, world.subscriber(*topics) as subscriber:
        subscriber.heads()
        midi = store(peer, NOTE, mime_type="audio/midi")["hash"]
        job_id = peer.call("midi_to_wav", {"input_hash": midi})["job_id"]
        seen = subscriber.collect_until(
            lambda topic, message: topic == "stream.ended" and message["event"]["job_id"] == job_id
        )
        seen = [(topic, message) for topic, message in seen if topic != "heads"]
        assert peer.wait_for_job(job_id)["status"] == "complete"
        stream_id = seen[0][1]["event"]["stream_id"]
        assert stream_id == job_id.replace("job_", "str_"), (stream_id, job_id)
        assert [seen[0][0], seen[-1][0]] == ["stream.started", "stream.ended"], seen[0]
        assert seen[0][1]["event"]["tool"] == "midi_to_wav", seen[0]
        data = [message for topic, message in seen if topic == f"stream.data.{stream_id}"]
        assert len(data) == len(seen) - 2, "another stream"
        # No piece is missing.
        assert [it["topic_seq"] for it in data] == list(range(1, seen[-1][1]["event"]["data"] + 1))
        assert all(it["event"]["type"] == "stream.data" for it in data)
        chunks = [it["event"]["chunk"] for it in data]
        assert {(c["type"], c["sample_rate"], c["channels"]) for c in chunks} == {("partial_audio", 44100, 2)}
        made = peer.success("job_status", {"job_id": job_id})["result"]["artifacts"][0]
        wav = peer.success("cas_get", {"hash": made["content_hash"]})["data"]
        assert wav[44:] == quantised(b"".join(c["samples"] for c in chunks)), "not the sound of the artifact"


@check
def a_stranger_hears_no_chunk(world):
    with world.peer() as peer:
        token = peer.success("token_create", {"name": "stranger", "scope": "write"})
    owner = [f"{token['token_id']}/{topic}" for topic in ("stream.", "job.", "heads")]
    topics = ["", "stream.", "stream.data.", "tok_", *owner]
    stranger = Subscriber(world.context, world.daemon.iopub, token["token"], topics)
    everyone = world.subscriber("stream.data.", "stream.ended", "heads")
    with stranger, everyone, world.peer() as peer, world.peer(token["token"]) as own:
        everyone.heads()
        stranger.collect_until(lambda topic, _: topic == owner[2])
        midi = store(peer, NOTE, mime_type="audio/midi")["hash"]
        peer.wait_for_job(peer.call("midi_to_wav", {"input_hash": midi})["job_id"])
        heard = everyone.collect_until(lambda topic, _: topic == "stream.ended")
        assert any(topic.startswith("stream.data.") for topic, _ in heard), heard
        # What comes after it: a render of its own.
        theirs = store(own, NOTE, mime_type="audio/midi")["hash"]
        job_id = own.call("midi_to_wav", {"input_hash": theirs})["job_id"]
        heard = stranger.collect_until(lambda topic, _: topic.endswith("/stream.ended"))
        of_job = job_id.removeprefix("job_")
        assert any("/stream.data." in topic for topic, _ in heard), heard
        assert all(topic.startswith(token["token_id"]) for topic, _ in heard), heard
        assert all(topic.endswith(of_job) for topic, _ in heard if "stream.data." in topic), heard


@contextmanager
def refusing_service():
    """A music service that refuses everything, and the headers it got."""
    seen = []

    class Refusal(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            seen.append(dict(self.headers))
            body = b'{"detail": "not today"}'
            self.send_response(422)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Refusal)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@check
def a_model_service_is_asked_in_the_trace_of_the_call(world):
    with refusing_service() as (url, seen), socket.create_server(("127.0.0.1", 0)) as collector:
        settings = {
            "RINGBACK_STUDIO__SERVICES__YUE": url,
            "RINGBACK_TELEMETRY__OTLP_ENDPOINT": f"http://127.0.0.1:{collector.getsockname()[1]}",
        }
        with Daemon(world.daemon.binary, **settings) as daemon:
            with Peer(world.context, daemon.hoot, daemon.token) as peer:
                song = {"tool": "yue_generate", "lyrics": "la"}
                refused = peer.reply(peer.start(song, trace=TRACEPARENT, wait_ms=15000))
                assert_error(refused, "validation", "invalid_params")
    _, trace, span, _ = seen[0]["traceparent"].split("-")
    _, callers_trace, callers_span, _ = TRACEPARENT.decode().split("-")
    assert trace == callers_trace and span != callers_span, seen
