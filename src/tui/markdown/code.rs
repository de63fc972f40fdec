//! Colours of code, line by line: one pass over each line by a table of languages. The only state between
//! lines is what a line ends in, such as a comment, so the cost of a line does not depend on those before it.

use super::super::text::clean;
use super::languages::{self, Language, Quote, QuoteKind};
use super::{CodeSpan, Kind, Token};

/// Reads the lines of one block of code.
#[derive(Clone, Debug)]
pub(super) struct Highlighter {
    language: Option<&'static Language>,
    state: State,
}

/// What the next line begins in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Code,
    Comment,
    Text(&'static Quote),
}

/// The name of the language in what a block says after its fence, which is the first word, and the rest.
fn language_and_rest(info: &str) -> (&str, &str) {
    let end = info.find(|it: char| it.is_whitespace() || ",{:;".contains(it));
    info.split_at(end.unwrap_or(info.len()))
}

/// What a block says after its fence besides the language.
pub(super) fn caption(info: &str) -> Option<Kind> {
    let rest = language_and_rest(info).1;
    let rest = rest.trim_start_matches(|it: char| it.is_whitespace() || ",:;".contains(it));
    let rest = clean(rest).replace('\n', " ");
    let rest = rest.trim();
    (!rest.is_empty()).then(|| Kind::CodeCaption(rest.to_owned()))
}

impl Highlighter {
    /// For a block that says `info` after its fence.
    pub(super) fn new(info: &str) -> Highlighter {
        let (name, _) = language_and_rest(info);
        Highlighter { language: languages::find(name), state: State::default() }
    }

    /// The next lines. What a terminal would obey is removed.
    pub(super) fn lines(&mut self, text: &str) -> Vec<Vec<CodeSpan>> {
        clean(text).split('\n').map(|line| self.line(line)).collect()
    }

    fn line(&mut self, line: &str) -> Vec<CodeSpan> {
        let mut spans = Spans::default();
        match self.language {
            None => spans.push(line, Token::Plain),
            Some(language) if language.is_diff => spans.push(line, diff(line)),
            Some(language) => {
                let mut rest = line;
                while !rest.is_empty() {
                    let (length, token) = self.token(language, line, rest);
                    let (text, after) = rest.split_at(length.max(1).min(rest.len()));
                    spans.push(text, token);
                    rest = after;
                }
            }
        }
        spans.0
    }

    /// The length and kind of what `rest`, the end of `line`, begins with.
    fn token(&mut self, language: &'static Language, line: &str, rest: &str) -> (usize, Token) {
        match self.state {
            State::Comment => return (self.comment(language, rest, 0), Token::Comment),
            State::Text(quote) => return (self.text(quote, rest, 0), Token::Text),
            State::Code => {}
        }
        let before = line[..line.len() - rest.len()].chars().next_back();
        if let Some((open, _)) = language.block.filter(|(open, _)| rest.starts_with(open)) {
            return (self.comment(language, rest, open.len()), Token::Comment);
        }
        let begins_word = before.is_none_or(|it| !is_word(it));
        let comments = |it: &&&str| rest.starts_with(**it) && (**it != "#" || begins_word);
        if language.comments.iter().find(comments).is_some() {
            return (rest.len(), Token::Comment);
        }
        if let Some(length) = self.quoted(language, before, rest) {
            let is_key =
                is_followed_by(language.keys, &rest[length..]) && self.state == State::Code;
            return (length, if is_key { Token::Name } else { Token::Text });
        }
        let first = rest.chars().next().unwrap_or(' ');
        if first.is_ascii_digit() {
            let end = rest.find(|it: char| !is_word(it) && it != '.');
            return (end.unwrap_or(rest.len()), Token::Number);
        }
        if is_word(first) || language.extra.contains(first) {
            let end = rest.find(|it: char| !is_word(it) && !language.extra.contains(it));
            let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
            return (word.len(), word_token(language, before, word, after));
        }
        (first.len_utf8(), Token::Plain)
    }

    /// The length of the comment that continues after `from`.
    fn comment(&mut self, language: &Language, rest: &str, from: usize) -> usize {
        let close = language.block.map_or("", |(_, close)| close);
        match rest[from..].find(close) {
            Some(at) => {
                self.state = State::Code;
                from + at + close.len()
            }
            None => {
                self.state = State::Comment;
                rest.len()
            }
        }
    }

    /// The length of the text in quotes that `rest` begins with.
    fn quoted(&mut self, language: &Language, before: Option<char>, rest: &str) -> Option<usize> {
        let quote = language.quotes.iter().find(|quote| rest.starts_with(quote.open))?;
        let from = quote.open.len();
        match quote.kind {
            QuoteKind::AfterEquals if before != Some('=') => None,
            QuoteKind::Closed if before.is_some_and(is_word) => None,
            QuoteKind::Closed => close_of(quote, rest, from),
            QuoteKind::Character => close_of(quote, rest, from).filter(|end| {
                let inside = &rest[from..end - quote.close.len()];
                inside.starts_with('\\') || inside.chars().count() == 1
            }),
            QuoteKind::Line | QuoteKind::Lines | QuoteKind::AfterEquals => {
                Some(self.text(quote, rest, from))
            }
        }
    }

    /// The length of the text in `quote` that continues after `from`.
    fn text(&mut self, quote: &'static Quote, rest: &str, from: usize) -> usize {
        let close = close_of(quote, rest, from);
        self.state = match (close, quote.kind) {
            (None, QuoteKind::Lines) => State::Text(quote),
            (None | Some(_), _) => State::Code,
        };
        close.unwrap_or(rest.len())
    }
}

