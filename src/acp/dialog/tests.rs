//! What a client is told in which order, whatever comes when.

use super::*;
use crate::acp::options::{Effort, Model};
use crate::acp::queue::Item;
use crate::acp::services::Opened;
use crate::engine::echo::Echo;
use crate::host::{Effect, Effects, HostSettings};
use crate::protocol::command::{Approve, Cancel, Compact, Decision};
use crate::protocol::id::SessionId;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::proto::tools::ToolApprovalRequested;
use crate::protocol::wire::{self, ClientError, Code, Done};
use crate::session::approval::ApprovalMode;
use crate::session::{ExitCode, Uptime};

fn dialog(client: ClientCapabilities) -> Dialog {
    Dialog::new(Beginning {
        session: "s".to_owned(),
        number: 1,
        tag: "tag".to_owned(),
        client,
        folder: PathBuf::from("/p"),
        request: Id::Number(0),
        how: How::New,
        notices: Vec::new(),
    })
}

fn settings() -> Opened {
    Opened {
        host: HostSettings::new(Echo::default()),
        models: Vec::new(),
        effort: Effort::Configured,
        approval: ApprovalMode::Ask,
        commands: Vec::new(),
        notices: Vec::new(),
    }
}

/// An open session whose first answer and updates were taken.
fn open() -> Dialog {
    let mut dialog = dialog(ClientCapabilities::default());
    assert!(dialog.opened(Ok(settings())).is_some());
    assert_eq!(answers(&mut dialog), [(0, Ok(()))]);
    dialog
}

fn prompt(dialog: &mut Dialog, id: i64, blocks: Value) {
    dialog.request(Id::Number(id), "session/prompt", json!({ "sessionId": "s", "prompt": blocks }));
}

fn ask(dialog: &mut Dialog, id: i64) {
    prompt(dialog, id, json!([{ "type": "text", "text": format!("prompt {id}") }]));
}

/// The requests that were answered since the last look, and how.
fn answers(dialog: &mut Dialog) -> Vec<(i64, Result<(), String>)> {
    let mut answers = Vec::new();
    while let Some(item) = dialog.queue.pop() {
        if let Item::Response { id: Id::Number(id), outcome } = item {
            answers.push((id, outcome.map(|_| ()).map_err(|error| error.to_string())));
        }
    }
    answers
}

/// The reasons with which prompts have ended.
fn reasons(dialog: &mut Dialog) -> Vec<(i64, String)> {
    let mut reasons = Vec::new();
    while let Some(item) = dialog.queue.pop() {
        if let Item::Response { id: Id::Number(id), outcome } = item {
            let reason = outcome.map(|it| it["stopReason"].as_str().unwrap_or_default().to_owned());
            reasons.push((id, reason.unwrap_or_else(|error| error.to_string())));
        }
    }
    reasons
}

/// Gives each request for the host an id, its number; returns the commands.
fn perform(dialog: &mut Dialog, next: &mut u32) -> Vec<Command> {
    let mut commands = Vec::new();
    while let Some(order) = dialog.next_order() {
        if let Order::Request(command, purpose) = order {
            *next += 1;
            dialog.issued(purpose, RequestId::new(&next.to_string()).expect("an id"));
            commands.push(command);
        }
    }
    commands
}

fn frame(request: &str, body: Body) -> Effect {
    let session = SessionId::new("s").expect("an id");
    Effect::Frame(wire::frame(&session, RequestId::new(request).as_ref(), body))
}

fn happens(dialog: &mut Dialog, list: Vec<Effect>) {
    dialog.effects(Effects { at: Uptime(0), list });
}

fn done(dialog: &mut Dialog, request: &str, how: Done) {
    happens(dialog, vec![frame(request, wire::done(how))]);
}

#[test]
fn a_prompt_waits_until_the_one_before_it_has_ended() {
    let (mut dialog, mut ids) = (open(), 0);
    ask(&mut dialog, 1);
    ask(&mut dialog, 2);
    assert!(matches!(&perform(&mut dialog, &mut ids)[..], [Command::Submit(_)]));
    done(&mut dialog, "1", Done::Ok);
    assert_eq!(reasons(&mut dialog), [(1, "end_turn".to_owned())]);
    assert!(matches!(&perform(&mut dialog, &mut ids)[..], [Command::Submit(_)]));
    // What is not about it changes nothing.
    done(&mut dialog, "1", Done::Ok);
    assert_eq!(reasons(&mut dialog), []);
    done(&mut dialog, "2", Done::Stopped);
    assert_eq!(reasons(&mut dialog), [(2, "cancelled".to_owned())]);
}

