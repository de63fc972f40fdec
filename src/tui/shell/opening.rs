//! Replaces the conversation by another. It is opened beside this one, which stays open if the other
//! can't be used.

use super::Shell;
use super::performing::locked_session;
use crate::host::{Effect, Effects, Host, HostSettings};
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::Frame;
use crate::store::LOCKED_ADVICE;
use crate::support::terminal::escape_control;
use crate::support::threads;
use crate::tui::model::{Event, Opening, Status};
use std::future::pending;
use std::sync::Arc;
use tokio::sync::oneshot;

/// A conversation that is to be opened.
pub(super) enum Candidate {
    /// Its settings are looked for, perhaps in a store.
    Wanted(Opening, oneshot::Receiver<anyhow::Result<HostSettings>>),
    Begun(Box<Begun>),
}

/// A conversation that is being opened.
pub(super) struct Begun {
    opening: Opening,
    host: Host,
    greeting: Vec<Frame>,
    is_stored: bool,
    server_names: Vec<String>,
}

/// The outcome of opening the candidate.
pub(super) enum Opened {
    /// Its settings are there, or why they are not.
    Settings(anyhow::Result<Box<HostSettings>>),
    /// Its store, if there is one, is open, and its session locked and loaded.
    Effects(Effects),
}

/// Waits for the next step of the candidate. Cancel-safe.
pub(super) async fn opened(candidate: &mut Option<Candidate>) -> Opened {
    match candidate {
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
    /// Begins to open another conversation. Its settings may be in a store on a slow disk.
    pub(super) fn open(&mut self, opening: Opening) {
        let (found, settings) = oneshot::channel();
        let (opener, wanted) = (Arc::clone(&self.services.opener), opening.clone());
        // A person who stays in this conversation needs no reply.
        let work = move || drop(found.send(opener(&wanted)));
        match threads::spawn("chat-opening", work) {
            Ok(()) => self.candidate = Some(Candidate::Wanted(opening, settings)),
            Err(error) => self.update(Event::NotOpened(error.to_string())),
        }
    }

    pub(super) async fn candidate_went_on(&mut self, opened: Opened) {
        match opened {
            Opened::Settings(settings) => self.settings_found(settings),
            Opened::Effects(effects) => self.candidate_opened(effects).await,
        }
    }

    fn settings_found(&mut self, settings: anyhow::Result<Box<HostSettings>>) {
        let Some(Candidate::Wanted(opening, _)) = self.candidate.take() else { return };
        match settings {
            Ok(mut settings) => {
                if let Opening::New { .. } = &opening {
                    settings.rules.choice.clone_from(&self.state.chosen);
                }
                let is_stored = settings.store.is_some();
                let server_names = settings.servers.names().map(ToString::to_string).collect();
                let (host, greeting) = Host::new(*settings);
                let begun = Begun { opening, host, greeting, is_stored, server_names };
                self.candidate = Some(Candidate::Begun(Box::new(begun)));
            }
            Err(error) => self.update(Event::NotOpened(format!("{error:#}"))),
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
            self.update(Event::NotOpened(why));
            if let Some(session) = offered {
                let is_only = self.held.is_some();
                self.update(Event::SessionHeld { session, is_only });
            }
            return;
        }
        let Begun { opening, host, greeting, is_stored, server_names } = *candidate;
        if self.state.has_begun() && self.state.status.is_stored {
            self.before = Some(self.state.status.session.clone());
        }
        self.host.close().await;
        self.host = host;
        self.held = None;
        let recorded = self.next_debug_file().await;
        if let Opening::New { system: Some(text) } = &opening {
            self.state.status.system = Some(text.clone());
        }
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
