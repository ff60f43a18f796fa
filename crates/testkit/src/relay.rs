//! The relay edge in a world.

use std::any::Any;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

use camino::{Utf8Path, Utf8PathBuf};
use ringback_broker::{Broker, RelayDoor};
use ringback_edge_relay::{Config, RelayEdge};
use ringback_proto::ids::SessionId;
use ringback_sync::lock;

use crate::world::{Setup, World};

/// The edge, and the directories of the sockets it opened.
#[derive(Debug)]
pub(crate) struct RelayProbe {
    pub(crate) edge: RelayEdge,
    dirs: Mutex<HashMap<SessionId, Utf8PathBuf>>,
}

impl RelayDoor for RelayProbe {
    fn open(
        &self,
        broker: Broker,
        session: SessionId,
        dir: &Utf8Path,
    ) -> io::Result<Box<dyn Any + Send + Sync>> {
        let mut dirs = lock(&self.dirs);
        dirs.insert(session, dir.to_owned());
        self.edge.open(broker, session, dir)
    }
}

impl Setup {
    /// Adds the relay edge.
    pub fn relay(mut self, config: Config) -> Self {
        let noted = Arc::new(RelayProbe { edge: RelayEdge::new(config), dirs: Mutex::default() });
        self.config.sessions.doors.relay = Some(Arc::<RelayProbe>::clone(&noted));
        self.relay = Some(noted);
        self
    }
}

impl World {
    /// Returns the relay edge.
    ///
    /// # Panics
    /// Without the relay edge.
    #[must_use]
    pub fn relay(&self) -> &RelayEdge {
        &self.setup.relay.as_ref().expect("the relay edge").edge
    }

    /// Returns the relay socket of a session.
    ///
    /// # Panics
    /// If it was never opened.
    #[must_use]
    pub fn socket(&self, session: SessionId) -> Utf8PathBuf {
        let noted = self.setup.relay.as_ref().expect("the relay edge");
        let dirs = lock(&noted.dirs);
        dirs[&session].join("relay.sock")
    }
}