#[test]
fn a_choice_is_made_between_two_prompts() {
    let (mut dialog, mut ids) = (open(), 0);
    ask(&mut dialog, 1);
    ask(&mut dialog, 2);
    perform(&mut dialog, &mut ids);
    let choice = (ModelChoice::default(), Chosen::Effort(Effort::Configured));
    dialog.changes.push(choice);
    dialog.proceed();
    assert_eq!(perform(&mut dialog, &mut ids), []);
    done(&mut dialog, "1", Done::Ok);
    let next = perform(&mut dialog, &mut ids);
    assert!(matches!(&next[..], [Command::SwitchModel(_), Command::Submit(_)]), "{next:?}");
}

#[test]
fn a_choice_during_the_last_run_is_made_before_the_session_ends() {
    let (mut dialog, mut ids) = (open(), 0);
    ask(&mut dialog, 1);
    perform(&mut dialog, &mut ids);
    dialog.changes.push((ModelChoice::default(), Chosen::Effort(Effort::Configured)));
    dialog.end();
    assert_eq!(perform(&mut dialog, &mut ids), [Command::Cancel(Cancel::default())]);
    done(&mut dialog, "1", Done::Stopped);
    assert_eq!(reasons(&mut dialog), [(1, "cancelled".to_owned())]);
    let choice = dialog.next_order();
    assert!(matches!(choice, Some(Order::Request(Command::SwitchModel(_), _))), "{choice:?}");
    assert_eq!((dialog.next_order(), dialog.next_order()), (Some(Order::End), None));
}

#[test]
fn a_cancel_answers_all_prompts_and_the_run_ends_under_its_own() {
    let (mut dialog, mut ids) = (open(), 0);
    ask(&mut dialog, 1);
    ask(&mut dialog, 2);
    perform(&mut dialog, &mut ids);
    dialog.cancel();
    assert_eq!(reasons(&mut dialog), [(2, "cancelled".to_owned())]);
    assert_eq!(perform(&mut dialog, &mut ids), [Command::Cancel(Cancel::default())]);
    // However it ends now.
    done(&mut dialog, "1", Done::Failed);
    assert_eq!(reasons(&mut dialog), [(1, "cancelled".to_owned())]);
    ask(&mut dialog, 3);
    assert!(matches!(&perform(&mut dialog, &mut ids)[..], [Command::Submit(_)]));
}

#[test]
fn what_was_prepared_for_a_cancelled_prompt_is_not_sent() {
    let (mut dialog, mut ids) = (open(), 0);
    let link = json!([{ "type": "resource_link", "uri": "file:///p/a", "name": "a" }]);
    prompt(&mut dialog, 1, link);
    let Some(Order::Prepare(draft, None)) = dialog.next_order() else { panic!("a link") };
    dialog.cancel();
    ask(&mut dialog, 2);
    assert_eq!(reasons(&mut dialog), [(1, "cancelled".to_owned())]);
    assert_eq!(perform(&mut dialog, &mut ids).len(), 1);
    let text = draft.text.clone();
    dialog.prepared(draft.submit(text));
    assert_eq!(perform(&mut dialog, &mut ids), []);
}

#[test]
fn buffers_are_waited_for_and_given_up() {
    let mut dialog = dialog(ClientCapabilities { reads_files: true, ..Default::default() });
    dialog.opened(Ok(settings()));
    let link = |name: &str| json!({ "type": "resource_link", "uri": format!("file:///p/{name}"), "name": name });
    prompt(&mut dialog, 1, json!([link("a.rs"), link("b.rs"), link("c.png")]));
    assert_eq!(dialog.next_order(), Some(Order::AwaitBuffers));
    let asked: Vec<_> = dialog.asked.keys().copied().collect();
    assert_eq!(asked.len(), 2);
    dialog.response(asked[0], Ok(json!({ "content": "buffer" })));
    assert_eq!(dialog.next_order(), None);
    dialog.stop_fetching();
    let Some(Order::Prepare(draft, None)) = dialog.next_order() else { panic!("links") };
    let buffers: Vec<_> = draft.links.iter().map(|link| link.buffer.as_deref()).collect();
    assert_eq!(buffers, [Some("buffer"), None, None]);
    // Too late.
    dialog.response(asked[1], Ok(json!({ "content": "late" })));
    assert_eq!(dialog.next_order(), None);
}

#[test]
fn a_session_that_can_not_be_opened_says_why() {
    let mut early = dialog(ClientCapabilities::default());
    early.opened(Err("no profile".to_owned()));
    assert_eq!(answers(&mut early), [(0, Err("no profile".to_owned()))]);
    assert!(early.is_over());
    // The client has the session already.
    let mut late = dialog(ClientCapabilities::default());
    assert!(late.awaits_settings());
    late.answer_opening();
    ask(&mut late, 1);
    late.opened(Err("no profile".to_owned()));
    ask(&mut late, 2);
    let why = || Err("no profile".to_owned());
    assert_eq!(answers(&mut late), [(0, Ok(())), (1, why()), (2, why())]);
    late.request(Id::Number(3), "session/close", json!({}));
    assert!(late.is_over());
    late.closed();
    assert_eq!(answers(&mut late), [(3, Ok(()))]);
}

