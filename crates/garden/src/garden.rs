//! The running garden: its threads, and the commands that reach them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use ringback_proto::garden::command::{
    CreateRegionAnswer, CreateRegionArguments, DeleteRegionArguments, MonitorAnswer,
    MoveRegionArguments, SetLoopArguments, SetRegionStateArguments, SetTempoArguments, TempoAnswer,
    TransportAnswer,
};
use ringback_proto::garden::{GardenAt, GardenEvent, GardenRegion, GardenStatus, GardenTimeline};
use ringback_proto::ids::JobId;
use ringback_proto::{Error, ErrorKind};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::block::Shared;
use crate::content::{ContentError, Preparer, Source, length_of};
use crate::device::{Format, Output, OutputState};
use crate::engine::Engine;
use crate::mixer::Want;
use crate::monitor::{Monitor, MonitorSwitch, Receiver};
use crate::prepared::{Prepared, PreparedRegions};
use crate::reader::{Desk, Probed, Reader};
use crate::renderer::{Listener, Orders, Renderer, ended};
use crate::settings::{RENDERER_SLEEP, Settings};
use crate::sound::{SoundKey, key_of};
use crate::tap::{TapReader, tap};
use crate::tempo::TempoMap;
use crate::transport::Action;

/// Events that wait to be reported; further ones are dropped.
const EVENTS_MAX: usize = 4096;

/// Attempts to send an emergency pause: for as long as the daemon waits for one.
const PAUSES_MAX: u32 = 100;

/// What the answer to a new region needs of its deadline.
const ANSWER_TIME: Duration = Duration::from_millis(150);

/// A garden that plays. Its threads end with [`Garden::close`].
#[derive(Debug)]
pub struct Garden {
    handle: GardenHandle,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// What is played, until a monitor takes it.
    tap: Option<TapReader>,
}

/// The way to a garden: cheap to copy.
#[derive(Debug, Clone)]
pub struct GardenHandle {
    orders: Orders,
    desk: Desk,
    device: OutputState,
    shared: Arc<Shared>,
    monitor: MonitorSwitch,
    prepared: PreparedRegions,
    /// Woken when the timeline was loaded or got a region.
    changed: Arc<Notify>,
}

/// Passes on what the renderer says, without waiting.
struct Ear {
    desk: Desk,
    events: mpsc::Sender<GardenEvent>,
}

impl Listener for Ear {
    fn wants(&mut self, wants: Vec<Want>) {
        self.desk.set_wants(wants);
    }

    fn requests(&mut self, keys: Vec<SoundKey>) {
        self.desk.retry(keys);
    }

    fn events(&mut self, events: Vec<GardenEvent>) {
        for event in events {
            // Playback waits for no listener.
            if let Err(error) = self.events.try_send(event) {
                tracing::debug!(%error, "an event of the garden is lost");
            }
        }
    }
}

impl Garden {
    /// Starts the threads. Events arrive in the queue that is returned.
    ///
    /// # Errors
    /// If the system starts no more threads.
    pub fn start(
        settings: &Settings,
        source: Source,
    ) -> std::io::Result<(Self, mpsc::Receiver<GardenEvent>)> {
        let Settings { sample_rate, buffer_frames, cache_bytes, .. } = *settings;
        let (to_events, events) = mpsc::channel(EVENTS_MAX);
        let desk = Desk::default();
        let ear = Box::new(Ear { desk: desk.clone(), events: to_events });
        let mut engine = Engine::new(sample_rate);
        engine.report_restart();
        let (renderer, orders, player) = Renderer::new(engine, settings.ahead_frames(), ear);
        let shared = Arc::clone(renderer.shared());
        let mut starting = Starting::default();
        let stop = Arc::clone(&starting.stop);
        let rendering = starting.spawn("garden-renderer", move || render(renderer, &stop))?;
        let orders = orders.waking(rendering);
        let font = settings.soundfont.clone();
        let preparer = Preparer::new(source, sample_rate, cache_bytes, font);
        let reader = Reader::new(desk.clone(), orders.clone(), preparer, sample_rate, cache_bytes);
        starting.spawn("garden-reader", move || reader.run())?;
        let format = Format { sample_rate, buffer_frames };
        let mut output = Output::new(settings.device.clone(), format, orders.clone());
        output.stop = Arc::clone(&starting.stop);
        let device = output.state.clone();
        let (tap, reader) = tap(sample_rate);
        let player = player.tapped(tap);
        starting.spawn("garden-device", move || output.run(player))?;
        let monitor = MonitorSwitch::new(sample_rate);
        let changed = Arc::default();
        let prepared = PreparedRegions::default();
        let handle = GardenHandle { orders, desk, device, shared, monitor, prepared, changed };
        let Starting { stop, threads } = starting;
        Ok((Self { handle, stop, threads, tap: Some(reader) }, events))
    }

