//! An answer that never ends: the run does, and what came until then is kept.

use crate::conversation::event::ToolCall;
use crate::conversation::transcript::TurnState;
use crate::protocol::any::Any;
use crate::protocol::command::{Command, Prompt, Submit};
use crate::protocol::id::{RequestId, TaskId, ToolCallId};
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::{Done, Frame, Request, done};
use crate::session::limits::ANSWER_SEGMENTS_MAX;
use crate::session::{Input, OnBusy, Output, Rules, Session, TaskEvent, Uptime};
use crate::task::limits::ANSWER_BYTES_MAX;
use crate::task::report::EngineEvent;

fn submit(session: &mut Session, id: &str) -> Vec<Output> {
    let prompt = Prompt::new("hi".to_owned()).expect("not blank");
    let id = RequestId::new(id).expect("not blank");
    let request = Request { session: None, id, command: Command::Submit(Submit::new(prompt)) };
    session.handle(Uptime(0), Input::Request(request))
}

fn started(outputs: &[Output]) -> Option<TaskId> {
    outputs.iter().find_map(|output| {
        let Output::StartCall(task, _) = output else { return None };
        Some(*task)
    })
}

fn frames(outputs: &[Output]) -> impl Iterator<Item = &Frame> {
    outputs.iter().filter_map(|output| {
        let Output::Frame(frame) = output else { return None };
        Some(frame)
    })
}

fn finished_text(outputs: &[Output]) -> Option<String> {
    frames(outputs).find_map(|frame| {
        let Some(Body::UiEvent(event)) = &frame.frame else { return None };
        let Any::ChatTextSegmentFinished(end) = event.payload.clone()?.into_whole() else {
            return None;
        };
        Some(end.text)
    })
}

#[test]
fn an_answer_past_the_limit_fails_its_run_and_is_kept_until_there() {
    const PIECE: &str = "0123456789";
    let rules = Rules { on_busy: OnBusy::Queue, ..Rules::default() };
    let mut session = Session::new(rules, 1);
    assert_eq!(session.answer_limits.bytes, ANSWER_BYTES_MAX);
    session.answer_limits.bytes = 10 * PIECE.len();
    let run = started(&submit(&mut session, "endless")).expect("a run");
    assert_eq!(started(&submit(&mut session, "next")), None);
    let mut say = || {
        let text = EngineEvent::Text(PIECE.to_owned());
        session.handle(Uptime(0), Input::Task(run, TaskEvent::Engine(text)))
    };
    for _ in 0..10 {
        assert_eq!(finished_text(&say()), None);
    }
    let outputs = say();
    assert!(matches!(outputs[0], Output::CancelTask(cancelled) if cancelled == run));
    assert_eq!(finished_text(&outputs), Some(PIECE.repeat(10)));
    let of_run: Vec<_> = frames(&outputs).filter(|frame| frame.request_id == "endless").collect();
    let [.., error, end] = of_run.as_slice() else { panic!("{of_run:?}") };
    let Some(Body::Error(error)) = &error.frame else { panic!("{error:?}") };
    assert_eq!(error.code, "run_failed");
    assert!(error.message.contains("past 100 bytes"), "{}", error.message);
    assert_eq!(end.frame, Some(done(Done::Failed)));

    let next = started(&outputs).expect("the run that waited");
    assert!(say().is_empty(), "the engine of a run that has ended is not heard");
    let kept = outputs.iter().find_map(|output| {
        let Output::StartCall(_, spec) = output else { return None };
        Some(spec.transcript.turns()[0].clone())
    });
    assert_eq!(kept.expect("a transcript").state, TurnState::Interrupted);
    let text = EngineEvent::Text(PIECE.to_owned());
    let outputs = session.handle(Uptime(0), Input::Task(next, TaskEvent::Engine(text)));
    assert!(!outputs.is_empty(), "each run has a limit of its own");
}

