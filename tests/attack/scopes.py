"""The matrix: every tool, scope and edge; every route and bad credential; strangers and their IDs."""

import json
import uuid

from wire import MSGPACK, REQUEST, Subscriber, pack
from world import quick

LEVELS = ["read", "write", "admin"]
# Routes that need no token, according to their documentation.
OPEN = ("/health", "/ready", "/metrics", "/docs", "/v1/openapi.json")
MODERN = "2026-07-28"


def all_tools(target):
    """Every tool with its scope, as an administrator sees them."""
    tools, cursor = [], ""
    while True:
        page = target.request("GET", f"/v1/tools?cursor={cursor}" if cursor else "/v1/tools").json
        tools += page["tools"]
        cursor = page.get("next_cursor")
        if not cursor:
            return {it["name"]: it["scope"] for it in tools}


def mcp(target, token, method, params, path="/mcp"):
    """A single request."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "attack", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    return target.request("POST", path, body, token, headers)


def above(tools, level):
    """The tools that a scope does not permit."""
    return [name for name, scope in tools.items() if LEVELS.index(scope) > LEVELS.index(level)]


@quick
def a_level_calls_nothing_above_it_over_http(world):
    """Even with invalid arguments: the scope is checked first."""
    target = world.target()
    tools = all_tools(target)
    assert len(tools) > 60, len(tools)
    for level in LEVELS[:2]:
        token, token_id = target.new_token(level)
        refused = above(tools, level)
        assert refused
        for name in refused:
            for arguments in ({}, {"project_id": 7}):
                answer = target.tool(name, arguments, token=token)
                assert (answer.status, answer.code) == (403, "FORBIDDEN"), f"{level} {name}: {answer}"
        target.done("token_revoke", token_id=token_id)


@quick
def a_level_calls_nothing_above_it_over_mcp(world):
    target = world.target()
    tools = all_tools(target)
    for level in LEVELS[:2]:
        token, token_id = target.new_token(level)
        for name in above(tools, level):
            answer = mcp(target, token, "tools/call", {"name": name, "arguments": {}})
            text = answer.body.decode()
            assert "-32002" in text or "permission_denied" in text or "forbidden" in text, f"{level} {name}: {answer}"
            assert "invalid_params" not in text, f"{level} {name}: {answer}"
        target.done("token_revoke", token_id=token_id)


@quick
def a_level_calls_nothing_above_it_over_hoot01(world):
    target = world.target()
    tools = all_tools(target)
    for level in LEVELS[:2]:
        token, token_id = target.new_token(level)
        with target.peer(token) as peer:
            for name in above(tools, level):
                envelope = peer.reply(peer.send(REQUEST, MSGPACK, pack({"tool": name})))
                assert envelope["kind"] == "error", f"{level} {name}: {envelope}"
                assert envelope["code"] == "permission_denied", f"{level} {name}: {envelope}"
        target.done("token_revoke", token_id=token_id)


@quick
def a_level_calls_nothing_above_it_in_a_session(world):
    """An agent is shown exactly the tools that its key can call."""
    target = world.target()
    tools = all_tools(target)
    for level in LEVELS[:2]:
        session = target.agent("true", project_id=target.project(key_level=level), create_workspace=True)
        session.said()
        key = session.key()
        with session.relay() as relay:
            for name in above(tools, level):
                answer = relay.ask("oubliette_call_tool", api_key=key, tool=name, arguments={})
                assert answer.get("error", {}).get("code") == -32002, f"{level} {name}: {answer}"
            listed = [it["name"] for it in relay.ask("oubliette_tools", api_key=key)["result"]["tools"]]
            assert not set(listed) & set(above(tools, level)), listed
            for name in listed:
                # Never runs: no tool accepts this.
                answer = relay.ask("oubliette_call_tool", api_key=key, tool=name, arguments=[])
                text = json.dumps(answer)
                assert "-32002" not in text and "permission_denied" not in text, f"listed, but refused: {name}: {text}"
        session.end()


def routes(target):
    document = target.request("GET", "/v1/openapi.json", token=None).json
    for path, methods in document["paths"].items():
        for method in methods:
            if method in ("get", "post", "put", "delete", "head"):
                yield method.upper(), path


@quick
def no_route_takes_a_bad_credential(world):
    target = world.target()
    _, revoked_id = made = target.new_token("admin")
    target.done("token_revoke", token_id=revoked_id)
    token = target.token
    bad = [
        None,
        "Bearer ",
        "Bearer",
        f"Basic {token}",
        f"Bearer {token}x",
        f"Bearer {token[:-1]}",
        f"Bearer {token.upper()}",
        f"Bearer oub_{'0' * 64}",
        f"Bearer {made[0]}",
        "Bearer null",
        token,
        f"Bearer {token}, Bearer {token}",
        "Bearer " + "a" * 5000,
        f"Bearer\t{token}",
    ]
    n_tried, wanted = 0, str(uuid.uuid4()).replace("-", "")
    for method, path in routes(target):
        if path.startswith(OPEN):
            continue
        place = path.replace("{id}", f"job_{wanted}").replace("{hash}", wanted * 2).replace("{name}", "ping")
        for credential in bad:
            headers = {"Authorization": credential} if credential is not None else {}
            body = "{}" if method in ("POST", "PUT", "DELETE") else None
            headers["Content-Type"] = "application/json"
            answer = target.request(method, place, body, None, headers)
            assert answer.status in (400, 401, 431), f"{method} {path} with {credential!r}: {answer}"
            n_tried += 1
    print(f"   {n_tried} requests", flush=True)
    assert n_tried > 200, n_tried


@quick
def a_stranger_cannot_tell_what_is_there(world):
    """An ID of another principal looks like an unknown one."""
    target = world.target()
    project = target.project()
    session = target.agent("true", project_id=project, create_workspace=True)
    session.said()
    token, token_id = target.new_token("write")
    nobody = uuid.uuid4().hex

    def outcomes(session_id, project_id, workspace_id):
        calls = [
            ("caller_tool_requests", {"session_id": session_id}),
            ("caller_tool_response", {"session_id": session_id, "request_id": "x", "result": 1}),
            ("session_get", {"session_id": session_id}),
            ("session_events", {"session_id": session_id}),
            ("session_end", {"session_id": session_id}),
            ("session_message", {"session_id": session_id, "message": "x"}),
            ("session_network", {"session_id": session_id, "network": {"mode": "none"}}),
            ("project_get", {"project_id": project_id}),
            ("project_delete", {"project_id": project_id}),
            ("workspace_list", {"project_id": project_id}),
            ("config_limits", {"project_id": project_id}),
            ("workspace_get", {"project_id": project_id, "workspace_id": workspace_id}),
            ("workspace_delete", {"project_id": project_id, "workspace_id": workspace_id}),
            ("container_logs", {"project_id": project_id}),
        ]
        answers = {}
        for tool, arguments in calls:
            answer = target.tool(tool, arguments, token=token)
            text = answer.body.decode().replace(session_id, "ID").replace(project_id, "ID").replace(workspace_id, "ID")
            answers[tool] = (answer.status, text)
        return answers

    theirs = outcomes(session.id, project, session.workspace)
    nobodys = outcomes(f"gogol_{nobody}", f"proj_{nobody}", f"ws_{nobody}")
    for tool, answer in theirs.items():
        assert answer == nobodys[tool], f"{tool}: {answer} is not {nobodys[tool]}"
    target.done("token_revoke", token_id=token_id)
    session.end()


@quick
def what_an_agent_did_is_in_the_audit_of_its_session(world):
    target = world.target()
    session = target.agent("true", project_id=target.project(key_level="read"), create_workspace=True)
    session.said()
    key = session.key()
    with session.relay() as relay:
        assert relay.call(key, "cas_stats")[0] == "ok"
    entries = target.request("GET", "/v1/audit?limit=50").json["entries"]
    mine = [it for it in entries if it["tool"] == "cas_stats"]
    assert mine and session.id in json.dumps(mine[0]), entries[:5]
    session.end()


# A note of two seconds: one track, 96 ticks a quarter.
NOTE = (
    b"MThd\0\0\0\x06\0\0\0\x01\0\x60MTrk\0\0\0\x0d"
    b"\0\x90\x3c\x64\x83\0\x80\x3c\0\0\xff\x2f\0"
)


def rendered(target, token):
    """A render of a principal, to its end."""
    midi = target.request("POST", "/v1/blobs", NOTE, token, {"Content-Type": "audio/midi"}).json["hash"]
    target.done("midi_to_wav", input_hash=midi, token=token)


@quick
def a_stranger_hears_no_chunk_of_others(world):
    """Neither with a wide subscription nor with the names of the victim's topics."""
    target = world.target()
    victim, victims_id = target.new_token("write")
    stranger, strangers_id = target.new_token("write")
    wide = ["", "s", "stream.", "stream.data.", "stream.data.str_", "tok_", f"{victims_id}/"]
    topics = [*wide, f"{victims_id}/stream.data.", f"{strangers_id}/stream.", f"{strangers_id}/heads"]
    everyone = Subscriber(world.context, target.iopub, target.token, ["stream.", "heads"])
    with everyone, Subscriber(world.context, target.iopub, stranger, topics) as heard:
        everyone.heads()
        heard.collect_until(lambda topic, _: topic == f"{strangers_id}/heads")
        rendered(target, victim)
        told = everyone.collect_until(lambda topic, _: topic == "stream.ended")
        assert any(topic.startswith("stream.data.") for topic, _ in told), told
        # What comes after it, and is its own, shows that nothing came before.
        rendered(target, stranger)
        told = heard.collect_until(lambda topic, _: topic.endswith("/stream.ended"))
        started = [message for topic, message in told if topic.endswith("/stream.started")]
        assert len(started) == 1 and any("/stream.data." in topic for topic, _ in told), told
        assert all(topic.startswith(f"{strangers_id}/") for topic, _ in told), told
    target.done("token_revoke", token_id=victims_id)
    target.done("token_revoke", token_id=strangers_id)
