//! A run as its events come.

use super::answer::Answer;
use super::driver::Order;
use super::error::Error;
use super::event::Event;
use super::link::{Link, Sent};
use super::request::Ended;
use crate::protocol::constants::{code, done};
use crate::protocol::proto::rpc::rpc_request_line::Request as Body;
use crate::protocol::proto::rpc::{CancelRequest, SubmitPromptRequest};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A run: await [`Self::next`] for its events, or [`Self::finish`] for what it came to. It is sent when that begins.
/// One that is dropped before its end is stopped.
#[derive(Debug)]
#[must_use = "a stream that nobody awaits is not sent"]
pub struct Stream {
    link: Arc<Link>,
    state: State,
    /// It was stopped before its prompt was sent.
    is_stopped: AtomicBool,
}

#[derive(Debug)]
enum State {
    Unsent(Box<Body>),
    Sent(Sent),
    Ended(Box<Answer>),
    Failed,
}

impl Stream {
    pub(super) fn new(link: Arc<Link>, body: Body) -> Self {
        Self { link, state: State::Unsent(Box::new(body)), is_stopped: AtomicBool::new(false) }
    }

    /// The next event; `None` after the last. A run that failed has its error before that. Cancel-safe.
    pub async fn next(&mut self) -> Option<Result<Event, Error>> {
        if let Err(error) = self.send(true).await {
            self.state = State::Failed;
            return Some(Err(error));
        }
        let State::Sent(sent) = &mut self.state else { return None };
        if let Some(event) = sent.event().await {
            return Some(Ok(event));
        }
        let ended = sent.ended().await;
        self.end(ended).err().map(Err)
    }

    /// Waits for the end of the run.
    ///
    /// # Errors
    /// If the run fails. One that was stopped is an answer with that status.
    pub async fn finish(mut self) -> Result<Answer, Error> {
        let ended = self.ended().await?;
        Ok(ended.answer)
    }

    /// What the run came to, after its last event.
    pub fn answer(&self) -> Option<&Answer> {
        match &self.state {
            State::Ended(answer) => Some(answer),
            State::Unsent(_) | State::Sent(_) | State::Failed => None,
        }
    }

    /// Stops this run, or withdraws it if it waits. Its events go on to their end, with the status `stopped`. One
    /// that was not sent yet is not sent.
    ///
    /// # Errors
    /// If the process has ended.
    pub async fn cancel(&self) -> Result<(), Error> {
        let State::Sent(sent) = &self.state else {
            self.is_stopped.store(true, Ordering::Relaxed);
            return Ok(());
        };
        self.link.stop(Some(&sent.id));
        let cancel = CancelRequest { target_request_id: sent.id.clone(), waiting: false };
        match self.link.request(Body::Cancel(cancel)).await {
            Err(error) if error.code() != code::NO_ACTIVE_REQUEST => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Adds a prompt to this run, which joins it at its next boundary. [`Answer::has_joined`] is false if the run was
    /// over, so that the prompt has begun one of its own.
    ///
    /// # Errors
    /// If the prompt, or the run that it began, fails.
    pub async fn steer(&self, prompt: impl Into<String>) -> Result<Answer, Error> {
        let State::Sent(sent) = &self.state else {
            return Err(Error::Misuse(
                "a prompt can join a run that goes on, and this one does not",
            ));
        };
        let (prompt, target_request_id) = (prompt.into(), sent.id.clone());
        let submit = SubmitPromptRequest { prompt, target_request_id, ..Default::default() };
        Self::new(Arc::clone(&self.link), Body::Submit(submit)).finish().await
    }

    /// Waits for the end, without its events.
    pub(super) async fn ended(&mut self) -> Result<Ended, Error> {
        let is_unsent = matches!(self.state, State::Unsent(_));
        self.send(false).await?;
        let mut snapshot = None;
        if let State::Sent(sent) = &mut self.state {
            while sent.event().await.is_some() {}
            let ended = sent.ended().await;
            snapshot = ended.as_ref().ok().and_then(|it| it.snapshot.clone());
            self.end(ended)?;
        } else if !is_unsent {
            return Err(Error::Misuse("the end of a stream was awaited twice"));
        }
        let answer = std::mem::replace(&mut self.state, State::Failed);
        match answer {
            State::Ended(answer) => Ok(Ended { answer: *answer, snapshot }),
            State::Unsent(_) | State::Sent(_) | State::Failed => Err(Error::Closed),
        }
    }

    async fn send(&mut self, is_streamed: bool) -> Result<(), Error> {
        let State::Unsent(body) = &self.state else { return Ok(()) };
        if self.is_stopped.load(Ordering::Relaxed) {
            let answer = Answer { status: done::STOPPED.to_owned(), ..Answer::default() };
            self.state = State::Ended(Box::new(answer));
            return Ok(());
        }
        let sent = self.link.send((**body).clone(), is_streamed).await?;
        self.state = State::Sent(sent);
        Ok(())
    }

    fn end(&mut self, ended: Result<Ended, Error>) -> Result<(), Error> {
        match ended {
            Ok(Ended { answer, .. }) => {
                self.state = State::Ended(Box::new(answer));
                Ok(())
            }
            Err(error) => {
                self.state = State::Failed;
                Err(error)
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let State::Sent(sent) = &self.state {
            self.link.order(Order::Abandon(sent.id.clone()));
        }
    }
}