    /// Starts the monitor, which sends what is played while the daemon has listeners; `None` if it
    /// was started before.
    pub(crate) fn monitor(&mut self, receiver: impl Receiver + 'static) -> Option<Monitor> {
        self.tap.take().map(|tap| Monitor::new(&self.handle.monitor, tap, receiver))
    }

    /// Returns a way to it.
    #[must_use]
    pub const fn handle(&self) -> &GardenHandle {
        &self.handle
    }

    /// Stops playing and waits for the threads.
    pub fn close(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.handle.desk.close();
        for thread in self.threads {
            thread.thread().unpark();
            if thread.join().is_err() {
                tracing::error!("a thread of the garden has panicked");
            }
        }
    }
}

/// Threads that were started.
#[derive(Default)]
struct Starting {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Starting {
    fn spawn(
        &mut self,
        name: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<std::thread::Thread> {
        let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(work)?;
        let thread = spawned.thread().clone();
        self.threads.push(spawned);
        Ok(thread)
    }
}

/// The renderer's thread.
fn render(mut renderer: Renderer, stop: &AtomicBool) {
    // The status shows whether the device's thread got it; this one has time to spare.
    let is_realtime = crate::realtime::request();
    tracing::debug!(is_realtime, "the renderer runs");
    while !stop.load(Ordering::Relaxed) {
        if !renderer.turn() {
            std::thread::park_timeout(RENDERER_SLEEP);
        }
    }
}

impl GardenHandle {
    /// Replaces the timeline.
    ///
    /// # Errors
    /// `busy` or `gone`.
    pub async fn load(&self, timeline: GardenTimeline) -> Result<(), Error> {
        self.ask(move |engine| engine.load(timeline)).await?;
        self.changed.notify_one();
        Ok(())
    }

    /// Replaces the timeline if it is still at a revision; returns whether it was.
    ///
    /// # Errors
    /// `busy` or `gone`.
    pub(crate) async fn load_after(
        &self,
        revision: u64,
        timeline: GardenTimeline,
    ) -> Result<bool, Error> {
        let load = move |engine: &mut Engine| {
            let is_same = engine.timeline().revision() == revision;
            if is_same {
                engine.load(timeline);
            }
            is_same
        };
        let is_loaded = self.ask(load).await?;
        if is_loaded {
            self.changed.notify_one();
        }
        Ok(is_loaded)
    }

    /// Waits until the timeline was loaded or got a region, since the last wait. One task waits.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Returns the state.
    ///
    /// # Errors
    /// `busy` or `gone`.
    pub async fn status(&self) -> Result<GardenStatus, Error> {
        let (device, shared) = (self.device.get(), Arc::clone(&self.shared));
        self.ask(move |engine| engine.status(device, &shared)).await
    }

    /// Sends what is played to the daemon, until it says that nobody listens.
    pub(crate) fn start_monitor(&self) -> MonitorAnswer {
        self.monitor.start()
    }

    /// Plays, pauses, stops or seeks.
    ///
    /// # Errors
    /// Those of [`Engine::transport`], `busy` or `gone`.
    pub async fn transport(
        &self,
        action: Action,
        at: Option<GardenAt>,
        job_id: Option<JobId>,
    ) -> Result<TransportAnswer, Error> {
        self.ask(move |engine| engine.transport(action, at, job_id)).await?
    }

