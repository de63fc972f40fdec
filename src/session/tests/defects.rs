//! A defect at each step of a conversation: it costs the run or the request it is in, and never a
//! `done`. Afterwards the session works, or ends with the status of a defect.

use super::ledger::Ledger;
use super::scene::client_tools;
use crate::chat::event::{FinishClass, ToolCall, Usage};
use crate::protocol::command::{self, Cancel, ClientToolResult, Command, Edit, Page, Prompt};
use crate::protocol::id::{RequestId, ToolCallId};
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::{self, Done, Frame, Request};
use crate::session::{ExitCode, Input, OnBusy, Output, Rules, Session, Signal, TaskEvent, Uptime};
use crate::support::fail_point::{Place, Plan};
use crate::task::report::{CallEnd, EngineEvent};
use anyhow::{Context, Result, ensure};

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

struct Stage {
    session: Session,
    ledger: Ledger,
    exit: Option<ExitCode>,
    /// Requests that got the error of the fault.
    failures: Vec<String>,
    has_answered: bool,
}

impl Stage {
    fn new(on_busy: OnBusy, nth: u32) -> Self {
        let rules = Rules { on_busy, ..Rules::default() };
        let mut session = Session::new(rules.clone(), 1);
        session.plant(Plan::new(Place::Project, nth).at(Place::Project));
        let ledger = Ledger::new(&rules, &session);
        Self { session, ledger, exit: None, failures: Vec::new(), has_answered: false }
    }

    /// Lets all runs end, and has another prompt answered.
    fn still_works(&mut self) -> Result<()> {
        while self.ledger.run().is_some() {
            self.play(Line::End(CallEnd::Finished))?;
        }
        self.play(Line::Submit("after"))?;
        self.play(Line::Engine(EngineEvent::Text("still here".to_owned())))?;
        self.play(Line::End(CallEnd::Finished))?;
        ensure!(self.has_answered, "the next prompt was not answered");
        Ok(())
    }

    fn play(&mut self, line: Line) -> Result<()> {
        let live = self.ledger.call();
        let input = match (line, live) {
            (Line::Submit(id), _) => {
                let prompt = Prompt::new("hi".to_owned()).context("blank")?;
                request(id, Command::Submit(command::Submit::new(prompt)))?
            }
            (Line::Ask(id, command), _) => request(id, command)?,
            (Line::Engine(event), Some(run)) => Input::Task(run, TaskEvent::Engine(event)),
            (Line::End(end), Some(run)) => Input::Task(run, TaskEvent::CallEnded(end)),
            (Line::Input(input), _) => input,
            (Line::Engine(_) | Line::End(_), None) => return Ok(()),
        };
        let outputs = self.session.handle(Uptime(1), input.clone());
        self.ledger.watch(&input, &outputs).with_context(|| format!("{outputs:#?}"))?;
        for output in outputs {
            match output {
                Output::Exit(code) => self.exit = Some(code),
                Output::Frame(frame) => {
                    self.has_answered |= is_answer(&frame);
                    if tells_the_fault(&frame) {
                        let id = &frame.request_id;
                        ensure!(!self.failures.contains(id), "{id} has two errors");
                        self.failures.push(id.clone());
                    }
                }
                Output::Persist(_)
                | Output::StartCall(..)
                | Output::StartTool(..)
                | Output::CancelTask(_)
                | Output::Warning(_)
                | Output::Abort(_) => {}
            }
        }
        Ok(())
    }
}

/// Whether the frame says that the request "after" was answered.
fn is_answer(frame: &Frame) -> bool {
    frame.request_id == "after" && frame.frame == Some(wire::done(Done::Ok))
}

/// Whether the frame blames a run, or the process, on the planted fault.
fn tells_the_fault(frame: &Frame) -> bool {
    let Some(Body::Error(error)) = &frame.frame else { return false };
    error.detail.contains("planted fault") && !error.terminal
}

fn request(id: &str, command: Command) -> Result<Input> {
    let id = RequestId::new(id).context("a blank id")?;
    Ok(Input::Request(Request { session: None, id, command }))
}

/// Plays the conversation with a fault at the `nth` event; false if it has fewer.
fn check(on_busy: OnBusy, (way_out, status): (Line, ExitCode), nth: u32) -> Result<bool> {
    let mut stage = Stage::new(on_busy, nth);
    for line in conversation() {
        stage.play(line)?;
    }
    ensure!(stage.exit.is_none(), "a defect in a run ended the process");
    if !stage.failures.is_empty() {
        stage.still_works()?;
    }
    stage.play(way_out)?;
    while stage.exit.is_none() && stage.ledger.run().is_some() {
        stage.play(Line::End(CallEnd::Finished))?;
    }
    match stage.exit {
        Some(exit) if exit == status => {
            // A request about a call of the run is answered, and the run fails as well.
            let both = ["result", "a"];
            ensure!(stage.failures.len() <= 1 || stage.failures == both, "{:?}", stage.failures);
            Ok(!stage.failures.is_empty())
        }
        Some(ExitCode::Internal) => Ok(true),
        exit => anyhow::bail!("exit {exit:?}"),
    }
}

#[test]
fn a_defect_at_any_event_costs_no_done_and_not_the_session() {
    for on_busy in [OnBusy::Reject, OnBusy::Queue] {
        for way_out in ways_out() {
            let mut nth = 0;
            let mut is_met = true;
            while is_met {
                nth += 1;
                let played = check(on_busy, way_out.clone(), nth);
                is_met = played.unwrap_or_else(|why| panic!("{on_busy:?}, fault {nth}: {why:?}"));
            }
            assert!(nth > 30, "only {nth} places for a fault");
        }
    }
}
