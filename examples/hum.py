"""A music service: it answers the daemon's `musicgen_generate` with a few hummed notes.

    python3 examples/hum.py --port 2001 --think 20
    RINGBACK_STUDIO__SERVICES__MUSICGEN=http://127.0.0.1:2001 ringback serve
"""

import argparse
import array
import base64
import io
import json
import math
import random
import time
import wave
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

RATE = 44_100
NOTES = [220.0 * 2 ** (step / 12) for step in (0, 3, 5, 7, 10, 12)]


def hum(prompt, seconds):
    """Notes of half a second: the same words make the same notes."""
    choice, samples = random.Random(prompt), array.array("h")
    while len(samples) < seconds * RATE:
        turn = 2 * math.pi * choice.choice(NOTES) / RATE
        note = (math.sin(turn * at) * math.exp(-6 * at / RATE) for at in range(RATE // 2))
        samples.extend(int(9000 * sample) for sample in note)
    return samples[: int(seconds * RATE)]


def wav(samples):
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(RATE)
        out.writeframes(samples.tobytes())
    return file.getvalue()


class Service(BaseHTTPRequestHandler):
    think = 0.0

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        started = time.monotonic()
        file = wav(hum(request["prompt"], request["duration"]))
        time.sleep(max(0.0, self.think - (time.monotonic() - started)))
        body = json.dumps({"audio_base64": base64.b64encode(file).decode(), "format": "wav"}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--port", type=int, default=2001, help="0 chooses a free one")
    arguments.add_argument("--think", type=float, default=0.0, help="seconds before it answers")
    options = arguments.parse_args()
    Service.think = options.think
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Service)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
