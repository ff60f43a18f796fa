"""The disk: trees that are hard to delete, a full one, and races with links."""

import os
import threading
import time
from pathlib import Path

from world import MIB, STRANGER, WITHOUT_GROUPS, Options, eventually, processes, quick, slow

# A small disk: the daemon's own files and a little more.
SMALL = "size=96m,nr_inodes=20000"
# One that is only fast: on a busy disk, 15,000 directories take their time.
LARGE = "size=1g"
DEEP = """python3 - <<'END'
import os
for n in range(15000):
    os.mkdir('d'); os.chdir('d')
open('bottom', 'w')
END
echo dug"""
CLOSED = """mkdir -p closed/inner ro/inner ~/go/pkg/mod && touch closed/inner/f ro/inner/f ~/go/pkg/mod/f
chmod 000 closed/inner; chmod 000 closed; chmod 555 ro/inner ro; chmod 444 ro/inner/f
chmod 555 ~/go/pkg/mod ~/go/pkg ~/go
echo closed"""


def delete(target, session, tool="workspace_delete"):
    """Deletes what a session left, and checks that it is gone."""
    path = session.path()
    home = Path(str(path).replace("/workspaces/", "/homes/"))
    assert session.end().status == 200
    place = {"project_id": session.project}
    if tool == "workspace_delete":
        place["workspace_id"] = session.workspace
    answer = target.tool(tool, place)
    assert answer.status == 200, f"{tool}: {answer}"
    for it in (path, home):
        assert not os.path.lexists(it), f"{it} is left"
    if tool == "workspace_delete":
        listed = target.done("workspace_list", project_id=session.project)
        assert session.workspace not in str(listed), listed


@quick
def a_deep_tree_is_deleted_and_the_daemon_lives(world):
    with world.another(disk=LARGE) as target:
        for tool in ("workspace_delete", "project_delete"):
            session = target.agent(DEEP, create_workspace=True)
            assert session.said().strip() == "dug"
            delete(target, session, tool)
            target.is_well()


@quick
def a_deep_tree_is_looked_through_and_the_daemon_lives(world):
    """Whatever the answers are, none of them ends the daemon."""
    with world.another(disk=LARGE) as target:
        session = target.agent(DEEP, create_workspace=True)
        session.said()
        place = {"project_id": session.project, "workspace_id": session.workspace}
        ways = [("workspace_diff", {}), ("workspace_get", {"recursive": True}), ("workspace_get", {"archive": True})]
        for tool, more in ways:
            answer = target.tool(tool, {**place, **more})
            assert answer.status in (200, 400, 409, 413, 502), f"{tool}: {answer}"
        target.is_well()


@quick
def closed_and_read_only_directories_are_deleted(world):
    """As Go's module cache makes them; also with a daemon that is not root."""
    for target in (world.target(), world.target("user", config=WITHOUT_GROUPS, user=STRANGER)):
        for tool in ("workspace_delete", "project_delete"):
            session = target.agent(CLOSED, create_workspace=True)
            assert session.said().strip() == "closed"
            delete(target, session, tool)
        target.is_well()


def is_full(target):
    disk = os.statvfs(target.data)
    return disk.f_bavail * disk.f_frsize < 256 * 1024 or disk.f_favail < 16


FILLERS = {
    "reserved bytes": "n=0; for size in 16M 1M 64K 4K; do while fallocate -l $size f$n; do n=$((n + 1)); done; done",
    "written bytes": "while head -c 1M /dev/zero >> g; do :; done; while echo x >> g; do :; done",
    "files": "python3 -c \"n = 0\nwhile n < 30000: open(f'e{n}', 'w').close(); n += 1\"",
}


@quick
def a_full_disk_is_freed_through_the_daemon(world):
    """Ending and deleting work, others go on, and so does the next start."""
    for name, filler in FILLERS.items():
        with world.another(disk=SMALL) as target:
            other = target.agent("echo here", create_workspace=True)
            other.said()
            hostile = target.agent(f"({filler}) 2>/dev/null; sleep 60", create_workspace=True)
            eventually(
                lambda: is_full(target) or not is_at_work(target, hostile),
                f"{name}: it is full, or the agent is ended",
                20,
            )
            time.sleep(0.5)
            ended = hostile.end(limit=15)
            assert ended.status == 200, f"{name}: session_end: {ended}"
            place = {"project_id": hostile.project, "workspace_id": hostile.workspace}
            deleted = target.tool("workspace_delete", place, limit=15)
            assert deleted.status == 200, f"{name}: workspace_delete: {deleted}"
            assert not is_full(target), f"{name}: nothing was freed"
            assert other.ask("echo still here").strip() == "still here", name
            target.run("true", create_workspace=True)
            target.is_well()


def is_at_work(target, session):
    return target.done("session_get", session_id=session.id)["status"] in ("starting", "running")


def is_over(target, session):
    return target.done("session_get", session_id=session.id)["status"] in ("ended", "failed", "interrupted")


