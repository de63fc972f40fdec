//! Error messages for JSON texts, as the library's messages are written for programmers.

use super::DEPTH_MAX;

/// Prefixes of the library's messages, and the messages that replace them.
const MEANINGS: [(&str, &str); 15] = [
    ("EOF while parsing a list", "the text ends inside a list: a ] is missing"),
    ("EOF while parsing an object", "the text ends inside an object: a } is missing"),
    ("EOF while parsing a string", "the text ends inside a string: a \" is missing"),
    ("EOF while parsing a value", "the text ends where a value is expected"),
    ("expected ident", VALUE),
    ("expected value", VALUE),
    ("expected `\"`", "a name in double quotes is missing"),
    ("key must be a string", "the name of a member must be in double quotes"),
    ("trailing comma", "no value follows a comma"),
    ("trailing characters", "more text follows after the value"),
    ("invalid escape", "a \\ in a string is not a valid escape; write \\\\"),
    ("control character", "a string contains a control character; write a line feed as \\n"),
    ("lone leading surrogate", HALF),
    ("unexpected end of hex escape", HALF),
    ("invalid unicode code point", "a string has bytes that are not UTF-8"),
];

const VALUE: &str = "a value is missing, or is text without double quotes";

const HALF: &str = "a string has half of a character, a \\u escape that needs a second one";

/// Rewrites the library's `message`, without the place.
pub(crate) fn plain(message: &str) -> String {
    if message.starts_with("recursion limit exceeded") {
        return format!("more than {DEPTH_MAX} lists and objects are nested");
    }
    if let Some((_, meaning)) = MEANINGS.iter().find(|(words, _)| message.starts_with(words)) {
        return (*meaning).to_owned();
    }
    let of_type = ["invalid type: ", "invalid value: "];
    let of_type = of_type.iter().find_map(|words| message.strip_prefix(words));
    match of_type.and_then(|rest| rest.rsplit_once(", expected ")) {
        Some((found, expected)) => format!("found {}, expected {}", shown(found), wanted(expected)),
        None => message.to_owned(),
    }
}

/// Describes a value of the wrong type.
fn shown(found: &str) -> String {
    match found {
        "sequence" => return "a list".to_owned(),
        "map" => return "an object".to_owned(),
        _ => {}
    }
    let number = found.strip_prefix("integer ").or(found.strip_prefix("floating point "));
    if let Some(number) = number {
        return format!("the number {}", number.trim_matches('`'));
    }
    if let Some(truth) = found.strip_prefix("boolean ") {
        return truth.trim_matches('`').to_owned();
    }
    found.strip_prefix("string ").map_or_else(|| found.to_owned(), |text| format!("text {text}"))
}

fn wanted(expected: &str) -> &str {
    match expected {
        "a map" => "an object",
        "a sequence" => "a list",
        name if name.starts_with("struct ") => "an object",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Error;
    use super::VALUE;
    use serde::de::DeserializeOwned;
    use std::collections::BTreeMap;

    fn check<T: DeserializeOwned>(text: &str, expected: &str) {
        let Err(error) = serde_json::from_str::<T>(text) else { panic!("{text} can be read") };
        let plain = Error::from(error).to_string();
        assert!(plain.starts_with(expected), "{text}: {plain}");
    }

    #[test]
    fn a_fault_is_named_in_plain_words() {
        type Any = serde_json::Value;
        check::<Any>("nope", VALUE);
        check::<Any>("Here", VALUE);
        check::<Any>("", "the text ends where");
        check::<Any>("[1", "the text ends inside a list");
        check::<Any>("{\"a\":1", "the text ends inside an object");
        check::<Any>("\"a", "the text ends inside a string");
        check::<Any>("{a:1}", "the name of a member");
        check::<Any>("[1,]", "no value follows");
        check::<Any>("1 2", "more text follows");
        check::<Any>("\"\\x\"", "a \\ in a string");
        check::<Any>("\"\n\"", "a string contains a control character");
        check::<Any>("\"\\ud800\"", "a string has half");
        let error = serde_json::from_slice::<Any>(b"\"\xff\"").expect_err("no UTF-8");
        assert!(
            Error::from(error).to_string().starts_with("a string has bytes that are not UTF-8")
        );
        check::<Any>(&"[".repeat(200), "more than 127 lists and objects");
        check::<String>("[]", "found a list, expected a string");
        check::<String>("5", "found the number 5, expected a string");
        check::<String>("true", "found true, expected a string");
        check::<String>("null", "found null, expected a string");
        check::<Vec<u8>>("{}", "found an object, expected a list");
        check::<BTreeMap<String, u8>>("\"a\"", "found text \"a\", expected an object");
    }
}
