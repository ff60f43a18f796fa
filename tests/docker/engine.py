"""A container engine for tests: `engine.py up` prints its socket, `engine.py down` ends it.

The first test that needs one starts it; it ends on its own when it has not been used for a while, so
that nothing is left running whatever happens to the tests. It needs root and `dockerd`, has no network
and no registry, and one image, which is made here: busybox, and room to mount a system over it.

`RINGBACK_TEST_DOCKER` names an engine to use instead; it gets the same image.
"""

import contextlib
import fcntl
import hashlib
import http.client
import io
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Short: the path of a socket has a limit.
DIRECTORY = "/tmp/ringback-engine-" + hashlib.sha256(ROOT.encode()).hexdigest()[:8]
SOCKET = DIRECTORY + "/docker.sock"
# Touched at every use.
USED = DIRECTORY + "/used"
LOG = DIRECTORY + ".log"
LOCK = DIRECTORY + ".lock"
# Longer than any test runs, and than it takes to compile the next one's program.
IDLE_SECONDS = 120
# A machine that compiles meanwhile is slow.
START_SECONDS = 60
# Members of this group may use the engine: the tests' unprivileged user.
NOBODYS_GROUP = "65534"
IMAGE = "ringback-test"
BUSYBOX = "/bin/busybox"


class Connection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path, seconds):
        super().__init__("localhost", timeout=seconds)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def ask(path, method, url, body=None, seconds=60):
    """The status of an answer, and the answer; 0 without an answer."""
    connection = Connection(path, seconds)
    try:
        connection.request(method, url, body)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except OSError:
        return 0, b""
    finally:
        connection.close()


def answers(path):
    return ask(path, "GET", "/_ping", seconds=5)[0] == 200


def image():
    """A system of busybox alone, with mount points for libraries."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        def add(name, kind, link="", content=b"", mode=0o755):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname, entry.size, entry.mode = kind, link, len(content), mode
            tar.addfile(entry, io.BytesIO(content))

        for name in ["etc", "sbin", "usr", "usr/bin", "usr/lib", "usr/lib64"]:
            add(name, tarfile.DIRTYPE)
        for name in ["bin", "lib", "lib64"]:
            add(name, tarfile.SYMTYPE, "usr/" + name)
        with open(BUSYBOX, "rb") as busybox:
            add("usr/bin/busybox", tarfile.REGTYPE, content=busybox.read())
        applets = subprocess.run([BUSYBOX, "--list"], check=True, capture_output=True, text=True)
        for name in applets.stdout.split():
            if name != "busybox":
                add("usr/bin/" + name, tarfile.SYMTYPE, "busybox")
    return archive.getvalue()


def bring_image(path):
    if ask(path, "GET", f"/images/{IMAGE}:latest/json")[0] == 200:
        return
    url = f"/images/create?fromSrc=-&repo={IMAGE}&tag=latest"
    status, answer = ask(path, "POST", url, image())
    if status != 200 or b"error" in answer:
        sys.exit(f"the engine takes no image: {status} {answer.decode(errors='replace')}")


def up():
    given = os.environ.get("RINGBACK_TEST_DOCKER")
    path = given.removeprefix("unix://") if given else SOCKET
    with open(LOCK, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not given:
            start()
        elif not answers(path):
            sys.exit(f"no engine answers at `{given}`, which RINGBACK_TEST_DOCKER names")
        bring_image(path)
    print(path)


def start():
    with contextlib.suppress(FileNotFoundError):
        os.utime(USED)
        if answers(SOCKET):
            return
    if os.geteuid() != 0 or not shutil.which("dockerd") or not os.path.exists(BUSYBOX):
        sys.exit("tests with containers need root, `dockerd` and a static busybox (`apt install "
                 "docker.io busybox-static`), or an engine that RINGBACK_TEST_DOCKER names; "
                 "RINGBACK_TEST_WITHOUT_DOCKER=1 leaves them out")
    with open(LOG, "w") as log:
        keeper = subprocess.Popen([sys.executable, __file__, "keep"], stdin=subprocess.DEVNULL,
                                  stdout=log, stderr=log, start_new_session=True, cwd="/")
    until = time.monotonic() + START_SECONDS
    while not answers(SOCKET):
        if keeper.poll() is not None or time.monotonic() > until:
            with open(LOG) as log:
                sys.exit("dockerd does not start:\n" + "".join(log.readlines()[-20:]))
        time.sleep(0.1)


def keep():
    """Runs the engine until it is no longer needed, and removes everything of it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    clean()
    os.mkdir(DIRECTORY)
    os.chmod(DIRECTORY, 0o711)
    open(USED, "w").close()
    engine = subprocess.Popen([
        "dockerd", "--host", "unix://" + SOCKET, "--group", NOBODYS_GROUP,
        "--data-root", DIRECTORY + "/data", "--exec-root", DIRECTORY + "/exec",
        "--pidfile", DIRECTORY + "/pid", "--storage-driver", "vfs",
        "--iptables=false", "--bridge", "none",
    ])
    try:
        while engine.poll() is None and is_wanted():
            time.sleep(0.5)
    finally:
        engine.terminate()
        try:
            engine.wait(30)
        except subprocess.TimeoutExpired:
            engine.kill()
        clean()


def is_wanted():
    try:
        return time.time() - os.stat(USED).st_mtime < IDLE_SECONDS
    except FileNotFoundError:
        return False


def clean():
    """Removes the remains of a killed engine: its helper, mounts and files."""
    with contextlib.suppress(FileNotFoundError, ValueError, ProcessLookupError):
        with open(DIRECTORY + "/exec/containerd/containerd.pid") as pid:
            os.kill(int(pid.read()), signal.SIGKILL)
    with open("/proc/self/mounts") as mounts:
        places = [line.split()[1] for line in mounts]
    for place in sorted(places, reverse=True):
        if place.startswith(DIRECTORY + "/"):
            subprocess.run(["umount", "-l", place], check=False)
    shutil.rmtree(DIRECTORY, ignore_errors=True)


def down():
    """Asks the supervisor to end the engine, and waits for its end."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(USED)
    if not answers(SOCKET):
        # Its supervisor was killed.
        clean()
    until = time.monotonic() + START_SECONDS
    while os.path.exists(DIRECTORY):
        if time.monotonic() > until:
            sys.exit(f"the engine in `{DIRECTORY}` does not end")
        time.sleep(0.1)
    for path in [LOG, LOCK]:
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)


if __name__ == "__main__":
    commands = {"up": up, "down": down, "keep": keep}
    commands[sys.argv[1]]()
