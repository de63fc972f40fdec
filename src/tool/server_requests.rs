//! Requests and notifications of servers, in limits. The SDK starts a task for each of them and keeps
//! every reply until it is sent, so a server that sends them without end, or reads no replies, would
//! take all memory. Here requests are answered, or left unanswered, before the SDK sees them, reports on
//! progress are taken, and only the notification that is of use is passed on.

use crate::tool::connection::{Closed, Closing};
use crate::tool::elicitation::Asker;
use crate::tool::progress::Reports;
use rmcp::model::{
    ClientResult, CustomResult, ErrorCode, ErrorData, JsonRpcMessage, JsonRpcRequest, RequestId,
    ServerNotification, ServerRequest,
};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

/// Replies that are being sent. While there are so many, requests are left unanswered.
const REPLIES_MAX: usize = 64;

/// Questions of a server that wait for the person; more are declined.
const QUESTIONS_MAX: usize = 8;

/// Requests of a server within [`PERIOD`]; with one more the connection is closed.
const REQUESTS_MAX: u32 = 1000;

/// In which requests are counted.
const PERIOD: Duration = Duration::from_secs(60);

/// What an address was opened for is done (MCP 2025-11-25, elicitation).
const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";

/// What servers ask a person with.
const ELICITATION: &str = "elicitation/create";

/// Longest id of a request that is answered, in bytes: replies repeat it.
const ID_BYTES_MAX: usize = 256;

/// A transport whose server's requests are answered here.
pub(super) struct AnsweringTransport<T> {
    inner: T,
    closed: Closed,
    reports: Reports,
    replies: JoinSet<()>,
    count: RequestCount,
    asker: Option<Asker>,
    /// Questions that the person has not answered yet; each becomes a reply.
    asked: JoinSet<TxJsonRpcMessage<RoleClient>>,
    /// The tasks of `asked` by the ids of the requests: a server may cancel one.
    questions: Vec<(RequestId, AbortHandle)>,
}

/// The requests of a server in the current period.
#[derive(Debug)]
struct RequestCount {
    since: Instant,
    requests: u32,
}

impl<T: Transport<RoleClient>> AnsweringTransport<T> {
    /// Replies to requests over `inner`; `closed` is set when a server sends too many, and `reports` gets the
    /// progress of calls. `asker` asks the person.
    pub(super) fn new(inner: T, closed: Closed, reports: Reports, asker: Option<Asker>) -> Self {
        let count = RequestCount { since: Instant::now(), requests: 0 };
        let (replies, asked) = (JoinSet::new(), JoinSet::new());
        Self { inner, closed, reports, replies, count, asker, asked, questions: Vec::new() }
    }

    /// Answers `request`, if there is room for the reply. `None`: it is one too many.
    fn answer(&mut self, request: JsonRpcRequest<ServerRequest>) -> Option<()> {
        if !self.count.add(Instant::now()) {
            let why = format!("it sent more than {REQUESTS_MAX} requests within {PERIOD:?}");
            self.closed.send_replace(Some(Closing::Fault(why)));
            return None;
        }
        if self.replies.len() >= REPLIES_MAX || id_bytes(&request.id) > ID_BYTES_MAX {
            tracing::debug!("a request of an MCP server was left unanswered");
            return Some(());
        }
        if let (Some(asker), Some(params)) = (&self.asker, question(&request.request))
            && self.asked.len() < QUESTIONS_MAX
        {
            let (asker, id) = (asker.clone(), request.id.clone());
            let question = self.asked.spawn(async move {
                JsonRpcMessage::response(custom(asker.ask(params).await), id)
            });
            self.questions.push((request.id, question));
            return Some(());
        }
        self.send_reply(reply(request));
        Some(())
    }

    /// Takes a notification that the SDK has no use for.
    #[expect(clippy::wildcard_enum_match_arm, reason = "servers may send anything")]
    fn note(&mut self, notification: ServerNotification) {
        match notification {
            ServerNotification::ProgressNotification(report) => self.reports.add(report.params),
            ServerNotification::CancelledNotification(it) => {
                if let Some(id) = it.params.request_id {
                    self.forget_question(&id);
                }
            }
            ServerNotification::CustomNotification(it) if it.method == ELICITATION_COMPLETE => {
                let elicitation = it.params.as_ref().and_then(|it| it["elicitationId"].as_str());
                let short = elicitation.filter(|id| id.len() <= ID_BYTES_MAX);
                if let (Some(asker), Some(id)) = (&self.asker, short) {
                    asker.completed(id.to_owned());
                }
            }
            _ => {}
        }
    }

