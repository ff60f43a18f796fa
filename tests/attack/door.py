"""The model proxy of a session, where the key must stay outside, and its network proxy."""

import base64
import gzip
import http.server
import json
import socket
import threading
import zlib

from world import SHOWN, quick

KEY = "sk-key-of-the-provider-0123456789abcdef"
TEXT = f"you sent {KEY} to me " * 20


class Provider:
    """A provider that leaks what it can: it repeats the key in every form, and records its requests."""

    def __init__(self):
        self.heads = []
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                provider.answer(self)

            do_POST = do_GET

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, request):
        request.rfile.read(int(request.headers.get("Content-Length", 0)))
        self.heads.append({name.lower(): value for name, value in request.headers.items()})
        way = request.path.strip("/").split("?")[0]
        body, headers = TEXT.encode(), {}
        encoders = {
            "gzip": gzip.compress,
            "deflate": zlib.compress,
            "twice": lambda it: gzip.compress(gzip.compress(it)),
        }
        if way in encoders:
            body, headers = encoders[way](body), {"Content-Encoding": {"twice": "gzip, gzip"}.get(way, way)}
        elif way == "unnamed":
            headers = {"Content-Encoding": "x-unknown"}
        elif way == "header":
            headers = {"X-Echo": KEY, "Set-Cookie": f"key={KEY}"}
        elif way == "range" and "Range" in request.headers:
            start, end = map(int, request.headers["Range"].split("=")[1].split("-"))
            whole = KEY.encode()
            body, headers = whole[start : end + 1], {"Content-Range": f"bytes {start}-{end}/{len(whole)}"}
        request.send_response(206 if "Content-Range" in headers else 200)
        for name, value in headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)


# Sends a request to each path, and prints every answer: status, headers, and the raw bytes.
ASK = """python3 - <<'END'
import base64, http.client, json, os
place = os.environ['BASE'].split('//')[1]
for path, headers in PATHS:
    connection = http.client.HTTPConnection(place, timeout=20)
    connection.request('GET', path, headers=headers)
    answer = connection.getresponse()
    body = base64.b64encode(answer.read()).decode()
    print(json.dumps({'path': path, 'status': answer.status, 'headers': dict(answer.getheaders()), 'body': body}))
END"""


def config(port, key_file):
    return (
        SHOWN
        + f"""
[providers.mine]
url = "http://127.0.0.1:{port}"
key_file = "{key_file}"
[sessions.agents.model]
command = ["/usr/bin/python3", "{{probes}}/agent.py"]
provider = "mine"
env = {{ BASE = "{{model}}" }}
"""
    )


def plain(answer):
    """Everything that a body can be decoded as."""
    body = base64.b64decode(answer["body"])
    readings = [body]
    for decode in (gzip.decompress, zlib.decompress, lambda it: gzip.decompress(gzip.decompress(it))):
        try:
            readings.append(decode(body))
        except (OSError, zlib.error, EOFError):
            pass
    return b"\n".join(readings).decode(errors="replace")


@quick
def no_answer_of_a_provider_carries_the_key_out(world):
    """Compressed once or twice, in a header, in parts, or in an unknown form."""
    key_file = world.home / "model.key"
    key_file.touch(mode=0o600)
    key_file.write_text(KEY)
    with Provider() as provider, world.another(config=config(provider.port, key_file)) as target:
        paths = [
            (f"/{way}", {"Accept-Encoding": "gzip"})
            for way in ("plain", "gzip", "deflate", "twice", "unnamed", "header")
        ]
        paths += [("/range", {"Range": f"bytes={n}-{n + 9}"}) for n in range(0, len(KEY), 10)]
        said = target.run(ASK.replace("PATHS", repr(paths)), agent="model")
        answers = [json.loads(line) for line in said.splitlines()]
        assert len(answers) == len(paths), said
        for answer in answers:
            assert KEY not in plain(answer) and KEY not in json.dumps(answer["headers"]), answer
        parts = "".join(plain(it)[:10] for it in answers if it["path"] == "/range")
        assert KEY not in parts, "in parts"
        assert all(head["authorization"] == f"Bearer {KEY}" for head in provider.heads), provider.heads
        assert not [head for head in provider.heads if "range" in head], "Range was passed on"
        assert answers[0]["status"] == 200, answers[0]
        assert KEY not in target.log_text()


# Tries to reach a place that is not listed, in every spelling; `OPEN` is, `SHUT` is not.
SPELLINGS = """python3 - <<'END'
import os, socket
place = os.environ['HTTP_PROXY'].split('//')[1].split(':')
def ask(head):
    with socket.create_connection((place[0], int(place[1])), timeout=10) as it:
        it.sendall(head.encode('latin-1'))
        it.settimeout(2)
        try: return it.recv(200).decode(errors='replace').split('\\r\\n')[0]
        except OSError as error: return str(error)
hosts = ['127.0.0.1', 'localhost', '127.1', '0x7f000001', '2130706433', '0', '0.0.0.0', '[::1]', '[::ffff:127.0.0.1]',
         '127.0.0.1.', 'LOCALHOST', '127.0.0.1%00', '127.000.000.001', '①27.0.0.1', '[::ffff:7f00:1]',
         '[0:0:0:0:0:0:0:1]']
for host in hosts:
    try: host.encode('latin-1')
    except UnicodeError: host = host.encode().decode('latin-1')
    ask(f'CONNECT {host}:SHUT HTTP/1.1\\r\\nHost: {host}:SHUT\\r\\n\\r\\n')
    ask(f'GET http://{host}:SHUT/ HTTP/1.1\\r\\nHost: {host}:SHUT\\r\\n\\r\\n')
    ask(f'GET http://127.0.0.1:OPEN@{host}:SHUT/ HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')
    ask(f'CONNECT 127.0.0.1:OPEN HTTP/1.1\\r\\nHost: {host}:SHUT\\r\\nContent-Length: 5\\r\\n'
        'Transfer-Encoding: chunked\\r\\n\\r\\n')
ask('GET http://127.0.0.1:OPEN/ HTTP/1.1\\r\\nHost: 127.0.0.1:SHUT\\r\\nContent-Length: 0\\r\\n\\r\\n'
    'GET http://127.0.0.1:SHUT/ HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')
ask('\\r\\n' * 200 + 'CONNECT 127.0.0.1:SHUT HTTP/1.1\\r\\n\\r\\n')
print(ask('CONNECT 127.0.0.1:OPEN HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'))
END"""


@quick
def nobody_is_reached_who_is_not_listed(world):
    with socket.create_server(("127.0.0.1", 0)) as shut, socket.create_server(("127.0.0.1", 0)) as allowed:
        shut.setblocking(False)
        places = {"OPEN": str(allowed.getsockname()[1]), "SHUT": str(shut.getsockname()[1])}
        script = SPELLINGS
        for word, port in places.items():
            script = script.replace(word, port)
        target = world.target()
        network = {"mode": "allow", "allow": [f"127.0.0.1:{places['OPEN']}"]}
        said = target.run(script, network=network, create_workspace=True)
        assert said.startswith("HTTP/1.1 200"), said
        try:
            connection, _ = shut.accept()
            connection.close()
        except BlockingIOError:
            return
        raise AssertionError("a place that is not listed was reached")
