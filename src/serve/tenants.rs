//! The share of each tenant in a node, and its limits.

use super::rate::Rate;
use super::refusal::{Refusal, RefusalKind};
use super::services::Limits;
use crate::store::Namespace;
use crate::support::lock;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

/// Number of tenants from which on unused ones are forgotten.
const TENANTS_KEPT: usize = 1024;

/// When a client may try again where a limit is reached whose end is not known.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(2);

/// Lists, exports, copies and deletions of a tenant at the same time, of those of the node: further ones wait for one
/// of the same tenant to end, and leave the others of the node to other tenants.
const TENANT_LOOKUPS_MAX: usize = 2;

/// Time in which the rate of a tenant takes all requests of one body: later requests of the tenant wait for as long.
const BODY_RATE_MAX: Duration = Duration::from_secs(60);

/// The tenants that were seen.
#[derive(Debug)]
pub(super) struct Tenants {
    limits: Limits,
    /// Calls and requests that were refused because of a limit.
    limited: Arc<AtomicU64>,
    all: Mutex<HashMap<Namespace, Arc<Tenant>>>,
}

/// The share of a tenant in this node.
#[derive(Debug)]
pub(super) struct Tenant {
    /// Runs that the tenant may still begin.
    pub(super) runs: Arc<Semaphore>,
    /// Threads that the tenant may still have read the store.
    pub(super) lookups: Arc<Semaphore>,
    /// Bytes that the tenant may have in memory.
    bytes_max: u64,
    bytes: AtomicU64,
    conversations: AtomicUsize,
    rate: Option<Mutex<Rate>>,
    per_second: u32,
    limited: Arc<AtomicU64>,
}

/// Bytes in memory that count for a tenant until this is dropped.
#[derive(Debug)]
pub(super) struct MemoryReservation {
    tenant: Arc<Tenant>,
    bytes: u64,
}

impl Tenants {
    pub(super) fn new(limits: Limits, limited: Arc<AtomicU64>) -> Self {
        Self { limits, limited, all: Mutex::default() }
    }

    /// The tenant of that name, which is added if it was not seen yet.
    pub(super) fn get_or_insert(&self, name: &Namespace) -> Arc<Tenant> {
        let mut all = self.lock();
        if let Some(tenant) = all.get(name) {
            return Arc::clone(tenant);
        }
        let now = Instant::now();
        if all.len() >= TENANTS_KEPT {
            all.retain(|_, tenant| Arc::strong_count(tenant) > 1 || !tenant.is_unused(now));
        }
        let tenant = Arc::new(Tenant::new(&self.limits, Arc::clone(&self.limited), now));
        all.insert(name.clone(), Arc::clone(&tenant));
        tenant
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Namespace, Arc<Tenant>>> {
        lock(&self.all)
    }
}

impl Tenant {
    fn new(limits: &Limits, limited: Arc<AtomicU64>, now: Instant) -> Self {
        let rate = limits.tenant_rate.map(|per_second| Mutex::new(Rate::new(per_second, now)));
        Self {
            runs: Arc::new(Semaphore::new(limits.tenant_runs)),
            lookups: Arc::new(Semaphore::new(TENANT_LOOKUPS_MAX)),
            bytes_max: limits.tenant_bytes.unwrap_or(u64::MAX),
            bytes: AtomicU64::new(0),
            conversations: AtomicUsize::new(0),
            rate,
            per_second: limits.tenant_rate.unwrap_or(u32::MAX),
            limited,
        }
    }

    /// Refuses a call of the tenant because of a limit.
    pub(super) fn beyond(&self, why: impl Into<String>, retry_after: Duration) -> Refusal {
        self.limited.fetch_add(1, Ordering::Relaxed);
        Refusal::exhausted(why, retry_after)
    }

    fn is_unused(&self, now: Instant) -> bool {
        let rate = self.rate.as_ref().map(|it| lock(it));
        rate.is_none_or(|rate| rate.is_unused(now))
    }

