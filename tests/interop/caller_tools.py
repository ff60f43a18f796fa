#!/usr/bin/env python3
"""The caller of `docs/caller-tools.md` as printed, and callers with the official MCP SDK in both eras.

    python tests/interop/caller_tools.py target/release/ringback
"""

import asyncio
import json
import os
import re
import secrets
import subprocess
import sys
import traceback
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from mcp import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

from wire import Daemon

ROOT = Path(__file__).parents[2]
# Seconds for one check: a hang is a failure.
LIMIT = 60
CHECKS = []
ERAS = ["legacy", "auto"]
BIG = 12345678901234567890123


def check(function):
    CHECKS.append(function)
    return function


@asynccontextmanager
async def connected(world, mode="auto", **options):
    async with connected_to(f"{world.http}/mcp", world.token, mode, **options) as client:
        yield client


@asynccontextmanager
async def connected_to(url, token, mode, **options):
    async with create_mcp_http_client(headers={"Authorization": f"Bearer {token}"}) as http:
        async with Client(streamable_http_client(url, http_client=http), mode=mode, **options) as client:
            yield client


async def call(client, tool, **arguments):
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, (tool, answer)
    return answer.structured_content


async def refused(client, tool, **arguments):
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error, (tool, answer)
    return answer.content[0].text


def script(*steps):
    return "\n".join(json.dumps(step) for step in steps)


def calls(tool, arguments=None, **expected):
    steps = [{"call": {"tool": tool, "arguments": arguments or {}}}, {"print": {}}]
    return steps + ([{"expect": expected}] if expected else [])


async def start(client, message, tools, caller_id="me", **fields):
    project = await call(client, "project_create", name=f"interop {secrets.token_hex(4)}")
    context = {"caller_id": caller_id, "caller_tools": tools}
    return await call(
        client, "session_message", project_id=project["project_id"], message=message, context=context, **fields
    )


async def poll(client, session):
    """The first waiting call."""
    with anyio.fail_after(LIMIT):
        while True:
            asked = await call(client, "caller_tool_requests", session_id=session, wait_ms=5000)
            if asked["requests"]:
                return asked["requests"][0]


async def finish(client, session):
    """The agent's messages, once it has finished."""
    said, since = [], -1
    with anyio.fail_after(LIMIT):
        while True:
            page = await call(client, "session_events", session_id=session, since_index=since, wait_ms=5000)
            since = page["last_index"]
            said += page["events"]
            if any(event.get("status") == "idle" for event in page["events"]):
                break
    await call(client, "session_end", session_id=session)
    errors = [event for event in said if event["type"] == "error"]
    texts = [event["text"] for event in said if event.get("role") == "assistant"]
    return texts, errors


async def answers_a_poll(world, mode):
    async with connected(world, mode) as client:
        schema = {"type": "object", "properties": {"message": {"type": "string"}}}
        tools = [{"name": "send", "description": "Sends", "inputSchema": schema}]
        steps = [{"list": {}}, *calls("me_send", {"message": "hi", "n": BIG}, is_error=False)]
        session = (await start(client, script(*steps), tools))["session_id"]
        request = await poll(client, session)
        assert request["type"] == "caller_tool_request", request
        assert (request["tool"], request["caller_id"]) == ("send", "me"), request
        assert request["arguments"] == {"message": "hi", "n": BIG}, request
        assert 0 < request["deadline_ms"] <= 60_000, request
        answer = {"session_id": session, "request_id": request["request_id"]}
        both = await refused(client, "caller_tool_response", **answer, result=1, error="no")
        assert "not both" in both, both
        await call(client, "caller_tool_response", **answer, result={"sent": True, "n": BIG})
        again = await refused(client, "caller_tool_response", **answer, result={"forged": True})
        assert "no longer waiting" in again, again
        texts, errors = await finish(client, session)
        assert not errors, errors
        assert json.loads(texts[-1]) == {"sent": True, "n": BIG}, texts


