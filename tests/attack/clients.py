"""Clients that were there before: what the systems of the specification's pages send, as they send it."""

import json

from wire import MSGPACK, REQUEST, pack
from world import quick


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


@quick
def a_list_of_tools_is_of_a_size_that_clients_take(world):
    target = world.target()
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}}
    headers = {"Accept": "application/json, text/event-stream"}
    opened = target.request("POST", "/mcp", body, headers=headers)
    session = {key.lower(): value for key, value in opened.headers.items()}["mcp-session-id"]
    headers |= {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"}
    target.request("POST", "/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=headers)
    listed = target.request("POST", "/mcp", {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, headers=headers)
    assert listed.status == 200, listed
    text = listed.body.decode()
    assert json.dumps(text).count('"type\\":[') == 0, "a list of types"
    assert len(text) < 160_000, f"{len(text)} bytes"
