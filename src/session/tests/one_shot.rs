//! A process that is one prompt long: every short sequence of what can happen to it. However it
//! ends, there is one `done`, and it is the last frame.

mod shot;

use super::scene::Machine;
use super::sequences::{Broken, explore, kept};
use crate::extract::ResponseType;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::session::{ExitCode, Input, Output, Retention, Session, Signal, Uptime};
use crate::task::report::ErrorClass;
use shot::{Shot, Symbol, failure};

/// Inputs after the prompt and the end of input.
const DEPTH: usize = 5;

/// Inputs before that.
const EARLY_DEPTH: usize = 3;

const LATE: &[Symbol] = &[
    Symbol::CallStarted,
    Symbol::Fitting,
    Symbol::Other,
    Symbol::Begun,
    Symbol::Completed,
    Symbol::CutOff,
    Symbol::Finished,
    Symbol::NotReady,
    Symbol::Failed(ErrorClass::Network),
    Symbol::StaleText,
    Symbol::StaleEnd,
    Symbol::Signal(Signal::Interrupt),
    Symbol::ReaderGone,
];

const EARLY: &[Symbol] = &[
    Symbol::InputEnded,
    Symbol::StaleEnd,
    Symbol::Usage,
    Symbol::Signal(Signal::Terminate),
    Symbol::ReaderGone,
    Symbol::Refused,
];

/// All sequences that the server can bring about, and those before there is a prompt.
fn all<M: Machine>(shot: &Shot<M>, depth: usize) -> Result<u64, Broken<Symbol>> {
    let early = |shot: &Shot<M>| {
        // There is a prompt, or a reason why not.
        let symbols = EARLY.iter().filter(|symbol| **symbol != Symbol::Refused || !shot.seen.asked);
        symbols.copied().collect()
    };
    let before = explore(shot, &early, EARLY_DEPTH)?;
    let asked = after(shot, Symbol::Submit)?;
    let between = explore(&asked, &early, EARLY_DEPTH)?;
    let ended = after(&asked, Symbol::InputEnded)?;
    Ok(before + between + explore(&ended, &|_| LATE.to_vec(), depth)?)
}

fn after<M: Machine>(shot: &Shot<M>, symbol: Symbol) -> Result<Shot<M>, Broken<Symbol>> {
    let mut shot = shot.clone();
    let played = shot.play(symbol);
    played.map(|()| shot).map_err(|why| Broken { path: vec![symbol], why })
}

#[test]
fn every_sequence_of_a_single_run_ends_once() {
    for keep in [Retention::Everything, Retention::Nothing] {
        for extraction in [None, Some(ResponseType::Json), Some(ResponseType::Jsonl)] {
            let shot = Shot::new(keep, extraction, |session| session);
            let sequences = kept(all(&shot, DEPTH));
            assert!(sequences > 10_000, "only {sequences}");
        }
    }
}

/// Every class of error ends the run in the same way.
#[test]
fn a_single_run_fails_with_every_class_of_error() {
    use ErrorClass as Class;
    for class in [
        Class::Auth,
        Class::RateLimited,
        Class::ContextOverflow,
        Class::Timeout,
        Class::Network,
        Class::Provider,
        Class::MalformedStream,
        Class::Config,
        Class::Internal,
    ] {
        let mut shot = Shot::new(Retention::Nothing, None, |session| session);
        for symbol in [Symbol::Submit, Symbol::InputEnded, Symbol::Failed(class)] {
            shot.play(symbol).expect("as expected");
        }
        assert_eq!(shot.seen.exit, Some(failure(class)), "{class:?}");
    }
}

/// What becomes of an answer that is asked for as JSON.
#[test]
fn an_answer_that_is_no_document_is_a_failure_and_lines_that_are_none_are_not() {
    use Symbol::{Begun, Completed, CutOff, Fitting, Other};
    for (response, said, exit) in [
        (ResponseType::Json, &[Fitting, Completed][..], ExitCode::Ok),
        (ResponseType::Json, &[Other, Completed], ExitCode::RunFailed),
        (ResponseType::Json, &[Completed], ExitCode::RunFailed),
        (ResponseType::Json, &[Other, CutOff], ExitCode::RunFailed),
        (ResponseType::Jsonl, &[Fitting, Other, Completed], ExitCode::Ok),
        (ResponseType::Jsonl, &[Other, Completed], ExitCode::Ok),
        (ResponseType::Jsonl, &[Fitting, Other, CutOff], ExitCode::CutOff),
        (ResponseType::Jsonl, &[Fitting, Begun, Completed], ExitCode::CutOff),
        (ResponseType::Jsonl, &[Begun, Other, Completed], ExitCode::Ok),
        (ResponseType::Json, &[Begun, Completed], ExitCode::RunFailed),
    ] {
        let mut shot = Shot::new(Retention::Nothing, Some(response), |session| session);
        let begun = [Symbol::Submit, Symbol::InputEnded, Symbol::CallStarted];
        for symbol in begun.iter().chain(said).chain(&[Symbol::Finished]) {
            shot.play(*symbol).expect("as expected");
        }
        assert_eq!(shot.seen.exit, Some(exit), "{response:?} {said:?}");
    }
}

/// What a fault makes of a step.
type Spoil = fn(&mut Vec<Output>);

/// A fault between the session and its checker.
#[derive(Clone, Debug)]
struct Faulty {
    inner: Session,
    spoil: Spoil,
}

impl Machine for Faulty {
    fn handle(&mut self, now: Uptime, input: Input) -> Vec<Output> {
        let mut outputs = self.inner.handle(now, input);
        (self.spoil)(&mut outputs);
        outputs
    }
}

fn body(output: &mut Output) -> Option<&mut Body> {
    if let Output::Frame(frame) = output { frame.frame.as_mut() } else { None }
}

/// The check sees each fault.
#[test]
fn planted_faults_are_seen() {
    let faults: [(&str, Spoil); 6] = [
        ("says done twice", |outputs| {
            let mut done = outputs.clone();
            done.retain_mut(|output| matches!(body(output), Some(Body::Done(_))));
            outputs.splice(0..0, done);
        }),
        ("says nothing at the end", |outputs| {
            outputs.retain_mut(|output| !matches!(body(output), Some(Body::Done(_))));
        }),
        ("errors that end nothing", |outputs| {
            for output in outputs {
                if let Some(Body::Error(error)) = body(output) {
                    error.terminal = false;
                }
            }
        }),
        ("ends well whatever happened", |outputs| {
            for output in outputs {
                if let Output::Exit(code) = output {
                    *code = ExitCode::Ok;
                }
            }
        }),
        ("speaks after the exit", |outputs| {
            if let [first, .., Output::Exit(_)] = outputs.as_slice() {
                let first = first.clone();
                outputs.push(first);
            }
        }),
        ("stays", |outputs| outputs.retain(|output| !matches!(output, Output::Exit(_)))),
    ];
    for (fault, spoil) in faults {
        let shot = Shot::new(Retention::Everything, None, |inner| Faulty { inner, spoil });
        assert!(all(&shot, 2).is_err(), "{fault} is not seen");
    }
}
