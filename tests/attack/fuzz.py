"""Noise for every decoder: HTTP, MCP, HOOT01 and its MsgPack, the lines of a session, and its tools' arguments."""

import collections
import contextlib
import json
import random
import socket
import time

from wire import frame_parts, new_id, pack
from world import LIMIT, Options, quick, slow

# Messages of each kind in the quick profile; the slow one multiplies them.
COUNT, MORE = 1000, 20


def count():
    return COUNT * (MORE if Options.is_slow else 1)


def value(rng, depth=0):
    """A random JSON value."""
    kind = rng.randrange(9 if depth < 4 else 6)
    if kind == 0:
        return rng.choice([None, True, False])
    if kind == 1:
        return rng.choice([0, -1, 2**31, 2**63, 2**64, -(2**63) - 1, 10**40, 0.1, 1e308, -0.0])
    if kind in (2, 3):
        return "".join(
            chr(rng.choice([rng.randrange(32), rng.randrange(32, 127), rng.randrange(0xD7FF)]))
            for _ in range(rng.randrange(20))
        )
    if kind == 4:
        return "x" * rng.choice([0, 64, 65, 255, 256, 4096, 70000])
    if kind == 5:
        return rng.choice(
            ["gogol_" + "0" * 32, "proj_" + "f" * 32, "../../etc/passwd", "\0", "oub_" + "a" * 64, "%s%n"]
        )
    if kind in (6, 7):
        return {str(value(rng, 9))[:30]: value(rng, depth + 1) for _ in range(rng.randrange(5))}
    return [value(rng, depth + 1) for _ in range(rng.randrange(5))]


def mutated(rng, data):
    data = bytearray(data)
    for _ in range(rng.randrange(1, 6)):
        at, way = rng.randrange(len(data) + 1), rng.randrange(4)
        if way == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif way == 1:
            data[at:at] = rng.randbytes(rng.randrange(1, 9))
        elif way == 2:
            del data[at : at + rng.randrange(1, 20)]
        else:
            data[at:at] = data[max(0, at - 30) : at] * rng.randrange(1, 4)
    return bytes(data)


