//! What tool servers offer to ask with: resources after `@`, and prompts after `/`.

use super::State;
use crate::protocol::attachment::{ResourceName, of_server};
use crate::task::server::{ServerPrompt, ServerResource};
use crate::tool::servers::Offers;
use crate::tui::input::{fuzzy, meanings, needs_quotes, quoted};
use crate::tui::text::clean;
use std::collections::BTreeMap;

/// Resources, and prompts, of a server that `/mcp` lists.
const LISTED_MAX: usize = 20;

/// Resources that are offered beside files.
const CANDIDATES_MAX: usize = 200;

/// What each server offers, as far as it was asked; or why it can't say.
pub(super) type OfOffers = BTreeMap<String, Result<Offers, String>>;

impl State {
    /// The prompts of servers that can be written after a slash.
    pub(super) fn server_prompts(&self) -> impl Iterator<Item = String> {
        let offers =
            self.offers.iter().filter_map(|(server, it)| Some((server, it.as_ref().ok()?)));
        let names = offers.flat_map(|(server, offers)| {
            offers.prompts.iter().map(move |prompt| format!("{server}:{}", prompt.name))
        });
        names.filter(|name| is_typed(name) && !name.contains(char::is_whitespace))
    }

    /// The server with which a word begins, and what stands after its name and a colon.
    pub(crate) fn of_server<'s>(&'s self, word: &'s str) -> Option<(&'s str, &'s str)> {
        of_server(word, self.server_names.iter().map(String::as_str))
    }

    /// The resource that a mention after `@` means. Punctuation at its end is part of an address that the server
    /// lists, and otherwise of the sentence.
    pub(crate) fn resource_of(&self, mention: &str) -> Option<ResourceName> {
        let named = |name: &str| {
            let (server, uri) = self.of_server(name)?;
            Some(ResourceName { server: server.to_owned(), uri: uri.to_owned() })
        };
        let is_listed = |name: &ResourceName| match self.offers.get(&name.server) {
            Some(Ok(offers)) => offers.resources.iter().any(|resource| resource.uri == name.uri),
            Some(Err(_)) | None => false,
        };
        let listed = meanings(mention).filter_map(named).find(is_listed);
        listed.or_else(|| meanings(mention).filter_map(named).last())
    }

    /// The resources that `part` after `@` may mean: those whose name begins with it, and then others, the best
    /// first.
    pub(crate) fn resources_like(&self, part: &str) -> (Vec<String>, Vec<String>) {
        let offers =
            self.offers.iter().filter_map(|(server, it)| Some((server, it.as_ref().ok()?)));
        let names = offers.flat_map(|(server, offers)| {
            offers.resources.iter().map(move |resource| format!("{server}:{}", resource.uri))
        });
        let (begun, others): (Vec<_>, Vec<_>) =
            names.filter(|name| is_typed(name)).partition(|name| name.starts_with(part));
        let others = others.into_iter().filter(|_| !part.is_empty());
        let mut others: Vec<_> =
            others.filter_map(|name| Some((fuzzy(part, &name)?, name))).collect();
        others.sort();
        let others = others.into_iter().map(|(_, name)| name);
        (begun.into_iter().take(CANDIDATES_MAX).collect(), others.take(CANDIDATES_MAX).collect())
    }

    /// The lines of `/mcp` about what a server offers.
    pub(super) fn offer_lines(&self, server: &str) -> Vec<String> {
        let offers = match self.offers.get(server) {
            None => return Vec::new(),
            Some(Err(why)) => return vec![format!("  {}", clean(why))],
            Some(Ok(offers)) => offers,
        };
        let resource = |it: &ServerResource| {
            let mention = format!("{server}:{}", it.uri);
            format!("  @{}  {}", quoted(&mention, needs_quotes(&mention)), it.name)
        };
        let prompt = |it: &ServerPrompt| {
            let arguments = it.arguments.iter().map(|argument| match argument.is_required {
                true => format!(" {}=…", argument.name),
                false => format!(" [{}=…]", argument.name),
            });
            let (name, arguments) = (&it.name, arguments.collect::<String>());
            let about = it.description.lines().next().unwrap_or_default();
            format!("  /{server}:{name}{arguments}  {about}")
        };
        let resources = listed(&offers.resources, "resources", resource);
        let prompts = listed(&offers.prompts, "prompts", prompt);
        let warnings = listed(&offers.warnings, "warnings", |warning| format!("  {warning}"));
        resources.chain(prompts).chain(warnings).collect()
    }
}

/// The lines of the first items, and how many more there are.
fn listed<'i, T>(
    items: &'i [T],
    what: &'static str,
    line: impl Fn(&T) -> String + 'i,
) -> impl Iterator<Item = String> + 'i {
    let more = items.len().saturating_sub(LISTED_MAX);
    let more = (more > 0).then(|| format!("  and {more} more {what}"));
    let lines = items.iter().take(LISTED_MAX).map(line);
    lines.map(|line| clean(&line).replace('\n', " ").trim_end().to_owned()).chain(more)
}

