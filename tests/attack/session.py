"""A session, seen by its caller and by its agent."""

import contextlib
import json
import socket
import time
from pathlib import Path

# Seconds. Generous, because a loaded machine is not a broken daemon; anything slower has failed.
LIMIT = 40


class Session:
    """A session, seen by its caller and, through its socket, by its agent."""

    def __init__(self, target, fields, message):
        self.target, self.token = target, fields.pop("token", "")
        self.limit = fields.pop("limit", LIMIT)
        others = target.sockets()
        started = target.done("session_message", {**fields, "message": message}, token=self.token)
        assert started["confined"] is True, started
        self.id, self.workspace, self.project = started["session_id"], started["workspace_id"], fields["project_id"]
        self.since, self.status = -1, "starting"
        self.places = target.sockets() - others

    def events(self, wait_ms=500, **fields):
        page = self.target.done(
            "session_events", session_id=self.id, since_index=self.since, wait_ms=wait_ms, token=self.token, **fields
        )
        self.since, self.status = page["last_index"], page["status"]
        return page["events"]

    def said(self, limit=None):
        """The agent's messages until it rested or ended."""
        texts, ends_at = [], time.monotonic() + (limit or self.limit)
        while time.monotonic() < ends_at:
            events = self.events()
            texts += [it["text"] for it in events if it.get("role") == "assistant"]
            over = ("idle", "completed", "ended", "failed", "interrupted")
            if any(it.get("status") in over for it in events):
                return "\n".join(texts)
        raise AssertionError(f"the agent was not done in time: {texts}")

    def tell(self, message, **fields):
        self.target.done("session_message", session_id=self.id, message=message, token=self.token, **fields)
        return self

    def ask(self, message):
        return self.tell(message).said()

    def end(self, limit=LIMIT):
        return self.target.tool("session_end", session_id=self.id, token=self.token, limit=limit)

    def path(self):
        shown = self.target.done("session_get", session_id=self.id, token=self.token)
        return Path(shown["workspace_path"])

    def key(self):
        """The agent's key, whatever the user passed; empty if it has none."""
        for path in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                variables = dict(it.split("=", 1) for it in path.read_text().split("\0") if "=" in it)
                if variables.get("RINGBACK_SESSION") == self.id:
                    return variables.get("OUBLIETTE_API_KEY", "")
        raise AssertionError(f"no agent of {self.id} runs")

    def socket(self):
        """The socket that its agent calls, as the host sees it."""
        [place] = self.places
        return str(place)

    @contextlib.contextmanager
    def relay(self):
        with Relay(self.socket()) as relay:
            yield relay


class Relay:
    """The lines that an agent and the daemon exchange."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(LIMIT)
        self.socket.connect(path)
        self.lines, self.n_asked = self.socket.makefile("rb"), 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lines.close()
        self.socket.close()

    def ask(self, method, **params):
        """The whole answer: with `result` or with `error`."""
        self.n_asked += 1
        line = {"jsonrpc": "2.0", "id": self.n_asked, "method": method, "params": params}
        self.socket.sendall(json.dumps(line).encode() + b"\n")
        return self.answer(self.n_asked)

    def answer(self, request_id):
        while line := self.lines.readline():
            answer = json.loads(line)
            if answer.get("id") == request_id and "method" not in answer:
                return answer
        raise AssertionError("the daemon closed the connection")

    def call(self, key, tool, **arguments):
        """Calls one of the daemon's tools with a key: `("ok", result)`, or `(kind, message)` of the error."""
        answer = self.ask("oubliette_call_tool", api_key=key, tool=tool, arguments=arguments)
        if "error" in answer:
            return answer["error"]["data"]["kind"], answer["error"]["message"]
        result = answer["result"]
        if result["isError"]:
            error = result.get("_meta", {}).get("ringback/error", {})
            return error.get("kind", error.get("code", "error")), json.dumps(result)
        return "ok", result.get("structuredContent")
