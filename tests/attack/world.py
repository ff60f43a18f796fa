"""Shared by the cases: daemons to attack, sessions with a hostile agent, and what they may not change.

The daemon's harness is that of `tests/interop`; this adds what an attacker needs.
"""

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Last, because some names are in both directories.
sys.path.extend(str(Path(__file__).parents[1] / name) for name in ("interop", "docker"))

import zmq  # noqa: E402
from session import LIMIT, Relay, Session  # noqa: E402, F401
from wire import STOP_LIMIT, Daemon, Peer  # noqa: E402

PROBES = Path(__file__).parent / "probes"
# A user of its own: what the kernel counts per user then belongs to this suite alone.
STRANGER = 64123
MIB = 1 << 20

QUICK, SLOW = [], []


def quick(function):
    """A case of the quick profile."""
    QUICK.append(function)
    return function


def slow(function):
    """A case of the slow profile only."""
    SLOW.append(function)
    return function


class Refused(AssertionError):
    """A call that had to succeed did not."""


class Options:
    """The extent of the slow cases."""

    rounds, minutes, seed, is_slow = 3, 10.0, None, False


class Answer:
    """An HTTP answer: a status, headers, and a body which is usually JSON."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def text(self):
        return self.body.decode()

    @property
    def code(self):
        """The code of an error; empty for a success."""
        try:
            return self.json["error"]["code"]
        except (ValueError, KeyError, TypeError):
            return ""

    def __repr__(self):
        return f"{self.status} {self.body[:600]!r}"


class Target(Daemon):
    """A daemon with a configuration, as root or as an unprivileged user, and a hostile agent in its sandboxes.

    `config` is TOML; `{probes}` and `{home}` in it stand for directories. `disk` puts the data directory on a small
    disk of its own: options of a tmpfs.
    """

    def __init__(self, world, config="", user=None, disk=None, files=None, arguments=(), **settings):
        self.world, self.config, self.user, self.disk = world, config, user, disk
        self.files, self.arguments, self.is_prepared = files, list(arguments), False
        super().__init__(world.binary, **settings)

    @property
    def data(self):
        return self.home / "data"

    def prepare(self):
        """Once, before the first start."""
        self.is_prepared = True
        self.home.chmod(0o755)
        self.probes = self.home / "probes"
        shutil.copytree(self.world.probes, self.probes)
        self.data.mkdir(mode=0o700)
        if self.disk:
            mount = ["mount", "-t", "tmpfs", "-o", f"{self.disk},mode=700", "attack", str(self.data)]
            subprocess.run(mount, check=True, timeout=LIMIT)
        text = AGENT + self.config
        text = text.replace("{probes}", str(self.probes)).replace("{home}", str(self.home))
        (self.home / "config.toml").write_text(text.replace("{binary}", str(self.world.shared_binary)))
        (self.home / "run").mkdir(mode=0o700)
        if self.user is not None:
            for path in [self.data, self.home / "run", self.home / "config.toml"]:
                os.chown(path, self.user, self.user)

    def environment(self):
        return super().environment() | {"RINGBACK_CONFIG": str(self.home / "config.toml"), "HOME": str(self.home)}

    def command(self):
        command = super().command() + self.arguments
        command[0] = str(self.world.shared_binary)
        prefix = []
        if self.files:
            prefix += ["prlimit", f"--nofile={self.files}", "--"]
        if self.user is not None:
            prefix += ["setpriv", "--reuid", str(self.user), "--regid", str(self.user), "--clear-groups", "--"]
        return prefix + command

    def start(self):
        if not self.is_prepared:
            self.prepare()
        # `--open` needs no token.
        self.token = None
        super().start()
        self.port = int(self.http.rsplit(":", 1)[1])

    def clean_up(self):
        """Stops it gracefully first: a killed one leaves its cgroups to the next start."""
        if self.is_running():
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(STOP_LIMIT)
        if self.disk:
            if self.is_running():
                self.kill()
            subprocess.run(["umount", "-l", str(self.data)], check=False, timeout=LIMIT)
        remove_tree(self.home / "data")
        super().clean_up()

    # Actions of a caller.

    def request(self, method, path, body=None, token="", headers=None, limit=LIMIT):
        """One request on a connection of its own. `token` is the first one unless another, or None, is given."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=limit)
        token = self.token if token == "" else token
        headers = dict(headers or {})
        if token is not None:
            headers.setdefault("Authorization", f"Bearer {token}")
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    def tool(self, tool, arguments=None, token="", limit=LIMIT, query="", **fields):
        """Calls a tool over HTTP, whatever the outcome."""
        path = f"/v1/tools/{tool}/call{query}"
        return self.request("POST", path, {**(arguments or {}), **fields}, token, limit=limit)

    def done(self, tool, arguments=None, **rest):
        """Calls a tool that must succeed, and returns its result."""
        answer = self.tool(tool, arguments, **rest)
        if answer.status not in (200, 202):
            raise Refused(f"{tool}: {answer}")
        return answer.json.get("result", answer.json)

    def project(self, **fields):
        fields.setdefault("name", f"p{time.monotonic_ns()}")
        return self.done("project_create", fields)["project_id"]

    def new_token(self, scope, **fields):
        made = self.done("token_create", name="attack", scope=scope, **fields)
        return made["token"], made["token_id"]

    def agent(self, message="true", **fields):
        """A new session with the hostile agent."""
        fields.setdefault("project_id", None)
        if fields["project_id"] is None:
            fields["project_id"] = self.project()
        return Session(self, fields, message)

    def run(self, script, **fields):
        """The output of a script in a sandbox of its own."""
        session = self.agent(script, **fields)
        try:
            return session.said()
        finally:
            session.end()

    def sockets(self):
        """Those of sessions, as the host sees them: only their age shows which session they belong to."""
        return set((self.home / "run").rglob("relay.sock"))

    def resident(self):
        """The daemon's current memory in MiB."""
        text = Path(f"/proc/{self.process_id()}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", text)[1]) // 1024

    def process_id(self):
        """Of the daemon itself; `prlimit` and `setpriv` become it."""
        return self.process.pid

    def is_well(self):
        """It runs and answers, and nothing in it has panicked."""
        assert self.is_running(), f"the daemon has ended\n{self.log_text()[-3000:]}"
        assert self.request("GET", "/health", token=None).status == 200
        self.done("ping")
        assert "panicked" not in self.log_text(), self.log_text()[-3000:]

    def answers(self):
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.is_running() and self.request("GET", "/health", token=None, limit=5).status == 200
        return False

    @contextlib.contextmanager
    def peer(self, token=None, **rest):
        with Peer(self.world.context, self.hoot, token or self.token, **rest) as peer:
            yield peer


