"""A HOOT01 worker as a stranger would write it: tools are generators that yield progress, or None while
they wait.

One thread, one DEALER. Every running tool takes a step in turn; a Cancel closes it between two steps. A chunk of
audio, MIDI or content waits until its call has credit; an answer needs none.
Started as a program it serves the tools that `ringback verify worker` calls; `--careless` ignores credit and jobs.
"""

import os
import sys
import threading
import time
import uuid

import zmq
from zmq.utils.monitor import recv_monitor_message

from wire import CANCEL, CREDIT, DISCONNECT, HEARTBEAT, MSGPACK, RAW_BINARY, READY, REPLY, REQUEST
from wire import Frame, frame_parts, new_id, pack, secured, unpack

# Seconds between two heartbeats; the daemon takes 30 s of silence for the end.
HEARTBEAT_EVERY = 5
# Milliseconds to wait for a frame while tools are running, and while none is.
BUSY_POLL, IDLE_POLL = 2, 100
# Bytes of audio, MIDI and content that flow before the first Credit of a call.
FIRST_CREDIT = 1 << 20


class ToolError(Exception):
    """Raised by a tool to answer with an error of its own."""


class Running:
    """A call that has not ended."""

    def __init__(self, request, steps):
        self.stream_id = uuid.uuid4().hex
        self.steps = steps
        self.job_id = {"job_id": request["job_id"]} if "job_id" in request else {}
        self.credit = FIRST_CREDIT
        # A chunk that waits for credit.
        self.waiting = None


class Worker:
    """Serves tools of a service until the context is left."""

    def __init__(self, context, address, token, service, tools, careless=False):
        self.careless = careless
        # The most bytes that a call sent beyond its credit: those of its last chunk.
        self.overdrawn = 0
        self.context, self.address, self.token = context, address, token
        self.service, self.tools = service, tools
        self.accepted = threading.Event()
        self.answer = None
        self.cancelled = []
        self.requests = []
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        assert self.accepted.wait(20), "no answer to Ready"
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join(20)
        assert not self.thread.is_alive(), "the worker does not end"

    def run(self):
        self.socket = secured(self.context.socket(zmq.DEALER), self.token)
        # ZeroMQ reconnects automatically, but each connection needs its own Ready.
        connections = self.socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
        self.socket.connect(self.address)
        self.running = {}
        self.ready_id = None
        beat_at = time.monotonic() + HEARTBEAT_EVERY
        while not self.stopping.is_set():
            while connections.poll(0):
                recv_monitor_message(connections)
                # Calls of the previous connection have failed.
                self.running.clear()
                self.ready_id = self.offer()
            if self.socket.poll(BUSY_POLL if self.running else IDLE_POLL):
                self.on_frame(Frame(self.socket.recv_multipart()))
            for request_id in list(self.running):
                self.step(request_id)
            if time.monotonic() > beat_at:
                self.socket.send_multipart(frame_parts(HEARTBEAT, 0, new_id()))
                beat_at = time.monotonic() + HEARTBEAT_EVERY
        self.socket.disable_monitor()
        connections.close(linger=0)
        self.socket.send_multipart(frame_parts(DISCONNECT, 0, new_id()))
        self.socket.close(linger=1000)

    def offer(self):
        request_id = new_id()
        tools = [{"name": name, **about} for name, (about, _) in self.tools.items()]
        body = pack({"protocol": "HOOT01", "accepts_binary": False, "tools": tools})
        parts = frame_parts(READY, MSGPACK, request_id, body, service=self.service.encode())
        self.socket.send_multipart(parts)
        return request_id

    def on_frame(self, frame):
        if frame.command == REQUEST:
            assert frame.service == self.service, frame.service
            request = unpack(frame.body)
            self.requests.append(request)
            _, tool = self.tools[request["tool"]]
            self.running[frame.request_id] = Running(request, tool(request["arguments"]))
        elif frame.command == CREDIT:
            if frame.request_id in self.running:
                self.running[frame.request_id].credit += int.from_bytes(frame.body, "big")
        elif frame.command == CANCEL:
            stopped = self.running.pop(frame.request_id, None)
            if stopped is not None:
                stopped.steps.close()
                self.cancelled.append(frame.request_id)
        elif frame.command == REPLY and frame.request_id == self.ready_id:
            self.answer = frame.envelope()
            self.accepted.set()

    def step(self, request_id):
        """One step of a tool: a chunk, its result, or its error."""
        call = self.running[request_id]
        try:
            chunk = call.waiting or next(call.steps)
            needs_credit = chunk is not None and chunk["type"].startswith("partial_")
            call.waiting = chunk if needs_credit and call.credit <= 0 and not self.careless else None
            if chunk is not None and call.waiting is None:
                self.send_chunk(request_id, call, chunk)
            return
        except StopIteration as end:
            envelope = {"kind": "success", "response": end.value}
        except ToolError as error:
            envelope = {
                "kind": "error", "category": "service", "code": "tool_failed",
                "message": str(error), "retryable": False, "certainty": "ran",
            }
        del self.running[request_id]
        self.reply(request_id, envelope if self.careless else {**envelope, **call.job_id})

    def send_chunk(self, request_id, call, chunk):
        """The bytes of audio and content beside the rest; MIDI and progress in one piece."""
        field = {"partial_audio": "samples", "partial_content": "data"}.get(chunk["type"])
        envelope = {"kind": "stream_chunk", "stream_id": call.stream_id}
        if field is None:
            events = chunk.get("events", [])
            call.credit -= sum(8 + len(event["data"]) for event in events)
            self.reply(request_id, {**envelope, "chunk": chunk})
        else:
            data = chunk[field]
            rest = {name: value for name, value in chunk.items() if name != field}
            call.credit -= len(data)
            header = pack({**envelope, "chunk": rest})
            self.socket.send_multipart(frame_parts(REPLY, RAW_BINARY, request_id, data, header))
        self.overdrawn = max(self.overdrawn, -call.credit)

    def reply(self, request_id, envelope):
        self.socket.send_multipart(frame_parts(REPLY, MSGPACK, request_id, pack(envelope)))


def progress(percent, message):
    return {"type": "progress", "percent": float(percent), "message": message}


def echo(arguments):
    return arguments
    yield


def slow(arguments):
    yield progress(0, "waiting")
    ends_at = time.monotonic() + arguments["ms"] / 1000
    while time.monotonic() < ends_at:
        yield None
    return arguments


def fail(arguments):
    raise ToolError("on purpose")
    yield


def content(data):
    return {"type": "partial_content", "data": data, "mime_type": "application/octet-stream"}


def pour(arguments, step=100_000):
    """Bytes that show where they belong."""
    size = arguments["bytes"]
    for start in range(0, size, step):
        yield content(bytes(i * 7 % 251 for i in range(start, min(start + step, size))))
    return arguments


def main():
    tools = {"echo": ({}, echo), "slow": ({}, slow), "fail": ({}, fail), "pour": ({}, pour)}
    address, token = os.environ["RINGBACK_DAEMON"], os.environ["RINGBACK_TOKEN"]
    careless = "--careless" in sys.argv
    with Worker(zmq.Context(), address, token, "candidate", tools, careless) as worker:
        worker.thread.join()


if __name__ == "__main__":
    main()
