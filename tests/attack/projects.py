"""What `ringback run` hands an agent besides files: toolchains, caches, and a repository that may be hostile."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

from world import LIMIT, quick

SECRET = "attack-secret-41"
# Every file of the sandbox but the system, without the word itself on any command line.
SEARCH = (
    "find / -xdev -maxdepth 9 -type f -not -path '/proc/*' -not -path '/usr/*' -size -64k"
    " -exec grep -l 'attack-[s]ecret' {} + 2>/dev/null;"
    " for it in $(awk '{print $5}' /proc/self/mountinfo | grep -v '^/$\\|^/usr\\|^/proc\\|^/dev\\|^/sys'); do"
    " grep -rl 'attack-[s]ecret' $it 2>/dev/null; done; env | grep 'attack-[s]ecret'; echo searched"
)


def ringback(target, directory, *words, path="/usr/bin:/bin", home=None, **variables):
    """The command line of the daemon's own user, over its own socket."""
    environment = target.environment() | {"PATH": path, "XDG_STATE_HOME": str(target.home), **variables}
    environment.pop("RINGBACK_DAEMON", None)
    environment.pop("RINGBACK_TOKEN", None)
    if home:
        environment["HOME"] = str(home)
    words = [str(target.world.shared_binary), *words]
    return subprocess.run(
        words, cwd=directory, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False
    )


def run(target, directory, script, *more, **rest):
    ran = ringback(target, directory, "run", script, "--dir", str(directory), *more, **rest)
    assert ran.returncode == 0, ran
    # What the user said is no answer.
    return "".join(it + "\n" for it in ran.stdout.splitlines() if not it.startswith("> "))


def write(top, path, text, mode=0o755):
    place = Path(top, path)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    place.chmod(mode)
    return place


@quick
def no_secret_on_the_path_is_shown(world):
    target = world.target()
    with tempfile.TemporaryDirectory() as top:
        home, project = Path(top, "ada"), Path(top, "project")
        project.mkdir()
        program = "#!/bin/sh\nexit 0\n"
        for path in (
            "node/bin/node",
            "node/lib/node_modules/npm/cli.js",
            ".cargo/bin/cargo",
            ".cargo/bin/rustup",
            ".rustup/settings.toml",
            ".rustup/toolchains/stable/bin/rustc",
            "go/bin/go",
            "go/VERSION",
            "go/src/runtime/x.go",
            "mvn/bin/mvn",
            "mvn/boot/x",
            "mvn/lib/x",
            "py/bin/python3",
            "py/lib/python3.13/os.py",
            "jdk/bin/java",
            "jdk/lib/modules",
            "jdk/release",
        ):
            write(home, path, program)
        secrets = [
            *(f".cargo/{it}" for it in ("credentials", "credentials.toml", "config.toml", "registry/x", "env")),
            *(f"node/{it}" for it in ("etc/npmrc", "bin/.npmrc", "lib/node_modules/a/.env", ".npmrc", "secret")),
            *(f"mvn/{it}" for it in ("conf/settings.xml", "lib/settings.xml", "bin/.netrc")),
            *(f"py/{it}" for it in ("pip.conf", "lib/python3.13/.pypirc", "bin/.git-credentials")),
            *(f"jdk/{it}" for it in ("conf/management/jmxremote.password", "lib/credentials", "secret")),
            *("go/go.env", "go/.git/config", "go/bin/.env", ".rustup/toolchains/stable/secret"),
            *(".ssh/id_ed25519", ".aws/credentials", ".netrc", ".npmrc", ".config/gh/hosts.yml", "bin/deploy"),
            *(".local/bin/uv", ".local/bin/deploy", ".docker/bin/node", ".docker/lib/node_modules/npm/x"),
        ]
        for path in secrets:
            write(home, path, f"#!/bin/sh\nTOKEN={SECRET}\n")
        # Links out of what is shown, and a home that looks like a toolchain.
        for link, aim in {
            "go/lib": ".ssh",
            "go/misc": "..",
            "jdk/conf/all": "../..",
            "node/include": ".aws",
            "py/include": "/root",
        }.items():
            Path(home, link).symlink_to(home / aim)
        write(home, "bin/node", program)
        write(home, "lib/node_modules/npm/x", SECRET)
        dirs = ["node/bin", ".cargo/bin", "go/bin", "mvn/bin", "py/bin", "jdk/bin", "bin", ".local/bin", ".docker/bin"]
        path = ":".join(str(home / it) for it in dirs) + f":.:{home}:/etc:/usr/bin:/bin"
        variables = {"GOROOT": str(home), "JAVA_HOME": str(home / "jdk"), "PYENV_ROOT": str(home / ".ssh")}
        said = run(target, project, f"for it in cargo go mvn java; do command -v $it; done; {SEARCH}", path=path, home=home, **variables)
        shown = [line for line in said.splitlines() if SECRET in line or line.startswith(str(home))]
        expected = [str(home / it) for it in (".cargo/bin/cargo", "go/bin/go", "mvn/bin/mvn", "jdk/bin/java")]
        assert shown == expected and "searched" in said, said


