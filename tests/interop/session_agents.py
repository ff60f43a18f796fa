#!/usr/bin/env python3
"""Runs real agents, goose and opencode, as the agents of sessions, driven by the Agent Client Protocol.

    python tests/interop/session_agents.py target/release/ringback target/node [NAME...]
"""

import json
import os
import re
import secrets
import subprocess
import tempfile
from pathlib import Path

from conversations import LIMIT, WHOLE_LIMIT, World, prove, prove_key
from model import Model
from runner import check, main


@check
def goose_makes_a_project_with_a_key_of_the_users(world):
    prove_key(world, "goose")


@check
def opencode_makes_a_project_with_a_key_of_the_users(world):
    prove_key(world, "opencode")


@check
def goose_is_an_agent_of_a_session(world):
    prove(world, "goose", "allow")


@check
def goose_asks_before_it_calls(world):
    prove(world, "goose", "ask")


@check
def opencode_is_an_agent_of_a_session(world):
    prove(world, "opencode", "allow")


@check
def opencode_asks_before_it_calls(world):
    prove(world, "opencode", "ask")


@check
def goose_works_on_a_copy_as_the_readme_says(world):
    """Its first example, as typed: the agent changes a file, rings back, and its changes are applied."""
    text, line = secrets.token_hex(16), secrets.token_hex(16)
    calls = [("shell", {"command": f"echo {line} > made.txt"}), ("here_notify", {"text": text})]
    with Model(*calls) as model, tempfile.TemporaryDirectory() as directory:
        daemon = world.start(model, "goose", "allow", "sk-model")
        notify, made = Path(directory, "notify.sh"), Path(directory, "made.txt")
        notify.write_text("#!/bin/sh\ncat > notified\n")
        notify.chmod(0o755)
        environment = daemon.environment() | {
            "RINGBACK_DAEMON": daemon.hoot, "RINGBACK_TOKEN": daemon.token, "XDG_STATE_HOME": str(daemon.home),
        }

        def ringback(*words):
            done = subprocess.run(
                [os.path.abspath(world.binary), *words], cwd=directory, env=environment, capture_output=True,
                text=True, timeout=LIMIT, check=False,
            )
            assert done.returncode == 0, (done, model.requests)
            return done

        ran = ringback(
            "run", "fix the failing test", "--agent", "goose", "--dir", ".", "--tool", "notify=./notify.sh"
        )
        assert json.loads(Path(directory, "notified").read_text()) == {"text": text}
        assert f"+{line}" in ran.stdout and not made.exists(), ran
        [session] = set(re.findall(r"gogol_[0-9a-z-]+", ran.stderr))
        ringback("session", "apply", session)
        assert made.read_text() == f"{line}\n"


if __name__ == "__main__":
    main(World, WHOLE_LIMIT)
