"""Music: the daemon's own tools, and a music service as a worker."""

import os
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from harness import TRACEPARENT, assert_error, check
from wire import CANCEL, STOP_LIMIT, Daemon, Peer

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
