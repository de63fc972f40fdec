//! Translates a regular expression from Go's syntax, <https://pkg.go.dev/regexp/syntax>, to that of the crate
//! `regex`, where `\d`, `\s`, `\w` and `\b` know Unicode, classes have operators such as `&&`, and `{` must begin a
//! repetition.

/// Greatest number in a repetition.
const REPEAT_MAX: u32 = 1000;

/// Names between `[:` and `:]`.
const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// The expression in the syntax of the crate.
///
/// # Errors
/// What Go does not accept.
pub(super) fn translated(source: &str) -> Result<String, String> {
    let mut scanner = Scanner { rest: source, out: String::with_capacity(source.len() + 16) };
    while let Some(char) = scanner.next() {
        scanner.item(char)?;
    }
    Ok(scanner.out)
}

struct Scanner<'s> {
    rest: &'s str,
    out: String,
}

/// What an escape stands for.
enum Escape {
    Char(char),
    /// A class, in the syntax of the crate.
    Class(String),
}

impl<'s> Scanner<'s> {
    fn next(&mut self) -> Option<char> {
        let char = self.rest.chars().next()?;
        self.rest = &self.rest[char.len_utf8()..];
        Some(char)
    }

    fn skip(&mut self, prefix: &str) -> bool {
        let rest = self.rest.strip_prefix(prefix);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Up to `end`, which is skipped; `None` if it is not there.
    fn until(&mut self, end: &str) -> Option<&'s str> {
        let (before, rest) = self.rest.split_once(end)?;
        self.rest = rest;
        Some(before)
    }

    /// What begins with `char`, outside classes.
    fn item(&mut self, char: char) -> Result<(), String> {
        match char {
            '[' => self.class()?,
            '(' => self.group()?,
            '{' => match repetition(self.rest)? {
                Some(length) => {
                    self.out.push('{');
                    self.out.push_str(&self.rest[..length]);
                    self.rest = &self.rest[length..];
                }
                None => push_literal(&mut self.out, '{'),
            },
            '.' | '^' | '$' | '|' | '*' | '+' | '?' | ')' => self.out.push(char),
            '\\' if self.skip("Q") => {
                let literal = self.until(r"\E").unwrap_or_else(|| std::mem::take(&mut self.rest));
                literal.chars().for_each(|char| push_literal(&mut self.out, char));
            }
            '\\' => match self.rest.chars().next() {
                Some(anchor @ ('A' | 'z')) => {
                    self.next();
                    self.out.extend(['\\', anchor]);
                }
                Some(border @ ('b' | 'B')) => {
                    self.next();
                    self.out.push_str(&format!(r"(?-u:\{border})"));
                }
                Some(_) | None => match self.escape()? {
                    Escape::Char(char) => push_literal(&mut self.out, char),
                    Escape::Class(class) => self.out.push_str(&class),
                },
            },
            char => push_literal(&mut self.out, char),
        }
        Ok(())
    }

    /// After a `(`: the flags or the name of a group are the same, but for flags that Go does not have.
    fn group(&mut self) -> Result<(), String> {
        self.out.push('(');
        if !self.rest.starts_with('?') {
            return Ok(());
        }
        let end = self.rest.find([':', ')', '>']).map_or(self.rest.len(), |end| end + 1);
        let (head, rest) = self.rest.split_at(end);
        let is_name = head.starts_with("?P<") || head.starts_with("?<");
        if !is_name && !head[1..].chars().all(|char| "imsU-:)".contains(char)) {
            return Err(format!("({head} is not a group of Go's syntax"));
        }
        self.out.push_str(head);
        self.rest = rest;
        Ok(())
    }

