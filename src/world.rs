//! Everything as one deterministic world: hosts with their sessions, stores, front end, provider, tool server, client,
//! disk and clock. What happens in a world follows from its number: requests and their bytes, what the provider and
//! the tools do, when a thread of the store gets on, time, a full disk, a reader that is slow or gone, a process
//! that is killed, a machine that loses power. After each step everything is checked that can be seen from there,
//! and each stream by the checker of the contract. `DUOLOGUE_WORLDS` is how many worlds are tried, `DUOLOGUE_WORLD`
//! the plan of one that is tried again.
//!
//! `scenario` is what a world is made of, `support::world_plan` which of its steps are taken. `process` is the
//! front end, `outside` the provider and the tool server, `client` who asks and reads, `disk` what survives, `view`
//! what must be true of it, `ending` how processes end. `planted` has the faults that show that this finds any.
//! `store/postgres/model` is the same for the nodes of a fleet.
//!
//! Not in here: bytes of providers and MCP servers on a network, and threads that read files.

mod client;
mod disk;
mod ending;
mod outside;
mod planted;
mod process;
mod scenario;
mod tests;
mod view;

use crate::engine::Engines;
use crate::host::{Effect, Effects, FilePolicy, Host, HostSettings};
use crate::protocol::id::SessionId;
use crate::session::{ExitCode, Input, Signal, panic_text};
use crate::store::stepped;
use crate::support::dice::Dice;
use crate::support::fail_point::{FailPoint, Faults, Place};
use crate::support::world_plan::Plan;
use crate::task::server::{ServerChange, ServerState, ServerTool};
use crate::tool::servers::ToolServers;
use client::Client;
use disk::{Death, Disks};
use outside::{Provider, Shared};
use planted::Planted;
use process::{Process, Turn};
use scenario::{Scenario, server};
use serde_json::Map;
use std::ops::{Add, AddAssign};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::time::advance;
use view::View;

/// Plays a world; gives what was wrong, if anything was.
fn play(plan: &Plan, planted: Option<Planted>) -> Result<Counts, String> {
    let mut world = World::new(plan.seed, planted);
    let played = world.try_play(plan);
    played.map(|()| world.counts)
}

/// Plays a world; gives what has happened in it, and what was wrong.
fn traced(plan: &Plan, planted: Option<Planted>) -> (Vec<String>, String) {
    let mut world = World::new(plan.seed, planted);
    world.trace = Some(Vec::new());
    let played = world.try_play(plan);
    (world.trace.take().unwrap_or_default(), played.err().unwrap_or_default())
}

/// What has happened in worlds.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    requests: u64,
    frames: u64,
    processes: u64,
    deaths: u64,
}

impl Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            frames: self.frames + other.frames,
            processes: self.processes + other.processes,
            deaths: self.deaths + other.deaths,
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

struct World {
    seed: u64,
    scenario: Scenario,
    runtime: Runtime,
    shared: Shared,
    disks: Disks,
    client: Client,
    view: View,
    process: Option<Process>,
    /// What the last process has called the session.
    session: Option<SessionId>,
    /// From which the next process makes its ids.
    ids_seed: u128,
    /// The defect of the program was not given to a process yet.
    has_defect: bool,
    reader_is_gone: bool,
    counts: Counts,
    /// What has happened, if somebody wants to read it.
    trace: Option<Vec<String>>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.process = None;
        stepped::end();
    }
}

/// What a step may do.
#[derive(Clone, Copy, Debug)]
enum Action {
    Ask,
    TakeIn,
    Provider,
    Tools,
    Store,
    Read,
    ReadAll,
    Wait,
    WaitLong,
    Disk,
    Server,
    Idle,
    Kill,
    PowerLoss,
    Signal,
    EndInput,
    ReaderGone,
    Nothing,
}

/// How often each of them is taken.
const ACTIONS: [(usize, Action); 18] = [
    (22, Action::Ask),
    (16, Action::TakeIn),
    (26, Action::Provider),
    (8, Action::Tools),
    (18, Action::Store),
    (6, Action::Read),
    (10, Action::ReadAll),
    (6, Action::Wait),
    (2, Action::WaitLong),
    (2, Action::Disk),
    (4, Action::Server),
    (1, Action::Idle),
    (3, Action::Kill),
    (1, Action::PowerLoss),
    (1, Action::Signal),
    (1, Action::EndInput),
    (1, Action::ReaderGone),
    (4, Action::Nothing),
];

impl World {
    fn new(seed: u64, planted: Option<Planted>) -> Self {
        let mut dice = Dice::of(seed, u64::MAX - 1);
        let scenario = Scenario::new(&mut dice, planted);
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        let shared = Shared::new(&scenario);
        let world = Self {
            seed,
            runtime: runtime.expect("a runtime"),
            shared,
            disks: Disks::new(scenario.stores),
            client: Client::default(),
            view: View::default(),
            process: None,
            session: scenario.rules.session.clone(),
            ids_seed: u128::from(seed),
            has_defect: true,
            reader_is_gone: false,
            counts: Counts::default(),
            trace: None,
            scenario,
        };
        stepped::begin();
        world
    }

