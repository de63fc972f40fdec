//! The lines of the protocol. The patches of a segment, and those of a tool call's arguments, differ in
//! ordinal, sequence, offset and text: the rest of their line is encoded once.

use crate::protocol::any::Any;
use crate::protocol::json::{self, Error};
use crate::protocol::proto::rpc::UiEventFrame;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::Frame;
use memchr::memmem;

/// Bytes of text up to which a patch has a template, which holds as much: next to a longer text the rest of
/// its line costs nothing.
const TEXT_BYTES_MAX: usize = 4 * 1024;

/// Encodes frames as [`json::write_line`] does, byte for byte.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    template: Option<Box<Template>>,
}

/// The line of a patch, split around its values.
#[derive(Clone, Debug)]
struct Template {
    /// The patch. Its values are those of the last frame that was compared with it.
    patch: Frame,
    /// The bytes before each of the values, in their order.
    before: [Vec<u8>; 4],
    after: Vec<u8>,
}

/// The values that differ between the patches of a segment.
#[derive(Clone, Copy)]
struct Values<'a> {
    ordinal: u64,
    sequence: u64,
    offset: u64,
    text: &'a str,
    text_key: &'static str,
}

impl Lines {
    /// Appends the line of `frame`; nothing on an error.
    pub(super) fn frame(&mut self, frame: &Frame, out: &mut Vec<u8>) -> Result<(), Error> {
        let Some(values) = Values::of(frame) else { return json::write_line(frame, out) };
        if let Some(template) = &mut self.template
            && template.fits(frame, values)
        {
            template.write(values, out);
            return Ok(());
        }
        self.template = Template::new(frame, values).map(Box::new);
        json::write_line(frame, out)
    }
}

impl Template {
    /// The template of the patches that differ from `frame` in their values alone.
    fn new(frame: &Frame, values: Values<'_>) -> Option<Self> {
        let mut patch = frame.clone();
        Values { ordinal: 1, sequence: 1, offset: 1, text: "1", ..values }.put_into(&mut patch);
        let mut line = Vec::new();
        json::write_line(&patch, &mut line).ok()?;
        let keys = ["\"ordinal\":\"", "\"sequence\":\"", "\"offset\":\"", values.text_key];
        let mut before = [const { Vec::new() }; 4];
        let mut rest = line.as_slice();
        for (before, key) in before.iter_mut().zip(keys) {
            // Only a key looks like one: in a string, a quote is escaped.
            let (head, tail) = rest.split_at(memmem::find(rest, key.as_bytes())? + key.len());
            before.extend_from_slice(head);
            rest = tail.strip_prefix(b"1")?;
        }
        Some(Self { patch, before, after: rest.to_vec() })
    }

    /// Whether `frame` differs from the template's patch in its `values` alone.
    fn fits(&mut self, frame: &Frame, values: Values<'_>) -> bool {
        values.put_into(&mut self.patch);
        self.patch == *frame
    }

    fn write(&self, values: Values<'_>, out: &mut Vec<u8>) {
        let [ordinal, sequence, offset, text] = &self.before;
        let numbers = [values.ordinal, values.sequence, values.offset];
        for (before, number) in [ordinal, sequence, offset].into_iter().zip(numbers) {
            out.extend_from_slice(before);
            out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        }
        out.extend_from_slice(text);
        json::write_escaped(values.text, out);
        out.extend_from_slice(&self.after);
    }
}

