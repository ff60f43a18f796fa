//! The monitor against a daemon that answers as a test says, on tokio's simulated clock.

use tokio::sync::{mpsc, oneshot};

use super::*;
use crate::tap::{FRAME_BYTES, Tap, tap};

const RATE: u32 = 48_000;

type Sent = (GardenMonitorRequest, oneshot::Sender<Result<u32, Error>>);

/// Hands each piece to the test, which answers it.
struct Daemon(mpsc::Sender<Sent>);

impl Receiver for Daemon {
    async fn pass_on(&self, piece: GardenMonitorRequest) -> Result<u32, Error> {
        let (answer, answered) = oneshot::channel();
        self.0.send((piece, answer)).await.expect("the test reads");
        answered.await.expect("the test answers")
    }
}

struct Rig {
    tap: Tap,
    switch: MonitorSwitch,
    sent: mpsc::Receiver<Sent>,
    monitor: Monitor,
}

impl Rig {
    fn new() -> Self {
        let (tap, reader) = tap(RATE);
        let (to_sent, sent) = mpsc::channel(1);
        let switch = MonitorSwitch::new(RATE);
        let monitor = Monitor::new(&switch, reader, Daemon(to_sent));
        Self { tap, switch, sent, monitor }
    }

    /// Plays until a piece arrives at the daemon, which it does only while the tap is open.
    async fn piece(&mut self) -> Sent {
        loop {
            self.tap.copy(&[0.5; 480]);
            let wait = tokio::time::timeout(LOOK_TIME, self.sent.recv());
            if let Ok(sent) = wait.await {
                return sent.expect("the monitor runs");
            }
        }
    }

    /// Waits until the tap is closed: then nothing that is played stays in the ring.
    async fn closed(&mut self) {
        while self.tap.is_open() {
            tokio::time::sleep(LOOK_TIME).await;
        }
    }
}

fn answer(sent: Sent, n_listeners: u32) {
    sent.1.send(Ok(n_listeners)).expect("the monitor waits");
}

#[tokio::test(start_paused = true)]
async fn pieces_are_sent_from_the_command_until_nobody_listens_and_again_after_the_next() {
    let mut rig = Rig::new();
    for _ in 0..2 {
        assert!(!rig.tap.is_open());
        assert_eq!(rig.switch.start().sample_rate, RATE);
        for n_listeners in [2, 1] {
            let sent = rig.piece().await;
            assert!(!sent.0.frames.0.is_empty());
            assert_eq!((sent.0.frames.0.len() % FRAME_BYTES, sent.0.missed), (0, 0));
            answer(sent, n_listeners);
        }
        let sent = rig.piece().await;
        answer(sent, 0);
        rig.closed().await;
    }
    rig.monitor.end().await;
}

/// Rule: an answer that says that nobody listens does not end what was asked for after its piece
/// was sent.
#[tokio::test(start_paused = true)]
async fn an_old_answer_does_not_end_a_new_listener() {
    let mut rig = Rig::new();
    rig.switch.start();
    let sent = rig.piece().await;
    rig.switch.start();
    answer(sent, 0);
    // The next piece comes without another command.
    let sent = rig.piece().await;
    assert!(rig.tap.is_open());
    answer(sent, 0);
    rig.closed().await;
    rig.monitor.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_daemon_that_fails_or_hangs_ends_it_until_it_asks_again() {
    let mut rig = Rig::new();
    rig.switch.start();
    let (_, failing) = rig.piece().await;
    failing.send(Err(Error::busy("the daemon"))).expect("the monitor waits");
    rig.closed().await;
    rig.switch.start();
    let (_, _hanging) = rig.piece().await;
    rig.closed().await;
    rig.switch.start();
    let sent = rig.piece().await;
    answer(sent, 1);
    rig.monitor.end().await;
    assert!(!rig.tap.is_open(), "the tap ends with the monitor");
}

/// Rule: playback waits for no listener: while the daemon hangs, the ring fills and the rest is
/// counted.
#[tokio::test(start_paused = true)]
async fn while_the_daemon_takes_its_time_frames_are_missed_and_counted() {
    let mut rig = Rig::new();
    rig.switch.start();
    let sent = rig.piece().await;
    let n_frames = 4 * RATE as usize;
    for _ in 0..n_frames / 480 {
        rig.tap.copy(&[0.25; 2 * 480]);
    }
    answer(sent, 1);
    let (mut n_heard, mut n_missed) = (0, 0);
    while n_missed == 0 {
        let sent = rig.piece().await;
        let piece = &sent.0;
        assert!(piece.frames.0.len() <= PIECE_FRAMES_MAX * FRAME_BYTES);
        n_missed = piece.missed;
        if n_missed == 0 {
            let quiet = 0.25_f32.to_le_bytes();
            n_heard += piece.frames.0.chunks_exact(4).filter(|sample| *sample == quiet).count() / 2;
        }
        answer(sent, 1);
    }
    assert!(n_heard >= RATE as usize, "a second waits in the ring");
    // What the test played to see each piece was missed too, until there was room.
    assert!(n_missed as usize >= n_frames - n_heard, "{n_missed} of {n_frames}, {n_heard} heard");
    rig.monitor.end().await;
}
