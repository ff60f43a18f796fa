"""What `ringback session apply` copies from a workspace into a user's directory."""

import os
import subprocess
import tempfile
from pathlib import Path

from world import LIMIT, quick

# Links that an agent makes, in this order: none of them may lead out of the directory, in any way.
LINKS = [
    {"a/b/c/d": "../../..", "a/b/c/e": "d/../victim"},
    {"x": "/etc"},
    {"x": ".."},
    {"a/x": "../../victim"},
    {"one": "two", "two": "three", "three": "../victim"},
    {"dir/up": "..", "way": "dir/up/../victim"},
    {"p": "q/../../victim", "q": "."},
]


def ringback(target, directory, *words):
    environment = target.environment() | {
        "RINGBACK_DAEMON": target.hoot,
        "RINGBACK_TOKEN": target.token,
        "XDG_STATE_HOME": str(target.home),
    }
    return subprocess.run(
        [str(target.world.shared_binary), *words],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def leads_out(top, link):
    """Whether the kernel, following it, leaves the directory."""
    return not Path(os.path.realpath(link)).is_relative_to(os.path.realpath(top))


@quick
def no_link_that_is_applied_leads_out(world):
    target = world.target()
    for links in LINKS:
        with tempfile.TemporaryDirectory() as directory:
            top = Path(directory, "mine")
            top.mkdir()
            (top / "file").write_text("old\n")
            Path(directory, "victim").write_text("precious\n")
            lines = ["echo new > file"]
            lines += [f"mkdir -p $(dirname {link}); ln -s {aim} {link}" for link, aim in links.items()]
            ran = ringback(target, top, "run", "; ".join(lines), "--dir", ".", "--json")
            assert ran.returncode == 0, ran
            session = target.done("session_list")["sessions"][0]["session_id"]
            applied = ringback(target, top, "session", "apply", session)
            made = [top / link for link in links if (top / link).is_symlink()]
            out = [str(it.relative_to(top)) for it in made if leads_out(top, it)]
            assert not out, f"{links}: {out} were made: {applied}"
            target.tool("session_end", session_id=session)
