//! Readable and writable paths.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use ringback_sandbox::{ReadOnly, StartError};
use tokio::io::AsyncReadExt as _;

use crate::bench::{Backend, Bench, ScriptResult, User, everywhere};
use crate::concurrency::{sandbox, spec};

everywhere! {
    /// Rule: no file of the host outside the mounts can be read, by any path.
    a_file_outside_of_the_mounts_is_not_there
}
fn a_file_outside_of_the_mounts_is_not_there(bench: &Bench) {
    let token = bench.path("data/token");
    let script = format!(
        "for path in {0} /proc/1/root{0} /proc/self/root{0} /proc/self/cwd/../..{0} \
         /workspace/../data/token /etc/shadow /home /root /var/log/dpkg.log; \
         do ls $path && echo leak; done 2>/dev/null; echo done",
        token.display()
    );
    bench.shell(&[], &script).says("done");
}

everywhere! {
    /// Rule: a sandbox has a system, a workspace, its session, and nothing else.
    the_root_has_only_what_was_put_there
}
fn the_root_has_only_what_was_put_there(bench: &Bench) {
    let ran = bench.shell(&[], "ls -A /; ls -A /tmp /dev/shm; ls /etc; ls -A /sys 2>/dev/null");
    let known = "bin dev etc lib lib32 lib64 libx32 mcp proc sbin tmp usr workspace \
        /tmp: /dev/shm: alternatives ca-certificates.conf group hosts ld.so.cache ld.so.conf \
        ld.so.conf.d localtime maven nsswitch.conf passwd pki resolv.conf ssl";
    // Engines put these into every container: a marker, the name of the sandbox, and `/sys`, which
    // is empty.
    let engines = match bench.backend {
        Backend::Bubblewrap => "",
        Backend::Docker => ".dockerenv hostname mtab sys",
    };
    let known: Vec<_> = known.split_whitespace().chain(engines.split_whitespace()).collect();
    for name in ran.out.split_whitespace() {
        let is_java = name.starts_with("java-") && name.ends_with("-openjdk");
        assert!(known.contains(&name) || is_java, "{name} in {ran:?}");
    }
}

everywhere! {
    /// Rule: another session's socket cannot be reached, nor any abstract socket.
    the_socket_of_another_session_is_out_of_reach
}
fn the_socket_of_another_session_is_out_of_reach(bench: &Bench) {
    use std::os::linux::net::SocketAddrExt as _;
    let (own, other) = (bench.path("session/relay.sock"), bench.path("other/relay.sock"));
    let _own = UnixListener::bind(&own).unwrap();
    let _other = UnixListener::bind(&other).unwrap();
    for path in [&own, &other] {
        // Not because of its permissions: because it does not exist there.
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    }
    let name = format!("ringback-test-{}", std::process::id());
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
    let _abstract = UnixListener::bind_addr(&address).unwrap();
    let script = format!(
        "import socket\nfor path in ['/mcp/relay.sock', '{}', '\\0{name}']:\n  \
         s = socket.socket(socket.AF_UNIX)\n  \
         try:\n    s.connect(path); print('reached')\n  \
         except OSError as error:\n    print(error.strerror)",
        other.display()
    );
    bench.python(&[], &script).says("reached\nNo such file or directory\nConnection refused");
}

everywhere! {
    /// Rule: the daemon's environment cannot be read, and no process of the host is visible.
    neither_the_daemons_environment_nor_its_processes_are_seen
}
fn neither_the_daemons_environment_nor_its_processes_are_seen(bench: &Bench) {
    let script = "cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n' | grep -c 'hunter[2]'; \
        ls -d /proc/[0-9]* | wc -l; env | cut -d= -f1 | sort | tr '\\n' ' '";
    let mut command = bench.command(&[], &["/bin/sh", "-c", script]);
    let ran = ScriptResult::from(command.env("DAEMON_KEY", "hunter2").output().unwrap());
    let lines: Vec<_> = ran.out.lines().collect();
    let names = match bench.backend {
        Backend::Bubblewrap => "PATH PWD",
        // An engine adds these two, and those of its image.
        Backend::Docker => "HOME HOSTNAME PATH PWD",
    };
    assert_eq!((lines[0], lines[2].trim()), ("0", names), "{ran:?}");
    // The first process, the shell, and those that counted.
    assert!(lines[1].parse::<u32>().unwrap() <= 5, "{ran:?}");
}

