//! Questions of servers for the person (MCP: elicitation), which a front end asks. Where it can't, servers are
//! told so when they are connected to.

use crate::task::server::ServerName;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

/// Questions of all servers that wait to be asked.
const QUESTIONS_MAX: usize = 16;

/// A question of a server.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) server: ServerName,
    /// The parameters of `elicitation/create`.
    pub(crate) params: Value,
    /// Takes the result. Dropped, the question is cancelled.
    pub(crate) answer: oneshot::Sender<Value>,
}

/// What a server has for the person.
#[derive(Debug)]
pub(crate) enum Elicitation {
    Question(Question),
    /// What the address of this question was opened for is done.
    Completed {
        elicitation: String,
    },
}

/// What the front end can ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Askable {
    /// Values of a form.
    pub(crate) forms: bool,
    /// To open an address.
    pub(crate) urls: bool,
}

/// The way of questions to the front end.
#[derive(Clone, Debug)]
pub(crate) struct Questions {
    pub(super) askable: Askable,
    to: mpsc::Sender<Elicitation>,
}

/// The way of the questions of one server.
#[derive(Clone, Debug)]
pub(super) struct Asker {
    pub(super) questions: Questions,
    pub(super) server: ServerName,
}

impl Questions {
    /// The way, and its end.
    pub(crate) fn new(askable: Askable) -> (Self, mpsc::Receiver<Elicitation>) {
        let (to, questions) = mpsc::channel(QUESTIONS_MAX);
        (Self { askable, to }, questions)
    }
}

impl Asker {
    /// Asks; returns the result of `elicitation/create`.
    pub(super) async fn ask(self, params: Value) -> Value {
        let (answer, answered) = oneshot::channel();
        let question = Question { server: self.server, params, answer };
        let cancelled = || json!({ "action": "cancel" });
        match self.questions.to.send(Elicitation::Question(question)).await {
            Ok(()) => answered.await.unwrap_or_else(|_| cancelled()),
            Err(_) => cancelled(),
        }
    }

    /// Passes on that what an address was opened for is done. While too much waits for the front end it is not:
    /// it is for the eye alone.
    pub(super) fn completed(&self, elicitation: String) {
        self.questions.to.try_send(Elicitation::Completed { elicitation }).ok();
    }
}
