"""An MCP client for the examples: one call at a time, over HTTP, without dependencies."""

import json
import urllib.request


class Ringback:
    """An MCP client of one call at a time."""

    def __init__(self, url, token):
        self.url, self.token, self.session, self.count = url, token, None, 0
        client = {"name": "example", "version": "1"}
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def post(self, message):
        headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json",
                   "accept": "application/json, text/event-stream"}
        if self.session:
            headers["mcp-session-id"] = self.session
        request = urllib.request.Request(self.url, json.dumps(message).encode(), headers)
        with urllib.request.urlopen(request) as answer:
            self.session = answer.headers.get("mcp-session-id") or self.session
            text = answer.read().decode()
            if answer.headers.get_content_type() != "text/event-stream":
                return text
            # The answer is the last event of the stream.
            return [line[5:] for line in text.splitlines() if line.startswith("data:")][-1]

    def ask(self, method, params):
        self.count += 1
        answer = self.post({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params})
        answer = json.loads(answer)
        if "error" in answer:
            raise SystemExit(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def call(self, tool, **arguments):
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise SystemExit(f"{tool}: {result['content'][0]['text']}")
        return result["structuredContent"]

    def finished(self, tool, **arguments):
        """Calls a tool, and waits for its job if it made one."""
        result = self.call(tool, **arguments)
        while "status" not in result and "artifacts" not in result and "job_id" in result:
            job = result["job_id"]
            if self.call("job_poll", job_ids=[job], timeout_ms=30_000)["pending"]:
                continue
            ended = self.call("job_status", job_id=job)
            if ended["status"] != "complete":
                raise SystemExit(f"{tool}: {ended['error']['message']}")
            result = ended["result"]
        return result
