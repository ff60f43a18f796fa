"""The hostile agent: runs each message as a shell script, and reports its output. `flood N SIZE` reports N texts of
SIZE bytes instead."""

import json
import subprocess
import sys


def say(event):
    sys.stdout.write(json.dumps(event) + "\n")


def run(script):
    done = subprocess.run(
        ["/bin/sh", "-c", script],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    say({"type": "message", "text": done.stdout.decode(errors="replace") or f"exit code {done.returncode}"})


def flood(count, size):
    for n in range(count):
        say({"type": "message", "text": f"{n} " + "x" * size})


for line in sys.stdin:
    text = json.loads(line)["text"]
    if text.startswith("flood "):
        flood(*map(int, text.split()[1:]))
    else:
        run(text)
    say({"type": "done"})
    sys.stdout.flush()
