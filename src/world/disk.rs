//! The files of the stores, and what is left of them when the process, or the machine, ends at any moment.

use crate::store::stepped::{self, Disk};
use crate::store::{Namespace, OpenMode, StorePlace, StoreSettings};
use crate::support::dice::Dice;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Files in memory, where the system has that: nothing of a world has to outlive it.
const SHARED_MEMORY: &str = "/dev/shm";

/// The disk of a world.
#[derive(Debug)]
pub(super) struct Disks {
    folder: PathBuf,
    stores: usize,
    /// Processes so far: each finds copies of what the one before it has left.
    process: u32,
}

/// How a process ends without being able to do anything about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Death {
    /// It is killed.
    Kill,
    /// It is killed while it commits what it was given last: some of the bytes are in the file.
    KillInCommit,
    /// The machine loses power: what was not synced may be gone, in part or as a whole.
    PowerLoss,
}

impl Disks {
    pub(super) fn new(stores: usize) -> Self {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let temporary = std::env::temp_dir();
        let parent = Some(Path::new(SHARED_MEMORY)).filter(|it| it.is_dir()).unwrap_or(&temporary);
        let folder = parent.join(format!("duologue-world-{}-{number}", std::process::id()));
        if stores > 0 {
            fs::create_dir_all(folder.join("0")).expect("a folder");
        }
        Self { folder, stores, process: 0 }
    }

    fn place(&self, process: u32, store: usize) -> PathBuf {
        self.folder.join(process.to_string()).join(format!("store-{store}"))
    }

    /// The stores of the process that begins, whose session has a name or gets one.
    pub(super) fn settings(&self, has_name: bool) -> Option<StoreSettings> {
        let places = (0..self.stores).map(|at| StorePlace::Sqlite(self.place(self.process, at)));
        let places: Vec<_> = places.collect();
        (!places.is_empty()).then(|| StoreSettings {
            places,
            mode: if has_name { OpenMode::Either } else { OpenMode::New },
            folder: String::new(),
            lock_wait: Duration::ZERO,
            namespace: Namespace::default(),
        })
    }

    /// Takes away the process: nothing that it has begun goes on. The next one finds its files as they would be.
    /// Gives the ordinal of the last event that must be in them.
    pub(super) fn end_process(&mut self, death: Death, dice: &mut Dice, loses_tail: bool) -> u64 {
        let before = stepped::disks();
        if death == Death::KillInCommit {
            stepped::step();
        }
        let after = stepped::disks();
        let next = self.process + 1;
        if self.stores > 0 {
            fs::create_dir_all(self.folder.join(next.to_string())).expect("a folder");
        }
        let mut survives = u64::MAX;
        for store in 0..self.stores {
            let (from, to) = (self.place(self.process, store), self.place(next, store));
            let find = |disks: &[Disk]| disks.iter().find(|it| it.path == from).cloned();
            let (earlier, now) = (find(&before), find(&after));
            let whole = now.as_ref().map_or(0, |disk| disk.last);
            let (last, log_from) = match death {
                _ if loses_tail => (whole, Some(0)),
                Death::Kill => (whole, None),
                Death::KillInCommit => match &earlier {
                    Some(disk) => (disk.last, Some(disk.log_bytes)),
                    None => (whole, None),
                },
                Death::PowerLoss => match &now {
                    Some(disk) => (disk.synced.0, Some(disk.synced.1)),
                    None => (0, None),
                },
            };
            survives = survives.min(last);
            copy(&from, &to, log_from, dice);
        }
        stepped::kill();
        let old = self.folder.join(self.process.to_string());
        self.process = next;
        fs::remove_dir_all(old).ok();
        if self.stores == 0 { 0 } else { survives }
    }

    /// The process has ended by itself; the next one finds its files.
    pub(super) fn keep(&mut self) {
        stepped::kill();
    }

    /// The next process finds nothing.
    pub(super) fn lose(&mut self) {
        stepped::kill();
        self.process += 1;
        fs::create_dir_all(self.folder.join(self.process.to_string())).expect("a folder");
    }
}

/// Copies a database as it is on the disk, with its write-ahead log, of which a number of bytes from `log_from` on is
/// there. (The index of the log is memory of the process, and made anew.)
fn copy(from: &Path, to: &Path, log_from: Option<u64>, dice: &mut Dice) {
    if !from.exists() {
        return;
    }
    fs::copy(from, to).expect("a copy");
    let log = |path: &Path| path.with_file_name(format!("{}-wal", name(path)));
    if fs::copy(log(from), log(to)).is_err() {
        return;
    }
    if let Some(first) = log_from {
        let file = File::options().write(true).open(log(to)).expect("a copy");
        let bytes = file.metadata().expect("a file").len();
        let span = usize::try_from(bytes.saturating_sub(first)).unwrap_or_default();
        let left = first.min(bytes) + dice.below(span + 1) as u64;
        file.set_len(left).expect("it can be cut");
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

impl Drop for Disks {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).ok();
    }
}
