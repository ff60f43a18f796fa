"""The sandbox, from inside: the same battery in each kind of sandbox, and the checks on what it exposes."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import engine
from world import LIMIT, STRANGER, SHOWN, WITHOUT_GROUPS, device_nodes, eventually, mode, processes, quick

# Where containers find this machine's programs: their image has next to none.
SYSTEM = ["/usr/bin", "/usr/lib", "/usr/lib64"]


def docker_config():
    script = Path(engine.__file__)
    said = subprocess.run([sys.executable, script, "up"], capture_output=True, text=True, timeout=120, check=False)
    assert said.returncode == 0, said.stderr
    shown = json.dumps(["{probes}", *[it for it in SYSTEM if os.path.exists(it)]])
    return (
        f'[sandbox]\nbackend = "docker"\ndocker = "unix://{said.stdout.strip()}"\nimage = "{engine.IMAGE}"\n'
        f"read_only = {shown}\n"
    )


def backends(world):
    """A daemon for every kind of sandbox. One that this machine cannot provide fails; it is never skipped."""
    yield "bubblewrap as root", world.target()
    yield "bubblewrap as a user", world.target("user", config=WITHOUT_GROUPS, user=STRANGER)
    if os.environ.get("RINGBACK_TEST_WITHOUT_DOCKER"):
        assert not os.environ.get("CI"), "RINGBACK_TEST_WITHOUT_DOCKER is set, and nothing may be skipped here"
        print("   SKIPPED: containers, because RINGBACK_TEST_WITHOUT_DOCKER is set", flush=True)
    else:
        yield "a container", world.target("docker", config=docker_config())


def everywhere(world, script, expected):
    """The output of a script in every kind of sandbox; `expected` is a text, or a function that checks the output."""
    for name, target in backends(world):
        said = target.run(script.replace("PROBES", str(target.probes))).strip()
        if callable(expected):
            expected(name, target, said)
        else:
            assert said == expected, f"{name}: {said!r}"


@quick
def nothing_of_the_host_is_read(world):
    places = (
        "/etc/shadow /root /proc/1/environ /proc/1/root/etc/shadow /sys/kernel/debug /var/log /boot /run/docker.sock"
    )
    look = "ls -A $it >/dev/null 2>&1 && cat $it 2>/dev/null | head -c 1 && echo $it"
    script = f"for it in {places} HOME_DATA; do {look}; done; echo end"
    for name, target in backends(world):
        said = target.run(script.replace("HOME_DATA", f"{target.home}/data/token {target.home}/data {target.home}/log"))
        read = [it for it in said.split() if it.startswith("/") and it not in ("/proc/1/environ",)]
        assert not [it for it in read if os.path.isfile(it)], f"{name}: {said!r}"
        secret = target.run(
            f"cat {target.home}/data/token {target.home}/config.toml /proc/*/environ 2>/dev/null | tr '\\0' ' '"
        )
        assert target.token not in secret, name


@quick
def nothing_is_reached_by_a_network(world):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        script = f"""python3 - <<'END'
import socket
for family, place in [(2, ('127.0.0.1', {port})), (2, ('192.0.2.1', 80)), (10, ('::1', {port}))]:
    try:
        socket.socket(family).connect(place); print('reached', place)
    except OSError: pass
for family in (17, 38, 40):
    try: socket.socket(family, 3); print('family', family)
    except OSError: pass
print('end')
END"""
        everywhere(world, script, "end")


@quick
def no_privilege_is_had(world):
    script = "grep -hE '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status | tr -d '\\t' | tr '\\n' ' '"
    none = "0000000000000000"
    everywhere(world, script, f"CapEff:{none} CapBnd:{none} NoNewPrivs:1")


@quick
def only_private_places_are_written(world):
    script = """python3 - <<'END'
import os
for root, dirs, files in os.walk('/'):
    private = ('/proc', '/workspace', '/home/agent', '/tmp', '/dev/shm', '/usr', '/etc', '/dev/pts', '/sys', '/run')
    dirs[:] = [it for it in dirs if os.path.join(root, it) not in private]
    try:
        open(os.path.join(root, 'planted'), 'w'); print(root)
    except OSError: pass
for place in ('/usr', '/usr/bin', '/etc', '/mcp', '/sys'):
    try: open(place + '/planted', 'w'); print(place)
    except OSError: pass
END"""

    def check(name, target, said):
        written = [it for it in said.splitlines() if it not in ("exit code 0", "/", "/home", "/dev", "/dev/mqueue")]
        assert not written, f"{name}: {said}"
        assert not (target.probes / "planted").exists(), name

    everywhere(world, script, check)


@quick
def device_nodes_of_the_host_keep_their_mode(world):
    """`chmod` in the sandbox changes no node outside, by name or through an open file, and the nodes still work."""
    script = """chmod 640 /dev/full; chown 1:1 /dev/full; touch -d 1971-01-01 /dev/full