@quick
def a_full_disk_does_not_keep_the_daemon_from_starting(world):
    with world.another(disk=SMALL) as target:
        session = target.agent("true", create_workspace=True)
        session.said()
        path = session.path()
        target.kill()
        with open(path / "ballast", "wb") as file:
            try:
                while True:
                    file.write(bytes(MIB))
                    file.flush()
            except OSError:
                pass
        assert is_full(target)
        target.start()
        place = {"project_id": session.project, "workspace_id": session.workspace}
        target.tool("session_end", session_id=session.id, limit=15)
        deleted = target.tool("workspace_delete", place, limit=15)
        assert deleted.status == 200, deleted
        target.run("true", create_workspace=True)


@quick
def a_command_that_fills_the_disk_is_ended(world):
    """Commands are ended like agents, long before their deadline; and the call is answered by its deadline, although
    its end cannot be stored."""
    with world.another(disk=SMALL) as target:
        project = target.project()
        # Only a command that is ended does not reach it.
        marker = f"sleep 47{os.getpid()}"
        script = f"({FILLERS['written bytes']}) 2>/dev/null; {marker}"
        answers = []

        def fill():
            command = ["/bin/sh", "-c", script]
            answers.append(
                target.tool("container_exec", project_id=project, command=command, query="?deadline_ms=15000", limit=30)
            )

        caller = threading.Thread(target=fill)
        started = time.monotonic()
        caller.start()
        eventually(lambda: processes(marker), "the command runs", 5)
        eventually(lambda: not processes(marker), "the command is ended", 10)
        assert time.monotonic() - started < 12, "it was ended by its deadline"
        caller.join(30)
        took = time.monotonic() - started
        assert took < 20 and answers, f"not answered by its deadline: {took:.0f} s"
        answer = answers[0]
        assert answer.status != 200 or answer.json["result"]["exit_code"] != 0, answer

        deleted = target.tool("project_delete", project_id=project, limit=15)
        assert deleted.status == 200, deleted
        assert not is_full(target)

        def works():
            return target.tool("project_create", name=f"p{time.monotonic_ns()}", limit=10).status == 200

        eventually(works, "the daemon takes projects again", 20)


@quick
def a_sparse_file_does_not_fill_the_disk(world):
    """A hole takes nothing until it is read into the store: then it counts before it is stored, and no session is
    ended."""
    with world.another(disk=LARGE) as target:
        other = target.agent("head -c 5M /dev/zero > innocent", create_workspace=True)
        other.said()
        session = target.agent("truncate -s 1000M sparse", create_workspace=True)
        session.said()
        place = {"project_id": session.project, "workspace_id": session.workspace}
        before = os.statvfs(target.data).f_bavail
        for more in ({"path": "sparse"}, {"archive": True}):
            answer = target.tool("workspace_get", {**place, **more})
            assert answer.status >= 400, f"{more}: {answer}"
            disk = os.statvfs(target.data)
            lost = (before - disk.f_bavail) * disk.f_frsize
            assert lost < 16 * MIB, f"{more}: {lost / MIB:.0f} MiB are gone: {answer}"
        time.sleep(1)
        assert not is_over(target, other), "another agent was ended for it"
        target.is_well()


def race(target, seconds):
    """An agent continuously swaps a directory for a link while the daemon reads, writes and packs below it."""
    outside = target.home / "outside"
    outside.mkdir(exist_ok=True)
    (outside / "secret").write_text("SECRET OF THE HOST")
    swap = f"""mkdir -p real && echo honest > real/secret && ln -sfn {outside} link
python3 - <<'END'
import os, time
until = time.monotonic() + {seconds}
while time.monotonic() < until:
    for source in ('real', 'link'):
        os.rename(source, 'place'); os.rename('place', source)
        os.rename(source, 'place') ; os.rename('place', source)
END"""
    session = target.agent(swap, create_workspace=True)
    place = {"project_id": session.project, "workspace_id": session.workspace}
    ends_at, counts, found = time.monotonic() + seconds, [0] * 4, []

    def loop(index, tool, **more):
        while time.monotonic() < ends_at:
            answer = target.tool(tool, {**place, **more})
            counts[index] += 1
            if b"U0VDUkVUIE9G" in answer.body or b"SECRET OF" in answer.body:
                found.append(f"{tool}: {answer}")

    threads = [
        threading.Thread(target=loop, args=(0, "workspace_get"), kwargs={"path": "place/secret"}),
        threading.Thread(target=loop, args=(1, "workspace_put"), kwargs={"path": "place/planted", "data": "aGk="}),
        threading.Thread(target=loop, args=(2, "workspace_get"), kwargs={"recursive": True}),
        threading.Thread(target=loop, args=(3, "workspace_diff")),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    session.end()
    assert not found, found[0]
    assert sorted(os.listdir(outside)) == ["secret"], os.listdir(outside)
    assert (outside / "secret").read_text() == "SECRET OF THE HOST"
    print(f"   {sum(counts)} reads, writes and diffs", flush=True)
    assert min(counts[:2]) > 10, counts


@quick
def no_swapped_link_leads_the_daemon_out(world):
    race(world.target(), 3)


@slow
def no_swapped_link_leads_the_daemon_out_for_long(world):
    race(world.target(), 120 if Options.is_slow else 3)