    /// Asks no longer what the server does not want to know any more. There is no reply to a cancelled request.
    fn forget_question(&self, id: &RequestId) {
        for (_, question) in self.questions.iter().filter(|(of, _)| of == id) {
            question.abort();
        }
    }

    fn send_reply(&mut self, reply: TxJsonRpcMessage<RoleClient>) {
        let sent = self.inner.send(reply);
        self.replies.spawn(async move {
            if let Err(error) = sent.await {
                tracing::debug!(%error, "a reply to an MCP server was not sent");
            }
        });
    }
}

impl RequestCount {
    /// Counts a request. Returns whether it is within the limit.
    fn add(&mut self, now: Instant) -> bool {
        if now.duration_since(self.since) >= PERIOD {
            *self = Self { since: now, requests: 0 };
        }
        self.requests += 1;
        self.requests <= REQUESTS_MAX
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for AnsweringTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = tokio::select! {
                biased;
                Some(_) = self.replies.join_next() => continue,
                Some(answered) = self.asked.join_next() => {
                    self.questions.retain(|(_, question)| !question.is_finished());
                    // One that was cancelled has none.
                    answered.into_iter().for_each(|reply| self.send_reply(reply));
                    continue;
                }
                message = self.inner.receive() => message?,
            };
            match message {
                JsonRpcMessage::Request(request) => self.answer(request)?,
                JsonRpcMessage::Notification(it) if !is_of_use(&it.notification) => {
                    self.note(it.notification);
                }
                JsonRpcMessage::Notification(_)
                | JsonRpcMessage::Response(_)
                | JsonRpcMessage::Error(_) => return Some(message),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.asked.shutdown().await;
        self.replies.shutdown().await;
        self.inner.close().await
    }
}

fn is_of_use(notification: &ServerNotification) -> bool {
    matches!(notification, ServerNotification::ToolListChangedNotification(_))
}

fn id_bytes(id: &RequestId) -> usize {
    match id {
        RequestId::Number(_) => 0,
        RequestId::String(text) => text.len(),
    }
}

/// The parameters of a question for the person. The SDK takes one whose schema is none of those that it knows for a
/// request of another kind.
#[expect(clippy::wildcard_enum_match_arm, reason = "servers may request anything")]
fn question(request: &ServerRequest) -> Option<Value> {
    match request {
        ServerRequest::ElicitRequest(question) => serde_json::to_value(&question.params).ok(),
        ServerRequest::CustomRequest(other) if other.method == ELICITATION => {
            Some(other.params.clone().unwrap_or_default())
        }
        _ => None,
    }
}

/// The reply of a client without capabilities: no person to ask, and no model to sample.
#[expect(clippy::wildcard_enum_match_arm, reason = "servers may request anything")]
fn reply(request: JsonRpcRequest<ServerRequest>) -> TxJsonRpcMessage<RoleClient> {
    let result = match request.request {
        ServerRequest::PingRequest(_) => ClientResult::empty(()),
        ServerRequest::ListRootsRequest(_) => custom(json!({ "roots": [] })),
        other if question(&other).is_some() => custom(json!({ "action": "decline" })),
        _ => {
            let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "Method not found", None);
            return JsonRpcMessage::error(error, Some(request.id));
        }
    };
    JsonRpcMessage::response(result, request.id)
}

