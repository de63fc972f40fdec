//! Conversations as text, in `tests/golden`: what goes in, and every line that comes out.
//!
//! ```text
//! # a comment
//! % queue                     the server's options
//! > {"submit":…}              a line of input
//! ~ text "Hel"                the engine of the live run says something
//! ~ returned t1 "noon"        the tool of the call t1 has returned
//! ! end of input              something else happens
//! < {"uiEvent":…}             a line of output, compared as JSON
//! = start [["user","hi"]]     the engine is started, with these messages; is cancelled; exit
//! = tool fs read {}           the tool of a server is started, with these arguments
//! ```
//!
//! Generated ids are numbered in the order in which they appear; input may name prompts by them. `UPDATE_GOLDEN=1`
//! writes the `<` and `=` lines anew; look at the difference before it is kept.

use super::scene::{server, server_tools};
use crate::conversation::event::{FinishClass, ToolCall, ToolResult, Usage};
use crate::conversation::patch::{PatchFields, PatchMode};
use crate::conversation::transcript::{Message, Transcript};
use crate::protocol::command::Extension;
use crate::protocol::constants::capability::LEAN_PATCHES;
use crate::protocol::id::{Ids, TaskId, ToolCallId};
use crate::protocol::json;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::{self, Frame};
use crate::session::approval::ApprovalMode;
use crate::session::prices::{PriceList, Prices};
use crate::session::{
    FinalSnapshot, Input, OnBusy, Output, Rules, Session, Signal, TaskEvent, Uptime,
};
use crate::session::{Hint, Hints};
use crate::task::call::{CallSpec, EngineFacts, EngineRef};
use crate::task::report::{CallEnd, EngineEvent, ErrorClass, Retry, RunError, Stage};
use crate::task::server::ServerState;
use crate::task::server::ServerTool;
use crate::task::settings::CallSettings;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

/// Milliseconds between two lines of a script.
const STEP_MS: u64 = 10;

/// Plays `script`; returns it with the output lines that there are.
fn play(script: &str) -> String {
    let mut stage = Play::new(rules(script));
    let mut played = String::new();
    let mut has_begun = false;
    for line in script.lines().filter(|line| !is_output(line)) {
        let input = stage.input(line);
        if input.is_some() && !has_begun {
            has_begun = true;
            played += &stage.hello();
        }
        played += line;
        played += "\n";
        played += &input.map_or_else(String::new, |input| stage.step(input));
    }
    played
}

fn is_output(line: &str) -> bool {
    line.starts_with('<') || line.starts_with('=')
}

fn rules(script: &str) -> Rules {
    let mut rules = Rules { hints: Hints(options), ..Rules::default() };
    for option in script.lines().filter_map(|line| line.strip_prefix("% ")) {
        match option {
            "queue" => rules.on_busy = OnBusy::Queue,
            "snapshot patches" => rules.patches.mode = PatchMode::Snapshot,
            "lean patches" => rules.patches.fields = PatchFields::Lean,
            "final snapshot: turn" => rules.final_snapshot = FinalSnapshot::Turn,
            "final snapshot: none" => rules.final_snapshot = FinalSnapshot::None,
            "system prompt" => rules.preamble.system = Some("Be brief.".to_owned()),
            "tool clock" | "tool count" => rules.tools.approval.mode = ApprovalMode::Auto,
            "server" => rules.tools.servers = vec![server()],
            "approvals" => drop(rules.extensions.insert(Extension::Approvals)),
            "tool servers" => drop(rules.extensions.insert(Extension::ToolServers)),
            "retries" => drop(rules.extensions.insert(Extension::Retries)),
            "timing" => drop(rules.extensions.insert(Extension::Timing)),
            "usage" => drop(rules.extensions.insert(Extension::Usage)),
            "engines" => rules.engines = engines(),
            "prices" => rules.prices = PriceList::Own(Arc::new(prices())),
            "repair once" => rules.repairs = 1,
            "allow all" => rules.tools.approval.mode = ApprovalMode::Auto,
            other => panic!("no such option: {other}"),
        }
    }
    rules
}

