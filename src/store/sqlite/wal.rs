//! Checks the write-ahead log beside a database for frames that SQLite will not replay: it stops at the
//! first damaged one and reports nothing.
//! The formats are those of <https://www.sqlite.org/fileformat2.html#walformat> and, for the index of the log,
//! <https://www.sqlite.org/walformat.html#the_wal_index_file_format>.

use super::path as file_path;
use crate::support::lock;
#[cfg(target_os = "linux")]
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
#[cfg(target_os = "linux")]
use std::time::Duration;
use std::time::SystemTime;

/// Bytes of the log's header.
const HEADER_BYTES: usize = 32;

/// Bytes of the header of each page in it.
const FRAME_HEADER_BYTES: usize = 24;

/// The largest page of SQLite.
const PAGE_BYTES_MAX: usize = 65_536;

/// The first number of a log; the last bit says that its sums are big-endian.
const MAGIC: u32 = 0x377f_0682;

/// Bytes of the header of the log's index, which is there twice.
const INDEX_HEADER_BYTES: usize = 48;

/// The version of that header.
const INDEX_VERSION: u32 = 3_007_000;

/// Times that a log is read again because another process wrote it meanwhile.
const READS_MAX: u32 = 5;

/// What is missing in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum LogLoss {
    /// It ends within the page that ends a transaction.
    Cut,
    /// It ends within another page: of a change that was never made, as after a full disk, or of a log that was not
    /// copied as a whole.
    Torn,
    /// After a page that is damaged there are so many ends of transactions.
    Transactions(u64),
}

impl fmt::Display for LogLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut | Self::Torn => f.write_str("ends in the middle of a page"),
            Self::Transactions(1) => f.write_str("is damaged before its last change"),
            Self::Transactions(number) => write!(f, "is damaged before its last {number} changes"),
        }
    }
}

/// The database as a connection of this process has it open, and what was missing in its log before.
#[derive(Debug)]
pub(super) struct OpenLog {
    key: Key,
    pub(super) loss: Option<LogLoss>,
}

/// A file, and what is there at its path.
type Key = (PathBuf, Option<(u64, u64)>);

/// A log that this process has open.
struct Watched {
    connections: usize,
    /// The index as it was before the first of them.
    index: Option<Index>,
    /// What was missing then.
    first_loss: Arc<OnceLock<Option<LogLoss>>>,
}

/// The logs that this process has open. A connection has locks on the index (fcntl(2)), which this process would
/// release by closing the file after reading it: so it is read only while there is no connection, under this lock.
static OPEN: Mutex<BTreeMap<Key, Watched>> = Mutex::new(BTreeMap::new());

fn all_open() -> MutexGuard<'static, BTreeMap<Key, Watched>> {
    lock(&OPEN)
}

impl OpenLog {
    /// Looks for a loss in the log of the database at `path`, which is there. It is to be called before the
    /// connection is opened, which may rebuild the index from what is left of the log, and dropped after it.
    pub(super) fn new(path: &Path) -> Self {
        let key = (path.to_owned(), file_path::identity(path));
        let (index, first_loss) = {
            let mut all = all_open();
            let watched = all.entry(key.clone()).or_insert_with(|| Watched {
                connections: 0,
                index: Index::read(&beside(path, "-shm")),
                first_loss: Arc::default(),
            });
            watched.connections += 1;
            (watched.index, watched.first_loss.clone())
        };
        let mut is_first = false;
        let first = *first_loss.get_or_init(|| {
            is_first = true;
            loss(path, index)
        });
        // What was not missing before is the rest of a process that was killed, and what was may be over.
        let loss = if is_first { first } else { first.and_then(|_| loss(path, None)) };
        Self { key, loss }
    }
}

impl Drop for OpenLog {
    fn drop(&mut self) {
        let mut all = all_open();
        if let Some(watched) = all.get_mut(&self.key) {
            watched.connections -= 1;
            if watched.connections == 0 {
                all.remove(&self.key);
            }
        }
    }
}

/// What the index of a log says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Index {
    /// The salts of the log that it is of.
    salts: [u8; 8],
    /// Frames up to the end of the last transaction that was committed.
    frames: u64,
}

