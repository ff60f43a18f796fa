"""IOPub and `event_poll`."""

from harness import check
from wire import Silence, Subscriber


def assert_without_gaps(events):
    """The events of one topic follow one another in one epoch."""
    for before, after in zip(events, events[1:], strict=False):
        assert after["epoch"] == before["epoch"], (before, after)
        assert after["seq"] > before["seq"], (before, after)
        assert after["topic_seq"] == before["topic_seq"] + 1, (before, after)


def is_end_of(job_id):
    ended = {"complete", "failed", "cancelled"}
    return lambda topic, message: (
        topic == "job.state_changed"
        and message["event"]["job_id"] == job_id
        and message["event"]["state"] in ended
    )


@check
def iopub_tells_every_state_of_a_job_without_gaps(world):
    with world.peer() as peer, world.subscriber("job.state_changed", "heads") as subscriber:
        heads = subscriber.heads()
        job_id = peer.start_job(100)
        seen = subscriber.collect_until(is_end_of(job_id))
        events = [message for topic, message in seen if topic == "job.state_changed"]
        assert_without_gaps(events)
        assert all(message["at_ms"] > 0 for message in events), events
        first = heads["topics"].get("job.state_changed", 0) + 1
        assert (events[0]["topic_seq"], events[0]["epoch"]) == (first, heads["epoch"]), events[0]
        own = [message["event"] for message in events if message["event"]["job_id"] == job_id]
        states = [event["state"] for event in own]
        assert states in (["pending", "running", "complete"], ["running", "complete"]), states
        assert all(event["type"] == "job.state_changed" for event in own), own
        assert all(event["tool"] == "job_sleep" for event in own), own
        token = world.daemon.token.encode()
        assert all(token not in raw for raw in subscriber.raw), "a secret in an event"


@check
def a_subscriber_that_was_away_notices_and_fetches_what_it_missed(world):
    topic = "job.state_changed"
    with world.peer() as peer:
        with world.subscriber(topic, "heads") as subscriber:
            subscriber.heads()
            job_id = peer.start_job(10)
            seen = subscriber.collect_until(is_end_of(job_id))
        last_seen = [message for name, message in seen if name == topic][-1]
        missed_jobs = [peer.start_job(10) for _ in range(3)]
        for missed_job in missed_jobs:
            peer.wait_for_job(missed_job)

        with world.subscriber(topic, "heads") as subscriber:
            heads = subscriber.heads()
        assert heads["epoch"] == last_seen["epoch"], heads
        head = heads["topics"][topic]
        assert head > last_seen["topic_seq"], "the gap cannot be seen"

        fetched, cursor = [], None
        while not fetched or fetched[-1]["topic_seq"] < head:
            fields = {"types": [topic], "limit": 1000, **({"cursor": cursor} if cursor else {})}
            page = peer.success("event_poll", fields)
            assert page["events"], "the events end before the head"
            assert not page.get("missed"), page["missed"]
            fetched += page["events"]
            cursor = page["cursor"]
        missing = [event for event in fetched if event["topic_seq"] > last_seen["topic_seq"]]
        assert missing[0]["topic_seq"] == last_seen["topic_seq"] + 1, missing[0]
        assert_without_gaps(missing)
        completed = {e["event"]["job_id"] for e in missing if e["event"]["state"] == "complete"}
        assert completed >= set(missed_jobs), completed


@check
def event_poll_wakes_when_something_happens(world):
    topics = ["job.state_changed"]
    with world.peer() as peer:
        cursor = None
        while True:
            fields = {"types": topics, "limit": 1000, **({"cursor": cursor} if cursor else {})}
            page = peer.success("event_poll", fields)
            cursor = page["cursor"]
            if not page["events"]:
                break
        waiting = {"tool": "event_poll", "types": topics, "cursor": cursor, "wait_ms": 15000}
        request_id = peer.start(waiting)
        job_id = peer.start_job(10)
        envelope = peer.reply(request_id)
        assert envelope["kind"] == "success", envelope
        events = envelope["response"]["events"]
        assert events and events[0]["event"]["job_id"] == job_id, events


@check
def iopub_needs_a_token(world):
    with Subscriber(world.context, world.daemon.iopub, "oub_" + "0" * 64, [""]) as stranger:
        with world.peer() as peer:
            peer.wait_for_job(peer.start_job(10))
        # Longer than the period of `heads`, which every admitted subscriber receives.
        try:
            message = stranger.receive(limit=7)
        except Silence:
            return
        raise AssertionError(f"a stranger received {message}")