    fn note(&mut self, what: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(what());
        }
    }

    fn try_play(&mut self, plan: &Plan) -> Result<(), String> {
        // Its clock is the only one.
        let runtime = self.runtime.handle().clone();
        let _inside = runtime.enter();
        let played = catch_unwind(AssertUnwindSafe(|| self.play(plan)));
        played.unwrap_or_else(|panic| Err(format!("a panic: {}", panic_text(panic.as_ref()))))
    }

    fn play(&mut self, plan: &Plan) -> Result<(), String> {
        let scenario = self.scenario.clone();
        self.note(|| format!("{scenario:?}"));
        self.begin();
        for step in &plan.steps {
            self.step(*step).map_err(|why| format!("{why} (in step {step})"))?;
        }
        self.settle()?;
        // What was shown is there for who comes later.
        if self.scenario.stores > 0 {
            self.begin();
            let (exit, has_state) = self.settle()?;
            if exit != ExitCode::Ok || !has_state {
                return Err(format!("the stored conversation can't be resumed: {exit:?}"));
            }
        }
        Ok(())
    }

    /// A process begins, or the next one.
    fn begin(&mut self) {
        self.counts.processes += 1;
        self.ids_seed = self.ids_seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let mut rules = self.scenario.rules.clone();
        let has_store = self.scenario.stores > 0;
        rules.session = self.session.clone().filter(|_| has_store).or(rules.session);
        let capabilities = self.scenario.capabilities();
        let engines = Engines::new(Provider(self.shared.clone()), Default::default());
        let servers = ToolServers::of_script(&server(), self.shared.script());
        // A defect is met once.
        let has_defect = std::mem::take(&mut self.has_defect);
        let faults = if has_defect { self.scenario.defect.clone() } else { Faults::default() };
        let store = self.disks.settings(rules.session.is_some());
        let (host, greeting) = Host::new(HostSettings {
            rules,
            engines,
            servers,
            store,
            files: FilePolicy::None,
            capabilities,
            seed: self.ids_seed,
            faults,
        });
        if self.scenario.planted == Some(Planted::ForgetsBatches) {
            stepped::forget_batches();
        }
        self.view.is_stored = has_store;
        self.reader_is_gone = false;
        self.process = Some(Process::new(host, greeting, &self.scenario));
    }

    fn process(&mut self) -> &mut Process {
        self.process.as_mut().expect("one runs")
    }

    fn step(&mut self, number: u64) -> Result<(), String> {
        let mut dice = Dice::of(self.seed, number);
        self.shared.lock().dice = Dice::of(self.seed ^ 0x5eed, number);
        let action = dice.weighted(&ACTIONS);
        self.note(|| format!("step {number}: {action:?}"));
        self.act(action, &mut dice)?;
        for _ in 0..dice.pick(&[0, 1, 2, 3, 8, 20]) {
            if !self.turn()? {
                break;
            }
        }
        self.check()?;
        self.follow(&mut dice)
    }

    fn act(&mut self, action: Action, dice: &mut Dice) -> Result<(), String> {
        match action {
            Action::Ask => {
                self.counts.requests += 1;
                let line = self.client.request(dice);
                self.note(|| format!("  asks {}", line.trim_end()));
                self.process().write(&line);
            }
            Action::TakeIn => {
                let most = dice.pick(&[1, 7, 40, usize::MAX, usize::MAX]);
                self.process().take_in(most);
            }
            Action::Provider => self.shared.lock().provider_may += 1 + dice.below(8),
            Action::Tools => self.shared.lock().tools_may += 1 + dice.below(3),
            Action::Store => {
                for _ in 0..1 + dice.below(3) {
                    stepped::step();
                }
            }
            Action::Read => self.read(1 + dice.below(300))?,
            Action::ReadAll => self.read_all()?,
            Action::Wait => self.wait(Duration::from_millis(dice.pick(&[1, 50, 600, 2_500]))),
            Action::WaitLong => self.wait(Duration::from_secs(dice.pick(&[11, 61, 3_600, 86_400]))),
            Action::Disk => stepped::fill(dice.once_in(2)),
            Action::Server => self.change_server(dice)?,
            Action::Idle => stepped::idle(),
            Action::Kill => {
                let death = dice.pick(&[Death::Kill, Death::KillInCommit]);
                self.die(death, dice)?;
            }
            Action::PowerLoss => self.die(Death::PowerLoss, dice)?,
            Action::Signal => {
                let signal = dice.pick(&[Signal::Terminate, Signal::Interrupt, Signal::Hangup]);
                self.input(Input::Interrupted(signal))?;
            }
            Action::EndInput => self.process().close_input(),
            Action::ReaderGone => {
                self.reader_is_gone = true;
                self.input(Input::ReaderGone)?;
            }
            Action::Nothing => {}
        }
        Ok(())
    }

    fn wait(&mut self, time: Duration) {
        if self.scenario.planted != Some(Planted::StopsTheClock) {
            self.runtime.block_on(advance(time));
        }
    }

    fn change_server(&mut self, dice: &mut Dice) -> Result<(), String> {
        let state = match dice.below(5) {
            0 => ServerState::Gone { reason: "it crashed".to_owned() },
            1 => ServerState::Failed { reason: "no such file".to_owned() },
            2 => ServerState::Starting,
            _ => ServerState::Ready,
        };
        let tool = |name: &str| ServerTool {
            name: name.to_owned(),
            description: String::new(),
            input_schema: Arc::new(Map::new()),
        };
        let names: &[&str] =
            if state == ServerState::Ready { &["read", "write", "drop"] } else { &[] };
        let tools = names.iter().map(|name| tool(name)).collect();
        self.input(Input::ServerChanged(ServerChange { server: server(), state, tools }))
    }

    /// Has the host handle an input that is no line.
    fn input(&mut self, input: Input) -> Result<(), String> {
        if self.process().exit.is_some() {
            return Ok(());
        }
        let effects = self.process().host.handle(input);
        self.perform(effects)
    }

    /// One turn of the loop; false if it had nothing to do.
    fn turn(&mut self) -> Result<bool, String> {
        let Self { process, runtime, .. } = self;
        let process = process.as_mut().expect("one runs");
        let call_before = process.host.active_call();
        let (effects, line) = match process.turn(runtime)? {
            Turn::Idle => return Ok(false),
            Turn::Effects(effects, line) => (effects, line),
        };
        if let Some(line) = &line {
            self.view.handled(line);
            self.note(|| format!("  handles {line}"));
        } else if self.scenario.planted == Some(Planted::LosesEffects)
            && self.counts.frames % 5 == 4
        {
            return Ok(true);
        }
        let is_cancel = line.is_some_and(|line| line.ends_with("\"cancel\":{}}"));
        // A defect may keep it from being read.
        let is_read = self.scenario.defect.at(Place::Decode) == FailPoint::default();
        let host = &self.process().host;
        if is_cancel && is_read && call_before.is_some() && host.active_call() == call_before {
            return Err("a provider call goes on after its cancel".to_owned());
        }
        self.perform(effects)?;
        Ok(true)
    }

    fn perform(&mut self, effects: Effects) -> Result<(), String> {
        if self.trace.is_some() {
            for effect in &effects.list {
                self.note(|| format!("    {}", shown(effect)));
            }
        }
        self.view.effects(&effects)?;
        let Effects { at, list } = effects;
        let planted = self.scenario.planted;
        let process = self.process.as_mut().expect("one runs");
        let mut frames = Vec::new();
        for effect in list {
            process.perform(at, &effect);
            if let Effect::Frame(frame) = effect {
                if !frame.session_id.is_empty() {
                    self.session = SessionId::new(&frame.session_id);
                }
                frames.push(frame);
            }
        }
        self.counts.frames += frames.len() as u64;
        planted::spoil(planted, &mut frames);
        if !self.reader_is_gone {
            frames.into_iter().for_each(|frame| process.push(at, frame));
        }
        Ok(())
    }

    fn read(&mut self, most: usize) -> Result<(), String> {
        let bytes = self.process().take_out(most);
        self.client.read(bytes.into_iter())
    }

    fn read_all(&mut self) -> Result<(), String> {
        while !self.process().is_flushed() {
            let bytes = self.process().take_out(usize::MAX);
            self.client.read(bytes.into_iter())?;
        }
        Ok(())
    }

    /// What must be true at any moment.
    fn check(&mut self) -> Result<(), String> {
        let process = self.process.as_ref().expect("one runs");
        let active = usize::from(process.host.active_call().is_some());
        let outside = self.shared.lock();
        if let Some(wrong) = &outside.wrong {
            return Err(wrong.clone());
        }
        // The future of a call that has ended by itself is gone, and its end is handled later.
        if outside.live_calls > active {
            return Err(format!(
                "{} provider calls hold something, {active} are active",
                outside.live_calls
            ));
        }
        drop(outside);
        if let Some(session) = process.host.session() {
            session.check_waits()?;
        }
        Ok(())
    }
}

/// An effect in a few words.
fn shown(effect: &Effect) -> String {
    match effect {
        Effect::Frame(frame) => serde_json::to_string(frame).unwrap_or_default(),
        Effect::Warning(warning) => format!("{warning:?}"),
        Effect::Usage(_) => "usage".to_owned(),
        Effect::ToolImages(_) => "images".to_owned(),
        Effect::Exit(code) => format!("exit {code:?}"),
        Effect::Abort(code) => format!("abort {code:?}"),
    }
}
