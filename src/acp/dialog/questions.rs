//! Requests to the client: each has one response, or is withdrawn.

use super::{Asked, Dialog, Order, Purpose, REQUESTS_MAX, Tool};
use crate::acp::forms::{self, Unfit};
use crate::acp::jsonrpc::RpcError;
use crate::acp::permissions::{self, Answer};
use crate::acp::queue::Item;
use crate::acp::schema::{PermissionOption, PermissionRequest, ToolCall, ToolStatus, Update};
use crate::acp::tool_calls;
use crate::protocol::command::{Approve, Command, Compact, Decision};
use crate::protocol::id::ToolCallId;
use crate::protocol::proto::session::CompactionProposed;
use crate::protocol::proto::tools::ToolApprovalRequested;
use crate::session::approval::ApprovalMode;
use crate::support::terminal::escape_control;
use serde_json::{Value, json};

/// Addresses that a client was asked to open: it is told when they are done with, for so many at a time.
const ELICITATIONS_MAX: usize = 16;

impl Dialog {
    /// Asks the client.
    pub(super) fn ask(&mut self, method: &'static str, params: Value, asked: Asked) {
        let id = self.number * REQUESTS_MAX + self.requests;
        self.requests = (self.requests + 1) % REQUESTS_MAX;
        self.asked.insert(id, asked);
        self.queue.push(Item::Request { id, method, params });
    }

    /// The response of the client to one of our requests. One that was withdrawn is late.
    pub(in crate::acp) fn response(&mut self, id: i64, response: Result<Value, RpcError>) {
        match self.asked.remove(&id) {
            Some(Asked::Permission { call, tool }) => match permissions::answer(response) {
                Answer::Decided(decision) => self.decide(call, decision),
                Answer::RejectAlways => {
                    self.decide(call, rejected());
                    self.reject_always(tool);
                }
                Answer::Cancelled => self.cancel_turn(),
            },
            Some(Asked::Buffer(link)) => self.buffer(link, response),
            Some(Asked::Question(number)) => {
                let answer = response.ok().filter(|it| it["action"].is_string());
                self.orders.push_back(Order::Answer(number, answer.unwrap_or_else(cancelled)));
            }
            Some(Asked::Compaction) => match permissions::answer(response) {
                Answer::Decided(Decision::AllowOnce | Decision::AllowSession) => {
                    self.decide_compaction(false);
                }
                Answer::Decided(Decision::Deny { .. }) | Answer::RejectAlways => {
                    self.decide_compaction(true);
                }
                Answer::Cancelled => self.cancel_turn(),
            },
            None => {}
        }
    }

    /// The client has cancelled the turn of a question. The prompts that wait may be of the time after that: a
    /// client that cancels a turn answers its questions so, at any time.
    fn cancel_turn(&mut self) {
        if self.active.as_ref().is_some_and(|active| !active.is_cancelled) {
            self.cancel();
        }
    }

    /// Denies the calls of a tool that are asked about; the later ones are not asked about.
    fn reject_always(&mut self, tool: Tool) {
        self.decide_all(|of| *of == tool, &rejected());
        self.rejected.insert(tool);
    }

    /// Decides about the calls that are asked about, if the mode is by now one that does.
    pub(super) fn decide_asked(&mut self) {
        if let Some(decision) = of_mode(self.options.approval()) {
            self.decide_all(|_| true, &decision);
        }
    }

    /// Takes the questions about calls of these tools back, and decides about the calls.
    fn decide_all(&mut self, is_of: impl Fn(&Tool) -> bool, decision: &Decision) {
        let call_of = |asked: &Asked| match asked {
            Asked::Permission { call, tool } if is_of(tool) => Some(call.clone()),
            Asked::Permission { .. }
            | Asked::Buffer(_)
            | Asked::Question(_)
            | Asked::Compaction => None,
        };
        let open = self.asked.iter().filter_map(|(id, asked)| Some((*id, call_of(asked)?)));
        for (id, call) in open.collect::<Vec<_>>() {
            self.withdraw(id);
            self.decide(call, decision.clone());
        }
    }

    /// A server wants to know something.
    pub(in crate::acp) fn question(&mut self, number: u64, server: &str, params: Value) {
        let Value::Object(mut params) = params else {
            return self.orders.push_back(Order::Answer(number, cancelled()));
        };
        params.shift_remove("_meta");
        if let Err(unfit) = forms::fit(&mut params) {
            // The editor would show nothing, and the server would get a cancellation.
            self.notices.push(declined(server, &unfit));
            return self.orders.push_back(Order::Answer(number, json!({ "action": "decline" })));
        }
        params.insert("sessionId".to_owned(), json!(self.session));
        // The person must know who asks.
        let message = params.get("message").and_then(Value::as_str).unwrap_or_default();
        let message = format!("{}: {message}", escape_control(server));
        params.insert("message".to_owned(), json!(message));
        if let Some(elicitation) = params.get("elicitationId").and_then(Value::as_str) {
            self.elicitations.truncate(ELICITATIONS_MAX - 1);
            self.elicitations.push_front(elicitation.to_owned());
        }
        self.ask("elicitation/create", Value::Object(params), Asked::Question(number));
    }

    /// What the address of a question was opened for is done.
    pub(in crate::acp) fn completed(&mut self, elicitation: &str) {
        if let Some(at) = self.elicitations.iter().position(|asked| asked == elicitation) {
            self.elicitations.remove(at);
            let params = json!({ "elicitationId": elicitation });
            self.queue.push(Item::Notification { method: "elicitation/complete", params });
        }
    }

