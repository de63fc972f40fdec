//! Changes of the end of the conversation: the last turn is dropped, answered again, or asked in other
//! words.

use super::{Action, Note, Outgoing, Piece, State};
use crate::conversation::ui::{FIRST_PROMPT, user_message_id};
use crate::protocol::command::Edit;
use crate::protocol::constants::code;
use crate::protocol::proto::chat::ChatAttachment;
use crate::protocol::proto::rpc::ErrorFrame;
use crate::protocol::proto::session::TurnDropped;
use crate::tui::input::{meanings, mentions};
use crate::tui::text::clean;
use std::path::Path;

/// Why nothing else begins now.
pub(super) const STILL_ANSWERS: &str = "the model still answers; stop it with Esc first";

/// A prompt of the conversation.
#[derive(Clone, Debug)]
pub(super) struct AcceptedPrompt {
    pub(super) message_id: String,
    pub(super) text: String,
    /// Its attachments, by id and file name.
    attachments: Vec<(String, String)>,
    /// Entries of the log before it.
    log_len: usize,
}

impl AcceptedPrompt {
    /// Whether it began a turn. Others have joined one.
    pub(super) fn is_first(&self) -> bool {
        self.message_id.ends_with(&user_message_id("", FIRST_PROMPT))
    }

    /// The ids of attachments that this text mentions after `@` and `text` does not.
    fn removed(&self, text: &str) -> Vec<String> {
        let kept = mentions(text);
        let mut attachments: Vec<_> = self.attachments.iter().collect();
        let mut removed = Vec::new();
        for mention in mentions(&self.text) {
            let named = |path| Path::new(path).file_name().unwrap_or_default().to_string_lossy();
            // A resource has the name that stands after its server.
            let is_resource = |path: &str, name: &str| {
                path.strip_suffix(name).is_some_and(|server| server.ends_with(':'))
            };
            let place = |path| {
                let is_it = |(_, other): &(String, String)| {
                    *other == named(path) || is_resource(path, other)
                };
                attachments.iter().position(|it| is_it(it))
            };
            let Some(at) = meanings(&mention).find_map(place) else { continue };
            let (id, _) = attachments.remove(at);
            if !kept.iter().any(|kept| bare(kept) == bare(&mention)) {
                removed.push(id.clone());
            }
        }
        removed
    }

    /// The files that `text` mentions after `@` and this text does not.
    fn added(&self, text: &str) -> Vec<String> {
        let before = mentions(&self.text);
        let is_new = |mention: &String| before.iter().all(|other| bare(other) != bare(mention));
        mentions(text).into_iter().filter(is_new).collect()
    }
}

/// A mention without the punctuation of the sentence: another sentence may mention the same file.
fn bare(mention: &str) -> &str {
    meanings(mention).last().unwrap_or_default()
}

impl State {
    /// Records a prompt that was accepted.
    pub(super) fn keep_prompt(
        &mut self,
        message_id: String,
        text: &str,
        attachments: &[ChatAttachment],
    ) {
        let log_len = self.log.len();
        let attachments = attachments.iter();
        let attachments = attachments.map(|it| (it.attachment_id.clone(), it.filename.clone()));
        let attachments = attachments.collect();
        self.prompts.push(AcceptedPrompt {
            message_id,
            text: text.to_owned(),
            attachments,
            log_len,
        });
        self.log.prompt(text);
    }