#[test]
fn a_conversation_that_ends_answers_everything() {
    let (mut dialog, mut ids) = (open(), 0);
    ask(&mut dialog, 1);
    ask(&mut dialog, 2);
    perform(&mut dialog, &mut ids);
    let message = "the conversation met a defect".to_owned();
    let error =
        ClientError { code: Code::Internal, message, detail: String::new(), terminal: true };
    let list = vec![
        frame("1", wire::error(error.clone())),
        frame("1", wire::done(Done::Failed)),
        frame("", wire::error(error)),
        frame("", wire::done(Done::Failed)),
        Effect::Exit(ExitCode::Internal),
    ];
    happens(&mut dialog, list);
    let answered = answers(&mut dialog);
    assert_eq!(answered.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [1, 2], "{answered:?}");
    assert!(answered.iter().all(|(_, outcome)| outcome.is_err()) && dialog.is_over());
}

/// A session that takes more than a moment to open, whose client has been answered.
fn preparing() -> Dialog {
    let mut dialog = dialog(ClientCapabilities::default());
    dialog.answer_opening();
    answers(&mut dialog);
    dialog
}

/// The modes that the client was sent since the last call of this.
fn modes(dialog: &mut Dialog) -> Vec<&'static str> {
    let mut modes = Vec::new();
    while let Some(item) = dialog.queue.pop() {
        if let Item::Update(Update::Mode { current_mode_id }) = item {
            modes.push(current_mode_id);
        }
    }
    modes
}

#[test]
fn what_is_chosen_before_the_settings_are_known_stays_chosen() {
    let (mut dialog, mut ids) = (preparing(), 0);
    let mode = json!({ "sessionId": "s", "modeId": "deny" });
    dialog.request(Id::Number(1), "session/set_mode", mode);
    let effort = json!({ "sessionId": "s", "configId": "thought_level", "value": "high" });
    dialog.request(Id::Number(2), "session/set_config_option", effort);
    assert_eq!(answers(&mut dialog), [(1, Ok(())), (2, Ok(()))]);
    // No host takes requests yet.
    assert_eq!(perform(&mut dialog, &mut ids), []);
    let choice = ModelChoice::default();
    let text = || "m".to_owned();
    let model =
        Model { id: text(), name: text(), choice, engine: text(), model: text(), effort: None };
    let effort = Effort::Chosen(Some("low".to_owned()));
    let approval = ApprovalMode::Auto;
    let opened = Opened { models: vec![model], effort, approval, ..settings() };
    assert!(dialog.opened(Ok(opened)).is_some());
    assert_eq!(dialog.options.approval(), ApprovalMode::Deny);
    let config = dialog.options.config();
    let chosen: Vec<_> = config.as_array().into_iter().flatten().collect();
    let chosen: Vec<_> = chosen.iter().map(|it| it["currentValue"].as_str()).collect();
    assert_eq!(chosen, [Some("deny"), Some("m"), Some("high")]);
    let commands = perform(&mut dialog, &mut ids);
    let [Command::NoteApproval("deny"), Command::SwitchModel(choice)] = &commands[..] else {
        panic!("{commands:?}");
    };
    assert_eq!(choice.settings["reasoning_effort"], "high");
    assert_eq!(modes(&mut dialog), [""; 0]);
}

#[test]
fn a_mode_that_was_shown_before_the_settings_were_known_is_put_right() {
    for (approval, sent) in [(ApprovalMode::Auto, vec!["auto"]), (ApprovalMode::Ask, vec![])] {
        let mut dialog = preparing();
        dialog.opened(Ok(Opened { approval, ..settings() }));
        assert_eq!(modes(&mut dialog), sent);
    }
}

#[test]
fn a_session_that_is_being_opened_is_not_resumed_once_more() {
    let mut dialog = dialog(ClientCapabilities::default());
    dialog.opening = Some((Id::Number(0), How::Resume));
    let resume = |dialog: &mut Dialog, id| {
        dialog.request(Id::Number(id), "session/resume", json!({ "sessionId": "s" }));
        answers(dialog)
    };
    let refused = |id| (id, Err("the session is being opened already".to_owned()));
    assert_eq!(resume(&mut dialog, 1), [refused(1)]);
    dialog.opened(Ok(settings()));
    assert_eq!(resume(&mut dialog, 2), [refused(2)]);
    dialog.begin();
    assert_eq!(resume(&mut dialog, 3), [(0, Ok(())), (3, Ok(()))]);
}