/// Options of a front end.
fn options(hint: Hint<'_>) -> String {
    match hint {
        Hint::QueueSubmits => ", or start the server with --on-busy queue".to_owned(),
        Hint::ToolTime => " (--tool-timeout-ms)".to_owned(),
        Hint::OfferTools
        | Hint::ToolRounds
        | Hint::ToolCalls
        | Hint::ToolArguments
        | Hint::ServerTime
        | Hint::Compact
        | Hint::RequireTools
        | Hint::AllowTool(_)
        | Hint::OtherSession
        | Hint::FinalSnapshot
        | Hint::AllowRule(_)
        | Hint::DenyRule(_)
        | Hint::DenyAll => String::new(),
    }
}

/// The engine of the process, that of a profile, and one that is chosen by name.
fn engines() -> BTreeMap<EngineRef, EngineFacts> {
    let facts = |engine: &'static str, model: &str, temperature| {
        let settings = CallSettings { temperature, ..CallSettings::default() };
        EngineFacts {
            engine: engine.into(),
            model: model.to_owned(),
            provider: format!("{engine}.example"),
            settings: Arc::new(settings),
            context_tokens: None,
        }
    };
    BTreeMap::from([
        (EngineRef::Initial, facts("openai", "large", None)),
        (EngineRef::Profile("fast".to_owned()), facts("openai", "small", Some(0.5))),
        (EngineRef::Named("gemini".to_owned()), facts("gemini", "flash", None)),
    ])
}

/// A price for one of two models.
fn prices() -> Prices {
    let models = json!({ "large": { "input": 2, "output": 8, "cached-input": 1 } });
    serde_json::from_value(json!({ "currency": "USD", "models": models })).expect("prices")
}

/// What is sent beside the messages, where it is not the default.
fn choice(spec: &CallSpec) -> String {
    let mut said = match &spec.engine {
        EngineRef::Initial => String::new(),
        EngineRef::Profile(name) => format!("profile {name} "),
        EngineRef::Named(name) => format!("engine {name} "),
    };
    if let Some(model) = &spec.model {
        said += &format!("model {model} ");
    }
    if let Some(temperature) = spec.settings.temperature {
        said += &format!("temperature {temperature} ");
    }
    if let Some(schema) = &spec.schema {
        said += &format!("schema {} ", Value::Object(schema.schema.clone()));
    }
    said
}

fn capabilities(rules: &Rules) -> Vec<String> {
    let words: &[&str] = match rules.patches.fields {
        PatchFields::Full => &["single-session"],
        PatchFields::Lean => &["stdin-rpc", LEAN_PATCHES],
    };
    let extensions = rules.extensions.iter().map(|extension| extension.as_str());
    words.iter().copied().chain(extensions).map(str::to_owned).collect()
}

/// A session at the place it has in the process: lines on one side, an engine on the other.
struct Play {
    session: Session,
    ids: Ids,
    /// Of `hello`.
    capabilities: Vec<String>,
    names: Names,
    /// The active provider call.
    call: Option<TaskId>,
    /// The tools of a server that run, by their own names.
    tools: Vec<(String, TaskId)>,
    now: Uptime,
}

impl Play {
    fn new(rules: Rules) -> Self {
        let mut session = Session::new(rules.clone(), 1);
        if rules.tools.approval.mode == ApprovalMode::Auto && rules.tools.servers.is_empty() {
            drop(session.handle(Uptime(0), server_tools(ServerState::Ready, &["clock", "count"])));
        }
        Self {
            capabilities: capabilities(&rules),
            session,
            ids: Ids::new(2),
            names: Names::default(),
            call: None,
            tools: Vec::new(),
            now: Uptime(0),
        }
    }

    fn hello(&mut self) -> String {
        let hello = self.session.hello(self.capabilities.clone());
        self.line(hello)
    }

    fn input(&mut self, line: &str) -> Option<Input> {
        match line.split_at_checked(2)? {
            ("> ", line) => Some(
                match wire::decode(self.names.in_full(line).as_bytes(), || self.ids.request()) {
                    Ok(request) => Input::Request(request),
                    Err(bad) => Input::BadLine(bad),
                },
            ),
            ("~ ", said) => Some(self.task(said)),
            ("! ", what) => Some(self.other_input(what)),
            ("# " | "% ", _) => None,
            _ => panic!("a line of no kind: {line}"),
        }
    }

