//! The text of an error for a person. The client libraries and the plugins of editors make it by this rule, too.

/// The message of an error, and in parentheses what its detail says besides.
pub(crate) fn with_detail(message: &str, detail: &str) -> String {
    let more = additions(message, detail).map(|text| format!(" ({text})")).unwrap_or_default();
    format!("{message}{more}")
}

/// What `message` does not hold of `detail`. After the class of a failure these are parts; a class alone adds nothing.
/// A detail without a class is one reason, which is shown whole.
fn additions(message: &str, detail: &str) -> Option<String> {
    let message = message.to_lowercase();
    let is_new = |part: &&str| !part.is_empty() && !message.contains(&part.to_lowercase());
    let Some((class, rest)) = split_class(detail) else {
        return Some(detail.trim()).filter(is_new).map(str::to_owned);
    };
    let parts: Vec<_> = rest.split(": ").map(str::trim).filter(is_new).collect();
    (!parts.is_empty()).then(|| format!("{class}: {}", parts.join(": ")))
}

/// The class that `detail` begins with, and the rest.
fn split_class(detail: &str) -> Option<(&str, &str)> {
    let is_of_class = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    let is_class = |word: &str| !word.is_empty() && word.bytes().all(is_of_class);
    detail.split_once(':').filter(|(class, _)| is_class(class))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_reads_nothing_twice() {
        let check = |message, detail, expected: Option<&str>| {
            assert_eq!(additions(message, detail).as_deref(), expected, "{detail}");
        };
        check("it failed", "", None);
        check("it failed", "config:", None);
        check("it failed", "It failed", None);
        check("it failed: wrong key", "auth: status 401: Wrong key", Some("auth: status 401"));
        check("it failed (status 401): wrong", "auth: status 401: wrong", None);
        check("it failed", "line 1: not JSON (byte 1)", Some("line 1: not JSON (byte 1)"));
        check("it failed", "no such file", Some("no such file"));
        // Its name is a part of the message.
        let reason = "no profile \"x\"; there are: fail";
        check("it failed", reason, Some(reason));
    }
}
