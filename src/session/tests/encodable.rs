//! Whatever a client sends in protobuf's binary form, each frame of the answer has a JSON form.

use super::scene::client_tools;
use crate::conversation::event::ToolCall;
use crate::protocol::any::{Kind, ListValue, Struct, Value};
use crate::protocol::command::{Command, Extension, Prompt, Submit};
use crate::protocol::id::{RequestId, ToolCallId};
use crate::protocol::json;
use crate::protocol::proto::fields::{self, MessageType};
use crate::protocol::proto::rpc::RpcRequestLine;
use crate::protocol::wire::{self, Body, Request};
use crate::session::{Input, LogRules, Output, Rules, Session, TaskEvent, Uptime};
use crate::task::report::{CallEnd, EngineEvent};
use proptest::collection::vec;
use proptest::prelude::*;
use prost::encoding::{self, WireType};
use prost::{Message, Name};

/// Random requests.
const CASES: u32 = 4_096;

/// Choices of one request.
const CHOICES_MAX: usize = 300;

/// Texts, of which some name what the session has.
const TEXTS: [&str; 4] = ["", "call", "auto", "https://127.0.0.1/a.png"];

const NUMBERS: [f64; 5] = [1.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];

/// Choices that make a message; at the end there are zeros alone, with which nothing more is set.
struct Tape<'t>(&'t [u8]);

impl Tape<'_> {
    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::from(self.next()) % of.len()]
    }

    fn message(&mut self, of: &MessageType) -> Vec<u8> {
        let mut bytes = Vec::new();
        let members: Vec<_> = of.fields.iter().filter(|it| it.oneof.is_some()).collect();
        let member = (!members.is_empty()).then(|| self.pick(&members).number);
        for field in of.fields {
            let is_set = match field.oneof {
                Some(_) => member == Some(field.number),
                None => !self.next().is_multiple_of(4),
            };
            if is_set {
                self.field(field.number, field.kind, &mut bytes);
            }
        }
        bytes
    }

    fn field(&mut self, number: u32, kind: fields::Kind, bytes: &mut Vec<u8>) {
        match kind {
            // Enums, too, have numbers without a name.
            fields::Kind::Bool
            | fields::Kind::Int32
            | fields::Kind::Int64
            | fields::Kind::Uint32
            | fields::Kind::Uint64
            | fields::Kind::Enum(_) => {
                encoding::encode_key(number, WireType::Varint, bytes);
                encoding::encode_varint(u64::from(self.next() % 8), bytes);
            }
            fields::Kind::String => delimited(number, self.pick(&TEXTS).as_bytes(), bytes),
            fields::Kind::Message(of) => delimited(number, &self.message(of), bytes),
            fields::Kind::Repeated(of) => {
                (0..self.next() % 4).for_each(|_| self.field(number, *of, bytes));
            }
            fields::Kind::Struct => delimited(number, &self.object().encode_to_vec(), bytes),
            fields::Kind::Value => delimited(number, &self.value().encode_to_vec(), bytes),
            // The metadata of attachments.
            fields::Kind::Map(of) => {
                for _ in 0..self.next() % 3 {
                    let mut entry = Vec::new();
                    delimited(1, self.pick(&TEXTS).as_bytes(), &mut entry);
                    self.field(2, *of, &mut entry);
                    delimited(number, &entry, bytes);
                }
            }
            fields::Kind::Any => panic!("requests have none"),
        }
    }

    fn object(&mut self) -> Struct {
        let count = self.next() % 3;
        let fields = (0..count).map(|_| (self.pick(&TEXTS).to_owned(), self.value())).collect();
        Struct { fields: Box::new(fields) }
    }

    fn value(&mut self) -> Value {
        let kind = match self.next() % 7 {
            0 => None,
            1 | 6 => Some(Kind::Number(self.pick(&NUMBERS))),
            2 => Some(Kind::String(self.pick(&TEXTS).to_owned())),
            3 => Some(Kind::Null(7)),
            4 => Some(Kind::Struct(self.object())),
            _ => {
                let count = self.next() % 3;
                Some(Kind::List(ListValue { values: (0..count).map(|_| self.value()).collect() }))
            }
        };
        Value { kind }
    }
}

fn delimited(number: u32, content: &[u8], bytes: &mut Vec<u8>) {
    encoding::encode_key(number, WireType::LengthDelimited, bytes);
    encoding::encode_varint(content.len() as u64, bytes);
    bytes.extend_from_slice(content);
}

fn send(session: &mut Session, id: &str, command: Command) -> Vec<Output> {
    let id = RequestId::new(id).expect("not blank");
    session.handle(Uptime(0), Input::Request(Request { session: None, id, command }))
}

/// A session whose client has declared a tool.
fn idle() -> Session {
    let log = LogRules { backend_events: true, ..LogRules::default() };
    let extensions = Extension::ALL.into_iter().collect();
    let mut session = Session::new(Rules { log, extensions, ..Rules::default() }, 1);
    drop(send(&mut session, "d", Command::DeclareTools(client_tools(&["auto"]))));
    session
}

/// The session while a call of that tool waits for the client.
fn waiting(mut session: Session) -> Session {
    let prompt = Prompt::new("go".to_owned()).expect("a prompt");
    let mut outputs = send(&mut session, "r", Command::Submit(Submit::new(prompt)));
    let task = outputs.iter().find_map(|output| {
        let Output::StartCall(task, _) = output else { return None };
        Some(*task)
    });
    let id = || ToolCallId("call".to_owned());
    let tool = ToolCall { id: id(), name: "auto".to_owned() };
    for event in [
        TaskEvent::Engine(EngineEvent::ToolCallStarted(tool)),
        TaskEvent::Engine(EngineEvent::ToolCallRequested { id: id() }),
        TaskEvent::CallEnded(CallEnd::Finished),
    ] {
        outputs = session.handle(Uptime(0), Input::Task(task.expect("a call"), event));
    }
    assert!(outputs.iter().any(asks_the_client), "{outputs:?}");
    session
}

fn asks_the_client(output: &Output) -> bool {
    let Output::Frame(frame) = output else { return false };
    let Some(Body::UiEvent(event)) = &frame.frame else { return false };
    event.name == "FrontendToolCallRequested"
}

/// The answer to the request of these choices.
fn answer(session: &mut Session, tape: &mut Tape<'_>) -> Vec<Output> {
    let of = fields::message(&RpcRequestLine::full_name()).expect("a message");
    let line = RpcRequestLine::decode(&*tape.message(of)).expect("a request");
    let (request_id, session_id) = ("q".to_owned(), String::new());
    let line = RpcRequestLine { version: 1, request_id, session_id, ..line };
    let input = match wire::request(line, || RequestId::new("fresh").expect("an id")) {
        Ok(request) => Input::Request(request),
        Err(bad) => Input::BadLine(bad),
    };
    session.handle(Uptime(0), input)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_request_makes_a_frame_without_a_json_form(
        is_waiting in any::<bool>(),
        choices in vec(any::<u8>(), 0..CHOICES_MAX),
    ) {
        let mut session = if is_waiting { waiting(idle()) } else { idle() };
        for output in answer(&mut session, &mut Tape(&choices)) {
            if let Output::Frame(frame) = output {
                let written = json::write_line(&frame, &mut Vec::new());
                prop_assert!(written.is_ok(), "{written:?}: {frame:?}");
            }
        }
    }
}