    fn step(&mut self, input: Input) -> String {
        self.now.0 += STEP_MS;
        match &input {
            Input::Task(_, TaskEvent::CallEnded(_)) => self.call = None,
            Input::Task(task, TaskEvent::ToolEnded(_)) => {
                self.tools.retain(|(_, its)| its != task);
            }
            Input::DeadlineReached => {
                self.now = self.session.deadline().expect("a deadline").max(self.now);
            }
            Input::Task(_, TaskEvent::Engine(_) | TaskEvent::ToolProgressed(_))
            | Input::FilesRead(..)
            | Input::Request(_)
            | Input::BadLine(_)
            | Input::InputEnded
            | Input::InputFailed { .. }
            | Input::ServerChanged(_)
            | Input::Interrupted(_)
            | Input::ReaderGone
            | Input::Restored(_)
            | Input::StoreFailed(_)
            | Input::Refused(_) => {}
        }
        let outputs = self.session.handle(self.now, input);
        outputs.into_iter().map(|output| self.output(output)).collect()
    }

    fn output(&mut self, output: Output) -> String {
        match output {
            Output::Persist(_) => String::new(),
            Output::Frame(frame) => self.line(frame),
            Output::StartCall(task, spec) => {
                self.call = Some(task);
                format!("= start {}{}\n", choice(&spec), messages(&spec.transcript))
            }
            Output::StartTool(task, call) => {
                self.tools.push((call.tool.clone(), task));
                let arguments = Value::Object(call.arguments);
                format!("= tool {} {} {arguments}\n", call.server, call.tool)
            }
            Output::ReadFiles(_, attachments) => format!("= read {} files\n", attachments.len()),
            Output::CancelTask(task) => {
                if self.call == Some(task) {
                    self.call = None;
                    return "= cancel\n".to_owned();
                }
                let at = self.tools.iter().position(|(_, its)| *its == task).expect("a live task");
                format!("= cancel tool {}\n", self.tools.remove(at).0)
            }
            Output::Warning(warning) => format!("= warning {}\n", warning.text),
            Output::Exit(code) => format!("= exit {}\n", code.number()),
            Output::Abort(code) => format!("= abort {}\n", code.number()),
        }
    }

    fn line(&mut self, mut frame: Frame) -> String {
        if let Some(Body::Error(error)) = &mut frame.frame
            && error.code == "invalid_request_json"
        {
            // The words of the JSON reader: free to change.
            error.detail.clear();
        }
        let mut line = Vec::new();
        json::write_line(&frame, &mut line).expect("JSON");
        let line = String::from_utf8(line).expect("UTF-8");
        format!("< {}", self.names.number(&line))
    }
}

impl Play {
    /// What a task reports. Words, of which those in quotes are JSON strings.
    fn task(&self, said: &str) -> Input {
        let words = words(said);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let result = match words.as_slice() {
            ["returned", _, text] => ToolResult::Success((*text).to_owned()),
            ["failed", _, text] => ToolResult::Error((*text).to_owned()),
            _ => return self.engine(&words),
        };
        let tool = self.tools.iter().find(|(name, _)| *name == words[1]);
        let (_, task) = tool.unwrap_or_else(|| panic!("no such tool runs: {said}"));
        Input::Task(*task, TaskEvent::ToolEnded(result))
    }

