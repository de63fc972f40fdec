//! Tool calls, put together from their pieces.

use super::chunk::ToolDelta;
use super::provider_data::CallData;
use crate::conversation::event::ToolCall;
use crate::engine::EngineEvent;
use crate::engine::provider::calls::{AnswerError, CALLS_MAX, push_text};
use crate::engine::provider::join::Joiner;
use crate::protocol::id::ToolCallId;

/// Bytes of arguments that may come before the tool is named.
const UNNAMED_BYTES_MAX: usize = 1024 * 1024;

/// What gateways before Bedrock and Anthropic begin the arguments of a call with, before the real ones: the input of
/// its block as that begins.
const PLACEHOLDER: &str = "{}";

/// The tool calls of one answer.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<OpenCall>);

#[derive(Debug)]
struct OpenCall {
    index: Option<u64>,
    /// As the provider gave it.
    id: Option<String>,
    data: CallData,
    arguments: Joiner,
    beginning: Beginning,
    extent: Extent,
    stage: CallStage,
}

/// Whether the arguments of a call begin with [`PLACEHOLDER`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Beginning {
    /// None have come.
    #[default]
    Awaited,
    /// They do, and it is held back: it stands for nothing if an object follows, and for itself otherwise.
    Held,
    Past,
}

/// How far the arguments of a call are, as far as their brackets say so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Extent {
    /// Objects and lists that are open.
    depth: usize,
    is_in_string: bool,
    is_escaped: bool,
    /// The first object has ended.
    is_whole: bool,
}

#[derive(Debug)]
enum CallStage {
    /// The tool has no name yet; its arguments are buffered.
    Unnamed(String),
    /// Announced under this id.
    Started(ToolCall),
}

fn too_many() -> AnswerError {
    AnswerError::TooMuch(format!("more than {CALLS_MAX} tool calls, or one unnamed"))
}

impl Calls {
    /// Takes the next piece of a call; adds what happened to `events`.
    pub(super) fn push(
        &mut self,
        delta: &ToolDelta,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), AnswerError> {
        let place = self.place(delta);
        if place == self.0.len() {
            if place == CALLS_MAX {
                return Err(too_many());
            }
            self.release(events);
            self.0.push(OpenCall::new(delta));
        }
        let id = self.id(delta, place);
        self.0[place].push(delta, id, events)
    }

    /// No piece follows: every call is whole. Adds what happened to `events`.
    pub(super) fn end(&mut self, events: &mut Vec<EngineEvent>) -> Result<(), AnswerError> {
        self.release(events);
        for call in &mut self.0 {
            let CallStage::Started(tool) = &call.stage else {
                return Err(AnswerError::NamelessCall);
            };
            let id = tool.id.clone();
            let text = call.arguments.end();
            push_text(EngineEvent::ToolArguments { id: id.clone(), text }, events);
            events.push(EngineEvent::ToolCallRequested { id });
        }
        Ok(())
    }

    /// How many calls have a beginning that is held back.
    pub(super) fn held(&self) -> usize {
        self.0.iter().filter(|call| call.beginning == Beginning::Held).count()
    }

    /// What the server must be sent back with the calls, in their order.
    pub(super) fn take_data(&mut self) -> Vec<CallData> {
        self.0.iter_mut().map(OpenCall::take_data).collect()
    }

    /// No call has begun.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Nothing follows what is held back.
    fn release(&mut self, events: &mut Vec<EngineEvent>) {
        self.0.iter_mut().for_each(|call| call.release(events));
    }

    /// Where the call of `delta` stands, or will stand if it is new. Providers that leave out the
    /// index, or have the same for all, mark a new call with a new id, or with a name. Calls that
    /// have neither are distinguished by their names and the ends of their arguments.
    fn place(&self, delta: &ToolDelta) -> usize {
        let new = self.0.len();
        if let Some(index) = delta.index() {
            let has_index = |call: &OpenCall| call.index == Some(index);
            let own = self.last(|call| has_index(call) && call.id.as_deref() == delta.id());
            let own = own.filter(|_| delta.id().is_some());
            let last = match self.last(has_index) {
                Some(at) => Some(at).filter(|at| !self.0[*at].is_ended_by(delta)),
                None => new.checked_sub(1).filter(|at| self.0[*at].goes_on_with(delta)),
            };
            return own.or(last).unwrap_or(new);
        }
        match (delta.id(), delta.name()) {
            (Some(id), _) => self.position(|call| call.id.as_deref() == Some(id)).unwrap_or(new),
            (None, Some(_)) => new,
            (None, None) => new.saturating_sub(1),
        }
    }

