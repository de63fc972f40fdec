//! The program: reads the command line, and does what it says.

use clap::CommandFactory;
use duologue::cli::{Cli, Command};
use duologue::prepare::Job;
use duologue::{shell, tools};
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    ExitCode::from(run(words))
}

/// Does what `words` say; gives the status of the process.
fn run(words: Vec<OsString>) -> u8 {
    // Its words can be read once its file is.
    if words.get(1).is_some_and(|word| word == "run-command") {
        return shell::run(Job::RunCommand(words));
    }
    let cli = match Cli::read(&words) {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            let (command, mode) = Cli::guess(&words);
            return shell::run(Job::Wrong(command, mode, error));
        }
        Err(help) => help.exit(),
    };
    match cli.command {
        None if cli.manifest => tools::manifest(&Cli::command()),
        None => shell::run(Job::Rpc(cli.rpc)),
        Some(Command::Rpc(args)) => shell::run(Job::Rpc(args)),
        Some(Command::Exec(args)) => shell::run(Job::Exec(args)),
        Some(Command::RunCommand(_)) => shell::run(Job::RunCommand(words)),
        Some(Command::Check(args)) => tools::check(&args),
        Some(Command::ListEvents(args)) => tools::list_events(&args),
        Some(Command::Schema(args)) => tools::schema(&args),
        Some(Command::Completions(args)) => tools::completions(&args, &Cli::command()),
        Some(Command::Man(args)) => tools::man(&args, &Cli::command()),
    }
}