    fn engine(&self, words: &[&str]) -> Input {
        let call = self.call.unwrap_or_else(|| panic!("no provider call: {words:?}"));
        let id = |id: &str| ToolCallId(id.to_owned());
        let text = |text: &str| text.to_owned();
        let event = match words {
            ["call"] => EngineEvent::CallStarted,
            ["response"] => EngineEvent::ResponseStarted,
            ["text", it] => EngineEvent::Text(text(it)),
            ["reasoning", it] => EngineEvent::Reasoning { source: "reasoning", text: text(it) },
            ["tool", tool, name] => {
                EngineEvent::ToolCallStarted(ToolCall { id: id(tool), name: text(name) })
            }
            ["arguments", tool, it] => EngineEvent::ToolArguments { id: id(tool), text: text(it) },
            ["requested", tool] => EngineEvent::ToolCallRequested { id: id(tool) },
            ["usage", input, output] => EngineEvent::Usage(Usage {
                input_tokens: input.parse().expect("a number"),
                output_tokens: output.parse().expect("a number"),
                ..Usage::default()
            }),
            ["usage", input, output, cached] => EngineEvent::Usage(Usage {
                input_tokens: input.parse().expect("a number"),
                output_tokens: output.parse().expect("a number"),
                cached_tokens: cached.parse().expect("a number"),
                ..Usage::default()
            }),
            ["stop"] => call_finished("stop", FinishClass::Completed),
            ["length"] => call_finished("length", FinishClass::MaxTokens),
            ["retry", attempt] => EngineEvent::RetryScheduled(retry(attempt)),
            ["again", attempt] => EngineEvent::RetryStarted(retry(attempt)),
            ["tool_calls"] => call_finished("tool_calls", FinishClass::ToolCalls),
            ["end"] => return Input::Task(call, TaskEvent::CallEnded(CallEnd::Finished)),
            ["not", "ready", message] => {
                return failed(call, Stage::Init, ErrorClass::Config, message);
            }
            ["fail", message] => return failed(call, Stage::Run, ErrorClass::Network, message),
            _ => panic!("an engine does not say: {words:?}"),
        };
        Input::Task(call, TaskEvent::Engine(event))
    }

    fn other_input(&self, what: &str) -> Input {
        match what {
            "end of input" => Input::InputEnded,
            "input failed" => Input::InputFailed { reason: "an I/O error".to_owned() },
            "SIGTERM" => Input::Interrupted(Signal::Terminate),
            "reader gone" => Input::ReaderGone,
            "deadline" => Input::DeadlineReached,
            "server ready" => server_tools(ServerState::Ready, &["read", "write"]),
            "server changed" => {
                let mut changed = server_tools(ServerState::Ready, &["read", "write"]);
                if let Input::ServerChanged(change) = &mut changed {
                    let description = || "does something else".to_owned();
                    let other = |tool: &ServerTool| ServerTool {
                        description: description(),
                        ..tool.clone()
                    };
                    change.tools = change.tools.iter().map(other).collect();
                }
                changed
            }
            "server failed" => {
                server_tools(ServerState::Failed { reason: "no such program".to_owned() }, &[])
            }
            _ => panic!("this does not happen: {what}"),
        }
    }
}

/// The second or a later attempt.
fn retry(attempt: &str) -> Retry {
    Retry {
        attempt: attempt.parse().expect("a number"),
        attempts_max: 3,
        wait_ms: 500,
        class: ErrorClass::RateLimited,
        reason: "too many requests".to_owned(),
    }
}

fn call_finished(stop_reason: &str, class: FinishClass) -> EngineEvent {
    let stop_reason = stop_reason.to_owned();
    EngineEvent::CallFinished { stop_reason, class, provider_data: None }
}

fn failed(call: TaskId, stage: Stage, class: ErrorClass, message: &str) -> Input {
    let (message, detail) = (message.to_owned(), "more".to_owned());
    let error = RunError { stage, class, message, detail };
    Input::Task(call, TaskEvent::CallEnded(CallEnd::Failed(error)))
}

fn words(mut text: &str) -> Vec<String> {
    let mut words = Vec::new();
    while !text.is_empty() {
        let mut quoted = serde_json::Deserializer::from_str(text).into_iter::<String>();
        let (word, end) = match quoted.next() {
            Some(Ok(word)) if text.starts_with('"') => (word, quoted.byte_offset()),
            Some(_) | None => {
                let end = text.find(' ').unwrap_or(text.len());
                (text[..end].to_owned(), end)
            }
        };
        words.push(word);
        text = text[end..].trim_start();
    }
    words
}

