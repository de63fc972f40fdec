//! The corpora of all targets, and that the checks find something.

use super::*;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Bytes of all corpora.
const CORPUS_BYTES_MAX: u64 = 500_000;

#[test]
fn every_input_of_every_corpus_is_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let mut bytes = 0;
    for (target, check) in TARGETS {
        let inputs = fs::read_dir(folder.join(target)).expect("a corpus");
        let mut count = 0;
        for path in inputs.map(|entry| entry.expect("an entry").path()) {
            let input = fs::read(&path).expect("an input");
            bytes += input.len() as u64;
            count += 1;
            let checked = catch_unwind(AssertUnwindSafe(|| check(&input)));
            assert!(checked.is_ok(), "{} fails", path.display());
        }
        assert!(count >= 3, "{target} has {count} inputs");
    }
    assert!(bytes <= CORPUS_BYTES_MAX, "{bytes} bytes");
}

#[test]
fn each_engine_that_reads_responses_is_a_target() {
    for (engine, _) in replay::ENGINES {
        let target = format!("{engine}_stream");
        assert!(TARGETS.iter().any(|(name, _)| *name == target), "{target}");
    }
}

#[test]
fn each_target_has_a_program() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/Cargo.toml");
    let manifest = fs::read_to_string(manifest).expect("fuzz/Cargo.toml");
    let (_, programs) = manifest.split_once("[[bin]]").expect("a program");
    let names =
        programs.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    assert!(names.eq(TARGETS.map(|(name, _)| name)));
}