/// Whether a name can be typed, and does nothing to the terminal.
fn is_typed(name: &str) -> bool {
    !name.contains('\n') && clean(name) == *name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::server::{FilledPrompt, PromptArgument};
    use crate::tui::model::tests::Scene;
    use crate::tui::model::{Action, Event, Note, Outgoing, Piece, PromptSource};
    use crate::tui::terminal::keys::Key;

    fn offers() -> Offers {
        let resource = |uri: &str, name: &str| ServerResource {
            uri: uri.to_owned(),
            name: name.to_owned(),
            description: String::new(),
            media_type: String::new(),
        };
        let argument = |name: &str, is_required| PromptArgument {
            name: name.to_owned(),
            description: String::new(),
            is_required,
        };
        let prompt = ServerPrompt {
            name: "sum".to_owned(),
            description: "Sums \u{1b}[31mup.\nMore.".to_owned(),
            arguments: vec![argument("path", true), argument("style", false)],
        };
        let resources = [resource("note://1", "One"), resource("note://is it?", "Is it?")];
        Offers { resources: resources.into(), prompts: [prompt].into(), warnings: Vec::new() }
    }

    fn scene() -> Scene {
        let mut scene = Scene::new();
        scene.state.server_names = vec!["docs".to_owned(), "docs:old".to_owned()];
        scene.event(Event::Offered { server: "docs".to_owned(), offers: Ok(offers()) });
        scene
    }

    #[test]
    fn a_mention_means_a_resource_if_it_names_a_server() {
        let scene = scene();
        let of = |mention: &str| scene.state.resource_of(mention).map(|name| name.to_string());
        assert_eq!(of("docs:note://1").as_deref(), Some("docs:note://1"));
        assert_eq!(of("docs:note://1).").as_deref(), Some("docs:note://1"));
        assert_eq!(of("docs:note://is it?").as_deref(), Some("docs:note://is it?"));
        assert_eq!(of("docs:note://2?").as_deref(), Some("docs:note://2"), "it is not listed");
        for other in ["docs", "docs:", "other:note://1", "a.txt"] {
            assert_eq!(of(other), None, "{other}");
        }
        let old = scene.state.resource_of("docs:old:x").expect("a resource");
        assert_eq!((old.server.as_str(), old.uri.as_str()), ("docs:old", "x"));
    }

    #[test]
    fn resources_are_found_by_any_part_of_their_name() {
        let scene = scene();
        let of = |part: &str| scene.state.resources_like(part);
        assert_eq!(of("docs:note://1"), (vec!["docs:note://1".to_owned()], Vec::new()));
        assert_eq!(of("").0.len(), 2);
        assert_eq!(of("is it"), (Vec::new(), vec!["docs:note://is it?".to_owned()]));
    }

    #[test]
    fn the_prompts_of_servers_stand_among_the_commands_and_are_sent_as_their_server_makes_them() {
        let mut scene = scene();
        scene.write("/docs:s");
        let words = scene.state.candidates.as_ref().map(|found| found.words.clone());
        assert_eq!(words, Some(vec!["/docs:sum".to_owned()]));
        scene.key(Key::Tab);
        scene.write("a.txt");
        scene.key(Key::Enter);
        let line = "/docs:sum a.txt".to_owned();
        let expand = Action::Expand { line: line.clone(), joins: false };
        assert_eq!(scene.actions.last(), Some(&expand));
        let filled = FilledPrompt { text: "/quit @a.txt".to_owned(), attachments: Vec::new() };
        let prompt = Ok(filled.clone().into());
        scene.event(Event::Expanded { line: line.clone(), joins: false, prompt });
        let source = PromptSource::Line { line, attachments: Vec::new(), mentions: Vec::new() };
        let sent = scene.actions.iter().find_map(|action| {
            let Action::Request(Outgoing::Submit { prompt, source, .. }) = action else {
                return None;
            };
            Some((prompt, source))
        });
        assert_eq!(sent, Some((&filled.text, &source)), "it is no command, and attaches nothing");
    }

    #[test]
    fn what_servers_offer_is_listed_without_what_a_terminal_would_obey() {
        let mut scene = scene();
        let failed = Err("the MCP server `docs:old`: it \u{1b}[2J fails".to_owned());
        scene.event(Event::Offered { server: "docs:old".to_owned(), offers: failed });
        let mut half = offers();
        half.warnings.push("its templates can't be \u{1b}[31mlisted".to_owned());
        scene.event(Event::Offered { server: "docs".to_owned(), offers: Ok(half) });
        let lines = ["docs", "docs:old"].map(|server| scene.state.offer_lines(server));
        let expected = [
            "  @docs:note://1  One",
            "  @\"docs:note://is it?\"  Is it?",
            "  /docs:sum path=… [style=…]  Sums up.",
            "  its templates can't be listed",
        ];
        assert_eq!(lines[0], expected);
        assert!(!lines[1][0].contains('\u{1b}') && lines[1][0].contains("fails"), "{lines:?}");
        assert!(!scene.pieces.iter().any(|it| matches!(it, Piece::Note(Note::Error, _))));
    }
}
