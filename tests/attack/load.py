"""Load: many callers, clients whose streams come and go, and one correct outcome for each call."""

import contextlib
import http.client
import json
import random
import re
import secrets
import socket
import threading
import time

from world import Options, quick, slow


class Flapping:
    """A client that answers, and drops its stream every now and then."""

    def __init__(self, target, name, seed, ends_at):
        self.target, self.name, self.rng, self.ends_at = target, name, random.Random(seed), ends_at
        self.taken, self.wrong, self.thread = {}, [], threading.Thread(target=self.run, daemon=True)
        tools = [{"id": "echo", "description": "x", "parameters": {"type": "object"}}]
        body = {"clientID": name, "tools": tools, "graceMs": 3000}
        assert target.request("POST", "/client-tools/register", body).status == 200
        self.thread.start()

    def run(self):
        while time.monotonic() < self.ends_at:
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", self.target.port), timeout=5) as stream,
            ):
                stream.sendall(
                    f"GET /client-tools/pending/{self.name} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                    f"Authorization: Bearer {self.target.token}\r\n\r\n".encode()
                )
                self.serve(stream, time.monotonic() + self.rng.uniform(0.02, 0.6))

    def serve(self, stream, until):
        text = b""
        while time.monotonic() < min(until, self.ends_at):
            stream.settimeout(max(0.01, until - time.monotonic()))
            with contextlib.suppress(TimeoutError):
                piece = stream.recv(65536)
                if not piece:
                    return
                text += piece
            while (end := text.find(b"\n\n")) >= 0:
                event, text = text[:end], text[end + 2 :]
                if b"client-tool-request" in event:
                    self.answer(event)

    def answer(self, event):
        request = re.search(rb'"requestID":"([^"]+)"', event)[1].decode()
        nonce = re.search(rb'"nonce":\s*"([^"]+)"', event)[1].decode()
        body = {"requestID": request, "result": {"status": "success", "title": "t", "output": nonce}}
        status = self.target.request("POST", "/client-tools/result", body).status
        # Accepted once; a second answer to a repeated call is refused.
        if status not in (200, 404) or status == 200 and nonce in self.taken:
            self.wrong.append(f"an answer of {nonce} got {status}")
        if status == 200:
            self.taken[nonce] = request


def call(connection, target, tool, nonce):
    body = json.dumps({"toolID": tool, "input": {"nonce": nonce}, "timeout": 5000})
    connection.request(
        "POST",
        "/client-tools/execute",
        body,
        {"Authorization": f"Bearer {target.token}", "Content-Type": "application/json"},
    )
    answer = connection.getresponse()
    return answer.status, answer.read()


def load(world, seconds, n_callers, n_clients):
    target = world.target()
    ends_at = time.monotonic() + seconds
    clients = [Flapping(target, f"flap{n}", Options.seed + n, ends_at + 8) for n in range(n_clients)]
    outcomes, wrong = {}, []

    def caller(seed):
        rng = random.Random(seed)
        connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=40)
        while time.monotonic() < ends_at:
            nonce = secrets.token_hex(12)
            started = time.monotonic()
            status, body = call(connection, target, f"client_flap{rng.randrange(n_clients)}_echo", nonce)
            outcomes[nonce] = status
            if time.monotonic() - started > 20:
                wrong.append(f"late: {time.monotonic() - started:.1f} s")
            if status == 200 and nonce.encode() not in body or status not in (200, 503, 504, 429):
                wrong.append(f"{status} {body[:300]!r}")
        connection.close()

    threads = [threading.Thread(target=caller, args=(Options.seed + 1000 + n,)) for n in range(n_callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for client in clients:
        client.ends_at = time.monotonic()
        client.thread.join(30)
        target.request("DELETE", "/client-tools/unregister", {"clientID": client.name})
    wrong += [it for client in clients for it in client.wrong]
    assert not wrong, f"{len(wrong)} of {len(outcomes)}: {wrong[:3]}"
    taken = set().union(*(client.taken for client in clients))
    succeeded = {nonce for nonce, status in outcomes.items() if status == 200}
    assert succeeded <= taken, "a result that no client gave"
    lost = taken - succeeded
    assert not lost, (
        f"{len(lost)} answers were acknowledged and did not reach their callers: {[outcomes[it] for it in lost][:5]}"
    )
    print(f"   {len(outcomes)} calls, {len(succeeded)} succeeded, {target.resident()} MiB", flush=True)
    assert len(succeeded) > len(outcomes) // 2, "hardly anything succeeded"
    target.is_well()


@quick
def each_call_has_one_outcome_while_streams_flap(world):
    load(world, 3, 12, 5)


@slow
def each_call_has_one_outcome_while_streams_flap_for_a_minute(world):
    load(world, 60, 100, 20)
