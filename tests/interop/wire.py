"""HOOT01 as a stranger would write it: frames, peers, subscribers and a daemon to talk to.

Needs nothing but pyzmq and msgpack. Every wait has a limit.
"""

import json
import os
import select
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import uuid
from collections import defaultdict, deque
from pathlib import Path

import msgpack
import zmq
from zmq.utils import z85
from zmq.utils.monitor import recv_monitor_message

MAGIC = b"HOOT01"
READY, REQUEST, REPLY, HEARTBEAT, DISCONNECT, CANCEL, CREDIT = range(1, 8)
EMPTY, MSGPACK, RAW_BINARY, JSON = range(4)

# Seconds. Generous, because a loaded machine is not a broken daemon.
ANSWER_LIMIT = 20
START_LIMIT = 30
STOP_LIMIT = 30


class Silence(AssertionError):
    """Nothing came within the limit."""


def pack(value):
    return msgpack.packb(value, use_bin_type=True)


def unpack(data):
    return msgpack.unpackb(data, raw=False, strict_map_key=False)


def new_id():
    return uuid.uuid4().bytes


class Frame:
    """Seven parts, eight with RawBinary."""

    def __init__(self, parts):
        assert len(parts) >= 7, f"{len(parts)} parts"
        assert parts[0] == MAGIC, parts[0]
        assert len(parts[1]) == 2 and len(parts[2]) == 2 and len(parts[3]) == 16, parts[1:4]
        self.command = int.from_bytes(parts[1], "big")
        self.content_type = int.from_bytes(parts[2], "big")
        assert len(parts) == (8 if self.content_type == RAW_BINARY else 7), len(parts)
        self.request_id = parts[3]
        self.service = parts[4].decode()
        self.traceparent = parts[5].decode()
        self.body = parts[6]
        self.header = parts[7] if self.content_type == RAW_BINARY else None

    def envelope(self):
        """The ResponseEnvelope, wherever it is."""
        assert self.command == REPLY, f"command {self.command} instead of a Reply"
        assert self.service == "", "the service of a Reply is empty"
        assert self.content_type in (MSGPACK, RAW_BINARY), self.content_type
        return unpack(self.header if self.content_type == RAW_BINARY else self.body)


def frame_parts(command, content_type, request_id, body=b"", header=None, trace=b"", service=b""):
    parts = [MAGIC, command.to_bytes(2, "big"), content_type.to_bytes(2, "big"), request_id]
    parts += [service, trace, body]
    return parts if header is None else parts + [header]


def secured(socket, token, server_key=None):
    """PLAIN with any user name and the token as password; nothing without a token.

    With the daemon's key CURVE instead: the 32 bytes of the token are the secret key.
    """
    socket.linger = 0
    if server_key is not None:
        secret = z85.encode(bytes.fromhex(token.removeprefix("oub_")))
        socket.curve_secretkey, socket.curve_publickey = secret, zmq.curve_public(secret)
        socket.curve_serverkey = server_key
    elif token is not None:
        socket.plain_username = b"anyone"
        socket.plain_password = token.encode()
    return socket


class Peer:
    """A DEALER (or REQ) that matches replies with its requests."""

    def __init__(self, context, address, token, identity=None, kind=zmq.DEALER, server_key=None):
        self.socket = secured(context.socket(kind), token, server_key)
        if identity is not None:
            self.socket.identity = identity
        self.monitor = self.socket.get_monitor_socket()
        self.socket.connect(address)
        self.inbox = defaultdict(deque)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.disable_monitor()
        self.monitor.close(linger=0)
        self.socket.close(linger=0)

    def send(self, command, content_type=EMPTY, body=b"", request_id=None, **rest):
        request_id = request_id or new_id()
        self.send_parts(frame_parts(command, content_type, request_id, body, **rest))
        return request_id

    def send_parts(self, parts):
        if not self.socket.poll(ANSWER_LIMIT * 1000, zmq.POLLOUT):
            raise Silence(f"cannot send within {ANSWER_LIMIT} s")
        self.socket.send_multipart(parts)

    def receive(self, request_id, limit=ANSWER_LIMIT):
        """The next frame with this id. Others are kept for later calls."""
        ends_at = time.monotonic() + limit
        while not self.inbox[request_id]:
            left_ms = int((ends_at - time.monotonic()) * 1000)
            if left_ms <= 0 or not self.socket.poll(left_ms):
                raise Silence(f"no answer within {limit} s")
            frame = Frame(self.socket.recv_multipart())
            self.inbox[frame.request_id].append(frame)
        return self.inbox[request_id].popleft()

    def has_unread(self, request_id):
        """Whether an answer has already arrived."""
        while self.socket.poll(0):
            frame = Frame(self.socket.recv_multipart())
            self.inbox[frame.request_id].append(frame)
        return bool(self.inbox[request_id])

    def start(self, request, request_id=None, trace=b"", **options):
        """Sends a Request and returns its id. Options make it a RequestEnvelope."""
        body = pack({"request": request, **options} if options else request)
        return self.send(REQUEST, MSGPACK, body, request_id, trace=trace)

    def reply(self, request_id, limit=ANSWER_LIMIT):
        return self.receive(request_id, limit).envelope()

    def call(self, tool, fields=None, **options):
        """The first reply to a call."""
        return self.reply(self.start({"tool": tool, **(fields or {})}, **options))

    def success(self, tool, fields=None, **options):
        """The response of a call that must succeed."""
        envelope = self.call(tool, fields, **options)
        assert envelope["kind"] == "success", envelope
        return envelope["response"]

    def start_job(self, milliseconds, request_id=None):
        request = {"tool": "job_sleep", "milliseconds": milliseconds}
        envelope = self.reply(self.start(request, request_id))
        assert envelope["kind"] == "job_started", envelope
        return envelope["job_id"]

    def wait_for_job(self, job_id):
        """The status of a job once it has ended."""
        polled = self.success("job_poll", {"job_ids": [job_id], "timeout_ms": 15000})
        assert job_id in polled["completed"] + polled["failed"], polled
        return self.success("job_status", {"job_id": job_id})

    def handshake(self, limit=ANSWER_LIMIT):
        """`accepted` or `refused`, whichever comes first."""
        refused = (
            zmq.EVENT_HANDSHAKE_FAILED_AUTH,
            zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL,
            zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL,
            zmq.EVENT_DISCONNECTED,
        )
        ends_at = time.monotonic() + limit
        while (left := ends_at - time.monotonic()) > 0:
            if not self.monitor.poll(int(left * 1000)):
                break
            event = recv_monitor_message(self.monitor)["event"]
            if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                return "accepted"
            if event in refused:
                return "refused"
        raise Silence(f"no handshake within {limit} s")