    /// The id of the call at `place` if it begins with `delta`: the provider's, unless that came
    /// late, or never, or twice, and would make two calls one.
    fn id(&self, delta: &ToolDelta, place: usize) -> String {
        let given = [self.0[place].id.as_deref(), delta.id()].into_iter().flatten();
        let given = given.map(str::to_owned).find(|id| !self.is_taken(id, place));
        let mut made_up = (place..).map(|number| format!("call_{number}"));
        given.or_else(|| made_up.find(|id| !self.is_taken(id, place))).unwrap_or_default()
    }

    fn last(&self, is_it: impl Fn(&OpenCall) -> bool) -> Option<usize> {
        self.0.iter().rposition(is_it)
    }

    fn position(&self, is_it: impl Fn(&OpenCall) -> bool) -> Option<usize> {
        self.0.iter().position(is_it)
    }

    fn is_taken(&self, id: &str, place: usize) -> bool {
        self.0.iter().enumerate().any(|(at, call)| match &call.stage {
            CallStage::Started(tool) => at != place && tool.id.0 == id,
            CallStage::Unnamed(_) => false,
        })
    }
}

impl OpenCall {
    fn new(delta: &ToolDelta) -> Self {
        Self {
            index: delta.index(),
            id: delta.id().map(str::to_owned),
            data: CallData { id: delta.own_id().map(str::to_owned), extra_content: None },
            arguments: Joiner::default(),
            beginning: Beginning::default(),
            extent: Extent::default(),
            stage: CallStage::Unnamed(String::new()),
        }
    }

    /// The id of another call, or one that came too late, is not this call's.
    fn take_data(&mut self) -> CallData {
        let CallData { id, extra_content } = std::mem::take(&mut self.data);
        let id = id.filter(|id| match &self.stage {
            CallStage::Started(tool) => id.starts_with(&tool.id.0),
            CallStage::Unnamed(_) => false,
        });
        CallData { id, extra_content }
    }

    /// Some servers number every call 0: an id and a name that differ from this call's id begin
    /// another. A new id alone doesn't: some servers have one for each piece. Where neither has an id, another
    /// name begins another call, and the same name only after whole arguments, and with some of its own:
    /// some servers repeat the name in each piece.
    fn is_ended_by(&self, delta: &ToolDelta) -> bool {
        let (CallStage::Started(tool), Some(name)) = (&self.stage, delta.name()) else {
            return false;
        };
        match (self.id.as_deref(), delta.id()) {
            (Some(own), Some(id)) => own != id,
            (Some(_), None) | (None, Some(_)) => false,
            (None, None) if name != tool.name => true,
            (None, None) => self.extent.is_whole && !delta.arguments().is_empty(),
        }
    }

    /// Some servers number the last piece of a call as if it were another call: one without an id and a name
    /// belongs to a call that has begun and whose arguments are not whole. One without arguments does no harm
    /// there, either.
    fn goes_on_with(&self, delta: &ToolDelta) -> bool {
        let is_begun = matches!(self.stage, CallStage::Started(_));
        let is_nameless = delta.id().is_none() && delta.name().is_none();
        is_begun && is_nameless && (!self.extent.is_whole || delta.arguments().is_empty())
    }

    /// Appends the next piece; `id` is the call's if it begins here.
    fn push(
        &mut self,
        delta: &ToolDelta,
        id: String,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), AnswerError> {
        let text = self.arguments.push(delta.arguments());
        let mut text = self.without_placeholder(text);
        self.extent.push(delta.arguments());
        if let Some(extra) = delta.extra_content() {
            self.data.extra_content = Some(extra.clone());
        }
        if let CallStage::Unnamed(waiting) = &mut self.stage {
            *waiting += &text;
            let Some(name) = delta.name() else {
                return if waiting.len() > UNNAMED_BYTES_MAX { Err(too_many()) } else { Ok(()) };
            };
            text = std::mem::take(waiting);
            let tool = ToolCall { id: ToolCallId(id), name: name.to_owned() };
            events.push(EngineEvent::ToolCallStarted(tool.clone()));
            self.stage = CallStage::Started(tool);
        }
        if let CallStage::Started(tool) = &self.stage
            && !text.is_empty()
        {
            events.push(EngineEvent::ToolArguments { id: tool.id.clone(), text });
        }
        Ok(())
    }

