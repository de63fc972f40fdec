//! What is the same on a busy machine: instructions, page faults, waits, system calls and pages.

use crate::child::{Child, Program, SNAPSHOT, prompt, submit};
use crate::provider::{Manner, Provider};
use crate::table::{Aim, Unit, note, row};
use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Deltas of two answers. What one more delta takes is what they differ by.
const FEW: usize = 1_000;
const MANY: usize = 6_000;

/// The same of answers at a pace.
const PACED_FEW: usize = 200;
const PACED_MANY: usize = 400;

const PACE: Duration = Duration::from_millis(5);

/// Time for a process to become idle after the answer to its first request.
const SETTLED: Duration = Duration::from_millis(200);

const ENGINE_MAX: f64 = 1.0;
const PROVIDER_MAX: f64 = 1.2;

/// Both programs: what is measured, and what it is measured against.
const BOTH: [Program; 2] = [Program::Duologue, Program::MinimalLoop];

pub(crate) fn measure() -> io::Result<()> {
    pages()?;
    switches()?;
    instructions()?;
    system_calls()
}

/// Of a process that has answered a request for a snapshot.
fn pages() -> io::Result<()> {
    let [ours, minimal] = BOTH.map(pages_of);
    let (ours, minimal) = (ours?, minimal?);
    row("start: page faults", Unit::Count, ours.faults, Some(minimal.faults), Aim::None);
    for (what, ours, minimal) in [
        ("start: pages of the program file", ours.file, minimal.file),
        ("idle: pages of its own, written to", ours.dirty, minimal.dirty),
        ("idle: pages that others have as well", ours.shared, minimal.shared),
    ] {
        row(what, Unit::Mebibytes, ours, Some(minimal), Aim::None);
    }
    Ok(())
}

struct Pages {
    faults: f64,
    file: f64,
    dirty: f64,
    shared: f64,
}

fn pages_of(program: Program) -> io::Result<Pages> {
    let mut child = Child::start(program, echo(program))?;
    child.send(SNAPSHOT)?;
    child.line_with("\"done\":{")?;
    sleep(SETTLED);
    Ok(Pages {
        faults: child.page_faults()?,
        file: child.of_program(program)?,
        dirty: child.memory("Private_Dirty:")?,
        shared: child.memory("Shared_Clean:")? + child.memory("Shared_Dirty:")?,
    })
}

/// How often a thread waits, or has to, for each delta at a pace.
fn switches() -> io::Result<()> {
    let provider = Provider::start(Manner::Paced { deltas: PACED_FEW, pace: PACE })?;
    let [ours, minimal] = BOTH.map(|program| -> io::Result<f64> {
        let args = of_provider(program, &provider);
        let mut child = Child::greeted(program, &strs(&args))?;
        child.send(&submit("hi"))?;
        child.count()?;
        let before = child.context_switches()?;
        child.send(&submit("again"))?;
        child.count()?;
        Ok((child.context_switches()? - before) / PACED_FEW as f64)
    });
    row("a delta at a 5 ms pace: context switches", Unit::Few, ours?, Some(minimal?), Aim::None);
    Ok(())
}

/// As `callgrind` counts them.
fn instructions() -> io::Result<()> {
    let count = |program, args: &[String], request: &str| {
        let tool = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"];
        let report = run(&tool, program, args, request)?;
        number(&report, |line| line.split_once("Collected : ")?.1.split(' ').next())
    };
    let both = |args: &dyn Fn(Program) -> Vec<String>, request: &str| -> io::Result<[f64; 2]> {
        let [ours, minimal] = BOTH.map(|program| count(program, &args(program), request));
        Ok([ours?, minimal?])
    };
    let echo = |program| echo(program).iter().map(ToString::to_string).collect::<Vec<_>>();
    let [ours, minimal] = match both(&echo, "") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            note("instructions: not counted, as valgrind is not installed");
            return Ok(());
        }
        counted => counted?,
    };
    row("start: instructions", Unit::Count, ours, Some(minimal), Aim::None);

    let answer = |deltas| both(&echo, &submit(&prompt(deltas)));
    let [ours, minimal] = each(answer(FEW)?, answer(MANY)?, MANY - FEW);
    let what = "a delta of the built-in engine: instructions";
    row(what, Unit::Count, ours, Some(minimal), Aim::Ratio(ENGINE_MAX));

    let answer = |deltas| {
        let provider = Provider::start(Manner::AtOnce { deltas })?;
        both(&|program| of_provider(program, &provider), &submit("hi"))
    };
    let [ours, minimal] = each(answer(FEW)?, answer(MANY)?, MANY - FEW);
    let what = "a delta through a provider: instructions";
    row(what, Unit::Count, ours, Some(minimal), Aim::Ratio(PROVIDER_MAX));
    Ok(())
}

/// As `strace` counts them, of all threads.
fn system_calls() -> io::Result<()> {
    let answer = |deltas| -> io::Result<[f64; 2]> {
        let provider = Provider::start(Manner::Paced { deltas, pace: PACE })?;
        let [ours, minimal] = BOTH.map(|program| {
            let args = of_provider(program, &provider);
            let report = run(&["strace", "-f", "-c"], program, &args, &submit("hi"))?;
            number(&report, |line| line.strip_suffix("total")?.split_whitespace().nth(3))
        });
        Ok([ours?, minimal?])
    };
    let few = match answer(PACED_FEW) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            note("system calls: not counted, as strace is not installed");
            return Ok(());
        }
        counted => counted?,
    };
    let [ours, minimal] = each(few, answer(PACED_MANY)?, PACED_MANY - PACED_FEW);
    row("a delta at a 5 ms pace: system calls", Unit::Few, ours, Some(minimal), Aim::None);
    Ok(())
}

/// What each of `deltas` takes by which `many` has more than `few`.
fn each(few: [f64; 2], many: [f64; 2], deltas: usize) -> [f64; 2] {
    [0, 1].map(|program| (many[program] - few[program]) / deltas as f64)
}

fn echo(program: Program) -> &'static [&'static str] {
    if matches!(program, Program::Duologue) {
        return &["rpc", "--engine", "echo", "--final-snapshot", "none"];
    }
    &[]
}

fn of_provider(program: Program, provider: &Provider) -> Vec<String> {
    let (base_url, address) = (provider.base_url(), provider.address());
    let ours = ["rpc", "--engine", "openai", "--base-url", &base_url, "--model", "model"];
    let args = match matches!(program, Program::Duologue) {
        true => [&ours[..], &["--final-snapshot", "none"]].concat(),
        false => vec!["--provider", &address],
    };
    args.into_iter().map(str::to_owned).collect()
}

fn strs(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

/// What `tool` reports of a program that gets `request` and no more.
fn run(tool: &[&str], program: Program, args: &[String], request: &str) -> io::Result<String> {
    let mut command = Command::new(tool[0]);
    command.args(&tool[1..]).arg(program.path()?).args(args);
    // What is set for other programs would be counted too.
    command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    // Frames go into a pipe, as a client's do: what is not one takes a thread for each write.
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = pipes.spawn()?;
    process.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?.write_all(request.as_bytes())?;
    let output = process.wait_with_output()?;
    Ok(String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The number that `find` finds in a line of `report`.
fn number<'a>(report: &'a str, find: impl Fn(&'a str) -> Option<&'a str>) -> io::Result<f64> {
    let found = report.lines().find_map(|line| find(line)?.parse().ok());
    found.ok_or_else(|| io::Error::other(format!("nothing counted in: {report}")))
}
