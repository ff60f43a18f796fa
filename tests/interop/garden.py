"""A garden as a stranger would write it: it keeps a timeline and a transport, makes no sound, and returns
the job id of each command unchanged.

One thread and a DEALER for each of its two services, so that an emergency pause waits for no other command.
"""

import sqlite3
import threading
import time

import zmq

from harness import assert_error, check, store
from wire import HEARTBEAT, MSGPACK, READY, REPLY, REQUEST
from wire import Frame, Peer, frame_parts, new_id, pack, secured, unpack

# Seconds between two heartbeats; the daemon takes 30 s of silence for the end.
HEARTBEAT_EVERY = 5
# Milliseconds to wait for a frame.
POLL = 20
TICKS = 960
TOOLS = {
    "garden": ["status", "play", "pause", "stop", "seek", "set_tempo", "create_region", "move_region",
               "delete_region", "set_loop", "set_region_state", "monitor", "reload"],
    "garden_control": ["emergency_pause"],
}
DEVICE = {"kind": "null", "name": "null", "sample_rate": 48000, "buffer_frames": 128, "state": "running",
          "realtime": False}
COUNTERS = {"frames": 0, "underruns": 0, "late": 0, "clipped": 0, "commands": 0}


class Refusal(Exception):
    """An error of the garden: its code and message."""


class Garden:
    """Serves both services until the context is left."""

    def __init__(self, context, address, token):
        self.context, self.address, self.token = context, address, token
        self.state, self.position, self.jobs, self.loads = "stopped", 0, [], 0
        self.accepted = lambda tool: None
        self.ready = {service: threading.Event() for service in TOOLS}
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self.serve, args=(it,), daemon=True) for it in TOOLS]

    def __enter__(self):
        self.load()
        for thread in self.threads:
            thread.start()
        assert all(it.wait(20) for it in self.ready.values()), "no answer to Ready"
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for thread in self.threads:
            thread.join(20)

    def load(self):
        """Fetches the timeline, as every garden does before it serves."""
        with Peer(self.context, self.address, self.token) as peer:
            timeline = peer.success("garden_timeline")
        self.revision, self.loads = timeline["revision"], self.loads + 1
        self.regions = {it["region_id"]: it for it in timeline["regions"]}
        self.loop = timeline.get("loop")

    def serve(self, service):
        socket = secured(self.context.socket(zmq.DEALER), self.token)
        socket.connect(self.address)
        offer = pack({"protocol": "HOOT01", "tools": TOOLS[service]})
        socket.send_multipart(frame_parts(READY, MSGPACK, new_id(), offer, service=service.encode()))
        beat_at = time.monotonic() + HEARTBEAT_EVERY
        while not self.stopping.is_set():
            if socket.poll(POLL):
                frame = Frame(socket.recv_multipart())
                if frame.command == REPLY:
                    assert frame.envelope()["kind"] == "ack", frame.envelope()
                    self.ready[service].set()
                elif frame.command == REQUEST:
                    body = pack(self.answer(unpack(frame.body)))
                    socket.send_multipart(frame_parts(REPLY, MSGPACK, frame.request_id, body))
            if time.monotonic() > beat_at:
                socket.send_multipart(frame_parts(HEARTBEAT, 0, new_id()))
                beat_at = time.monotonic() + HEARTBEAT_EVERY
        socket.close(linger=0)

    def answer(self, request):
        try:
            envelope = {"kind": "success", "response": self.do(request["tool"], request["arguments"])}
        except Refusal as refusal:
            category, code, message = refusal.args
            envelope = {"kind": "error", "category": category, "code": code, "message": message,
                        "retryable": False, "certainty": "not_started"}
        if "job_id" in request:
            self.jobs.append((request["tool"], request["job_id"]))
            envelope["job_id"] = request["job_id"]
        self.accepted(request["tool"])
        return envelope

    def do(self, tool, arguments):
        if "revision" in arguments:
            if arguments["revision"] != self.revision + 1:
                self.load()
            self.revision = arguments["revision"]
        if tool == "status":
            return self.status()
        if tool == "monitor":
            return {"sample_rate": DEVICE["sample_rate"]}
        if tool == "create_region":
            region = arguments["region"]
            region["duration"] = region.get("duration") or 4 * TICKS
            self.regions[region["region_id"]] = region
            return {"duration": region["duration"]}
        if tool == "move_region":
            self.regions[arguments["region_id"]]["position"] = arguments["position"]
        elif tool == "delete_region":
            del self.regions[arguments["region_id"]]
        elif tool == "set_region_state":
            self.regions[arguments["region_id"]]["state"] = arguments["state"]
        elif tool == "set_loop":
            self.loop = arguments.get("loop")
        elif tool == "reload":
            self.load()
        elif tool == "set_tempo":
            signature = arguments.get("time_signature") or {"beats_per_bar": 4, "beat_unit": 4}
            return {"change": {"at": arguments.get("position") or 0, "bpm": arguments["bpm"], **signature}}
        else:
            return self.move(tool, arguments)
        return {}

    def move(self, tool, arguments):
        if tool == "play" and not self.regions:
            raise Refusal("validation", "conflict", "there is nothing to play: place a region first")
        states = {"play": "playing", "stop": "stopped", "pause": "paused", "emergency_pause": "paused"}
        self.state = states.get(tool, self.state)
        self.position = arguments.get("position", self.position)
        return {"state": self.state, "position": self.position}

    def status(self):
        beats = self.position / TICKS
        return {"state": self.state, "position": self.position, "position_beats": beats,
                "position_seconds": beats / 2, "bar": 1, "beat_in_bar": 1.0, "tempo_bpm": 120.0,
                "time_signature": "4/4", "region_count": len(self.regions), "revision": self.revision,
                "device": DEVICE, "counters": COUNTERS}


