//! Which containers there are, and which commands run: who may start one, and what a deletion waits for.

use std::collections::{HashMap, HashSet};

use ringback_proto::ids::{ProjectId, WorkspaceId};
use tokio_util::sync::CancellationToken;

/// Commands in one container at a time.
const COMMANDS_PER_CONTAINER_MAX: usize = 16;

/// Containers that have ended whose last words are kept: each has at most 256 KiB of them.
const ENDED_MAX: usize = 32;

/// The containers of all projects. `L` is a container that runs, `E` one that has ended.
#[derive(Debug)]
pub(super) struct Table<L, E> {
    slots: HashMap<ProjectId, Slot<L, E>>,
    commands: HashMap<u64, Command>,
    /// Projects that are being deleted: nothing starts in them.
    leaving: HashSet<ProjectId>,
    containers_max: usize,
    /// Counts what was ended and begun, so that both have an order.
    n_begun: u64,
    is_closed: bool,
}

#[derive(Debug)]
enum Slot<L, E> {
    /// With what was there before, if this comes to nothing.
    Starting(Option<Ended<E>>),
    Running(L),
    Ended(Ended<E>),
}

#[derive(Debug)]
struct Ended<E> {
    order: u64,
    ended: E,
}

/// A command under way.
#[derive(Debug)]
struct Command {
    project: ProjectId,
    place: Place,
    stop: CancellationToken,
}

/// Where a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In the container of its project.
    Container,
    /// In a box of its own, with a workspace or with the project's own directory.
    Box(Option<WorkspaceId>),
}

/// What a container is found to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found<L, E> {
    /// It is being started.
    Starting,
    /// It runs.
    Running(L),
    /// It has ended.
    Ended(E),
}

/// Why nothing starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The container is being started by somebody else.
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

impl<L: Clone, E: Clone> Table<L, E> {
    pub(super) fn new(containers_max: usize) -> Self {
        Self {
            slots: HashMap::new(),
            commands: HashMap::new(),
            leaving: HashSet::new(),
            containers_max,
            n_begun: 0,
            is_closed: false,
        }
    }