    /// Pauses before all other commands. Where too many pauses wait already, it waits for them: they
    /// are the same command.
    ///
    /// # Errors
    /// `busy` or `gone`.
    pub async fn emergency_pause(&self) -> Result<TransportAnswer, Error> {
        let mut n_attempts = 0;
        loop {
            let (answer, wait) = oneshot::channel();
            let pause = move |engine: &mut Engine| {
                // A caller that is gone needs no answer.
                drop(answer.send(engine.emergency_pause()));
            };
            n_attempts += 1;
            match self.orders.send_urgent(Box::new(pause)) {
                Ok(()) => return wait.await.map_err(|_| ended()),
                Err(error) if error.kind() != ErrorKind::Busy || n_attempts == PAUSES_MAX => {
                    return Err(error);
                }
                Err(_) => tokio::time::sleep(RENDERER_SLEEP).await,
            }
        }
    }

    /// Returns the revision of the timeline.
    ///
    /// # Errors
    /// `busy` or `gone`.
    pub async fn revision(&self) -> Result<u64, Error> {
        self.ask(|engine| engine.timeline().revision()).await
    }

    /// Changes the tempo.
    ///
    /// # Errors
    /// Those of [`Engine::set_tempo`], `busy` or `gone`.
    pub async fn set_tempo(&self, arguments: SetTempoArguments) -> Result<TempoAnswer, Error> {
        let change = self.ask(move |engine| engine.set_tempo(&arguments)).await??;
        Ok(TempoAnswer { change })
    }

    /// Prepares the content of a region that is about to be placed.
    ///
    /// # Errors
    /// As [`Self::create_region`].
    pub async fn prepare_region(
        &self,
        region: &GardenRegion,
        deadline: Duration,
    ) -> Result<(), Error> {
        let map: TempoMap = self.ask(|engine| engine.tempo().clone()).await?;
        let Some(key) = key_of(region, &map) else { return Ok(()) };
        let probed = self.probed(key.clone(), deadline).await?;
        if probed.is_none() && region.duration.is_none() {
            return Err(no_length());
        }
        self.prepared.put(region.region_id, Prepared { key, probed });
        Ok(())
    }

    /// Places a region, once its content has proved to be playable. If that takes longer than
    /// `deadline`, a region with a length is placed before; it is reported if it fails later.
    ///
    /// # Errors
    /// `invalid` if the content cannot be played, `busy` if its length is not known in time, those
    /// of [`Engine::create_region`], or `gone`.
    pub async fn create_region(
        &self,
        arguments: CreateRegionArguments,
        deadline: Duration,
    ) -> Result<CreateRegionAnswer, Error> {
        let CreateRegionArguments { mut region, revision } = arguments;
        let map: TempoMap = self.ask(|engine| engine.tempo().clone()).await?;
        let prepared = match (self.prepared.take(region.region_id), key_of(&region, &map)) {
            (Some(prepared), _) => Some(prepared),
            (None, Some(key)) => {
                let probed = self.probed(key.clone(), deadline).await?;
                Some(Prepared { key, probed })
            }
            (None, None) => None,
        };
        let probed = prepared.as_ref().and_then(|prepared| prepared.probed.as_ref());
        let duration = match (region.duration, probed) {
            (Some(duration), _) => duration,
            (None, Some(Probed { notes: Some(notes), .. })) => *notes,
            (None, Some(Probed { n_frames, notes: None, .. })) => {
                length_of(&region, *n_frames, &map)
            }
            (None, None) => return Err(no_length()),
        };
        region.duration = Some(duration);
        // With a length, or at another tempo, MIDI has another key.
        let prepared =
            prepared.filter(|prepared| key_of(&region, &map).as_ref() == Some(&prepared.key));
        let held = prepared.and_then(|prepared| prepared.probed?.sound);
        let create = move |engine: &mut Engine| {
            let sound = held.as_ref().map(|held| Arc::clone(&held.sound));
            engine.create_region(region, sound, revision)
        };
        self.ask(create).await??;
        self.changed.notify_one();
        Ok(CreateRegionAnswer { duration })
    }

    /// Sets the loop, or ends it.
    ///
    /// # Errors
    /// Those of [`Engine::set_loop`], `busy` or `gone`.
    pub async fn set_loop(&self, arguments: SetLoopArguments) -> Result<(), Error> {
        let SetLoopArguments { loop_range, revision } = arguments;
        self.ask(move |engine| engine.set_loop(loop_range, revision)).await?
    }

