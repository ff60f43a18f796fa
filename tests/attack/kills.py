"""Rounds of `kill -9` under load: everything acknowledged is there afterwards, and nothing is there twice."""

import collections
import contextlib
import http.client
import json
import os
import random
import secrets
import threading
import time

from world import SHOWN, Options, eventually, processes, quick, slow

# How many acknowledged things of earlier rounds each round checks again.
SAMPLE = 40
# Every this many rounds an agent is at work, too.
WITH_AGENT = 10

Kept = collections.namedtuple("Kept", "kind name proof")


class Worker(threading.Thread):
    """Makes things over HTTP until the daemon is gone, and records what was acknowledged."""

    def __init__(self, target, seed):
        super().__init__(daemon=True)
        self.target, self.rng, self.kept, self.wrong = target, random.Random(seed), [], []

    def run(self):
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
            connection = http.client.HTTPConnection("127.0.0.1", self.target.port, timeout=20)
            while True:
                # Few tokens: the daemon has room for 10,000.
                makers = [self.project, self.blob, self.job, self.artifact, self.token]
                self.rng.choices(makers, [6, 6, 6, 6, 1])[0](connection)

    def call(self, connection, path, body, **headers):
        kind = headers.pop("kind", "application/json")
        names = {name.replace("_", "-"): it for name, it in headers.items()}
        data = body if isinstance(body, bytes) else json.dumps(body)
        connection.request(
            "POST", path, data, {"Authorization": f"Bearer {self.target.token}", "Content-Type": kind, **names}
        )
        answer = connection.getresponse()
        text = answer.read()
        if answer.status not in (200, 201, 202):
            self.wrong.append((path, answer.status, text))
            raise ValueError(path)
        return json.loads(text)

    def project(self, connection):
        name = secrets.token_hex(8)
        made = self.call(connection, "/v1/tools/project_create/call", {"name": name})["result"]
        self.kept.append(Kept("project", made["project_id"], name))

    def blob(self, connection):
        data = self.rng.randbytes(self.rng.choice([10, 5000, 200_000]))
        self.kept.append(Kept("blob", self.call(connection, "/v1/blobs", data, kind="text/plain")["hash"], data))

    def artifact(self, connection):
        data = self.rng.randbytes(50)
        digest = self.call(connection, "/v1/blobs", data, kind="text/plain")["hash"]
        made = self.call(connection, "/v1/tools/artifact_create/call", {"content_hash": digest, "tags": ["kill"]})
        self.kept.append(Kept("artifact", made["result"]["artifact_id"], digest))

    def job(self, connection):
        key = secrets.token_hex(8)
        made = self.call(
            connection, "/v1/tools/job_sleep/call", {"milliseconds": 40}, Idempotency_Key=key, Prefer="respond-async"
        )
        self.kept.append(Kept("job", made["job"]["job_id"], key))

    def token(self, connection):
        made = self.call(connection, "/v1/tools/token_create/call", {"name": "t", "scope": "read"})["result"]
        self.kept.append(Kept("token", made["token_id"], made["token"]))


def look(target, kept):
    """Whether an acknowledged thing is there, complete, once."""
    if kept.kind == "project":
        assert target.done("project_get", project_id=kept.name)["name"] == kept.proof, kept
    elif kept.kind == "blob":
        assert target.request("GET", f"/v1/blobs/{kept.name}").body == kept.proof, f"{kept.name} is another"
    elif kept.kind == "artifact":
        assert kept.proof in str(target.done("artifact_get", id=kept.name)), kept
    elif kept.kind == "token":
        assert target.tool("ping", token=kept.proof).status == 200, kept
    else:
        look_at_job(target, kept)


def look_at_job(target, kept):
    job = target.request("GET", f"/v1/jobs/{kept.name}").json
    assert job["status"] in ("pending", "running", "complete", "failed"), job
    if job["status"] == "failed":
        assert "interrupted" in json.dumps(job), job
    headers = {"Idempotency-Key": kept.proof, "Prefer": "respond-async"}
    again = target.request("POST", "/v1/tools/job_sleep/call", {"milliseconds": 40}, headers=headers)
    if again.status == 202:
        assert again.json["job"]["job_id"] == kept.name, "the retry ran again"


def kill_rounds(world, rounds):
    rng, everything, n_checked = random.Random(Options.seed), [], 0
    with world.another(config=SHOWN) as target:
        for n in range(rounds):
            workers = [Worker(target, Options.seed + 100 * n + k) for k in range(5)]
            seconds = f"46{n % 1000:03}{os.getpid() % 100:02}" if n % WITH_AGENT == 0 else None
            if seconds:
                target.agent(f"setsid sleep {seconds} >/dev/null 2>&1 & true", create_workspace=True).said()
            for worker in workers:
                worker.start()
            time.sleep(rng.uniform(0.03, 0.5))
            target.kill()
            for worker in workers:
                worker.join(30)
                assert not worker.is_alive(), "a caller hangs"
                assert not worker.wrong, worker.wrong
            if seconds:
                eventually(lambda seconds=seconds: not processes(f"sleep\0{seconds}"), "the agent is gone")
            target.start()
            new = [it for worker in workers for it in worker.kept]
            looked = new + rng.sample(everything, min(SAMPLE, len(everything)))
            for kept in looked:
                try:
                    look(target, kept)
                except AssertionError as error:
                    raise AssertionError(f"round {n}, seed {Options.seed}: {kept.kind} {kept.name}: {error}") from None
            n_checked += len(looked)
            everything += new
            assert "panicked" not in target.log_text()
            if rounds > 50 and n % 50 == 49:
                print(
                    f"   round {n + 1}: {len(everything)} acknowledged, {n_checked} looked at, {target.resident()} MiB",
                    flush=True,
                )
        print(f"   {rounds} kills, {len(everything)} acknowledged, {n_checked} looked at, nothing lost", flush=True)
        assert len(everything) > 5 * rounds, "hardly anything was acknowledged"


@quick
def what_was_acknowledged_survives_kills(world):
    kill_rounds(world, Options.rounds)


@slow
def what_was_acknowledged_survives_a_thousand_kills(world):
    kill_rounds(world, Options.rounds)