    /// Why the end of the conversation can't be changed or copied now.
    pub(super) fn why_busy(&self) -> Option<&'static str> {
        let opening = "another conversation is being opened; wait for it first";
        let why = self.is_opening.then_some(opening);
        why.or(self.is_busy().then_some(STILL_ANSWERS))
    }

    /// Whether the end of the conversation can be changed; else the person sees why not.
    fn can_change_end(&mut self) -> bool {
        let nothing = "nothing was asked yet, so there is nothing to change";
        let why = self.why_busy().or(self.prompts.is_empty().then_some(nothing));
        if let Some(why) = why {
            self.note(Note::Error, why.to_owned());
        }
        why.is_none()
    }

    /// `/undo`: the last `turns` turns are dropped.
    pub(super) fn undo(&mut self, turns: usize) -> Vec<Action> {
        if !self.can_change_end() {
            return Vec::new();
        }
        let known = self.prompts.iter().filter(|asked| asked.is_first()).count();
        if turns > known.max(1) {
            let text = match known {
                1 => {
                    "the conversation has 1 turn, so nothing was dropped; /undo drops it".to_owned()
                }
                _ => format!(
                    "the conversation has {known} turns, so nothing was dropped; /undo {known} drops \
                     all of them"
                ),
            };
            self.note(Note::Error, text);
            return Vec::new();
        }
        let drop = || Action::Request(Outgoing::Edit(Edit::DropLastTurn));
        std::iter::repeat_with(drop).take(turns).collect()
    }

    /// `/retry`.
    pub(super) fn change_end(&mut self, edit: Edit) -> Vec<Action> {
        if !self.can_change_end() {
            return Vec::new();
        }
        vec![Action::Request(Outgoing::Edit(edit))]
    }

    /// `/edit`: `text` replaces the last prompt, or the person writes what does.
    pub(super) fn edit_prompt(&mut self, text: Option<String>) -> Vec<Action> {
        if !self.can_change_end() {
            return Vec::new();
        }
        let Some(last) = self.last_asked().cloned() else {
            let why = "the prompt is from before this conversation and can't be edited";
            self.note(Note::Error, why.to_owned());
            return Vec::new();
        };
        match text {
            Some(text) => return self.replace(last.message_id, text),
            None if self.is_plain() => {
                let text = format!(
                    "write the new prompt after the command, as in /edit TEXT; the last prompt is: {}",
                    last.text
                );
                self.note(Note::Information, text);
            }
            None => {
                self.write_again(self.line_of(&last.text));
                self.edits = Some(last.message_id);
            }
        }
        Vec::new()
    }

    fn last_asked(&self) -> Option<&AcceptedPrompt> {
        self.prompts.iter().rev().find(|asked| asked.is_first())
    }

    /// The message that `/edit` replaces.
    pub(super) fn last_message_id(&self) -> Option<&str> {
        self.last_asked().map(|asked| asked.message_id.as_str())
    }

    /// The prompt that was accepted last, if something was attached to it.
    pub(super) fn last_with_attachments(&self) -> Option<String> {
        let last = self.prompts.last().filter(|asked| !asked.attachments.is_empty())?;
        Some(last.text.clone())
    }

    /// The files that `text` mentions after `@` and the message that it replaces, if any, does not.
    pub(super) fn newly_mentioned(&self, message_id: Option<&str>, text: &str) -> Vec<String> {
        let is_replaced = |asked: &&AcceptedPrompt| message_id == Some(asked.message_id.as_str());
        let asked = self.prompts.iter().find(is_replaced);
        asked.map_or_else(|| mentions(text), |asked| asked.added(text))
    }

    /// Asks `text` in place of the prompt `message_id`.
    pub(super) fn replace(&mut self, message_id: String, text: String) -> Vec<Action> {
        let asked = self.prompts.iter().find(|asked| asked.message_id == message_id);
        let removed = asked.map(|asked| asked.removed(&text)).unwrap_or_default();
        let mentions = self.newly_mentioned(Some(&message_id), &text);
        let line = self.line_of(&text);
        let remember = self.remember(&line);
        let replace = Outgoing::Replace { message_id, prompt: text, removed, mentions };
        let mut actions = vec![Action::Request(replace)];
        actions.extend(remember);
        actions.push(Action::Scroll(super::Scroll::End));
        actions
    }

    /// Leaves the prompt as it is; the up key restores the text of the editor.
    pub(super) fn stop_editing(&mut self) -> bool {
        if self.edits.take().is_none() {
            return false;
        }
        let written = self.take_line();
        self.history.put_aside(&written);
        self.hint("the prompt stays as it was");
        true
    }

    /// `/rename`: the title stands in the list of conversations.
    pub(super) fn rename(&mut self, title: &str) -> Vec<Action> {
        let why = match () {
            () if !self.status.is_stored => {
                "this conversation is not stored, so it can't have a title; to store conversations, leave \
                 --no-store out when you start the chat, or name a store with --store FILE"
            }
            () if self.prompts.is_empty() => "nothing was asked yet, so there is nothing to name",
            () => {
                let title = clean(title).replace('\n', " ");
                return vec![Action::Request(Outgoing::Rename(title))];
            }
        };
        self.note(Note::Error, why.to_owned());
        Vec::new()
    }

    /// Turns were dropped. Not all of their prompts are known if only a part of the conversation is
    /// shown.
    pub(super) fn turn_dropped(&mut self, dropped: &TurnDropped) {
        let is_gone = |asked: &AcceptedPrompt| dropped.message_ids.contains(&asked.message_id);
        let first = self.prompts.iter().position(is_gone).unwrap_or(self.prompts.len());
        let gone = self.prompts.split_off(first);
        if let Some(asked) = gone.first() {
            self.log.truncate(asked.log_len);
        }
        let left = u32::try_from(self.prompts.len()).unwrap_or(u32::MAX);
        self.status.turns = self.status.turns.min(left);
        // The next call is sent less.
        self.status.context_tokens = 0;
        self.folded = None;
        self.edits = None;
        let text = gone.first().map(|asked| asked.text.clone()).unwrap_or_default();
        let turns = gone.iter().filter(|asked| asked.is_first()).count();
        self.print(Piece::Dropped { prompts: gone.len(), turns, text });
    }
}