@quick
def no_token_and_no_agent_shows_a_path(world):
    target = world.target()
    request = {"create_workspace": True, "toolchains": {"path": "/root:/etc:/", "variables": {"GOROOT": "/root"}}}
    project = target.project()
    for token in (target.token, target.new_token("admin")[0], target.new_token("write")[0]):
        answer = target.tool("session_spawn", request, token=token, project_id=project)
        assert answer.status == 403, answer
    session = target.agent("true", project_id=target.project(key_level="write"))
    try:
        session.said()
        with session.relay() as relay:
            kind, said = relay.call(session.key(), "session_spawn", project_id=session.project, **request)
        assert kind in ("forbidden", "permission_denied"), (kind, said)
    finally:
        session.end()


@quick
def a_poisoned_cache_stays_with_its_project(world):
    target = world.target()
    with tempfile.TemporaryDirectory() as top:
        one, two = Path(top, "one"), Path(top, "two")
        one.mkdir(), two.mkdir()
        poison = (
            "mkdir -p /cache/cargo /cache/npm; echo poison > /cache/cargo/config.toml;"
            " ln -s / /cache/root; ln -s ../.. /cache/up; ls -A /cache | tr '\\n' ' '"
        )
        assert "cargo npm root up" in run(target, one, poison)
        look = "find / -xdev -name config.toml -path '*cargo*' 2>/dev/null; ls -A /cache; cat /cache/cargo/*; echo end"
        assert "poison" in run(target, one, look)
        assert "poison" not in run(target, two, look)
        assert "poison" not in run(target, one, look, "--project", target.project())
        # By another way to the same name.
        for name in (f"{one}/", f"{top}/two/../one"):
            answer = run(target, Path(name), "cat /cache/cargo/config.toml")
            assert "poison" in answer, "it is the same directory"
        # What leads out of a cache leads nowhere, and its removal follows nothing.
        project = next(it for it in target.done("project_list")["projects"] if it["name"] == "terminal")["project_id"]
        for session in target.done("session_list")["sessions"]:
            if session["status"] not in ("ended", "failed", "interrupted"):
                target.tool("session_end", session_id=session["session_id"])
        deleted = target.tool("project_delete", project_id=project)
        assert deleted.status == 200, deleted
        assert Path("/usr/bin/env").exists() and not Path(target.data, "caches", project).exists()


HOOKS = "post-checkout post-commit post-index-change pre-commit reference-transaction update pre-auto-gc".split()


