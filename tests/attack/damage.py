"""Damaged data directories, and those that others could read."""

import contextlib
import os
import random
import shutil
import sqlite3
import subprocess
import tempfile
from pathlib import Path

from wire import START_LIMIT
from world import Options, eventually, mode, quick, slow


def filled(world):
    """A data directory with something of everything in it."""
    with world.another() as target:
        session = target.agent("echo made > file", create_workspace=True)
        session.said()
        target.request("POST", "/v1/blobs", "some content " * 5000, headers={"Content-Type": "text/plain"})
        target.done("job_sleep", milliseconds=1)
        target.new_token("write")
        target.kill()
        copy = Path(tempfile.mkdtemp(prefix="attack-data-"))
        shutil.copytree(target.data, copy / "data", symlinks=True, ignore=shutil.ignore_patterns("roots", "etc"))
        return copy


def written_through(database):
    """Writes its log into it; otherwise the log would repair the damage."""
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def damages(rng):
    def flip(data):
        data = bytearray(data)
        for _ in range(max(1, len(data) // 2000)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        return bytes(data)

    return {
        "cut in half": lambda data: data[: len(data) // 2],
        "emptied": lambda _: b"",
        "flipped": flip,
        "zeroed at its start": lambda data: bytes(min(4096, len(data))) + data[4096:],
        "with noise at its end": lambda data: data + rng.randbytes(500),
        "noise": lambda data: rng.randbytes(len(data)),
    }


def starts(world, directory, home):
    """Starts a daemon there: it answers, or explains in one line why it does not. Never a panic, never silence."""
    words = [
        str(world.shared_binary),
        "serve",
        "--json",
        "--data-dir",
        str(directory),
        "--http",
        "127.0.0.1:0",
        "--hoot",
        "tcp://127.0.0.1:0",
        "--iopub",
        "tcp://127.0.0.1:0",
    ]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RINGBACK_")}
    environment |= {"XDG_RUNTIME_DIR": str(home / "run"), "XDG_CONFIG_HOME": str(home / "config"), "HOME": str(home)}
    with open(home / "log", "wb") as log:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, env=environment)
    try:
        os.set_blocking(process.stdout.fileno(), False)
        said = [b""]

        def told():
            said[0] += process.stdout.read() or b""
            return said[0].endswith(b"\n") or process.poll() is not None

        eventually(told, "it reports its addresses, or ends", START_LIMIT)
        text = (home / "log").read_text(errors="replace")
        assert "panicked" not in text and "overflowed" not in text, text[-2000:]
        if said[0].endswith(b"\n"):
            process.terminate()
            assert process.wait(START_LIMIT) == 0, text[-2000:]
            text = (home / "log").read_text(errors="replace")
            assert "panicked" not in text, text[-2000:]
            return "started"
        assert process.returncode > 0, f"ended by signal {-process.returncode}: {text[-2000:]}"
        assert text.strip(), "it does not say why it does not start"
        return "refused"
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()


def damage_all(world, per_file):
    rng = random.Random(Options.seed)
    copy = filled(world)
    outcomes = {"started": 0, "refused": 0}
    try:
        files = sorted(it.relative_to(copy / "data") for it in (copy / "data").rglob("*") if it.is_file())
        for file in files:
            ways = damages(rng)
            for name in rng.sample(sorted(ways), min(per_file, len(ways))):
                shutil.copytree(copy / "data", copy / "try", symlinks=True)
                path = copy / "try" / file
                if path.name == "ringback.db":
                    written_through(path)
                path.chmod(0o600)
                path.write_bytes(ways[name](path.read_bytes()) if path.stat().st_size else rng.randbytes(64))
                home = copy / "home"
                home.mkdir()
                (home / "run").mkdir(mode=0o700)
                try:
                    outcomes[starts(world, copy / "try", home)] += 1
                except AssertionError as error:
                    raise AssertionError(f"{file} {name}: {error}") from None
                shutil.rmtree(copy / "try")
                shutil.rmtree(home)
        print(f"   {len(files)} files: {outcomes}", flush=True)
    finally:
        shutil.rmtree(copy, ignore_errors=True)


@quick
def a_damaged_data_directory_starts_or_says_why(world):
    damage_all(world, 1)


@slow
def a_data_directory_damaged_in_every_way_starts_or_says_why(world):
    damage_all(world, 99)


@quick
def a_data_directory_that_others_can_read_is_refused(world):
    with world.another() as target:
        token = target.token
        assert target.terminate() == 0
        for wrong in (0o755, 0o750, 0o770, 0o707):
            target.data.chmod(wrong)
            try:
                target.start()
            except AssertionError:
                pass
            else:
                target.terminate()
                raise AssertionError(f"mode {wrong:o} is taken")
            said = target.log_text().strip().splitlines()[-1]
            assert str(target.data) in said and token not in said, said
        target.data.chmod(0o700)
        target.start()
        target.is_well()


@quick
def every_file_is_its_owners_alone(world):
    """Even if the daemon is started with a loose umask."""
    had = os.umask(0)
    try:
        with world.another() as target:
            target.agent("true", create_workspace=True).said()
            target.request("POST", "/v1/blobs", "content", headers={"Content-Type": "text/plain"})
            target.done("job_sleep", milliseconds=1)
            for top in (target.data, target.home / "run/ringback"):
                for path in [top, *top.rglob("*")]:
                    inner = str(path.relative_to(top))
                    if path.is_symlink() or inner.startswith(("workspaces/", "homes/", "sandbox/")):
                        continue
                    assert mode(path) & 0o077 == 0, f"{path}: {mode(path):o}"
    finally:
        os.umask(had)


@quick
def a_daemon_without_its_directory_acknowledges_nothing(world):
    with world.another() as target:
        target.project()
        shutil.rmtree(target.data)

        def is_noticed():
            if not target.is_running():
                return True
            return target.tool("project_create", name="lost", limit=10).status >= 500

        try:
            eventually(is_noticed, "it notices", 15)
        except (ConnectionError, OSError):
            eventually(lambda: not target.is_running(), "it ends", 10)
        text = target.log_text()
        assert str(target.data) in text and "panicked" not in text, text[-800:]
