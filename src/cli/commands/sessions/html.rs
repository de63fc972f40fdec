//! A conversation as a page: Markdown is rendered, and nothing that was said becomes markup, runs, or is
//! loaded. Pure.

use super::message::{Said, summarized};
use super::words::session_words;
use crate::store::Conversation;
use pulldown_cmark::{CowStr, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd, html};

/// The style of the page, for light and for dark screens.
const STYLE: &str = include_str!("page.css");

/// What the addresses of links begin with. Others could run something, or mean something else on the
/// reader's machine.
const SCHEMES: [&str; 3] = ["http://", "https://", "mailto:"];

/// The page of a conversation. It loads nothing and runs nothing, and tells the browser so.
pub(super) fn html(found: &Conversation) -> String {
    let title = escaped(found.session.as_str());
    let mut page = format!(
        "<!DOCTYPE html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src \
         'unsafe-inline'\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    );
    let (turns, totals) = (found.summaries.turns().len(), found.summaries.totals());
    if turns > 0 {
        page += &note(&session_words(turns, totals));
    }
    summarized(found).iter().for_each(|said| page += &part(said));
    page + "</body>\n</html>\n"
}

fn part(said: &Said) -> String {
    match said {
        Said::Message { role, text, files, mark } => message(role, text, files, mark.as_deref()),
        Said::Ended(words) | Said::Summary(words) => note(words),
        Said::Call { tool, input } => folded("Call", tool, input),
        Said::Result { tool, text, is_error: false } => folded("Result", tool, text),
        Said::Result { tool, text, is_error: true } => folded("Error", tool, text),
    }
}

/// What a person wrote is shown as it is; what a model wrote is Markdown.
fn message(role: &str, text: &str, files: &[String], mark: Option<&str>) -> String {
    let name = escaped(role_name(role));
    let shown = match role {
        "assistant" | "thinking" => rendered(text),
        _ => format!("<div class=\"plain\">{}</div>\n", escaped(text)),
    };
    let files: String = files.iter().map(|file| note(&format!("file: {file}"))).collect();
    let notes = files + &mark.map_or_else(String::new, note);
    match role {
        "thinking" => {
            format!("<details dir=\"auto\">\n<summary>{name}</summary>\n{shown}{notes}</details>\n")
        }
        "user" => format!(
            "<section class=\"user\" dir=\"auto\">\n<h2>{name}</h2>\n{shown}{notes}</section>\n"
        ),
        _ => format!("<section dir=\"auto\">\n<h2>{name}</h2>\n{shown}{notes}</section>\n"),
    }
}

/// What a program wrote, behind its name.
fn folded(what: &str, tool: &str, text: &str) -> String {
    let (tool, text) = (escaped(tool), escaped(text));
    format!("<details>\n<summary>{what} of {tool}</summary>\n<pre>{text}</pre>\n</details>\n")
}

fn note(words: &str) -> String {
    format!("<p class=\"note\">{}</p>\n", escaped(words))
}

/// The HTML of `markdown`.
fn rendered(markdown: &str) -> String {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut tame = Tame::default();
    let events = Parser::new_ext(markdown, options).filter_map(|event| tame.event(event));
    let mut page = String::with_capacity(markdown.len() + markdown.len() / 4);
    html::push_html(&mut page, events);
    page
}

/// Turns what could load, run or be markup into text.
#[derive(Debug, Default)]
struct Tame {
    /// The links and images that are open, and whether each is a link of the page.
    links: Vec<bool>,
}

impl Tame {
    fn event<'a>(&mut self, event: Event<'a>) -> Option<Event<'a>> {
        Some(match event {
            Event::Start(Tag::HtmlBlock) => Event::Html("<pre>".into()),
            Event::End(TagEnd::HtmlBlock) => Event::Html("</pre>\n".into()),
            Event::Html(html) | Event::InlineHtml(html) => Event::Text(html),
            // Below the headings of the page.
            Event::Start(Tag::Heading { level, .. }) => {
                let (id, classes, attrs) = Default::default();
                Event::Start(Tag::Heading { level: lowered(level), id, classes, attrs })
            }
            Event::End(TagEnd::Heading(level)) => Event::End(TagEnd::Heading(lowered(level))),
            Event::Start(Tag::Link { link_type, dest_url, .. }) => {
                return self.open(link_type, dest_url);
            }
            // It would have to be loaded.
            Event::Start(Tag::Image { dest_url, .. }) => {
                return self.open(LinkType::Inline, dest_url);
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                return self.links.pop()?.then_some(Event::End(TagEnd::Link));
            }
            event @ (Event::Start(_)
            | Event::End(_)
            | Event::Text(_)
            | Event::Code(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::FootnoteReference(_)
            | Event::SoftBreak
            | Event::HardBreak
            | Event::Rule
            | Event::TaskListMarker(_)) => event,
        })
    }

    fn open<'a>(&mut self, link_type: LinkType, dest_url: CowStr<'a>) -> Option<Event<'a>> {
        let begins = |scheme: &str| {
            let start = dest_url.get(..scheme.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        };
        let is_known = link_type == LinkType::Email || SCHEMES.into_iter().any(begins);
        // An image in a link is a part of it.
        let is_link = is_known && !self.links.contains(&true);
        self.links.push(is_link);
        let (title, id) = ("".into(), "".into());
        is_link.then_some(Event::Start(Tag::Link { link_type, dest_url, title, id }))
    }
}

