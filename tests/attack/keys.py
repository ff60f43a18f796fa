"""Session keys: what an agent's key permits, what a child gets, what ends with a token."""

from world import LIMIT, Relay, eventually, quick

REFUSED = ("forbidden", "permission_denied", "not_found")


def assert_refused(outcome, what):
    kind, message = outcome
    assert kind in REFUSED, f"{what}: {kind} {message}"


def assert_denied(answer, what):
    assert answer.status in (403, 404), f"{what}: {answer}"


def victim(target, project):
    """A session with a secret in its workspace, and one of the same project that has a key."""
    owner = target.agent("echo SECRET > secret.txt", project_id=project, create_workspace=True)
    owner.said()
    thief = target.agent("true", project_id=project, create_workspace=True)
    thief.said()
    return owner, thief


@quick
def a_session_key_starts_no_agent_in_another_workspace(world):
    target = world.target()
    project = target.project(key_level="write")
    owner, thief = victim(target, project)
    key = thief.key()
    with thief.relay() as relay:
        for tool, more in [("session_message", {"message": "cat secret.txt"}), ("session_spawn", {})]:
            place = {"project_id": project, "workspace_id": owner.workspace}
            assert_refused(relay.call(key, tool, **place, **more), tool)
        for tool in ("workspace_get", "workspace_diff"):
            assert_refused(relay.call(key, tool, project_id=project, workspace_id=owner.workspace), tool)
        command = {"command": ["cat", "secret.txt"]}
        place = {"project_id": project, "workspace_id": owner.workspace}
        assert_refused(relay.call(key, "container_exec", **place, **command), "container_exec")
        put = {"path": "planted", "data": "aGk="}
        assert_refused(relay.call(key, "workspace_put", **place, **put), "workspace_put")
    owner.end()
    thief.end()


@quick
def a_session_key_deletes_no_other_workspace(world):
    target = world.target()
    project = target.project(key_level="write")
    owner, thief = victim(target, project)
    owner.end()
    path, key = owner.path(), thief.key()
    with thief.relay() as relay:
        place = {"project_id": project, "workspace_id": owner.workspace}
        assert_refused(relay.call(key, "workspace_delete", **place), "workspace_delete")
        assert_refused(relay.call(key, "project_delete", project_id=project), "project_delete")
    assert (path / "secret.txt").exists(), "the other workspace is gone"
    thief.end()


@quick
def no_event_shows_a_token_that_an_agent_passes_on(world):
    """The agent calls a tool with a token in its arguments, as it is and in another notation of JSON."""
    target = world.target()
    token, _ = target.new_token("read")
    session = target.agent("# nothing", agent="asks", create_workspace=True)
    session.said()
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in token)
    for written in (token, escaped):
        session.tell('{"call":{"tool":"nowhere","arguments":{"note":"see ' + written + '"}}}')
        events = []
        while not any(it.get("status") == "idle" for it in events):
            events += session.events()
        [call] = [it for it in events if it["type"] == "tool_call"]
        assert call["arguments"] == '{"note":"see oub_[redacted]"}', call
        [result] = [it for it in events if it["type"] == "tool_result"]
        assert token[4:] not in result["result"], result
    session.end()


@quick
def a_narrowed_key_is_not_widened_by_a_child(world):
    """The session has a key with scope read in a project that grants write: so has a session that its agent starts."""
    target = world.target()
    project = target.project(key_level="write")
    narrow, _ = target.new_token("read")
    session = target.agent("true", project_id=project, create_workspace=True, api_key=narrow)
    session.said()
    key = session.key()
    with session.relay() as relay:
        assert_refused(relay.call(key, "cas_store", data="aGk=", mime_type="text/plain"), "its own key")
        others = target.sockets()
        child = relay.ask("session_message", message="printenv OUBLIETTE_API_KEY")["result"]
        key = child_said(relay, child["session_id"]).strip()
        if not key.startswith("exit code"):
            [place] = target.sockets() - others
            with Relay(str(place)) as childs:
                stored = childs.call(key, "cas_store", data="aGk=", mime_type="text/plain")
                assert_refused(stored, "the child's key")
    session.end()


def child_said(relay, session_id):
    """The messages of a child of the session, as its parent gets them."""
    texts, since = [], -1
    for _ in range(LIMIT):
        page = relay.ask("session_events", session_id=session_id, since_index=since, wait_ms=1000)["result"]
        since = page["last_index"]
        texts += [it["text"] for it in page["events"] if it.get("role") == "assistant"]
        if any(it.get("status") in ("idle", "completed") for it in page["events"]):
            return "\n".join(texts)
    raise AssertionError(texts)


@quick
def an_administrator_of_one_project_rules_no_token_of_others(world):
    target = world.target()
    everything = target.done("token_list")["tokens"]
    first = next(it["token_id"] for it in everything if it["scope"] == "admin" and not it.get("projects"))
    local, _ = target.new_token("admin", projects=[target.project()])
    listed = target.tool("token_list", token=local)
    if listed.status == 200:
        assert first not in listed.body.decode(), "it sees every token"
    assert_denied(target.tool("token_revoke", token_id=first, token=local), "token_revoke")
    assert target.tool("ping").status == 200, "the first administrator is locked out"
    wider = target.tool("token_create", name="x", scope="admin", token=local)
    assert wider.status in (400, 403), f"a token for all projects: {wider}"


@quick
def key_level_admin_is_invalid(world):
    target = world.target()
    made = target.tool("project_create", name="too much", key_level="admin")
    assert made.status == 400, made
    for level in ("none", "read", "write"):
        target.project(key_level=level)


