"""Runs a program as the agent of a session: in a sandbox without a network, with a caller tool, and a model whose
key it never sees. Only the model is scripted."""

import asyncio
import json
import secrets
import tempfile
import time
from pathlib import Path

import anyio

from caller_tools import call, connected
from model import FINAL, NAME, Model
from wire import Daemon

# Seconds for one agent's work, and for the whole script.
LIMIT = 150
WHOLE_LIMIT = 800
PROMPT = "Send the message, please."
TOOL = {
    "name": "send", "description": "Sends a message",
    "inputSchema": {"type": "object", "properties": {"message": {"type": "string"}}},
}


# The agents' paths in the Node packages.
PROGRAMS = {
    "claude": "@anthropic-ai/claude-code-linux-x64/claude",
    "codex": "@openai/codex/bin/codex.js",
    "gemini": "@google/gemini-cli/bundle/gemini.js",
    "goose": "@aaif/goose-binary-linux-x64/bin/goose",
    "opencode": "opencode-linux-x64-baseline/bin/opencode",
}
# The header of the key, for providers that use another one than most.
HEADERS = {"claude": "x-api-key", "gemini": "x-goog-api-key"}
# Those that run once for each message: they report only their answer, and request no permissions.
ONE_SHOT = ["claude", "codex"]
# Those that do not report the usage of a turn.
WITHOUT_USAGE = ["gemini"]


def toml(value):
    """An inline table."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(it)}" for key, it in value.items()) + " }"
    return json.dumps(value)


class World:
    """The directories of the programs."""

    def __init__(self, binary, node_dir):
        self.binary, self.modules = binary, Path(node_dir).resolve() / "node_modules"
        self.daemon = self.home = None

    def start(self, model, agent, permissions, key):
        entry = {
            "preset": agent, "command": [str(self.modules / PROGRAMS[agent])], "permissions": permissions,
            "provider": "script", "model": NAME,
        }
        self.close()
        self.home = tempfile.TemporaryDirectory()
        config, key_file = Path(self.home.name, "config.toml"), Path(self.home.name, "key")
        key_file.touch(mode=0o600)
        key_file.write_text(key)
        header = HEADERS.get(agent, "authorization")
        provider = {"url": model.url, "key_file": str(key_file), "header": header}
        config.write_text(
            f"[sessions]\nagents = {toml({agent: entry})}\n[providers]\nscript = {toml(provider)}\n"
        )
        self.daemon = Daemon(self.binary, RINGBACK_CONFIG=str(config))
        return self.daemon

    def close(self):
        if self.daemon:
            self.daemon.clean_up()
            self.home.cleanup()


class Caller:
    """The caller of a session: answers its tool calls and the agent's permission requests."""

    def __init__(self, client, session, answer):
        self.client, self.session, self.answer = client, session, answer
        self.asked, self.allowed, self.since = [], [], -1

    async def turn(self):
        """Reads up to the end of a turn. Returns the events."""
        events = []
        with anyio.fail_after(LIMIT):
            while not any(event.get("status") == "idle" for event in events):
                page = await call(
                    self.client, "session_events", session_id=self.session, since_index=self.since,
                    wait_ms=300,
                )
                self.since = page["last_index"]
                events += page["events"]
                for event in page["events"]:
                    if event["type"] == "permission_request":
                        await self.allow(event)
                await self.serve()
        errors = [event for event in events if event["type"] in ("error", "agent_garbage")]
        assert not errors, errors
        return events

    async def allow(self, event):
        option = next(it["id"] for it in event["options"] if it["kind"] == "allow_once")
        self.allowed.append(event["tool_name"])
        answer = {"request_id": event["request_id"], "option": option}
        await call(self.client, "session_message", session_id=self.session, answer=answer)

    async def serve(self):
        waiting = await call(self.client, "caller_tool_requests", session_id=self.session, wait_ms=0)
        for request in waiting["requests"]:
            self.asked.append(request["arguments"])
            await call(
                self.client, "caller_tool_response", session_id=self.session,
                request_id=request["request_id"], result={"sent": self.answer},
            )


