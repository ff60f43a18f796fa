"""What schemathesis is told before each request of `api.py`."""

import schemathesis

# Tools of clients that the fuzzer itself has registered: nobody holds a stream for them, so a call waits
# for one until its time is up and is 504 then, as it should be.
UNATTENDED = "client_"
NOBODY = "client_nobody_nothing"

# Milliseconds. A call that is given less may be 504, as the caller asked for; how deadlines end calls is
# tried where the outcome is known beforehand.
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