python3 -c "import os; os.fchmod(0, 0o640)" < /dev/full; python3 -c "import os; os.fchmod(0, 0o640)"
head -c 1 /dev/zero > /dev/null && echo works"""
    with device_nodes() as nodes:

        def check(name, target, said):
            now = {it: mode(it) for it in nodes}
            assert now == nodes, f"{name}: {now}"
            assert "works" in said, f"{name}: {said}"
            # Its input comes from outside.
            command = ["/usr/bin/python3", "-c", "import os; [os.fchmod(it, 0o640) for it in (0, 1, 2)]"]
            target.tool("container_exec", project_id=target.project(), command=command)
            now = {it: mode(it) for it in nodes}
            assert now == nodes, f"{name}: an open file of a command: {now}"

        everywhere(world, script, check)


@quick
def a_lease_is_refused(world):
    def check(name, _, said):
        lines = dict(line.split() for line in said.splitlines())
        assert lines.pop("getfd") == "done", f"{name}: {said}"
        assert set(lines.values()) == {"EPERM"}, f"{name}: {said}"

    everywhere(world, "PROBES/lease PROBES/agent.py", check)


@quick
def a_crash_starts_no_handler_outside(world):
    """The kernel passes a core of one byte to no pipe; nothing in the sandbox can change that."""

    def check(name, _, said):
        # Whether a change is refused or ignored, nothing changes.
        lines = said.splitlines()
        assert lines[0] == lines[-2] == "core 1 1", f"{name}: {said}"
        assert lines[-1] == "files done", f"{name}: {said}"

    everywhere(world, "PROBES/core", check)


@quick
def a_fork_bomb_and_a_glutton_stop_at_their_limits(world):
    target = world.target("small", config=SHOWN + "processes = 64\nmemory = 134217728\n")
    said = target.run("""python3 - <<'END'
import os, signal
made = []
try:
    while len(made) < 2000:
        made.append(os.fork())
        if made[-1] == 0: signal.pause()
except OSError: pass
for it in made: os.kill(it, 9)
print('forked', len(made))
END""")
    assert 10 < int(said.split()[1]) < 64, said
    said = target.run("python3 -c 'x = bytearray(1 << 30); print(1, 2, 3)'; echo after")
    assert "1 2 3" not in said, said
    target.is_well()


@quick
def nothing_survives_the_end_of_a_session(world):
    """A process that forks twice, ignores signals and leaves its group ends with the sandbox, and so do its mounts
    and cgroups."""
    for name, target in backends(world):
        seconds = f"47{os.getpid() % 1000:03}{len(name)}"
        script = f"(trap '' TERM HUP; setsid sh -c 'trap \"\" TERM HUP; sleep {seconds}' >/dev/null 2>&1 &) & true"
        session = target.agent(script)
        session.said()
        eventually(lambda: processes(f"sleep\0{seconds}"), f"{name}: it runs")
        assert session.end().status == 200, name
        eventually(lambda: not processes(f"sleep\0{seconds}"), f"{name}: it is gone")


@quick
def nothing_survives_a_killed_daemon(world):
    with world.another() as target:
        seconds = f"48{os.getpid() % 1000:03}"
        session = target.agent(f"setsid sleep {seconds} >/dev/null 2>&1 & true")
        session.said()
        eventually(lambda: processes(f"sleep\0{seconds}"), "it runs")
        groups = [line for note in (target.data / "sandbox/boxes").iterdir() for line in note.read_text().splitlines()]
        target.kill()
        eventually(lambda: not processes(f"sleep\0{seconds}"), "it is gone")
        target.start()
        target.run("true")
        eventually(lambda: not [it for it in groups if os.path.exists(it)], "its groups are gone")


@quick
def a_layer_that_cannot_be_given_is_refused_by_name(world):
    """A user without cgroups, with the default limits, gets no session, and an error that explains why."""
    with world.another(config=SHOWN, user=STRANGER) as target:
        refused = target.tool("session_message", project_id=target.project(), message="true")
        assert refused.status >= 400, refused
        text = refused.body.decode()
        assert "memory" in text or "control group" in text, text
    with world.another(
        config='[sandbox]\nbackend = "docker"\ndocker = "unix:///nowhere.sock"\nimage = "x"\n'
    ) as target:
        refused = target.tool("session_message", project_id=target.project(), message="true", limit=LIMIT)
        assert refused.status >= 400 and "/nowhere.sock" in refused.body.decode(), refused
