#!/usr/bin/env python3
"""Lets schemathesis read the committed API document and try what it allows and forbids on a real daemon.

    python tests/interop/api.py target/release/ringback schemas/openapi.json

Endless streams are left out: they are tested where their events are read.
"""

import subprocess
import sys
from pathlib import Path

from wire import Daemon

# Seconds: one answer (a tool may wait for 30), the generated requests, and the whole script.
ANSWER_LIMIT = 45
GENERATION_LIMIT = 60
WHOLE_LIMIT = 180
SESSIONS_MAX = "100000"
ENDLESS = r"^/(event|client-tools/pending/.*|v1/(jobs|sessions)/[^/]+/events|v1/garden/monitor\..*)$"
CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
]


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: api.py RINGBACK_BINARY DOCUMENT")
    binary, document = sys.argv[1], Path(sys.argv[2]).absolute()
    program = Path(sys.executable).parent / "schemathesis"
    hooks = {"SCHEMATHESIS_HOOKS": "api_hooks", "PYTHONPATH": str(Path(__file__).parent.absolute())}
    # Sessions that requests open by chance are never ended; one more than a project may have is 503, as it should be,
    # and is tested where that is predictable.
    with Daemon(binary, RINGBACK_SESSIONS__MAX_SESSIONS=SESSIONS_MAX) as daemon:
        run = subprocess.run(
            [
                str(program), "run", str(document), "--url", daemon.http,
                "--header", f"Authorization: Bearer {daemon.token}",
                "--checks", ",".join(CHECKS),
                "--phases", "examples,coverage,fuzzing",
                "--exclude-path-regex", ENDLESS,
                "--request-timeout", str(ANSWER_LIMIT),
                "--max-time", str(GENERATION_LIMIT),
                "--seed", "1", "--no-color", "--warnings", "off",
            ],
            timeout=WHOLE_LIMIT, env=daemon.environment() | hooks, cwd=daemon.home,
        )
        if run.returncode != 0:
            print("the end of the daemon's log:", *daemon.log_text().splitlines()[-30:], sep="\n  ")
    sys.exit(run.returncode)


if __name__ == "__main__":
    main()