impl Index {
    /// The header of the index in a file; `None` if it proves nothing.
    fn read(path: &Path) -> Option<Self> {
        let mut both = [0; 2 * INDEX_HEADER_BYTES];
        let mut file = File::open(path).ok()?;
        // Nothing syncs an index: after a loss of power it may be older than the log.
        if file.metadata().and_then(|it| it.modified()).ok()? < machine_start()? {
            return None;
        }
        file.read_exact(&mut both).ok()?;
        let (header, copy) = both.split_at(INDEX_HEADER_BYTES);
        let native = |at: usize| header[at..].first_chunk().map_or(0, |it| u32::from_ne_bytes(*it));
        // One that was made anew of the log, and not written since, has no change: it ends where the log is damaged.
        let is_known = header == copy && native(0) == INDEX_VERSION && header[12] == 1;
        let salts = *header[32..].first_chunk()?;
        (is_known && native(8) > 0).then(|| Self { salts, frames: native(16).into() })
    }
}

/// When the machine was started, by today's clock.
#[cfg(target_os = "linux")]
fn machine_start() -> Option<SystemTime> {
    let uptime = Duration::try_from(clock_gettime(ClockId::Boottime)).ok()?;
    SystemTime::now().checked_sub(uptime)
}

#[cfg(not(target_os = "linux"))]
fn machine_start() -> Option<SystemTime> {
    None
}

/// What is missing in the log of the database at `path`, as far as it can be proved. A process that was killed while
/// it synced leaves complete frames that the index does not have; the next, shorter transaction overwrites the first
/// of them, and the others look like those behind a damaged one. With an index of before it is known that they were
/// never committed; without one, or with one from before the machine was started, they are taken for a loss, as to be
/// silent about one would be worse.
fn loss(path: &Path, index: Option<Index>) -> Option<LogLoss> {
    let log = log_of(path);
    let mut last = None;
    for _ in 0..READS_MAX {
        // One that can't be read is reported by SQLite.
        let before = (header_of(&log).ok()?, log.metadata().ok()?.len());
        let scanned = File::open(&log).ok().and_then(|file| scan(BufReader::new(file)).ok())?;
        let found = scanned.loss?;
        let after = (header_of(&log).ok()?, log.metadata().ok()?.len());
        let is_of_log = |index: &Index| before.0.get(16..24) == Some(&index.salts[..]);
        if let LogLoss::Transactions(_) = found
            && index.filter(is_of_log).is_some_and(|index| index.frames <= scanned.frames)
        {
            return None;
        }
        // A log that another process begins anew has old pages after its new ones, and one that it writes has
        // a part of a page: only what is there twice is a loss.
        let this = (found, before);
        if this.1 == after && last.as_ref() == Some(&this) {
            return Some(found);
        }
        last = Some(this);
    }
    None
}

/// Whether something of the database is in a file beside it: in its log, or in the journal of a change
/// that was cut off.
pub(super) fn is_used(path: &Path) -> bool {
    let files = [log_of(path), beside(path, "-journal")];
    files.iter().any(|file| file.metadata().is_ok_and(|about| about.len() > 0))
}

fn log_of(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    path.with_file_name(name)
}

fn header_of(log: &Path) -> io::Result<Vec<u8>> {
    let mut header = Vec::new();
    File::open(log)?.take(HEADER_BYTES as u64).read_to_end(&mut header)?;
    Ok(header)
}

/// What was found in a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Scanned {
    loss: Option<LogLoss>,
    /// The frames before the first that is damaged.
    frames: u64,
}

/// Reads a log.
fn scan(mut log: impl Read) -> io::Result<Scanned> {
    let mut header = [0; HEADER_BYTES];
    match fill(&mut log, &mut header)? {
        0 => return Ok(Scanned::default()),
        HEADER_BYTES => {}
        _ => return Ok(Scanned { loss: Some(LogLoss::Torn), frames: 0 }),
    }
    let page_bytes = usize::try_from(number(&header, 8)).unwrap_or(usize::MAX);
    let is_big_endian = number(&header, 0) & 1 == 1;
    let is_log = number(&header, 0) & !1 == MAGIC && page_bytes <= PAGE_BYTES_MAX;
    let mut sums = Sums::default();
    sums.add(&header[..24], is_big_endian);
    if !is_log || !sums.are(&header[24..]) {
        // The sums of all pages begin with those of the header: nothing can be proved.
        return Ok(Scanned::default());
    }
    let mut frame = vec![0; FRAME_HEADER_BYTES + page_bytes];
    let (mut is_whole, mut frames, mut lost) = (true, 0, 0);
    loop {
        let length = fill(&mut log, &mut frame)?;
        // An older log had the rest of the file.
        let is_own = length >= 16 && frame[8..16] == header[16..24];
        if length < frame.len() {
            let ends = if number(&frame, 4) == 0 { LogLoss::Torn } else { LogLoss::Cut };
            let loss = match lost {
                0 => (is_own && is_whole).then_some(ends),
                lost => Some(LogLoss::Transactions(lost)),
            };
            return Ok(Scanned { loss, frames });
        }
        if is_whole {
            sums.add(&frame[..8], is_big_endian);
            sums.add(&frame[FRAME_HEADER_BYTES..], is_big_endian);
            is_whole = is_own && sums.are(&frame[16..24]);
            frames += u64::from(is_whole);
        }
        // Pages after a damaged one may be of a transaction that was taken back; only one that was
        // ended has a page with the size of the database.
        if !is_whole && is_own && number(&frame, 4) != 0 {
            lost += 1;
        }
    }
}

