#!/usr/bin/env python3
"""Runs real agents, goose and opencode, that call a tool of a real daemon. Only their model is scripted.

    python tests/interop/agents.py target/release/ringback target/node [NAME...]

The second argument is a directory with the Node packages of `tests/interop/mcp/package.json`.
"""

import base64
import json
import os
import secrets
import signal
import subprocess
import time
from pathlib import Path

import zmq

from model import FINAL, NAME, Model
from runner import check, main
from wire import Daemon, Peer

# Seconds for one agent, and for the whole script: on a quiet machine they take one and six each.
LIMIT = 150
WHOLE_LIMIT = 600
# Seconds for an agent's leftovers to go.
LEAVE_LIMIT = 5
PROMPT = "Store the text."


class Home:
    """The directories of a person who uses an agent with the daemon."""

    def __init__(self, daemon, model):
        self.path = daemon.home / secrets.token_hex(4)
        self.config = self.path / ".config"
        self.work = self.path / "work"
        self.work.mkdir(parents=True)
        self.daemon = daemon
        self.model = model
        own = self.config / "ringback/config.toml"
        own.parent.mkdir(parents=True)
        address = daemon.http.removeprefix("http://")
        data = daemon.home / "data"
        own.write_text(f"data_dir = {json.dumps(str(data))}\n[http]\nlisten = \"{address}\"\n")

    def environment(self):
        """Nothing of the environment of the tests' user except the program path."""
        return self.model.offline() | {
            "PATH": os.environ["PATH"],
            "HOME": str(self.path),
            "XDG_CONFIG_HOME": str(self.config),
            "XDG_DATA_HOME": str(self.path / ".local/share"),
            "XDG_STATE_HOME": str(self.path / ".local/state"),
            "XDG_CACHE_HOME": str(self.path / ".cache"),
            "TMPDIR": str(self.path),
        }

    def install(self, agent):
        """The documented way to set up an agent."""
        ringback = str(Path(self.daemon.binary).resolve())
        done = subprocess.run(
            [ringback, "mcp", "install", agent, "--yes"], env=self.environment(), timeout=LIMIT,
            text=True, capture_output=True, stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, done.stderr

    def run(self, *command, **variables):
        """Runs an agent to its end, and ends its leftovers. Returns its output."""
        log = self.path / "said"
        with open(log, "wb") as said:
            agent = subprocess.Popen(
                command, cwd=self.work, env=self.environment() | variables, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT,
            )
            try:
                code = agent.wait(LIMIT)
            except subprocess.TimeoutExpired:
                code = f"none within {LIMIT} s"
            finally:
                end_group(agent)
        text = log.read_text(errors="replace")
        assert code == 0, f"exit code {code}\n{text}\n{self.model.requests[-1:]}"
        return text


def end_group(agent):
    """Ends an agent and everything it started."""
    ends_at = time.monotonic() + LEAVE_LIMIT
    try:
        os.killpg(agent.pid, signal.SIGTERM)
        while time.monotonic() < ends_at:
            agent.poll()
            os.killpg(agent.pid, 0)
            time.sleep(0.02)
        os.killpg(agent.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    agent.wait()


class World:
    """The daemon under test, and the agents' directory."""

    def __init__(self, binary, node_dir):
        self.context = zmq.Context()
        self.daemon = Daemon(binary)
        modules = Path(node_dir).resolve() / "node_modules"
        self.goose_program = str(modules / "@aaif/goose-binary-linux-x64/bin/goose")
        self.opencode_program = str(modules / "opencode-linux-x64-baseline/bin/opencode")

    def prove(self, use):
        """Lets an agent store a unique text, and looks for it on both sides."""
        text = secrets.token_hex(16).encode()
        arguments = {"data": base64.b64encode(text).decode(), "mime_type": "text/plain"}
        with Model(("cas_store", arguments)) as model:
            home = Home(self.daemon, model)
            started = time.monotonic()
            said = use(home)
            took = time.monotonic() - started
            assert FINAL in said, said
            results = model.results()
            assert len(results) == 1, f"the model got {results}\n{said}"
            told = results[0]
            stray = f", refused: {', '.join(sorted(set(model.strayed)))}" if model.strayed else ""
        # The model never knew the hash: it can only come from the daemon.
        digest = hash_in(told)
        with Peer(self.context, self.daemon.hoot, self.daemon.token) as peer:
            stored = peer.success("cas_get", {"hash": digest})
            assert stored["data"] == text, stored
        print(f"   {took:.1f} s, {len(model.requests)} requests to the model{stray}", flush=True)

    def goose(self, home):
        return home.run(
            self.goose_program, "run", "--no-session", "--text", PROMPT,
            GOOSE_PROVIDER="openai", GOOSE_MODEL=NAME, GOOSE_MODE="auto", GOOSE_DISABLE_KEYRING="1",
            OPENAI_HOST=home.model.url, OPENAI_API_KEY="none",
        )

    def opencode(self, home):
        return home.run(
            self.opencode_program, "run", "--model", f"script/{NAME}", PROMPT,
            OPENCODE_DISABLE_MODELS_FETCH="1", OPENCODE_DISABLE_AUTOUPDATE="1",
        )

    def close(self):
        self.daemon.clean_up()
        self.context.destroy(linger=0)


def hash_in(text):
    """The only hash in a text with a JSON object somewhere in it."""
    result, _ = json.JSONDecoder().raw_decode(text[text.index("{"):])
    return result["hash"]


def opencode_settings(home, **mcp):
    path = home.config / "opencode/opencode.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Script",
        "options": {"baseURL": f"{home.model.url}/v1", "apiKey": "none"},
        "models": {NAME: {"name": NAME}},
    }
    settings = {"provider": {"script": provider}, "permission": {"*": "allow"}} | mcp
    path.write_text(json.dumps(settings, indent=2))


@check
def goose_calls_a_tool_through_ringback_mcp(world):
    def use(home):
        home.install("goose")
        return world.goose(home)

    world.prove(use)


@check
def goose_calls_a_tool_over_http(world):
    def use(home):
        path = home.config / "goose/config.yaml"
        path.parent.mkdir(parents=True)
        # JSON is valid YAML.
        path.write_text(json.dumps({"extensions": {"ringback": {
            "type": "streamable_http", "name": "ringback", "enabled": True, "timeout": LIMIT,
            "uri": f"{world.daemon.http}/mcp",
            "headers": {"Authorization": f"Bearer {world.daemon.token}"},
        }}}))
        return world.goose(home)

    world.prove(use)


@check
def opencode_calls_a_tool_through_ringback_mcp(world):
    def use(home):
        opencode_settings(home)
        home.install("opencode")
        return world.opencode(home)

    world.prove(use)


@check
def opencode_calls_a_tool_over_http(world):
    def use(home):
        headers = {"Authorization": f"Bearer {world.daemon.token}"}
        opencode_settings(home, mcp={"ringback": {
            "type": "remote", "url": f"{world.daemon.http}/mcp", "headers": headers,
            "enabled": True, "oauth": False,
        }})
        return world.opencode(home)

    world.prove(use)


if __name__ == "__main__":
    main(World, WHOLE_LIMIT)
