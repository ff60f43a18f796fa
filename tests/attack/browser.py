"""Pages of other sites: the requests of a browser, by hand, and by a real one in the slow profile."""

import contextlib
import http.client
import http.server
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time

from world import quick

OTHERS = [
    "http://evil.example",
    "https://evil.example:7180",
    "null",
    "http://[::1].evil.example",
    "http://127.0.0.1.evil.example",
    "http://localhost.evil.example",
    "http://evil.example#127.0.0.1",
    "http://127.0.0.1@evil.example",
    "http://[::1]evil",
    "http://[::1",
    "http://127.0.0.1:x",
    "file://",
    "http://0.0.0.0",
    "chrome-extension://abc",
    "http://localhost:80:80",
    "http://127.0.0.1/",
    "http://127.0.0.1 http://evil.example",
    "",
    " ",
    "http://",
    "//localhost",
]
ROUTES = [
    "/client-tools/pending/notes",
    "/event?clientID=notes",
    "/v1/tools",
    "/client-tools/tools",
    "/v1/jobs",
    "/v1/sessions",
    "/v1/audit",
    "/v1/artifacts",
]


def open_target(world):
    """Without tokens, the rules for browsers are the only protection."""
    return world.target("open", arguments=["--open"])


def asked(target, method, path, **headers):
    """The status of an answer; a stream is closed immediately."""

    connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=20)
    try:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        body = "{}" if method == "POST" else None
        connection.request(method, path, body, names)
        return connection.getresponse().status
    finally:
        connection.close()


@quick
def a_page_of_another_site_opens_no_stream(world):
    """An image or a script of a page sends no Origin, only `Sec-Fetch-Site`."""
    target = open_target(world)
    for path in ROUTES:
        for mode in ("no-cors", "navigate", "cors"):
            for site in ("cross-site", "same-site"):
                status = asked(target, "GET", path, Sec_Fetch_Site=site, Sec_Fetch_Mode=mode, Sec_Fetch_Dest="image")
                assert status == 403 or (site == "same-site" and status in (200, 403)), (
                    f"{path} {site} {mode}: {status}"
                )
        for site in ("same-origin", "none"):
            assert asked(target, "GET", path, Sec_Fetch_Site=site) == 200, f"{path} {site}"
        assert asked(target, "GET", path) == 200, path
    target.is_well()


@quick
def no_origin_of_another_site_is_taken(world):
    target = open_target(world)
    for origin in OTHERS:
        for method, path in [
            ("GET", "/v1/tools"),
            ("POST", "/v1/tools/ping/call"),
            ("OPTIONS", "/v1/tools/ping/call"),
            ("POST", "/mcp"),
        ]:
            status = asked(
                target,
                method,
                path,
                Origin=origin,
                Content_Type="application/json",
                Access_Control_Request_Method="POST",
            )
            assert status in (400, 403), f"{method} {path} of {origin!r}: {status}"
    for origin in (f"http://127.0.0.1:{target.port}", "http://localhost:3000", "http://[::1]:8080"):
        assert asked(target, "POST", "/v1/tools/ping/call", Origin=origin, Content_Type="application/json") == 200, (
            origin
        )


@quick
def a_rebound_name_is_refused(world):
    target = open_target(world)
    for host in (
        "evil.example",
        "evil.example:7180",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "[::1].evil.example",
        "127.0.0.1@evil.example",
        "evil",
        "127.0.0.1:7180.evil",
        "",
        "[::1]x",
    ):
        for path in ("/v1/tools", "/health", "/mcp", "/event"):
            status = asked(target, "GET", path, Host=host)
            assert status in (400, 421), f"{path} of {host!r}: {status}"


