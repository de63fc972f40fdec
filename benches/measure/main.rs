//! What the server costs, against programs that do the same with nothing around it: prints one
//! table. `benches/run` builds all it needs; `docs/performance.md` says how to read it.
//!
//! Whatever is compared is measured in turns, in one run, so that a busy machine slows both alike.

mod answer;
mod cancel;
mod chat;
mod child;
mod conversations;
mod counts;
mod cpu;
mod decode;
mod editors;
mod encode;
mod files;
#[cfg(feature = "serve")]
mod fleet;
#[path = "../reference/frames.rs"]
mod frames;
mod machine;
mod memory;
mod pace;
#[cfg(feature = "serve")]
#[path = "../reference/paced_provider.rs"]
mod paced_provider;
mod prefix;
mod provider;
mod pseudo_terminal;
mod start;
mod store;
mod table;
mod tools;
mod turns;

use std::io;

type Measure = fn() -> io::Result<()>;

const ALL: [(&str, Measure); 17] = [
    // First: it measures this process's own memory, which the other parts leave larger.
    ("conversations", conversations::measure),
    ("start", start::measure),
    ("encode", encode::measure),
    ("decode", decode::measure),
    ("counts", counts::measure),
    ("pace", pace::measure),
    ("answer", answer::measure),
    ("cpu", cpu::measure),
    ("memory", memory::measure),
    ("turns", turns::measure),
    ("cancel", cancel::measure),
    ("editors", editors::measure),
    ("files", files::measure),
    ("tools", tools::measure),
    ("prefix", prefix::measure),
    ("store", store::measure),
    ("chat", chat::measure),
];

/// The part that needs a cargo feature, and is measured only by name, as the program is another one with it.
const FLEET: &str = "fleet";

/// Fails, with the names of all parts, if one of `wanted` is none that this build can measure.
fn check(wanted: &[String]) -> io::Result<()> {
    let names: Vec<_> = ALL.iter().map(|(name, _)| *name).collect();
    let is_known = |name: &str| names.contains(&name) || name == FLEET && cfg!(feature = "serve");
    match wanted.iter().find(|name| !is_known(name)) {
        None => Ok(()),
        Some(name) => Err(io::Error::other(format!(
            "no part is called {name:?}; the parts are {}, and {FLEET} with `--features serve`",
            names.join(", ")
        ))),
    }
}

/// Measures what is named on the command line, or everything but what needs a cargo feature.
fn main() -> io::Result<()> {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    check(&wanted)?;
    table::head(&machine::state()?);
    for (name, measure) in ALL {
        if wanted.is_empty() || wanted.iter().any(|arg| arg == name) {
            measure()?;
        }
    }
    #[cfg(feature = "serve")]
    if wanted.iter().any(|arg| arg == FLEET) {
        fleet::measure()?;
    }
    Ok(())
}
