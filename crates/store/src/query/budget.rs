//! What a query may take of memory and time, kept at SQLite's allocator: the planner copies
//! expressions into each other, doubling them at every level, and looks at no clock meanwhile. Only
//! its allocations can be counted.
//!
//! Invariants:
//! * The allocator counts on a thread only while that thread runs a caller's SQL. All else, above
//!   all the writer, allocates as if it were not there.
//! * An allocation beyond the budget, or after the time, fails. SQLite ends the query then.

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::time::Instant;

use rusqlite::ffi;

use super::{MEMORY_MAX, StopSignal, TIME_MAX};

/// An allocation of this size is a reason to look at the clock.
const LARGE: usize = 1 << 10;

/// Small allocations between two looks at the clock: some microseconds.
const ALLOCATIONS: u32 = 64;

/// What a query had too much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exceeded {
    Time,
    Memory,
    /// Its caller stopped it.
    Patience,
}

/// The budget of the query that runs on this thread.
struct Running {
    started: Instant,
    stop: StopSignal,
    exceeded: Option<Exceeded>,
    /// What it holds. Less than zero if it returned memory that was allocated before.
    bytes: i64,
    n_allocations: u32,
}

thread_local! {
    static IS_COUNTED: Cell<bool> = const { Cell::new(false) };
    static RUNNING: RefCell<Option<Running>> = const { RefCell::new(None) };
}

/// The budget of one query, on the thread that made it.
#[derive(Debug)]
pub(super) struct Budget {
    /// It belongs to its thread.
    _thread: std::marker::PhantomData<*const ()>,
}

impl Budget {
    /// Starts the time of a query.
    pub(super) fn start(stop: StopSignal) -> Self {
        let running =
            Running { started: Instant::now(), stop, exceeded: None, bytes: 0, n_allocations: 0 };
        RUNNING.set(Some(running));
        Self { _thread: std::marker::PhantomData }
    }

    /// Runs what the budget is for.
    pub(super) fn spend<T>(&self, work: impl FnOnce() -> T) -> T {
        let counted = Counted;
        IS_COUNTED.set(true);
        let result = work();
        drop(counted);
        result
    }

    /// Returns what the query had too much of.
    pub(super) fn exceeded(&self) -> Option<Exceeded> {
        RUNNING.with_borrow(|running| running.as_ref()?.exceeded)
    }
}

impl Drop for Budget {
    fn drop(&mut self) {
        drop(RUNNING.take());
    }
}

/// Ends the counting, also after a panic.
struct Counted;

impl Drop for Counted {
    fn drop(&mut self) {
        IS_COUNTED.set(false);
    }
}

/// Returns whether the query on this thread must end.
pub(super) fn is_over() -> bool {
    IS_COUNTED.get() && with_running(false, Running::is_over)
}

impl Running {
    fn is_over(&mut self) -> bool {
        if self.exceeded.is_none() {
            // It may be called from C, where a panic must not go.
            if catch_unwind(AssertUnwindSafe(&self.stop)).unwrap_or(true) {
                self.exceeded = Some(Exceeded::Patience);
            } else if self.started.elapsed() >= TIME_MAX {
                self.exceeded = Some(Exceeded::Time);
            }
        }
        self.exceeded.is_some()
    }

    fn may_allocate(&mut self, size: usize) -> bool {
        self.n_allocations = self.n_allocations.wrapping_add(1);
        let is_time_to_look = size >= LARGE || self.n_allocations.is_multiple_of(ALLOCATIONS);
        if self.exceeded.is_some() || (is_time_to_look && self.is_over()) {
            return false;
        }
        if self.bytes.saturating_add(signed(size)) > signed(MEMORY_MAX) {
            self.exceeded = Some(Exceeded::Memory);
            return false;
        }
        true
    }
}

/// Asks the query of this thread; returns `otherwise` if it has none.
fn with_running<T>(otherwise: T, ask: impl FnOnce(&mut Running) -> T) -> T {
    let mut ask = Some(ask);
    let asked = RUNNING.try_with(|running| {
        let mut running = running.try_borrow_mut().ok()?;
        Some((ask.take()?)(running.as_mut()?))
    });
    asked.ok().flatten().unwrap_or(otherwise)
}

fn may_allocate(size: usize) -> bool {
    !IS_COUNTED.get() || with_running(true, |running| running.may_allocate(size))
}

fn count(bytes: i64) {
    if IS_COUNTED.get() {
        with_running((), |running| running.bytes = running.bytes.saturating_add(bytes));
    }
}

