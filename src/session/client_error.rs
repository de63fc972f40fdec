//! Errors for clients: what happened, what it means for them, what to do.

use super::exit::Signal;
use super::hints::{Hint, Hints};
use crate::extract::Reason;
use crate::protocol::attachment::ATTACHMENTS_MAX;
use crate::protocol::id::{RequestId, SessionId, ToolCallId};
use crate::protocol::wire::{ClientError, Code};
use crate::task::report::{ErrorClass, RunError, Stage};
use crate::task::server::ServerName;
use std::any::Any;

pub(super) fn endless_answer(bytes_max: usize) -> RunError {
    let message = format!(
        "the answer grew past {bytes_max} bytes and was ended there; what came until then is kept; \
         ask for less at a time"
    );
    RunError::of_answer(ErrorClass::Provider, message, "the answer is too long".to_owned())
}

pub(super) fn too_many_segments(segments_max: u32) -> RunError {
    let message = format!(
        "the answer changed between reasoning and text more than {segments_max} times and was \
         ended there; what came until then is kept; try another model or provider"
    );
    let detail = "the answer has too many segments".to_owned();
    RunError::of_answer(ErrorClass::Provider, message, detail)
}

pub(super) fn too_many_calls(calls_max: u32) -> RunError {
    let message = format!(
        "the answer called tools more than {calls_max} times and was ended there; what came until then is \
         kept; try another model or provider"
    );
    let detail = "the answer has too many tool calls".to_owned();
    RunError::of_answer(ErrorClass::Provider, message, detail)
}

/// The process begins with other earlier messages than the stored conversation that it was to go on with.
pub(super) fn other_beginning(hints: Hints) -> ClientError {
    let message = format!(
        "this process begins with messages that are not those which the stored session began with, and they \
         can't be put before what was said there, so nothing was asked; begin another session{}",
        hints.of(Hint::OtherSession)
    );
    let detail = with_class(ErrorClass::Config, &message);
    ClientError { detail, terminal: true, ..client_error(Code::EngineInitFailed, message) }
}

/// The conversation continues without being stored.
pub(super) fn store_failed(reason: &str) -> ClientError {
    ClientError {
        code: Code::StoreFailed,
        message: format!(
            "{reason}; the conversation goes on and is not stored any more; mend the cause, and start \
             the process again"
        ),
        detail: reason.to_owned(),
        terminal: false,
    }
}

/// Nothing more is written to the store: it is damaged, or the conversation has ended.
pub(crate) fn store_closed(reason: &str) -> ClientError {
    let (message, detail) = (reason.to_owned(), reason.to_owned());
    ClientError { code: Code::StoreFailed, message, detail, terminal: false }
}

/// Characters of the names of tools that an error quotes.
const NAMES_CHARS_MAX: usize = 200;

pub(super) fn no_tools(names: &[&str], hints: Hints) -> RunError {
    let names: String = names.join(", ").chars().take(NAMES_CHARS_MAX).collect();
    let message = format!(
        "the model called a tool that this process doesn't offer ({names}): ask again, choose \
         another model, or offer tools{}",
        hints.of(Hint::OfferTools)
    );
    RunError::of_answer(ErrorClass::Tool, message, format!("called: {names}"))
}

/// Characters of the names of servers and the reasons why they are missing that an error quotes.
const REASONS_CHARS_MAX: usize = 1000;

/// The run would go without tools that it must have: those of these servers, each with the reason.
pub(super) fn missing_servers(missing: &[(&ServerName, String)], hints: Hints) -> RunError {
    let named = missing.iter().map(|(server, reason)| format!("{server} ({reason})"));
    let named: String =
        named.collect::<Vec<_>>().join(", ").chars().take(REASONS_CHARS_MAX).collect();
    let servers = if missing.len() == 1 { "the server" } else { "the servers" };
    let message = format!(
        "the tools of {named} are missing, so the model was not asked; mend {servers}{}",
        hints.of(Hint::RequireTools)
    );
    RunError::of_answer(ErrorClass::Tool, message, format!("no tools of {named}"))
}

pub(super) fn too_many_rounds(rounds_max: u32, hints: Hints) -> RunError {
    let message = format!(
        "the model called tools in {rounds_max} rounds without an answer, and the run was ended; \
         ask it to go on{}",
        hints.of(Hint::ToolRounds)
    );
    RunError::of_answer(ErrorClass::Tool, message, rounds_detail(rounds_max))
}

fn rounds_detail(rounds_max: u32) -> String {
    format!("more than {rounds_max} rounds of tool calls")
}

/// Whether an error of a client with this detail says that a run had too many rounds of tool calls.
pub(crate) fn is_too_many_rounds(detail: &str) -> bool {
    let rounds_max = detail.split(' ').find_map(|word| word.parse().ok());
    rounds_max.is_some_and(|it| detail == with_class(ErrorClass::Tool, &rounds_detail(it)))
}

/// The detail of a run's error, as a client gets it.
fn with_class(class: ErrorClass, detail: &str) -> String {
    format!("{}: {detail}", class.as_str())
}