everywhere! {
    /// Rule: a key in the environment of a sandbox is on no command line of any process of this
    /// machine.
    a_key_is_on_no_command_line
}
fn a_key_is_on_no_command_line(bench: &Bench) {
    let key = format!("swordfish-{}", std::process::id());
    let script =
        "printf %s \"$KEY\" > key && mv key ready; while [ -e ready ]; do sleep 0.05; done";
    let mut command = bench.command(&["--env-from", "KEY"], &["/bin/sh", "-c", script]);
    let mut child = command.env("KEY", &key).spawn().unwrap();
    let ready = bench.path("workspace/ready");
    crate::bench::wait_for("it runs", || ready.exists());
    // Neither of the program that made the sandbox, nor an engine, nor anything in it.
    assert_eq!(crate::bench::mentioning(&key), Vec::<String>::new());
    assert_eq!(fs::read_to_string(&ready).unwrap(), key);
    fs::remove_file(ready).unwrap();
    assert!(child.wait().unwrap().success());
}

everywhere! {
    /// Rule: the device nodes of this machine can be read and written, but not changed.
    the_nodes_of_devices_stay_as_they_are
}
fn the_nodes_of_devices_stay_as_they_are(bench: &Bench) {
    use std::os::unix::fs::MetadataExt as _;
    let nodes =
        ["null", "zero", "full", "random", "urandom", "tty"].map(|name| format!("/dev/{name}"));
    let state = || {
        let of = |node: &String| {
            let node = fs::metadata(node).unwrap();
            (node.mode(), node.uid(), node.gid(), node.mtime(), node.mtime_nsec())
        };
        nodes.iter().map(of).collect::<Vec<_>>()
    };
    let before = state();
    // Set to the current values: if that is allowed, so is anything else.
    let script = "for node in null zero full random urandom tty; do \
        chmod 666 /dev/$node && echo changed mode of $node; \
        chown $(id -u) /dev/$node && echo changed owner of $node; \
        touch -d '2001-01-01' /dev/$node && echo changed time of $node; done 2>/dev/null; \
        echo x > /dev/null && head -c 3 /dev/zero | wc -c; head -c 4 /dev/urandom | wc -c; \
        (echo x > /dev/full) 2>/dev/null || echo full";
    bench.shell(&[], script).says("3\n4\nfull");
    assert_eq!(state(), before);
}

everywhere! {
    /// Rule: none of the daemon's open files is open in a sandbox, not even an inherited one.
    no_open_file_is_handed_down
}
fn no_open_file_is_handed_down(bench: &Bench) {
    let inner = bench.command(&[], &["/bin/sh", "-c", "ls /proc/self/fd | tr '\\n' ' '"]);
    let mut outer = std::process::Command::new("/bin/bash");
    outer.args(["-c", "exec 9<\"$1\"; shift; exec \"$@\"", "bash"]);
    outer.arg(bench.path("data/token")).arg(inner.get_program()).args(inner.get_args());
    // The fourth is the directory that `ls` reads.
    ScriptResult::from(outer.output().unwrap()).says("0 1 2 3");
}

everywhere! {
    /// Rule: a symlink in the workspace leads nowhere outside.
    a_symlink_in_the_workspace_leads_nowhere
}
fn a_symlink_in_the_workspace_leads_nowhere(bench: &Bench) {
    symlink(bench.path("data/token"), bench.path("workspace/link")).unwrap();
    symlink(bench.path("data"), bench.path("workspace/dir")).unwrap();
    let script = "{ cat link dir/token && echo leak; echo evil > link && echo leak; } 2>/dev/null; \
        ln -s /etc/shadow made; cat made 2>/dev/null && echo leak; echo done";
    bench.shell(&[], script).says("done");
    assert_eq!(fs::read_to_string(bench.path("data/token")).unwrap(), "SECRET");
}

