#!/usr/bin/env python3
"""Talks to a real daemon with nothing but pyzmq and msgpack, as any program could.

    python tests/interop/hoot01.py target/release/ringback [NAME...]

Each check is a function; its name is what it proves. They run in the order of the imports.
"""

# ruff: noqa: F401, I001
import signal
import sys
import traceback

import calls
import peers
import workers
import garden
import music
import examples
import playback
import jobs
import content
import queries
import events
import crashes
from harness import CHECKS, World

# Seconds for the whole script: a hang is a failure.
WHOLE_LIMIT = 300


def run(function, world):
    """Whether the check passed; prints the result either way."""
    try:
        if not world.daemon.is_running():
            world.daemon.start()
        function(world)
    except Exception as error:
        at = traceback.extract_tb(error.__traceback__)[1:2] or ["?"]
        where = getattr(at[0], "lineno", "?")
        name = f"{function.__module__}.{function.__name__}"
        print(f"FAILED {name} (line {where}): {type(error).__name__}: {error}", flush=True)
        return False
    print(f"ok {function.__name__}", flush=True)
    return True


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: hoot01.py RINGBACK_BINARY [NAME...]")
    signal.signal(signal.SIGALRM, lambda *_: sys.exit(f"not done within {WHOLE_LIMIT} s"))
    signal.alarm(WHOLE_LIMIT)
    wanted = sys.argv[2:]
    world = World(sys.argv[1])
    try:
        checks = [it for it in CHECKS if not wanted or it.__name__ in wanted]
        outcomes = [run(function, world) for function in checks]
        if not all(outcomes):
            log = world.daemon.log_text().splitlines()[-30:]
            print("the end of the daemon's log:", *log, sep="\n  ")
    finally:
        world.close()
    print(f"{sum(outcomes)} passed, {outcomes.count(False)} failed")
    sys.exit(0 if outcomes and all(outcomes) else 1)


if __name__ == "__main__":
    main()
