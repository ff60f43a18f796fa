#!/usr/bin/env python3
"""Attacks a built daemon from outside, and from inside its sandboxes. Root only: it mounts small disks.

    python tests/attack/main.py target/release/ringback [--slow] [--rounds N] [--minutes N] [--seed N] [NAME...]

A NAME is a case or a file of cases. Without `--slow` it takes less than two minutes.
"""

import argparse
import importlib
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import world as base  # noqa: E402

# In this order; a file registers its cases when it is imported.
AREAS = [
    "keys",
    "graph",
    "scopes",
    "timeline",
    "queries",
    "clients",
    "box",
    "servers",
    "calls",
    "disk",
    "apply",
    "projects",
    "memory",
    "limits",
    "content",
    "door",
    "browser",
    "damage",
    "fuzz",
    "load",
    "kills",
    "side_by_side",
]
# Seconds for the whole run: a hang is a failure.
QUICK_LIMIT, SLOW_LIMIT = 400, 6 * 3600


def arguments():
    parser = argparse.ArgumentParser(description="Attacks a built daemon.")
    parser.add_argument("binary")
    parser.add_argument("names", nargs="*", help="cases or files of cases; all by default")
    parser.add_argument("--slow", action="store_true", help="run the slow cases in place of the quick ones")
    parser.add_argument("--rounds", type=int, help="rounds of kill -9 (3; 1000 with --slow)")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long the two agents work side by side")
    parser.add_argument("--seed", type=int, help="of everything random; one is drawn and printed if absent")
    return parser.parse_intermixed_args()


def is_wanted(case, names):
    return not names or case.__name__ in names or case.__module__ in names


def run(case, world):
    """Whether the case passed; prints the result either way."""
    started = time.monotonic()
    try:
        case(world)
        verdict = "ok"
    except Exception:
        print(traceback.format_exc(), flush=True)
        verdict = "FAILED"
    print(f"{verdict} {case.__module__}::{case.__name__} {time.monotonic() - started:.1f} s", flush=True)
    return verdict == "ok"


def main():
    options = arguments()
    if os.geteuid() != 0:
        sys.exit("the attack suite mounts small disks and becomes another user: run it as root")
    chosen = base.Options
    chosen.is_slow, chosen.minutes = options.slow, options.minutes
    chosen.rounds = options.rounds or (1000 if options.slow else 3)
    chosen.seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    print(f"seed {chosen.seed}", flush=True)
    for area in AREAS:
        importlib.import_module(area)
    limit = SLOW_LIMIT if options.slow else QUICK_LIMIT
    signal.signal(signal.SIGALRM, lambda *_: sys.exit(f"not done within {limit} s"))
    signal.alarm(limit)
    cases = [case for case in (base.SLOW if options.slow else base.QUICK) if is_wanted(case, options.names)]
    world = base.World(options.binary)
    try:
        outcomes = [run(case, world) for case in cases]
    finally:
        world.close()
    print(f"{sum(outcomes)} passed, {outcomes.count(False)} failed")
    sys.exit(0 if outcomes and all(outcomes) else 1)


if __name__ == "__main__":
    main()
