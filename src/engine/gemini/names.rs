//! Names of tools as the provider takes them: they begin with a letter or an underscore
//! (<https://ai.google.dev/api/caching#FunctionDeclaration>). Names of other providers and of clients may
//! begin with a digit.

use crate::conversation::tool::ToolSpec;
use crate::engine::provider::tool;
use crate::protocol::command::TOOL_NAME_BYTES_MAX;
use std::borrow::Cow;

/// The offered tools that have another name in requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(Vec<Renamed>);

#[derive(Clone, Debug)]
struct Renamed {
    own: String,
    wire: String,
}

impl Names {
    /// The names of these tools. Equal lists give equal names.
    pub(super) fn of(tools: &[ToolSpec]) -> Self {
        let mut names = Self::default();
        for own in tools.iter().map(|tool| &tool.name).filter(|name| !begins_well(name)) {
            let is_taken = |wire: &str| {
                tools.iter().any(|tool| tool.name == wire)
                    || names.0.iter().any(|it| it.wire == wire)
            };
            let wire = (1..).map(|number| prefixed(own, number)).find(|wire| !is_taken(wire));
            names.0.extend(wire.map(|wire| Renamed { own: own.clone(), wire }));
        }
        names
    }

    /// The name of a called tool in requests, also of one that is not offered or that the model made up.
    pub(super) fn wire<'n>(&self, name: &'n str) -> Cow<'n, str> {
        if let Some(renamed) = self.0.iter().find(|it| it.own == name) {
            return renamed.wire.clone().into();
        }
        let name = tool::wire_name(name);
        if begins_well(&name) { name } else { prefixed(&name, 1).into() }
    }

    /// The name of a tool that the model has called.
    pub(super) fn own(&self, called: String) -> String {
        let renamed = self.0.iter().find(|it| it.wire == called);
        renamed.map_or(called, |it| it.own.clone())
    }
}

fn begins_well(name: &str) -> bool {
    name.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_')
}

/// The name with an underscore before it and, from the second try on, that number after it.
fn prefixed(name: &str, number: usize) -> String {
    let end = if number == 1 { String::new() } else { format!("_{number}") };
    let start: String = format!("_{name}").chars().take(TOOL_NAME_BYTES_MAX - end.len()).collect();
    format!("{start}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(tools: &[&str]) -> Names {
        let spec = |name: &&str| ToolSpec {
            name: (*name).to_owned(),
            description: String::new(),
            input_schema: Default::default(),
        };
        Names::of(&tools.iter().map(spec).collect::<Vec<_>>())
    }

    #[test]
    fn names_go_out_in_another_form_and_come_back() {
        let long = "7".repeat(TOOL_NAME_BYTES_MAX);
        let cut = format!("_{}", "7".repeat(TOOL_NAME_BYTES_MAX - 1));
        let again = format!("_{}_2", "7".repeat(TOOL_NAME_BYTES_MAX - 3));
        let check = |tools: &[&str], expected: &[&str]| {
            let names = names(tools);
            let wire: Vec<_> = tools.iter().map(|own| names.wire(own).into_owned()).collect();
            assert_eq!(wire, expected, "{tools:?}");
            let own: Vec<_> = wire.into_iter().map(|wire| names.own(wire)).collect();
            assert_eq!(own, tools);
        };
        check(&["look", "_look", "7zip", "-x"], &["look", "_look", "_7zip", "_-x"]);
        check(&["7zip", "_7zip", "_7zip_2"], &["_7zip_3", "_7zip", "_7zip_2"]);
        check(&[&long], &[&cut]);
        check(&[&cut, &long], &[&cut, &again]);
        let two = [format!("{}a", "7".repeat(63)), long];
        check(&[&two[0], &two[1]], &[&cut, &again]);
    }

    #[test]
    fn a_name_that_is_not_offered_takes_the_pattern() {
        let names = names(&["7zip"]);
        assert_eq!(names.wire("functions.look"), "functions_look");
        assert_eq!(names.wire("8.look"), "_8_look");
        assert_eq!(names.own("_8_look".to_owned()), "_8_look");
    }
}