fn signed(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

/// SQLite's own allocator.
#[derive(Debug)]
struct Allocator {
    malloc: unsafe extern "C" fn(c_int) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
    realloc: unsafe extern "C" fn(*mut c_void, c_int) -> *mut c_void,
    size: unsafe extern "C" fn(*mut c_void) -> c_int,
}

/// `None` if SQLite does not let us in.
static ALLOCATOR: OnceLock<Option<Allocator>> = OnceLock::new();

/// Puts the budget between SQLite and its allocator, once for the process and before the first
/// connection. Returns whether it is there.
pub(crate) fn install() -> bool {
    ALLOCATOR.get_or_init(replace).is_some()
}

#[expect(unsafe_code, reason = "rusqlite has no safe call to configure SQLite's allocator")]
fn replace() -> Option<Allocator> {
    let mut methods = ffi::sqlite3_mem_methods {
        xMalloc: None,
        xFree: None,
        xRealloc: None,
        xSize: None,
        xRoundup: None,
        xInit: None,
        xShutdown: None,
        pAppData: std::ptr::null_mut(),
    };
    // SAFETY: SQLite fills in the struct, or returns an error after it was initialized.
    let got = unsafe { ffi::sqlite3_config(ffi::SQLITE_CONFIG_GETMALLOC, &raw mut methods) };
    if got != ffi::SQLITE_OK {
        return None;
    }
    let allocator = Allocator {
        malloc: methods.xMalloc?,
        free: methods.xFree?,
        realloc: methods.xRealloc?,
        size: methods.xSize?,
    };
    methods.xMalloc = Some(malloc);
    methods.xFree = Some(free);
    methods.xRealloc = Some(realloc);
    // SAFETY: SQLite copies the struct. The functions live as long as the process and keep the
    // contract of the ones they call. No connection is open: this runs once, before the first.
    let set = unsafe { ffi::sqlite3_config(ffi::SQLITE_CONFIG_MALLOC, &raw const methods) };
    (set == ffi::SQLITE_OK).then_some(allocator)
}

/// Only called by SQLite after `replace` has returned.
fn allocator() -> Option<&'static Allocator> {
    ALLOCATOR.get()?.as_ref()
}

#[expect(unsafe_code, reason = "SQLite calls it")]
unsafe extern "C" fn malloc(bytes: c_int) -> *mut c_void {
    let Some(allocator) = allocator() else { return std::ptr::null_mut() };
    if !may_allocate(usize::try_from(bytes).unwrap_or_default()) {
        return std::ptr::null_mut();
    }
    // SAFETY: the arguments are SQLite's, and go to its own allocator.
    let memory = unsafe { (allocator.malloc)(bytes) };
    if !memory.is_null() {
        // SAFETY: the allocator has just returned it.
        count(i64::from(unsafe { (allocator.size)(memory) }));
    }
    memory
}

#[expect(unsafe_code, reason = "SQLite calls it")]
unsafe extern "C" fn free(memory: *mut c_void) {
    let Some(allocator) = allocator() else { return };
    if !memory.is_null() {
        // SAFETY: SQLite frees what it got from the allocator.
        count(-i64::from(unsafe { (allocator.size)(memory) }));
    }
    // SAFETY: as above.
    unsafe { (allocator.free)(memory) }
}

#[expect(unsafe_code, reason = "SQLite calls it")]
unsafe extern "C" fn realloc(memory: *mut c_void, bytes: c_int) -> *mut c_void {
    let Some(allocator) = allocator() else { return std::ptr::null_mut() };
    // SAFETY: SQLite resizes what it got from the allocator; never null.
    let before = i64::from(unsafe { (allocator.size)(memory) });
    let growth = i64::from(bytes) - before;
    if growth > 0 && !may_allocate(usize::try_from(growth).unwrap_or_default()) {
        return std::ptr::null_mut();
    }
    // SAFETY: as above.
    let resized = unsafe { (allocator.realloc)(memory, bytes) };
    if !resized.is_null() {
        // SAFETY: the allocator has just returned it.
        count(i64::from(unsafe { (allocator.size)(resized) }) - before);
    }
    resized
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_thread_that_runs_a_query_is_counted_and_only_meanwhile() {
        let budget = Budget::start(Box::new(|| false));
        assert!(may_allocate(MEMORY_MAX + 1), "before");
        budget.spend(|| {
            assert!(may_allocate(MEMORY_MAX));
            let other = std::thread::spawn(|| may_allocate(MEMORY_MAX + 1));
            assert!(other.join().unwrap(), "another thread");
            count(signed(MEMORY_MAX));
            assert!(!may_allocate(1));
            assert!(is_over());
        });
        assert_eq!(budget.exceeded(), Some(Exceeded::Memory));
        assert!(may_allocate(MEMORY_MAX + 1), "afterwards");
        drop(budget);
        let next = Budget::start(Box::new(|| true));
        assert_eq!(next.exceeded(), None);
        assert!(!is_over(), "nothing runs");
        assert!(!next.spend(|| may_allocate(LARGE)), "a stopped query");
        assert_eq!(next.exceeded(), Some(Exceeded::Patience));
    }

    #[test]
    fn memory_that_is_returned_may_be_taken_again() {
        let budget = Budget::start(Box::new(|| false));
        budget.spend(|| {
            for _ in 0..100 {
                assert!(may_allocate(MEMORY_MAX));
                count(signed(MEMORY_MAX));
                count(-signed(MEMORY_MAX));
            }
        });
        assert_eq!(budget.exceeded(), None);
    }
}
