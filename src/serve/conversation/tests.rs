//! A conversation that is given its mail by hand.

use super::*;
use crate::engine::echo::Echo;
use crate::protocol::any::read_message;
use crate::protocol::id::RequestId;
use crate::protocol::wire;
use crate::serve::client::OPEN_MAX;
use crate::serve::services::Limits;
use crate::serve::stream::Frames;
use crate::serve::tenants::Tenants;
use crate::serve::traces::Parent;
use crate::store::Namespace;
use http::HeaderMap;
use std::collections::BTreeSet;
use std::time::Duration;

const LIMITS: Limits = Limits {
    conversations: 1,
    runs: 1,
    tenant_conversations: 1,
    tenant_runs: 1,
    tenant_rate: None,
    tenant_bytes: None,
};

const TIMES: Times = Times {
    idle: Duration::from_secs(60),
    detached: Duration::from_secs(60),
    run: None,
    unread: Duration::from_secs(60),
    drain: Duration::from_secs(60),
    flush: Duration::from_secs(60),
};

/// A conversation with the echo engine.
struct TestConversation {
    conversation: Conversation,
    tenant: Arc<Tenant>,
    room: Arc<Notify>,
    /// The streams of its clients.
    streams: Vec<Frames>,
    _mail: mpsc::Sender<Mail>,
}

impl TestConversation {
    fn new(is_stored: bool) -> Self {
        let tenant = Tenants::new(LIMITS, Arc::default()).get_or_insert(&Namespace::default());
        let (to, mail) = mpsc::channel(1);
        let room = Arc::new(Notify::new());
        let opened = Opened {
            session: SessionId::new("s").expect("an id"),
            settings: HostSettings::new(Echo::default()),
            mail,
            room: Arc::clone(&room),
            idle: Arc::default(),
            runs: [Arc::new(Semaphore::new(1)), Arc::clone(&tenant.runs)],
            tenant: Arc::clone(&tenant),
            is_stored,
            times: TIMES,
            counts: Arc::default(),
            spans: None,
        };
        let mut conversation = Conversation::new(opened);
        conversation.open();
        conversation.serve();
        Self { conversation, tenant, room, streams: Vec::new(), _mail: to }
    }

    fn receive(&mut self, mail: Mail) {
        self.conversation.received(mail);
        self.conversation.serve();
    }

    fn attach(&mut self) -> ClientId {
        let (client, (to, frames)) = (ClientId::fresh(), Frames::new(Arc::clone(&self.room)));
        let attach = Attach {
            client,
            extensions: BTreeSet::new(),
            past: Past::Nothing,
            is_own_only: true,
            to,
            link: frames.link(),
            room: Arc::new(Semaphore::new(OPEN_MAX)),
            mode: OpenMode::Either,
            parent: Parent::of(&HeaderMap::new()),
        };
        self.streams.push(frames);
        self.receive(Mail::Attach(Box::new(attach)));
        client
    }

    fn ask(&mut self, client: ClientId, line: &str) {
        let line = read_message(line).expect("a request");
        let request = wire::request(line, || RequestId::new("fresh").expect("an id"));
        let reservation = self.tenant.reserve();
        let sent = Sent { client, request, content: 0, reservation, refused: None };
        self.receive(Mail::Request(Box::new(sent)));
    }

    /// Whether the conversation leaves memory when others need its place.
    fn makes_room(&mut self) -> bool {
        let (to, mut answer) = oneshot::channel();
        self.receive(Mail::MakeRoom(to));
        answer.try_recv().expect("an answer")
    }
}

/// The node may have chosen the conversation before the client came that began it.
#[tokio::test]
async fn a_conversation_without_a_store_that_was_begun_makes_no_room() {
    const DECLARE: &str = r#"{"requestId":"r","declareTools":{"tools":[],"revision":1}}"#;
    for (is_stored, line, expected) in
        [(false, None, true), (false, Some(DECLARE), false), (true, Some(DECLARE), true)]
    {
        let mut test = TestConversation::new(is_stored);
        let client = test.attach();
        assert!(!test.makes_room(), "it is used");
        if let Some(line) = line {
            test.ask(client, line);
        }
        test.receive(Mail::HalfClosed(client));
        assert!(test.conversation.clients.is_empty() && test.conversation.requests.open() == 0);
        assert_eq!(test.makes_room(), expected, "{is_stored} {line:?}");
        assert_eq!(test.conversation.ending.is_some(), expected);
    }
}
