//! Connections for reading, opened on demand and reused.

use std::sync::{Condvar, Mutex};

use camino::Utf8PathBuf;
use ringback_sync::{lock, wait};
use rusqlite::Connection;

use crate::error::ReadError;
use crate::schema;

/// A few connections that many readers share.
#[derive(Debug)]
pub(crate) struct Readers {
    path: Utf8PathBuf,
    pool: Mutex<Pool>,
    returned: Condvar,
}

#[derive(Debug)]
struct Pool {
    idle: Vec<Connection>,
    /// The number of connections that may still be opened.
    n_unopened: usize,
}

/// A borrowed connection.
struct Loan<'a> {
    readers: &'a Readers,
    connection: Option<Connection>,
}

impl Readers {
    pub(crate) fn new(path: Utf8PathBuf, n_max: usize) -> Self {
        let pool = Mutex::new(Pool { idle: Vec::new(), n_unopened: n_max.max(1) });
        Self { path, pool, returned: Condvar::new() }
    }

    /// Reads with one of the connections; waits for one if all are in use. All statements of one
    /// `read` see the same state.
    pub(crate) fn read<T>(
        &self,
        what: &'static str,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, ReadError> {
        let mut loan = self.borrow().map_err(ReadError::on(what))?;
        let connection = loan.connection.as_mut().expect("on loan until dropped");
        let snapshot = connection.transaction().map_err(ReadError::on(what))?;
        read(&snapshot).map_err(ReadError::on(what))
    }

    fn borrow(&self) -> rusqlite::Result<Loan<'_>> {
        let mut pool = lock(&self.pool);
        loop {
            if let Some(connection) = pool.idle.pop() {
                return Ok(Loan { readers: self, connection: Some(connection) });
            }
            if pool.n_unopened > 0 {
                pool.n_unopened -= 1;
                break;
            }
            pool = wait(&self.returned, pool);
        }
        drop(pool);
        // Borrowed before it exists, so that a failure to open frees its slot.
        let mut loan = Loan { readers: self, connection: None };
        loan.connection = Some(schema::open_reader(&self.path)?);
        Ok(loan)
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        let mut pool = lock(&self.readers.pool);
        match self.connection.take() {
            Some(connection) => pool.idle.push(connection),
            None => pool.n_unopened += 1,
        }
        drop(pool);
        self.readers.returned.notify_one();
    }
}