@check
def a_caller_answers_what_it_polls(world):
    """REQ-CTR-001, REQ-CTR-002, REQ-CTR-004: success, once, digit for digit."""
    for mode in ERAS:
        asyncio.run(answers_a_poll(world, mode))


async def answers_with_an_error(world, mode):
    async with connected(world, mode) as client:
        steps = calls("me_send", is_error=True, contains="recipient not found")
        session = (await start(client, script(*steps), [{"name": "send"}]))["session_id"]
        request = await poll(client, session)
        await call(
            client, "caller_tool_response", session_id=session, request_id=request["request_id"],
            error="recipient not found",
        )
        assert not (await finish(client, session))[1]


@check
def a_callers_error_is_the_agents_error(world):
    """REQ-CTR-004 "Tool execution error response"."""
    for mode in ERAS:
        asyncio.run(answers_with_an_error(world, mode))


@asynccontextmanager
async def listening(world, mode):
    """A client that receives calls on a stream, and the queue for them."""
    heard = asyncio.Queue()

    async def on_log(params):
        if params.logger == "oubliette.caller_tool":
            await heard.put(params.data)

    level = {} if mode == "legacy" else {"log_level": "info"}
    async with connected(world, mode, logging_callback=on_log, **level) as client:
        yield client, heard


async def follow(client, mode, message, tools):
    """Starts a session; without a handshake the answer comes when the agent is done."""
    fields = {} if mode == "legacy" else {"follow": True}
    return (await start(client, message, tools, **fields))["session_id"]


async def is_told_on_its_stream(world, mode):
    async with listening(world, mode) as (client, heard):
        steps = calls("me_send", {"message": "hi"}, is_error=False, contains="pushed")
        started = asyncio.create_task(follow(client, mode, script(*steps), [{"name": "send"}]))
        with anyio.fail_after(LIMIT):
            request = await heard.get()
        assert request["type"] == "caller_tool_request" and request["tool"] == "send", request
        assert request["arguments"] == {"message": "hi"}, request
        session = request["session_id"]
        await call(
            client, "caller_tool_response", session_id=session, request_id=request["request_id"],
            result={"pushed": True},
        )
        assert await started == session
        assert not (await finish(client, session))[1]


@check
def a_caller_is_told_on_its_stream(world):
    """REQ-CTR-003: the event; with a handshake without setting a log level first."""
    for mode in ERAS:
        asyncio.run(is_told_on_its_stream(world, mode))


async def disconnects(world, mode):
    steps = calls("me_send", is_error=True, contains="gone")
    async with listening(world, mode) as (client, heard):
        started = asyncio.create_task(follow(client, mode, script(*steps), [{"name": "send"}]))
        with anyio.fail_after(LIMIT):
            session = (await heard.get())["session_id"]
        if mode == "legacy":
            await started
        started.cancel()
        await asyncio.gather(started, return_exceptions=True)
    async with connected(world, mode) as witness:
        with anyio.fail_after(30):  # its tool would have had a minute
            assert not (await finish(witness, session))[1]


@check
def a_caller_that_disconnects_is_gone_at_once(world):
    """REQ-CTR-001 "Caller disconnected before response"."""
    for mode in ERAS:
        asyncio.run(disconnects(world, mode))


async def times_out(world, mode):
    async with connected(world, mode) as client:
        tools = [{"name": "slow", "timeoutMs": 300}]
        steps = calls("me_slow", is_error=True)
        session = (await start(client, script(*steps), tools))["session_id"]
        request = await poll(client, session)
        texts, errors = await finish(client, session)
        assert not errors and "300 ms" in texts[-1], (texts, errors)
        late = await refused(
            client, "caller_tool_response", session_id=session, request_id=request["request_id"], result=1
        )
        assert late, late


@check
def a_call_that_nobody_answers_times_out(world):
    """REQ-CTR-001 "Caller tool request times out"."""
    for mode in ERAS:
        asyncio.run(times_out(world, mode))