    /// After a `\`, within classes and outside.
    fn escape(&mut self) -> Result<Escape, String> {
        let Some(char) = self.next() else { return Err(r"it ends with a \".to_owned()) };
        Ok(Escape::Char(match char {
            'd' | 'D' => return Ok(perl(char == 'D', "0-9")),
            's' | 'S' => return Ok(perl(char == 'S', r"\t\n\x0C\r\x20")),
            'w' | 'W' => return Ok(perl(char == 'W', "0-9A-Za-z_")),
            'p' | 'P' => return self.property(char == 'P').map(Escape::Class),
            'a' => '\u{7}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'x' => self.hexadecimal()?,
            '0'..='7' => self.octal(char)?,
            char if char.is_ascii() && !char.is_ascii_alphanumeric() => char,
            char => return Err(format!(r"\{char} is not an escape of Go's syntax")),
        }))
    }

    /// `\pN`, `\p{Greek}` and `\p{^Greek}`.
    fn property(&mut self, is_negated: bool) -> Result<String, String> {
        let wrong = || "a \\p or \\P lacks the name of a class".to_owned();
        let letter = self.next().ok_or_else(wrong)?;
        let name = if letter == '{' {
            self.until("}").ok_or_else(wrong)?.to_owned()
        } else {
            letter.to_string()
        };
        let plain = name.strip_prefix('^');
        let sign = if is_negated == plain.is_some() { 'p' } else { 'P' };
        Ok(format!(r"\{sign}{{{}}}", plain.unwrap_or(&name)))
    }

    /// `\x41` or `\x{1F600}`, after the `x`.
    fn hexadecimal(&mut self) -> Result<char, String> {
        let digits = if self.skip("{") {
            self.until("}")
        } else {
            let digits = self.rest.get(..2);
            self.rest = digits.map_or(self.rest, |digits| &self.rest[digits.len()..]);
            digits
        };
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let number = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        number.and_then(char::from_u32).ok_or_else(|| r"a \x has no character's number".to_owned())
    }

    /// Up to three octal digits; a single one, but for 0, is a reference to a group.
    fn octal(&mut self, first: char) -> Result<char, String> {
        let is_octal = |char: &char| ('0'..='7').contains(char);
        let more = self.rest.chars().take(2).take_while(is_octal).count();
        if more == 0 && first != '0' {
            return Err(format!(r"\{first} refers to a group, which Go's syntax has not"));
        }
        let digits = format!("{first}{}", &self.rest[..more]);
        self.rest = &self.rest[more..];
        let number = u32::from_str_radix(&digits, 8).ok().and_then(char::from_u32);
        number.ok_or_else(|| format!(r"\{digits} is no character"))
    }

    /// After a `[`.
    fn class(&mut self) -> Result<(), String> {
        self.out.push('[');
        if self.skip("^") {
            self.out.push('^');
        }
        let mut is_first = true;
        while is_first || !self.rest.starts_with(']') {
            is_first = false;
            if self.rest.starts_with("[:") && self.posix()? {
                continue;
            }
            match self.class_item()? {
                Escape::Class(class) => self.out.push_str(&class),
                Escape::Char(low) => self.range(low)?,
            }
        }
        self.next();
        self.out.push(']');
        Ok(())
    }

    /// `[:alpha:]` or `[:^alpha:]`. False if no `:]` follows: then the bracket is a character.
    fn posix(&mut self) -> Result<bool, String> {
        let Some((name, rest)) = self.rest[2..].split_once(":]") else { return Ok(false) };
        if !POSIX.contains(&name.strip_prefix('^').unwrap_or(name)) {
            return Err(format!("[:{name}:] is not a class"));
        }
        self.out.push_str(&format!("[:{name}:]"));
        self.rest = rest;
        Ok(true)
    }

    fn class_item(&mut self) -> Result<Escape, String> {
        match self.next() {
            None => Err("a [ is not closed".to_owned()),
            Some('\\') => self.escape(),
            Some(char) => Ok(Escape::Char(char)),
        }
    }

    /// A character of a class, or the range that begins with it.
    fn range(&mut self, low: char) -> Result<(), String> {
        push_in_class(&mut self.out, low);
        if !self.rest.starts_with('-') || self.rest.starts_with("-]") || self.rest == "-" {
            return Ok(());
        }
        self.next();
        match self.class_item()? {
            Escape::Char(high) if low <= high => {
                self.out.push('-');
                push_in_class(&mut self.out, high);
                Ok(())
            }
            Escape::Char(_) | Escape::Class(_) => {
                Err(format!("in a class, the range from {low:?} has no end after it"))
            }
        }
    }
}

/// A class with ASCII characters only, or all others.
fn perl(is_negated: bool, inside: &str) -> Escape {
    Escape::Class(format!("[{}{inside}]", if is_negated { "^" } else { "" }))
}

/// The length up to the `}` of a repetition after its `{`; `None` if there is none.
fn repetition(text: &str) -> Result<Option<usize>, String> {
    let Some(end) = text.find('}') else { return Ok(None) };
    let (min, max) = match text[..end].split_once(',') {
        Some((min, max)) => (min, Some(max)),
        None => (&text[..end], None),
    };
    let max = max.filter(|max| !max.is_empty());
    let is_number = |digits: &str| {
        let is_padded = digits.len() > 1 && digits.starts_with('0');
        !digits.is_empty() && !is_padded && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    if !is_number(min) || !max.is_none_or(is_number) {
        return Ok(None);
    }
    let is_allowed = |digits: &str| digits.parse().is_ok_and(|number: u32| number <= REPEAT_MAX);
    if !is_allowed(min) || !max.is_none_or(is_allowed) {
        return Err(format!("a repetition has a number greater than {REPEAT_MAX}"));
    }
    Ok(Some(end + 1))
}

fn push_literal(out: &mut String, char: char) {
    if r"\.+*?()|[]{}^$#&-~".contains(char) {
        out.push('\\');
    }
    out.push(char);
}

fn push_in_class(out: &mut String, char: char) {
    if char.is_ascii() && !char.is_ascii_alphanumeric() {
        out.push_str(&format!(r"\x{:02X}", u32::from(char)));
    } else {
        out.push(char);
    }
}