def garden(world):
    return Garden(world.context, world.daemon.hoot, world.daemon.token)


@check
def a_garden_in_python_answers_commands_with_their_job_ids(world):
    with garden(world) as played, world.peer() as peer:
        refused = peer.call("garden_play")
        assert_error(refused, "validation", "conflict")
        content = store(peer, b"sound", mime_type="audio/wav")["hash"]
        placed = peer.success("garden_create_region", {
            "position": 4.0, "behavior_type": "play_content", "content_id": content,
        }, wait_ms=20000)
        assert placed["duration"] == 4.0, placed
        acks = [peer.call(tool, fields) for tool, fields in [
            ("garden_play", {"at": "next_bar"}), ("garden_seek", {"beat": 2.0}), ("garden_stop", {}),
            ("garden_move_region", {"region_id": placed["region_id"], "new_position": 8.0}),
        ]]
        assert all(it["kind"] == "ack" for it in acks), acks
        assert [it["job_id"] for it in acks] == [job for _, job in played.jobs[-4:]], (acks, played.jobs)
        for ack in acks:
            status = peer.success("job_status", {"job_id": ack["job_id"]})
            assert status["status"] == "complete", status
        n_jobs = len(played.jobs)
        paused = peer.call("garden_emergency_pause")
        assert paused["kind"] == "ack" and paused["job_id"], paused
        assert len(played.jobs) == n_jobs, "a pause is sent without a job id"
        status = peer.success("garden_status")
        assert (status["state"], status["region_count"], status["revision"]) == ("paused", 1, 2), status
        deleted = peer.call("garden_delete_region", {"region_id": placed["region_id"]})
        assert deleted["kind"] == "ack", deleted


@check
def a_garden_in_python_keeps_a_promise_that_needs_approval(world):
    with garden(world) as played, world.peer() as peer:
        job = peer.start_job(300_000)
        region = peer.success("garden_create_region", {
            "position": 8.0, "duration": 4.0, "behavior_type": "latent", "content_id": job,
            "approval": "required", "if_late": "vamp",
        }, wait_ms=20000)["region_id"]
        kept = played.regions[region]
        assert (kept["state"], kept["promise"]) == ("pending", {"job_id": job, "if_late": "vamp"}), kept
        content = {"hash": store(peer, b"sound", mime_type="audio/wav")["hash"], "mime_type": "audio/wav"}
        settled = peer.success("garden_settle", {"region_id": region, "job_id": job, "content": content})
        assert settled["state"] == "awaiting_approval", settled
        approved = peer.call("garden_approve", {"region_id": region, "reason": "it fits"})
        assert approved["kind"] == "ack" and played.regions[region]["state"] == "ready", approved
        looped = peer.call("garden_set_loop", {"start": 0, "end": 8})
        assert looped["kind"] == "ack" and played.loop == {"start": 0, "end": 8 * TICKS}, played.loop
        for tool, fields in [("garden_set_loop", {}), ("garden_delete_region", {"region_id": region})]:
            assert peer.call(tool, fields)["kind"] == "ack", tool
        peer.success("job_cancel", {"job_id": job})


@check
def a_garden_that_was_away_fetches_the_timeline_that_is_stored(world):
    with world.peer() as peer:
        content = store(peer, b"sound", mime_type="audio/wav")["hash"]
        with garden(world):
            placed = peer.success("garden_create_region", {
                "position": 1.0, "behavior_type": "play_content", "content_id": content,
            }, wait_ms=20000)
        with garden(world) as played:
            region = played.regions[placed["region_id"]]
            assert (region["position"], region["duration"]) == (TICKS, 4 * TICKS), region
            deleted = peer.call("garden_delete_region", {"region_id": placed["region_id"]})
            assert deleted["kind"] == "ack" and not played.regions, (deleted, played.regions)
            assert played.loads == 1, "its revision was the next one"


@check
def a_garden_whose_change_cannot_be_stored_reads_the_timeline_again(world):
    database = world.daemon.home / "data" / "ringback.db"
    with garden(world) as played, world.peer() as peer:
        content = store(peer, b"sound", mime_type="audio/wav")["hash"]
        region = {"position": 1.0, "behavior_type": "play_content", "content_id": content}
        before, reloaded = played.revision, threading.Event()
        other = sqlite3.connect(database, isolation_level=None, check_same_thread=False)

        def accepted(tool):
            # The change is accepted, and then nothing can be stored until the garden has read again.
            if tool == "create_region":
                other.execute("BEGIN IMMEDIATE")
            elif tool == "reload":
                other.execute("ROLLBACK")
                reloaded.set()

        played.accepted = accepted
        try:
            refused = peer.call("garden_create_region", region, wait_ms=20000)
            assert_error(refused, "service", "busy")
            assert reloaded.wait(20), "no reload"
            assert (played.loads, played.revision, played.regions) == (2, before, {}), played.regions
            played.accepted = lambda tool: None
            placed = peer.success("garden_create_region", region, wait_ms=20000)
            assert played.revision == before + 1 and placed["region_id"] in played.regions
            assert peer.call("garden_delete_region", {"region_id": placed["region_id"]})["kind"] == "ack"
        finally:
            other.close()
