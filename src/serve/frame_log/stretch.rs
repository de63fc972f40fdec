//! Consecutive patches of one segment, kept as their differences: a patch takes over a kilobyte, and its new text a few
//! bytes. Pure.

use crate::protocol::any::Any;
use crate::protocol::id::Ordinal;
use crate::protocol::proto::chat::{ChatReasoningPatch, ChatTextPatch};
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::proto::rpc::{RpcLine, UiEventFrame};
use crate::protocol::wire::Frame;
use std::sync::Arc;

/// Patches of a stretch: few enough that not many are lost at once when the oldest have to go.
const PATCHES_MAX: usize = 256;

/// A patch, and those after it.
#[derive(Clone, Debug)]
pub(super) struct Stretch {
    first: Arc<Frame>,
    /// Differences of the patches after the first one.
    rest: Vec<Short>,
    /// Their texts, one after the other.
    texts: String,
}

/// A patch, as its differences from the first one of the stretch. Its text and its offset begin where those of the
/// patch before it end.
#[derive(Clone, Copy, Debug)]
struct Short {
    ordinal: u32,
    sequence: u32,
    /// End of the text of the patch in the texts of the stretch.
    end: u32,
}

/// Members in which patches of one segment differ.
#[derive(Clone, Copy, Debug)]
struct Own<'a> {
    sequence: u64,
    offset: u64,
    text: &'a str,
}

/// A payload that may be one of a stretch.
trait Patch {
    fn own(&self) -> Own<'_>;

    /// Whether all else is the same.
    fn is_like(&self, other: &Self) -> bool;

    /// A copy of this payload with the members of `own`, which differ between the patches of a stretch.
    fn with(&self, own: Own<'_>) -> Any;
}

macro_rules! patches {
    ($($patch:ident: $($field:ident)*;)*) => {
        $(impl Patch for $patch {
            fn own(&self) -> Own<'_> {
                Own { sequence: self.sequence, offset: self.offset, text: &self.text }
            }

            fn is_like(&self, other: &Self) -> bool {
                // A field that is new can't be forgotten here.
                let Self { sequence: _, offset: _, text: _, $($field,)* } = self;
                $(*$field == other.$field)&&*
            }

            fn with(&self, Own { sequence, offset, text }: Own<'_>) -> Any {
                let text = text.to_owned();
                let mut patch = Self { sequence, offset, text, ..Self::default() };
                $(patch.$field.clone_from(&self.$field);)*
                patch.into()
            }
        })*

        /// The members of a patch that differ within a segment; `None` if the payload is no patch.
        fn own(payload: &Any) -> Option<Own<'_>> {
            $(if let Any::$patch(patch) = payload {
                return Some(patch.own());
            })*
            None
        }

        fn is_like(one: &Any, other: &Any) -> bool {
            $(if let (Any::$patch(one), Any::$patch(other)) = (one, other) {
                return one.is_like(other);
            })*
            false
        }

        fn with(payload: &Any, own: Own<'_>) -> Option<Any> {
            $(if let Any::$patch(patch) = payload {
                return Some(patch.with(own));
            })*
            None
        }
    };
}

patches! {
    ChatTextPatch: message_id role stream_id mode status r#final finish_reason prompt correlation;
    ChatReasoningPatch: message_id parent_message_id role stream_id mode status r#final source finish_reason
        correlation;
}

impl Stretch {
    /// A stretch that begins with this frame; `None` if it is no patch.
    pub(super) fn of(first: &Arc<Frame>) -> Option<Self> {
        own(payload(first)?)?;
        Some(Self { first: Arc::clone(first), rest: Vec::new(), texts: String::new() })
    }

