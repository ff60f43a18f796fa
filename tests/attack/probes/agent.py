"""The hostile agent: runs each message as a shell script, and says what that printed."""

import json
import subprocess
import sys

for line in sys.stdin:
    script = json.loads(line)["text"]
    done = subprocess.run(["/bin/sh", "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    text = done.stdout.decode(errors="replace")
    print(json.dumps({"type": "message", "text": text or f"exit code {done.returncode}"}))
    print(json.dumps({"type": "done"}), flush=True)
