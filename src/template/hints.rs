//! Suggestions for mistakes in templates. People who know other template languages
//! write `==`, names with dashes, or strings in single quotes.

use super::actions;
use serde_json::Value as Json;

/// Operators of other languages, and equivalent functions. Longer ones come first.
const SIGNS: [(&str, &str); 13] = [
    ("==", "eq .a .b"),
    ("!=", "ne .a .b"),
    ("<=", "le .a .b"),
    (">=", "ge .a .b"),
    ("&&", "and .a .b"),
    ("||", "or .a .b"),
    ("<", "lt .a .b"),
    (">", "gt .a .b"),
    ("!", "not .a"),
    (" + ", "add .a .b"),
    (" - ", "sub .a .b"),
    (" * ", "mul .a .b"),
    (" / ", "div .a .b"),
];

/// Other characters that are never valid outside of strings, and their replacements.
const STRANGE: [(&[char], &str); 6] = [
    (&['“', '”', '‘', '’', '„'], "strings need straight double quotes, as in \"text\""),
    (&['['], "write index .list 0 for an item, index .map \"key\" for a member"),
    (&['{'], "two braces are enough, as in {{ .name }}; dict \"key\" .value makes a map"),
    (&['#', '%'], "a comment is {{/* … */}}, and blocks are {{if .name}} … {{end}}"),
    (&['?'], "write {{if .a}}b{{else}}c{{end}}, or ternary \"b\" \"c\" .a"),
    (&[';'], "write two actions, each in its own {{ }}"),
];

/// Words that need an operand, and an example.
const BLOCKS: [(&str, &str, &str); 5] = [
    ("if", "test", "{{if .name}}"),
    ("else if", "test", "{{else if .name}}"),
    ("with", "set the dot to", "{{with .name}}"),
    ("else with", "set the dot to", "{{else with .name}}"),
    ("range", "iterate over", "{{range .list}}"),
];

/// Parts of other parser messages, and the advice.
const PARSER: [(&str, &str); 5] = [
    ("expects a string name", "write its name in double quotes, as in {{template \"name\" .}}"),
    ("outside a range", "declare one variable, as in {{ $a := .name }}"),
    ("too many declarations", "use at most two, as in {{range $index, $item := .list}}"),
    ("Comma", "separate arguments by spaces, not commas"),
    ("expected closing delimiter", "end the action with }} here, or remove what follows"),
];

/// Keywords of other languages, and their equivalents.
const WORDS: [(&str, &str); 13] = [
    ("endif", "write {{end}}"),
    ("endfor", "write {{end}}"),
    ("for", "write {{range .list}} … {{end}}"),
    ("foreach", "write {{range .list}} … {{end}}"),
    ("unless", "write {{if not .name}} … {{end}}"),
    ("elif", "write {{else if .name}}"),
    ("elseif", "write {{else if .name}}"),
    ("include", "write {{template \"name\" .}}"),
    ("True", "write true"),
    ("False", "write false"),
    ("None", "write nil"),
    ("null", "write nil"),
    ("this", "write a dot"),
];

/// The message to show instead of the parser's, about a line of the text.
pub(super) fn of_parser(text: &str, line: usize, message: &str) -> String {
    let hint = actions::in_line(text, line).find_map(of_action);
    hint.unwrap_or_else(|| {
        let known = PARSER.iter().find(|(part, _)| message.contains(part));
        match known {
            // These messages are about the parser itself.
            Some((_, hint)) if message.contains("closing delimiter") => (*hint).to_owned(),
            Some((_, hint)) => format!("{message}; {hint}"),
            None => format!("{message}; check what is between {{{{ and }}}}"),
        }
    })
}

/// The suggestion for an unknown function.
pub(super) fn of_unknown(name: &str, values: &Json) -> String {
    let hint = if values.get(name).is_some() {
        format!("did you mean .{name}?")
    } else if let Some((_, hint)) = WORDS.iter().find(|(word, _)| *word == name) {
        (*hint).to_owned()
    } else {
        format!(
            "check its name; a value has a dot before it (.{name}), text has quotes (\"{name}\")"
        )
    };
    format!("function {name:?} is not defined; {hint}")
}