    /// What counts of the next piece, with what was held back before it.
    fn without_placeholder(&mut self, text: String) -> String {
        let is_placeholder = text.trim() == PLACEHOLDER;
        match self.beginning {
            Beginning::Awaited | Beginning::Held if text.is_empty() => text,
            Beginning::Awaited if is_placeholder => {
                self.beginning = Beginning::Held;
                String::new()
            }
            Beginning::Held if text.trim_start().starts_with('{') => {
                // The arguments begin here.
                self.extent = Extent::default();
                if is_placeholder {
                    return String::new();
                }
                self.beginning = Beginning::Past;
                text
            }
            Beginning::Held => {
                self.beginning = Beginning::Past;
                PLACEHOLDER.to_owned() + &text
            }
            Beginning::Awaited | Beginning::Past => {
                self.beginning = Beginning::Past;
                text
            }
        }
    }

    /// The beginning that is held back counts.
    fn release(&mut self, events: &mut Vec<EngineEvent>) {
        if let (Beginning::Held, CallStage::Started(tool)) = (self.beginning, &self.stage) {
            let text = PLACEHOLDER.to_owned();
            events.push(EngineEvent::ToolArguments { id: tool.id.clone(), text });
            self.beginning = Beginning::Past;
        }
    }
}

impl Extent {
    fn push(&mut self, json: &[u8]) {
        for byte in json {
            self.step(*byte);
        }
    }