/// What the model is sent.
fn messages(transcript: &Transcript) -> Value {
    let message = |message: Message<'_>| match message {
        Message::System(text) => json!(["system", text]),
        Message::User { text, attachments } if attachments.is_empty() => json!(["user", text]),
        Message::User { text, attachments } => {
            let attached =
                attachments.iter().map(|it| json!([it.filename(), it.url(), it.base64()]));
            json!(["user", text, attached.collect::<Vec<_>>()])
        }
        Message::Assistant { text, calls, .. } => {
            let calls = calls.iter().map(|(tool, input)| json!([tool.id.0, tool.name, input]));
            json!(["assistant", text, calls.collect::<Vec<_>>()])
        }
        Message::Tool { tool, result, .. } => json!(["tool", tool.id.0, result]),
    };
    transcript.messages().into_iter().map(message).collect()
}

/// Short names for generated ids.
#[derive(Default)]
struct Names(Vec<String>);

impl Names {
    /// The text with each UUID replaced by its number.
    fn number(&mut self, text: &str) -> String {
        let mut short = String::new();
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            let length = match rest.get(..36).filter(|text| uuid::Uuid::try_parse(text).is_ok()) {
                Some(id) => {
                    short += &self.name(id);
                    id.len()
                }
                None => {
                    short.push(next);
                    next.len_utf8()
                }
            };
            rest = &rest[length..];
        }
        short
    }

    /// The text with the id of each prompt that is named by its number.
    fn in_full(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (at, id) in self.0.iter().enumerate() {
            text =
                text.replace(&format!("chat-msg-{}-user", at + 1), &format!("chat-msg-{id}-user"));
        }
        text
    }

    fn name(&mut self, id: &str) -> String {
        let at = self.0.iter().position(|known| known == id).unwrap_or_else(|| {
            self.0.push(id.to_owned());
            self.0.len() - 1
        });
        (at + 1).to_string()
    }
}

fn parsed(line: &str) -> Value {
    match line.strip_prefix("< ") {
        Some(json) => serde_json::from_str(json).unwrap_or_else(|why| panic!("{why}: {line}")),
        None => Value::from(line),
    }
}

/// The first line in which the two differ, from 1.
fn difference(expected: &str, actual: &str) -> Option<usize> {
    let is_same = |(expected, actual): (&str, &str)| parsed(expected) == parsed(actual);
    let pairs = || expected.lines().zip(actual.lines());
    let lines = [expected.lines().count(), actual.lines().count()];
    let at = pairs().position(|pair| !is_same(pair));
    at.or_else(|| (lines[0] != lines[1]).then(|| lines[0].min(lines[1]))).map(|at| at + 1)
}

fn check(path: &Path) {
    let script = std::fs::read_to_string(path).expect("a script");
    let played = play(&script);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &played).expect("a script that can be written");
        return;
    }
    if let Some(at) = difference(&script, &played) {
        let line = |text: &str| text.lines().nth(at - 1).unwrap_or("no line").to_owned();
        let (name, expected, actual) = (path.display(), line(&script), line(&played));
        panic!("{name}:{at}\nexpected {expected}\n     got {actual}");
    }
}

#[test]
fn conversations_are_as_they_were() {
    let scripts = std::fs::read_dir(DIRECTORY).expect("the directory of scripts");
    let scripts: Vec<_> = scripts.map(|entry| entry.expect("a file").path()).collect();
    assert!(scripts.len() >= 8, "only {} scripts", scripts.len());
    scripts.iter().for_each(|path| check(path));
}

#[test]
fn an_output_line_that_is_missing_or_changed_is_seen() {
    let script = "# a\n> {\"requestId\":\"a\",\"cancel\":{}}\n! end of input\n";
    let played = play(script);
    assert_eq!(difference(&played, &play(&played)), None);
    let lines: Vec<&str> = played.lines().collect();
    for at in (0..lines.len()).filter(|at| is_output(lines[*at])) {
        let without = [&lines[..at], &lines[at + 1..]].concat().join("\n");
        assert_eq!(difference(&without, &play(&without)), Some(at + 1));
        let changed = played.replacen(lines[at], "< {}", 1);
        assert_eq!(difference(&changed, &play(&changed)), Some(at + 1));
    }
}
