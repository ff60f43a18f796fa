#!/usr/bin/env python3
"""Replays, message by message, the clients of the systems that the seeds describe: the Python client of
hootenanny, the program that oubliette puts beside an agent, and the caller that starts such an agent.

    python tests/interop/seed_clients.py target/release/ringback target/node [NAME...]

Nothing here uses a library or the documentation of this project: it sends what those programs send.
`--inside` is the program beside the agent; the daemon starts it as the agent of a session.
"""

import json
import os
import queue
import socket
import struct
import sys
import threading
import time
import urllib.request
import uuid

# Seconds for one wait, and for all.
LIMIT = 60
WHOLE_LIMIT = 240

# The requests of hootenanny's Python client that this daemon has a tool for, with fields that it accepts.
TOOLS = {
    "ping": {},
    "list_tools": {},
    "config_get": {},
    "cas_inspect": {"hash": "0" * 64},
    "cas_get": {"hash": "0" * 64},
    "artifact_get": {"id": "artifact_x"},
    "artifact_list": {},
    "abc_parse": {"abc": "X:1\nT:t\nK:C\nCDEF|\n"},
    "abc_validate": {"abc": "X:1\nT:t\nK:C\nCDEF|\n"},
    "abc_transpose": {"abc": "X:1\nT:t\nK:C\nCDEF|\n", "semitones": 2},
    "abc_to_midi": {"abc": "X:1\nT:t\nK:C\nCDEF|\n"},
    "job_list": {},
    "job_status": {"job_id": "job_x"},
    "job_cancel": {"job_id": "job_x"},
    "job_poll": {"job_ids": [], "timeout_ms": 1},
    "job_sleep": {"milliseconds": 1},
    "soundfont_inspect": {"soundfont_hash": "0" * 64},
    "soundfont_preset_inspect": {"soundfont_hash": "0" * 64, "bank": 0, "program": 0},
    "midi_to_wav": {"input_hash": "0" * 64, "soundfont_hash": "0" * 64},
    "orpheus_generate": {},
    "orpheus_generate_seeded": {"seed_hash": "0" * 64},
    "orpheus_continue": {"input_hash": "0" * 64},
    "orpheus_bridge": {"section_a_hash": "0" * 64},
    "orpheus_loops": {},
    "orpheus_classify": {"midi_hash": "0" * 64},
    "musicgen_generate": {"prompt": "a tune"},
    "beatthis_analyze": {"audio_hash": "0" * 64},
    "clap_analyze": {"audio_hash": "0" * 64},
    "add_annotation": {"artifact_id": "artifact_x", "message": "m"},
}


class Hootenanny:
    """The Python client: a DEALER with its own time limits, seven parts, one service in every request."""

    READY, REQUEST, REPLY, HEARTBEAT = 1, 2, 3, 4
    EMPTY, MSGPACK = 0, 1

    def __init__(self, endpoint):
        import zmq

        self.socket = zmq.Context.instance().socket(zmq.DEALER)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.RCVTIMEO, LIMIT * 1000)
        self.socket.setsockopt(zmq.SNDTIMEO, 10_000)
        self.socket.connect(endpoint)

    def send(self, command, content_type, body):
        request = uuid.uuid4()
        self.socket.send_multipart([
            b"HOOT01", struct.pack(">H", command), struct.pack(">H", content_type), request.bytes,
            b"hootenanny", b"", body,
        ])
        return request

    def receive(self):
        protocol, command, _, request, _, _, body = self.socket.recv_multipart()[:7]
        assert protocol == b"HOOT01", protocol
        return struct.unpack(">H", command)[0], uuid.UUID(bytes=request), body

    def call(self, tool, **fields):
        import msgpack

        request = self.send(self.REQUEST, self.MSGPACK, msgpack.packb({"type": tool, **fields}))
        command, answered, body = self.receive()
        assert (command, answered) == (self.REPLY, request), (tool, command)
        return msgpack.unpackb(body, strict_map_key=False)


def hootenannys_client_is_answered(world):
    """Every request names the service `hootenanny`, which is this daemon."""
    client = Hootenanny(world.daemon.hoot_ipc)
    beat = client.send(client.HEARTBEAT, client.EMPTY, b"")
    command, answered, _ = client.receive()
    assert (command, answered) == (client.HEARTBEAT, beat)
    assert client.call("ping")["response"]["type"] == "pong"
    listed = client.call("list_tools")["response"]
    names = {tool["name"] for tool in listed["tools"]}
    missing = set(TOOLS) - names
    assert not missing, missing
    for tool, fields in TOOLS.items():
        reply = client.call(tool, **fields)
        said = json.dumps(reply, default=str)
        assert reply["kind"] in ("success", "job_started", "ack", "error"), said
        assert reply.get("resource_type") not in ("service", "tool"), said