macro_rules! patches {
    ($($name:ident: $text:ident;)*) => {
        impl<'a> Values<'a> {
            /// The values of a patch. `None` if its text is long, or one of them is a default, which JSON
            /// leaves out.
            fn of(frame: &'a Frame) -> Option<Self> {
                let Some(Body::UiEvent(event)) = &frame.frame else { return None };
                let UiEventFrame { ordinal, payload, .. } = event;
                let values = 'of: {
                    $(if let Some(Any::$name(it)) = payload {
                        let (sequence, offset, text) = (it.sequence, it.offset, it.$text.as_str());
                        let text_key = concat!("\"", stringify!($text), "\":\"");
                        break 'of Self { ordinal: *ordinal, sequence, offset, text, text_key };
                    })*
                    return None;
                };
                let Self { ordinal, sequence, offset, text, .. } = values;
                let has_all = ordinal > 0 && sequence > 0 && offset > 0;
                (has_all && (1..=TEXT_BYTES_MAX).contains(&text.len())).then_some(values)
            }

            fn put_into(self, frame: &mut Frame) {
                let Some(Body::UiEvent(event)) = &mut frame.frame else { return };
                event.ordinal = self.ordinal;
                $(if let Some(Any::$name(it)) = &mut event.payload {
                    (it.sequence, it.offset) = (self.sequence, self.offset);
                    self.text.clone_into(&mut it.$text);
                })*
            }
        }
    };
}

patches! {
    ChatTextPatch: text;
    ChatReasoningPatch: text;
    ChatToolArgumentsPatch: arguments;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::id::{Ordinal, RequestId, SessionId};
    use crate::protocol::proto::chat::{
        ChatReasoningPatch, ChatRunStarted, ChatTextPatch, ChatToolArgumentsPatch, CorrelationInfo,
    };
    use crate::protocol::wire;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    /// Texts that look like keys and values, and texts with escapes.
    const TEXTS: [&str; 7] =
        ["", "1", "a", "\"text\":\"", "\",\"offset\":\"1", "\u{85}\u{2028}\n", "\\\u{1}é"];

    fn payload() -> impl Strategy<Value = Any> {
        let texts = [(); 3].map(|()| select(&TEXTS[..]));
        let numbers = [(); 3].map(|()| select(&[0, 1, 9, 10, u64::MAX][..]));
        (0..4, texts, numbers, any::<bool>()).prop_map(|(kind, texts, numbers, is_whole)| {
            let [message_id, segment_id, text] = texts.map(str::to_owned);
            let [sequence, offset, mode] = numbers;
            let mode = i32::from(mode == 1);
            let correlation = CorrelationInfo { segment_id, ..Default::default() };
            let correlation = is_whole.then_some(correlation);
            macro_rules! patch {
                ($name:ident, $text:ident) => {
                    $name {
                        message_id,
                        sequence,
                        offset,
                        $text: text,
                        mode,
                        correlation,
                        ..Default::default()
                    }
                    .into()
                };
            }
            match kind {
                0 => patch!(ChatTextPatch, text),
                1 => patch!(ChatReasoningPatch, text),
                2 => patch!(ChatToolArgumentsPatch, arguments),
                _ => ChatRunStarted { prompt: text, ..Default::default() }.into(),
            }
        })
    }

    /// A frame; if it is a patch, others of its segment follow it.
    fn stretch() -> impl Strategy<Value = Vec<Frame>> {
        let request = select(&["r", "1", "ordinal", "\"ordinal\":\"1"][..]);
        let more = vec((select(&TEXTS[1..]), 1..100_u64), 0..4);
        (request, payload(), more).prop_map(|(request, payload, more)| {
            let session = SessionId::new("1\u{2028}").expect("an id");
            let request = RequestId::new(request);
            let event = wire::ui_event(Ordinal(7), payload);
            let mut frames = vec![wire::frame(&session, request.as_ref(), event)];
            for (text, number) in more {
                let mut next = frames[0].clone();
                let (ordinal, sequence, offset) = (number, number + 1, number + 2);
                let values = Values { ordinal, sequence, offset, text, text_key: "" };
                values.put_into(&mut next);
                frames.push(next);
            }
            frames
        })
    }

    proptest! {
        #[test]
        fn a_line_does_not_depend_on_those_before_it(stretches in vec(stretch(), 1..6)) {
            let (mut lines, mut written, mut expected) = (Lines::default(), Vec::new(), Vec::new());
            for frame in stretches.iter().flatten() {
                lines.frame(frame, &mut written).expect("JSON");
                json::write_line(frame, &mut expected).expect("JSON");
                prop_assert_eq!(
                    String::from_utf8_lossy(&written),
                    String::from_utf8_lossy(&expected)
                );
            }
        }
    }
}