fn custom(result: Value) -> ClientResult {
    ClientResult::CustomResult(CustomResult::new(result))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::server::ServerName;
    use crate::tool::elicitation::{Askable, Elicitation, Questions};
    use std::convert::Infallible;
    use std::sync::{Arc, Mutex};
    use tokio::sync::watch;

    /// A server that has written `received`, and reads replies only if `is_read`.
    struct Scripted {
        received: std::vec::IntoIter<Value>,
        sent: Arc<Mutex<Vec<Value>>>,
        is_read: bool,
    }

    impl Transport<RoleClient> for Scripted {
        type Error = Infallible;

        fn send(
            &mut self,
            item: TxJsonRpcMessage<RoleClient>,
        ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
            let item = serde_json::to_value(&item).expect("JSON");
            self.sent.lock().expect("no panic").push(item);
            let is_read = self.is_read;
            async move { if is_read { Ok(()) } else { std::future::pending().await } }
        }

        async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
            // Tasks run between two messages.
            tokio::task::yield_now().await;
            let next = self.received.next()?;
            Some(serde_json::from_value(next).expect("a message"))
        }

        async fn close(&mut self) -> Result<(), Infallible> {
            Ok(())
        }
    }

    /// What the SDK is given of `received`, what was sent, and why the connection was closed.
    async fn handled(received: Vec<Value>, is_read: bool) -> (Vec<Value>, Vec<Value>, String) {
        let (sent, closed) = (Arc::default(), watch::Sender::new(None));
        let received = received.into_iter();
        let scripted = Scripted { received, sent: Arc::clone(&sent), is_read };
        let mut transport =
            AnsweringTransport::new(scripted, closed.clone(), Reports::default(), None);
        let mut given = Vec::new();
        while let Some(message) = transport.receive().await {
            given.push(serde_json::to_value(&message).expect("JSON"));
        }
        let why = match closed.borrow().clone() {
            Some(Closing::Fault(why)) => why,
            Some(Closing::Remote) | None => String::new(),
        };
        let sent = sent.lock().expect("no panic").clone();
        (given, sent, why)
    }

    fn request(id: impl Into<Value>, method: &str) -> Value {
        json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": {}})
    }

    #[tokio::test]
    async fn requests_are_answered_here_and_answers_are_passed_on() {
        let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {"x": 1}});
        let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        let received = vec![
            request(7, "ping"),
            request("a", "roots/list"),
            json!({"jsonrpc": "2.0", "method": "notifications/message",
                "params": {"level": "info", "data": "x"}}),
            answer.clone(),
            request(8, "sampling/createMessage"),
            changed.clone(),
            request(9, "made/up"),
        ];
        let (given, sent, why) = handled(received, true).await;
        assert_eq!((given, why.as_str()), (vec![answer, changed], ""));
        let not_found = json!({"code": -32601, "message": "Method not found"});
        assert_eq!(
            sent,
            [
                json!({"jsonrpc": "2.0", "id": 7, "result": {}}),
                json!({"jsonrpc": "2.0", "id": "a", "result": {"roots": []}}),
                json!({"jsonrpc": "2.0", "id": 8, "error": not_found}),
                json!({"jsonrpc": "2.0", "id": 9, "error": not_found}),
            ]
        );
    }

    #[tokio::test]
    async fn nobody_is_asked_what_a_server_asks_a_person() {
        let schema = json!({"type": "object", "properties": {}});
        let params = json!({"message": "Your name?", "requestedSchema": schema});
        let asked =
            json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params});
        let (_, sent, _) = handled(vec![asked], true).await;
        assert_eq!(sent, [json!({"jsonrpc": "2.0", "id": 1, "result": {"action": "decline"}})]);
    }

    /// Each of these is of a kind that the SDK does not know.
    fn odd_schemas() -> [Value; 6] {
        let of = |property: Value| json!({"type": "object", "properties": {"x": property}});
        [
            of(json!({"anyOf": [{"type": "string"}, {"type": "null"}]})),
            of(json!({"type": "string", "format": "password"})),
            of(json!({"type": "integer", "minimum": 0.0, "default": 3.0})),
            of(json!({"type": "array", "items": {"type": "string"}})),
            of(json!({"$ref": "#/$defs/Name"})),
            json!({"type": "object"}),
        ]
    }

    fn question_with(id: usize, schema: &Value) -> Value {
        let params = json!({"message": "Your name?", "requestedSchema": schema});
        json!({"jsonrpc": "2.0", "id": id, "method": ELICITATION, "params": params})
    }

    #[tokio::test]
    async fn a_question_with_any_schema_is_asked_as_it_is() {
        let schemas = odd_schemas();
        let received: Vec<_> =
            schemas.iter().enumerate().map(|(id, schema)| question_with(id, schema)).collect();
        let (_, sent, _) = handled(received.clone(), true).await;
        assert_eq!(sent.len(), schemas.len());
        assert!(sent.iter().all(|it| it["result"]["action"] == "decline"), "{sent:?}");
        let (questions, mut asked) = Questions::new(Askable { forms: true, urls: false });
        let server = ServerName::new("files").expect("a name");
        let asker = Some(Asker { questions, server });
        let (sent, closed) = (Arc::default(), watch::Sender::new(None));
        let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        let received: Vec<_> = received.into_iter().chain([changed]).collect();
        let scripted = Scripted { received: received.into_iter(), sent, is_read: true };
        let mut transport = AnsweringTransport::new(scripted, closed, Reports::default(), asker);
        transport.receive().await.expect("the tools have changed");
        for schema in &schemas {
            let Some(Elicitation::Question(question)) = asked.recv().await else {
                panic!("{schema}")
            };
            assert_eq!(question.params["requestedSchema"], *schema);
        }
    }

    #[tokio::test]
    async fn a_question_that_its_server_cancels_is_asked_no_longer() {
        let schema = json!({"type": "object", "properties": {}});
        let params = json!({"message": "Your name?", "requestedSchema": schema});
        let question = |id: usize| json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params});
        let method = "notifications/cancelled";
        let cancelled = json!({"jsonrpc": "2.0", "method": method, "params": {"requestId": 0}});
        let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        let received = (0..QUESTIONS_MAX).map(question);
        let received: Vec<_> =
            received.chain([cancelled, question(QUESTIONS_MAX), changed]).collect();
        let (questions, mut asked) = Questions::new(Askable { forms: true, urls: false });
        let server = ServerName::new("files").expect("a name");
        let (sent, closed) = (Arc::default(), watch::Sender::new(None));
        let scripted =
            Scripted { received: received.into_iter(), sent: Arc::clone(&sent), is_read: true };
        let asker = Some(Asker { questions, server });
        let mut transport = AnsweringTransport::new(scripted, closed, Reports::default(), asker);
        transport.receive().await.expect("the tools have changed");
        let mut is_given_up = Vec::new();
        while let Ok(Elicitation::Question(question)) = asked.try_recv() {
            is_given_up.push(question.answer.is_closed());
        }
        // The place of the first one is free, and it gets no reply.
        let expected: Vec<_> = (0..=QUESTIONS_MAX).map(|id| id == 0).collect();
        assert_eq!(is_given_up, expected);
        assert_eq!(*sent.lock().expect("no panic"), [Value::Null; 0]);
    }

    #[tokio::test]
    async fn replies_that_nobody_reads_are_so_many_and_no_more() {
        let most = REQUESTS_MAX as usize;
        let pings: Vec<_> = (0..most).map(|id| request(id, "ping")).collect();
        let (_, sent, why) = handled(pings.clone(), false).await;
        assert_eq!((sent.len(), why.as_str()), (REPLIES_MAX, ""));
        // Replies that are read make room for others, up to the limit on requests.
        let (_, sent, why) = handled(pings, true).await;
        assert_eq!((sent.len(), why.as_str()), (most, ""));
        let long = vec![request("x".repeat(ID_BYTES_MAX + 1), "ping")];
        assert_eq!(handled(long, true).await.1, [Value::Null; 0]);
    }

    #[tokio::test]
    async fn a_server_that_requests_without_end_is_left() {
        let pings = (0..=REQUESTS_MAX + 5).map(|id| request(id, "ping")).collect();
        let (_, sent, why) = handled(pings, true).await;
        assert_eq!(sent.len(), REQUESTS_MAX as usize);
        assert_eq!(why, "it sent more than 1000 requests within 60s");
    }

    #[test]
    fn each_period_has_its_own_count() {
        let start = Instant::now();
        let mut count = RequestCount { since: start, requests: 0 };
        for period in 0..3 {
            let now = start + PERIOD * period;
            assert!((0..REQUESTS_MAX).all(|_| count.add(now)));
            assert!(!count.add(now));
        }
    }
}
