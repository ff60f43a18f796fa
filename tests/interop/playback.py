"""The garden as its own process, beside a daemon that stalls, fails and is killed."""

import array
import io
import os
import signal
import sqlite3
import time
import wave
from contextlib import contextmanager
from pathlib import Path

from harness import check, store
from wire import Daemon, Peer, Subscriber

RATE = 48_000
# Seconds that a process may take to notice something.
LIMIT = 20
# Seconds that the daemon or its store stands still.
STALL = 3
# More events than a subscriber's socket and the daemon's hold: each of these commands is three.
FLOOD = 1000
# Commands that are under way at the same time.
CROWD = 100
# Transport events that a subscriber counts.
SEEKS = 100
# Sound is mixed this far ahead, so that only a garden that waits for the daemon runs out of it.
SETTINGS = {"RINGBACK_GARDEN__DEVICE": "null", "RINGBACK_GARDEN__AHEAD": "2s"}


def minute():
    """A minute of sound as a WAV file."""
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(RATE)
        out.writeframes(array.array("h", (at % 200 for at in range(60 * RATE))).tobytes())
    return file.getvalue()


def wait_for(what, condition):
    ends_at = time.monotonic() + LIMIT
    while not (found := condition()):
        assert time.monotonic() < ends_at, f"no {what} within {LIMIT} s"
        time.sleep(0.02)
    return found


