"""Hooks of schemathesis before each request of `api.py`."""

import schemathesis

# Tools of clients that the fuzzer itself has registered: without an open stream, a call waits for one until it times
# out and is 504 then, as it should be.
UNATTENDED = "client_"
NOBODY = "client_nobody_nothing"

# Milliseconds. A shorter deadline may result in 504, as the caller requested; how deadlines end calls is tested where
# the outcome is predictable.
DEADLINE_LEAST = 30_000


@schemathesis.hook
def before_call(context, case, **kwargs):
    name = (case.path_parameters or {}).get("name")
    if isinstance(name, str) and name.startswith(UNATTENDED):
        case.path_parameters["name"] = NOBODY
    if isinstance(case.body, dict) and "toolID" in case.body:
        case.body["toolID"] = NOBODY
    deadline = (case.query or {}).get("deadline_ms")
    if isinstance(deadline, int) and 0 < deadline < DEADLINE_LEAST:
        case.query["deadline_ms"] = DEADLINE_LEAST