pub(super) fn unknown_tool_call(id: &ToolCallId) -> ClientError {
    let message = "no call of that id waits for this: it may have been answered, timed out or been \
                   cancelled before; nothing was done";
    let detail = format!("toolCallId {:?}", id.0);
    ClientError { detail, ..client_error(Code::UnknownToolCall, message) }
}

/// `message_id` is the prompt that was named; without one the last turn was meant.
pub(super) fn unknown_message(message_id: Option<&str>) -> ClientError {
    let Some(message_id) = message_id else {
        let message = "the conversation has no turn that could be dropped; nothing was changed";
        return client_error(Code::UnknownMessage, message);
    };
    let message = "no turn of this conversation begins with that message, so nothing was changed; name \
                   the first prompt of a turn, as a snapshot has it";
    let detail = format!("messageId {message_id:?}");
    ClientError { detail, ..client_error(Code::UnknownMessage, message) }
}

pub(super) fn budget_exhausted(message: String) -> RunError {
    let (stage, class) = (Stage::Budget, ErrorClass::Config);
    RunError { stage, class, message, detail: "the budget is exhausted".to_owned() }
}

pub(super) fn nothing_to_compact() -> ClientError {
    let message = "there is nothing that a summary could stand for, so nothing was changed: turns that \
                   were answered are summarized, but for those that are kept or were summarized before";
    client_error(Code::NothingToCompact, message)
}

/// `detail` is that of the error that the summary met.
pub(super) fn compaction_failed(reason: &str, detail: String) -> ClientError {
    let message = format!("the conversation was not compacted and is as it was: {reason}");
    ClientError { detail, ..client_error(Code::CompactionFailed, message) }
}

/// The attachments of a prompt that is to be asked again are not there. `why`: the reason, as a clause.
pub(super) fn lost_attachments(why: &str) -> ClientError {
    let message = format!(
        "the images and files of that prompt are not kept, because {why}, so nothing was changed; send \
         the prompt again with them"
    );
    client_error(Code::UnknownMessage, message)
}

pub(super) fn too_many_attachments(count: usize) -> ClientError {
    let message = format!(
        "with those of the earlier prompt there are {count} attachments, and a prompt can have \
         {ATTACHMENTS_MAX}, so nothing was changed; leave some out"
    );
    client_error(Code::InvalidAttachment, message)
}

/// A prompt in the place of another is blank, and no attachment goes with it.
pub(super) fn nothing_to_ask() -> ClientError {
    let message = "the prompt is blank and has no attachments, so there is nothing to answer and nothing was \
                   changed; send one as `prompt` of `replace`";
    client_error(Code::EmptyPrompt, message)
}

/// The files of a request were not read within so many milliseconds.
pub(super) fn slow_files(limit_ms: u64) -> ClientError {
    let message = format!(
        "the files that the prompt names were not read within {} s, as on a network file system that \
         does not answer, so it was not sent; check that they can be read, and send it again",
        limit_ms / 1000
    );
    client_error(Code::InvalidAttachment, message)
}

pub(super) fn queue_full(active: &RequestId) -> ClientError {
    client_error(
        Code::SessionBusy,
        format!(
            "request {} is still being answered and no more prompts can wait for it; send this one \
             again after a done",
            active.as_str()
        ),
    )
}

/// No more requests can wait for their files and resources.
pub(super) fn reads_full() -> ClientError {
    let message =
        "no more prompts can wait for their files and resources; send this one again after a done";
    client_error(Code::SessionBusy, message)
}

pub(super) fn too_many_shutdowns() -> ClientError {
    client_error(
        Code::ShuttingDown,
        "the process is about to end, and as many shutdown requests as can be answered wait for \
         that; wait for the exit",
    )
}

pub(super) fn no_such_request(target: &RequestId) -> ClientError {
    client_error(
        Code::NoActiveRequest,
        format!(
            "request {:?} neither runs nor waits, so nothing was cancelled; it may have ended just \
             before",
            target.as_str()
        ),
    )
}

pub(super) fn invalid_answer(line: u64, reason: &Reason, has_schema: bool) -> ClientError {
    let message = match reason {
        Reason::CutOff => {
            "the answer ends before the JSON document in it does, as it does at a token limit, so \
             there is no document; raise the limit, or ask for less at a time"
        }
        Reason::NotJson { .. }
        | Reason::TooLong { .. }
        | Reason::Schema { .. }
        | Reason::Prose
        | Reason::Empty => match has_schema {
            true => {
                "the model has answered, but not with the JSON document that response-type and schema \
                 ask for; ask again, or change the prompt or the schema"
            }
            false => {
                "the model has answered, but not with the JSON document that response-type asks for; ask \
                 again, or change the prompt"
            }
        },
    };
    let detail = format!("line {line}: {reason}");
    ClientError { detail, ..client_error(Code::InvalidAnswer, message) }
}

pub(super) fn mismatch(bound: &SessionId) -> ClientError {
    let bound = bound.as_str();
    client_error(
        Code::SessionMismatch,
        format!(
            "this process holds the session {bound:?} and no other; leave sessionId out, send \
             {bound:?}, or start another process for another conversation"
        ),
    )
}

