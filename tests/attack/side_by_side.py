"""Two agents on one daemon with default limits and a small disk: one is hostile in every way that a case covers, the
other does its work. The work gets done, the daemon stays small, and nothing of the hostile one is left."""

import json
import os
import threading
import time
from pathlib import Path

from disk import CLOSED, DEEP, FILLERS
from memory import MEMORY, Watch
from world import Options, Session, device_nodes, eventually, mode, processes, quick, slow

DISK = "size=384m,nr_inodes=60000"
MARK = "481516"

# The attacks of the hostile agent, one after the other, each in a session of its own. It ends itself, or is ended.
ATTACKS = {
    **{f"fills the disk: {name}": f"({filler}) 2>/dev/null; sleep 20" for name, filler in FILLERS.items()},
    "digs": DEEP,
    "closes directories": CLOSED,
    "talks": "flood 120 1000000",
    "forks": f"bomb() {{ bomb | bomb & sleep {MARK}; }}; bomb >/dev/null 2>&1; sleep 3",
    "eats memory": 'python3 -c "x = []\nwhile True: x.append(bytearray(1 << 26))"',
    "uses up watches": "(PROBES/watches epoll 600000 & PROBES/watches inotify 9999) > /dev/null 2>&1 & sleep 3",
    "sweeps": "PROBES/sweep > /dev/null 2>&1",
    "leases": "for it in /usr/bin/* ; do PROBES/lease $it; done > /dev/null 2>&1",
    "spoils nodes": "chmod 640 /dev/full; PROBES/core; kill -SEGV $$",
    "stays": f"trap '' TERM HUP; (setsid sh -c 'trap \"\" TERM HUP; sleep {MARK}' >/dev/null 2>&1 &) & true",
    "starts others": "for n in 1 2 3 4 5 6 7 8; do python3 PROBES/relay.py session_message "
    f'\'{{"message":"sleep {MARK}"}}\'; done > /dev/null',
    "writes noise": "head -c 20000000 /dev/urandom > /proc/$PPID/fd/1; sleep 1",
    "sparse": "truncate -s 1900M sparse; python3 PROBES/relay.py oubliette_call_tool "
    '\'{"api_key":"KEY","tool":"workspace_get","arguments":'
    '{"project_id":"PROJECT","workspace_id":"WORKSPACE","path":"sparse"}}\'',
}
HONEST = 'python3 PROBES/relay.py caller_tool \'{"tool":"next","arguments":{"n":NUMBER}}\''


class Honest(threading.Thread):
    """The caller of the honest agent: gives it its next task, and answers its calls."""

    def __init__(self, target, ends_at):
        super().__init__(daemon=True)
        self.target, self.ends_at = target, ends_at
        context = {"caller_id": "me", "caller_tools": [{"name": "next", "description": "The next number"}]}
        fields = {"project_id": target.project(), "create_workspace": True, "context": context}
        self.session = Session(target, fields, "true")
        self.session.said()
        self.answered, self.outcomes, self.wrong = {}, [], []

    def run(self):
        try:
            n = 0
            while time.monotonic() < self.ends_at:
                n += 1
                self.step(n)
        except Exception as error:
            self.wrong.append(repr(error))

    def step(self, n):
        script = HONEST.replace("PROBES", str(self.target.probes)).replace("NUMBER", str(n))
        self.session.tell(script)
        said, until = [], time.monotonic() + 60
        while not said and time.monotonic() < until:
            waiting = self.target.done("caller_tool_requests", session_id=self.session.id, wait_ms=100)
            for request in waiting["requests"]:
                self.answered[request["request_id"]] = self.answered.get(request["request_id"], 0) + 1
                result = {"n": request["arguments"]["n"] + 1}
                self.target.done(
                    "caller_tool_response", session_id=self.session.id, request_id=request["request_id"], result=result
                )
            said = [it["text"] for it in self.session.events(wait_ms=0) if it.get("role") == "assistant"]
        outcome = [json.loads(line) for text in said for line in text.splitlines()]
        if len(outcome) != 1 or outcome[0].get("result", {}).get("n") != n + 1:
            self.wrong.append(f"call {n}: {said}")
        self.outcomes.append(n)