    /// Nobody waits for the answer to this question any more.
    pub(in crate::acp) fn unasked(&mut self, number: u64) {
        let is_it = |asked: &Asked| matches!(asked, Asked::Question(of) if *of == number);
        let found = self.asked.iter().find(|(_, asked)| is_it(asked)).map(|(id, _)| *id);
        found.into_iter().for_each(|id| self.withdraw(id));
    }

    /// Takes the questions of servers back, which the turn that is cancelled has led to.
    pub(super) fn withdraw_questions(&mut self) {
        let asked = self.asked.iter().filter(|(_, it)| matches!(it, Asked::Question(_)));
        let asked: Vec<_> = asked.map(|(id, _)| *id).collect();
        asked.into_iter().for_each(|id| self.withdraw(id));
        self.orders.push_back(Order::DropQuestions);
    }

    /// A tool call needs a decision.
    pub(super) fn approval_requested(&mut self, requested: ToolApprovalRequested) {
        let ToolApprovalRequested { tool_call_id, tool_name, server, input, .. } = requested;
        let (call, tool) = (ToolCallId(tool_call_id), (server, tool_name));
        // Before the mode: one that allows everything takes nothing back.
        if self.rejected.contains(&tool) {
            return self.decide(call, rejected());
        }
        match of_mode(self.options.approval()) {
            Some(decision) => self.decide(call, decision),
            None => {
                let tool_call = tool_calls::asked(&call.0, &tool.1, &tool.0, &input, &self.folder);
                let tool_call = ToolCall { status: Some(ToolStatus::Pending), ..tool_call };
                let asked = Asked::Permission { call, tool };
                self.ask_permission(tool_call, permissions::options(), asked);
            }
        }
    }

    /// The call no longer waits for a decision: its time is over, or the run has ended.
    pub(super) fn approval_resolved(&mut self, call: &str) {
        let is_it = |asked: &Asked| match asked {
            Asked::Permission { call: of, .. } => of.0 == call,
            Asked::Buffer(_) | Asked::Question(_) | Asked::Compaction => false,
        };
        let found = self.asked.iter().find(|(_, asked)| is_it(asked)).map(|(id, _)| *id);
        found.into_iter().for_each(|id| self.withdraw(id));
    }

    /// The person decides whether the conversation is compacted.
    pub(super) fn compaction_proposed(&mut self, proposed: &CompactionProposed) {
        self.compactions_asked += 1;
        let id = self.own_id("compaction-question", self.compactions_asked);
        let call = tool_calls::asked_compaction(&id, proposed);
        self.queue.update(Update::ToolCall(call.clone()));
        self.compaction_call = Some(id);
        let options = permissions::options_of_compaction();
        self.ask_permission(call, options, Asked::Compaction);
    }

    /// What becomes of a compaction that the person was asked about. It may have been decided otherwise: the time for
    /// an answer is over, or the run has ended.
    pub(super) fn asked_compaction(&mut self, status: ToolStatus) {
        let asked = self.asked.iter().find(|(_, it)| matches!(it, Asked::Compaction));
        if let Some(id) = asked.map(|(id, _)| *id) {
            self.withdraw(id);
        }
        let Some(tool_call_id) = self.compaction_call.clone() else { return };
        if status != ToolStatus::InProgress {
            self.compaction_call = None;
        }
        let status = Some(status);
        let call = ToolCall { tool_call_id, status, ..ToolCall::default() };
        self.queue.update(Update::ToolCallChanged(call));
    }

    fn decide_compaction(&mut self, decline: bool) {
        let compact = Compact { decline, ..Compact::default() };
        self.order(Command::Compact(compact), Purpose::Notice);
    }

    fn ask_permission(
        &mut self,
        tool_call: ToolCall,
        options: Vec<PermissionOption>,
        asked: Asked,
    ) {
        let params = PermissionRequest { session_id: &self.session, tool_call, options };
        let params = serde_json::to_value(&params).unwrap_or_default();
        self.ask("session/request_permission", params, asked);
    }

    /// Takes a request to the client back.
    pub(super) fn withdraw(&mut self, id: i64) {
        if let Some(Asked::Question(number)) = self.asked.remove(&id) {
            self.orders.push_back(Order::Answer(number, cancelled()));
        }
        let params = json!({ "requestId": id });
        self.queue.push(Item::Notification { method: "$/cancel_request", params });
    }

    fn decide(&mut self, call: ToolCallId, decision: Decision) {
        self.order(Command::Approve(Approve { call, decision }), Purpose::Notice);
    }
}

/// The notice about a question that no editor can show.
fn declined(server: &str, unfit: &Unfit) -> String {
    let what = match unfit {
        Unfit::Form => "something in a form".to_owned(),
        Unfit::Field(name) => format!("{:?} in a form", escape_control(name)),
    };
    let server = escape_control(server);
    format!(
        "the MCP server {server} asks for {what} that editors can't show, so the question was declined"
    )
}

/// The result of a question that was not answered.
fn cancelled() -> Value {
    json!({ "action": "cancel" })
}

/// What the mode decides about a call; `None` if the person is asked.
fn of_mode(mode: ApprovalMode) -> Option<Decision> {
    match mode {
        ApprovalMode::Auto => Some(Decision::AllowOnce),
        ApprovalMode::Deny => {
            Some(Decision::Deny { reason: "the person lets no tool be called".to_owned() })
        }
        ApprovalMode::Ask => None,
    }
}

fn rejected() -> Decision {
    Decision::Deny { reason: "the person rejects this tool in this session".to_owned() }
}
