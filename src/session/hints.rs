//! Where an error or a result could name a setting: the session knows the setting, and the front
//! end how its people change it.

use crate::session::approval::ToolGlob;

/// Something that a front end may have an option for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint<'a> {
    /// Offering tools to the model. Follows "offer tools".
    OfferTools,
    /// The limit of rounds of tool calls. Follows "ask it to go on".
    ToolRounds,
    /// The limit of calls in a round. Follows the limit.
    ToolCalls,
    /// The limit of bytes of arguments. Follows the limit.
    ToolArguments,
    /// The time that a tool may take. Follows "the time for it is over".
    ToolTime,
    /// The time that the first call waits for tool servers. Follows the name of the server.
    ServerTime,
    /// Failing where the tools of a server are missing. Follows "mend the server".
    RequireTools,
    /// Having a long conversation summarized. Follows "earlier turns can be summarized instead".
    Compact,
    /// Letting submits wait while a run is active. Follows "send this one again after its done".
    QueueSubmits,
    /// Allowing a tool that nobody can be asked about, by this rule, which names it and no other tool; `None`
    /// if no rule does. Follows "it was not run".
    AllowTool(Option<&'a ToolGlob>),
    /// Beginning another session than the stored one. Follows "begin another session".
    OtherSession,
    /// The content of the snapshot at the end of a run. Follows "what the run added".
    FinalSnapshot,
    /// The rule that allows the tools that this pattern names. Stands in the place of a name of the rule.
    AllowRule(&'a ToolGlob),
    /// The rule that denies the tools that this pattern names. Stands in the place of a name of the rule.
    DenyRule(&'a ToolGlob),
    /// The rule that denies all tools that no other rule names. Stands in the place of a name of the rule.
    DenyAll,
}

/// The text of a front end for each hint: a continuation of the sentence with its separator, or blank if
/// its users can't change the setting. By default all are blank.
#[derive(Clone, Copy, Debug)]
pub struct Hints(pub fn(Hint<'_>) -> String);

impl Hints {
    /// The text of the front end for `hint`.
    pub(super) fn of(self, hint: Hint<'_>) -> String {
        (self.0)(hint)
    }

    /// Like [`Self::of`], or `name` if the front end has no name for it.
    pub(super) fn or(self, hint: Hint<'_>, name: String) -> String {
        Some(self.of(hint)).filter(|named| !named.is_empty()).unwrap_or(name)
    }
}

impl Default for Hints {
    fn default() -> Self {
        Self(|_| String::new())
    }
}
