//! Performs the effects of the host, and the actions of the model that follow from them, each in its order.

use super::{FirstPrompt, Shell, files};
use crate::host::{CodedWarning, Effect, Effects};
use crate::protocol::constants::code;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::Frame;
use crate::session::{ExitCode, MODEL_CHANGED, PROVIDER_CHANGED, PROVIDER_UNRECORDED};
use crate::store::LOCKED_ADVICE;
use crate::tui::input::mentions;
use crate::tui::model::{Event, Note};
use tokio::task::yield_now;

/// Engine events that are handled before keys are looked at again.
const EVENTS_AT_ONCE_MAX: usize = 64;

impl Shell<'_> {
    pub(super) async fn engine_went_on(&mut self, effects: Effects) {
        self.perform(effects);
        for _ in 0..EVENTS_AT_ONCE_MAX {
            match self.host.try_next() {
                Some(effects) => self.perform(effects),
                None => return,
            }
        }
        // Keys and signals are looked at by the runtime.
        yield_now().await;
    }

    pub(super) fn perform(&mut self, effects: Effects) {
        let held = self.held_session(&effects);
        self.state.status.context_size = self.host.context_tokens();
        self.look_at_system();
        self.together(|shell| {
            for effect in effects.list {
                match effect {
                    Effect::Frame(mut frame) => {
                        shell.record(&frame);
                        if held.is_some() {
                            leave_out_advice(&mut frame);
                        }
                        shell.update(Event::Frame(Box::new(frame)));
                    }
                    Effect::Warning(CodedWarning {
                        code: PROVIDER_CHANGED | PROVIDER_UNRECORDED,
                        message,
                    }) => {
                        shell.update(Event::ProviderChanged(message));
                    }
                    Effect::Warning(CodedWarning { code: MODEL_CHANGED, message }) => {
                        shell.update(Event::Logged(message));
                    }
                    // The events UsageTotals and StoreDegraded say it.
                    Effect::Usage(_) | Effect::ToolImages(_) | Effect::Warning(_) => {}
                    Effect::Exit(code) | Effect::Abort(code) if held.is_some() => {
                        shell.held = Some(code);
                    }
                    Effect::Exit(code) => {
                        let signal = shell.host.late_signal();
                        shell.exit = Some(signal.map_or(code, ExitCode::Interrupted));
                    }
                    Effect::Abort(code) => shell.exit = Some(code),
                }
            }
        });
        if let Some(session) = held.filter(|_| self.held.is_some()) {
            self.update(Event::SessionHeld { session, is_only: true });
        }
        if self.is_open()
            && let Some(first) = self.first.take()
        {
            self.ask_first(first);
        }
    }

    /// The system prompt is that of the conversation, also of a stored one.
    pub(super) fn look_at_system(&mut self) {
        let system = self.host.system();
        if self.state.status.system.as_deref() != system {
            self.state.status.system = system.map(str::to_owned);
        }
    }

    /// Whether the conversation can be asked: its store is open, and it is loaded if it goes on.
    pub(super) fn is_open(&self) -> bool {
        let has_ended = self.exit.is_some() || self.held.is_some();
        !has_ended && !self.host.is_opening() && !self.state.is_loading()
    }

    /// The first conversation, if another process holds it and a copy can be offered.
    fn held_session(&self, effects: &Effects) -> Option<String> {
        let can_offer = self.services.forker.is_some() && !self.state.is_plain();
        let is_first = !self.state.has_begun() && self.signal.is_none();
        locked_session(effects).filter(|_| can_offer && is_first)
    }

    /// Asks the first prompt of a conversation that is open; where the person has to agree first, it is
    /// written into the line.
    pub(super) fn ask_first(&mut self, first: FirstPrompt) {
        let FirstPrompt { submit, is_written } = first;
        let text = submit.prompt.clone().into_string();
        let mentions = if is_written { mentions(&text) } else { Vec::new() };
        if self.state.can_ask_first(&text, &files::large(&mentions)) {
            return self.submit_first(submit, mentions);
        }
        self.state.first_waits(text, submit.attachments);
        self.needs_picture = true;
    }

    /// Does `work`, and only then what the model wants because of it: a request that a frame leads to has
    /// frames of its own, which follow all frames of the first.
    pub(super) fn together(&mut self, work: impl FnOnce(&mut Self)) {
        let is_inside = std::mem::replace(&mut self.defers, true);
        work(self);
        self.defers = is_inside;
        while !self.defers
            && let Some(action) = self.deferred.pop_front()
        {
            self.act(action);
        }
    }

    pub(super) fn frame(&mut self, frame: Frame) {
        self.record(&frame);
        self.update(Event::Frame(Box::new(frame)));
    }

    fn record(&mut self, frame: &Frame) {
        if let Some(file) = &mut self.debug_file {
            file.record(frame);
        }
    }

    pub(super) fn update(&mut self, event: Event) {
        let actions = self.state.update(self.started.elapsed(), event);
        self.needs_picture = true;
        self.deferred.extend(actions);
        self.together(|_| {});
    }

    pub(super) fn note(&mut self, note: Note, text: String) {
        self.state.note(note, text);
        self.needs_picture = true;
    }
}

/// Leaves out of an error what a person could do, as the chat offers more.
fn leave_out_advice(frame: &mut Frame) {
    if let Some(Body::Error(error)) = &mut frame.frame {
        for text in [&mut error.message, &mut error.detail] {
            text.truncate(text.trim_end_matches(LOCKED_ADVICE).len());
        }
    }
}

/// The session that another process holds, as an error says.
pub(super) fn locked_session(effects: &Effects) -> Option<String> {
    let mut frames = effects.list.iter().filter_map(|effect| match effect {
        Effect::Frame(frame) => Some(frame),
        Effect::Usage(_)
        | Effect::ToolImages(_)
        | Effect::Warning(_)
        | Effect::Exit(_)
        | Effect::Abort(_) => None,
    });
    let is_locked = |frame: &&Frame| match &frame.frame {
        Some(Body::Error(error)) => error.code == code::SESSION_LOCKED,
        Some(_) | None => false,
    };
    frames.find(is_locked).map(|frame| frame.session_id.clone())
}