# The agent: a message is a shell script, and its output is the answer.
AGENT = """
[sessions]
agent = "shell"
[sessions.agents.shell]
command = ["/usr/bin/python3", "{probes}/agent.py"]
[sessions.agents.asks]
command = ["{binary}", "scripted-agent", "--acp"]
protocol = "acp"
"""
SHOWN = '[sandbox]\nread_only = ["{probes}"]\n'
# cgroups belong to root here: another user cannot set the limits that need them, and has to opt out.
WITHOUT_GROUPS = SHOWN + 'memory = "none"\nprocesses = "none"\ncpu = "none"\n'


class World:
    """The program, compiled probes, and the daemons that were started with it."""

    def __init__(self, binary):
        self.binary = str(Path(binary).resolve())
        self.context = zmq.Context()
        self.home = Path(tempfile.mkdtemp(prefix="attack-"))
        self.home.chmod(0o755)
        # Only the user that built it may have access to the build directory.
        self.shared_binary = self.home / "ringback"
        shutil.copy(self.binary, self.shared_binary)
        self.shared_binary.chmod(0o755)
        self.probes = self.home / "probes"
        self.probes.mkdir()
        self.compile()
        self.kept = {}

    def compile(self):
        for source in PROBES.iterdir():
            if source.suffix == ".c":
                program = self.probes / source.stem
                flags = ["-O1", "-Wall", "-Werror", "-o", str(program), str(source)]
                subprocess.run(["cc", *flags], check=True, timeout=120)
            else:
                shutil.copy(source, self.probes)
        for path in self.probes.iterdir():
            path.chmod(0o755)

    def target(self, name="root", **options):
        """A daemon that several cases share, by name; one that is not running any more is replaced."""
        if name in self.kept and not self.kept[name].answers():
            self.kept.pop(name).clean_up()
        if name not in self.kept:
            options = options or {"config": SHOWN}
            self.kept[name] = Target(self, **options)
        return self.kept[name]

    @contextlib.contextmanager
    def another(self, config=SHOWN, **options):
        """A daemon for one case."""
        target = Target(self, config=config, **options)
        try:
            yield target
        except BaseException:
            print("the end of the daemon's log:", *target.log_text().splitlines()[-12:], sep="\n  ", flush=True)
            raise
        finally:
            target.clean_up()

    def close(self):
        for target in self.kept.values():
            target.clean_up()
        self.context.destroy(linger=0)
        shutil.rmtree(self.home, ignore_errors=True)


def remove_tree(path):
    """Removes what agents leave: deep, closed and read-only directories, which Python's own function does not."""
    subprocess.run(["rm", "-rf", str(path)], check=False, stderr=subprocess.DEVNULL, timeout=900)


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@contextlib.contextmanager
def device_nodes():
    """The modes of the host's device nodes; changes by an attack are undone."""
    had = {f"/dev/{it}": mode(f"/dev/{it}") for it in ("null", "zero", "full", "random", "urandom", "tty")}
    try:
        yield had
    finally:
        for node, it in had.items():
            os.chmod(node, it)


def eventually(condition, what, limit=LIMIT):
    """Waits until the condition holds, and returns its value."""
    ends_at = time.monotonic() + limit
    while not (held := condition()):
        assert time.monotonic() < ends_at, f"not within {limit} s: {what}"
        time.sleep(0.05)
    return held


def processes(word):
    """Processes of this machine with a word on their command line."""
    found = []
    for path in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if path.name.isdigit() and word.encode() in (path / "cmdline").read_bytes():
                found.append(int(path.name))
    return found
