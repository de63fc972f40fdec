//! Conversations in one process through the in-memory front end, each with a run in progress: their
//! memory, and how evenly they share the thread.

use crate::child::own_pss;
use crate::store::Folder;
use crate::table::{Aim, Unit, quantile, row};
use duologue::engine::echo::Echo;
use duologue::host::HostSettings;
use duologue::host::memory::Conversation;
use duologue::protocol::any::Any;
use duologue::protocol::proto::rpc::rpc_line::Frame as Body;
use duologue::store::{Namespace, OpenMode, StorePlace, StoreSettings};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::task::JoinSet;

const CONVERSATIONS: usize = 1_000;

/// Memory that each of them may take while it is stored.
const STORED_KIBIBYTES_MAX: f64 = 40.0;

/// Words of each prompt; an answer has a few more.
const WORDS: usize = 200;

/// The pace of a model, and as fast as the engine can.
const PACES: [(&str, Duration); 2] =
    [("at a 5 ms pace", Duration::from_millis(5)), ("at full speed", Duration::ZERO)];

pub(crate) fn measure() -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    for (pace, delay) in PACES {
        runtime.block_on(conversations(pace, delay, None))?;
    }
    let folder = Folder::new()?;
    let [(pace, delay), _] = PACES;
    let with_store = format!("{pace}, with a store");
    runtime.block_on(conversations(&with_store, delay, Some(folder.path("store"))))
}

/// The settings of a conversation, which may be stored.
fn settings(delay: Duration, store: Option<&PathBuf>) -> HostSettings {
    let store = store.map(|path| StoreSettings {
        places: vec![StorePlace::Sqlite(path.clone())],
        mode: OpenMode::New,
        folder: String::new(),
        lock_wait: Duration::ZERO,
        namespace: Namespace::default(),
    });
    HostSettings { store, ..HostSettings::new(Echo { delay, ..Echo::default() }) }
}

async fn conversations(pace: &str, delay: Duration, store: Option<PathBuf>) -> io::Result<()> {
    let before = own_pss()?;
    let taken: Arc<[AtomicUsize]> = (0..CONVERSATIONS).map(|_| AtomicUsize::new(0)).collect();
    let mut tasks = JoinSet::new();
    for number in 0..CONVERSATIONS {
        let mut conversation = Conversation::start(settings(delay, store.as_ref()));
        conversation.submit(&"model ".repeat(WORDS)).map_err(io::Error::other)?;
        let taken = Arc::clone(&taken);
        tasks.spawn(async move {
            take(&mut conversation, &taken[number], WORDS / 2).await;
            (number, conversation)
        });
    }
    let held = tasks.join_all().await;
    let kilobytes = (own_pss()? - before) * 1024.0 / CONVERSATIONS as f64;
    // The second round uses memory that the first has left.
    if !delay.is_zero() {
        let what = format!("memory per conversation, {CONVERSATIONS} in one process, {pace}");
        let aim = if store.is_some() { Aim::Value(STORED_KIBIBYTES_MAX) } else { Aim::None };
        row(&what, Unit::Kibibytes, kilobytes, None, aim);
    }
    let mut tasks = JoinSet::new();
    for (number, mut conversation) in held {
        let taken = Arc::clone(&taken);
        tasks.spawn(async move {
            take(&mut conversation, &taken[number], WORDS).await;
            taken.iter().map(|taken| taken.load(Ordering::Relaxed) as f64).collect()
        });
    }
    let Some(ended) = tasks.join_next().await else { return Ok(()) };
    let counts: Vec<f64> = ended.map_err(io::Error::other)?;
    for (name, part) in [("fewest", 0.0), ("median", 0.5)] {
        let what = format!("deltas of the others when the first has {WORDS} {pace}, {name}");
        row(&what, Unit::Count, quantile(&counts, part), Some(WORDS as f64), Aim::None);
    }
    Ok(())
}

/// Takes frames until `most` deltas were taken.
async fn take(conversation: &mut Conversation, taken: &AtomicUsize, most: usize) {
    while taken.load(Ordering::Relaxed) < most
        && let Some(frame) = conversation.next_frame().await
    {
        if let Some(Body::UiEvent(event)) = &frame.frame
            && let Some(Any::ChatTextPatch(_)) = &event.payload
        {
            taken.fetch_add(1, Ordering::Relaxed);
        }
    }
}
