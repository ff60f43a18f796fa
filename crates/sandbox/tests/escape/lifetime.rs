//! The end of sandboxes.

use std::fs;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::bench::{
    Backend, Bench, User, as_this_user, everywhere, marker, mentioning, sleepers, wait_for,
};

/// Starts sleepers in every way that has ever outlived a parent.
fn stubborn(part: u32) -> String {
    format!(
        "trap '' TERM HUP INT; N=$(({part} + 12345)); \
         (trap '' TERM; setsid sleep $N & ) & \
         setsid sh -c \"trap '' TERM HUP; (sleep $N &)\" ; \
         nohup sleep $N >/dev/null 2>&1 & \
         touch ready; sleep $N; sleep $N"
    )
}

everywhere! {
    /// Rule: a process that ignores SIGTERM, forks twice and leaves its session does not survive
    /// the end.
    nothing_survives_the_end
}
fn nothing_survives_the_end(bench: &Bench) {
    let (part, sum) = marker();
    let mut child = bench.start(&["--grace", "100"], &stubborn(part));
    wait_for("all of them sleep", || sleepers(sum).len() >= 4);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    child.wait().unwrap();
    assert_eq!(sleepers(sum), Vec::<u32>::new());
}

everywhere! {
    /// Rule: what a program leaves behind when it exits ends with it.
    nothing_survives_a_program_that_ends_by_itself
}
fn nothing_survives_a_program_that_ends_by_itself(bench: &Bench) {
    let (part, sum) = marker();
    let script = format!(
        "setsid sleep $(({part} + 12345)) >/dev/null 2>&1 & \
         until pgrep -x sleep >/dev/null; do :; done; echo bye; exit 7"
    );
    let ran = bench.shell(&[], &script);
    assert_eq!((ran.code, ran.out.as_str()), (Some(7), "bye\n"), "{ran:?}");
    assert_eq!(sleepers(sum), Vec::<u32>::new());
}

everywhere! {
    /// Rule: nothing survives `kill -9` of the process that started it, beyond its restart.
    nothing_survives_a_kill_of_the_parent
}
fn nothing_survives_a_kill_of_the_parent(bench: &Bench) {
    let (part, sum) = marker();
    let mut child = bench.start(&[], &stubborn(part));
    wait_for("all of them sleep", || sleepers(sum).len() >= 4);
    child.kill().unwrap();
    child.wait().unwrap();
    match bench.backend {
        // Immediately.
        Backend::Bubblewrap => {}
        // The engine does not notice the kill; the next start cleans up.
        Backend::Docker => bench.shell(&[], "echo next").says("next"),
    }
    wait_for("all of them are gone", || sleepers(sum).is_empty());
    wait_for("no bubblewrap is left", || mentioning(&format!("{part} + 12345")).is_empty());
}