    /// Counts so many requests, or none of them.
    pub(super) fn admit(&self, requests: u32) -> Result<(), Refusal> {
        self.take(|rate, now| rate.take(requests, now)).map_err(|wait| self.beyond_rate(wait))
    }

    /// Counts so many more requests of a call that was counted, or none of them.
    pub(super) fn admit_more(&self, requests: u32) -> Result<(), Refusal> {
        self.take(|rate, now| rate.take_more(requests, now)).map_err(|wait| self.beyond_rate(wait))
    }

    /// Gives back so many requests that were taken then, and that nothing came of.
    pub(super) fn give_back(&self, requests: u32, taken: Instant) {
        if let Some(rate) = &self.rate {
            lock(rate).give_back(requests, taken, Instant::now());
        }
    }

    /// Refuses a body with so many requests that nothing else of the tenant would be taken for a long time after it.
    pub(super) fn check_body(&self, requests: usize) -> Result<(), Refusal> {
        let most = u64::from(self.per_second) * BODY_RATE_MAX.as_secs();
        if requests as u64 <= most {
            return Ok(());
        }
        let why = format!(
            "the body has {requests} requests, which is more than the tenant may send in {} s ({} a second, \
             --tenant-rate); nothing was done: send it in parts of at most {most} requests",
            BODY_RATE_MAX.as_secs(),
            self.per_second
        );
        Err(Refusal::new(RefusalKind::TooLarge, why))
    }

    /// Waits until one more request is taken. Calls that do not wait are taken meanwhile.
    pub(super) async fn wait_for_rate(&self) {
        while let Err(wait) = self.take(Rate::take_waiting) {
            sleep(wait).await;
        }
    }

    fn take(
        &self,
        take: impl FnOnce(&mut Rate, Instant) -> Result<(), Duration>,
    ) -> Result<(), Duration> {
        let Some(rate) = &self.rate else { return Ok(()) };
        let mut rate = lock(rate);
        take(&mut rate, Instant::now())
    }

    fn beyond_rate(&self, wait: Duration) -> Refusal {
        let why = format!(
            "the tenant sends more than {} requests a second (--tenant-rate); nothing was done: send it again after \
             {} ms",
            self.per_second,
            wait.as_millis().max(1)
        );
        self.beyond(why, wait)
    }

    /// Checks that the tenant has fewer bytes in memory than it may.
    ///
    /// # Errors
    /// The limit is reached; the message says what to do.
    pub(super) fn check_bytes(&self) -> Result<(), Refusal> {
        self.check_more(0)
    }

    fn check_more(&self, bytes: u64) -> Result<(), Refusal> {
        self.lack(bytes).map_or(Ok(()), |why| Err(self.beyond(why, RETRY_AFTER)))
    }

    /// Whether so many bytes fit while the tenant has no others in memory.
    pub(super) fn may_ever_have(&self, bytes: u64) -> bool {
        bytes < self.bytes_max || self.bytes_max == u64::MAX
    }

    /// Why the tenant can't have so many bytes more in memory; `None` if it can.
    pub(super) fn lack(&self, bytes: u64) -> Option<String> {
        let reserved = self.bytes.load(Ordering::Relaxed);
        if reserved.saturating_add(bytes) < self.bytes_max || self.bytes_max == u64::MAX {
            return None;
        }
        Some(format!(
            "the conversations and requests of the tenant have as many bytes in memory as they may ({}, \
             --tenant-bytes); nothing was done: leave conversations, which go when nobody has used them for a while, \
             and send it again later",
            self.bytes_max
        ))
    }

    /// Reserves the bytes of a request, while it waits.
    pub(super) fn receive(self: &Arc<Self>, bytes: u64) -> Result<MemoryReservation, Refusal> {
        let mut reservation = self.reserve();
        reservation.receive(bytes)?;
        Ok(reservation)
    }

