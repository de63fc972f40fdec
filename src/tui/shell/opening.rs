//! Replaces the conversation by another. It is opened beside this one, which stays open if the other
//! can't be used.

use super::performing::locked_session;
use super::{NextConversation, OnBegin, Shell};
use crate::host::{Effect, Effects, Host};
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::Frame;
use crate::store::LOCKED_ADVICE;
use crate::support::terminal::escape_control;
use crate::support::threads;
use crate::tui::model::{Copied, Event, Opening, Status};
use crate::tui::terminal::keys::{Press, Typed};
use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;
use tokio::sync::oneshot;

/// A conversation that is to be opened.
pub(super) enum Candidate {
    /// It is being copied; then it has an id, or a reason why it has none.
    Copied(oneshot::Receiver<Result<Copied, String>>),
    /// Its settings are looked for, perhaps in a store.
    Wanted(Opening, oneshot::Receiver<anyhow::Result<NextConversation>>),
    Begun(Box<Begun>),
}

/// A conversation that is being opened.
pub(super) struct Begun {
    opening: Opening,
    host: Host,
    on_begin: OnBegin,
    greeting: Vec<Frame>,
    is_stored: bool,
    server_names: Vec<String>,
}

/// The outcome of opening the candidate.
pub(super) enum Opened {
    /// It is copied, or why it is not.
    Copy(Result<Copied, String>),
    /// Its settings are there, or why they are not.
    Settings(anyhow::Result<Box<NextConversation>>),
    /// Its store, if there is one, is open, and its session locked and loaded.
    Effects(Effects),
}

/// Waits for the next step of the candidate. Cancel-safe.
pub(super) async fn opened(candidate: &mut Option<Candidate>) -> Opened {
    match candidate {
        Some(Candidate::Copied(copy)) => {
            let lost = |_| Err("the conversation can't be copied".to_owned());
            Opened::Copy(copy.await.unwrap_or_else(lost))
        }
        Some(Candidate::Wanted(_, settings)) => {
            let settings = settings.await;
            let lost = |_| Err(anyhow::anyhow!("the other conversation can't be opened"));
            Opened::Settings(settings.unwrap_or_else(lost).map(Box::new))
        }
        Some(Candidate::Begun(begun)) => Opened::Effects(begun.host.opened().await),
        None => pending().await,
    }
}

impl Shell<'_> {
    /// Begins to copy a stored conversation, which is opened then.
    pub(super) fn fork(&mut self, session: String) {
        let Some(forker) = self.services.forker.clone() else {
            let why = "what the model was sent is not stored, so no copy can go on; start the chat with \
                       --store FILE";
            return self.update(Event::Forked(Err(why.to_owned())));
        };
        let (copied, copy) = oneshot::channel();
        let events = self.found.0.clone();
        let work = move || {
            // A person who stays in this conversation has the copy all the same.
            if let Err(Ok(Copied { session, omission })) = copied.send(forker.copy(&session)) {
                let omission = omission.map_or_else(String::new, |it| format!("; {it}"));
                let done =
                    format!("the copy {session} is in the store; /resume lists it{omission}");
                drop(events.send(Event::Reported(Ok(done))));
            }
        };
        match threads::spawn("chat-copying", work) {
            Ok(()) => self.candidate = Some(Candidate::Copied(copy)),
            Err(error) => self.update(Event::Forked(Err(error.to_string()))),
        }
    }

    /// Begins to open another conversation. Its settings may be in a store on a slow disk.
    pub(super) fn open(&mut self, opening: Opening) {
        let (found, settings) = oneshot::channel();
        let (opener, wanted) = (Arc::clone(&self.services.opener), opening.clone());
        // A person who stays in this conversation needs no reply.
        let work = move || drop(found.send(opener(&wanted)));
        match threads::spawn("chat-opening", work) {
            Ok(()) => self.candidate = Some(Candidate::Wanted(opening, settings)),
            Err(error) => self.not_opened(error.to_string()),
        }
    }

    /// No other conversation begins: nothing that was typed for it is sent to this one.
    pub(super) fn stay(&mut self) {
        self.candidate = None;
        leave_unsent(&mut self.typed_ahead);
    }

    fn not_opened(&mut self, why: String) {
        self.stay();
        self.update(Event::NotOpened(why));
    }

    pub(super) async fn candidate_went_on(&mut self, opened: Opened) {
        match opened {
            Opened::Copy(copy) => self.copied(copy),
            Opened::Settings(settings) => self.settings_found(settings),
            Opened::Effects(effects) => self.candidate_opened(effects).await,
        }
    }

    fn copied(&mut self, copy: Result<Copied, String>) {
        self.candidate = None;
        self.update(Event::Forked(copy));
        if self.candidate.is_none() {
            self.stay();
        }
    }

    fn settings_found(&mut self, settings: anyhow::Result<Box<NextConversation>>) {
        let Some(Candidate::Wanted(opening, _)) = self.candidate.take() else { return };
        match settings {
            Ok(next) => {
                let NextConversation { host: mut settings, on_begin } = *next;
                if let Opening::New { .. } = &opening {
                    settings.rules.choice.clone_from(&self.state.chosen);
                }
                let is_stored = settings.store.is_some();
                let server_names = settings.servers.names().map(ToString::to_string).collect();
                let (host, greeting) = Host::new(settings);
                let begun = Begun { opening, host, on_begin, greeting, is_stored, server_names };
                self.candidate = Some(Candidate::Begun(Box::new(begun)));
            }
            Err(error) => self.not_opened(format!("{error:#}")),
        }
    }

    /// The candidate is open, or can't be used.
    async fn candidate_opened(&mut self, effects: Effects) {
        let Some(Candidate::Begun(mut candidate)) = self.candidate.take() else { return };
        let has_ended = |effect: &Effect| matches!(effect, Effect::Exit(_) | Effect::Abort(_));
        if effects.list.iter().any(has_ended) {
            candidate.host.close().await;
            let can_offer = self.services.forker.is_some() && !self.state.is_plain();
            let offered = locked_session(&effects).filter(|_| can_offer);
            let mut why = reason(&effects);
            if offered.is_some() {
                why.truncate(why.trim_end_matches(LOCKED_ADVICE).len());
            }
            self.not_opened(why);
            if let Some(session) = offered {
                let is_only = self.held.is_some();
                self.update(Event::SessionHeld { session, is_only });
            }
            return;
        }
        let Begun { opening, host, on_begin, greeting, is_stored, server_names } = *candidate;
        if self.state.has_begun() && self.state.status.is_stored {
            self.before = Some(self.state.status.session.clone());
        }
        self.host.close().await;
        self.host = host;
        on_begin();
        // Before the event, after which a line may ask for it.
        self.look_at_system();
        self.held = None;
        let recorded = self.next_debug_file().await;
        self.state.status.is_stored = is_stored;
        self.state.server_names = server_names;
        let chosen = match &opening {
            Opening::New { .. } => self.state.chosen.take(),
            Opening::Stored { .. } | Opening::Copied { .. } => None,
        };
        let Status { engine, model, profile, .. } = self.state.status.clone();
        self.together(|shell| {
            shell.update(Event::Opened(announced(&opening)));
            shell.ask_servers(shell.state.server_names.clone());
            if let Opening::Stored { .. } | Opening::Copied { .. } = &opening {
                shell.state.awaits_conversation();
            }
            shell.greet(greeting);
            recorded.into_iter().for_each(|line| shell.update(Event::Logged(line)));
            if chosen.is_some() {
                // The greeting names the first conversation of the process.
                let status = &mut shell.state.status;
                (status.engine, status.model, status.profile) = (engine, model, profile);
                shell.state.chosen = chosen;
            }
            shell.perform(effects);
        });
    }
}

