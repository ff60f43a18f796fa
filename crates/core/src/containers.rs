//! Containers and the commands in sandboxes: who may start one, and what a deletion waits for.

use std::collections::{HashMap, HashSet};

use ringback_proto::ids::{ProjectId, WorkspaceId};

/// Commands in one container at a time.
const COMMANDS_PER_CONTAINER_MAX: usize = 16;

/// Containers that have ended whose last words are kept: each has at most 256 KiB of them.
const ENDED_MAX: usize = 32;

/// The containers of all projects. `L` is a running container, `E` one that has ended, `S` stops a
/// command.
#[derive(Debug)]
pub struct ContainerTable<L, E, S> {
    slots: HashMap<ProjectId, Slot<L, E>>,
    commands: HashMap<u64, Command<S>>,
    /// Projects that are being deleted: nothing starts in them.
    leaving: HashSet<ProjectId>,
    containers_max: usize,
    /// Counts starts and ends, so that both have an order.
    n_started: u64,
    is_closed: bool,
}

#[derive(Debug)]
enum Slot<L, E> {
    /// With what was there before, if this comes to nothing.
    Starting(Option<EndedSlot<E>>),
    Running(L),
    Ended(EndedSlot<E>),
}

#[derive(Debug)]
struct EndedSlot<E> {
    order: u64,
    ended: E,
}

/// A command under way.
#[derive(Debug)]
struct Command<S> {
    project: ProjectId,
    place: Place,
    stop: S,
}

/// Where a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the container of its project.
    Container,
    /// In a sandbox of its own, with a workspace or with the project's own directory.
    Box(Option<WorkspaceId>),
}

/// What a container is found to be.
#[derive(Debug, PartialEq, Eq)]
pub enum ContainerState<L, E> {
    /// It is being started.
    Starting,
    /// It runs.
    Running(L),
    /// It has ended.
    Ended(E),
}

/// Why nothing starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The container is already being started.
    Starting,
    /// The project is being deleted.
    Leaving,
    /// There are as many as there may be.
    Full {
        /// How many.
        max: usize,
    },
    /// The daemon stops.
    Closed,
}

impl<L: Clone, E: Clone, S: Clone> ContainerTable<L, E, S> {
    /// An empty table.
    #[must_use]
    pub fn new(containers_max: usize) -> Self {
        Self {
            slots: HashMap::new(),
            commands: HashMap::new(),
            leaving: HashSet::new(),
            containers_max,
            n_started: 0,
            is_closed: false,
        }
    }

    /// Returns the number of containers that run or start, and of commands.
    #[must_use]
    pub fn n_live(&self) -> usize {
        let is_live = |slot: &&Slot<L, E>| matches!(slot, Slot::Starting(_) | Slot::Running(_));
        self.slots.values().filter(is_live).count() + self.commands.len()
    }

    /// Reserves the place of a project's container, or returns the one that runs. A reservation ends
    /// with [`Self::run`] or [`Self::release`].
    ///
    /// # Errors
    /// Why it must not start.
    pub fn claim(&mut self, project: ProjectId) -> Result<Option<L>, Refusal> {
        self.check_open(project)?;
        match self.slots.get(&project) {
            Some(Slot::Running(live)) => return Ok(Some(live.clone())),
            Some(Slot::Starting(_)) => return Err(Refusal::Starting),
            Some(Slot::Ended(_)) | None => {}
        }
        let n_live = self.slots.values().filter(|slot| !matches!(slot, Slot::Ended(_))).count();
        if n_live >= self.containers_max {
            return Err(Refusal::Full { max: self.containers_max });
        }
        let before = match self.slots.remove(&project) {
            Some(Slot::Ended(ended)) => Some(ended),
            Some(Slot::Starting(_) | Slot::Running(_)) | None => None,
        };
        self.slots.insert(project, Slot::Starting(before));
        Ok(None)
    }

    /// The container whose place was taken runs. `false` if the daemon began to stop meanwhile: then it
    /// must not.
    #[must_use]
    pub fn run(&mut self, project: ProjectId, live: L) -> bool {
        if !self.is_closed {
            self.slots.insert(project, Slot::Running(live));
        }
        !self.is_closed
    }

    /// Nothing came of it.
    pub fn release(&mut self, project: ProjectId) {
        if let Some(Slot::Starting(before)) = self.slots.remove(&project)
            && let Some(before) = before
        {
            self.slots.insert(project, Slot::Ended(before));
        }
    }