/// A submit has come during a run.
pub(super) fn busy(active: &RequestId, hints: Hints) -> ClientError {
    client_error(
        Code::SessionBusy,
        format!(
            "request {} is still being answered; send this one again after its done{}",
            active.as_str(),
            hints.of(Hint::QueueSubmits)
        ),
    )
}

/// A request that can't wait for the end of a run.
#[derive(Clone, Copy, Debug)]
pub(super) enum NotQueued {
    Compact,
    Edit,
    SwitchModel,
}

impl NotQueued {
    /// Its name, with an article before it.
    fn named(self) -> (&'static str, &'static str) {
        match self {
            Self::Compact => ("a", "compact"),
            Self::Edit => ("an", "edit"),
            Self::SwitchModel => ("a", "switchModel"),
        }
    }
}

/// `request` has come during a run. No queue of submits would help.
pub(super) fn busy_for(request: NotQueued, active: &RequestId) -> ClientError {
    let (article, name) = request.named();
    client_error(
        Code::SessionBusy,
        format!(
            "request {} is still being answered, and {article} {name} does not wait for it, so nothing was \
             changed; send the {name} again after its done",
            active.as_str()
        ),
    )
}

pub(super) fn invalid_settings(why: String) -> ClientError {
    let message = "the settings can't be used, so nothing was changed or sent; correct them and send \
                   the request again";
    ClientError { detail: why, ..client_error(Code::InvalidSettings, message) }
}

pub(super) fn shutting_down() -> ClientError {
    client_error(
        Code::ShuttingDown,
        "the process is about to end and takes no more prompts; start another",
    )
}

/// Of a prompt whose files or resources were still being read.
pub(super) fn shut_down_unread() -> ClientError {
    client_error(
        Code::ShuttingDown,
        "the process ends before the files or resources of this prompt have come, so it was not sent; \
         send it to another process",
    )
}

pub(super) fn no_active_request() -> ClientError {
    client_error(
        Code::NoActiveRequest,
        "there is no run to cancel; it may have ended on its own just before",
    )
}

pub(super) fn interrupted(signal: Signal) -> ClientError {
    let message =
        format!("the process was ended by {signal}; what was running was stopped and is shown");
    ClientError { terminal: true, ..client_error(Code::Interrupted, message) }
}

pub(super) fn stdin_read_failed(reason: String) -> ClientError {
    let message = "standard input could not be read, so no more requests can come; the process \
                   ends";
    ClientError { detail: reason, terminal: true, ..client_error(Code::StdinReadFailed, message) }
}

/// The end of a conversation after a panic; `is_stored`: its shown part can be resumed.
pub(crate) fn conversation_ended(defect: &str, is_stored: bool) -> ClientError {
    let rest = match is_stored {
        true => "it is stored up to there, and another process can go on with it",
        false => "it was not stored",
    };
    let message = format!(
        "the conversation met a defect of this program and was ended; {rest}; please report the defect"
    );
    let detail = defect.to_owned();
    ClientError { detail, terminal: true, ..client_error(Code::Internal, message) }
}

/// The answer to a request without a run in a conversation that met a panic.
pub(crate) fn request_ended(defect: &str) -> ClientError {
    let message = "the request was not answered, because the conversation met a defect of this program \
                   and was ended; please report the defect";
    let detail = defect.to_owned();
    ClientError { detail, ..client_error(Code::Internal, message) }
}

/// The reply to a request whose run is active in a conversation that ends with a panic.
pub(crate) fn run_ended(defect: &str) -> ClientError {
    let message = "the run was cut off, because the conversation met a defect of this program and was \
                   ended; please report the defect";
    run_failed(RunError { message: message.to_owned(), ..run_defect(defect) })
}

/// How a run ends that met a defect of this program.
pub(crate) fn run_defect(defect: &str) -> RunError {
    let message = "the run met a defect of this program and was ended; the session goes on; please \
                   report it";
    RunError::of_answer(ErrorClass::Internal, message.to_owned(), defect.to_owned())
}

pub(super) fn run_failed(error: RunError) -> ClientError {
    let code = match error.stage {
        Stage::Init => Code::EngineInitFailed,
        Stage::Budget => Code::BudgetExhausted,
        Stage::Refused | Stage::Run => Code::RunFailed,
    };
    let detail = if error.detail.is_empty() { &error.message } else { &error.detail };
    let detail = with_class(error.class, detail);
    ClientError { detail, ..client_error(code, error.message) }
}

fn client_error(code: Code, message: impl Into<String>) -> ClientError {
    ClientError { code, message: message.into(), detail: String::new(), terminal: false }
}

/// The message of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (None, Some(text)) => text.clone(),
        (None, None) => "no description".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_rounds_are_known_by_what_a_client_is_told() {
        let detail = run_failed(too_many_rounds(7, Hints::default())).detail;
        assert!(is_too_many_rounds(&detail), "{detail}");
        let others = [
            run_failed(too_many_segments(7)).detail,
            rounds_detail(7),
            format!("{detail}!"),
            "tool: more than many rounds of tool calls".to_owned(),
        ];
        for other in others {
            assert!(!is_too_many_rounds(&other), "{other}");
        }
    }
}
