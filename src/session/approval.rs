//! Which tool calls may run, need a person's approval, or are denied.

mod reading;

pub use reading::ServerNames;

use crate::session::catalogue::sanitised;
use crate::support::glob::fits;
use crate::support::terminal::escape_control;

/// Between the name of a server and that of its tool.
pub(super) const SEPARATOR: &str = "__";

/// The decision on a call for which there is no rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApprovalMode {
    /// It runs.
    Auto,
    /// A person is asked.
    #[default]
    Ask,
    /// It is denied.
    Deny,
}

impl ApprovalMode {
    /// The name of the mode on the command line, in profiles and in stored sessions.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// The rules for all tools, by the names of servers and tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApprovalRules {
    /// The decision if neither list has the tool.
    pub mode: ApprovalMode,
    /// Tools that run without a question.
    pub allow: Vec<ToolGlob>,
    /// Tools that never run, even if `allow` has them.
    pub deny: Vec<ToolGlob>,
}

/// A pattern over the whole name of a tool, or `server__tool`: `*` is any number of characters, `?` is one. There
/// are no paths in it: `*` also stands for `/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolGlob(String);

/// The names of a server's tool, as rules are matched with them.
#[derive(Clone, Debug)]
pub struct NamedTool<'a> {
    /// The name that the model is shown.
    pub shown: &'a str,
    /// The name of the server.
    pub server: &'a str,
    /// The server's own name for the tool.
    pub tool: &'a str,
    /// The two parts of a shown name that was made of both: with other characters, or cut.
    pub made: Option<(String, String)>,
}

/// The decision of the rules on a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// It may run.
    Allow,
    /// A person decides.
    Ask,
    /// It must not run.
    Deny(DenyingRule),
}

/// A rule that denies a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DenyingRule {
    /// A pattern of tools that never run.
    Tools(ToolGlob),
    /// The mode, for a call that no list has.
    Mode,
}

impl ApprovalRules {
    /// The decision on a tool that has only this shown name.
    pub fn ruling(&self, shown_name: &str) -> Ruling {
        self.decide(|glob| glob.matches(shown_name), |glob| glob.matches(shown_name))
    }

    /// The decision on the tool of a server: `deny` first, then `allow`, then the mode. The order
    /// within a list makes no difference. A rule that denies holds for every name of the tool: it must
    /// not get around the rule because another tool has taken its name. A rule that allows must name
    /// the tool's own server: servers choose the names of their tools. One that can be read as naming
    /// tools of several of the `servers` allows none.
    pub fn ruling_of(&self, tool: &NamedTool<'_>, servers: &ServerNames) -> Ruling {
        self.decide(
            |glob| tool.is_denied_by(glob, servers),
            |glob| tool.is_allowed_by(glob, servers),
        )
    }

    /// The rules that name none of these tools, and whether each allows.
    pub(super) fn without_tool<'a>(
        &'a self,
        tools: &[NamedTool<'_>],
        servers: &ServerNames,
    ) -> Vec<(&'a ToolGlob, bool)> {
        let allows = |glob: &&ToolGlob| !tools.iter().any(|it| it.is_allowed_by(glob, servers));
        let denies = |glob: &&ToolGlob| !tools.iter().any(|it| it.is_denied_by(glob, servers));
        let allowing = self.allow.iter().filter(allows).map(|glob| (glob, true));
        allowing.chain(self.deny.iter().filter(denies).map(|glob| (glob, false))).collect()
    }

    /// A rule that allows nothing, because it can be read in several ways with these `servers`, and
    /// the ways, for people.
    pub fn ambiguous(&self, servers: &ServerNames) -> Option<(&ToolGlob, String)> {
        self.allow.iter().find_map(|glob| Some((glob, servers.ambiguity(glob.as_str())?)))
    }

    fn decide(
        &self,
        is_denied: impl Fn(&ToolGlob) -> bool,
        is_allowed: impl Fn(&ToolGlob) -> bool,
    ) -> Ruling {
        if let Some(glob) = self.deny.iter().find(|glob| is_denied(glob)) {
            return Ruling::Deny(DenyingRule::Tools(glob.clone()));
        }
        if self.allow.iter().any(is_allowed) {
            return Ruling::Allow;
        }
        match self.mode {
            ApprovalMode::Auto => Ruling::Allow,
            ApprovalMode::Ask => Ruling::Ask,
            ApprovalMode::Deny => Ruling::Deny(DenyingRule::Mode),
        }
    }
}

