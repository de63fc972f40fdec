//! The program: reads the command line, and serves.

use anyhow::{Context, Result};
use clap::CommandFactory;
use duologue::cli::{Cli, Command, RpcArgs};
use duologue::server::{self, Settings, Stdio};
use duologue::session::ExitCode as Exit;
use duologue::{config, log, tools};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use tokio::runtime;

/// Status for a command line, or a file named on it, that is wrong. Also clap's own.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let cli = Cli::read();
    ExitCode::from(match cli.command {
        None if cli.manifest => tools::manifest(&Cli::command()),
        None => rpc(cli.rpc),
        Some(Command::Rpc(args)) => rpc(args),
        Some(Command::Check(args)) => tools::check(&args),
        Some(Command::ListEvents(args)) => tools::list_events(&args),
        Some(Command::Schema(args)) => tools::schema(&args),
        Some(Command::Completions(args)) => tools::completions(&args, &Cli::command()),
        Some(Command::Man(args)) => tools::man(&args, &Cli::command()),
    })
}

fn rpc(args: RpcArgs) -> u8 {
    let is_terminal = std::io::stdin().is_terminal();
    // First of all, so that not even a file that is named on the command line can be the reader's.
    let stdio = match Stdio::take().context("standard input or output can't be used") {
        Ok(stdio) => stdio,
        Err(error) => return complain(&error, Exit::Internal.number()),
    };
    let _flush_at_end = match log::start(args.log_level, args.log_file.as_deref()) {
        Ok(flush) => flush,
        Err(error) => return complain(&error, USAGE),
    };
    std::panic::set_hook(Box::new(log::defect));
    let settings = match config::rpc(args, is_terminal) {
        Ok(settings) => settings,
        Err(error) => return complain(&error, USAGE),
    };
    match serve(stdio, settings) {
        Ok(exit) => exit.number(),
        Err(error) => complain(&error, Exit::Internal.number()),
    }
}

fn serve(stdio: Stdio, settings: Settings) -> Result<Exit> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let exit = runtime.block_on(server::serve(stdio, settings));
    // A name that is still being looked up must not hold up the end.
    runtime.shutdown_background();
    Ok(exit?)
}

/// Tells a person why there is no conversation; gives back the status.
fn complain(error: &anyhow::Error, status: u8) -> u8 {
    // There is no one else to tell if standard error is gone as well.
    drop(writeln!(std::io::stderr(), "duologue: {error:#}"));
    status
}