def garden_of(daemon):
    """The id of the garden's process, if it runs."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, rest = path.read_text().rsplit(")", 1)
        except OSError:
            continue
        state, parent = rest.split()[:2]
        if int(parent) == daemon.process.pid and state != "Z":
            return int(path.parent.name)
    return None


@contextmanager
def playing(world):
    """A daemon whose garden plays a minute of sound, and a peer."""
    with Daemon(world.daemon.binary, **SETTINGS) as daemon:
        with Peer(world.context, daemon.hoot, daemon.token) as peer:
            place(peer)
            play(peer)
            yield daemon, peer


def place(peer):
    content = store(peer, minute(), mime_type="audio/wav")["hash"]
    region = {"position": 0, "behavior_type": "play_content", "content_id": content, "name": "a minute"}
    return peer.success("garden_create_region", region, wait_ms=20000)


def play(peer):
    """Plays, as soon as a garden answers."""
    wait_for("garden", lambda: peer.call("garden_play")["kind"] == "ack")
    wait_for("playback", lambda: peer.success("garden_status")["counters"]["frames"] > RATE // 10)


def content_of(timeline):
    """The hash of what the first region plays."""
    return timeline["regions"][0]["content"]["hash"]


def is_with_the_garden(peer, command):
    """Whether the daemon has passed this command on to a garden that stands still.

    A command that the daemon still holds when its garden dies goes to the next garden.
    """
    running = peer.success("job_list", {"status": "running"})["jobs"]
    if command not in [it["source"] for it in running]:
        return False
    # What follows the command on the same connection was passed on too.
    status = peer.call("garden_status", deadline_ms=50)
    return status.get("certainty") == "may_have_run"


@check
def no_daemon_and_no_listener_makes_the_music_stutter(world):
    with playing(world) as (daemon, peer):
        # A subscriber that never reads.
        with Subscriber(world.context, daemon.iopub, daemon.token, ["garden."]):
            before = peer.success("garden_status")
            daemon.process.send_signal(signal.SIGSTOP)
            try:
                time.sleep(STALL)
            finally:
                daemon.process.send_signal(signal.SIGCONT)
            after = peer.success("garden_status")
    played = after["counters"]["frames"] - before["counters"]["frames"]
    assert played >= (STALL - 1) * RATE, "the music waited for the daemon"
    assert after["counters"]["underruns"] == before["counters"]["underruns"], (before, after)
    moved = after["position_seconds"] - before["position_seconds"]
    assert abs(moved - played / RATE) < 0.001, (moved, played)


@contextmanager
def without_underruns(peer, seconds):
    """What is done here must not be heard."""
    before = peer.success("garden_status")
    yield
    after = peer.success("garden_status")
    assert after["counters"]["underruns"] == before["counters"]["underruns"], (before, after)
    played = after["counters"]["frames"] - before["counters"]["frames"]
    assert played >= seconds * RATE, "the music waited"


@contextmanager
def locked_store(daemon):
    """Nothing can be written meanwhile."""
    other = sqlite3.connect(daemon.home / "data" / "ringback.db", isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        yield
    finally:
        other.close()


@check
def a_subscriber_that_reads_nothing_and_a_flood_of_events_are_not_heard(world):
    with playing(world) as (daemon, peer):
        with Subscriber(world.context, daemon.iopub, daemon.token, [""]) as events:
            events.receive()
            with without_underruns(peer, 0):
                for first in range(0, FLOOD, CROWD):
                    beats = [1 + number % 50 for number in range(first, first + CROWD)]
                    commands = [peer.start({"tool": "garden_seek", "beat": beat}) for beat in beats]
                    kinds = {peer.reply(command)["kind"] for command in commands}
                    assert kinds == {"ack"}, kinds


@check
def a_store_that_stalls_is_not_heard(world):
    with playing(world) as (daemon, peer), without_underruns(peer, STALL - 1):
        with locked_store(daemon):
            time.sleep(STALL)


@check
def a_subscriber_receives_every_transport_event(world):
    with playing(world) as (daemon, peer):
        assert peer.call("garden_pause")["kind"] == "ack"
        with Subscriber(world.context, daemon.iopub, daemon.token, ["garden.transport", "heads"]) as events:
            heads = events.heads()
            jobs = [peer.call("garden_seek", {"beat": 1 + number})["job_id"] for number in range(SEEKS)]
            seen = events.collect_until(lambda _, it: it.get("event", {}).get("job_id") == jobs[-1])
    seen = [it for topic, it in seen if topic == "garden.transport"]
    assert [it["event"]["job_id"] for it in seen] == jobs, "each command once, in order"
    first = seen[0]["topic_seq"]
    assert [it["topic_seq"] for it in seen] == list(range(first, first + SEEKS)), heads


@check
def an_emergency_pause_needs_no_store(world):
    with playing(world) as (daemon, peer), locked_store(daemon):
        refused = peer.call("garden_emergency_pause")
        assert refused["kind"] == "error" and refused["certainty"] == "may_have_run", refused
        wait_for("silence", lambda: peer.success("garden_status")["state"] == "paused")


@check
def a_change_that_cannot_be_stored_is_taken_back_by_the_garden(world):
    with playing(world) as (daemon, peer):
        before, garden = peer.success("garden_timeline"), garden_of(daemon)
        region = dict(position=8, duration=1, behavior_type="play_content", content_id=content_of(before))
        move = dict(region_id=before["regions"][0]["region_id"], new_position=4)
        for tool, fields in [("garden_create_region", region), ("garden_move_region", move)]:
            # The command is on its way before the store is locked, and is accepted after that.
            status = lambda: peer.success("garden_status")
            n_commands = status()["counters"]["commands"]
            os.kill(garden, signal.SIGSTOP)
            command = peer.start({"tool": tool, **fields}, wait_ms=LIMIT * 1000)
            wait_for("command on its way", lambda: is_with_the_garden(peer, tool))
            with locked_store(daemon):
                os.kill(garden, signal.SIGCONT)
                wait_for("change in the garden", lambda: status()["counters"]["commands"] > n_commands)
                wait_for("old timeline", lambda: status()["revision"] == before["revision"])
            assert peer.reply(command)["kind"] in ("error", "job_started")
            assert (status()["region_count"], status()["state"]) == (1, "playing"), status()
        assert peer.success("garden_timeline") == before
        assert peer.call("garden_move_region", move)["kind"] == "ack"
        assert peer.success("garden_status")["revision"] == before["revision"] + 1


@check
def a_garden_that_is_killed_comes_back_with_its_timeline(world):
    with playing(world) as (daemon, peer):
        before, killed = peer.success("garden_timeline"), garden_of(daemon)
        # It takes no command any more, and then it is gone: the command ends because of that, long
        # before the time that content may take.
        os.kill(killed, signal.SIGSTOP)
        region = dict(position=8, duration=1, behavior_type="play_content", content_id=content_of(before))
        command = peer.start({"tool": "garden_create_region", **region}, wait_ms=LIMIT * 1000)
        wait_for("command on its way", lambda: is_with_the_garden(peer, "garden_create_region"))
        os.kill(killed, signal.SIGKILL)
        lost = peer.reply(command)
        assert lost["kind"] == "error" and lost["certainty"] == "may_have_run", lost
        assert "did not answer" not in lost["message"], lost
        jobs = peer.success("job_list", {"status": "failed"})["jobs"]
        assert [it["source"] for it in jobs] == ["garden_create_region"], jobs
        wait_for("new garden", lambda: garden_of(daemon) not in (None, killed))
        status = wait_for("answer", lambda: peer.call("garden_status").get("response"))
        assert status["state"] == "stopped", "nothing plays that nobody asked for"
        assert (status["region_count"], status["revision"]) == (1, before["revision"]), status
        play(peer)
        assert peer.success("garden_timeline") == before


@check
def a_daemon_that_is_killed_loses_nothing_of_the_timeline(world):
    with playing(world) as (daemon, peer):
        looped = peer.call("garden_set_loop", {"start": 0, "end": 8})
        assert looped["kind"] == "ack", looped
        before, garden = peer.success("garden_timeline"), garden_of(daemon)
        # A command that is under way when the daemon is killed.
        os.kill(garden, signal.SIGSTOP)
        peer.start({"tool": "garden_play"})
        wait_for("command on its way", lambda: is_with_the_garden(peer, "garden_play"))
        daemon.kill()
        os.kill(garden, signal.SIGCONT)
        wait_for("end of the garden", lambda: not Path(f"/proc/{garden}").exists())
        daemon.start()
        with Peer(world.context, daemon.hoot, daemon.token) as again:
            assert again.success("garden_timeline") == before
            assert again.call("garden_status")["kind"] == "error", "nothing plays after a restart"
            done = again.success("job_status", {"job_id": looped["job_id"]})
            assert done["status"] == "complete", done
            failed = again.success("job_list", {"status": "failed"})["jobs"]
            assert [it["source"] for it in failed] == ["garden_play"], failed
            # A command starts a garden; the one from before does not play there.
            assert again.call("garden_seek", {"beat": 2}, wait_ms=LIMIT * 1000)["kind"] == "ack"
            assert again.success("garden_status")["state"] == "stopped"
            play(again)
            assert again.success("garden_status")["loop"] == {"start": 0.0, "end": 8.0}
