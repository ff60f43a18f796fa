"""What the kernel counts per user and per process: descriptors, watches, half-open connections."""

import http.client
import socket
import subprocess
import threading
import time
from pathlib import Path

from world import MIB, STRANGER, WITHOUT_GROUPS, eventually, processes, quick, slow

WATCHES = Path("/proc/sys/fs/epoll/max_user_watches")


def idle_connections(target, count):
    """As many as possible: those that the daemon closes immediately are not failures."""
    made = []
    for _ in range(count):
        try:
            made.append(socket.create_connection(("127.0.0.1", target.port), timeout=5))
        except OSError:
            break
    return made


def close(sockets):
    for it in sockets:
        it.close()


@quick
def the_limit_on_open_files_is_raised(world):
    with world.another(files="1024:8192") as target:
        idle = idle_connections(target, 990)
        try:
            target.is_well()
            target.run("true", create_workspace=True)
        finally:
            close(idle)


@quick
def a_thousand_idle_connections_stall_nobody(world):
    """Without free descriptors: an answer, if only 503, and connected clients go on in full."""
    with world.another(files="1024:1024") as target:
        project = target.project()
        known = http.client.HTTPConnection("127.0.0.1", target.port, timeout=20)

        def call(method, path, body, kind="application/json"):
            headers = {"Authorization": f"Bearer {target.token}", "Content-Type": kind}
            known.request(method, path, body, headers)
            answer = known.getresponse()
            return answer.status, answer.read()

        assert call("POST", "/v1/tools/ping/call", "{}")[0] == 200
        idle = idle_connections(target, 1100)
        try:
            answer = target.request("GET", "/health", token=None, limit=10)
            assert answer.status in (200, 503), answer
            status, body = call("POST", "/v1/blobs", "some content", "text/plain")
            assert status == 201, (status, body)
            message = f'{{"project_id":"{project}","message":"true"}}'
            status, body = call("POST", "/v1/tools/session_message/call", message)
            assert status == 200, (status, body)
        finally:
            close(idle)
        eventually(target.answers, "it is reached again")
        target.is_well()


@quick
def half_handshakes_hold_nobody_up(world):
    target = world.target()
    address = target.hoot.removeprefix("tcp://").split(":")
    half = []
    for n in range(600):
        it = socket.create_connection((address[0], int(address[1])), timeout=5)
        it.sendall(b"\xff\0\0\0\0\0\0\0\x01\x7f"[: n % 11])
        half.append(it)
    try:
        started = time.monotonic()
        with target.peer() as peer:
            assert peer.call("ping")["kind"] == "success"
        took = time.monotonic() - started
        assert took < 5, f"a new peer waited {took:.1f} s"
    finally:
        close(half)


def use_up_watches(world, watches):
    """An agent that uses up the user's watches is ended, and the daemon is reachable again."""
    target = world.target("user", config=WITHOUT_GROUPS, user=STRANGER)
    honest = target.agent("true", create_workspace=True)
    honest.said()
    script = "for n in 1 2 3; do PROBES/watches epoll 100000000 >> out 2>&1 & done; sleep 1; wait"
    hostile = target.agent(script.replace("PROBES", str(target.probes)), create_workspace=True)
    eventually(lambda: "ENOSPC" in said_in(hostile), f"{watches} watches are used up", 120)
    eventually(target.answers, "the daemon is reached by new connections", 30)
    eventually(lambda: not processes(f"{target.probes}/watches"), "the agent that used them up is ended", 30)
    assert honest.ask("echo here").strip() == "here"
    honest.end()
    target.is_well()


def said_in(session):
    """The output of its probes; the file exists before the daemon answers."""
    places = list((session.target.data / "workspaces").glob(f"{session.workspace}/out"))
    return places[0].read_text() if places else ""


@quick
def an_agent_that_uses_up_watches_is_ended(world):
    """With a low limit, so that it takes a moment; the kernel's own limit is in the slow profile."""
    had = WATCHES.read_text()
    WATCHES.write_text("60000")
    try:
        use_up_watches(world, 60000)
    finally:
        WATCHES.write_text(had)


@slow
def an_agent_that_uses_up_all_watches_is_ended(world):
    use_up_watches(world, int(WATCHES.read_text()))


@quick
def an_agent_leaves_others_their_inotify_instances(world):
    """The kernel counts them per user, and a sandbox has the daemon's user: so a sandbox may have only some."""
    target = world.target("user", config=WITHOUT_GROUPS, user=STRANGER)
    session = target.agent(
        f"{target.probes}/watches inotify 100000 > out 2>&1 & sleep 1; cat out", create_workspace=True
    )
    assert session.said().strip(), "the probe said nothing"
    try:
        program = "import ctypes; it = ctypes.CDLL(None).inotify_init(); raise SystemExit(it < 0)"
        command = [
            "setpriv",
            "--reuid",
            str(STRANGER),
            "--regid",
            str(STRANGER),
            "--clear-groups",
            "--",
            "/usr/bin/python3",
            "-c",
            program,
        ]
        assert subprocess.run(command, check=False, timeout=30).returncode == 0, "no instance is left for the user"
    finally:
        session.end()


@quick
def no_argument_keeps_the_daemon_from_others(world):
    """A reader concurrently calls all tools that it may with texts of half a MiB; others are answered meanwhile."""
    with world.another() as target:
        token, _ = target.new_token("read")
        tools = target.request("GET", "/v1/tools", token=token).json["tools"]
        calls = []
        for tool in tools:
            texts = [name for name, it in tool["input_schema"].get("properties", {}).items() if "string" in str(it)]
            calls += [(tool["name"], {name: "x" * (MIB // 2) for name in texts})] if texts else []
        assert len(calls) > 10, calls
        threads = [
            threading.Thread(target=target.tool, args=call, kwargs={"token": token, "limit": 300}, daemon=True)
            for call in calls
        ]
        for thread in threads:
            thread.start()
        longest = 0
        for _ in range(20):
            started = time.monotonic()
            assert target.request("GET", "/health", token=None, limit=60).status == 200
            longest = max(longest, time.monotonic() - started)
            time.sleep(0.1)
        for thread in threads:
            thread.join(60)
        assert not [it for it in threads if it.is_alive()], "a call goes on for more than a minute"
        assert longest < 5, f"others waited {longest:.1f} s"
        assert target.resident() < 300, target.resident()
