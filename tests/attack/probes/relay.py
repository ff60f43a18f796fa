"""Calls the daemon from inside a sandbox: `relay.py METHOD PARAMS` prints the answer, both JSON. `KEY` in the params
stands for the session key."""

import json
import os
import socket
import sys

method, params = sys.argv[1], sys.argv[2].replace("KEY", os.environ.get("OUBLIETTE_API_KEY", ""))
connection = socket.socket(socket.AF_UNIX)
connection.connect(os.environ["RINGBACK_SOCKET"])
line = {"jsonrpc": "2.0", "id": 1, "method": method, "params": json.loads(params)}
connection.sendall(json.dumps(line).encode() + b"\n")
for answer in connection.makefile():
    if json.loads(answer).get("id") == 1:
        print(answer, end="")
        break
