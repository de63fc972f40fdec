//! Whether an answer is complete. A finish reason alone does not mean that: some servers send `"stop"`
//! with every chunk, or after the reasoning and before the text.

/// The meaning of the finish reasons of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Finish {
    /// There was none.
    #[default]
    Open,
    /// A finish reason came in the same chunk as output: most servers mean the end, and some don't.
    Likely,
    /// A finish reason came in a chunk of its own, after text or a tool call: only token counts and the
    /// end mark can follow.
    Settled,
    /// A finish reason was followed by output, or preceded any text: it says nothing about the end.
    Doubtful,
}

/// What one chunk of an answer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Holds {
    /// Text, reasoning or a piece of a tool call.
    pub(super) output: bool,
    /// A finish reason.
    pub(super) reason: bool,
}

impl Finish {
    /// The state after one more chunk; `has_answer` if text or a tool call has come by then.
    pub(super) fn after(self, chunk: Holds, has_answer: bool) -> Self {
        match (self, chunk) {
            (Self::Doubtful, _) => Self::Doubtful,
            (Self::Likely | Self::Settled, Holds { output: true, .. }) => Self::Doubtful,
            (Self::Open | Self::Likely | Self::Settled, Holds { reason: false, .. }) => self,
            (_, Holds { reason: true, .. }) if !has_answer => Self::Doubtful,
            (Self::Open, Holds { output: true, reason: true }) => Self::Likely,
            (Self::Open | Self::Likely | Self::Settled, Holds { output: false, reason: true }) => {
                Self::Settled
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chunks are `t` text, `r` reasoning, `.` neither, each in upper case (`!` for `.`) with a
    /// finish reason.
    fn after(chunks: &str) -> Finish {
        let mut has_answer = false;
        chunks.chars().fold(Finish::default(), |finish, chunk| {
            has_answer |= matches!(chunk, 't' | 'T');
            let output = matches!(chunk, 't' | 'T' | 'r' | 'R');
            let reason = matches!(chunk, 'T' | 'R' | '!');
            finish.after(Holds { output, reason }, has_answer)
        })
    }

    #[test]
    fn a_reason_is_believed_as_far_as_what_surrounds_it_allows() {
        for (chunks, expected) in [
            ("", Finish::Open),
            ("rt.", Finish::Open),
            ("tt!", Finish::Settled),
            ("tt!!.", Finish::Settled),
            ("ttT", Finish::Likely),
            ("ttT.", Finish::Likely),
            ("ttT!", Finish::Settled),
            ("TT", Finish::Doubtful),
            ("tT!t", Finish::Doubtful),
            ("t!r", Finish::Doubtful),
            ("t!t!", Finish::Doubtful),
            ("rR", Finish::Doubtful),
            ("rr!t", Finish::Doubtful),
            ("!", Finish::Doubtful),
        ] {
            assert_eq!(after(chunks), expected, "{chunks}");
        }
    }
}
