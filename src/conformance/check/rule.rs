//! The rules of the contract, each with a name that programs may rely on.

use std::fmt;

/// A rule of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// A line is UTF-8.
    InvalidUtf8,
    /// A line contains no character that any reader takes for a line end.
    RawSeparator,
    /// A line is not longer than a reader can be expected to hold.
    LineTooLong,
    /// Every line ends with a line feed.
    NoLineFeed,
    /// A line is one JSON object.
    InvalidJson,
    /// An object has each key once.
    DuplicateKey,
    /// Fields are those of the message tables.
    UnknownField,
    /// Types of an `Any` are those of the message tables, or of an extension.
    UnknownType,
    /// Values are of their field's type.
    WrongValue,
    /// Required fields are set.
    MissingField,
    /// A line has a frame.
    NoFrame,
    /// A line has one frame.
    TwoFrames,
    /// The version is 1.
    WrongVersion,
    /// `hello` is the first frame.
    HelloFirst,
    /// `hello` comes once.
    HelloAgain,
    /// `hello` names the protocol.
    HelloProtocol,
    /// `hello` answers no request.
    HelloRequest,
    /// `hello` names the server.
    HelloServer,
    /// `hello` lists all capabilities of a server or of a single run.
    HelloCapabilities,
    /// Every frame names the session.
    SessionMissing,
    /// The session stays the same once it is bound.
    SessionChanged,
    /// Frames that answer a request name it.
    NamelessFrame,
    /// A request has one `done`.
    DoneAgain,
    /// Nothing of a request comes after its `done`.
    AfterDone,
    /// A request that was answered at all has a `done`.
    UnfinishedRequest,
    /// The status of a `done` is one of the known values.
    UnknownStatus,
    /// The status of a `done` agrees with what came before it.
    DoneStatus,
    /// The code of an error is one of the known values.
    UnknownCode,
    /// The detail of a failed run begins with one of the known classes, and a retry names one.
    ErrorClass,
    /// The code of an error fits the state of its request and of the session.
    ErrorState,
    /// A terminal error is followed by its `done` alone.
    AfterTerminal,
    /// Nothing comes after the end of the process.
    AfterEnd,
    /// Ordinals rise.
    OrdinalOrder,
    /// A snapshot contains what was seen, and does not go back.
    SnapshotOrdinal,
    /// Entities of a snapshot are complete, and none occurs twice.
    SnapshotEntity,
    /// Texts of a snapshot are those that were streamed.
    SnapshotText,
    /// A snapshot contains everything that was reported before it.
    SnapshotLost,
    /// An event has a payload.
    PayloadMissing,
    /// The name of an event is its payload's.
    NameMismatch,
    /// Roles and statuses are among those that the contract lists for their message.
    WrongWord,
    /// Message ids are derived from the root of their run, and an entity has the id of its payload.
    MessageId,
    /// A correlation names the session and its run.
    Correlation,
    /// Repeated prompts, tool names, inputs and finish reasons stay the same.
    FieldChanged,
    /// Payloads of an extension require it to be on: announced in `hello`, or turned on by a
    /// request.
    UnannouncedExtension,
    /// One run is active at a time.
    TwoRuns,
    /// The events of a run come in their order.
    EventOrder,
    /// Whatever a run opens is closed in it.
    LeftOpen,
    /// Statuses of segments and the class of a provider call agree with the end of their run.
    EndMismatch,
    /// A run that was cancelled ends as stopped.
    CancelIgnored,
    /// A message and a finished run have an error if their answer was cut off, and only then; so has
    /// a provider call its AnswerTruncated.
    CutOff,
    /// Retries and repairs are numbered one by one, up to their maximum.
    AttemptNumber,
    /// Token counts are those of the provider calls, or their sums.
    TokenCounts,
    /// Attachments of a message have ids of their own, and stay the same.
    Attachments,
    /// Sequence numbers of patches rise.
    PatchSequence,
    /// A patch begins where the previous one ended.
    PatchOffset,
    /// A patch that carries all text so far begins with the earlier text.
    PatchText,
    /// A patch has a mode, and all patches of segments have the same one.
    PatchMode,
    /// A patch names the stream it belongs to: its segment or its tool call.
    PatchStream,
    /// The complete text at the end equals the streamed text.
    SegmentText,
    /// `text` and `content` of a message are the same.
    TextContent,
    /// Every run ends with a snapshot, or none does.
    FinalSnapshot,
    /// A process of one request writes a snapshot, events, a snapshot unless turned off, `done`.
    OneShotOrder,
}

