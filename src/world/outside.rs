//! The provider and the tool server: they go on when the world has them go on.

use super::planted::Planted;
use super::scenario::Scenario;
use crate::conversation::event::{CallProgress, ToolResult, Usage};
use crate::engine::dialects::{AnswerEnd, Dialect, Said};
use crate::engine::{
    CallEnd, CallSpec, Engine, EngineEvent, ErrorClass, Retry, RunError, Running, Sink, Stage,
};
use crate::support::dice::Dice;
use crate::support::lock;
use crate::task::server::ServerName;
use crate::tool::servers::CallStep;
use crate::tool::servers::scripted::{Script, ScriptedCall};
use futures_util::stream::{self, StreamExt};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};
use std::task::Poll;

/// Calls of tools that a world can tell apart.
const CALLS_MAX: usize = 500;

/// Arguments of the calls that models make, each other ones.
static ARGUMENTS: LazyLock<Vec<String>> =
    LazyLock::new(|| (0..CALLS_MAX).map(|number| format!("{{\"n\":{number}}}")).collect());

/// A text that fills the smaller pipes.
static LONG: LazyLock<String> = LazyLock::new(|| "all work and no play ".repeat(40));

/// What is outside of the program and answers it.
#[derive(Debug)]
pub(super) struct Outside {
    /// The chance of the step that is taken.
    pub(super) dice: Dice,
    dialect: Dialect,
    planted: Option<Planted>,
    /// What the provider, and the tools, may still send.
    pub(super) provider_may: usize,
    pub(super) tools_may: usize,
    /// Everything is answered at once.
    pub(super) is_fair: bool,
    /// Provider calls that hold something.
    pub(super) live_calls: usize,
    pub(super) live_tools: usize,
    /// Arguments of the next call of a tool.
    next_arguments: usize,
    /// How often the tool was called with each of the arguments.
    executed: BTreeMap<String, u32>,
    /// What was wrong with requests.
    pub(super) wrong: Option<String>,
}

/// Shared by the world and what it holds.
#[derive(Clone, Debug)]
pub(super) struct Shared(Arc<Mutex<Outside>>);

