//! The program: reads the command line, and does what it says.

use duologue::cli::{Cli, Command};
use duologue::prepare::Job;
use duologue::shell;
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    match job(&words) {
        Ok(job) => ExitCode::from(shell::run(job)),
        Err(help) => help.exit(),
    }
}

/// What is to be done; an error if it is to print help.
fn job(words: &[OsString]) -> Result<Job, clap::Error> {
    if words.get(1).is_some_and(|word| word == "run-command") {
        return Ok(Job::RunCommand(words.to_vec()));
    }
    match Cli::read(words) {
        Ok(Cli { command: None, rpc }) => Ok(Job::Rpc(rpc)),
        Ok(Cli { command: Some(Command::Rpc(args)), .. }) => Ok(Job::Rpc(args)),
        Ok(Cli { command: Some(Command::Exec(args)), .. }) => Ok(Job::Exec(args)),
        Ok(Cli { command: Some(Command::RunCommand(_)), .. }) => {
            Ok(Job::RunCommand(words.to_vec()))
        }
        Err(error) if error.use_stderr() => {
            let (command, mode) = Cli::guess(words);
            Ok(Job::Wrong(command, mode, error))
        }
        Err(help) => Err(help),
    }
}