fn of_action(inside: &str) -> Option<String> {
    let code = match without_strings(inside) {
        Ok(code) => code,
        Err(text) => {
            return Some(format!("'{text}' is not a string; use double quotes, as in \"{text}\""));
        }
    };
    let code = code.trim();
    of_gap(code)
        .or_else(|| {
            let (sign, write) = SIGNS.iter().find(|(sign, _)| code.contains(sign))?;
            Some(format!("there is no {} in templates; write {write}", sign.trim()))
        })
        .or_else(|| {
            let (signs, hint) = STRANGE.iter().find(|(signs, _)| code.contains(*signs))?;
            let sign = code.chars().find(|char| signs.contains(char))?;
            Some(format!("unexpected {sign}; {hint}"))
        })
        .or_else(|| of_dash(code))
        .or_else(|| of_parentheses(code))
}

/// The action with `""` for strings and `0` for characters; or a text in single quotes that is not
/// a character.
fn without_strings(inside: &str) -> Result<String, &str> {
    let (mut code, mut rest) = (String::with_capacity(inside.len()), inside);
    while let Some(start) = rest.find(['"', '`', '\'']) {
        code.push_str(&rest[..start]);
        let quote = &rest[start..=start];
        let after = &rest[start + 1..];
        let mut is_escaped = false;
        let end = after.find(|char: char| {
            let is_end = quote.contains(char) && !is_escaped;
            is_escaped = char == '\\' && quote != "`" && !is_escaped;
            is_end
        });
        let end = end.unwrap_or(after.len());
        let text = &after[..end];
        if quote == "'" && !text.starts_with('\\') && text.chars().count() != 1 {
            return Err(text);
        }
        code.push_str(if quote == "'" { "0" } else { "\"\"" });
        rest = after.get(end + 1..).unwrap_or_default();
    }
    code.push_str(rest);
    Ok(code)
}

/// The message if something is left out.
fn of_gap(code: &str) -> Option<String> {
    if code.is_empty() {
        return Some("there is nothing to print; write a value, as in {{ .name }}".into());
    }
    let words = code.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((_, what, example)) = BLOCKS.iter().find(|(block, ..)| *block == words) {
        return Some(format!("there is nothing to {what}; write {example}"));
    }
    if words.ends_with(":=") || words.ends_with(" =") {
        return Some("there is nothing to assign; write {{ $a := .name }}".into());
    }
    if words.contains("| |") || words.ends_with('|') && !words.ends_with("||") {
        let message = "a | must be followed by a function, as in \
             {{ .name | upper }}";
        return Some(message.into());
    }
    let is_first = words.starts_with('|') && !words.starts_with("||");
    is_first.then(|| "there is nothing before the |; write {{ .name | upper }}".into())
}

/// A field with a dash in its name.
fn of_dash(code: &str) -> Option<String> {
    let words = code.split(|char: char| char.is_whitespace() || "()|,".contains(char));
    let mut found = words.filter_map(|word| {
        let (before, after) = word.split_once('-')?;
        let (map, start) = before.rsplit_once('.')?;
        let (end, rest) = after.split_at(after.find('.').unwrap_or(after.len()));
        let map = if map.is_empty() { "." } else { map };
        let is_name = start.starts_with(|char: char| char.is_alphabetic() || char == '_');
        let index = format!("index {map} \"{start}-{end}\"");
        let is_alone = rest.is_empty() && word == code;
        let write =
            if is_alone { format!("{{{{ {index} }}}}") } else { format!("({index}){rest}") };
        is_name.then(|| format!("a name after a dot can't have a dash; write {write}"))
    });
    found.next()
}

fn of_parentheses(code: &str) -> Option<String> {
    let (open, closed) = (code.matches('(').count(), code.matches(')').count());
    match open.cmp(&closed) {
        std::cmp::Ordering::Greater => Some("a ( has no ); add it before the }}".into()),
        std::cmp::Ordering::Less => Some("a ) has no (; remove it, or add one before it".into()),
        std::cmp::Ordering::Equal if code.contains("()") => {
            Some("there is nothing between ( and ); remove them".into())
        }
        std::cmp::Ordering::Equal => None,
    }
}