def armed(top, trace):
    """A repository that runs a program wherever `git` lets it."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    quiet = {"cwd": top, "check": True, "timeout": LIMIT, "capture_output": True}
    write(top, "a.txt", "a\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], **quiet)
    program = write(top, ".git/armed", f"#!/bin/sh\necho ran $0 >> {trace}\ncat\n")
    for hook in HOOKS:
        write(top, f".git/hooks/{hook}", f"#!/bin/sh\necho {hook} >> {trace}\n")
    keys = [
        *("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.askPass", "core.gitProxy"),
        *("core.alternateRefsCommand", "diff.external", "diff.x.textconv", "diff.x.command", "merge.x.driver"),
        *("filter.x.clean", "filter.x.smudge", "filter.x.process", "gpg.program", "uploadpack.packObjectsHook"),
        *("credential.helper", "alias.status", "alias.fast-import", "trailer.x.command", "sequence.editor"),
        *("interactive.diffFilter", "pager.log", "man.x.cmd", "sendemail.toCmd", "remote.origin.uploadpack"),
    ]
    config = "".join(
        f'[{section} "{name}"]\n\t{key} = {program}\n' if name else f"[{section}]\n\t{key} = {program}\n"
        for section, name, key in ((it.split(".")[0], ".".join(it.split(".")[1:-1]), it.split(".")[-1]) for it in keys)
    )
    config += f'[core]\n\thooksPath = {top}/.git/hooks\n[remote "origin"]\n\turl = https://{SECRET}@example.org/x\n'
    config += "\tpromisor = true\n[extensions]\n\tpartialClone = origin\n[include]\n\tpath = more\n"
    with open(Path(top, ".git/config"), "a", encoding="utf-8") as file:
        file.write(config)
    write(top, ".git/more", f"[core]\n\tfsmonitor = {program}\n[filter \"y\"]\n\tclean = {program}\n")
    write(top, ".gitattributes", "* filter=x diff=x merge=x\n")
    write(top, ".git/info/attributes", "* filter=y\n")
    write(top, ".gitmodules", f'[submodule "a"]\n\tpath = a\n\turl = ext::{program}\n\tupdate = !{program}\n')
    write(top, ".git/credentials", SECRET)


@quick
def a_hostile_repository_runs_nothing(world):
    target = world.target()
    with tempfile.TemporaryDirectory() as top:
        trace, project = Path(top, "trace"), Path(top, "project")
        project.mkdir()
        armed(project, trace)
        # The agent arms its own repository as well: no one outside ever opens it.
        script = (
            "git log --format=%s; git remote -v; git config --list | grep -v '^core\\.\\|^user\\.\\|^submodule.active'; "
            f"{SEARCH}; git config core.fsmonitor 'touch {trace}'; git config alias.x '!touch {trace}';"
            f" for it in {' '.join(HOOKS)}; do echo 'touch {trace}' > .git/hooks/$it; chmod +x .git/hooks/$it; done;"
            " mkdir -p sub && cp -r .git sub/.git; echo b > b.txt; echo 'gitdir: /root' > sub/x"
        )
        said = run(target, project, script)
        assert "first\n" in said and SECRET not in said and "searched" in said, said
        before = said.split("searched")[0].splitlines()
        assert not [it for it in before if "=" in it or "example.org" in it], before
        session = target.done("session_list")["sessions"][0]["session_id"]
        for more in (["--dry-run"], ["--branch", "made"], ["--branch", "made"], []):
            ringback(target, project, "session", "apply", session, *more)
        assert Path(project, "b.txt").read_text() == "b\n"
        made = Path(project, ".git/refs/heads/made").read_text().strip()
        assert len(made) == 40, made
        assert not trace.exists(), trace.read_text()
        listed = [str(it.relative_to(project)) for it in project.rglob("*") if ".git" in it.parts[len(project.parts) + 1:]]
        assert not listed, listed
        # The same repository as one that another directory points at.
        for number, text in enumerate([f"gitdir: {project}/.git\n", f"gitdir: {project}/.git/../.git\n"]):
            evil = Path(top, f"evil{number}")
            write(evil, ".git", text, 0o644)
            said = run(target, evil, "git log --format=%s 2>&1; echo end")
            assert "first" not in said, said
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}
        subprocess.run(["git", "status"], cwd=project, env=environment, capture_output=True, timeout=LIMIT, check=False)
        assert trace.exists(), json.dumps("the trap does not work")