/// Asks the client about a call of a tool; returns the id of the question.
fn permission(dialog: &mut Dialog, call: &str, tool: &str) -> i64 {
    let (tool_call_id, tool_name) = (call.to_owned(), tool.to_owned());
    let requested = ToolApprovalRequested { tool_call_id, tool_name, ..Default::default() };
    dialog.approval_requested(requested);
    *dialog.asked.keys().last().expect("a question")
}

fn decide(dialog: &mut Dialog, question: i64, outcome: Value) {
    dialog.response(question, Ok(json!({ "outcome": outcome })));
}

#[test]
fn a_question_of_a_cancelled_turn_withdraws_no_later_prompt() {
    let cancels: [fn(&mut Dialog); 2] =
        [Dialog::cancel, |dialog| dialog.cancel_request(&Id::Number(1))];
    for cancel in cancels {
        let (mut dialog, mut ids) = (open(), 0);
        ask(&mut dialog, 1);
        perform(&mut dialog, &mut ids);
        let question = permission(&mut dialog, "call", "act");
        cancel(&mut dialog);
        ask(&mut dialog, 2);
        decide(&mut dialog, question, json!({ "outcome": "cancelled" }));
        assert_eq!(reasons(&mut dialog), []);
        perform(&mut dialog, &mut ids);
        done(&mut dialog, "1", Done::Stopped);
        assert_eq!(reasons(&mut dialog), [(1, "cancelled".to_owned())]);
        assert!(matches!(&perform(&mut dialog, &mut ids)[..], [Command::Submit(_)]));
    }
}

#[test]
fn a_tool_that_is_always_rejected_leaves_no_question_about_it() {
    let (mut dialog, mut ids) = (open(), 0);
    ask(&mut dialog, 1);
    perform(&mut dialog, &mut ids);
    let first = permission(&mut dialog, "first", "act");
    let second = permission(&mut dialog, "second", "act");
    let other = permission(&mut dialog, "other", "look");
    answers(&mut dialog);
    let outcome = json!({ "outcome": "selected", "optionId": "reject_always" });
    decide(&mut dialog, first, outcome);
    let mut denied = Vec::new();
    for command in perform(&mut dialog, &mut ids) {
        let Command::Approve(Approve { call, decision: Decision::Deny { .. } }) = command else {
            panic!("{command:?}");
        };
        denied.push(call.0);
    }
    assert_eq!(denied, ["first", "second"]);
    assert_eq!(dialog.asked.keys().collect::<Vec<_>>(), [&other]);
    assert_eq!(withdrawn(&mut dialog), [second]);
}

/// The questions that were taken back since the last look.
fn withdrawn(dialog: &mut Dialog) -> Vec<i64> {
    let mut withdrawn = Vec::new();
    while let Some(item) = dialog.queue.pop() {
        if let Item::Notification { method: "$/cancel_request", params } = item {
            withdrawn.extend(params["requestId"].as_i64());
        }
    }
    withdrawn
}

#[test]
fn a_question_that_nobody_waits_for_is_taken_back() {
    let mut dialog = open();
    let schema = json!({ "type": "object", "properties": {} });
    for (number, message) in [(7, "Your name?"), (8, "Your age?")] {
        let params = json!({ "message": message, "requestedSchema": schema });
        dialog.question(number, "files", params);
    }
    let asked: Vec<_> = dialog.asked.keys().copied().collect();
    dialog.unasked(7);
    assert_eq!(withdrawn(&mut dialog), asked[..1]);
    assert_eq!(dialog.asked.keys().collect::<Vec<_>>(), [&asked[1]]);
}

#[test]
fn a_cancel_takes_back_the_questions_that_are_still_on_their_way() {
    let (mut dialog, mut ids) = (open(), 0);
    ask(&mut dialog, 1);
    perform(&mut dialog, &mut ids);
    dialog.cancel();
    assert!(matches!(dialog.next_order(), Some(Order::Request(Command::Cancel(_), _))));
    assert_eq!(dialog.next_order(), Some(Order::DropQuestions));
}

#[test]
fn files_are_words_only_of_a_command_that_there_is() {
    let prompt_of = |text: &str| {
        let mut dialog = open();
        let link = json!({ "type": "resource_link", "uri": "file:///p/a.rs", "name": "a.rs" });
        prompt(&mut dialog, 1, json!([{ "type": "text", "text": text }, link]));
        dialog.next_order()
    };
    let Some(Order::Prepare(draft, None)) = prompt_of("/etc is wrong in ") else {
        panic!("a link");
    };
    assert_eq!((draft.links.len(), &*draft.text), (1, "/etc is wrong in [@a.rs](file:///p/a.rs)"));
    let compact = Compact { instructions: "/p/a.rs".to_owned(), ..Compact::default() };
    let expected = Order::Request(Command::Compact(compact), Purpose::Prompt);
    assert_eq!(prompt_of("/compact "), Some(expected));
}