impl Rule {
    /// All rules, in the order of the documentation.
    #[cfg(test)]
    pub(super) const ALL: [Self; 62] = [
        Self::InvalidUtf8,
        Self::RawSeparator,
        Self::LineTooLong,
        Self::NoLineFeed,
        Self::InvalidJson,
        Self::DuplicateKey,
        Self::UnknownField,
        Self::UnknownType,
        Self::WrongValue,
        Self::MissingField,
        Self::NoFrame,
        Self::TwoFrames,
        Self::WrongVersion,
        Self::HelloFirst,
        Self::HelloAgain,
        Self::HelloProtocol,
        Self::HelloRequest,
        Self::HelloServer,
        Self::HelloCapabilities,
        Self::SessionMissing,
        Self::SessionChanged,
        Self::NamelessFrame,
        Self::DoneAgain,
        Self::AfterDone,
        Self::UnfinishedRequest,
        Self::UnknownStatus,
        Self::DoneStatus,
        Self::UnknownCode,
        Self::ErrorClass,
        Self::ErrorState,
        Self::AfterTerminal,
        Self::AfterEnd,
        Self::OrdinalOrder,
        Self::SnapshotOrdinal,
        Self::SnapshotEntity,
        Self::SnapshotText,
        Self::SnapshotLost,
        Self::PayloadMissing,
        Self::NameMismatch,
        Self::WrongWord,
        Self::MessageId,
        Self::Correlation,
        Self::FieldChanged,
        Self::UnannouncedExtension,
        Self::TwoRuns,
        Self::EventOrder,
        Self::LeftOpen,
        Self::EndMismatch,
        Self::CancelIgnored,
        Self::CutOff,
        Self::AttemptNumber,
        Self::TokenCounts,
        Self::Attachments,
        Self::PatchSequence,
        Self::PatchOffset,
        Self::PatchText,
        Self::PatchMode,
        Self::PatchStream,
        Self::SegmentText,
        Self::TextContent,
        Self::FinalSnapshot,
        Self::OneShotOrder,
    ];

    /// Its name, which does not change between versions.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidUtf8 => "invalid-utf8",
            Self::RawSeparator => "raw-separator",
            Self::LineTooLong => "line-too-long",
            Self::NoLineFeed => "no-line-feed",
            Self::InvalidJson => "invalid-json",
            Self::DuplicateKey => "duplicate-key",
            Self::UnknownField => "unknown-field",
            Self::UnknownType => "unknown-type",
            Self::WrongValue => "wrong-value",
            Self::MissingField => "missing-field",
            Self::NoFrame => "no-frame",
            Self::TwoFrames => "two-frames",
            Self::WrongVersion => "wrong-version",
            Self::HelloFirst => "hello-first",
            Self::HelloAgain => "hello-again",
            Self::HelloProtocol => "hello-protocol",
            Self::HelloRequest => "hello-request",
            Self::HelloServer => "hello-server",
            Self::HelloCapabilities => "hello-capabilities",
            Self::SessionMissing => "session-missing",
            Self::SessionChanged => "session-changed",
            Self::NamelessFrame => "nameless-frame",
            Self::DoneAgain => "done-again",
            Self::AfterDone => "after-done",
            Self::UnfinishedRequest => "unfinished-request",
            Self::UnknownStatus => "unknown-status",
            Self::DoneStatus => "done-status",
            Self::UnknownCode => "unknown-code",
            Self::ErrorClass => "error-class",
            Self::ErrorState => "error-state",
            Self::AfterTerminal => "after-terminal",
            Self::AfterEnd => "after-end",
            Self::OrdinalOrder => "ordinal-order",
            Self::SnapshotOrdinal => "snapshot-ordinal",
            Self::SnapshotEntity => "snapshot-entity",
            Self::SnapshotText => "snapshot-text",
            Self::SnapshotLost => "snapshot-lost",
            Self::PayloadMissing => "payload-missing",
            Self::NameMismatch => "name-mismatch",
            Self::WrongWord => "wrong-word",
            Self::MessageId => "message-id",
            Self::Correlation => "correlation",
            Self::FieldChanged => "field-changed",
            Self::UnannouncedExtension => "unannounced-extension",
            Self::TwoRuns => "two-runs",
            Self::EventOrder => "event-order",
            Self::LeftOpen => "left-open",
            Self::EndMismatch => "end-mismatch",
            Self::CancelIgnored => "cancel-ignored",
            Self::CutOff => "cut-off",
            Self::AttemptNumber => "attempt-number",
            Self::TokenCounts => "token-counts",
            Self::Attachments => "attachments",
            Self::PatchSequence => "patch-sequence",
            Self::PatchOffset => "patch-offset",
            Self::PatchText => "patch-text",
            Self::PatchMode => "patch-mode",
            Self::PatchStream => "patch-stream",
            Self::SegmentText => "segment-text",
            Self::TextContent => "text-content",
            Self::FinalSnapshot => "final-snapshot",
            Self::OneShotOrder => "one-shot-order",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Line number, from 1.
    pub line: u64,
    /// The violated rule.
    pub rule: Rule,
    /// What is wrong, for people.
    pub message: String,
}

/// The violations of one line.
#[derive(Debug)]
pub(super) struct Report {
    line: u64,
    violations: Vec<Violation>,
}

impl Report {
    pub(super) fn new(line: u64) -> Self {
        Self { line, violations: Vec::new() }
    }

    /// The current line.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    pub(super) fn add(&mut self, rule: Rule, message: impl Into<String>) {
        self.violations.push(Violation { line: self.line, rule, message: message.into() });
    }

    pub(super) fn into_violations(self) -> Vec<Violation> {
        self.violations
    }
}