    fn step(&mut self, byte: u8) {
        if std::mem::take(&mut self.is_escaped) {
            return;
        }
        match byte {
            b'\\' if self.is_in_string => self.is_escaped = true,
            b'"' => self.is_in_string = !self.is_in_string,
            _ if self.is_in_string => {}
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.is_whole |= self.depth == 1 && byte == b'}';
                self.depth = self.depth.saturating_sub(1);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::openai::chunk::{Shape, decode};

    fn run(deltas: &[&str]) -> (String, Result<(), AnswerError>) {
        let mut calls = Calls::default();
        let mut events = Vec::new();
        let mut result = Ok(());
        for delta in deltas {
            let json = format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{delta}]}}}}]}}"#);
            let choice = decode(json.as_bytes()).expect("decodes").choice.expect("choice");
            for delta in choice.piece(Shape::Piece, &mut false).tool_calls() {
                result = result.and_then(|()| calls.push(&delta, &mut events));
            }
        }
        result = result.and_then(|()| calls.end(&mut events));
        let mut seen = Vec::new();
        for event in events {
            if let EngineEvent::ToolCallStarted(tool) = &event {
                seen.push(format!("+{}:{}", tool.id.0, tool.name));
            } else if let EngineEvent::ToolArguments { id, text } = &event {
                seen.push(format!("{}<{text}", id.0));
            } else if let EngineEvent::ToolCallRequested { id } = &event {
                seen.push(format!("!{}", id.0));
            } else {
                seen.push(format!("{event:?}"));
            }
        }
        (seen.join(" "), result)
    }

    fn check(deltas: &[&str], expected: &str) {
        assert_eq!(run(deltas), (expected.to_owned(), Ok(())), "{deltas:?}");
    }

    #[test]
    fn pieces_go_to_their_calls() {
        let first = r#"{"index":0,"id":"a","function":{"name":"f","arguments":""}}"#;
        let more = r#"{"index":0,"function":{"arguments":"{}"}}"#;
        let second = r#"{"index":1,"id":"b","function":{"name":"g","arguments":"[]"}}"#;
        check(&[first, more], "+a:f a<{} !a");
        check(&[first, second, more], "+a:f +b:g b<[] a<{} !a !b");
        // Some providers repeat id and name in every piece.
        let repeated = r#"{"index":0,"id":"a","function":{"name":"f","arguments":"1"}}"#;
        check(&[repeated, repeated], "+a:f a<1 a<1 !a");
    }

    #[test]
    fn missing_and_doubled_ids_are_made_up() {
        let unnamed = r#"{"index":3,"id":"","function":{"name":"f","arguments":"1"}}"#;
        let other = r#"{"index":4,"function":{"name":"f"}}"#;
        check(&[unnamed, other], "+call_0:f call_0<1 +call_1:f !call_0 !call_1");
        let same = r#"{"index":4,"id":"a","function":{"name":"g"}}"#;
        let first = r#"{"index":0,"id":"a","function":{"name":"f"}}"#;
        check(&[first, same], "+a:f +call_1:g !a !call_1");
        let blank = r#"{"index":4,"id":" ","function":{"name":"g"}}"#;
        check(&[first, blank], "+a:f +call_1:g !a !call_1");
        // As some providers number them, and from 1.
        let one = r#"{"index":0,"id":"call_1","function":{"name":"f"}}"#;
        check(&[one, other], "+call_1:f +call_2:f !call_1 !call_2");
    }

    #[test]
    fn missing_indexes_are_guessed() {
        let first = r#"{"id":"a","function":{"name":"f","arguments":"1"}}"#;
        let second = r#"{"id":"b","function":{"name":"g"}}"#;
        let more = r#"{"function":{"arguments":"2"}}"#;
        check(&[first, more, second, more], "+a:f a<1 a<2 +b:g b<2 !a !b");
        let nameless = r#"{"function":{"name":"h"}}"#;
        check(&[nameless, nameless], "+call_0:h +call_1:h !call_0 !call_1");
    }

    #[test]
    fn calls_of_one_index_are_distinguished_by_id_and_name() {
        let first = r#"{"index":0,"id":"a","function":{"name":"f","arguments":"1"}}"#;
        let second = r#"{"index":0,"id":"b","function":{"name":"f","arguments":"2"}}"#;
        let more = r#"{"index":0,"function":{"arguments":"3"}}"#;
        check(&[first, second], "+a:f a<1 +b:f b<2 !a !b");
        check(&[first, more, second, more], "+a:f a<1 a<3 +b:f b<2 b<3 !a !b");
        let of_first = r#"{"index":0,"id":"a","function":{"arguments":"4"}}"#;
        check(&[first, second, of_first], "+a:f a<1 +b:f b<2 a<4 !a !b");
        // An id of its own for each piece, and an id that comes after the name.
        let other_id = r#"{"index":0,"id":"z","function":{"arguments":"5"}}"#;
        check(&[first, other_id], "+a:f a<1 a<5 !a");
        let unnamed = r#"{"index":0,"id":"a"}"#;
        let renamed = r#"{"index":0,"id":"y","function":{"name":"f","arguments":"6"}}"#;
        check(&[unnamed, renamed], "+a:f a<6 !a");
    }

    #[test]
    fn calls_of_one_index_without_ids_are_distinguished_by_names_and_whole_arguments() {
        let call = |name: &str, arguments: &str| {
            let function = serde_json::json!({ "name": name, "arguments": arguments });
            serde_json::json!({ "index": 0, "function": function }).to_string()
        };
        let (first, other) = (call("f", "{}"), call("g", "{\"a\":1}"));
        let both = "+call_0:f call_0<{} +call_1:g call_1<{\"a\":1} !call_0 !call_1";
        check(&[&first, &other], both);
        check(&[&call("f", ""), &other], "+call_0:f +call_1:g call_1<{\"a\":1} !call_0 !call_1");
        check(&[&first, &first], "+call_0:f call_0<{} +call_1:f call_1<{} !call_0 !call_1");
        // Some providers repeat the name in every piece, and in one that follows.
        let pieces = [call("f", "{\"a\":{},"), call("f", "\"b\":\"}\\\"\"}"), call("f", "")];
        let pieces: Vec<_> = pieces.iter().map(String::as_str).collect();
        check(&pieces, "+call_0:f call_0<{\"a\":{}, call_0<\"b\":\"}\\\"\"} !call_0");
        // What has no name goes on with the newest call.
        let more = r#"{"index":0,"function":{"arguments":"}"}}"#;
        let parts = [first.as_str(), &call("g", "{"), more];
        check(&parts, "+call_0:f call_0<{} +call_1:g call_1<{ call_1<} !call_0 !call_1");
        // An id that comes late is that of the call that has none.
        let late = r#"{"index":0,"id":"a","function":{"name":"g","arguments":"{}"}}"#;
        check(&[&call("f", ""), late], "+call_0:f call_0<{} !call_0");
    }

    /// As gateways before Bedrock send them.
    #[test]
    fn an_empty_object_before_the_arguments_is_no_part_of_them() {
        let first = r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}"#;
        let piece = |arguments: &str| {
            serde_json::json!({ "index": 0, "function": { "arguments": arguments } }).to_string()
        };
        let (whole, empty) = (piece(r#"{"city":"Berlin"}"#), piece(""));
        check(&[first, &whole], "+a:f a<{\"city\":\"Berlin\"} !a");
        check(&[first, &empty, &whole], "+a:f a<{\"city\":\"Berlin\"} !a");
        check(&[first, &piece("{\"a\""), &piece(":1}")], "+a:f a<{\"a\" a<:1} !a");
        check(&[first, &piece("{}"), &piece("{\"a\":1}")], "+a:f a<{\"a\":1} !a");
        // Alone it is the arguments, and before another call.
        check(&[first, &empty], "+a:f a<{} !a");
        check(&[first, &piece("{}")], "+a:f a<{} !a");
        let second = r#"{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}"#;
        check(&[first, second, &piece("1")], "+a:f a<{} +b:g a<1 b<{} !a !b");
        // Before the name, and with an end under another index.
        let unnamed = piece("{}");
        let named = r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\":1}"}}"#;
        check(&[&unnamed, named], "+a:f a<{\"a\":1} !a");
        let rest = r#"{"index":1,"function":{"arguments":"\"a\":1}"}}"#;
        check(&[first, &piece("{"), rest], "+a:f a<{ a<\"a\":1} !a");
        // What no object follows is not changed.
        check(&[first, &piece(",")], "+a:f a<{}, !a");
        let filled = r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"b\":1}"}}"#;
        check(&[filled, &piece("{}")], "+a:f a<{\"b\":1} a<{} !a");
    }

    /// As Nebius and Cerebras number the last piece.
    #[test]
    fn a_piece_under_a_wrong_index_belongs_to_the_call_that_is_not_whole() {
        let first = r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}"#;
        let rest = r#"{"index":1,"function":{"arguments":"\"a\":1}"}}"#;
        let nothing = r#"{"index":2,"function":{"arguments":""}}"#;
        check(&[first, rest], "+a:f a<{ a<\"a\":1} !a");
        check(&[first, rest, nothing], "+a:f a<{ a<\"a\":1} !a");
        let second = r#"{"index":1,"id":"b","function":{"name":"g","arguments":"{"}}"#;
        let last = r#"{"index":2,"function":{"arguments":"}"}}"#;
        let both = "+a:f a<{ a<\"a\":1} +b:g b<{ b<} !a !b";
        check(&[first, rest, second, last], both);
        // After whole arguments it is a call of its own, whose name is missing.
        let whole = r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}"#;
        assert_eq!(run(&[whole, rest]).1, Err(AnswerError::NamelessCall));
    }

    #[test]
    fn a_name_may_come_late_but_must_come() {
        let early = r#"{"index":0,"id":"a","function":{"arguments":"1"}}"#;
        let named = r#"{"index":0,"function":{"name":"f","arguments":"2"}}"#;
        check(&[early, named], "+a:f a<12 !a");
        assert_eq!(run(&[early]), (String::new(), Err(AnswerError::NamelessCall)));
    }

    #[test]
    fn calls_are_bounded() {
        let deltas: Vec<_> = (0..=CALLS_MAX)
            .map(|at| format!(r#"{{"index":{at},"function":{{"name":"f"}}}}"#))
            .collect();
        let deltas: Vec<_> = deltas.iter().map(String::as_str).collect();
        assert_eq!(run(&deltas).1, Err(too_many()));
        let long = format!(r#"{{"function":{{"arguments":"{}"}}}}"#, "x".repeat(UNNAMED_BYTES_MAX));
        assert_eq!(run(&[&long, &long]).1, Err(too_many()));
    }
}
