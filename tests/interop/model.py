"""A model for agents that follows a script, on loopback, streamed or not, in any of the agents' APIs."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from dialects import DIALECTS, NAME, Gemini

__all__ = ["FINAL", "NAME", "Model"]
FINAL = "The script is over."
# The providers' headers for a key.
CREDENTIALS = ["Authorization", "x-api-key", "x-goog-api-key"]


class Model:
    """Calls tools, each once, in order, and records its requests and the other places an agent wanted to reach. At
    the end it says that the script is over, or repeats the tools' answers."""

    def __init__(self, *calls, repeats=False):
        self.calls = calls
        self.repeats = repeats
        self.requests = []
        self.strayed = []
        self.credentials = set()
        model = self

        class Handler(Conversation):
            pass

        Handler.model = model
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def offline(self):
        """Variables that redirect every other request here, where it is refused immediately."""
        ways_out = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"]
        outside = {name: self.url for way in ways_out for name in (way, way.lower())}
        return outside | {"NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}

    def answer(self, request):
        """The answer to a request."""
        self.requests.append(request)
        offered = [tool["function"]["name"] for tool in request.get("tools", [])]
        results = tool_results(request)
        tool, arguments = dict(enumerate(self.calls)).get(len(results), (None, None))
        name = next((name for name in offered if tool and name.endswith(tool)), None)
        if name is None:
            final = " ".join(results) if self.repeats else FINAL
            return {"role": "assistant", "content": final or FINAL}
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"id": f"call_scripted_{len(results) + 1}", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}

    def results(self):
        """What the agent passed on of the tool's answer, in the first request that has it."""
        return next(filter(None, map(tool_results, self.requests)), [])


class Conversation(BaseHTTPRequestHandler):
    """One connection of an agent."""

    protocol_version = "HTTP/1.1"
    model = None

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        given = [self.headers[name] for name in CREDENTIALS if name in self.headers]
        self.model.credentials.update(given or [None])
        path = urlsplit(self.path).path
        dialect = next((dialect for dialect in DIALECTS if dialect.is_for(path)), None)
        if dialect is None:
            return self.refuse()
        request = json.loads(body)
        if dialect is Gemini:
            # Only the path shows it.
            request["stream"] = path.endswith(":streamGenerateContent")
        message = self.model.answer(dialect.asked(request))
        self.send(200, *dialect.answer(request, message))

    def do_GET(self):
        if not self.path.endswith("/models"):
            return self.refuse()
        listed = [{"id": NAME, "object": "model", "created": 0, "owned_by": "nobody"}]
        self.send(200, "application/json", json.dumps({"object": "list", "data": listed}))

    def do_CONNECT(self):
        self.refuse()

    def refuse(self):
        self.model.strayed.append(f"{self.command} {self.path}")
        self.close_connection = True
        self.send(403, "text/plain", "There is nothing but the script here.")

    def send(self, status, kind, text):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def tool_results(request):
    """The texts of the tool's answers in a request."""
    answers = [it["content"] for it in request["messages"] if it["role"] == "tool"]
    return [it if isinstance(it, str) else json.dumps(it) for it in answers]
