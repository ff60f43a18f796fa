//! The memory cost of a large payload, counted: it does not depend on how busy the machine is.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::register::register;
use crate::support::{Agent, Options, World};

/// The payload of a call on a line.
const PAYLOAD_BYTES: usize = 8 << 20;
/// One copy, and a second one for a moment while it is checked.
const PEAK_TIMES_MAX: f64 = 2.3;
/// The client's read buffer: it must not show in the figures.
const BUFFER_BYTES: usize = 16 << 10;

thread_local! {
    static LIVE_BYTES: Cell<i64> = const { Cell::new(0) };
    static PEAK_BYTES: Cell<i64> = const { Cell::new(0) };
}

/// The system's allocator with a count for each thread: a single-threaded test sees only its own.
struct CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[expect(unsafe_code, reason = "an allocator is unsafe by its nature; this one hands all on")]
// SAFETY: every request goes unchanged to the system's allocator, and counting allocates nothing.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as i64 - layout.size() as i64);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

fn count(n_bytes: i64) {
    let live = LIVE_BYTES.get() + n_bytes;
    LIVE_BYTES.set(live);
    PEAK_BYTES.set(PEAK_BYTES.get().max(live));
}

/// A connection that keeps nothing of what it reads.
struct Wire(TcpStream);

impl Wire {
    /// Sends a request whose body is these pieces.
    async fn send(agent: &Agent, line: &str, pieces: &[&[u8]]) -> Self {
        let mut stream = TcpStream::connect(agent.addr).await.unwrap();
        let length: usize = pieces.iter().map(|piece| piece.len()).sum();
        let head = format!(
            "{line} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\nconnection: close\r\n\
             content-length: {length}\r\n\r\n",
            agent.token
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        for piece in pieces {
            stream.write_all(piece).await.unwrap();
        }
        Self(stream)
    }

    /// Reads until this many bytes have arrived, or to the end. Returns how many arrived.
    async fn read(&mut self, n_bytes_min: usize) -> usize {
        let (mut buffer, mut n_bytes) = (vec![0; BUFFER_BYTES], 0);
        while n_bytes < n_bytes_min {
            match self.0.read(&mut buffer).await.unwrap() {
                0 => break,
                read => n_bytes += read,
            }
        }
        n_bytes
    }
}

/// The peak of live memory above the baseline, in payloads, while a call carries these two.
async fn peak(world: &World, input: &[u8], output: &[u8]) -> f64 {
    let mut stream = Wire::send(&world.admin, "GET /client-tools/pending/c", &[]).await;
    stream.read(1).await;
    let before = LIVE_BYTES.get();
    PEAK_BYTES.set(before);
    let head = br#"{"toolID":"client_c_t","requestID":"r","input":{"text":""#;
    let line = "POST /client-tools/execute";
    let mut caller = Wire::send(&world.admin, line, &[head, input, br#""}}"#]).await;
    let read = stream.read(input.len().max(1)).await;
    assert!(read >= input.len(), "{read}");
    let head = br#"{"requestID":"r","result":{"status":"success","title":"","output":""#;
    let line = "POST /client-tools/result";
    let mut party = Wire::send(&world.admin, line, &[head, output, br#""}}"#]).await;
    assert!(caller.read(usize::MAX).await > output.len());
    party.read(usize::MAX).await;
    (PEAK_BYTES.get() - before) as f64 / PAYLOAD_BYTES as f64
}

/// Rule: an 8 MiB payload through a line takes at most 2.3 times its size, there and back.
#[tokio::test]
async fn a_large_payload_through_a_line_is_hardly_copied() {
    let options = Options { body_bytes_max: 16 << 20, ..Options::default() };
    let world = World::start_with(options).await;
    let payload = vec![b'a'; PAYLOAD_BYTES];
    for (what, input, output) in [("input", &*payload, &b""[..]), ("output", b"", &payload)] {
        register(&world.admin, "c", &["t"]).await;
        let peak = peak(&world, input, output).await;
        assert!((1.0..=PEAK_TIMES_MAX).contains(&peak), "as {what}: {peak:.2} times its size");
        world.settled(|broker| broker.under_way().lines.0 == 0).await;
    }
}