impl Shared {
    pub(super) fn new(scenario: &Scenario) -> Self {
        Self(Arc::new(Mutex::new(Outside {
            dice: Dice::of(0, 0),
            dialect: scenario.dialect,
            planted: scenario.planted,
            provider_may: 0,
            tools_may: 0,
            is_fair: false,
            live_calls: 0,
            live_tools: 0,
            next_arguments: 0,
            executed: BTreeMap::new(),
            wrong: None,
        })))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Outside> {
        // A defect that is planted in the engine may panic at any time.
        lock(&self.0)
    }

    /// Waits until the world lets one of these go on.
    async fn may(&self, which: fn(&mut Outside) -> &mut usize) {
        poll_fn(|_| {
            let mut outside = self.lock();
            let is_fair = outside.is_fair;
            let may = which(&mut outside);
            if *may == 0 && !is_fair {
                return Poll::Pending;
            }
            *may = may.saturating_sub(1);
            Poll::Ready(())
        })
        .await;
    }

    /// The server's tools, as the host calls them.
    pub(super) fn script(&self) -> Script {
        let shared = self.clone();
        Script(Arc::new(move |_: &ServerName, _: &str, arguments: &Map<String, Value>| {
            shared.call(Value::Object(arguments.clone()).to_string())
        }))
    }

    fn call(&self, arguments: String) -> ScriptedCall {
        let live = Live::new(self, |outside| &mut outside.live_tools);
        let mut steps: Vec<CallStep> = Vec::new();
        {
            let mut outside = self.lock();
            let times = if outside.planted == Some(Planted::CallsToolsTwice) { 2 } else { 1 };
            let executed = outside.executed.entry(arguments.clone()).or_default();
            *executed += times;
            if *executed > 1 {
                outside.wrong = Some(format!("a tool was called twice with {arguments}"));
            }
            for _ in 0..outside.dice.below(3) {
                let progress = CallProgress { progress: 1.0, total: None, message: String::new() };
                steps.push(CallStep::Progress(progress));
            }
            let result = match outside.dice.below(4) {
                0 => ToolResult::Error("the server ended before it answered".to_owned()),
                1 => ToolResult::Success(LONG.clone()),
                _ => ToolResult::Success("42".to_owned()),
            };
            steps.push(CallStep::Ended(result));
        }
        let shared = self.clone();
        let steps = stream::iter(steps).then(move |step| {
            let (shared, live) = (shared.clone(), live.clone());
            async move {
                shared.may(|outside| &mut outside.tools_may).await;
                drop(live);
                step
            }
        });
        Box::pin(steps)
    }
}

/// Counts something that is held until this is dropped.
#[derive(Clone)]
struct Live(#[expect(dead_code, reason = "it is dropped")] Arc<Count>);

struct Count {
    shared: Shared,
    of: fn(&mut Outside) -> &mut usize,
}

impl Live {
    fn new(shared: &Shared, of: fn(&mut Outside) -> &mut usize) -> Self {
        *of(&mut shared.lock()) += 1;
        Self(Arc::new(Count { shared: shared.clone(), of }))
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        let mut outside = self.shared.lock();
        if outside.planted != Some(Planted::LeaksCalls) {
            let count = (self.of)(&mut outside);
            *count = count.saturating_sub(1);
        }
    }
}

/// What the provider does with a call.
enum Answer {
    Says(Vec<EngineEvent>, CallEnd),
    /// It panics, as an engine with a defect.
    Panics,
}

/// The provider, as an engine.
#[derive(Debug)]
pub(super) struct Provider(pub(super) Shared);

impl Engine for Provider {
    fn name(&self) -> &str {
        "world"
    }

    fn model(&self) -> &str {
        "w"
    }

    fn start(&self, spec: CallSpec, sink: Sink) -> Running {
        let shared = self.0.clone();
        let live = Live::new(&shared, |outside| &mut outside.live_calls);
        let answer = shared.lock().answer(&spec);
        Box::pin(async move {
            let _live = live;
            let Answer::Says(events, end) = answer else { panic!("a defect in an engine") };
            for event in events {
                shared.may(|outside| &mut outside.provider_may).await;
                sink.send(event).await;
            }
            shared.may(|outside| &mut outside.provider_may).await;
            end
        })
    }
}

impl Outside {
    fn answer(&mut self, spec: &CallSpec) -> Answer {
        let broken = self.dialect.broken_rules(spec, false);
        if let Some(rule) = broken.first() {
            self.wrong = Some(format!("a request that its provider refuses: {rule}"));
        }
        let failed = |stage, class, detail: &str| {
            let message = "the provider failed".to_owned();
            CallEnd::Failed(RunError { stage, class, message, detail: detail.to_owned() })
        };
        let kinds = if self.is_fair { 4 } else { 40 };
        match self.dice.below(kinds) + if self.is_fair { 36 } else { 0 } {
            0 => Answer::Panics,
            1 => Answer::Says(Vec::new(), failed(Stage::Init, ErrorClass::Auth, "no key")),
            2 => Answer::Says(
                vec![EngineEvent::CallStarted],
                failed(Stage::Refused, ErrorClass::ContextOverflow, "status 400"),
            ),
            3 => Answer::Says(
                vec![EngineEvent::CallStarted],
                failed(Stage::Refused, ErrorClass::Network, "connection refused"),
            ),
            4 => {
                let retry = |attempt| Retry {
                    attempt,
                    attempts_max: 3,
                    wait_ms: 500,
                    class: ErrorClass::Network,
                    reason: "reset".to_owned(),
                };
                let (mut events, end) = self.said(spec);
                let again =
                    [EngineEvent::RetryScheduled(retry(2)), EngineEvent::RetryStarted(retry(2))];
                events.splice(1..1, again);
                Answer::Says(events, end)
            }
            _ => {
                let (events, end) = self.said(spec);
                Answer::Says(events, end)
            }
        }
    }

    fn said(&mut self, spec: &CallSpec) -> (Vec<EngineEvent>, CallEnd) {
        let mut said = Vec::new();
        for _ in 0..self.dice.below(5) {
            said.push(match self.dice.below(10) {
                0 => Said::Thinking,
                1 => Said::Text(&LONG),
                2 => Said::Text("\n"),
                3..6 if !spec.tools.is_empty() && !self.is_fair => self.called(),
                3..6 => Said::Text("no tools. "),
                _ => Said::Text("Well \u{1F600}\u{2028} "),
            });
        }
        let ends = [
            (12, AnswerEnd::Whole),
            (1, AnswerEnd::Withheld),
            (1, AnswerEnd::CutOff),
            (1, AnswerEnd::Broken),
        ];
        let end = if self.is_fair { AnswerEnd::Whole } else { self.dice.weighted(&ends) };
        if said.is_empty() && end == AnswerEnd::Whole {
            said.push(Said::Text("Yes."));
        }
        let (mut events, end) = self.dialect.answer(&said, end);
        self.split_texts(&mut events);
        if self.dice.once_in(2) {
            let (input, output) = (self.dice.below(300), self.dice.below(50));
            let count = |tokens| i32::try_from(tokens).unwrap_or_default();
            let usage = Usage {
                input_tokens: count(input),
                output_tokens: count(output),
                ..Usage::default()
            };
            let at = events.iter().position(|it| matches!(it, EngineEvent::CallFinished { .. }));
            events.insert(at.unwrap_or(events.len()), EngineEvent::Usage(usage));
        }
        (events, end)
    }

    /// Texts come in pieces, also within a word.
    fn split_texts(&mut self, events: &mut Vec<EngineEvent>) {
        let mut pieces = Vec::new();
        for event in events.drain(..) {
            match event {
                EngineEvent::Text(mut text) => {
                    while text.len() > 8 {
                        let most = 1 + self.dice.below(text.len());
                        let first = text.floor_char_boundary(most.max(4));
                        let rest = text.split_off(first);
                        pieces.push(EngineEvent::Text(std::mem::replace(&mut text, rest)));
                    }
                    if !text.is_empty() {
                        pieces.push(EngineEvent::Text(text));
                    }
                }
                event @ (EngineEvent::CallStarted
                | EngineEvent::ResponseStarted
                | EngineEvent::Reasoning { .. }
                | EngineEvent::ToolCallStarted(_)
                | EngineEvent::ToolArguments { .. }
                | EngineEvent::ToolCallRequested { .. }
                | EngineEvent::Usage(_)
                | EngineEvent::ContextTokens(_)
                | EngineEvent::RetryScheduled(_)
                | EngineEvent::RetryStarted(_)
                | EngineEvent::CallFinished { .. }) => pieces.push(event),
            }
        }
        *events = pieces;
    }

    fn called(&mut self) -> Said {
        let names = ["read", "read", "write", "drop", "get_time", "human_pick", "no_such"];
        let ids = ["call_a", "call_a", "call_b", "a:1", ""];
        self.next_arguments += 1;
        let arguments = &ARGUMENTS[self.next_arguments % CALLS_MAX];
        Said::Call(self.dice.pick(&ids), self.dice.pick(&names), arguments)
    }
}