PAGE = """<!doctype html><title>evil</title><body><script>
const at = 'http://127.0.0.1:PORT';
const tries = ['/client-tools/pending/notes', '/event?clientID=notes', '/v1/tools', '/v1/tools/ping/call',
               '/v1/tools/job_sleep/call'];
const results = [];
for (const path of tries) {
  for (const tag of ['img', 'script', 'iframe', 'link']) {
    const it = document.createElement(tag);
    if (tag === 'link') { it.rel = 'stylesheet'; it.href = at + path; } else it.src = at + path;
    document.body.append(it);
  }
  try { new EventSource(at + path); } catch (e) {}
  try { new WebSocket(at.replace('http', 'ws') + path); } catch (e) {}
  try { navigator.sendBeacon(at + path, '{}'); } catch (e) {}
  for (const mode of ['no-cors', 'cors'])
    for (const method of ['GET', 'POST'])
      for (const type of ['text/plain', 'application/json'])
        fetch(at + path, {mode, method, headers: {'Content-Type': type},
                          body: method === 'POST' ? '{"milliseconds":1}' : undefined})
          .then(answer => results.push(mode + method + path + answer.status + answer.type)).catch(() => {});
}
const form = document.createElement('form');
form.method = 'POST'; form.enctype = 'text/plain'; form.action = at + '/v1/tools/job_sleep/call'; form.target = 'frame';
const frame = document.createElement('iframe'); frame.name = 'frame'; document.body.append(form, frame); form.submit();
setTimeout(() => {
  document.body.textContent = 'DONE ' + results.filter(it => !it.endsWith('opaque')).join(' ');
}, 2500);
</script>"""


class Honest:
    """A client whose stream was open first: it answers its calls."""

    def __init__(self, target):
        self.target = target
        tools = [{"id": "search", "description": "x", "parameters": {"type": "object"}}]
        made = target.request(
            "POST", "/client-tools/register", {"clientID": "notes", "tools": tools, "graceMs": 60000}, None
        )
        assert made.status == 200, made
        self.stream = socket.create_connection(("127.0.0.1", target.port))
        self.stream.sendall(b"GET /client-tools/pending/notes HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError), self.stream.makefile("rb") as lines:
            for line in lines:
                asked = re.search(rb'"requestID":"([^"]+)"', line)
                if asked:
                    result = {
                        "requestID": asked[1].decode(),
                        "result": {"status": "success", "title": "t", "output": "honest"},
                    }
                    self.target.request("POST", "/client-tools/result", result, None)

    def is_heard(self):
        body = {"toolID": "client_notes_search", "input": {}, "timeout": 2000}
        answer = self.target.request("POST", "/client-tools/execute", body, None)
        return answer.status == 200 and b"honest" in answer.body


class Site:
    """A web site with one page, at a name that is not a loopback name and leads here."""

    def __init__(self, page):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(page)))
                self.end_headers()
                self.wfile.write(page)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def words(self, home):
        """How Chromium shows it. Protections of some versions are switched off."""
        program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        assert program, "this case needs Chromium: `apt install chromium`"
        off = "LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests,PrivateNetworkAccessSendPreflights"
        return [
            program,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={home}",
            f"--disable-features={off}",
            f"--host-resolver-rules=MAP evil.example 127.0.0.1:{self.server.server_port}",
            "--virtual-time-budget=20000",
            "--dump-dom",
            "http://evil.example/",
        ]


@quick
def a_page_in_a_real_browser_opens_nothing(world):
    """Chromium shows a page of another site that tries everything a page can: it reads nothing, runs nothing, and
    takes no call from the connected client."""
    target = open_target(world)
    honest = Honest(target)
    assert honest.is_heard()

    def jobs():
        return target.request("GET", "/v1/jobs?limit=100", token=None).json["total"]

    n_before = jobs()
    site = Site(PAGE.replace("PORT", str(target.port)).encode())
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        with open(f"{home}/out", "w+", encoding="utf-8") as out:
            browser = subprocess.Popen(site.words(home), stdout=out, stderr=subprocess.DEVNULL)
            try:
                ends_at, heard = time.monotonic() + 120, []
                while browser.poll() is None and time.monotonic() < ends_at:
                    heard.append(honest.is_heard())
                    time.sleep(0.1)
                assert browser.poll() is not None, "the browser does not end"
            finally:
                browser.kill()
                browser.wait()
                site.server.shutdown()
            out.seek(0)
            shown = out.read()
    assert "DONE" in shown, shown[-500:]
    assert re.search(r"DONE\s*</body>", shown), f"a page could read an answer: {shown[-800:]}"
    assert heard and all(heard), f"a page took {heard.count(False)} of {len(heard)} calls"
    assert jobs() == n_before, "a page started a job"
    target.is_well()