def attack(target, project, name, script):
    """One session of the hostile agent, from its start until nothing of it is left."""
    started = target.tool("session_message", project_id=project, message="true", create_workspace=True, limit=30)
    if started.status != 200:
        # No session is started while the disk is full; that is an answer.
        assert started.status in (429, 503, 507, 502, 409), f"{name}: {started}"
        return
    opened = started.json["result"]
    script = (
        script.replace("PROBES", str(target.probes))
        .replace("PROJECT", project)
        .replace("WORKSPACE", opened["workspace_id"])
    )
    target.tool("session_message", session_id=opened["session_id"], message=script, limit=30)
    until = time.monotonic() + 8
    while time.monotonic() < until:
        status = target.done("session_get", session_id=opened["session_id"])["status"]
        if status not in ("starting", "running"):
            break
        time.sleep(0.2)
    ended = target.tool("session_end", session_id=opened["session_id"], limit=30)
    assert ended.status in (200, 409), f"{name}: session_end: {ended}"
    place = {"project_id": project, "workspace_id": opened["workspace_id"]}
    deleted = target.tool("workspace_delete", place, limit=60)
    assert deleted.status == 200, f"{name}: workspace_delete: {deleted}"


def side_by_side(world, seconds):
    with device_nodes() as nodes, world.another(disk=DISK) as target, Watch(target) as watch:
        ends_at = time.monotonic() + seconds
        honest = Honest(target, ends_at)
        project, n_attacks = target.project(key_level="write"), 0
        honest.start()
        while time.monotonic() < ends_at:
            for name, script in ATTACKS.items():
                if time.monotonic() > ends_at:
                    break
                attack(target, project, name, script)
                n_attacks += 1
                assert not honest.wrong, f"after `{name}`: {honest.wrong[0]}"
                assert watch.most < MEMORY, f"after `{name}`: {watch.most} MiB"
        honest.join(90)
        assert not honest.is_alive() and not honest.wrong, honest.wrong
        assert set(honest.answered.values()) == {1} and len(honest.answered) == len(honest.outcomes), honest.answered
        is_gone(target, project, honest)
        assert {it: mode(it) for it in nodes} == nodes
        print(
            f"   {n_attacks} attacks, {len(honest.outcomes)} calls of the honest agent, {watch.most} MiB at most",
            flush=True,
        )
        target.is_well()


def is_gone(target, project, honest):
    """Processes, files, cgroups and mounts of the hostile agent."""
    deleted = target.tool("project_delete", project_id=project)
    assert deleted.status == 200, deleted
    eventually(lambda: not processes(f"sleep\0{MARK}"), "its processes are gone")
    left = {it.name for it in (target.data / "workspaces").iterdir()} | {
        it.name for it in (target.data / "homes").iterdir()
    }
    assert left == {honest.session.workspace}, left

    def boxes():
        return sorted((target.data / "sandbox/boxes").iterdir())

    eventually(lambda: len(boxes()) <= 1, "its sandboxes are gone")
    own = [line for note in boxes() for line in note.read_text().splitlines()]
    own += [line for note in (target.data / "sandbox/next").glob("*") for line in note.read_text().splitlines()]
    names = {Path(it).name for it in own}
    groups = [root for root, _, _ in os.walk("/sys/fs/cgroup") if Path(root).name.startswith("ringback-")]
    mine = [
        it for it in groups if os.path.exists(f"{it}/cgroup.procs") and Path(it).name not in names and is_of(target, it)
    ]
    assert not mine, mine
    mounts = [line for line in Path("/proc/mounts").read_text().splitlines() if str(target.home) in line]
    assert len(mounts) == 1, mounts


def is_of(target, group):
    """Whether a cgroup has a process of this daemon's sandboxes."""
    pids = Path(group, "cgroup.procs").read_text().split()
    return any(
        str(target.home) in Path(f"/proc/{pid}/mountinfo").read_text() for pid in pids if os.path.exists(f"/proc/{pid}")
    )


@quick
def an_honest_agent_works_beside_a_hostile_one(world):
    side_by_side(world, 8)


@slow
def an_honest_agent_works_beside_a_hostile_one_for_minutes(world):
    side_by_side(world, Options.minutes * 60)
