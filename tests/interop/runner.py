"""Runs the checks of a script that gets a daemon's program and a directory with Node packages."""

import signal
import sys
import traceback

CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


def run(function, world):
    """Whether the check passed; prints the result either way."""
    try:
        function(world)
    except Exception:
        print(f"FAILED {function.__name__}\n{traceback.format_exc()}", flush=True)
        return False
    print(f"ok {function.__name__}", flush=True)
    return True


def main(make_world, limit):
    """Runs all checks, or those named on the command line, and ends the process: exceeding the time limit in seconds
    is a failure."""
    if len(sys.argv) < 3:
        sys.exit(f"usage: {sys.argv[0]} RINGBACK_BINARY NODE_DIRECTORY [NAME...]")
    signal.signal(signal.SIGALRM, lambda *_: sys.exit(f"not done within {limit} s"))
    signal.alarm(limit)
    wanted = sys.argv[3:]
    world = make_world(sys.argv[1], sys.argv[2])
    try:
        checks = [it for it in CHECKS if not wanted or it.__name__ in wanted]
        outcomes = [run(function, world) for function in checks]
        if not all(outcomes):
            log = world.daemon.log_text().splitlines()[-20:]
            print("the end of the daemon's log:", *log, sep="\n  ")
    finally:
        world.close()
    print(f"{sum(outcomes)} passed, {outcomes.count(False)} failed")
    sys.exit(0 if outcomes and all(outcomes) else 1)