/// Rule: a parent that is killed while sandboxes start leaves no running process, and half-made
/// sandboxes are ended by the next start.
#[test]
fn a_kill_while_boxes_start_leaves_nothing_after_the_next_start() {
    if !ringback_testkit::is_root() {
        return;
    }
    let bench = Bench::new(User::Me);
    let (part, sum) = marker();
    let script = format!("sleep $(({part} + 12345))");
    for after_ms in 0..30 {
        let mut child = bench.start(&["--processes", "9"], &script);
        // Not to wait for anything: hits another moment of the start each time.
        std::thread::sleep(Duration::from_micros(after_ms * 700));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    bench.shell(&[], "echo next").says("next");
    assert_eq!(sleepers(sum), Vec::<u32>::new());
    wait_for("no bubblewrap is left", || mentioning(&format!("{part} + 12345")).is_empty());
    assert_eq!(bench.groups(), Vec::<std::path::PathBuf>::new());
}

/// Rule: a parent that is killed while its containers start leaves nothing after the next start,
/// even if the engine is slower than that.
#[test]
fn a_kill_while_containers_start_leaves_nothing_after_the_next_start() {
    let Some(bench) = Bench::docker(User::Me) else { return };
    let (part, sum) = marker();
    let script = format!("sleep $(({part} + 12345))");
    for step in 0..6 {
        let mut child = bench.start(&[], &script);
        // Not to wait for anything: hits another moment of the start each time.
        std::thread::sleep(Duration::from_millis(20 + step * 60));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let mut next = bench.start(&[], "touch ready; sleep 1000");
    wait_for("the next one runs", || bench.path("workspace/ready").exists());
    wait_for("nothing else does", || sleepers(sum).is_empty() && bench.left().len() == 1);
    kill_process(Pid::from_child(&next), Signal::TERM).unwrap();
    next.wait().unwrap();
    assert_eq!(bench.left(), Vec::<String>::new());
}

/// Rule: cgroups of a killed daemon are removed at the next start.
#[test]
fn groups_of_a_killed_parent_are_removed_by_the_next_start() {
    if !ringback_testkit::is_root() {
        return;
    }
    let bench = Bench::new(User::Me);
    let (part, sum) = marker();
    let options = ["--processes", "50", "--memory", "268435456", "--cpu", "100"];
    let mut child = bench.start(&options, &stubborn(part));
    wait_for("all of them sleep", || sleepers(sum).len() >= 4);
    let groups = bench.groups();
    assert!(!groups.is_empty() && groups.iter().all(|group| group.exists()), "{groups:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("all of them are gone", || sleepers(sum).is_empty());
    bench.shell(&[], "echo next").says("next");
    assert!(groups.iter().all(|group| !group.exists()), "{groups:?}");
    assert_eq!(bench.groups(), Vec::<std::path::PathBuf>::new());
}

/// Rule: a process that a killed daemon left in a cgroup is ended at the next start.
#[test]
fn a_process_that_was_left_in_a_group_is_ended_by_the_next_start() {
    if !ringback_testkit::is_root() {
        return;
    }
    let bench = Bench::new(User::Me);
    let mut running = bench.start(&["--processes", "9"], "touch ready; sleep 30");
    wait_for("it runs", || bench.path("workspace/ready").exists());
    let home = bench.groups()[0].parent().unwrap().to_owned();
    kill_process(Pid::from_child(&running), Signal::TERM).unwrap();
    running.wait().unwrap();
    let name = format!("ringback-test{}", std::process::id());
    let group = home.join(&name);
    fs::create_dir(&group).unwrap();
    let mut left = Command::new("sleep").arg("1000").spawn().unwrap();
    fs::write(group.join("cgroup.procs"), left.id().to_string()).unwrap();
    fs::write(bench.path("state/boxes").join(&name), format!("{}\n", group.display())).unwrap();
    bench.shell(&[], "echo next").says("next");
    assert!(!left.wait().unwrap().success());
    assert!(!group.exists());
}

everywhere! {
    /// Rule: a program that is asked to end has time to do so.
    a_program_that_is_asked_to_end_can_tidy_up
}
fn a_program_that_is_asked_to_end_can_tidy_up(bench: &Bench) {
    let script = "trap 'echo tidy; exit 3' TERM; touch ready; while :; do sleep 0.05; done";
    let child = bench.start(&["--grace", "20000"], script);
    wait_for("it runs", || bench.path("workspace/ready").exists());
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    assert_eq!(String::from_utf8_lossy(&ended.stdout), "tidy\n");
}

as_this_user! {
    /// Rule: a sandbox lives as long as its guard, not as long as the thread that started it.
    a_box_outlives_the_thread_that_asked_for_it
}
fn a_box_outlives_the_thread_that_asked_for_it(bench: &Bench) {
    let sandbox = crate::concurrency::sandbox(bench);
    let spec = crate::concurrency::spec(bench, "sleep 1000");
    let (confined, runtime) = std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        (runtime.block_on(sandbox.start(spec)).unwrap(), runtime)
    })
    .join()
    .unwrap();
    let first = crate::concurrency::first(&confined);
    // It would be gone already: the kernel signals children of a thread's end before it can be
    // joined.
    assert!(test_kill_process(first).is_ok());
    let (process, hold) = (confined.process, confined.hold);
    runtime.block_on(hold.gone());
    drop(process);
    wait_for("it is gone", || test_kill_process(first).is_err());
}
