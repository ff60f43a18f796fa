"""Programs that the daemon starts for a session, and what is hidden whatever the configuration exposes."""

import os
import tempfile
from pathlib import Path

from world import Target, quick

# What an agent plants: it records where it ran, if it can.
PLANT = "import os; open(os.environ.get('MARK', '{mark}'), 'w').write(str(os.getuid())); import sys; sys.exit(0)"


def started(target, session, server, caller="srv"):
    """Names a server as a caller of a session; whether it could be used does not matter here."""
    context = {"caller_id": caller, "caller_server": server}
    return target.tool("session_message", session_id=session.id, message="true", context=context)


def plant(session, mark):
    """Files through which programs outside would run the agent's code: in the workspace and in the home."""
    code = PLANT.format(mark=mark)
    script = f"""cat > mcp_server_git.py <<'END'
{code}
END
cp mcp_server_git.py sitecustomize.py; cp mcp_server_git.py usercustomize.py; cp mcp_server_git.py json.py
version=$(/usr/bin/python3 -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
mkdir -p ~/.local/lib/$version/site-packages node_modules/.bin bin ~/bin ~/.local/bin
cp mcp_server_git.py ~/.local/lib/$version/site-packages/usercustomize.py
for it in node_modules/.bin/mcp-server-filesystem bin/python3 ~/bin/python3 ~/.local/bin/python3 python3 npx; do
  printf '#!/bin/sh\\nid -u > {mark}\\n' > $it; chmod 755 $it
done
printf 'id -u > {mark}\\n' > ~/.profile; cp ~/.profile ~/.bashrc; cp ~/.profile ~/.bash_profile; cp ~/.profile .envrc
echo planted"""
    assert session.ask(script).strip() == "planted"


@quick
def no_file_of_an_agent_runs_outside(world):
    """A module, package or startup file that an agent planted is not run by any program outside a sandbox."""
    target = world.target()
    with tempfile.TemporaryDirectory() as directory:
        mark = Path(directory, "mark")
        os.chmod(directory, 0o777)
        servers = [
            {"command": "python3", "args": ["-m", "mcp_server_git"]},
            {"command": "/usr/bin/python3", "args": ["-c", "import json"]},
            {"command": "sh", "args": ["-c", "exec python3 -m mcp_server_git"]},
            {"command": "bash", "args": ["-lc", "true"]},
            {"command": "node_modules/.bin/mcp-server-filesystem", "args": []},
            {"command": "./python3", "args": []},
        ]
        for workspace in (None, "read", "write"):
            session = target.agent("true", create_workspace=True)
            session.said()
            plant(session, mark)
            for n, server in enumerate(servers):
                more = {} if workspace is None else {"workspace": workspace}
                started(target, session, server | more, f"srv{n}")
                assert not mark.exists(), f"{server} {workspace}: it ran outside, as user {mark.read_text()!r}"
            session.end()


@quick
def a_server_runs_in_a_box_of_its_own(world):
    """It reads neither the data directory nor, unless requested, the workspace; it writes nothing outside."""
    target = world.target()
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o777)
        session = target.agent("echo precious > file; echo precious > ~/file", create_workspace=True)
        session.said()
        script = f"cat {target.data}/token > {directory}/token; id > {directory}/id; ls / > {directory}/ls"
        script += f"; echo spoiled > {session.path()}/file"
        started(target, session, {"command": "/bin/sh", "args": ["-c", script]})
        found = sorted(os.listdir(directory))
        assert not found, f"it wrote outside: {found}"
        assert session.ask("cat file ~/file").split() == ["precious", "precious"]
        session.end()


@quick
def a_server_sees_the_workspace_as_it_was_asked_for(world):
    """`none` by default, `read` cannot write, and any other word is invalid."""
    target = world.target()
    session = target.agent("echo precious > file", create_workspace=True)
    session.said()
    wrong = started(target, session, {"command": "/bin/true", "workspace": "all"})
    assert wrong.status == 400, wrong
    for workspace, expected in [(None, "precious"), ("none", "precious"), ("read", "precious"), ("write", "spoiled")]:
        inner = target.agent("true", project_id=session.project, workspace_id=session.workspace)
        more = {} if workspace is None else {"workspace": workspace}
        script = "for it in /workspace . ; do echo spoiled > $it/file; done"
        started(target, inner, {"command": "/bin/sh", "args": ["-c", script], **more})
        assert (session.path() / "file").read_text().strip() == expected, workspace
        inner.end()
    session.end()


@quick
def a_link_does_not_show_the_data_directory(world):
    """Hidden means canonical: the data directory below a link, with its neighbours exposed."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        real = Path(directory, "real/parent")
        real.mkdir(parents=True)
        Path(directory, "link").symlink_to(real)
        config = f'[sandbox]\nread_only = ["{{probes}}", "{directory}/real"]\n'
        with Linked(world, config, f"{directory}/link/data") as target:
            said = read_by_an_agent(target, f"cat {directory}/real/parent/data/token; ls {directory}/real/parent/data")
            assert target.token not in said and "ringback.db" not in said, said


class Linked(Target):
    """A daemon whose data directory is named in another way."""

    def __init__(self, world, config, place):
        self.place = place
        super().__init__(world, config=config)

    def command(self):
        words = super().command()
        words[words.index("--data-dir") + 1] = self.place
        return words


def read_by_an_agent(target, script):
    """The text that an agent reads; empty if no session starts."""
    answer = target.tool("session_message", project_id=target.project(), message=script)
    if answer.status != 200:
        assert answer.code in ("INVALID_REQUEST", "INTERNAL_ERROR", "BUSY", "CONFLICT", "TOOL_ERROR", "FORBIDDEN"), (
            answer
        )
        return ""
    opened = answer.json["result"]
    texts, since = [], -1
    for _ in range(60):
        page = target.done("session_events", session_id=opened["session_id"], since_index=since, wait_ms=500)
        since = page["last_index"]
        texts += [it.get("text") or "" for it in page["events"] if it.get("role") == "assistant"]
        if any(it.get("status") in ("idle", "completed", "failed", "ended") for it in page["events"]):
            break
    target.tool("session_end", session_id=opened["session_id"])
    return "\n".join(texts)


@quick
def key_files_are_hidden_whatever_is_shown(world):
    """The key of a provider below an exposed directory, by its own path and through a link."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        key = Path(directory, "shown/model.key")
        key.parent.mkdir()
        key.touch(mode=0o600)
        key.write_text("sk-secret-of-the-provider")
        (key.parent / "link").symlink_to(key)
        config = (
            f'[sandbox]\nread_only = ["{{probes}}", "{directory}/shown"]\n'
            f'[providers.mine]\nurl = "http://127.0.0.1:9"\nkey_file = "{key}"\n'
        )
        with StartsOrNot(world, config) as target:
            if target is None:
                return
            said = read_by_an_agent(target, f"cat {key}; cat {key.parent}/*")
            assert "sk-secret-of-the-provider" not in said, said


class StartsOrNot:
    """A daemon whose configuration may be refused: then there is nothing to attack, and one line explains why."""

    def __init__(self, world, config):
        try:
            self.target = Target(world, config=config)
        except AssertionError:
            self.target = None

    def __enter__(self):
        return self.target

    def __exit__(self, *_):
        if self.target:
            self.target.clean_up()