class Caller:
    """The caller: an MCP client over HTTP with a handshake, a log level and one standing stream."""

    def __init__(self, http, token):
        self.url, self.token, self.session, self.ids = f"{http}/mcp", token, None, 0
        self.events = queue.Queue()
        self.post("initialize", {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "ant", "version": "1"},
        })
        self.post("notifications/initialized", None)
        self.post("logging/setLevel", {"level": "info"})
        threading.Thread(target=self.listen, daemon=True).start()

    def request(self, body=None, accept="application/json, text/event-stream"):
        headers = {"Authorization": f"Bearer {self.token}", "Accept": accept}
        if self.session:
            headers |= {"Mcp-Session-Id": self.session, "MCP-Protocol-Version": "2025-06-18"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(self.url, body, headers, method="GET" if body is None else "POST")
        return urllib.request.urlopen(request, timeout=LIMIT)

    def post(self, method, params):
        message = {"jsonrpc": "2.0", "method": method} | ({"params": params} if params is not None else {})
        if not method.startswith("notifications/"):
            self.ids += 1
            message["id"] = self.ids
        with self.request(json.dumps(message).encode()) as response:
            self.session = response.headers.get("Mcp-Session-Id", self.session)
            text = response.read().decode()
        if "id" not in message:
            return None
        lines = [line[5:] for line in text.splitlines() if line.startswith("data:")] or [text]
        return next(answer for answer in map(json.loads, filter(str.strip, lines)) if answer.get("id") == self.ids)

    def tool(self, tool, /, **arguments):
        answer = self.post("tools/call", {"name": tool, "arguments": arguments})
        result = answer.get("result")
        assert result and not result.get("isError"), answer
        return result["structuredContent"]

    def listen(self):
        with self.request(accept="text/event-stream") as stream:
            for line in stream:
                if line.startswith(b"data:") and line[5:].strip():
                    message = json.loads(line[5:])
                    if message.get("method") == "notifications/message":
                        self.events.put(message["params"])

    def next_request(self):
        """The next call of a caller tool, from `notifications/message`."""
        until = time.monotonic() + LIMIT
        while True:
            params = self.events.get(timeout=max(0.1, until - time.monotonic()))
            if params.get("logger") == "oubliette.caller_tool" and params["data"]["type"] == "caller_tool_request":
                assert params["level"] == "info", params
                return params["data"]


class Inside:
    """The program beside the agent: one line as a greeting, then JSON-RPC with integer ids from 0."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(LIMIT)
        self.socket.connect(path)
        project = os.environ.get("OUBLIETTE_PROJECT_ID", "unknown")
        self.socket.sendall(f"OUBLIETTE-DOWNSTREAM {project}\n".encode())
        self.lines = self.socket.makefile("r", encoding="utf-8")
        self.ids, self.config = 0, None

    def read(self):
        line = self.lines.readline()
        assert line, "the daemon closed the connection"
        message = json.loads(line)
        if message.get("type", message.get("method")) == "caller_tools_config" and message["params"]["tools"]:
            self.config = message["params"]
        return message

    def wait_for_tools(self):
        while self.config is None:
            self.read()
        return self.config

    def call(self, method, **params):
        request = {"jsonrpc": "2.0", "id": self.ids, "method": method, "params": params}
        self.ids += 1
        self.socket.sendall(json.dumps(request).encode() + b"\n")
        while True:
            message = self.read()
            if message.get("id") == request["id"] and "method" not in message:
                assert "error" not in message, message
                return message.get("result")

    def session_message(self, message):
        """Starts a child with an empty id, and polls its events every half second until it is done."""
        child = self.call("session_message", message=message, session_id="")
        assert child["spawned"] is True, child
        until = time.monotonic() + LIMIT
        while time.monotonic() < until:
            events = self.call("session_events", session_id=child["session_id"], since_index=-1)
            if events["status"] in ("completed", "failed"):
                break
            time.sleep(0.5)
        assert events["status"] == "completed" and events["completed"] and not events["failed"], events
        texts = [event["text"] for event in events["events"] if event.get("role") == "assistant"]
        return {"session_id": child["session_id"], "result": texts[-1], "spawned": True}


def say(**event):
    print(json.dumps(event), flush=True)


def inside():
    """An agent that does everything the program beside it offers, and reports the results."""
    for line in sys.stdin:
        try:
            if "be the child" in line:
                say(type="message", text="the child was here")
            else:
                client = Inside(os.environ["RINGBACK_SOCKET"])
                config = client.wait_for_tools()
                sent = client.call("caller_tool", tool=config["tools"][0]["name"], arguments={"m": "x"})
                child = client.session_message("be the child")
                tools = client.call("oubliette_tools", api_key=os.environ["OUBLIETTE_API_KEY"])["tools"]
                listed = client.call(
                    "oubliette_call_tool", api_key=os.environ["OUBLIETTE_API_KEY"], tool="project_list", arguments={}
                )
                report = {
                    "caller": config["caller_id"], "sent": sent, "child": child["result"], "tools": len(tools),
                    "listed": listed["isError"] is False and listed["content"][0]["type"] == "text",
                }
                say(type="message", text=json.dumps(report))
        except Exception as error:  # The check looks for this error.
            say(type="message", text=json.dumps({"failed": repr(error)}))
        say(type="done")


def oubliettes_caller_and_client_meet(world):
    """The caller declares a tool, the program beside the agent calls it, and starts a child."""
    caller = Caller(world.daemon.http, world.daemon.token)
    project = caller.tool("project_create", name="seeds", key_level="read")["project_id"]
    schema = {"type": "object", "properties": {"m": {"type": "string"}}}
    tools = [{"name": "send", "description": "Sends", "inputSchema": schema}]
    started = caller.tool(
        "session_message", project_id=project, session_id="", workspace_id="", message="work", caller_id="ant",
        caller_tools=tools,
    )
    asked = caller.next_request()
    assert (asked["tool"], asked["arguments"]) == ("send", {"m": "x"}), asked
    assert asked["session_id"] == started["session_id"], asked
    caller.tool(
        "caller_tool_response", session_id=asked["session_id"], request_id=asked["request_id"], result={"ok": 1}
    )
    report = wait_for_report(caller, started["session_id"])
    expected = {"caller": "ant", "sent": {"ok": 1}, "child": "the child was here", "listed": True}
    assert {name: report.get(name) for name in expected} == expected, report
    assert report["tools"] > 0, report


def an_opened_session_rings_back_on_the_standing_stream(world):
    """The caller that opens a session for an agent elsewhere gets its calls like the caller of a local one."""
    caller = Caller(world.daemon.http, world.daemon.token)
    opened = caller.tool("session_open", caller_id="ant", caller_tools=[{"name": "send"}])
    agent = Caller.__new__(Caller)
    agent.url, agent.token, agent.session, agent.ids = opened["url"], opened["token"], None, 0
    agent.post("initialize", {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "agent", "version": "1"},
    })
    agent.post("notifications/initialized", None)
    answers = queue.Queue()
    call = {"name": "ant_send", "arguments": {"m": "y"}}
    threading.Thread(target=lambda: answers.put(agent.post("tools/call", call)), daemon=True).start()
    asked = caller.next_request()
    assert (asked["tool"], asked["arguments"]) == ("send", {"m": "y"}), asked
    caller.tool(
        "caller_tool_response", session_id=asked["session_id"], request_id=asked["request_id"], result={"ok": 2}
    )
    answer = answers.get(timeout=LIMIT)
    assert not answer["result"].get("isError"), answer
    assert json.loads(answer["result"]["content"][0]["text"]) == {"ok": 2}, answer


def wait_for_report(caller, session):
    since, until = -1, time.monotonic() + LIMIT
    while time.monotonic() < until:
        page = caller.tool("session_events", session_id=session, since_index=since, wait_ms=5000)
        since = page["last_index"]
        for event in page["events"]:
            if event.get("role") == "assistant" and event.get("text", "").startswith("{"):
                return json.loads(event["text"])
    raise AssertionError("the agent said nothing")


class World:
    """A daemon whose agent is this file."""

    def __init__(self, binary, _node):
        from wire import Daemon

        config = f"""
[sandbox]
backend = "none"

[sessions]
agent = "seed"

[sessions.agents.seed]
command = [{json.dumps(sys.executable)}, {json.dumps(os.path.abspath(__file__))}, "--inside"]
"""
        import tempfile

        self.directory = tempfile.TemporaryDirectory()
        path = os.path.join(self.directory.name, "config.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(config)
        self.daemon = Daemon(binary, RINGBACK_CONFIG=path)

    def close(self):
        self.daemon.clean_up()
        self.directory.cleanup()


if __name__ == "__main__":
    if sys.argv[1:] == ["--inside"]:
        inside()
        sys.exit(0)
    from runner import check, main

    check(hootenannys_client_is_answered)
    check(oubliettes_caller_and_client_meet)
    check(an_opened_session_rings_back_on_the_standing_stream)
    main(World, WHOLE_LIMIT)
