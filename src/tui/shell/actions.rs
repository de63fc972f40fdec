//! Performs the actions of the model.

use super::child::Child;
use super::command::Running;
use super::{LEAVE_MAX, Lending, STOP_TIME, Shell, files};
use crate::protocol::attachment::{Attachment, Content};
use crate::protocol::command::{
    Approve, Cancel, Command, Compact, Edit, Enable, Extension, ModelChoice, Prompt, Replacement,
    Submit,
};
use crate::protocol::id::{RequestId, ToolCallId};
use crate::protocol::proto::chat::ChatAttachment;
use crate::session::Input;
use crate::support::threads;
use crate::task::prompt::NamedPrompt;
use crate::task::server::FilledPrompt;
use crate::tui::commands::Wrong;
use crate::tui::input::{Candidates, meanings, mentions, unquoted};
use crate::tui::model::{
    Action, Choice, CommandOutput, EditorFailure, Event, Expansion, Note, Outgoing, PromptSource,
    Switch,
};
use crate::tui::text::clean;
use data_encoding::BASE64;
use rustix::process::{Signal, kill_current_process_group};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Bytes that terminals take for the clipboard.
const COPY_BYTES_MAX: usize = 74_994;

impl Shell<'_> {
    pub(super) fn act(&mut self, action: Action) {
        match action {
            Action::Request(outgoing) => self.request(outgoing),
            Action::Open(opening) => self.open(opening),
            Action::Stay => self.stay(),
            Action::Fork(session) => self.fork(session),
            Action::ListSessions => self.list_sessions(),
            Action::ListProfiles => self.list_profiles(),
            Action::Expand { line, joins } => self.expand(line, joins),
            Action::ListModels => self.list_models(),
            Action::CompleteProfile { start, part } => self.complete_profile(start, part),
            Action::ListFiles { start, part, completes } => {
                let resources = self.state.resources_like(&unquoted(&part));
                self.find(move || {
                    let found = files::listed(start, &part, resources);
                    Event::Files { found, completes }
                });
            }
            Action::FindFiles(looked_for) => self.find_files(looked_for),
            // Attached files are looked for before the next key, too.
            Action::Measure { mentions, draft } => {
                let large = files::large(&mentions);
                self.update(Event::Measured { large, draft });
            }
            Action::FindPasted(text) => {
                let files = files::pasted(&text);
                self.update(Event::PastedFiles { text, files });
            }
            Action::Edit(text) => self.lends = Some(Lending::ToEditor(text)),
            Action::RunCommand(command) => self.run_command(command),
            Action::EndCommand => {
                self.command.iter_mut().for_each(Running::stop);
            }
            Action::RestartServer(name) => self.restart_server(&name),
            Action::AskServers(names) => self.ask_servers(names),
            Action::Suspend => self.lends = Some(Lending::ToShell),
            Action::Redraw => self.screen.redraw(),
            Action::Copy(text) => self.copy(&text),
            Action::Notify(notice) => self.screen.send(&self.services.bell.sequence(notice)),
            Action::Write { path, text } => {
                self.find(move || Event::Reported(files::save(&path, &text)));
            }
            Action::Remember(prompt) => self.remember(&prompt),
            Action::Scroll(scroll) => self.screen.scroll(scroll),
            Action::Fold => {}
            Action::EndInput => self.end_input(),
            Action::Quit => self.quit(),
        }
    }

    fn list_profiles(&mut self) {
        let profiles = Arc::clone(&self.services.profiles);
        self.find(move || Event::Profiles(profiles()));
    }

    /// Makes the prompt of a server or of a command file.
    fn expand(&mut self, line: String, joins: bool) {
        if self.fill_prompt(&line, joins) {
            return;
        }
        let prompts = Arc::clone(&self.services.prompts);
        self.find(move || {
            let named = line.trim_start_matches('/');
            let unknown = || {
                let word = named.split_whitespace().next().unwrap_or_default();
                Wrong::Unknown(word.to_owned()).to_string()
            };
            let prompt = prompts(named).and_then(|prompt| prompt.ok_or_else(unknown));
            let expansion = prompt.map(|NamedPrompt { text, warnings, read }| Expansion {
                prompt: FilledPrompt { text, attachments: Vec::new() },
                mentions: mentions_besides(&line, &read),
                warnings: warnings.iter().map(|warning| clean(warning)).collect(),
            });
            Event::Expanded { line, joins, prompt: expansion.map_err(|why| clean(&why)) }
        });
    }

    fn list_models(&mut self) {
        let models = Arc::clone(&self.services.models);
        let chosen = self.state.chosen.clone().unwrap_or_default();
        self.find(move || Event::Models(models(&chosen)));
    }

    fn complete_profile(&mut self, start: usize, part: String) {
        let profiles = Arc::clone(&self.services.profiles);
        self.find(move || {
            let names = profiles().unwrap_or_default().into_iter();
            let words = names.filter(|name| name.starts_with(&part) && clean(name) == *name);
            let words = words.collect();
            Event::Files { found: Candidates::new(start, part, words), completes: true }
        });
    }

    fn find_files(&mut self, looked_for: Vec<String>) {
        let is_resource = |mention: &String| self.state.resource_of(mention).is_some();
        let resources: Vec<_> = looked_for.iter().filter(|it| is_resource(it)).cloned().collect();
        self.find(move || {
            let is_missing =
                |mention: &&String| !resources.contains(mention) && files::named(mention).is_none();
            let missing: Vec<_> = looked_for.iter().filter(is_missing).cloned().collect();
            let is_unknown = |mention: &&String| {
                let named = files::named(mention).filter(|_| !resources.contains(mention));
                named.is_some_and(|(_, path)| files::is_unknown(&path))
            };
            let unknown = looked_for.iter().filter(is_unknown).cloned().collect();
            Event::FilesFound { looked_for, missing, unknown }
        });
    }

    /// Stores a prompt for later chats.
    fn remember(&self, prompt: &str) {
        if let Err(error) = self.history.add(prompt) {
            tracing::info!(%error, "the prompt can't be remembered for later chats");
        }
    }

    /// Does `work` in another thread, so that a slow disk does not hold up the keys.
    fn find(&mut self, work: impl FnOnce() -> Event + Send + 'static) {
        let found = self.found.0.clone();
        // A chat that has ended wants no answer.
        let work = move || drop(found.send(work()));
        if let Err(error) = threads::spawn("chat-files", work) {
            self.update(Event::Reported(Err(error.to_string())));
        }
    }

    fn request(&mut self, mut outgoing: Outgoing) {
        let command = match &mut outgoing {
            Outgoing::Submit { prompt, joins, source, attached, outputs, choice } => {
                let submit = self.submission(prompt, source, attached.clone(), outputs);
                let Some(submit) = submit else { return };
                let joins = joins.as_deref().and_then(RequestId::new);
                let choice = choice.clone().map(|it| Box::new(model_choice(it)));
                Command::Submit(Submit { joins, choice, ..submit })
            }
            Outgoing::Cancel { target } => {
                let target = target.as_deref().and_then(RequestId::new);
                Command::Cancel(Cancel { target, waiting: false })
            }
            Outgoing::Approve { call, decision } => Command::Approve(Approve {
                call: ToolCallId(call.clone()),
                decision: decision.clone(),
            }),
            Outgoing::FollowServers => {
                let extensions = BTreeSet::from([Extension::ToolServers]);
                Command::Enable(Enable { extensions, events: None })
            }
            Outgoing::Rename(title) => Command::Rename(title.clone()),
            Outgoing::Compact(words) => {
                let instructions = words.clone();
                Command::Compact(Compact { instructions, ..Compact::default() })
            }
            Outgoing::Edit(edit) => Command::Edit(edit.clone()),
            Outgoing::Replace { message_id, prompt, removed, mentions } => {
                let Some(prompt) = Prompt::new(prompt.clone()) else { return };
                let (attachments, removed) =
                    (self.attached(mentions.clone(), &[]), removed.clone());
                let replacement = Replacement::new(message_id.clone(), prompt);
                Command::Edit(Edit::Replace(Replacement { attachments, removed, ..replacement }))
            }
            Outgoing::SwitchModel { profile, model } => {
                let (profile, model) = (profile.clone(), model.clone());
                Command::SwitchModel(model_choice(Switch { profile, model }))
            }
        };
        self.send(command, outgoing);
    }

    /// The prompt with all that goes with it; `None` if there is nothing to ask.
    fn submission(
        &self,
        prompt: &str,
        source: &mut PromptSource,
        mut attachments: Vec<Attachment>,
        outputs: &[CommandOutput],
    ) -> Option<Submit> {
        let others = match source {
            PromptSource::Written { .. } => self.attached(mentions(prompt), &attachments),
            PromptSource::Line { attachments: own, mentions, .. } => {
                let others = [attachments.as_slice(), own.as_slice()].concat();
                own.extend(self.attached(std::mem::take(mentions), &others));
                own.clone()
            }
            PromptSource::CommandLine => Vec::new(),
        };
        attachments.extend(others);
        let nothing = || (!attachments.is_empty()).then(Prompt::nothing);
        let text = Prompt::new(prompt.to_owned()).or_else(nothing)?;
        attachments.extend((1..).zip(outputs).map(|(number, it)| attached_output(number, it)));
        Some(Submit { attachments, ..Submit::new(text) })
    }

    /// Asks the model the prompt of the command line, to which the files belong that it mentions.
    pub(super) fn submit_first(&mut self, mut submit: Submit, mentions: Vec<String>) {
        let attached = submit.attachments.clone();
        submit.attachments.extend(self.attached(mentions, &attached));
        let prompt = submit.prompt.clone().into_string();
        let (source, outputs) = (PromptSource::CommandLine, Vec::new());
        let (joins, choice) = (None, None);
        let outgoing = Outgoing::Submit { prompt, joins, source, attached, outputs, choice };
        self.send(Command::Submit(submit), outgoing);
    }

    fn send(&mut self, command: Command, outgoing: Outgoing) {
        // The frames of this request precede those of the next.
        self.together(|shell| {
            let (id, effects) = shell.host.request(command);
            // Before its frames, which name it.
            shell.update(Event::Sent(outgoing, id.as_str().to_owned()));
            shell.perform(effects);
        });
    }

    pub(super) fn stop_run(&mut self) {
        self.request(Outgoing::Cancel { target: None });
    }

    fn list_sessions(&mut self) {
        let Some(library) = self.services.library.clone() else {
            let why = "there is no store to choose from; name one with --store when you start";
            return self.update(Event::Sessions(Err(why.to_owned())));
        };
        self.find(move || {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let sessions = library.titles().map(|listing| {
                let choices = listing.sessions.into_iter().map(|summary| Choice {
                    detail: detail(now, summary.updated_ms, summary.turns, &summary.folder),
                    title: clean(&summary.title).replace('\n', " "),
                    value: summary.id,
                });
                choices.collect()
            });
            Event::Sessions(sessions)
        });
    }

    /// Lends the terminal to another program, after all replies to the chat have arrived, and the terminal has taken
    /// all that the chat has written.
    pub(super) async fn lend(&mut self, lending: Lending) {
        if !self.screen.takes_pictures() {
            return;
        }
        if let Some(signal) = self.take_reports(self.signal.is_some()).await {
            return self.interrupted(signal);
        }
        if let Err(error) = self.screen.begin_leaving(&mut self.state) {
            return self.gone(&error);
        }
        if self.signal.is_none()
            && let Some(signal) = self.drained(Duration::MAX).await
        {
            // The chat has the terminal until it has ended.
            self.continued();
            return self.interrupted(signal);
        }
        self.screen.leave();
        match lending {
            Lending::ToEditor(text) => self.edit(&text),
            Lending::ToShell => self.suspend(),
        }
    }

    /// Starts the person's editor at the terminal. Keys are not read until it has ended.
    fn edit(&mut self, text: &str) {
        let no_terminal = || io::Error::other("the terminal can't be opened for it");
        let terminal = self.screen.for_child().ok_or_else(no_terminal);
        match terminal.and_then(|terminal| Child::start(text, terminal)) {
            Ok(child) => self.child = Some(child),
            Err(error) => {
                let why = format!("the editor can't be started: {error}");
                self.child_has_left(Err(EditorFailure { why, saved: None }));
            }
        }
    }

    fn run_command(&mut self, command: String) {
        let no_guard = || io::Error::from(io::ErrorKind::NotFound);
        let guard = self.services.guard.as_deref().ok_or_else(no_guard);
        match guard.and_then(|guard| Running::start(command, guard)) {
            Ok(running) => self.command = Some(running),
            Err(error) => {
                let why = format!("the command can't be started: {error}");
                self.update(Event::CommandEnded(Err(why)));
            }
        }
    }

    pub(super) fn child_has_left(&mut self, text: Result<String, EditorFailure>) {
        self.continued();
        self.update(Event::Edited(text));
    }

    /// Stops the process, as Ctrl-Z does in other programs: the whole group.
    fn suspend(&mut self) {
        self.suspended = Some(Instant::now() + STOP_TIME);
        if let Err(error) = kill_current_process_group(Signal::TSTP) {
            tracing::warn!(%error, "the chat can't be suspended");
        }
    }

    /// Has the terminal copy a text (xterm's OSC 52). It does not report whether it did.
    fn copy(&mut self, text: &str) {
        let encoded = BASE64.encode(text.as_bytes());
        if encoded.len() > COPY_BYTES_MAX {
            let why = "the text is too long for the clipboard of a terminal; use /save FILE";
            return self.note(Note::Error, why.to_owned());
        }
        if !self.screen.takes_pictures() {
            let why = "without a terminal nothing can be copied; use /save FILE";
            return self.note(Note::Error, why.to_owned());
        }
        self.screen.send(&format!("\x1b]52;c;{encoded}\x07"));
        let done = "given to the terminal's clipboard; if it is not there, use /save FILE";
        self.update(Event::Reported(Ok(done.to_owned())));
    }

    /// The conversation ends once everything is answered.
    fn end_input(&mut self) {
        let effects = self.host.handle(match self.input_failure.take() {
            Some(reason) => Input::InputFailed { reason },
            None => Input::InputEnded,
        });
        self.perform(effects);
    }

    /// Stops the run and ends; the second time at once.
    fn quit(&mut self) {
        if self.leaves_at.is_some() {
            self.exit = Some(crate::session::ExitCode::Ok);
            return;
        }
        if self.held.is_some() {
            self.keep_unsent();
            self.exit = self.held.take();
            return;
        }
        self.leaves_at = Some(Instant::now() + LEAVE_MAX);
        self.keep_unsent();
        for cancel in [Cancel { target: None, waiting: true }, Cancel::default()] {
            let needed = cancel.waiting || self.state.run.is_some();
            if needed {
                let (_, effects) = self.host.request(Command::Cancel(cancel));
                self.perform(effects);
            }
        }
        self.end_input();
    }

    /// The files that a prompt mentions with `@`, as far as there are such files, and the resources of servers. Their
    /// ids are no ids of `others`, which go with the prompt too.
    fn attached(&self, mentions: Vec<String>, others: &[Attachment]) -> Vec<Attachment> {
        let mut attachments = Vec::new();
        for mention in mentions {
            let number = others.len() + attachments.len() + 1;
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            let Some((_, path)) = files::named(&mention) else {
                let resource = self.state.resource_of(&mention);
                attachments.extend(resource.map(|name| Attachment::resource(number, name)));
                continue;
            };
            let Ok(path) = std::path::absolute(&path) else { continue };
            let url = path.to_string_lossy().into_owned();
            let shown = ChatAttachment { url, ..ChatAttachment::default() };
            attachments.extend(Attachment::named(number, shown));
        }
        attachments
    }
}

