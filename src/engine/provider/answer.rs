//! An answer as it arrives: what each interface decides about it, and what is the same for all. Pure.

use super::body::Part;
use super::failure::Failure;
use super::reading::Reading;
use crate::engine::EngineEvent;

/// One answer as it arrives: the same bytes in other pieces give the same events, but for where a text
/// is cut.
pub(in crate::engine) trait Answer<'a> {
    /// What servers with this interface answer, as errors name it.
    const INTERFACE: &'static str;

    fn reading(&self) -> &Reading<'a>;

    fn reading_mut(&mut self) -> &mut Reading<'a>;

    /// Takes the next part of the body; adds what happened to `events`, also if it fails.
    ///
    /// # Errors
    /// If the provider reports one, or the part can't be read.
    fn part(&mut self, part: Part, events: &mut Vec<EngineEvent>) -> Result<(), Failure>;

    /// Takes the part that the body ended in, which may be incomplete.
    ///
    /// # Errors
    /// If the answer can't be complete without it, and it can't be read.
    fn last_part(&mut self, part: Part, events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        self.part(part, events).map_err(|failure| self.reading().at_end(failure))
    }

    /// Adds the last events to `events`: nothing follows.
    ///
    /// # Errors
    /// If the answer is not complete.
    fn conclude(&mut self, events: &mut Vec<EngineEvent>) -> Result<(), Failure>;

    /// Whether it is complete as far as it has come. With most interfaces only its last event ends it.
    fn completeness(&self) -> Completeness {
        Completeness::Open
    }

    /// Gives out what was held back for its other half: the answer goes no further. With most
    /// interfaces nothing is held back but half a character, which alone is no text.
    fn flush(&mut self, _events: &mut Vec<EngineEvent>) {}

    /// Takes the next bytes; adds what happened to `events`, also if it fails.
    ///
    /// # Errors
    /// If the provider reports one, or the bytes can't be read.
    fn push(&mut self, bytes: &[u8], events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        let (parts, pushed) = self.reading_mut().push(bytes);
        for part in parts {
            self.part(part, events)?;
        }
        pushed
    }

    /// Nothing follows. Adds the last events to `events`; `content_type` is the provider's name for
    /// what it sent.
    ///
    /// # Errors
    /// If the answer is not complete.
    fn end(&mut self, content_type: &str, events: &mut Vec<EngineEvent>) -> Result<(), Failure> {
        if !self.is_done()
            && let Some(part) = self.reading_mut().end_body()?
        {
            self.last_part(part, events)?;
        }
        self.flush(events);
        self.reading().check_understood(Self::INTERFACE, content_type)?;
        self.conclude(events)
    }

    /// True when nothing that matters can follow.
    fn is_done(&self) -> bool {
        self.reading().done
    }

    /// A number that rises with all that brings the answer further, and not with what only keeps the
    /// connection alive.
    fn progress(&self) -> u64 {
        self.reading().progress()
    }

    /// Events that were ignored because they are no part of an answer.
    fn ignored(&self) -> u64 {
        self.reading().ignored()
    }

    /// The answer is nothing but white space.
    fn is_blank(&self) -> bool {
        self.reading().is_blank()
    }
}

/// Whether an answer is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Completeness {
    /// More must follow.
    Open,
    /// More may follow. Silence, or a connection that breaks, is an end like any other.
    Likely,
    /// The same, and only token counts and the end mark can follow, at once.
    Settled,
}