/// An error of an edit, for a person; `None` if its message is clear already.
pub(super) fn failure(error: &ErrorFrame) -> Option<&'static str> {
    match error.code.as_str() {
        code::SESSION_BUSY => {
            Some("the model still answers, so nothing was changed; stop it with Esc first")
        }
        // With the id of a message, which a person never sees.
        code::UNKNOWN_MESSAGE if !error.detail.is_empty() => Some(
            "that prompt is no part of the conversation any more, so nothing was changed; /edit takes \
             the last one",
        ),
        _ => None,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::protocol::proto::chat::{
        ChatRunStarted, ChatTextSegmentFinished, ChatUserMessageAccepted,
    };
    use crate::tui::model::Event;
    use crate::tui::model::tests::Scene;
    use crate::tui::terminal::keys::Key;

    /// A turn whose prompt is the message `id-user`.
    pub(in crate::tui::model) fn turn(scene: &mut Scene, id: &str, prompt: &str) {
        let (message_id, text) = (format!("{id}-user"), prompt.to_owned());
        scene.ui(id, ChatUserMessageAccepted { message_id, text, ..Default::default() });
        scene.ui(id, ChatRunStarted::default());
        scene.says(id, &format!("answer to {prompt}"));
        scene.ui(id, ChatTextSegmentFinished::default());
        scene.done(id, "ok");
    }

    pub(in crate::tui::model) fn enter(scene: &mut Scene, text: &str) {
        scene.write(text);
        scene.key(Key::Enter);
    }

    pub(in crate::tui::model) fn edits(scene: &Scene) -> Vec<Outgoing> {
        let edit = |action: &Action| {
            let Action::Request(it @ (Outgoing::Edit(_) | Outgoing::Replace { .. })) = action
            else {
                return None;
            };
            Some(it.clone())
        };
        scene.actions.iter().filter_map(edit).collect()
    }

    pub(in crate::tui::model) fn notes(scene: &Scene) -> Vec<&str> {
        let notes = scene.pieces.iter().filter_map(|piece| {
            let Piece::Note(_, text) = piece else { return None };
            Some(text.as_str())
        });
        notes.collect()
    }

    pub(in crate::tui::model) fn replacement(message_id: &str, text: &str) -> Outgoing {
        changed(message_id, text, &[], &[])
    }

    fn changed(message_id: &str, text: &str, removed: &[&str], mentions: &[&str]) -> Outgoing {
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let (message_id, prompt) = (message_id.to_owned(), text.to_owned());
        let (removed, mentions) = (owned(removed), owned(mentions));
        Outgoing::Replace { message_id, prompt, removed, mentions }
    }

    /// What the text mentions goes with it; what was attached in another way stays.
    #[test]
    fn files_of_an_edited_prompt_are_those_that_it_mentions() {
        let mut scene = Scene::new();
        let attachment = |number: u32, name: &str| ChatAttachment {
            attachment_id: format!("attachment-{number}"),
            filename: name.to_owned(),
            ..Default::default()
        };
        let names = ["option.txt", "one.txt", "one.txt", "two.txt"];
        let attachments = (1..).zip(names).map(|(number, name)| attachment(number, name)).collect();
        let (message_id, text) =
            ("a-user".to_owned(), "see @x/one.txt @y/one.txt @two.txt".to_owned());
        scene.ui(
            "a",
            ChatUserMessageAccepted { message_id, text, attachments, ..Default::default() },
        );
        scene.ui("a", ChatRunStarted::default());
        scene.done("a", "ok");
        enter(&mut scene, "/edit see @x/one.txt @three.txt");
        enter(&mut scene, "/edit is @x/one.txt, (@y/one.txt) or @two.txt?");
        let text = "is @x/one.txt, (@y/one.txt) or @two.txt?";
        assert_eq!(edits(&scene)[1..], [changed("a-user", text, &[], &[])]);
        let text = "see @x/one.txt @three.txt";
        let removed = ["attachment-3", "attachment-4"];
        assert_eq!(edits(&scene)[..1], [changed("a-user", text, &removed, &["three.txt"])]);
    }

    #[test]
    fn a_dropped_turn_is_gone_from_what_is_saved() {
        let mut scene = Scene::new();
        enter(&mut scene, "/undo");
        assert_eq!(notes(&scene), ["nothing was asked yet, so there is nothing to change"]);
        turn(&mut scene, "a", "one");
        turn(&mut scene, "b", "two");
        enter(&mut scene, "/undo");
        assert_eq!(edits(&scene), [Outgoing::Edit(Edit::DropLastTurn)]);
        let message_ids = vec!["b-user".to_owned(), "b".to_owned()];
        scene.ui("u", TurnDropped { message_ids, ..Default::default() });
        scene.done("u", "ok");
        let dropped = Piece::Dropped { prompts: 1, turns: 1, text: "two".to_owned() };
        assert_eq!(scene.pieces.last(), Some(&dropped));
        assert_eq!(scene.state.log.last_answer().as_deref(), Some("answer to one"));
        assert!(!scene.state.log.markdown().contains("two"));
    }

    #[test]
    fn several_turns_are_dropped_or_none() {
        let mut scene = Scene::new();
        for id in ["a", "b", "c"] {
            turn(&mut scene, id, id);
        }
        enter(&mut scene, "/undo 4");
        assert!(
            notes(&scene)[0].starts_with("the conversation has 3 turns"),
            "{:?}",
            notes(&scene)
        );
        assert_eq!(edits(&scene), []);
        enter(&mut scene, "/undo 3");
        assert_eq!(edits(&scene), [(); 3].map(|()| Outgoing::Edit(Edit::DropLastTurn)));
    }

    #[test]
    fn a_prompt_that_joined_a_run_goes_with_its_turn() {
        let mut scene = Scene::new();
        turn(&mut scene, "a", "one");
        let (message_id, text) = ("a-user-2".to_owned(), "and".to_owned());
        scene.ui("a", ChatUserMessageAccepted { message_id, text, ..Default::default() });
        enter(&mut scene, "/edit");
        assert_eq!(scene.state.editor.text(), "one", "the prompt that began the turn");
        let message_ids = vec!["a-user".to_owned(), "a-user-2".to_owned()];
        scene.ui("u", TurnDropped { message_ids, ..Default::default() });
        let dropped = Piece::Dropped { prompts: 2, turns: 1, text: "one".to_owned() };
        assert_eq!(scene.pieces.last(), Some(&dropped));
    }

    #[test]
    fn the_last_prompt_is_written_again_and_esc_leaves_it() {
        let mut scene = Scene::new();
        turn(&mut scene, "a", "hello");
        enter(&mut scene, "/edit");
        assert_eq!(scene.state.editor.text(), "hello");
        scene.key(Key::Esc);
        assert!(scene.state.editor.is_empty() && scene.state.edits.is_none());
        enter(&mut scene, "/edit");
        scene.write(", all");
        scene.key(Key::Esc);
        assert_eq!(scene.actions.last(), Some(&Action::Remember("hello, all".to_owned())));
        enter(&mut scene, "/edit");
        enter(&mut scene, " you");
        assert_eq!(edits(&scene), [replacement("a-user", "hello you")]);
        enter(&mut scene, "/edit at once");
        assert_eq!(edits(&scene)[1..], [replacement("a-user", "at once")]);
        enter(&mut scene, "another");
        assert_eq!(edits(&scene).len(), 2, "it is a prompt of its own");
    }

    #[test]
    fn nothing_is_changed_while_the_model_answers() {
        let mut scene = Scene::new();
        scene.ask("r", "hello");
        for command in ["/undo 2", "/retry", "/edit", "/edit x", "/compact keep the names", "/fork"]
        {
            enter(&mut scene, command);
            let hint = "the model still answers; stop it with Esc first";
            assert_eq!(scene.state.shown_hint(), Some(hint), "{command}");
            assert_eq!(scene.state.editor.take(), command, "it stays in the line");
        }
        assert_eq!(edits(&scene), []);
        assert!(notes(&scene).is_empty());
        let compact = |action: &Action| matches!(action, Action::Request(Outgoing::Compact(_)));
        assert!(!scene.actions.iter().any(compact));
    }

    #[test]
    fn a_stored_conversation_gets_a_title() {
        let mut scene = Scene::new();
        turn(&mut scene, "a", "hello");
        enter(&mut scene, "/rename Ports");
        assert!(notes(&scene)[0].starts_with("this conversation is not stored"));
        assert!(notes(&scene)[0].contains("leave --no-store out"));
        scene.state.status.is_stored = true;
        enter(&mut scene, "/rename Ports");
        let rename = Outgoing::Rename("Ports".to_owned());
        assert_eq!(scene.actions, [Action::Request(rename.clone())]);
        scene.event(Event::Sent(rename, "n".to_owned()));
        scene.done("n", "ok");
        assert_eq!(notes(&scene)[1], "this conversation is called Ports");
    }

    #[test]
    fn a_refused_edit_says_why_gives_the_text_back_and_is_still_one() {
        let mut scene = Scene::new();
        turn(&mut scene, "a", "hello");
        let edit = replacement("a-user", "changed");
        scene.event(Event::Sent(edit.clone(), "e".to_owned()));
        scene.error("e", code::SESSION_BUSY, "request 12-ab is still being answered");
        scene.done("e", "failed");
        assert_eq!(scene.state.editor.text(), "changed");
        scene.key(Key::Enter);
        assert_eq!(edits(&scene), std::slice::from_ref(&edit), "it still replaces the prompt");
        scene.event(Event::Sent(edit, "f".to_owned()));
        turn(&mut scene, "f", "changed");
        scene.event(Event::Sent(Outgoing::Edit(Edit::Regenerate), "g".to_owned()));
        scene.error("g", code::UNKNOWN_MESSAGE, "the conversation has no turn");
        scene.done("g", "failed");
        let busy = "the model still answers, so nothing was changed; stop it with Esc first";
        assert_eq!(notes(&scene), [busy, "the conversation has no turn"]);
        assert!(scene.state.editor.is_empty(), "it came back once");
    }
}
