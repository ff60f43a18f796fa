"""A model for agents that follows a script: the chat API of OpenAI, streamed or not, on loopback."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NAME = "scripted"
FINAL = "The script is over."
CALL_ID = "call_scripted_1"


class Model:
    """Calls one tool once, and keeps what it was asked and where else an agent wanted to go. At the end it
    says that the script is over, or repeats the tool's answer."""

    def __init__(self, tool, arguments, repeats=False):
        self.tool = tool
        self.repeats = repeats
        self.arguments = json.dumps(arguments)
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
        """Variables that send every request to elsewhere here, where it is refused at once."""
        ways_out = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"]
        outside = {name: self.url for way in ways_out for name in (way, way.lower())}
        return outside | {"NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}

    def answer(self, request):
        """The message that follows on a request."""
        self.requests.append(request)
        offered = [tool["function"]["name"] for tool in request.get("tools", [])]
        name = next((name for name in offered if name.endswith(self.tool)), None)
        results = tool_results(request)
        if name is None or results:
            final = " ".join(results) if self.repeats else FINAL
            return {"role": "assistant", "content": final or FINAL}
        function = {"name": name, "arguments": self.arguments}
        call = {"id": CALL_ID, "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}

    def results(self):
        """What the agent told of the tool's answer, in the first request that has it."""
        return next(filter(None, map(tool_results, self.requests)), [])


class Conversation(BaseHTTPRequestHandler):
    """One connection of an agent."""

    protocol_version = "HTTP/1.1"
    model = None

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.model.credentials.add(self.headers.get("Authorization"))
        if not self.path.endswith("/chat/completions"):
            return self.refuse()
        request = json.loads(body)
        message = self.model.answer(request)
        if request.get("stream"):
            chunks = [f"data: {json.dumps(chunk)}\n\n" for chunk in streamed(message)]
            self.send(200, "text/event-stream", "".join([*chunks, "data: [DONE]\n\n"]))
        else:
            self.send(200, "application/json", json.dumps(whole(message)))

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


def finish(message):
    return "tool_calls" if message.get("tool_calls") else "stop"


def envelope(kind, choice):
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": NAME, "choices": [choice]}


USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def whole(message):
    choice = {"index": 0, "message": message, "finish_reason": finish(message)}
    return envelope("chat.completion", choice) | {"usage": USAGE}


def streamed(message):
    """The same in pieces: the arguments of a call come in two."""
    def chunk(delta, reason=None):
        return envelope("chat.completion.chunk", {"index": 0, "delta": delta, "finish_reason": reason})

    if not message.get("tool_calls"):
        yield chunk({"role": "assistant", "content": message["content"]})
    for call in message.get("tool_calls", []):
        text = call["function"]["arguments"]
        begun = call["function"] | {"arguments": text[:5]}
        yield chunk({"role": "assistant", "tool_calls": [call | {"index": 0, "function": begun}]})
        yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": text[5:]}}]})
    yield chunk({}, finish(message)) | {"usage": USAGE}
