"""Content matches its hash, and belongs to the principal that stored it."""

import secrets
import subprocess

from world import quick


def stored(target, data, token="", kind="text/plain"):
    return target.request("POST", "/v1/blobs", data, token, {"Content-Type": kind})


def file_of(target, digest):
    """The path of a blob on the disk."""
    rest = [it for it in (target.data / "blobs").rglob("*") if it.is_file()]
    places = [it for it in rest if digest.endswith(it.name) or it.name in digest and len(it.name) > 20]
    assert len(places) == 1, (digest, rest)
    return places[0]


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o600)
    path.write_bytes(data)


def cut(path):
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:100])


@quick
def damaged_content_is_not_served_and_heals(world):
    """By every reader; once the right bytes are put back, they are served again."""
    target = world.target()
    for damage in (flip, cut):
        data = secrets.token_bytes(300_000)
        digest = stored(target, data).json["hash"]
        damage(file_of(target, digest))
        got = target.request("GET", f"/v1/blobs/{digest}")
        assert got.status >= 400 or got.body == data, (
            f"{damage.__name__}: {got.status}, {len(got.body)} bytes that are wrong"
        )
        assert got.status >= 400, f"{damage.__name__}: {got.status}"
        called = target.tool("cas_get", hash=digest)
        assert called.status >= 400, f"{damage.__name__}: cas_get {called.status}"
        again = target.request("PUT", f"/v1/blobs/{digest}", data, headers={"Content-Type": "text/plain"})
        assert again.status in (200, 201), again
        got = target.request("GET", f"/v1/blobs/{digest}")
        assert got.status == 200 and got.body == data, (
            f"{damage.__name__}: it did not heal: {got.status}, {len(got.body)} bytes"
        )
    target.is_well()


@quick
def the_doctor_finds_damaged_content(world):
    with world.another() as target:
        good, bad = (stored(target, secrets.token_bytes(5000)).json["hash"] for _ in range(2))

        def verify():
            words = [str(world.shared_binary), "doctor", "--verify"]
            environment = target.environment() | {
                "RINGBACK_DATA_DIR": str(target.data),
                "RINGBACK_HTTP__LISTEN": "127.0.0.1:0",
                "RINGBACK_HOOT__LISTEN": "tcp://127.0.0.1:0",
                "RINGBACK_HOOT__IOPUB": "tcp://127.0.0.1:0",
            }
            done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=False)
            return done.returncode, done.stdout + done.stderr

        _, said = verify()
        assert good not in said and bad not in said, said
        flip(file_of(target, bad))
        code, said = verify()
        assert code != 0 and bad[:12] in said and good[:12] not in said, (code, said)


@quick
def storing_tells_nothing_of_what_others_stored(world):
    """The same answer, whether or not another principal has the same bytes, and a type of its own."""
    target = world.target()
    first, _ = target.new_token("write")
    second, _ = target.new_token("write")
    data = secrets.token_bytes(1000)
    theirs = stored(target, data, first, "audio/midi")
    mine = stored(target, data, second, "text/plain")
    fresh = stored(target, secrets.token_bytes(1000), second, "text/plain")
    assert theirs.status == 201 and mine.status == fresh.status, (theirs.status, mine.status, fresh.status)
    assert mine.json["mime_type"] == "text/plain", mine
    got = target.request("GET", f"/v1/blobs/{mine.json['hash']}", token=second)
    assert got.headers.get("content-type", got.headers.get("Content-Type")) == "text/plain", got.headers


@quick
def content_of_others_is_not_there(world):
    target = world.target()
    first, _ = target.new_token("write")
    second, _ = target.new_token("write")
    digest = stored(target, secrets.token_bytes(1000), first).json["hash"]
    theirs = target.request("GET", f"/v1/blobs/{digest}", token=second)
    nobodys = target.request("GET", f"/v1/blobs/{secrets.token_hex(32)}", token=second)
    assert theirs.status == nobodys.status == 404, (theirs, nobodys)