/// The end of the text in `quote` that continues after `from`.
fn close_of(quote: &Quote, rest: &str, from: usize) -> Option<usize> {
    let mut escaped = false;
    for (at, character) in rest.char_indices().skip_while(|(at, _)| *at < from) {
        if escaped {
            escaped = false;
        } else if character == '\\' && quote.escapes {
            escaped = true;
        } else if rest[at..].starts_with(quote.close) {
            return Some(at + quote.close.len());
        }
    }
    None
}

/// Classifies `word`, between `before` and `after`.
fn word_token(language: &Language, before: Option<char>, word: &str, after: &str) -> Token {
    let is_in = |list: &str| match language.folds {
        true => list.split(' ').any(|it| it.eq_ignore_ascii_case(word)),
        false => list.split(' ').any(|it| it == word),
    };
    if language.is_markup {
        return match before {
            Some('<' | '/') => Token::Keyword,
            _ if after.starts_with('=') => Token::Name,
            _ => Token::Plain,
        };
    }
    if is_followed_by(language.keys, after) || word.starts_with(['$', '@']) {
        Token::Name
    } else if is_in(language.keywords) {
        Token::Keyword
    } else if is_in(languages::CONSTANTS) {
        Token::Number
    } else if after.starts_with('(') || after.starts_with("!(") {
        Token::Function
    } else if language.has_types && word.starts_with(char::is_uppercase) {
        Token::Type
    } else {
        Token::Plain
    }
}

/// Whether the next character that is no space is one of `keys`.
fn is_followed_by(keys: &str, after: &str) -> bool {
    after.trim_start().chars().next().is_some_and(|it| keys.contains(it))
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn diff(line: &str) -> Token {
    if line.starts_with("@@") {
        Token::Function
    } else if ["diff ", "index ", "+++", "---"].iter().any(|it| line.starts_with(it)) {
        Token::Comment
    } else if line.starts_with('+') {
        Token::Inserted
    } else if line.starts_with('-') {
        Token::Deleted
    } else {
        Token::Plain
    }
}

/// Spans of a line; neighbours of one kind are one.
#[derive(Default)]
struct Spans(Vec<CodeSpan>);

impl Spans {
    fn push(&mut self, text: &str, token: Token) {
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some(last) if last.token == token => last.text.push_str(text),
            _ => self.0.push(CodeSpan { text: text.to_owned(), token }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The lines with the kind of each part that is not plain: `k[fn]`.
    fn marked(language: &str, code: &str) -> String {
        let letter = |token| match token {
            Token::Plain => "",
            Token::Keyword => "k",
            Token::Type => "t",
            Token::Function => "f",
            Token::Text => "s",
            Token::Number => "n",
            Token::Comment => "c",
            Token::Name => "v",
            Token::Inserted => "+",
            Token::Deleted => "-",
        };
        let show = |span: CodeSpan| match letter(span.token) {
            "" => span.text,
            letter => format!("{letter}[{}]", span.text),
        };
        let lines = Highlighter::new(language).lines(code).into_iter();
        let lines = lines.map(|line| line.into_iter().map(show).collect::<String>());
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn parts_of_code_are_told_apart() {
        let rows = [
            (
                "rust",
                "fn f<'a>(x: &'a str) -> Option<char> { Some('x') }",
                "k[fn] f<'a>(x: &'a str) -> t[Option]<char> { f[Some](s['x']) }",
            ),
            (
                "rs",
                "let x = \"a\\\"b\"; // note\n/* a\nb */ println!(\"{x}\")",
                "k[let] x = s[\"a\\\"b\"]; c[// note]\nc[/* a]\nc[b */] f[println]!(s[\"{x}\"])",
            ),
            (
                "python",
                "def f(x):\n    \"\"\"Doc\n    string\"\"\"\n    return x + 1.5  # sum",
                "k[def] f[f](x):\n    s[\"\"\"Doc]\ns[    string\"\"\"]\n    k[return] x + n[1.5]  c[# sum]",
            ),
            ("ts", "const a: string = `x\n${y}`;", "k[const] a: string = s[`x]\ns[${y}`];"),
            (
                "bash",
                "echo \"$HOME\" # it's\nif [ -n $x ]; then",
                "echo s[\"$HOME\"] c[# it's]\nk[if] [ -n v[$x] ]; k[then]",
            ),
            ("json", "{\"a\": [1, true, \"b\"]}", "{v[\"a\"]: [n[1], n[true], s[\"b\"]]}"),
            ("yaml", "key: value # note\n- it's", "v[key]: value c[# note]\n- it's"),
            ("toml", "[a]\nb = \"c\"", "[a]\nv[b] = s[\"c\"]"),
            (
                "sql",
                "select A from t where x = 'it''s'",
                "k[select] A k[from] t k[where] x = s['it''s']",
            ),
            ("html", "<a href=\"x\">don't</a>", "<k[a] v[href]=s[\"x\"]>don't</k[a]>"),
            ("diff", "+a\n-b\n c\n@@ 1 @@", "+[+a]\n-[-b]\n c\nf[@@ 1 @@]"),
            ("klingon", "if \"x\"", "if \"x\""),
            ("", "if", "if"),
            ("rust,ignore", "if", "k[if]"),
        ];
        for (language, code, expected) in rows {
            assert_eq!(marked(language, code), expected, "{language}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_lost(
            name in proptest::sample::select(languages::all_names()),
            code in "[a-z\"'`#/*\\\\<>=!{}()$@:; \n日é-]{0,40}|\\PC{0,30}",
        ) {
            let lines = Highlighter::new(name).lines(&code);
            let lines: Vec<String> =
                lines.iter().map(|line| line.iter().map(|span| span.text.as_str()).collect()).collect();
            prop_assert_eq!(lines.join("\n"), clean(&code));
        }
    }
}