    /// The container that ran has ended. What is remembered of the oldest is forgotten.
    pub fn end(&mut self, project: ProjectId, ended: E) {
        let order = self.next();
        self.slots.insert(project, Slot::Ended(EndedSlot { order, ended }));
        let ended = self.slots.iter().filter_map(|(project, slot)| match slot {
            Slot::Ended(ended) => Some((ended.order, *project)),
            Slot::Starting(_) | Slot::Running(_) => None,
        });
        let ended: Vec<_> = ended.collect();
        if ended.len() > ENDED_MAX
            && let Some((_, oldest)) = ended.into_iter().min()
        {
            self.slots.remove(&oldest);
        }
    }

    /// The container of a project.
    #[must_use]
    pub fn find(&self, project: ProjectId) -> Option<ContainerState<L, E>> {
        self.slots.get(&project).map(|slot| match slot {
            Slot::Starting(_) => ContainerState::Starting,
            Slot::Running(live) => ContainerState::Running(live.clone()),
            Slot::Ended(ended) => ContainerState::Ended(ended.ended.clone()),
        })
    }

    /// Adds a command that `stop` stops; [`Self::command_ended`] removes it.
    ///
    /// # Errors
    /// Why it must not start.
    pub fn begin_command(
        &mut self,
        project: ProjectId,
        place: Place,
        stop: S,
    ) -> Result<u64, Refusal> {
        self.check_open(project)?;
        let max = match place {
            Place::Container => COMMANDS_PER_CONTAINER_MAX,
            Place::Box(_) => self.containers_max,
        };
        let counts = |command: &&Command<S>| match place {
            Place::Container => command.place == place && command.project == project,
            Place::Box(_) => matches!(command.place, Place::Box(_)),
        };
        if self.commands.values().filter(counts).count() >= max {
            return Err(Refusal::Full { max });
        }
        let id = self.next();
        self.commands.insert(id, Command { project, place, stop });
        Ok(id)
    }

    /// A command has ended.
    pub fn command_ended(&mut self, id: u64) {
        self.commands.remove(&id);
    }

    /// Whether a command runs in this workspace.
    #[must_use]
    pub fn is_used(&self, workspace: WorkspaceId) -> bool {
        let mut commands = self.commands.values();
        commands.any(|command| command.place == Place::Box(Some(workspace)))
    }

    /// A project is to be deleted: nothing starts in it any more. Until [`Self::stay`] or
    /// [`Self::forget`].
    ///
    /// # Errors
    /// When it is being started or deleted already.
    pub fn leave(&mut self, project: ProjectId) -> Result<(), Refusal> {
        if matches!(self.slots.get(&project), Some(Slot::Starting(_))) {
            return Err(Refusal::Starting);
        }
        if self.leaving.insert(project) { Ok(()) } else { Err(Refusal::Leaving) }
    }

    /// What stops the commands of a project that still run.
    #[must_use]
    pub fn commands_of(&self, project: ProjectId) -> Vec<S> {
        let own = self.commands.values().filter(|command| command.project == project);
        own.map(|command| command.stop.clone()).collect()
    }

    /// The project was not deleted after all.
    pub fn stay(&mut self, project: ProjectId) {
        self.leaving.remove(&project);
    }

    /// The project is deleted.
    pub fn forget(&mut self, project: ProjectId) {
        self.leaving.remove(&project);
        self.slots.remove(&project);
    }

    /// The daemon stops: nothing starts any more. Gives the containers that run.
    pub fn close(&mut self) -> Vec<L> {
        self.is_closed = true;
        let running = self.slots.values().filter_map(|slot| match slot {
            Slot::Running(live) => Some(live.clone()),
            Slot::Starting(_) | Slot::Ended(_) => None,
        });
        running.collect()
    }

    fn check_open(&self, project: ProjectId) -> Result<(), Refusal> {
        if self.is_closed {
            return Err(Refusal::Closed);
        }
        if self.leaving.contains(&project) { Err(Refusal::Leaving) } else { Ok(()) }
    }