everywhere! {
    /// Rule: the workspace, the home, `/tmp` and shared memory can be written, nothing else.
    only_the_workspace_and_private_places_can_be_written
}
fn only_the_workspace_and_private_places_can_be_written(bench: &Bench) {
    fs::write(bench.path("session/relay.sock"), "").unwrap();
    let script = "for path in /x /usr/x /bin/x /etc/x /etc/passwd /dev/x /mcp/x /mcp/relay.sock \
        /proc/self/oom_score_adj /proc/1/mem /proc/sys/kernel/core_pattern /proc/sysrq-trigger \
        /proc/self/mem; do (echo x >> $path) 2>/dev/null && echo wrote $path; done; \
        rm -f /mcp/relay.sock 2>/dev/null && echo removed; \
        for path in /workspace/x /tmp/x /dev/shm/x; do echo x > $path && echo fine; done";
    bench.shell(&[], script).says("fine\nfine\nfine");
    assert!(bench.path("workspace/x").exists() && bench.path("session/relay.sock").exists());
}

everywhere! {
    /// Rule: the home is the agent's own, is the home directory of its user, and is not part of the
    /// workspace.
    a_home_can_be_written_and_is_outside_of_the_workspace
}
fn a_home_can_be_written_and_is_outside_of_the_workspace(bench: &Bench) {
    let home = bench.path("home");
    let script = "ls -A /home ~agent; echo x > ~agent/kept && cat /home/agent/kept; \
        (echo x > /home/x) 2>/dev/null || ls -A /workspace";
    let ran = bench.shell(&["--home", home.to_str().unwrap()], script);
    assert_eq!(ran.out, "/home:\nagent\n\n/home/agent:\nx\n", "{ran:?}");
    assert!(home.join("kept").exists());
}

everywhere! {
    /// Rule: kernel files that reveal facts about the machine cannot be read.
    the_kernels_own_files_are_empty
}
fn the_kernels_own_files_are_empty(bench: &Bench) {
    let script = "cat /proc/kcore /proc/keys /proc/kallsyms /proc/timer_list /proc/slabinfo \
        /proc/kpagecount /proc/vmallocinfo 2>/dev/null | head -c 1 | wc -c";
    bench.shell(&[], script).says("0");
}

everywhere! {
    /// Rule: two sandboxes share nothing but the read-only system.
    two_boxes_do_not_see_each_other
}
fn two_boxes_do_not_see_each_other(bench: &Bench) {
    let neighbour = bench.another();
    let script = "echo mine > /tmp/x; echo mine > /dev/shm/x; touch ready; sleep 30";
    let mut child = neighbour.start(&[], script);
    crate::bench::wait_for("the neighbour runs", || neighbour.path("workspace/ready").exists());
    let script = "ls -A /tmp /dev/shm /workspace | grep -v :; ps -e -o comm= | grep -c sleep";
    let ran = bench.shell(&[], script);
    assert_eq!(ran.out.trim(), "0", "{ran:?}");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Rule: a path that is covered is empty and stays so, whether it is a file or a directory; of what
/// is shown beside it, nothing can be written, and a cache can. A container, which covers nothing,
/// is refused.
#[tokio::test]
async fn what_is_covered_is_empty_and_a_cache_is_writable() {
    for bench in [Some(Bench::new(User::Me)), Bench::docker(User::Me)].into_iter().flatten() {
        covered_and_cached(&bench).await;
    }
}

async fn covered_and_cached(bench: &Bench) {
    let (shown, cache) = (bench.path("shown"), bench.path("cache"));
    fs::create_dir_all(shown.join("dir")).unwrap();
    fs::create_dir(&cache).unwrap();
    for name in ["file", "dir/file", "open"] {
        fs::write(shown.join(name), format!("of {name}\n")).unwrap();
    }
    let script = format!(
        "cd {}; cat open file; ls -A dir; touch open file dir/x 2>&1 | wc -l; \
         echo made > /cache/made; cat /cache/made",
        shown.display()
    );
    let mut spec = spec(bench, &script);
    spec.read_only.push(ReadOnly::same(&shown));
    spec.masked = vec![shown.join("file"), shown.join("dir")];
    spec.cache = Some(cache.clone());
    let started = sandbox(bench).start(spec).await;
    if bench.backend == Backend::Docker {
        assert!(matches!(started, Err(StartError::Mount { .. })), "{started:?}");
        return;
    }
    let mut confined = started.unwrap();
    let mut said = String::new();
    confined.pipes.stdout.read_to_string(&mut said).await.unwrap();
    assert_eq!(said, "of open\n3\nmade\n");
    confined.hold.gone().await;
    assert_eq!(fs::read_to_string(cache.join("made")).unwrap(), "made\n");
    assert_eq!(fs::read_to_string(shown.join("file")).unwrap(), "of file\n");
}