    /// Reserves the bytes of a request that is not refused here, however many there are.
    pub(super) fn reserve_bytes(self: &Arc<Self>, bytes: u64) -> MemoryReservation {
        let mut reservation = self.reserve();
        reservation.set(bytes);
        reservation
    }

    /// A reservation without bytes yet, for a conversation or a request.
    pub(super) fn reserve(self: &Arc<Self>) -> MemoryReservation {
        MemoryReservation { tenant: Arc::clone(self), bytes: 0 }
    }

    pub(super) fn conversations(&self) -> usize {
        self.conversations.load(Ordering::Relaxed)
    }

    /// Counts a conversation that is in memory; returns whether it is the only one.
    pub(super) fn begin(&self) -> bool {
        self.conversations.fetch_add(1, Ordering::Relaxed) == 0
    }

    /// Counts a conversation out that has left memory; returns whether it was the only one.
    pub(super) fn end(&self) -> bool {
        self.conversations.fetch_sub(1, Ordering::Relaxed) == 1
    }
}

impl MemoryReservation {
    pub(super) fn bytes(&self) -> usize {
        usize::try_from(self.bytes).unwrap_or(usize::MAX)
    }

    /// Adds bytes of a request that is still being read.
    pub(super) fn receive(&mut self, bytes: u64) -> Result<(), Refusal> {
        self.tenant.check_more(bytes)?;
        self.set(self.bytes + bytes);
        Ok(())
    }

    /// Sets the bytes of the reservation.
    pub(super) fn set(&mut self, bytes: u64) {
        if bytes != self.bytes {
            let change = bytes.wrapping_sub(self.bytes);
            self.tenant.bytes.fetch_add(change, Ordering::Relaxed);
            self.bytes = bytes;
        }
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenants(rate: Option<u32>, bytes: Option<u64>) -> Tenants {
        let limits = Limits { tenant_rate: rate, tenant_bytes: bytes, ..Limits::default() };
        Tenants::new(limits, Arc::default())
    }

    #[test]
    fn bytes_are_given_back() {
        let tenant = tenants(None, Some(100)).get_or_insert(&Namespace::default());
        let mut conversation = tenant.reserve();
        conversation.set(60);
        let request = tenant.receive(39).expect("there is room");
        assert!(tenant.receive(1).is_err() && tenant.check_bytes().is_ok());
        conversation.set(80);
        assert!(tenant.check_bytes().is_err());
        drop(request);
        assert!(tenant.check_bytes().is_ok());
        drop(conversation);
        assert!(tenant.receive(99).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_wait_for_the_rate_leave_room_for_calls() {
        const CALLS: usize = 20;
        let tenant = tenants(Some(10), None).get_or_insert(&Namespace::default());
        let waiting = async {
            loop {
                tenant.wait_for_rate().await;
            }
        };
        let calling = async {
            for number in 0..CALLS {
                sleep(Duration::from_millis(300)).await;
                assert!(tenant.admit(1).is_ok(), "call {number}");
            }
        };
        tokio::select! {
            biased;
            () = waiting => {}
            () = calling => {}
        }
    }

    #[test]
    fn a_tenant_without_anything_is_forgotten_and_another_one_is_not() {
        let tenants = tenants(Some(1), None);
        let named = |number: usize| Namespace::of_tenant(&format!("t{number}"));
        let kept = tenants.get_or_insert(&named(0));
        tenants.get_or_insert(&named(1)).admit(1).expect("the first");
        (2..TENANTS_KEPT).for_each(|number| drop(tenants.get_or_insert(&named(number))));
        tenants.get_or_insert(&named(TENANTS_KEPT));
        assert_eq!(tenants.lock().len(), 3);
        assert!(Arc::ptr_eq(&kept, &tenants.get_or_insert(&named(0))));
        assert!(tenants.get_or_insert(&named(1)).admit(1).is_err(), "its rate is known");
    }
}
