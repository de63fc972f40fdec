//! The program: parses the command line and runs the command.

use clap::CommandFactory;
use duologue::cli::prepare::Job;
use duologue::cli::{Cli, Command, Invocation};
use duologue::cli::{commands, log, shell};
use duologue::session;
use duologue::support::stderr;
use duologue::tool::guard;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::panic::catch_unwind;
use std::process::ExitCode;

/// Exit status after an internal error.
const DEFECT: u8 = session::ExitCode::Internal.number();

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(log::defect));
    let words: Vec<OsString> = std::env::args_os().collect();
    let status = catch_unwind(|| run(words)).unwrap_or(DEFECT);
    stderr::flush();
    ExitCode::from(status)
}

/// Runs the command line `words`; returns the exit status of the process.
fn run(words: Vec<OsString>) -> u8 {
    // Started by this program itself, and for a long time: nothing else is needed for it.
    if words.get(1).is_some_and(|word| word == guard::COMMAND) {
        return guard::main(&words[2..]);
    }
    if let Some(status) = commands::complete(&words) {
        return status;
    }
    // A person who has typed the name alone.
    if words.len() == 1 && io::stdin().is_terminal() && io::stdout().is_terminal() {
        return commands::page(Cli::BEGINNING);
    }
    if let Some(args) = Cli::read_plain(&words) {
        return shell::run(Job::Rpc(args));
    }
    read(words)
}

/// Runs the command line `words` by the definition of all commands. Apart, because what it needs of
/// the stack is much, and touched a page at a time.
#[inline(never)]
fn read(words: Vec<OsString>) -> u8 {
    // Its words can be parsed once its file has been read.
    if Cli::runs_file(&words) {
        return shell::run(Job::RunCommand(words));
    }
    if let Some(page) = commands::topic(&words) {
        return run_plain(|| commands::page(page));
    }
    let command = match Cli::read(&words) {
        Ok(Invocation::Command(command)) => *command,
        Ok(Invocation::Manifest) => return run_plain(|| commands::manifest(&Cli::command())),
        Err(error) if error.use_stderr() => {
            return shell::run(Job::Wrong(Cli::guess(&words, None), error));
        }
        Err(help) => return run_plain(|| shell::help(&help)),
    };
    match command {
        Command::Rpc(args) => shell::run(Job::Rpc(Box::new(args))),
        Command::Exec(args) => shell::run(Job::Exec(Box::new(args))),
        Command::Chat(args) => shell::run(Job::Chat(Box::new(args))),
        Command::Acp(args) => shell::run(Job::Acp(Box::new(args))),
        #[cfg(feature = "serve")]
        Command::Serve(args) => shell::run(Job::Serve(Box::new(args))),
        Command::RunCommand(_) => shell::run(Job::RunCommand(words)),
        Command::Run(args) => run_plain(|| commands::prompts(&args)),
        Command::Check(args) => run_plain(|| commands::check(&args)),
        Command::ListEvents(args) => run_plain(|| commands::list_events(&args)),
        Command::Tools(args) => run_plain(|| commands::tools(&args)),
        Command::Mcp(args) => run_plain(|| commands::mcp(&args)),
        Command::Profiles(args) => run_plain(|| commands::profiles(&args)),
        Command::Models(args) => run_plain(|| commands::models(args)),
        Command::Doctor(args) => run_plain(|| commands::doctor(args)),
        Command::Sessions(args) => run_plain(|| commands::sessions(&args)),
        Command::Schema(args) => run_plain(|| commands::schema(&args)),
        Command::Completions(args) => run_plain(|| commands::completions(&args, &Cli::command())),
        Command::Man(args) => run_plain(|| commands::man(&args, &Cli::command())),
    }
}

/// Runs `work` without an event loop. Its output may be a file that may not grow without limit.
fn run_plain(work: impl FnOnce() -> u8) -> u8 {
    shell::take_signals_of_system();
    work()
}
