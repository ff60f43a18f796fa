#!/usr/bin/env python3
"""Runs the agents whose packages are too large for daily use as the agents of sessions: Claude Code and Codex, which
run once for each message, and Gemini CLI, driven by the Agent Client Protocol.

    python tests/interop/other_agents.py target/release/ringback target/agents [NAME...]
"""

from conversations import WHOLE_LIMIT, World, prove
from runner import check, main


@check
def claude_code_is_an_agent_of_a_session(world):
    prove(world, "claude", "allow")


@check
def codex_is_an_agent_of_a_session(world):
    prove(world, "codex", "allow")


# Gemini CLI claims that it can resume a conversation, but then does not find it.


@check
def gemini_cli_is_an_agent_of_a_session(world):
    prove(world, "gemini", "allow", resumes=False)


@check
def gemini_cli_asks_before_it_calls(world):
    prove(world, "gemini", "ask", resumes=False)


if __name__ == "__main__":
    main(World, WHOLE_LIMIT)