async def has_its_tools_changed(world, mode):
    async with connected(world, mode) as client:
        steps = [
            {"wait_tool": {"tool": "me_second", "timeout_ms": 20_000}},
            *calls("me_second", is_error=False),
            *calls("me_first", is_error=True),
        ]
        started = await start(client, script(*steps), [{"name": "first"}])
        session = started["session_id"]
        context = {"caller_id": "me", "caller_tools": [{"name": "second"}]}
        await call(client, "session_message", session_id=session, message="# nothing", context=context)
        request = await poll(client, session)
        assert request["tool"] == "second", request
        await call(
            client, "caller_tool_response", session_id=session, request_id=request["request_id"], result=None
        )
        assert not (await finish(client, session))[1]


@check
def declaring_again_replaces_the_tools_of_a_running_session(world):
    """REQ-CTR-002: the list changes live, and removed tools cannot be called."""
    for mode in ERAS:
        asyncio.run(has_its_tools_changed(world, mode))


async def is_an_agent_elsewhere(world, mode):
    async with connected(world, mode) as caller:
        schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
        context = {"caller_id": "me", "caller_tools": [{"name": "weather", "inputSchema": schema}]}
        opened = await call(caller, "session_open", context=context)
        session = opened["session_id"]
        async with connected_to(opened["url"], opened["token"], mode) as agent:
            listed = (await agent.list_tools()).tools
            assert [tool.name for tool in listed] == ["me_weather"], listed
            assert listed[0].input_schema == schema, listed
            asked = asyncio.create_task(agent.call_tool("me_weather", {"city": "Oslo"}))
            request = await poll(caller, session)
            assert request["arguments"] == {"city": "Oslo"}, request
            await call(
                caller, "caller_tool_response", session_id=session, request_id=request["request_id"],
                result={"sky": "snow", "n": BIG},
            )
            answer = await asked
            assert answer.structured_content == {"sky": "snow", "n": BIG}, answer
            misfit = await agent.call_tool("me_weather", {})
            assert misfit.is_error, misfit
        await call(caller, "session_end", session_id=session)


@check
def an_agent_elsewhere_is_an_mcp_client_of_its_session(world):
    """The session as a URL, with the official SDK as the agent and as the caller."""
    for mode in ERAS:
        asyncio.run(is_an_agent_elsewhere(world, mode))


@check
def the_caller_of_the_documentation_works_as_printed(world):
    page = (ROOT / "docs/caller-tools.md").read_text()
    program = re.search(r"```python\n(.*?)```", page, re.DOTALL).group(1)
    environment = os.environ | {"RINGBACK_URL": f"{world.http}/mcp", "RINGBACK_TOKEN": world.token}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, text=True, capture_output=True, timeout=LIMIT
    )
    assert done.returncode == 0, done.stderr
    assert "tool_call me_weather" in done.stdout, done.stdout
    assert '"sky":"snow"' in done.stdout.replace(" ", ""), done.stdout


def run(function, world):
    """Whether the check passed; prints the result either way."""
    try:
        function(world)
    except Exception:
        print(f"FAILED {function.__name__}\n{traceback.format_exc()}", flush=True)
        return False
    print(f"ok {function.__name__}", flush=True)
    return True


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: caller_tools.py RINGBACK_BINARY [NODE_DIRECTORY] [NAME...]")
    wanted = [name for name in sys.argv[2:] if "/" not in name]
    world = Daemon(sys.argv[1])
    try:
        checks = [it for it in CHECKS if not wanted or it.__name__ in wanted]
        outcomes = [run(function, world) for function in checks]
        if not all(outcomes):
            print("the end of the daemon's log:", *world.log_text().splitlines()[-20:], sep="\n  ")
    finally:
        world.clean_up()
    print(f"{sum(outcomes)} passed, {outcomes.count(False)} failed")
    sys.exit(0 if outcomes and all(outcomes) else 1)


if __name__ == "__main__":
    main()