fn lowered(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H3,
        HeadingLevel::H2 => HeadingLevel::H4,
        HeadingLevel::H3 => HeadingLevel::H5,
        HeadingLevel::H4 | HeadingLevel::H5 | HeadingLevel::H6 => HeadingLevel::H6,
    }
}

/// The name of a role for people.
pub(super) fn role_name(role: &str) -> &str {
    match role {
        "user" => "User",
        "assistant" => "Assistant",
        "thinking" => "Reasoning",
        "warning" => "Warning",
        "error" => "Error",
        other => other,
    }
}

/// `text` without characters that mean something in HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_no_markup() {
        assert_eq!(escaped("<b a=\"&\">"), "&lt;b a=&quot;&amp;&quot;&gt;");
        let folded = folded("Call", "<i>", "</pre><script>");
        assert!(!folded.contains("<i>") && !folded.contains("<script>"), "{folded}");
        let code = "<pre><code class=\"language-&quot;&gt;&lt;x&gt;\">&lt;a&gt;\n</code></pre>\n";
        for (markdown, expected) in [
            ("a *b* `<c>`", "<p>a <em>b</em> <code>&lt;c&gt;</code></p>\n"),
            ("# a", "<h3>a</h3>\n"),
            ("a <b onclick=x>", "<p>a &lt;b onclick=x&gt;</p>\n"),
            ("<script>\nx()\n</script>", "<pre>&lt;script&gt;\nx()\n&lt;/script&gt;</pre>\n"),
            ("```\\\"><x>\n<a>\n```", code),
        ] {
            assert_eq!(rendered(markdown), expected, "{markdown}");
        }
    }

    #[test]
    fn a_link_leads_to_the_web_and_an_image_is_one() {
        for (markdown, expected) in [
            ("[a](https://b.c)", "<a href=\"https://b.c\">a</a>"),
            ("[a](HTTP://b.c \"d\")", "<a href=\"HTTP://b.c\">a</a>"),
            ("<a@b.c>", "<a href=\"mailto:a@b.c\">a@b.c</a>"),
            ("![a](https://b.c/d.png)", "<a href=\"https://b.c/d.png\">a</a>"),
            ("[![a](https://b.c/d.png)](https://b.c)", "<a href=\"https://b.c\">a</a>"),
            ("[![a](https://b.c/d.png)](file:///e)", "<a href=\"https://b.c/d.png\">a</a>"),
            ("[a](javascript:b)", "a"),
            ("[a](JaVaScRiPt:b)", "a"),
            ("[a](data:text/html,b) ![a](data:image/png,b) ![a](b.png)", "a a a"),
            ("[a](//b.c)", "a"),
        ] {
            assert_eq!(rendered(markdown), format!("<p>{expected}</p>\n"), "{markdown}");
        }
    }
}
