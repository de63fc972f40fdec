//! All targets: each is this program under a name of its own.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| duologue::fuzzing::check(env!("CARGO_BIN_NAME"), input));
