"""Tools of a worker: typed input, progress, errors, cancellation, and what happens when it leaves."""

import json
import subprocess
import sys
import time
from pathlib import Path

from harness import ALL_BYTES, assert_error, check
from wire import ANSWER_LIMIT, CANCEL, CREDIT, Silence
from worker import FIRST_CREDIT, ToolError, Worker, pour, progress

# Seconds for all checks of `ringback verify worker`.
KIT_LIMIT = 90

SCHEMA = {
    "type": "object",
    "properties": {"steps": {"type": "integer"}},
    "required": ["steps"],
}


def count(arguments):
    steps = arguments["steps"]
    for step in range(steps):
        yield progress(100 * step / steps, f"step {step}")
    return {"counted": steps, "bytes": ALL_BYTES}


def fail(arguments):
    raise ToolError("no soundfont")
    yield


def forever(arguments):
    while True:
        yield progress(1, "on and on")


TOOLS = {
    "count": ({"description": "counts", "input_schema": SCHEMA, "idempotent": True}, count),
    "fail": ({"description": "fails"}, fail),
    "forever": ({"description": "never ends"}, forever),
    "pour": ({"description": "sends bytes"}, pour),
}


def serve(world, service, token=None):
    token = token or world.daemon.token
    return Worker(world.context, world.daemon.hoot, token, service, TOOLS)


def call(peer, tool, arguments=None, **options):
    return peer.start({"tool": tool, "arguments": arguments or {}}, **options)


@check
def a_worker_serves_tools_with_progress(world):
    with serve(world, "py") as worker, world.peer() as peer:
        assert worker.answer["kind"] == "ack", worker.answer
        done = peer.reply(call(peer, "py_count", {"steps": 3}))
        assert done == {"kind": "success", "response": {"counted": 3, "bytes": ALL_BYTES}}, done
        request = worker.requests[-1]
        assert request["tool"] == "count" and request["arguments"] == {"steps": 3}, request
        assert request["deadline_ms"] > 0, request
        followed = call(peer, "py_count", {"steps": 3}, stream=True)
        start = peer.reply(followed)
        assert start["kind"] == "stream_start", start
        chunks = []
        while (reply := peer.reply(followed))["kind"] == "stream_chunk":
            assert reply["stream_id"] == start["stream_id"], reply
            chunks.append(reply["chunk"])
        # A slow reader may miss some progress, never the end.
        assert chunks and all(chunk["type"] == "progress" for chunk in chunks), chunks
        assert reply["kind"] == "stream_end", reply
        assert reply["final_response"]["counted"] == 3, reply


@check
def input_is_checked_before_it_leaves_and_errors_come_back(world):
    with serve(world, "py") as worker, world.peer() as peer:
        misfit = peer.reply(call(peer, "py_count", {"steps": "three"}))
        assert_error(misfit, "validation", "invalid_params")
        assert not worker.requests, "a refused call left"
        failed = peer.reply(call(peer, "py_fail"))
        assert_error(failed, "service", "tool_failed", certainty="ran")
        assert failed["message"].endswith("no soundfont"), failed
        assert_error(peer.reply(call(peer, "py_nothing")), "not_found", "not_found")


@check
def a_cancel_reaches_the_worker(world):
    with serve(world, "py") as worker, world.peer() as peer:
        followed = call(peer, "py_forever", stream=True)
        assert peer.reply(followed)["kind"] == "stream_start"
        assert peer.reply(followed)["kind"] == "stream_chunk"
        peer.send(CANCEL, request_id=followed)
        while (reply := peer.reply(followed))["kind"] == "stream_chunk":
            pass
        assert_error(reply, "cancelled", "cancelled", certainty="may_have_run")
        ends_at = time.monotonic() + ANSWER_LIMIT
        while not worker.cancelled:
            if time.monotonic() > ends_at:
                raise Silence("the worker was not notified")
            time.sleep(0.01)


@check
def a_worker_streams_on_credit_and_loses_no_byte(world):
    size = 6 << 20
    with serve(world, "py") as worker, world.peer() as peer:
        followed = call(peer, "py_pour", {"bytes": size}, stream=True)
        assert peer.reply(followed)["kind"] == "stream_start"
        received = bytearray()
        # What flows without any credit of ours: to us, and to the daemon on its way.
        while len(received) < FIRST_CREDIT:
            received += peer.reply(followed)["chunk"]["data"]
        # A call that takes its time: a worker that does not wait would have sent everything by now.
        peer.reply(call(peer, "py_count", {"steps": 100}))
        assert worker.running, "it ended although its caller granted no credit"
        peer.send(CREDIT, body=len(received).to_bytes(8, "big"), request_id=followed)
        while (reply := peer.reply(followed))["kind"] == "stream_chunk":
            data = reply["chunk"]["data"]
            received += data
            peer.send(CREDIT, body=len(data).to_bytes(8, "big"), request_id=followed)
        assert reply["kind"] == "stream_end", reply
        assert bytes(received) == bytes(i * 7 % 251 for i in range(size)), "bytes were lost or mixed up"
        assert 0 <= worker.overdrawn <= 100_000, worker.overdrawn


@check
def a_worker_that_leaves_takes_its_tools_with_it(world):
    with world.peer() as peer:
        with serve(world, "py"):
            waiting = call(peer, "py_forever", stream=True)
            assert peer.reply(waiting)["kind"] == "stream_start"
            assert peer.reply(waiting)["kind"] == "stream_chunk"
        while (reply := peer.reply(waiting))["kind"] == "stream_chunk":
            pass
        assert_error(reply, "service", "unavailable", certainty="may_have_run")
        assert_error(peer.reply(call(peer, "py_count", {"steps": 1})), "not_found", "not_found")


@check
def only_a_token_that_may_write_offers_tools(world):
    with world.peer() as admin:
        made = admin.success("token_create", {"name": "reader", "scope": "read"})
    with serve(world, "py", made["token"]) as worker:
        assert_error(worker.answer, "permission", "permission_denied")
    with serve(world, "client") as worker:
        assert_error(worker.answer, "validation", "invalid_params")


@check
def a_worker_in_python_passes_the_kit(world):
    candidate = Path(__file__).with_name("worker.py")
    kit = subprocess.run(
        [world.daemon.binary, "verify", "worker", "--json", "--", sys.executable, str(candidate)],
        stdout=subprocess.PIPE, timeout=KIT_LIMIT, check=False,
    )
    checks = [json.loads(line) for line in kit.stdout.splitlines()]
    failed = [it for it in checks if not it["passed"]]
    assert len(checks) == 12 and not failed and kit.returncode == 0, (kit.returncode, failed)


@check
def a_worker_that_ignores_credit_and_jobs_is_found_out(world):
    candidate = [sys.executable, str(Path(__file__).with_name("worker.py")), "--careless"]
    kit = subprocess.run(
        [world.daemon.binary, "verify", "worker", "--json", "--", *candidate],
        stdout=subprocess.PIPE, timeout=KIT_LIMIT, check=False,
    )
    checks = [json.loads(line) for line in kit.stdout.splitlines()]
    failed = [it["check"] for it in checks if not it["passed"]]
    assert failed == ["returns the job_id of a call", "waits for credit"], checks
    assert kit.returncode == 1, kit.returncode