/// The files that `line` mentions with `@` for the model: those in `read` are values of flags.
fn mentions_besides(line: &str, read: &[String]) -> Vec<String> {
    let is_read = |name: &str| read.iter().any(|path| path == name);
    mentions(line).into_iter().filter(|mention| !meanings(mention).any(is_read)).collect()
}

fn model_choice(switch: Switch) -> ModelChoice {
    let Switch { profile, model } = switch;
    ModelChoice { profile, model, ..ModelChoice::default() }
}

/// The output of a command, as a text that every provider takes.
fn attached_output(number: usize, output: &CommandOutput) -> Attachment {
    let shown = ChatAttachment {
        attachment_id: format!("output-{number}"),
        filename: format!("output-{number}.txt"),
        media_type: "text/plain".to_owned(),
        ..ChatAttachment::default()
    };
    Attachment { shown, content: Content::Data(output.for_model().into_bytes().into()) }
}

/// The details of a session in the list.
fn detail(now: Duration, updated_ms: i64, turns: u32, folder: &str) -> String {
    let updated = Duration::from_millis(u64::try_from(updated_ms).unwrap_or_default());
    let minutes = now.saturating_sub(updated).as_secs() / 60;
    let age = match minutes {
        0 => "now".to_owned(),
        1..60 => format!("{minutes} min ago"),
        60..1440 => format!("{} h ago", minutes / 60),
        _ => format!("{} d ago", minutes / 1440),
    };
    let turns = if turns == 1 { "1 turn".to_owned() } else { format!("{turns} turns") };
    format!("({turns}, {age}, {})", clean(folder))
}
