//! The arguments of a server's prompt, as a person writes them.

use crate::task::server::{PromptArgument, ServerPrompt};
use serde_json::{Map, Value};

/// Prompts that a message names.
const NAMED_MAX: usize = 20;

/// The arguments that `words` give the prompt of this name among `prompts`: `name=value`, or values for those that
/// are not named, in their order.
///
/// # Errors
/// If there is no such prompt, or these are not its arguments: why, and what they are.
pub(super) fn of_words(
    prompts: &[ServerPrompt],
    name: &str,
    words: &[String],
) -> Result<Map<String, Value>, String> {
    let prompt = prompts.iter().find(|prompt| prompt.name == name);
    let prompt = prompt.ok_or_else(|| unknown(prompts, name))?;
    let mut given = Map::new();
    let mut values = Vec::new();
    for word in words {
        match word.split_once('=').filter(|(name, _)| is_name(name)) {
            None => values.push(word),
            Some((name, _)) if !prompt.arguments.iter().any(|it| it.name == name) => {
                return Err(format!("it has no argument `{name}`; {}", usage(prompt)));
            }
            Some((name, value)) => {
                if given.insert(name.to_owned(), value.into()).is_some() {
                    return Err(format!("`{name}` is given twice; {}", usage(prompt)));
                }
            }
        }
    }
    let is_open = |argument: &&PromptArgument| !given.contains_key(&argument.name);
    let open: Vec<_> = prompt.arguments.iter().filter(is_open).map(|it| it.name.clone()).collect();
    if let Some(value) = values.get(open.len()) {
        return Err(format!(
            "it takes no more arguments, but {value:?} follows; {}",
            usage(prompt)
        ));
    }
    given.extend(open.into_iter().zip(values).map(|(name, value)| (name, value.as_str().into())));
    let mut required = prompt.arguments.iter().filter(|argument| argument.is_required);
    match required.find(|argument| !given.contains_key(&argument.name)) {
        Some(missing) => Err(format!("it needs `{}`; {}", missing.name, usage(prompt))),
        None => Ok(given),
    }
}

/// Whether a text before `=` is meant as a name, and not as a part of a value.
fn is_name(text: &str) -> bool {
    let is_of_name = |char: char| char.is_alphanumeric() || "_-.".contains(char);
    !text.is_empty() && text.chars().all(is_of_name)
}

fn unknown(prompts: &[ServerPrompt], name: &str) -> String {
    let names: Vec<_> = prompts.iter().take(NAMED_MAX).map(|prompt| &*prompt.name).collect();
    match names.is_empty() {
        true => format!("it has no prompt `{name}`, nor any other"),
        false => format!("it has no prompt `{name}`; it has {}", names.join(", ")),
    }
}

fn usage(prompt: &ServerPrompt) -> String {
    let shown = prompt.arguments.iter().map(|argument| match argument.is_required {
        true => format!("{}=\u{2026}", argument.name),
        false => format!("[{}=\u{2026}]", argument.name),
    });
    match shown.collect::<Vec<_>>() {
        shown if shown.is_empty() => "it takes none".to_owned(),
        shown => format!("it takes {}", shown.join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_are_named_or_stand_in_their_order() {
        let argument = |name: &str, is_required| PromptArgument {
            name: name.to_owned(),
            description: String::new(),
            is_required,
        };
        let prompt = |name: &str, arguments| ServerPrompt {
            name: name.to_owned(),
            description: String::new(),
            arguments,
        };
        let arguments = vec![argument("path", true), argument("style", false)];
        let prompts = [prompt("sum", arguments), prompt("plain", Vec::new())];
        let of = |name: &str, words: &[&str]| {
            let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            of_words(&prompts, name, &words).map(Value::Object)
        };
        assert_eq!(
            of("sum", &["path=a b", "style=x=y"]),
            Ok(json!({"path": "a b", "style": "x=y"}))
        );
        assert_eq!(of("sum", &["a.txt"]), Ok(json!({"path": "a.txt"})));
        assert_eq!(of("sum", &["short", "path=a"]), Ok(json!({"path": "a", "style": "short"})));
        let url = "https://e.org/?a=b";
        assert_eq!(of("sum", &[url]), Ok(json!({"path": url})));
        assert_eq!(of("plain", &[]), Ok(json!({})));
        let check = |name: &str, words: &[&str], expected: &str| {
            assert_eq!(of(name, words), Err(expected.to_owned()), "{words:?}");
        };
        check("sum", &[], "it needs `path`; it takes path=\u{2026} [style=\u{2026}]");
        check(
            "sum",
            &["pth=a"],
            "it has no argument `pth`; it takes path=\u{2026} [style=\u{2026}]",
        );
        let twice = "`path` is given twice; it takes path=\u{2026} [style=\u{2026}]";
        check("sum", &["path=a", "path=b"], twice);
        let more = "it takes no more arguments, but \"x\" follows; it takes none";
        check("plain", &["x"], more);
        check("none", &[], "it has no prompt `none`; it has sum, plain");
    }
}
