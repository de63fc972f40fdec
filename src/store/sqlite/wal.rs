//! Checks the write-ahead log beside a database for frames that SQLite will not replay: it stops at the
//! first damaged one and reports nothing.
//! The format is that of <https://www.sqlite.org/fileformat2.html#walformat>.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

/// Bytes of the log's header.
const HEADER_BYTES: usize = 32;

/// Bytes of the header of each page in it.
const FRAME_HEADER_BYTES: usize = 24;

/// The largest page of SQLite.
const PAGE_BYTES_MAX: usize = 65_536;

/// The first number of a log; the last bit says that its sums are big-endian.
const MAGIC: u32 = 0x377f_0682;

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

/// What is missing in the log of the database at `path`, as far as it can be proved.
pub(super) fn loss(path: &Path) -> Option<LogLoss> {
    let log = log_of(path);
    let mut last = None;
    for _ in 0..READS_MAX {
        // One that can't be read is reported by SQLite.
        let before = (header_of(&log).ok()?, log.metadata().ok()?.len());
        let found = File::open(&log).ok().and_then(|file| scan(BufReader::new(file)).ok())?;
        found?;
        let after = (header_of(&log).ok()?, log.metadata().ok()?.len());
        // A log that another process begins anew has old pages after its new ones, and one that it writes has
        // a part of a page: only what is there twice is a loss.
        let this = (found, before);
        if this.1 == after && last.as_ref() == Some(&this) {
            return found;
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

/// Reads a log.
fn scan(mut log: impl Read) -> io::Result<Option<LogLoss>> {
    let mut header = [0; HEADER_BYTES];
    match fill(&mut log, &mut header)? {
        0 => return Ok(None),
        HEADER_BYTES => {}
        _ => return Ok(Some(LogLoss::Torn)),
    }
    let page_bytes = usize::try_from(number(&header, 8)).unwrap_or(usize::MAX);
    let is_big_endian = number(&header, 0) & 1 == 1;
    let is_log = number(&header, 0) & !1 == MAGIC && page_bytes <= PAGE_BYTES_MAX;
    let mut sums = Sums::default();
    sums.add(&header[..24], is_big_endian);
    if !is_log || !sums.are(&header[24..]) {
        // The sums of all pages begin with those of the header: nothing can be proved.
        return Ok(None);
    }
    let mut frame = vec![0; FRAME_HEADER_BYTES + page_bytes];
    let (mut is_whole, mut lost) = (true, 0);
    loop {
        let length = fill(&mut log, &mut frame)?;
        // An older log had the rest of the file.
        let is_own = length >= 16 && frame[8..16] == header[16..24];
        if length < frame.len() {
            let ends = if number(&frame, 4) == 0 { LogLoss::Torn } else { LogLoss::Cut };
            return Ok(match lost {
                0 => (is_own && is_whole).then_some(ends),
                lost => Some(LogLoss::Transactions(lost)),
            });
        }
        if is_whole {
            sums.add(&frame[..8], is_big_endian);
            sums.add(&frame[FRAME_HEADER_BYTES..], is_big_endian);
            is_whole = is_own && sums.are(&frame[16..24]);
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
        assert_eq!(loss(&path), None);
        drop(connection);
        assert_eq!(loss(&path), None, "there is no log any more");
        let page = FRAME_HEADER_BYTES + 4096;
        assert_eq!((bytes.len() - HEADER_BYTES) % page, 0);
        (bytes, page)
    }

    #[test]
    fn what_follows_a_damaged_page_is_missing() {
        let (log, page) = log();
        assert_eq!(scan(&*log).expect("it is read"), None);
        let ends = log[HEADER_BYTES..].chunks(page).map(|frame| number(frame, 4) != 0);
        let ends: Vec<bool> = ends.collect();
        for frame in 0..ends.len() {
            let mut damaged = log.clone();
            damaged[HEADER_BYTES + frame * page + page / 2] ^= 1;
            let lost = ends[frame..].iter().filter(|is_end| **is_end).count() as u64;
            let expected = Some(LogLoss::Transactions(lost));
            assert_eq!(scan(&*damaged).expect("it is read"), expected, "{frame}");
        }
    }

    #[test]
    fn a_log_that_is_cut_within_a_page_is_known_by_the_beginning_of_that_page() {
        let (log, page) = log();
        for length in [HEADER_BYTES + page + 16, HEADER_BYTES + 2 * page - 1, log.len() - 1] {
            let frame = HEADER_BYTES + (length - HEADER_BYTES) / page * page;
            let mut cut = log[..length].to_vec();
            cut[frame + 7] = 1;
            assert_eq!(scan(&*cut).expect("it is read"), Some(LogLoss::Cut), "{length}");
            // A page without the size of the database ends no transaction: what it is of was perhaps never made.
            cut[frame + 4..frame + 8].fill(0);
            assert_eq!(scan(&*cut).expect("it is read"), Some(LogLoss::Torn), "{length}");
        }
        assert_eq!(scan(&log[..31]).expect("it is read"), Some(LogLoss::Torn));
        // Between two pages nothing can be proved, and the rest of an older log proves nothing.
        for length in [0, HEADER_BYTES, HEADER_BYTES + 3 * page] {
            assert_eq!(scan(&log[..length]).expect("it is read"), None, "{length}");
        }
        let mut older = log[..HEADER_BYTES + 3 * page].to_vec();
        let old = log[HEADER_BYTES + 3 * page..].chunks(page).flat_map(|frame| {
            let mut frame = frame.to_vec();
            frame[8] ^= 1;
            frame
        });
        older.extend(old.take(4 * page + 112));
        assert_eq!(scan(&*older).expect("it is read"), None);
    }
}