    /// Sets the state of a region whose content is there.
    ///
    /// # Errors
    /// Those of [`Engine::set_region_state`], `busy` or `gone`.
    pub async fn set_region_state(&self, arguments: SetRegionStateArguments) -> Result<(), Error> {
        let SetRegionStateArguments { region_id, state, revision } = arguments;
        self.ask(move |engine| engine.set_region_state(region_id, state, None, None, revision))
            .await?
    }

    /// Moves a region.
    ///
    /// # Errors
    /// Those of [`Engine::move_region`], `busy` or `gone`.
    pub async fn move_region(&self, arguments: MoveRegionArguments) -> Result<(), Error> {
        let MoveRegionArguments { region_id, position, revision } = arguments;
        self.ask(move |engine| engine.move_region(region_id, position, revision)).await?
    }

    /// Removes a region.
    ///
    /// # Errors
    /// Those of [`Engine::delete_region`], `busy` or `gone`.
    pub async fn delete_region(&self, arguments: DeleteRegionArguments) -> Result<(), Error> {
        let DeleteRegionArguments { region_id, revision } = arguments;
        self.ask(move |engine| engine.delete_region(region_id, revision)).await?
    }

    /// Waits for the sound of a key as [`Self::probe`]; content that cannot be played is refused.
    async fn probed(&self, key: SoundKey, deadline: Duration) -> Result<Option<Probed>, Error> {
        let probed = self.probe(key, deadline).await?.transpose();
        probed.map_err(|error| refused(&error))
    }

    /// Waits for the sound of a key; `None` if it is not ready in time.
    pub(crate) async fn probe(
        &self,
        key: SoundKey,
        deadline: Duration,
    ) -> Result<Option<Result<Probed, ContentError>>, Error> {
        let (answer, wait) = oneshot::channel();
        // A caller that is gone needs no answer.
        if !self.desk.probe(key, Box::new(move |probed| drop(answer.send(probed)))) {
            return Err(Error::busy("the garden's queue of new regions"));
        }
        match tokio::time::timeout(deadline.saturating_sub(ANSWER_TIME), wait).await {
            Ok(probed) => Ok(Some(probed.map_err(|_| ended())?)),
            Err(_) => Ok(None),
        }
    }

    /// Runs something on the renderer's thread.
    pub(crate) async fn ask<R: Send + 'static>(
        &self,
        run: impl FnOnce(&mut Engine) -> R + Send + 'static,
    ) -> Result<R, Error> {
        let (answer, wait) = oneshot::channel();
        // A caller that is gone needs no answer.
        self.orders.send(Box::new(move |engine| drop(answer.send(run(engine)))))?;
        wait.await.map_err(|_| ended())
    }
}

fn no_length() -> Error {
    let message = "the content is still being prepared and its length is not known; try again, or \
                   give `duration`";
    Error::new(ErrorKind::Busy, message)
}

/// Names the field of content that cannot be played.
fn refused(error: &ContentError) -> Error {
    Error::invalid_field("content_id", error.to_string())
}

#[cfg(test)]
mod tests {
    use ringback_proto::garden::{GardenHeard, Ticks};
    use ringback_proto::ids::RegionId;

    use super::*;

    /// Rule: playback waits for no listener: what does not fit into the queue is dropped.
    #[test]
    fn events_that_nobody_takes_are_dropped_and_nothing_waits() {
        let (to_events, mut events) = mpsc::channel(2);
        let mut ear = Ear { desk: Desk::default(), events: to_events };
        let heard = |number: u64| {
            let region_id = RegionId::from_random([1; 16]);
            GardenEvent::Heard(GardenHeard { region_id, from: Ticks(0), to: Ticks(number) })
        };
        ear.events((0..EVENTS_MAX as u64).map(heard).collect());
        assert_eq!(events.try_recv().ok(), Some(heard(0)));
        assert_eq!(events.try_recv().ok(), Some(heard(1)));
        assert!(events.try_recv().is_err(), "the rest is lost");
        drop(events);
        ear.events(vec![heard(0)]);
    }
}
