//! How a session begins and ends: its settings come, a stored conversation is loaded, it is closed.

use super::prompting::COMPACT;
use super::{Dialog, How, Order, Purpose, Stage};
use crate::acp::jsonrpc::{Id, RpcError};
use crate::acp::options::{Change, Options};
use crate::acp::schema::{AvailableCommand, CommandInput, Update};
use crate::acp::services::{CommandFile, Opened};
use crate::host::HostSettings;
use crate::protocol::command::{Command, Page};
use crate::support::terminal::escape_control;
use serde_json::json;

impl Dialog {
    /// The settings are there, or why they are not. Returns those of the host.
    pub(in crate::acp) fn opened(
        &mut self,
        opened: Result<Opened, String>,
    ) -> Option<HostSettings> {
        let Opened { host, models, effort, approval, commands, notices } = match opened {
            Ok(opened) => opened,
            Err(why) => {
                self.failed(why);
                return None;
            }
        };
        self.is_stored = host.store.is_some();
        let shown = self.options.mode();
        self.options = Options::new(models, effort, approval);
        self.commands = commands;
        self.notices.extend(notices);
        self.stage = Stage::Loading;
        self.choose_again();
        match self.opening {
            Some((_, How::Load | How::Resume)) => {}
            Some((_, How::New)) => self.begin(),
            None => {
                self.begin();
                self.options_known(shown);
            }
        }
        Some(host)
    }

    /// Makes the choices once more that were made before the settings were known. An effort is in `changes` since.
    fn choose_again(&mut self) {
        for (id, value) in std::mem::take(&mut self.early) {
            if let Ok(Change::Approval) = self.options.set(&id, &value) {
                self.note_mode();
            }
        }
    }

    /// Tells a client what can be chosen that was shown less, with the mode `shown`.
    fn options_known(&mut self, shown: &str) {
        let current_mode_id = self.options.mode();
        if current_mode_id != shown {
            self.queue.update(Update::Mode { current_mode_id });
        }
        self.config_changed();
    }

    /// There is no conversation.
    fn failed(&mut self, why: String) {
        if let Some((id, _)) = self.opening.take() {
            self.queue.respond(id, Err(RpcError::failed(why)));
            self.is_over = true;
        } else {
            self.broken = Some(why);
        }
        self.refuse_waiting();
    }

    /// The conversation can go on.
    pub(super) fn begin(&mut self) {
        self.stage = Stage::Open;
        self.answer_opening();
        let mut available_commands: Vec<_> = self.commands.iter().map(available).collect();
        if self.commands.iter().all(|file| file.name != COMPACT) {
            available_commands.push(AvailableCommand {
                name: COMPACT.to_owned(),
                description: "Summarize the earlier turns for the model".to_owned(),
                input: Some(CommandInput { hint: "what the summary should keep".to_owned() }),
            });
        }
        self.queue.update(Update::Commands { available_commands });
        self.proceed();
    }

    /// Answers the request that opens the session, with what is known by now.
    pub(in crate::acp) fn answer_opening(&mut self) {
        let Some((id, how)) = self.opening.take() else { return };
        let (modes, options) = (self.options.modes(), self.options.config());
        let mut result = json!({ "modes": modes, "configOptions": options });
        if how == How::New {
            result["sessionId"] = json!(self.session);
        }
        self.queue.respond(id, Ok(result));
    }

    /// Whether the client waits for a new session, which it is given before all is known.
    pub(in crate::acp) fn awaits_settings(&self) -> bool {
        matches!(self.opening, Some((_, How::New))) && self.stage == Stage::Preparing
    }

    /// Shows a session that is open already to a client that loads it.
    pub(super) fn shown_again(&mut self, id: &Id) -> Result<(), RpcError> {
        self.refuse_unless_open()?;
        let page = Page::default();
        self.order(Command::Snapshot(page), Purpose::Replay(id.clone()));
        Ok(())
    }

    pub(super) fn resumed_again(&mut self, id: &Id) -> Result<(), RpcError> {
        self.refuse_unless_open()?;
        let (modes, options) = (self.options.modes(), self.options.config());
        self.queue.respond(id.clone(), Ok(json!({ "modes": modes, "configOptions": options })));
        Ok(())
    }

    /// Whether the session can be ended and loaded again without any loss.
    pub(in crate::acp) fn can_be_opened_anew(&self) -> bool {
        let is_idle = self.active.is_none() && self.waiting.is_empty();
        self.stage == Stage::Open && is_idle && self.is_stored && self.updates.has_begun()
    }

    /// Tells the person that the session is not opened anew.
    pub(in crate::acp) fn stays_in_place(&mut self) {
        let text = "the session is open already, so it keeps the folder and the MCP servers that it has; close it \
                    and load it again to change them";
        self.notices.push(text.to_owned());
    }

    fn refuse_unless_open(&self) -> Result<(), RpcError> {
        self.refuse_if_closed()?;
        match self.stage {
            Stage::Open => Ok(()),
            // It may still turn out that there is no such session.
            Stage::Preparing | Stage::Loading | Stage::Ending => {
                Err(RpcError::failed("the session is being opened already"))
            }
        }
    }

    pub(super) fn close(&mut self, id: Id) {
        self.closers.push(id);
        self.end();
    }

    /// Ends the session: what runs and what waits is cancelled.
    pub(in crate::acp) fn end(&mut self) {
        if self.stage == Stage::Ending {
            return;
        }
        self.cancel();
        let has_host = self.stage != Stage::Preparing && self.broken.is_none();
        self.stage = Stage::Ending;
        match has_host {
            // Its end is ordered with the answer to the prompt.
            true if self.awaits_end_of_run() => {}
            true => self.orders.push_back(Order::End),
            false => self.is_over = true,
        }
        if let Some((id, _)) = self.opening.take() {
            self.queue
                .respond(id, Err(RpcError::failed("the session was closed before it was open")));
        }
    }

    /// The host has closed everything that it held.
    pub(in crate::acp) fn closed(&mut self) {
        for id in std::mem::take(&mut self.closers) {
            self.queue.respond(id, Ok(json!({})));
        }
    }
}

fn available(file: &CommandFile) -> AvailableCommand {
    let CommandFile { name, about, takes } = file;
    let description = if about.is_empty() { name } else { about };
    let input = (!takes.is_empty()).then(|| CommandInput { hint: takes.clone() });
    AvailableCommand { name: name.clone(), description: escape_control(description), input }
}
