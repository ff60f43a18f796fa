"""Earlier clients: what the systems of the specification's pages send, as they send it."""

import json
import socket
import threading
import time

from scopes import mcp
from wire import MSGPACK, REQUEST, pack
from world import LIMIT, quick


@quick
def a_client_that_names_the_old_service_is_answered(world):
    target = world.target()
    with target.peer() as peer:
        envelope = peer.reply(peer.send(REQUEST, MSGPACK, pack({"tool": "ping"}), service=b"hootenanny"))
        assert envelope["kind"] == "success", envelope
        envelope = peer.reply(peer.send(REQUEST, MSGPACK, pack({"tool": "ping"}), service=b"nobodys"))
        assert envelope["kind"] == "error", envelope


@quick
def an_agent_knows_its_project(world):
    target = world.target()
    project = target.project()
    assert target.run("printenv OUBLIETTE_PROJECT_ID", project_id=project).strip() == project


@quick
def an_empty_session_id_means_none(world):
    target = world.target()
    session = target.agent("true", project_id=target.project(key_level="write"), create_workspace=True)
    session.said()
    with session.relay() as relay:
        # The first line of that client, by which it is recognized.
        relay.socket.sendall(f"OUBLIETTE-DOWNSTREAM {session.project}\n".encode())
        answer = relay.ask("session_message", message="echo from the child", session_id="")
        assert "result" in answer, answer
        child = answer["result"]["session_id"]
        assert child != session.id
        seen, since = [], -1
        for _ in range(30):
            page = relay.ask("session_events", session_id=child, since_index=since, wait_ms=1000)["result"]
            since = page["last_index"]
            seen.append(page["status"])
            if page["status"] in ("completed", "failed"):
                break
        else:
            raise AssertionError(f"the status it waits for never comes: {seen}")
    session.end()


@quick
def a_second_project_of_one_name_is_a_conflict(world):
    target = world.target()
    target.project(name="twice")
    again = target.tool("project_create", name="twice")
    assert again.status == 409 and "project already exists" in again.body.decode(), again
    token, _ = target.new_token("write")
    assert target.tool("project_create", name="twice", token=token).status == 200, "another owner may have it"


class Handshaken:
    """An MCP client with an MCP session, and its GET stream."""

    VERSION = "2025-11-25"

    def __init__(self, target):
        self.target = target
        self.headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": self.VERSION}
        client = {"protocolVersion": self.VERSION, "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
        opened = self.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client})
        self.headers["Mcp-Session-Id"] = {name.lower(): it for name, it in opened.headers.items()}["mcp-session-id"]
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.stream = socket.create_connection(("127.0.0.1", target.port), timeout=LIMIT)
        head = self.headers | {"Host": "127.0.0.1", "Authorization": f"Bearer {target.token}"}
        lines = "".join(f"{name}: {it}\r\n" for name, it in head.items())
        self.stream.sendall(f"GET /mcp HTTP/1.1\r\n{lines}\r\n".encode())
        self.stream.recv(12)

    def post(self, message):
        return self.target.request("POST", "/mcp", message, headers=self.headers)

    def call(self, tool, **arguments):
        params = {"name": tool, "arguments": arguments}
        answer = self.post({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})
        lines = [line.removeprefix("data:") for line in answer.body.decode().splitlines()]
        found = [it for line in lines if line.strip().startswith("{") and (it := json.loads(line)).get("id") == 2]
        return found[0]["result"]["structuredContent"]

    def hears(self, word):
        text, ends_at = b"", time.monotonic() + 10
        self.stream.settimeout(10)
        while word not in text:
            piece = self.stream.recv(65536)
            assert piece and time.monotonic() < ends_at, f"only this was sent: {text!r}"
            text += piece


@quick
def a_caller_that_opens_a_session_is_reached_on_its_stream(world):
    target = world.target()
    caller = Handshaken(target)
    context = {"caller_id": "me", "caller_tools": [{"name": "weather", "description": "Tells the weather"}]}
    opened = caller.call("session_open", project_id=target.project(), context=context)
    path = "/mcp/s/" + opened["session_id"]
    asking = threading.Thread(
        target=mcp,
        args=(target, opened["token"], "tools/call"),
        daemon=True,
        kwargs={"params": {"name": "me_weather", "arguments": {}}, "path": path},
    )
    asking.start()
    caller.hears(b"caller_tool_request")
    target.done("session_end", session_id=opened["session_id"])
    asking.join(LIMIT)
    caller.stream.close()