/// Reads until `bytes` are full or the log ends; gives how many were read.
fn fill(log: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < bytes.len() {
        match log.read(&mut bytes[length..])? {
            0 => break,
            more => length += more,
        }
    }
    Ok(length)
}

/// The big-endian number at `at`.
fn number(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |four| u32::from_be_bytes(*four))
}

/// The two sums over all that is in a log so far.
#[derive(Clone, Copy, Debug, Default)]
struct Sums(u32, u32);

impl Sums {
    /// Adds bytes, whose number is a multiple of eight.
    fn add(&mut self, bytes: &[u8], is_big_endian: bool) {
        let of = |four: [u8; 4]| match is_big_endian {
            true => u32::from_be_bytes(four),
            false => u32::from_le_bytes(four),
        };
        for eight in bytes.chunks_exact(8) {
            let [a, b, c, d, e, f, g, h] = *eight else { return };
            self.0 = self.0.wrapping_add(of([a, b, c, d])).wrapping_add(self.1);
            self.1 = self.1.wrapping_add(of([e, f, g, h])).wrapping_add(self.0);
        }
    }

    /// Whether these are the sums that were written.
    fn are(self, written: &[u8]) -> bool {
        number(written, 0) == self.0 && number(written, 4) == self.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::test_folder::TestFolder;
    use rusqlite::Connection;
    use std::fs;

    /// A log of ten transactions, and the bytes of each of its pages.
    fn log() -> (Vec<u8>, usize) {
        let folder = TestFolder::new();
        let path = folder.path("store");
        let connection = Connection::open(&path).expect("a database");
        let mode = "PRAGMA journal_mode = WAL; CREATE TABLE t(text)";
        connection.execute_batch(mode).expect("a table");
        for _ in 0..10 {
            connection.execute("INSERT INTO t VALUES (?)", ["text".repeat(900)]).expect("a row");
        }
        let bytes = fs::read(log_of(&path)).expect("a log");
        assert_eq!(loss(&path, None), None);
        drop(connection);
        assert_eq!(loss(&path, None), None, "there is no log any more");
        let page = FRAME_HEADER_BYTES + 4096;
        assert_eq!((bytes.len() - HEADER_BYTES) % page, 0);
        (bytes, page)
    }

    #[test]
    fn what_follows_a_damaged_page_is_missing() {
        let (log, page) = log();
        assert_eq!(scan(&*log).expect("it is read").loss, None);
        let ends = log[HEADER_BYTES..].chunks(page).map(|frame| number(frame, 4) != 0);
        let ends: Vec<bool> = ends.collect();
        for frame in 0..ends.len() {
            let mut damaged = log.clone();
            damaged[HEADER_BYTES + frame * page + page / 2] ^= 1;
            let lost = ends[frame..].iter().filter(|is_end| **is_end).count() as u64;
            let expected = Some(LogLoss::Transactions(lost));
            assert_eq!(scan(&*damaged).expect("it is read").loss, expected, "{frame}");
        }
    }

    #[test]
    fn a_log_that_is_cut_within_a_page_is_known_by_the_beginning_of_that_page() {
        let (log, page) = log();
        for length in [HEADER_BYTES + page + 16, HEADER_BYTES + 2 * page - 1, log.len() - 1] {
            let frame = HEADER_BYTES + (length - HEADER_BYTES) / page * page;
            let mut cut = log[..length].to_vec();
            cut[frame + 7] = 1;
            assert_eq!(scan(&*cut).expect("it is read").loss, Some(LogLoss::Cut), "{length}");
            // A page without the size of the database ends no transaction: what it is of was perhaps never made.
            cut[frame + 4..frame + 8].fill(0);
            assert_eq!(scan(&*cut).expect("it is read").loss, Some(LogLoss::Torn), "{length}");
        }
        assert_eq!(scan(&log[..31]).expect("it is read").loss, Some(LogLoss::Torn));
        // Between two pages nothing can be proved, and the rest of an older log proves nothing.
        for length in [0, HEADER_BYTES, HEADER_BYTES + 3 * page] {
            assert_eq!(scan(&log[..length]).expect("it is read").loss, None, "{length}");
        }
        let mut older = log[..HEADER_BYTES + 3 * page].to_vec();
        let old = log[HEADER_BYTES + 3 * page..].chunks(page).flat_map(|frame| {
            let mut frame = frame.to_vec();
            frame[8] ^= 1;
            frame
        });
        older.extend(old.take(4 * page + 112));
        assert_eq!(scan(&*older).expect("it is read").loss, None);
    }

    fn insert(connection: &Connection, texts: usize) {
        connection.execute("INSERT INTO t VALUES (?)", ["text".repeat(texts)]).expect("a row");
    }

    /// Two logs that are alike up to a point: then the one has a long transaction, and the other a short one, with
    /// the rest of the long one behind it.
    #[test]
    fn frames_that_a_killed_process_has_left_behind_the_last_commit_are_no_loss() {
        let folder = TestFolder::new();
        let [killed, store] = ["killed", "store"].map(|name| folder.path(name));
        let connection = Connection::open(&killed).expect("a database");
        connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t(text)").expect("a log");
        insert(&connection, 900);
        for ending in ["", "-wal"] {
            fs::copy(beside(&killed, ending), beside(&store, ending)).expect("a copy");
        }
        insert(&connection, 90_000);
        let left = fs::read(log_of(&killed)).expect("a log");
        drop(connection);
        let connection = Connection::open(&store).expect("a database");
        insert(&connection, 9);
        let own = fs::read(log_of(&store)).expect("a log");
        assert!(own.len() < left.len(), "{} {}", own.len(), left.len());
        let with_rest = [&own[..], &left[own.len()..]].concat();
        fs::write(log_of(&store), &with_rest).expect("a log");
        let index = Index::read(&beside(&store, "-shm"));
        let frames = ((own.len() - HEADER_BYTES) / (FRAME_HEADER_BYTES + 4096)) as u64;
        assert_eq!(index.map(|it| it.frames), Some(frames), "what was committed");
        assert_eq!(loss(&store, index), None);
        assert_eq!(loss(&store, None), Some(LogLoss::Transactions(1)), "it is not known");
        let file = File::options().write(true).open(beside(&store, "-shm")).expect("the index");
        file.set_modified(SystemTime::UNIX_EPOCH).expect("a time");
        let old = Index::read(&beside(&store, "-shm"));
        assert_eq!(old, None, "the machine was started after it was written");
        // The index of another log says nothing.
        let other = index.map(|it| Index { salts: [0; 8], ..it });
        assert_eq!(loss(&store, other), Some(LogLoss::Transactions(1)));
        let mut damaged = with_rest;
        damaged[own.len() - 1] ^= 1;
        fs::write(log_of(&store), &damaged).expect("a log");
        assert_eq!(loss(&store, index), Some(LogLoss::Transactions(2)), "one was committed");
        fs::write(log_of(&store), &own).expect("the log as SQLite knows it");
    }

    /// To close a file releases all locks that this process has on it (fcntl(2)).
    #[test]
    #[cfg(target_os = "linux")]
    fn the_index_is_not_opened_beside_a_connection_of_this_process() {
        use std::os::unix::fs::MetadataExt;
        let folder = TestFolder::new();
        let path = folder.path("store");
        fs::write(&path, "").expect("a file");
        let first = OpenLog::new(&path);
        let connection = Connection::open(&path).expect("a database");
        connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t(text)").expect("a log");
        let index = beside(&path, "-shm").metadata().expect("an index");
        let of_index = format!(":{} ", index.ino());
        let locks = || {
            let all = fs::read_to_string("/proc/locks").expect("a list");
            all.lines().filter(|line| line.contains(&of_index)).count()
        };
        let before = locks();
        assert!(before > 0);
        drop(OpenLog::new(&path));
        assert_eq!(locks(), before);
        assert_eq!(first.loss, None);
        drop((connection, first));
    }
}