impl Shell<'_> {
    /// The frames of this conversation go to a debug file of its own; returns a line that says which one.
    async fn next_debug_file(&mut self) -> Option<String> {
        let before = self.debug_file.take()?;
        let line = match before.another() {
            Ok(None) => {
                self.debug_file = Some(before);
                return None;
            }
            Ok(Some((mut file, path))) => {
                file.begin();
                self.debug_file = Some(file);
                let path = escape_control(&path.display().to_string());
                format!("the frames of this conversation are copied to {path}")
            }
            Err(error) => format!("the frames of this conversation are not copied: {error:#}"),
        };
        before.finish().await;
        Some(line)
    }
}

/// What was typed for a conversation that does not begin stays in the line, where Enter begins a line; the last one
/// does nothing.
fn leave_unsent(typed_ahead: &mut VecDeque<Typed>) {
    while typed_ahead.pop_back_if(|typed| typed.is_enter()).is_some() {}
    for typed in typed_ahead.iter_mut().filter(|typed| typed.is_enter()) {
        *typed = Typed::Press(Press::ctrl('j'));
    }
}

/// Why a conversation can't be used, by the frames of its end.
fn reason(effects: &Effects) -> String {
    let reasons = effects.list.iter().filter_map(|effect| match effect {
        Effect::Frame(Frame { frame: Some(Body::Error(error)), .. }) => {
            Some(error.message.as_str())
        }
        Effect::Frame(_)
        | Effect::Usage(_)
        | Effect::ToolImages(_)
        | Effect::Warning(_)
        | Effect::Exit(_)
        | Effect::Abort(_) => None,
    });
    let reasons: Vec<_> = reasons.collect();
    match reasons.is_empty() {
        true => "the other conversation can't be opened".to_owned(),
        false => reasons.join("; "),
    }
}

fn announced(opening: &Opening) -> String {
    match opening {
        Opening::New { system: None } => "another conversation begins".to_owned(),
        Opening::New { system: Some(_) } => {
            "another conversation begins, with this system prompt".to_owned()
        }
        Opening::Stored { session } => format!("the conversation {session} goes on"),
        Opening::Copied { session } => {
            format!("the copy {session} goes on; the conversation before stays as it was")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::terminal::keys::Keys;

    #[test]
    fn enter_sends_nothing_that_was_typed_for_another_conversation() {
        let check = |typed: &str, expected: &str| {
            let read = |bytes: &str| VecDeque::from(Keys::default().push(bytes.as_bytes()));
            let mut typed = read(typed);
            leave_unsent(&mut typed);
            assert_eq!(typed, read(expected));
        };
        check("\r", "");
        check("hello\r", "hello");
        check("\rhello\r\x1b[13;2umore\r\r", "\nhello\n\nmore");
        check("\x1b[200~pasted\r\x1b[201~\r", "\x1b[200~pasted\r\x1b[201~");
    }
}
