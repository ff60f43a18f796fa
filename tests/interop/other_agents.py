#!/usr/bin/env python3
"""Lets the agents whose packages are too large for every day be the agents of sessions: Claude Code and Codex, which are
started for each message, and Gemini CLI, driven by the Agent Client Protocol.

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


# Gemini CLI says that it can take up a conversation, and when it is asked to it finds none.


@check
def gemini_cli_is_an_agent_of_a_session(world):
    prove(world, "gemini", "allow", resumes=False)


@check
def gemini_cli_asks_before_it_calls(world):
    prove(world, "gemini", "ask", resumes=False)


if __name__ == "__main__":
    main(World, WHOLE_LIMIT)