@quick
def no_agent_makes_lists_or_revokes_tokens(world):
    """Whatever its key permits, even if an administrator passed it on."""
    target = world.target()
    passed, token_id = target.new_token("admin")
    project = target.project()
    session = target.agent("true", project_id=project, create_workspace=True, api_key=passed)
    session.said()
    _, other = target.new_token("read")
    key = session.key()
    with session.relay() as relay:
        assert_refused(relay.call(key, "token_list"), "token_list")
        made = relay.call(key, "token_create", name="lasting", scope="read", projects=[project])
        assert_refused(made, "token_create")
        assert_refused(relay.call(key, "token_revoke", token_id=other), "token_revoke")
    names = [it["name"] for it in target.done("token_list")["tokens"]]
    assert "lasting" not in names, names
    session.end()
    target.done("token_revoke", token_id=token_id)


@quick
def no_agent_widens_a_network(world):
    target = world.target()
    passed, token_id = target.new_token("admin")
    session = target.agent("true", project_id=target.project(), create_workspace=True, api_key=passed)
    session.said()
    wide, key = {"mode": "full"}, session.key()
    with session.relay() as relay:
        assert_refused(relay.call(key, "session_network", session_id=session.id, network=wide), "its own")
        started = {"project_id": session.project, "message": "true", "network": wide, "create_workspace": True}
        assert_refused(relay.call(key, "session_message", **started), "a session it starts")
        project = relay.call(key, "project_create", name="wide", network=wide)
        assert_refused(project, "a project it makes")
    shown = target.done("session_get", session_id=session.id)
    assert shown["network"]["mode"] != "full", shown
    session.end()
    target.done("token_revoke", token_id=token_id)


@quick
def no_agent_answers_its_own_question(world):
    """An agent that requests permission, with an administrator's key, cannot grant it itself."""
    target = world.target()
    passed, token_id = target.new_token("admin")
    script = '{"ask":{"tool":"rm -rf /"}}\n{"print":{}}'
    fields = {"project_id": target.project(), "create_workspace": True, "api_key": passed, "agent": "asks"}
    session = target.agent(script, **fields)

    def question():
        return next((it for it in session.events() if it["type"] == "permission_request"), None)

    asked = eventually(question, "the agent asks")
    option = next(it["id"] for it in asked["options"] if it["kind"].startswith("allow"))
    answer, key = {"request_id": asked["request_id"], "option": option}, session.key()
    with session.relay() as relay:
        refused = relay.call(key, "session_message", session_id=session.id, answer=answer)
        assert_refused(refused, "answering")
        rules = {"otherwise": "allow"}
        refused = relay.call(key, "project_update", project_id=session.project, permissions=rules)
        assert_refused(refused, "changing the rules")
    session.end()
    target.done("token_revoke", token_id=token_id)


@quick
def revoking_a_token_ends_its_sessions(world):
    target = world.target()
    token, token_id = target.new_token("admin")
    project = target.done("project_create", name="theirs", key_level="write", token=token)["project_id"]
    session = target.agent("sleep 4711 >/dev/null 2>&1 & true", project_id=project, create_workspace=True, token=token)
    session.said()
    key = session.key()
    relay = Relay(session.socket())
    target.done("token_revoke", token_id=token_id)

    def is_over():
        return target.done("session_get", session_id=session.id)["status"] in ("ended", "failed", "interrupted")

    eventually(is_over, "the session ends", 15)
    try:
        kind, said = relay.call(key, "session_message", project_id=project, message="true")
    except (OSError, AssertionError, ValueError):
        kind, said = "unauthenticated", "closed"
    assert kind != "ok", said
    live = [it for it in target.done("session_list")["sessions"] if it["project_id"] == project]
    assert all(it["status"] in ("ended", "failed", "interrupted") for it in live), live


@quick
def sessions_that_a_key_starts_count_in_the_tree(world):
    """`max_agents` and `max_depth` apply however a session is started: through its socket, or by a tool with its
    key."""
    target = world.target()
    limits = {"max_agents": 3, "max_depth": 2, "max_sessions": 20}
    project = target.project(key_level="write", limits=limits)
    session = target.agent("true", project_id=project, create_workspace=True)
    session.said()
    key, started = session.key(), []
    with session.relay() as relay:
        for n in range(8):
            tool = ("session_spawn", "session_message")[n % 2]
            more = {} if tool == "session_spawn" else {"message": "true"}
            kind, result = relay.call(key, tool, project_id=project, create_workspace=True, **more)
            if kind == "ok":
                started.append(result["session_id"])
    assert len(started) <= 3, f"{len(started)} sessions where 3 are allowed"
    for it in started:
        shown = target.done("session_get", session_id=it)
        assert shown["root_session_id"] == session.id, f"a root of its own: {shown}"
        assert shown["depth"] >= 1, shown
    ended = session.end()
    assert ended.status == 200, ended
    for it in started:
        assert target.done("session_get", session_id=it)["status"] in ("ended", "failed", "interrupted")


@quick
def a_session_key_works_on_its_own_socket_alone(world):
    target = world.target()
    project = target.project(key_level="write")
    first = target.agent("true", project_id=project, create_workspace=True)
    second = target.agent("true", project_id=project, create_workspace=True)
    first.said(), second.said()
    key = first.key()
    assert target.tool("ping", token=key).status == 401, "over HTTP"
    with second.relay() as relay:
        kind, said = relay.call(key, "ping")
        assert kind in ("unauthenticated", "forbidden"), (kind, said)
    with first.relay() as relay:
        assert relay.call(key, "ping")[0] == "ok"
    first.end()
    second.end()
