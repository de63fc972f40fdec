//! Turns of the tenants: the conversations of a node share its processors by tenant, so that a tenant with a thousand
//! busy conversations leaves room for one with a single conversation.
//!
//! A conversation that is woken does not go on at once but waits in the lane of its tenant. A round goes on with one
//! of each lane after the other, up to a number in all, and the next round comes after whatever else the runtime has
//! to do. With one tenant nobody waits.

use crate::store::Namespace;
use crate::support::fair_queue::FairQueue;
use crate::support::lock;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use tokio::sync::Notify;
use tokio::task::yield_now;

/// Conversations that go on in a round.
const ROUND: usize = 32;

/// Conversations that wait for their turn, and the number of tenants that share the turns.
#[derive(Debug, Default)]
pub(super) struct Turns {
    lanes: Mutex<FairQueue<Namespace, Arc<Ticket>>>,
    /// Notified when the first conversation waits.
    waits: Notify,
    /// Tenants with conversations in memory.
    tenants: AtomicUsize,
}

/// The place of a conversation in the lane of its tenant.
#[derive(Debug, Default)]
struct Ticket(Mutex<Turn>);

#[derive(Debug, Default)]
enum Turn {
    /// The conversation does not wait.
    #[default]
    Idle,
    /// The conversation waits, and is woken by this.
    Waits(Waker),
    /// The conversation may go on.
    Granted,
}

impl Turns {
    /// Notes that one more tenant has conversations, or (`false`) one less.
    pub(super) fn tenant(&self, is_there: bool) {
        let more = if is_there { 1 } else { usize::MAX };
        self.tenants.fetch_add(more, Ordering::Relaxed);
    }

    /// Has a conversation go on in the turns of its tenant.
    pub(super) fn take<F: Future<Output = ()>>(
        self: &Arc<Self>,
        tenant: Namespace,
        conversation: F,
    ) -> impl Future<Output = ()> + use<F> {
        let conversation = Box::pin(conversation);
        InTurn { turns: Arc::clone(self), tenant, ticket: Arc::default(), conversation }
    }

    /// Gives turns until the future is dropped.
    pub(super) async fn give(&self) {
        loop {
            self.waits.notified().await;
            loop {
                // Conversations that were woken before this come first, and wait in their lanes then.
                yield_now().await;
                let granted = lock(&self.lanes).take(ROUND);
                if granted.is_empty() {
                    break;
                }
                granted.iter().for_each(|ticket| ticket.grant());
            }
        }
    }

    /// Number of conversations that wait.
    pub(super) fn waiting(&self) -> usize {
        lock(&self.lanes).len()
    }

    fn wait(&self, tenant: &Namespace, ticket: Arc<Ticket>) {
        let is_first = lock(&self.lanes).push(tenant, ticket);
        if is_first {
            self.waits.notify_one();
        }
    }
}

impl Ticket {
    fn grant(&self) {
        let mut turn = lock(&self.0);
        if let Turn::Waits(waker) = std::mem::replace(&mut *turn, Turn::Granted) {
            drop(turn);
            waker.wake();
        }
    }

    /// Asks for a turn. `None`: the conversation may go on; otherwise it waits, and is to be queued if it did not wait
    /// before (`Some(true)`).
    fn ask(&self, context: &Context<'_>) -> Option<bool> {
        let mut turn = lock(&self.0);
        match &*turn {
            Turn::Granted => {
                *turn = Turn::Idle;
                None
            }
            Turn::Idle => {
                *turn = Turn::Waits(context.waker().clone());
                Some(true)
            }
            Turn::Waits(waker) => {
                if !waker.will_wake(context.waker()) {
                    *turn = Turn::Waits(context.waker().clone());
                }
                Some(false)
            }
        }
    }
}

/// A conversation that goes on in the turns of its tenant.
struct InTurn<F> {
    turns: Arc<Turns>,
    tenant: Namespace,
    ticket: Arc<Ticket>,
    conversation: Pin<Box<F>>,
}

impl<F: Future<Output = ()>> Future for InTurn<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let is_alone = self.turns.tenants.load(Ordering::Relaxed) < 2;
        if !is_alone {
            match self.ticket.ask(context) {
                None => {}
                Some(is_new) => {
                    if is_new {
                        self.turns.wait(&self.tenant, Arc::clone(&self.ticket));
                    }
                    return Poll::Pending;
                }
            }
        }
        self.conversation.as_mut().poll(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;
    use tokio::runtime::Builder;
    use tokio::task::LocalSet;

    /// Work that is never done: each step wakes the task for the next one.
    async fn busy(steps: Rc<AtomicUsize>, of_all: usize) {
        while steps.fetch_add(1, Ordering::Relaxed) < of_all {
            yield_now().await;
        }
    }

    /// Steps that the conversations of one tenant make while one of another makes a hundred.
    fn steps(conversations: usize, are_shared: bool) -> usize {
        let turns = Arc::new(Turns::default());
        (0..if are_shared { 2 } else { 1 }).for_each(|_| turns.tenant(true));
        let (many, one) = (Rc::new(AtomicUsize::new(0)), Rc::new(AtomicUsize::new(0)));
        let tasks = LocalSet::new();
        let of = |tenant: &str, steps: &Rc<AtomicUsize>, of_all| {
            turns.take(Namespace::of_tenant(tenant), busy(Rc::clone(steps), of_all))
        };
        for _ in 0..conversations {
            tasks.spawn_local(of("many", &many, usize::MAX));
        }
        let giver = Arc::clone(&turns);
        tasks.spawn_local(async move { giver.give().await });
        let last = tasks.spawn_local(of("one", &one, 100));
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(tasks.run_until(last)).expect("it ends");
        many.load(Ordering::Relaxed)
    }

    #[test]
    fn a_thousand_conversations_leave_room_for_one_of_another_tenant() {
        let alone = steps(1000, false);
        assert!(alone >= 99_000, "without turns each of them has as many steps: {alone}");
        let shared = steps(1000, true);
        // Each step of the one takes a round to wait in its lane, and a round to go on.
        assert!(shared <= 300 * ROUND, "{shared}");
    }
}
