"""Jobs, streams, cancellation and repeats."""

from harness import assert_error, check
from wire import CANCEL, new_id


@check
def a_plain_job_is_started_and_can_be_followed(world):
    with world.peer() as peer:
        envelope = peer.call("job_sleep", {"milliseconds": 300})
        assert envelope["kind"] == "job_started", envelope
        assert envelope["tool"] == "job_sleep", envelope
        assert envelope["expected_timing"] == "async_short", envelope
        status = peer.wait_for_job(envelope["job_id"])
        assert (status["status"], status["source"]) == ("complete", "job_sleep"), status
        assert status["result"] == {"type": "slept", "milliseconds": 300}, status
        assert status["created_at"] <= status["started_at"] <= status["completed_at"], status
        listed = peer.success("job_list", {"status": "complete", "limit": 500})
        assert envelope["job_id"] in [job["job_id"] for job in listed["jobs"]], listed
        assert listed["by_status"]["complete"] >= 1, listed


@check
def wait_ms_brings_the_result_or_the_job(world):
    with world.peer() as peer:
        slept = peer.success("job_sleep", {"milliseconds": 50}, wait_ms=15000)
        assert slept == {"type": "slept", "milliseconds": 50}, slept
        started = peer.call("job_sleep", {"milliseconds": 60000}, wait_ms=50)
        assert started["kind"] == "job_started", started
        cancelled = peer.success("job_cancel", {"job_id": started["job_id"]})
        assert cancelled["status"] == "cancelled", cancelled
        hinted = peer.call("job_sleep", {"milliseconds": 1}, timing_hint="async_long")
        assert hinted["kind"] == "job_started", hinted


def read_stream(peer, request_id):
    """`stream_start`, the chunks, and the end of the stream."""
    start = peer.reply(request_id)
    assert start["kind"] == "stream_start", start
    chunks = []
    while (envelope := peer.reply(request_id))["kind"] == "stream_chunk":
        assert envelope["stream_id"] == start["stream_id"], envelope
        chunks.append(envelope["chunk"])
    return start, chunks, envelope


@check
def a_stream_has_a_start_progress_and_an_end_with_the_result(world):
    with world.peer() as peer:
        request = {"tool": "job_sleep", "milliseconds": 1500}
        start, chunks, end = read_stream(peer, peer.start(request, stream=True))
        assert start["tool"] == "job_sleep", start
        assert end["kind"] == "stream_end", end
        assert end["stream_id"] == start["stream_id"], end
        assert end["final_response"] == {"type": "slept", "milliseconds": 1500}, end
        percents = [chunk["percent"] for chunk in chunks if chunk["type"] == "progress"]
        assert percents and percents == sorted(percents), percents
        assert all(0 <= percent <= 100 for percent in percents), percents
        status = peer.success("job_status", {"job_id": start["job_id"]})
        assert status["status"] == "complete", status


@check
def cancel_ends_a_running_stream_and_its_work(world):
    with world.peer() as peer:
        request = {"tool": "job_sleep", "milliseconds": 60000}
        request_id = peer.start(request, stream=True)
        start = peer.reply(request_id)
        assert start["kind"] == "stream_start", start
        peer.send(CANCEL, request_id=request_id)
        while (envelope := peer.reply(request_id))["kind"] == "stream_chunk":
            pass
        assert envelope["kind"] == "error", envelope
        assert (envelope["category"], envelope["code"]) == ("cancelled", "cancelled"), envelope
        status = peer.wait_for_job(start["job_id"])
        assert status["status"] == "cancelled", status


@check
def the_same_request_id_is_the_same_job_and_another_body_a_conflict(world):
    with world.peer() as peer:
        request_id = new_id()
        first = peer.start_job(200, request_id)
        assert peer.start_job(200, request_id) == first
        other = peer.start({"tool": "job_sleep", "milliseconds": 201}, request_id)
        assert_error(peer.reply(other), "validation", "conflict")
        peer.wait_for_job(first)
        assert peer.start_job(200, request_id) == first, "also after it has ended"