impl NamedTool<'_> {
    fn full(&self) -> String {
        format!("{}{SEPARATOR}{}", self.server, self.tool)
    }

    /// A rule that allows this tool and none of the `others`, if one can be written.
    pub(super) fn own_rule(
        &self,
        others: &[NamedTool<'_>],
        servers: &ServerNames,
    ) -> Option<ToolGlob> {
        let (server, tool) = (self.server, self.tool);
        // A separator that is part of a name can be read as the one between the two names.
        let (masked_server, masked_tool) = (masked(server), masked(tool));
        let rules = [(server, tool), (server, &masked_tool), (&masked_server, tool)]
            .map(|(server, tool)| ToolGlob(quotable(&format!("{server}{SEPARATOR}{tool}"))));
        rules.into_iter().find(|rule| {
            let allows = |tool: &NamedTool<'_>| tool.is_allowed_by(rule, servers);
            allows(self) && !others.iter().any(allows)
        })
    }

    /// The rule may have the names as they stand in shown names, where only some tools of a server have its name.
    /// Another server's own name, without wildcards, goes before one that only looks like it.
    fn is_denied_by(&self, glob: &ToolGlob, servers: &ServerNames) -> bool {
        let server = sanitised(self.server);
        let half_made = format!("{server}{SEPARATOR}{}", self.tool);
        let made = format!("{server}{SEPARATOR}{}", sanitised(self.tool));
        let (names, made) = ([self.shown, self.tool, &self.full()], [&half_made, &made]);
        let is_others = server != self.server
            && servers.has(&server)
            && glob.as_str().starts_with(&format!("{server}{SEPARATOR}"));
        names.into_iter().any(|name| glob.matches(name))
            || !is_others && made.into_iter().any(|name| glob.matches(name))
    }

    fn is_allowed_by(&self, glob: &ToolGlob, servers: &ServerNames) -> bool {
        if glob.as_str().contains(SEPARATOR) {
            let readings = servers.readings(glob.as_str());
            return matches!(readings.as_slice(), [only] if only.names(self));
        }
        // A name with a separator reads as that of another server's tool.
        let is_plain = self.shown == self.tool && !self.tool.contains(SEPARATOR);
        (is_plain && glob.matches(self.tool)) || glob.matches(&self.full())
    }
}

impl ToolGlob {
    /// The pattern in `text`, of which every form is valid.
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the whole of `name` fits.
    pub fn matches(&self, name: &str) -> bool {
        fits(&self.0, name)
    }
}

/// A pattern of `name` without a separator in it.
fn masked(name: &str) -> String {
    name.replace(SEPARATOR, "_?")
}

/// A pattern of `rule` that can be copied from a terminal into single quotes.
fn quotable(rule: &str) -> String {
    let is_plain = |c: char| c != '\'' && escape_control(&c.to_string()) == c.to_string();
    rule.chars().map(|c| if is_plain(c) { c } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_covers_the_whole_name() {
        let fitting = [
            ("*", ""),
            ("*", "read_file"),
            ("**", "read_file"),
            ("read_*", "read_"),
            ("read_*", "read_file"),
            ("*_file", "read_file"),
            ("*e*e*", "read_file"),
            ("fs__*", "fs__read_file"),
            ("mcp__x__*", "mcp__x__y"),
            ("?ead", "read"),
            ("r?*d", "read"),
            ("ä?", "äö"),
            ("", ""),
            ("*/*", "a/b/c"),
            ("a[b", "a[b"),
        ];
        for (pattern, name) in fitting {
            assert!(ToolGlob::new(pattern).matches(name), "{pattern:?} {name:?}");
        }
        let others = [
            ("", "read"),
            ("read", "read_file"),
            ("file", "read_file"),
            ("?", ""),
            ("read?", "read"),
            ("read_*x", "read_file"),
            ("READ", "read"),
            ("a[bc]", "ab"),
        ];
        for (pattern, name) in others {
            assert!(!ToolGlob::new(pattern).matches(name), "{pattern:?} {name:?}");
        }
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        assert!(!ToolGlob::new(&("*a".repeat(40) + "b")).matches(&"a".repeat(2000)));
    }

    #[test]
    fn deny_goes_before_allow_and_allow_before_the_mode() {
        let globs = |texts: &[&str]| texts.iter().map(|text| ToolGlob::new(text)).collect();
        let rules = |mode, allow: &[&str], deny: &[&str]| ApprovalRules {
            mode,
            allow: globs(allow),
            deny: globs(deny),
        };
        let denied = |glob: &str| Ruling::Deny(DenyingRule::Tools(ToolGlob::new(glob)));
        use ApprovalMode::{Ask, Auto, Deny};
        let cases = [
            (rules(Ask, &[], &[]), Ruling::Ask),
            (rules(Auto, &[], &[]), Ruling::Allow),
            (rules(Deny, &[], &[]), Ruling::Deny(DenyingRule::Mode)),
            (rules(Deny, &["read*"], &[]), Ruling::Allow),
            (rules(Ask, &["*"], &[]), Ruling::Allow),
            (rules(Auto, &["read_file"], &["*file"]), denied("*file")),
            (rules(Ask, &["write*"], &["write*"]), Ruling::Ask),
        ];
        for (rules, expected) in cases {
            assert_eq!(rules.ruling("read_file"), expected, "{rules:?}");
        }
        assert_eq!(ApprovalRules::default().ruling("any"), Ruling::Ask);
    }
}