class Subscriber:
    """A SUB that keeps every raw message it saw."""

    def __init__(self, context, address, token, topics):
        self.socket = secured(context.socket(zmq.SUB), token)
        for topic in topics:
            self.socket.subscribe(topic.encode())
        self.socket.connect(address)
        self.raw = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close(linger=0)

    def receive(self, limit=ANSWER_LIMIT):
        if not self.socket.poll(int(limit * 1000)):
            raise Silence(f"no event within {limit} s")
        parts = self.socket.recv_multipart()
        assert len(parts) == 2, f"{len(parts)} parts instead of topic and event"
        self.raw.append(parts[1])
        return parts[0].decode(), unpack(parts[1])

    def heads(self):
        """The next `heads`; earlier messages are skipped."""
        return self.collect_until(lambda topic, _: topic == "heads")[-1][1]

    def collect_until(self, condition, limit=ANSWER_LIMIT):
        """Everything up to and including the first message that meets the condition."""
        seen = []
        ends_at = time.monotonic() + limit
        while not seen or not condition(*seen[-1]):
            seen.append(self.receive(ends_at - time.monotonic()))
        return seen


class Daemon:
    """`ringback serve` in a directory of its own. Restarts keep the data, not the ports."""

    def __init__(self, binary, **settings):
        self.binary = binary
        self.settings = settings
        # Short, because a socket's path has 107 bytes at most.
        self.home = Path(tempfile.mkdtemp(prefix="rb-"))
        self.log = open(self.home / "log", "ab")
        self.process = None
        try:
            self.start()
        except BaseException:
            print("the daemon's log:", self.log_text(), sep="\n")
            self.clean_up()
            raise

    def environment(self):
        runtime = self.home / "run"
        runtime.mkdir(mode=0o700, exist_ok=True)
        kept = {k: v for k, v in os.environ.items() if not k.startswith("RINGBACK_")}
        homes = {"XDG_RUNTIME_DIR": runtime, "XDG_CONFIG_HOME": self.home / "config"}
        return kept | {name: str(path) for name, path in homes.items()} | self.settings

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.clean_up()

    def command(self):
        any_port = "tcp://127.0.0.1:0"
        return [self.binary, "serve", "--json", "--data-dir", str(self.home / "data"),
                "--http", "127.0.0.1:0", "--hoot", any_port, "--iopub", any_port]

    def start(self):
        self.process = subprocess.Popen(
            self.command(), stdout=subprocess.PIPE, stderr=self.log, env=self.environment()
        )
        listening = json.loads(self.first_line())
        self.hoot, self.iopub = listening["hoot"], listening["iopub"]
        self.http = listening["http"]
        ipc = listening["hoot_ipc"]
        self.hoot_ipc = ipc if ipc.startswith("ipc://") else f"ipc://{ipc}"
        if listening["token_file"]:
            self.token_file = Path(listening["token_file"])
            self.token = self.token_file.read_text().strip()

    def first_line(self):
        line = b""
        ends_at = time.monotonic() + START_LIMIT
        while not line.endswith(b"\n"):
            left = ends_at - time.monotonic()
            readable = left > 0 and select.select([self.process.stdout], [], [], left)[0]
            assert readable, f"the daemon did not say where it listens within {START_LIMIT} s"
            byte = os.read(self.process.stdout.fileno(), 1)
            assert byte, f"the daemon stopped immediately with code {self.process.wait(STOP_LIMIT)}"
            line += byte
        return line

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        self.process.kill()
        self.reap()

    def terminate(self):
        """Asks it to stop, and returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.reap()

    def reap(self):
        code = self.process.wait(STOP_LIMIT)
        self.process.stdout.close()
        return code

    def token_mode(self):
        return stat.S_IMODE(self.token_file.stat().st_mode)

    def log_text(self):
        return (self.home / "log").read_text(errors="replace")

    def clean_up(self):
        if self.is_running():
            self.kill()
        self.log.close()
        shutil.rmtree(self.home, ignore_errors=True)