    /// Adds the next patch; returns false, with nothing changed, if it does not continue the stretch.
    pub(super) fn add(&mut self, next: &Frame) -> bool {
        let short = self.short(next).filter(|_| self.len() < PATCHES_MAX);
        let Some((short, own)) = short else { return false };
        self.texts.push_str(own.text);
        self.rest.push(short);
        if self.len() == PATCHES_MAX {
            self.texts.shrink_to_fit();
            self.rest.shrink_to_fit();
        }
        true
    }

    /// The differences of the next patch; `None` if it differs in other members too.
    fn short<'a>(&self, next: &'a Frame) -> Option<(Short, Own<'a>)> {
        let (one, other) = (event(&self.first)?, event(next)?);
        let (payload, first) = (other.payload.as_ref()?, one.payload.as_ref()?);
        let (own, first_own) = (own(payload)?, own(first)?);
        let is_next = own.offset == self.end_offset(first_own)
            && self.first.request_id == next.request_id
            && self.first.session_id == next.session_id
            && self.first.version == next.version
            && one.name == other.name
            && is_like(first, payload);
        let short = Short {
            ordinal: u32::try_from(other.ordinal.checked_sub(one.ordinal)?).ok()?,
            sequence: u32::try_from(own.sequence.checked_sub(first_own.sequence)?).ok()?,
            end: u32::try_from(self.texts.len() + own.text.len()).ok()?,
        };
        is_next.then_some((short, own))
    }

    /// The offset after the last patch.
    fn end_offset(&self, first: Own<'_>) -> u64 {
        first.offset + (first.text.len() + self.texts.len()) as u64
    }

    /// Number of patches in the stretch.
    pub(super) fn len(&self) -> usize {
        1 + self.rest.len()
    }

    /// Bytes of memory beside those of the first patch.
    pub(super) fn bytes(&self) -> usize {
        self.rest.capacity() * std::mem::size_of::<Short>() + self.texts.capacity()
    }

    /// The patch with this index, from 0.
    pub(super) fn get(&self, at: usize) -> Option<Arc<Frame>> {
        let Some(before) = at.checked_sub(1) else { return Some(Arc::clone(&self.first)) };
        let Short { ordinal, sequence, end } = *self.rest.get(before)?;
        let begin = before.checked_sub(1).map_or(0, |it| self.rest[it].end);
        let event = event(&self.first)?;
        let payload = event.payload.as_ref()?;
        let first = own(payload)?;
        let own = Own {
            sequence: first.sequence + u64::from(sequence),
            offset: first.offset + first.text.len() as u64 + u64::from(begin),
            text: self.texts.get(begin as usize..end as usize)?,
        };
        let event = UiEventFrame {
            ordinal: event.ordinal + u64::from(ordinal),
            name: event.name.clone(),
            payload: with(payload, own),
        };
        Some(Arc::new(RpcLine {
            version: self.first.version,
            session_id: self.first.session_id.clone(),
            request_id: self.first.request_id.clone(),
            frame: Some(Body::UiEvent(event)),
        }))
    }

    /// Number of patches up to this event.
    pub(super) fn up_to(&self, ordinal: Ordinal) -> usize {
        let first = event(&self.first).map_or(0, |event| event.ordinal);
        let Some(more) = ordinal.0.checked_sub(first) else { return 0 };
        1 + self.rest.partition_point(|it| u64::from(it.ordinal) <= more)
    }

    /// The last event of the stretch.
    pub(super) fn last(&self) -> Ordinal {
        let first = event(&self.first).map_or(0, |event| event.ordinal);
        Ordinal(first + self.rest.last().map_or(0, |it| u64::from(it.ordinal)))
    }
}

fn event(frame: &Frame) -> Option<&UiEventFrame> {
    match frame.frame.as_ref()? {
        Body::UiEvent(event) => Some(event),
        Body::Hello(_)
        | Body::Snapshot(_)
        | Body::BackendEvent(_)
        | Body::Error(_)
        | Body::Done(_) => None,
    }
}

fn payload(frame: &Frame) -> Option<&Any> {
    event(frame)?.payload.as_ref()
}