def send(port, data):
    """One connection: all of the data, then any answer; an answer need not come."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=LIMIT) as it:
        it.sendall(data)
        it.shutdown(socket.SHUT_WR)
        # Streams go on, and half a request may wait for its other half: only the next request counts.
        it.settimeout(0.5)
        answer = b""
        while len(answer) < 65536 and b"text/event-stream" not in answer and (piece := it.recv(65536)):
            answer += piece
        return answer
    return b""


def http_requests(rng, target):
    head = f"Host: 127.0.0.1:{target.port}\r\nAuthorization: Bearer {target.token}\r\n"
    bodies = ['{"milliseconds":1}', '{"jsonrpc":"2.0","id":1,"method":"tools/list"}', "{}", "[]"]
    paths = [
        "/v1/tools/ping/call",
        "/v1/blobs",
        "/mcp",
        "/client-tools/register",
        "/client-tools/execute",
        "/v1/sessions",
        "/v1/tokens",
        "/v1/audit?limit=9",
        "/event",
        "/v1/jobs/x",
        "/../../etc/passwd",
        "/%2e%2e/%00",
    ]
    while True:
        body, path = rng.choice(bodies), rng.choice(paths)
        length = len(body) if rng.random() < 0.7 else rng.choice([len(body) + 1, 0, -1, 2**64, "x"])
        extra = (
            ""
            if rng.random() < 0.5
            else rng.choice(
                [
                    "",
                    "Transfer-Encoding: chunked\r\n",
                    "Transfer-Encoding: chunked, identity\r\n",
                    "Expect: 100-continue\r\n",
                    "Connection: close\r\n",
                    "X: " + "y" * 9000 + "\r\n",
                    "Range: bytes=0-,1-\r\n",
                ]
            )
        )
        method = rng.choice(["GET", "POST", "POST", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "get", ""])
        text = f"{method} {path} HTTP/1.1\r\n{head}Connection: close\r\nContent-Type: application/json\r\n"
        text += f"{extra}Content-Length: {length}\r\n\r\n{body}"
        yield mutated(rng, text.encode()) if rng.random() < 0.4 else text.encode()


@quick
def no_http_request_harms_the_daemon(world):
    target, rng = world.target(), random.Random(Options.seed)
    requests, statuses = http_requests(rng, target), collections.Counter()
    for n in range(count()):
        request = next(requests)
        answer = send(target.port, request)
        statuses[answer[9:12].decode(errors="replace") or "nothing"] += 1
        assert not answer.startswith((b"HTTP/1.1 500", b"HTTP/1.0 500")), (
            f"seed {Options.seed}, {n}: {request!r}: {answer[:300]!r}"
        )
    target.is_well()
    print(f"   {dict(statuses)}", flush=True)
    assert len(statuses) > 3, statuses


@quick
def no_message_of_mcp_harms_the_daemon(world):
    target, rng = world.target(), random.Random(Options.seed)
    methods = [
        "initialize",
        "tools/list",
        "tools/call",
        "ping",
        "server/discover",
        "subscriptions/listen",
        "notifications/cancelled",
        "x",
    ]
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "Connection": "close",
    }
    for n in range(count()):
        message = {"jsonrpc": "2.0", "id": value(rng, 3), "method": rng.choice(methods), "params": value(rng)}
        if rng.random() < 0.3:
            message[str(value(rng, 9))[:20]] = value(rng)
        body = json.dumps(message).encode()
        body = mutated(rng, body) if rng.random() < 0.4 else body
        if b"listen" in body:
            continue
        answer = target.request("POST", "/mcp", body, headers=headers)
        assert answer.status < 500, f"seed {Options.seed}, {n}: {body!r}: {answer}"
    target.is_well()


@quick
def no_arguments_harm_the_daemon(world):
    """Noise for the fields of each tool, according to its schema."""
    target, rng = world.target(), random.Random(Options.seed)
    tools = target.request("GET", "/v1/tools").json["tools"]
    costly = (
        "generate",
        "orpheus",
        "image_rebuild",
        "session_",
        "container_start",
        "job_sleep",
        "token_",
        "event_poll",
        "job_poll",
    )
    tools = [it for it in tools if not any(word in it["name"] for word in costly)]
    for n in range(count()):
        tool = rng.choice(tools)
        fields = list(tool["input_schema"].get("properties", {})) or ["x"]
        arguments = {rng.choice(fields): value(rng) for _ in range(rng.randrange(4))}
        answer = target.tool(tool["name"], arguments)
        assert answer.status not in (500,), f"seed {Options.seed}, {n}: {tool['name']} {arguments}: {answer}"
    target.is_well()


@quick
def no_frame_harms_the_daemon(world):
    target, rng = world.target(), random.Random(Options.seed)
    with target.peer() as witness:
        for _ in range(count() // 100):
            with target.peer() as peer:
                for _ in range(100):
                    peer.send_parts(frame(rng))
        assert witness.call("ping")["kind"] == "success"
    target.is_well()


def frame(rng):
    fields = {"hash": str(value(rng, 9)), "x": [1] * rng.randrange(9)}
    body = pack({"tool": rng.choice(["ping", "cas_get", "cas_store", "job_status"]), **fields})
    body = mutated(rng, body) if rng.random() < 0.7 else rng.randbytes(rng.randrange(200))
    parts = frame_parts(rng.randrange(9), rng.randrange(5), new_id(), body)
    if rng.random() < 0.3:
        at = rng.randrange(len(parts))
        parts[at] = rng.choice([b"", rng.randbytes(rng.randrange(300)), mutated(rng, parts[at])])
    if rng.random() < 0.2:
        parts = parts[: rng.randrange(1, 8)] + [rng.randbytes(9)] * rng.randrange(3)
    return parts


@quick
def no_greeting_harms_the_daemon(world):
    """Noise in the ZeroMQ handshake."""
    target, rng = world.target(), random.Random(Options.seed)
    greeting = b"\xff" + bytes(8) + b"\x7f\x03\x00PLAIN" + bytes(15) + b"\0" + bytes(31)
    hello = b"\x04\x1a\x05HELLO\x06anyone\x0c" + b"x" * 12
    port = int(target.hoot.rsplit(":", 1)[1])
    for _ in range(count() // 3):
        noise = mutated(rng, greeting + hello) if rng.random() < 0.7 else rng.randbytes(rng.randrange(300))
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=LIMIT) as it:
            it.sendall(noise)
    with target.peer() as peer:
        assert peer.call("ping")["kind"] == "success"
    target.is_well()


@quick
def no_line_of_an_agent_harms_the_daemon(world):
    target, rng = world.target(), random.Random(Options.seed)
    session = target.agent("true", project_id=target.project(key_level="read"), create_workspace=True)
    session.said()
    key = session.key()
    methods = ["caller_tool", "oubliette_tools", "oubliette_call_tool", "session_events", "project_list", "cancel", "x"]
    for _ in range(count() // 50):
        with session.relay() as relay, contextlib.suppress(OSError):
            for _ in range(50):
                params = value(rng) if rng.random() < 0.3 else {"api_key": key, "tool": "ping", "arguments": value(rng)}
                line = json.dumps(
                    {"jsonrpc": "2.0", "id": value(rng, 3), "method": rng.choice(methods), "params": params}
                ).encode()
                line = mutated(rng, line) if rng.random() < 0.5 else line
                relay.socket.sendall(line.replace(b"\n", b" ") + b"\n")
    with session.relay() as relay:
        assert relay.call(key, "ping")[0] == "ok"
    session.end()
    target.is_well()


@quick
def no_event_of_an_agent_harms_the_daemon(world):
    """Noise in an agent's output, instead of valid lines."""
    target, rng = world.target(), random.Random(Options.seed)
    lines = []
    for _ in range(count()):
        event = {
            "type": rng.choice(["message", "done", "tool_call", "log", "error", "thought", "x"]),
            "text": value(rng, 3),
            "id": value(rng, 3),
        }
        line = json.dumps(event).encode()
        lines.append(mutated(rng, line) if rng.random() < 0.5 else line)
    session = target.agent("true", create_workspace=True)
    session.said()
    (session.path() / "noise").write_bytes(b"\n".join(lines) + b"\n")
    session.tell("cat noise > /proc/$PPID/fd/1; true")
    ends_at = time.monotonic() + LIMIT
    while time.monotonic() < ends_at and not any(it["type"] == "agent_garbage" for it in session.events()):
        pass
    assert session.end().status == 200
    target.is_well()


@slow
def noise_for_long(world):
    """All of the above, many times over."""
    for case in (
        no_http_request_harms_the_daemon,
        no_message_of_mcp_harms_the_daemon,
        no_arguments_harm_the_daemon,
        no_frame_harms_the_daemon,
        no_greeting_harms_the_daemon,
        no_line_of_an_agent_harms_the_daemon,
        no_event_of_an_agent_harms_the_daemon,
    ):
        case(world)