/// The prompts of the text segments that a run of so many segments with this prompt begins.
fn repeated(prompt: &str, segments: usize) -> Vec<usize> {
    let mut session = Session::new(Rules::default(), 1);
    let id = RequestId::new("r").expect("not blank");
    let prompt = Prompt::new(prompt.to_owned()).expect("not blank");
    let request = Request { session: None, id, command: Command::Submit(Submit::new(prompt)) };
    let run = started(&session.handle(Uptime(0), Input::Request(request))).expect("a run");
    let mut repeated = Vec::new();
    for _ in 0..segments {
        let (source, text) = ("reasoning", "hm".to_owned());
        let thought = EngineEvent::Reasoning { source, text };
        for event in [thought, EngineEvent::Text("so".to_owned())] {
            let outputs = session.handle(Uptime(0), Input::Task(run, TaskEvent::Engine(event)));
            for frame in frames(&outputs) {
                let Some(Body::UiEvent(event)) = &frame.frame else { continue };
                if let Some(Any::ChatTextSegmentStarted(start)) =
                    event.payload.clone().map(Any::into_whole)
                {
                    repeated.push(start.prompt.len());
                }
            }
        }
    }
    repeated
}

#[test]
fn text_segments_repeat_the_prompt_as_often_as_its_length_allows() {
    assert_eq!(repeated("why?", 3), [4, 4, 4]);
    let half = 512 * 1024;
    assert_eq!(repeated(&"x".repeat(half), 4), [half, half, 0, 0]);
    assert_eq!(repeated(&"x".repeat(3 * half), 3), [3 * half, 0, 0]);
}

#[test]
fn an_answer_of_too_many_segments_fails_its_run_and_is_kept_until_there() {
    let mut session = Session::new(Rules::default(), 1);
    assert_eq!(session.answer_limits.segments, ANSWER_SEGMENTS_MAX);
    session.answer_limits.segments = 3;
    let run = started(&submit(&mut session, "r")).expect("a run");
    let mut say = |event| session.handle(Uptime(0), Input::Task(run, TaskEvent::Engine(event)));
    let text = |text: &str| EngineEvent::Text(text.to_owned());
    let thought = || EngineEvent::Reasoning { source: "reasoning", text: "hm".to_owned() };
    for event in [text("a"), thought(), text("b"), text("c")] {
        assert!(frames(&say(event)).all(|frame| !matches!(frame.frame, Some(Body::Error(_)))));
    }
    let outputs = say(thought());
    assert!(matches!(outputs[0], Output::CancelTask(cancelled) if cancelled == run));
    assert_eq!(finished_text(&outputs).as_deref(), Some("bc"));
    let error = frames(&outputs).find_map(|frame| match &frame.frame {
        Some(Body::Error(error)) => Some(error.clone()),
        _ => None,
    });
    let error = error.expect("an error");
    assert_eq!(error.code, "run_failed");
    assert!(error.message.contains("more than 3 times"), "{}", error.message);
    assert!(error.detail.starts_with("provider: "), "{}", error.detail);
}

#[test]
fn an_answer_of_too_many_tool_calls_fails_its_run() {
    let mut session = Session::new(Rules::default(), 1);
    session.answer_limits.calls = 3;
    let run = started(&submit(&mut session, "r")).expect("a run");
    let mut call = |number: u32| {
        let (id, name) = (ToolCallId(number.to_string()), "look".to_owned());
        let event = EngineEvent::ToolCallStarted(ToolCall { id, name });
        session.handle(Uptime(0), Input::Task(run, TaskEvent::Engine(event)))
    };
    for number in 1..=3 {
        assert!(frames(&call(number)).all(|frame| !matches!(frame.frame, Some(Body::Error(_)))));
    }
    let outputs = call(4);
    assert!(matches!(outputs[0], Output::CancelTask(cancelled) if cancelled == run));
    let shown = format!("{outputs:?}");
    assert!(shown.contains("called tools more than 3 times"), "{shown}");
}
