#!/usr/bin/env python3
"""Lets schemathesis read the API document of a real daemon and try what it allows, and what not.

    python tests/interop/api.py target/release/ringback

Streams without an end are left out: they are tried where their events are read.
"""

import subprocess
import sys
from pathlib import Path

from wire import Daemon

# Seconds: one answer, the generated requests, and the whole script.
ANSWER_LIMIT = 20
GENERATION_LIMIT = 30
WHOLE_LIMIT = 180
ENDLESS = r"^/(event|client-tools/pending/.*|v1/jobs/[^/]+/events)$"
CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
]


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: api.py RINGBACK_BINARY")
    program = Path(sys.executable).parent / "schemathesis"
    with Daemon(sys.argv[1]) as daemon:
        run = subprocess.run(
            [
                str(program), "run", f"{daemon.http}/v1/openapi.json",
                "--header", f"Authorization: Bearer {daemon.token}",
                "--checks", ",".join(CHECKS),
                "--phases", "examples,coverage,fuzzing",
                "--exclude-path-regex", ENDLESS,
                "--request-timeout", str(ANSWER_LIMIT),
                "--max-time", str(GENERATION_LIMIT),
                "--seed", "1", "--no-color",
            ],
            timeout=WHOLE_LIMIT, env=daemon.environment(), cwd=daemon.home,
        )
    sys.exit(run.returncode)


if __name__ == "__main__":
    main()