    const fn next(&mut self) -> u64 {
        self.n_started += 1;
        self.n_started
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Containers = ContainerTable<&'static str, u32, &'static str>;

    const fn project(n: u8) -> ProjectId {
        ProjectId::from_random([n; 16])
    }

    const fn workspace(n: u8) -> WorkspaceId {
        WorkspaceId::from_random([n; 16])
    }

    /// Rule: a project has one container, and all projects have at most `sandbox.containers_max`.
    #[test]
    fn a_project_has_one_container_and_their_number_is_limited() {
        let mut table = Containers::new(2);
        assert_eq!(table.claim(project(1)), Ok(None));
        assert_eq!(table.claim(project(1)), Err(Refusal::Starting));
        assert_eq!(table.find(project(1)), Some(ContainerState::Starting));
        assert!(table.run(project(1), "one"));
        assert_eq!(table.claim(project(1)), Ok(Some("one")), "it runs already");
        assert_eq!(table.claim(project(2)), Ok(None));
        assert_eq!(table.claim(project(3)), Err(Refusal::Full { max: 2 }));
        table.release(project(2));
        assert_eq!(table.find(project(2)), None);
        assert_eq!(table.claim(project(3)), Ok(None), "a start that failed leaves its place");
        table.end(project(1), 7);
        assert_eq!(table.claim(project(2)), Ok(None), "and so does one that has ended");
    }

    #[test]
    fn a_start_that_fails_leaves_what_is_known_of_the_one_before() {
        let mut table = Containers::new(1);
        assert_eq!(table.claim(project(1)), Ok(None));
        assert!(table.run(project(1), "one"));
        table.end(project(1), 7);
        assert_eq!(table.claim(project(1)), Ok(None));
        table.release(project(1));
        assert_eq!(table.find(project(1)), Some(ContainerState::Ended(7)));
    }

    #[test]
    fn what_is_remembered_of_ended_containers_has_a_limit() {
        let mut table = Containers::new(1);
        for n in 0..=ENDED_MAX {
            let n = u8::try_from(n).unwrap();
            assert_eq!(table.claim(project(n)), Ok(None));
            assert!(table.run(project(n), "some"));
            table.end(project(n), n.into());
        }
        assert_eq!(table.find(project(0)), None, "the oldest is forgotten");
        assert_eq!(table.find(project(1)), Some(ContainerState::Ended(1)));
    }

    /// Rule: nothing starts in a project that is being deleted, and its commands are stopped.
    #[test]
    fn a_project_that_is_being_deleted_starts_nothing() {
        let mut table = Containers::new(2);
        let id = table.begin_command(project(1), Place::Box(None), "stop").unwrap();
        table.leave(project(1)).unwrap();
        assert_eq!(table.leave(project(1)), Err(Refusal::Leaving));
        assert_eq!(table.commands_of(project(1)), ["stop"]);
        assert_eq!(table.claim(project(1)), Err(Refusal::Leaving));
        let refused = table.begin_command(project(1), Place::Container, "another");
        assert_eq!(refused, Err(Refusal::Leaving));
        table.command_ended(id);
        assert!(table.commands_of(project(1)).is_empty());
        table.stay(project(1));
        assert_eq!(table.claim(project(1)), Ok(None), "it was not deleted after all");
        assert_eq!(table.leave(project(1)), Err(Refusal::Starting));
    }

    /// Rule: commands are limited: in sandboxes of their own, and in each container.
    #[test]
    fn commands_have_limits() {
        let mut table = Containers::new(1);
        let begin =
            |table: &mut Containers, n, place| table.begin_command(project(n), place, "stop");
        let first = begin(&mut table, 1, Place::Box(Some(workspace(5)))).unwrap();
        assert!(table.is_used(workspace(5)) && !table.is_used(workspace(6)));
        assert_eq!(begin(&mut table, 2, Place::Box(None)), Err(Refusal::Full { max: 1 }));
        table.command_ended(first);
        assert!(!table.is_used(workspace(5)));
        assert!(begin(&mut table, 2, Place::Box(None)).is_ok());
        for _ in 0..COMMANDS_PER_CONTAINER_MAX {
            begin(&mut table, 1, Place::Container).unwrap();
        }
        let full = Refusal::Full { max: COMMANDS_PER_CONTAINER_MAX };
        assert_eq!(begin(&mut table, 1, Place::Container), Err(full));
        assert!(begin(&mut table, 2, Place::Container).is_ok(), "another's has its own");
    }

    #[test]
    fn a_daemon_that_stops_starts_nothing_more() {
        let mut table = Containers::new(2);
        assert_eq!(table.claim(project(1)), Ok(None));
        assert!(table.run(project(1), "one"));
        assert_eq!(table.claim(project(2)), Ok(None));
        assert_eq!(table.close(), ["one"]);
        assert!(!table.run(project(2), "two"), "it was still being started");
        assert_eq!(table.claim(project(1)), Err(Refusal::Closed));
        assert_eq!(table.claim(project(3)), Err(Refusal::Closed));
    }
}