def said(events):
    return " ".join(event["text"] for event in events if event.get("role") == "assistant")


async def converse(world, model, agent, message, permissions):
    answer = secrets.token_hex(16)
    daemon = world.daemon
    started = time.monotonic()
    async with connected(daemon) as client:
        project = await call(client, "project_create", name=f"interop {secrets.token_hex(4)}")
        context = {"caller_id": "me", "caller_tools": [TOOL]}
        opened = await call(
            client, "session_message", project_id=project["project_id"], agent=agent, message=PROMPT,
            context=context,
        )
        assert opened["confined"] is True, opened
        caller = Caller(client, opened["session_id"], answer)
        events = await caller.turn()
        assert caller.asked == [{"message": message}], (caller.asked, events)
        assert FINAL in said(events), events
        results = model.results()
        assert len(results) == 1 and answer in results[0], results
        if agent not in ONE_SHOT:
            assert any(event["type"] == "tool_call" for event in events), events
            completion = next(event for event in events if event["type"] == "completion")
            assert agent in WITHOUT_USAGE or completion["usage"]["total_tokens"] > 0, completion
        assert bool(caller.allowed) == (permissions == "ask"), caller.allowed
        # A second message continues the same conversation.
        await call(client, "session_message", session_id=opened["session_id"], message="Again.")
        assert FINAL in said(await caller.turn())
        assert PROMPT in json.dumps(model.requests[-1]["messages"]), model.requests[-1]
        # The agent's own files are not part of its work.
        changed = await call(
            client, "workspace_diff", project_id=project["project_id"], workspace_id=opened["workspace_id"],
        )
        assert changed["changes"] == [], changed
    print(f"   {time.monotonic() - started:.1f} s, {len(model.requests)} requests to the model", flush=True)
    return opened["session_id"], caller.since


async def go_on(world, model, session, since):
    """After a restart of the daemon the conversation is the same."""
    n_requests = len(model.requests)
    async with connected(world.daemon) as client:
        await call(client, "session_message", session_id=session, message="Once more.")
        caller = Caller(client, session, "")
        caller.since = since
        assert FINAL in said(await caller.turn())
        await call(client, "session_end", session_id=session)
    asked = json.dumps([request["messages"] for request in model.requests[n_requests:]])
    assert PROMPT in asked and "Once more." in asked, asked


def prove(world, agent, permissions, resumes=True):
    message, key = secrets.token_hex(16), f"sk-{secrets.token_hex(16)}"
    with Model(("me_send", {"message": message})) as model:
        daemon = world.start(model, agent, permissions, key)
        session, since = asyncio.run(converse(world, model, agent, message, permissions))
        assert daemon.terminate() == 0
        if resumes:
            daemon.start()
            asyncio.run(go_on(world, model, session, since))
        # Only the daemon had the key, and every request went through it.
        assert model.credentials == {key if agent in HEADERS else f"Bearer {key}"}, model.credentials


async def create(world, model, agent, name):
    """With the user's own key an agent makes a project, and reports the result."""
    async with connected(world.daemon) as client:
        project = await call(client, "project_create", name=f"interop {secrets.token_hex(4)}")
        token = await call(client, "token_create", name="for the agent", scope="write")
        opened = await call(
            client, "session_message", project_id=project["project_id"], agent=agent, message=PROMPT,
            api_key=token["token"],
        )
        events = await Caller(client, opened["session_id"], "").turn()
        listed = await call(client, "project_list", name_contains=name)
        made = [it["project_id"] for it in listed["projects"] if it["name"] == name]
        assert len(made) == 1, (listed, events)
        assert made[0] in said(events), events
        assert token["token"] not in json.dumps([model.requests, events])
        await call(client, "session_end", session_id=opened["session_id"])
        await call(client, "token_revoke", token_id=token["token_id"])


def prove_key(world, agent):
    name = secrets.token_hex(8)
    with Model(("oubliette_project_create", {"name": name}), repeats=True) as model:
        world.start(model, agent, "allow", "sk-model")
        asyncio.run(create(world, model, agent, name))