    /// Takes the place of a project's container, or gives the one that runs. Whoever takes it says
    /// [`Self::run`] or [`Self::release`].
    pub(super) fn claim(&mut self, project: ProjectId) -> Result<Option<L>, Refusal> {
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
    pub(super) fn run(&mut self, project: ProjectId, live: L) -> bool {
        if !self.is_closed {
            self.slots.insert(project, Slot::Running(live));
        }
        !self.is_closed
    }

    /// Nothing came of it.
    pub(super) fn release(&mut self, project: ProjectId) {
        if let Some(Slot::Starting(before)) = self.slots.remove(&project)
            && let Some(before) = before
        {
            self.slots.insert(project, Slot::Ended(before));
        }
    }

    /// The container that ran has ended. What is remembered of the oldest is forgotten.
    pub(super) fn end(&mut self, project: ProjectId, ended: E) {
        let order = self.next();
        self.slots.insert(project, Slot::Ended(Ended { order, ended }));
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

    pub(super) fn find(&self, project: ProjectId) -> Option<Found<L, E>> {
        self.slots.get(&project).map(|slot| match slot {
            Slot::Starting(_) => Found::Starting,
            Slot::Running(live) => Found::Running(live.clone()),
            Slot::Ended(ended) => Found::Ended(ended.ended.clone()),
        })
    }

    /// Takes note of a command; it is told to stop by the token, a child of this one, and
    /// [`Self::command_ended`] says that it is over.
    pub(super) fn begin_command(
        &mut self,
        project: ProjectId,
        place: Place,
        stop: &CancellationToken,
    ) -> Result<(u64, CancellationToken), Refusal> {
        self.check_open(project)?;
        let max = match place {
            Place::Container => COMMANDS_PER_CONTAINER_MAX,
            Place::Box(_) => self.containers_max,
        };
        let counts = |command: &&Command| match place {
            Place::Container => command.place == place && command.project == project,
            Place::Box(_) => matches!(command.place, Place::Box(_)),
        };
        if self.commands.values().filter(counts).count() >= max {
            return Err(Refusal::Full { max });
        }
        let (id, stop) = (self.next(), stop.child_token());
        self.commands.insert(id, Command { project, place, stop: stop.clone() });
        Ok((id, stop))
    }

    pub(super) fn command_ended(&mut self, id: u64) {
        self.commands.remove(&id);
    }

    /// Whether a command runs in this workspace.
    pub(super) fn is_used(&self, workspace: WorkspaceId) -> bool {
        let mut commands = self.commands.values();
        commands.any(|command| command.place == Place::Box(Some(workspace)))
    }

    /// A project is to be deleted: nothing starts in it any more. Until [`Self::stay`] or
    /// [`Self::forget`].
    pub(super) fn leave(&mut self, project: ProjectId) -> Result<(), Refusal> {
        if matches!(self.slots.get(&project), Some(Slot::Starting(_))) {
            return Err(Refusal::Starting);
        }
        if self.leaving.insert(project) { Ok(()) } else { Err(Refusal::Leaving) }
    }

    /// Tells the commands of a project to stop; `false` when there are none left.
    pub(super) fn stop_commands(&self, project: ProjectId) -> bool {
        let mut is_any = false;
        for command in self.commands.values().filter(|command| command.project == project) {
            command.stop.cancel();
            is_any = true;
        }
        is_any
    }

    /// The project was not deleted after all.
    pub(super) fn stay(&mut self, project: ProjectId) {
        self.leaving.remove(&project);
    }

    /// The project is deleted.
    pub(super) fn forget(&mut self, project: ProjectId) {
        self.leaving.remove(&project);
        self.slots.remove(&project);
    }

    /// The daemon stops: nothing starts any more. Gives the containers that run.
    pub(super) fn close(&mut self) -> Vec<L> {
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
        self.n_begun += 1;
        self.n_begun
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Containers = Table<&'static str, u32>;

    const fn project(n: u8) -> ProjectId {
        ProjectId::from_random([n; 16])
    }

    const fn workspace(n: u8) -> WorkspaceId {
        WorkspaceId::from_random([n; 16])
    }

    /// Rule: a project has one container, and all projects have at most `sandbox.containers_max`.
    #[test]
    fn a_project_has_one_container_and_there_are_at_most_so_many() {
        let mut table = Containers::new(2);
        assert_eq!(table.claim(project(1)), Ok(None));
        assert_eq!(table.claim(project(1)), Err(Refusal::Starting));
        assert_eq!(table.find(project(1)), Some(Found::Starting));
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
        assert_eq!(table.find(project(1)), Some(Found::Ended(7)));
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
        assert_eq!(table.find(project(1)), Some(Found::Ended(1)));
    }

    /// Rule: nothing starts in a project that is being deleted, and its commands are told to stop.
    #[test]
    fn a_project_that_is_being_deleted_starts_nothing() {
        let mut table = Containers::new(2);
        let none = CancellationToken::new();
        let (id, stop) = table.begin_command(project(1), Place::Box(None), &none).unwrap();
        table.leave(project(1)).unwrap();
        assert_eq!(table.leave(project(1)), Err(Refusal::Leaving));
        assert!(table.stop_commands(project(1)) && stop.is_cancelled());
        assert_eq!(table.claim(project(1)), Err(Refusal::Leaving));
        let refused = table.begin_command(project(1), Place::Container, &none).map(|(id, _)| id);
        assert_eq!(refused, Err(Refusal::Leaving));
        table.command_ended(id);
        assert!(!table.stop_commands(project(1)));
        table.stay(project(1));
        assert_eq!(table.claim(project(1)), Ok(None), "it was not deleted after all");
        assert_eq!(table.leave(project(1)), Err(Refusal::Starting));
    }

    /// Rule: commands have limits: so many in boxes of their own, so many in each container.
    #[test]
    fn commands_have_limits() {
        let mut table = Containers::new(1);
        let begin = |table: &mut Containers, n, place| {
            table.begin_command(project(n), place, &CancellationToken::new()).map(|(id, _)| id)
        };
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
