//! The rules of the contract, each with a name that programs may rely on.

use std::fmt;

/// The rules, their names and their list, from one table.
macro_rules! rules {
    ($($(#[$doc:meta])* $rule:ident = $name:literal,)*) => {
        /// A rule of the contract.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $($(#[$doc])* $rule,)*
        }

        impl Rule {
            /// All rules, in the order of the documentation.
            #[cfg(test)]
            pub(super) const ALL: [Self; [$($name),*].len()] = [$(Self::$rule,)*];

            /// Its name, which does not change between versions.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$rule => $name,)*
                }
            }
        }
    };
}

rules! {
    /// A line is UTF-8.
    InvalidUtf8 = "invalid-utf8",
    /// A line contains no character that any reader takes for a line end.
    RawSeparator = "raw-separator",
    /// A line is not longer than a reader can be expected to hold.
    LineTooLong = "line-too-long",
    /// Every line ends with a line feed.
    NoLineFeed = "no-line-feed",
    /// A line is one JSON object.
    InvalidJson = "invalid-json",
    /// An object has each key once.
    DuplicateKey = "duplicate-key",
    /// Fields are those of the message tables.
    UnknownField = "unknown-field",
    /// Types of an `Any` are those of the message tables, or of an extension.
    UnknownType = "unknown-type",
    /// Values are of their field's type.
    WrongValue = "wrong-value",
    /// Required fields are set.
    MissingField = "missing-field",
    /// A line has a frame.
    NoFrame = "no-frame",
    /// A line has one frame.
    TwoFrames = "two-frames",
    /// The version is 1.
    WrongVersion = "wrong-version",
    /// `hello` is the first frame.
    HelloFirst = "hello-first",
    /// `hello` comes once.
    HelloAgain = "hello-again",
    /// `hello` names the protocol.
    HelloProtocol = "hello-protocol",
    /// `hello` answers no request.
    HelloRequest = "hello-request",
    /// `hello` names the server.
    HelloServer = "hello-server",
    /// `hello` lists all capabilities of a server or of a single run.
    HelloCapabilities = "hello-capabilities",
    /// Every frame names the session.
    SessionMissing = "session-missing",
    /// The session stays the same once it is bound.
    SessionChanged = "session-changed",
    /// Frames that answer a request name it.
    NamelessFrame = "nameless-frame",
    /// A request has one `done`.
    DoneAgain = "done-again",
    /// A request has one error, and one snapshot.
    AnswerAgain = "answer-again",
    /// Nothing of a request comes after its `done`.
    AfterDone = "after-done",
    /// A request that was answered at all has a `done`.
    UnfinishedRequest = "unfinished-request",
    /// The status of a `done` is one of the known values.
    UnknownStatus = "unknown-status",
    /// The status of a `done` agrees with what came before it.
    DoneStatus = "done-status",
    /// The code of an error is one of the known values.
    UnknownCode = "unknown-code",
    /// The detail of a failed run begins with one of the known classes, and a retry names one.
    ErrorClass = "error-class",
    /// The code of an error fits the state of its request and of the session.
    ErrorState = "error-state",
    /// A terminal error is followed by its `done` alone.
    AfterTerminal = "after-terminal",
    /// Nothing comes after the end of the process.
    AfterEnd = "after-end",
    /// Ordinals rise.
    OrdinalOrder = "ordinal-order",
    /// A snapshot contains what was seen, and does not go back.
    SnapshotOrdinal = "snapshot-ordinal",
    /// Entities of a snapshot are complete, and none occurs twice.
    SnapshotEntity = "snapshot-entity",
    /// Texts of a snapshot are those that were streamed.
    SnapshotText = "snapshot-text",
    /// A snapshot contains everything that was reported before it.
    SnapshotLost = "snapshot-lost",
    /// An event has a payload.
    PayloadMissing = "payload-missing",
    /// The name of an event is its payload's.
    NameMismatch = "name-mismatch",
    /// Roles and statuses are among those that the contract lists for their message.
    WrongWord = "wrong-word",
    /// Message ids are derived from the root of their run, and an entity has the id of its payload.
    MessageId = "message-id",
    /// A correlation names the session and its run.
    Correlation = "correlation",
    /// Repeated prompts, tool names, inputs and finish reasons stay the same.
    FieldChanged = "field-changed",
    /// Payloads of an extension require it to be on: announced in `hello`, or turned on by a
    /// request.
    UnannouncedExtension = "unannounced-extension",
    /// One run is active at a time.
    TwoRuns = "two-runs",
    /// The events of a run come in their order.
    EventOrder = "event-order",
    /// Whatever a run opens is closed in it.
    LeftOpen = "left-open",
    /// Statuses of segments and the class of a provider call agree with the end of their run.
    EndMismatch = "end-mismatch",
    /// A message and a finished run have an error if their answer was cut off, and only then; so has
    /// a provider call of which an answer was shown its AnswerTruncated.
    CutOff = "cut-off",
    /// Retries and repairs are numbered one by one, up to their maximum.
    AttemptNumber = "attempt-number",
    /// The first byte of a provider call is not after its first token, which there is if there was an
    /// answer, and only then.
    CallTiming = "call-timing",
    /// Token counts are those of the provider calls, or their sums.
    TokenCounts = "token-counts",
    /// Attachments of a message have ids of their own, and stay the same.
    Attachments = "attachments",
    /// Sequence numbers of patches rise.
    PatchSequence = "patch-sequence",
    /// A patch begins where the previous one ended.
    PatchOffset = "patch-offset",
    /// A patch that carries all text so far begins with the earlier text.
    PatchText = "patch-text",
    /// A patch has a mode, and all patches of segments have the same one.
    PatchMode = "patch-mode",
    /// A patch names the stream it belongs to: its segment or its tool call.
    PatchStream = "patch-stream",
    /// The complete text at the end equals the streamed text.
    SegmentText = "segment-text",
    /// `text` and `content` of a message are the same.
    TextContent = "text-content",
    /// Every run ends with a snapshot, or none does.
    FinalSnapshot = "final-snapshot",
    /// A process of one request writes a snapshot, events, a snapshot unless turned off, `done`.
    OneShotOrder = "one-shot-order",
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

    /// Adds a violation of an earlier line.
    pub(super) fn add_earlier(&mut self, violation: Violation) {
        self.violations.push(violation);
    }

    pub(super) fn into_violations(self) -> Vec<Violation> {
        self.violations
    }
}
