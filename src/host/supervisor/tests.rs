//! A panic at each event of a conversation: it ends the conversation, each request has its `done`, and what
//! was written is a stream that keeps the contract.

use super::*;
use crate::conformance::check::Checker;
use crate::conversation::event::{FinishClass, ToolCall, Usage};
use crate::conversation::log::StoreFailure;
use crate::protocol::command::{self, Cancel, ClientToolResult, Command, Edit, Page, Prompt};
use crate::protocol::constants::capability::{ALWAYS, OF_STDIN};
use crate::protocol::event_filter::EventFilter;
use crate::protocol::id::{TaskId, ToolCallId};
use crate::protocol::json;
use crate::protocol::wire::{BadLine, Request, RequestFault};
use crate::session::tests::scene::client_tools;
use crate::session::{OnBusy, Rules, Signal, TaskEvent};
use crate::support::fail_point::{Faults, Place};
use crate::task::report::{CallEnd, EngineEvent};

/// One step of a script. Engine events go to whatever run is live.
#[derive(Clone)]
enum Line {
    Submit(&'static str),
    Ask(&'static str, Command),
    Engine(EngineEvent),
    End(CallEnd),
    Input(Input),
}

fn conversation() -> Vec<Line> {
    use Line::{Ask, End, Engine, Submit};
    let tool = ToolCallId("t".to_owned());
    let call = ToolCall { id: tool.clone(), name: "clock".to_owned() };
    let finished = || EngineEvent::CallFinished {
        stop_reason: "stop".to_owned(),
        class: FinishClass::Completed,
        provider_data: None,
    };
    let result =
        ClientToolResult { call: tool.clone(), tool_name: None, result: None, error: None };
    vec![
        Ask("tools", Command::DeclareTools(client_tools(&["clock"]))),
        Submit("a"),
        Engine(EngineEvent::CallStarted),
        Engine(EngineEvent::Reasoning { source: "reasoning", text: "hm".to_owned() }),
        Submit("b"),
        Engine(EngineEvent::Text("let me see".to_owned())),
        Engine(EngineEvent::ToolCallStarted(call)),
        Engine(EngineEvent::ToolArguments { id: tool.clone(), text: "{}".to_owned() }),
        Engine(EngineEvent::ToolCallRequested { id: tool.clone() }),
        Engine(finished()),
        Ask("look", Command::Snapshot(Page::default())),
        End(CallEnd::Finished),
        Ask("result", Command::ToolResult(result)),
        Engine(EngineEvent::CallStarted),
        Engine(EngineEvent::Text("noon".to_owned())),
        Engine(EngineEvent::Usage(Usage::default())),
        End(CallEnd::Finished),
        Submit("c"),
        Engine(EngineEvent::CallStarted),
        Engine(EngineEvent::Text("half".to_owned())),
        Submit("d"),
        Ask("stop", Command::Cancel(Cancel::default())),
        Submit("e"),
        Engine(EngineEvent::Text("last".to_owned())),
        // With a queue there are two more runs.
        End(CallEnd::Finished),
        End(CallEnd::Finished),
        End(CallEnd::Finished),
        Ask("drop", Command::Edit(Edit::DropLastTurn)),
        Ask("again", Command::Edit(Edit::Regenerate)),
        Engine(EngineEvent::Text("better".to_owned())),
    ]
}

/// How the conversation is brought to its end, and the status that means.
fn ways_out() -> [(Line, ExitCode); 4] {
    let signal = Signal::Terminate;
    [
        (Line::Ask("bye", Command::Shutdown), ExitCode::Ok),
        (Line::Input(Input::InputEnded), ExitCode::Ok),
        (Line::Input(Input::ReaderGone), ExitCode::Ok),
        (Line::Input(Input::Interrupted(signal)), ExitCode::Interrupted(signal)),
    ]
}

/// A conversation, and what it has written.
struct Stage {
    supervisor: Supervisor,
    call: Option<TaskId>,
    asked: usize,
    frames: Vec<Frame>,
    exit: Option<ExitCode>,
}

impl Stage {
    /// A conversation with a fault at the `nth` event.
    fn new(rules: Rules, nth: u32) -> Self {
        let mode = rules.mode;
        let mut session = Session::new(rules, 1);
        session.plant(Faults::new(Place::Project, nth).at(Place::Project));
        let words: &[&[&str]] = match mode {
            SessionMode::Conversation => &[&ALWAYS, &OF_STDIN],
            SessionMode::OneShot => &[&ALWAYS],
        };
        let frames = session.greeting(words.concat().into_iter().map(str::to_owned).collect());
        let supervisor = Supervisor::new(session, mode);
        Self { supervisor, call: None, asked: 0, frames, exit: None }
    }

    fn play(&mut self, line: Line) {
        if self.exit.is_some() {
            return;
        }
        let input = match (line, self.call) {
            (Line::Submit(id), _) => {
                let prompt = Prompt::new("hi".to_owned()).expect("not blank");
                request(id, Command::Submit(command::Submit::new(prompt)))
            }
            (Line::Ask(id, command), _) => request(id, command),
            (Line::Engine(event), Some(run)) => Input::Task(run, TaskEvent::Engine(event)),
            (Line::End(end), Some(run)) => Input::Task(run, TaskEvent::CallEnded(end)),
            (Line::Input(input), _) => input,
            (Line::Engine(_) | Line::End(_), None) => return,
        };
        self.asked += usize::from(matches!(input, Input::Request(_) | Input::BadLine(_)));
        self.supervisor.note_request(&input);
        if let Input::Task(_, TaskEvent::CallEnded(_)) = input {
            self.call = None;
        }
        for output in self.supervisor.handle(Uptime(1), input, true) {
            assert_eq!(self.exit, None, "after the exit: {output:?}");
            match output {
                Output::Exit(code) => self.exit = Some(code),
                Output::Frame(frame) => self.frames.push(frame),
                Output::StartCall(task, _) => self.call = Some(task),
                Output::CancelTask(task) => self.call = self.call.filter(|call| *call != task),
                Output::Persist(_)
                | Output::StartTool(..)
                | Output::ReadFiles(..)
                | Output::Warning(_) => {}
                Output::Abort(_) => panic!("an abort without a second signal"),
            }
        }
    }

    /// Checks what was written: the contract, and the number of `done`s.
    fn check(&self, farewells: usize) {
        let mut checker = Checker::new();
        let mut violations = Vec::new();
        for frame in &self.frames {
            let mut line = Vec::new();
            json::write_line(frame, &mut line).expect("a frame");
            violations.extend(checker.line(line.trim_ascii_end()));
        }
        violations.extend(checker.finish(None));
        assert_eq!(violations, [], "{:#?}", self.frames);
        let is_done = |frame: &&Frame| matches!(frame.frame, Some(Body::Done(_)));
        assert_eq!(self.frames.iter().filter(is_done).count(), self.asked + farewells);
    }

    /// The errors that name the fault: their requests, their codes, whether they are terminal.
    fn failures(&self) -> Vec<(&str, &str, bool)> {
        let failures = self.frames.iter().filter_map(|frame| match &frame.frame {
            Some(Body::Error(error)) if error.detail.contains("planted fault") => {
                Some((&*frame.request_id, &*error.code, error.terminal))
            }
            _ => None,
        });
        failures.collect()
    }
}

fn request(id: &str, command: Command) -> Input {
    let id = RequestId::new(id).expect("not blank");
    Input::Request(Request { session: None, id, command })
}

/// Plays the conversation with a fault at the `nth` event; false if it has fewer.
fn check(on_busy: OnBusy, (way_out, status): (Line, ExitCode), nth: u32) -> bool {
    let mut stage = Stage::new(Rules { on_busy, ..Rules::default() }, nth);
    conversation().into_iter().for_each(|line| stage.play(line));
    stage.play(way_out);
    while stage.exit.is_none() && stage.call.is_some() {
        stage.play(Line::End(CallEnd::Finished));
    }
    let is_met = stage.supervisor.session().is_none();
    if !is_met {
        assert_eq!(stage.exit, Some(status));
        stage.check(usize::from(matches!(status, ExitCode::Interrupted(_))));
        return false;
    }
    assert_eq!(stage.exit, Some(ExitCode::Internal));
    stage.check(1);
    let failures = stage.failures();
    assert_eq!(failures.last(), Some(&("", "internal", true)));
    let of_requests = &failures[..failures.len() - 1];
    assert!(of_requests.iter().all(|(id, _, is_terminal)| !id.is_empty() && !is_terminal));
    let runs = of_requests.iter().filter(|(_, code, _)| *code == "run_failed").count();
    assert!(runs <= 1, "{failures:?}");
    true
}

#[test]
fn a_panic_at_any_event_ends_the_conversation_and_costs_no_done() {
    for on_busy in [OnBusy::Reject, OnBusy::Queue] {
        for way_out in ways_out() {
            let mut nth = 1;
            while check(on_busy, way_out.clone(), nth) {
                nth += 1;
            }
            assert!(nth > 30, "only {nth} places for a fault");
        }
    }
}

/// The error of a single run is its request's, and the only one.
#[test]
fn a_panic_in_a_single_run_is_its_error() {
    for nth in 1.. {
        let rules = Rules { mode: SessionMode::OneShot, ..Rules::default() };
        let mut stage = Stage::new(rules, nth);
        stage.play(Line::Submit("a"));
        stage.play(Line::Input(Input::InputEnded));
        stage.play(Line::Engine(EngineEvent::Text("hm".to_owned())));
        stage.play(Line::End(CallEnd::Finished));
        stage.check(0);
        if stage.supervisor.session().is_some() {
            assert_eq!(stage.exit, Some(ExitCode::Ok));
            assert!(nth > 5, "only {nth} places for a fault");
            return;
        }
        assert_eq!(stage.exit, Some(ExitCode::Internal));
        assert_eq!(stage.failures(), [("a", "internal", true)]);
    }
}

/// A filter of events changes nothing in the answers to requests.
#[test]
fn a_run_whose_events_are_not_written_has_failed_as_any_other() {
    let failures = |events: EventFilter, nth| {
        let mut stage = Stage::new(Rules { events, ..Rules::default() }, nth);
        conversation().into_iter().for_each(|line| stage.play(line));
        format!("{:?}", stage.failures())
    };
    // The list of tools, and two events of the submit that starts the run.
    let events_before_run = 3;
    for nth in 1..=8 {
        let all = failures(EventFilter::default(), nth);
        assert_eq!(all.contains("run_failed"), nth > events_before_run, "at event {nth}: {all}");
        let few = EventFilter::parse("ChatRunFinished").expect("a list");
        assert_eq!(failures(few, nth), all, "at event {nth}");
    }
}

/// The event at which a conversation that reports its end to nobody panics: that of its first prompt.
fn ended() -> Stage {
    let mut stage = Stage::new(Rules::default(), 1);
    stage.play(Line::Submit("a"));
    assert_eq!(stage.exit, Some(ExitCode::Internal));
    stage
}

#[test]
fn requests_that_were_read_before_a_panic_and_not_handled_are_answered() {
    let mut stage = Stage::new(Rules::default(), 1);
    let fault = RequestFault::InvalidJson { reason: String::new() };
    let waiting = [request("b", Command::Shutdown), Input::BadLine(BadLine { id: None, fault })];
    waiting.iter().for_each(|input| stage.supervisor.note_request(input));
    stage.asked += waiting.len();
    stage.play(Line::Submit("a"));
    stage.check(1);
    for input in waiting {
        assert!(stage.supervisor.handle(Uptime(2), input, true).is_empty());
    }
}

#[test]
fn after_a_panic_only_a_signal_and_the_store_are_heard() {
    let supervisor = &mut ended().supervisor;
    let mut hear = |input| supervisor.handle(Uptime(2), input, true);
    assert!(hear(Input::InputEnded).is_empty());
    assert!(hear(Input::DeadlineReached).is_empty());
    let signal = Signal::Interrupt;
    let aborted = hear(Input::Interrupted(signal));
    assert!(matches!(aborted[..], [Output::Abort(ExitCode::Interrupted(it))] if it == signal));
    let failure = StoreFailure { reason: "the disk is full".to_owned(), first_missing: None };
    let [Output::Warning(_), Output::Frame(frame)] = &hear(Input::StoreFailed(failure))[..] else {
        panic!("no warning and error")
    };
    let Some(Body::Error(error)) = &frame.frame else { panic!("{frame:?}") };
    assert_eq!((&*error.code, &*error.message), ("store_failed", "the disk is full"));
}

/// The first valid request names the session, and the frames of its panic have that name only if it was
/// handled whole.
#[test]
fn frames_after_a_panic_have_the_name_that_was_shown() {
    for (nth, is_named) in [(1, false), (3, true)] {
        let mut stage = Stage::new(Rules::default(), nth);
        let generated = stage.supervisor.id().as_str().to_owned();
        let prompt = Prompt::new("hi".to_owned()).expect("not blank");
        let mut submit = request("a", Command::Submit(command::Submit::new(prompt)));
        if let Input::Request(request) = &mut submit {
            request.session = SessionId::new("mine");
        }
        stage.play(Line::Input(submit));
        stage.play(Line::Engine(EngineEvent::Text("hm".to_owned())));
        stage.check(1);
        let last = stage.frames.last().expect("a frame");
        assert_eq!(last.session_id, if is_named { "mine".to_owned() } else { generated });
    }
}
