//! The program: reads the command line, and serves.

use anyhow::{Context, Result};
use clap::Parser;
use duologue::cli::{Cli, Command, RpcArgs};
use duologue::server::{self, Stdio};
use duologue::session::ExitCode as Exit;
use duologue::{config, log};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use tokio::runtime;

/// Status for a command line, or a file named on it, that is wrong. Also clap's own.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let args = match cli.command {
        Some(Command::Rpc(args)) => args,
        None => cli.rpc,
    };
    match rpc(args) {
        Ok(exit) => ExitCode::from(exit.number()),
        Err(error) => {
            // There is no one else to tell if standard error is gone as well.
            drop(writeln!(std::io::stderr(), "duologue: {error:#}"));
            ExitCode::from(USAGE)
        }
    }
}

fn rpc(args: RpcArgs) -> Result<Exit> {
    let _flush_at_end = log::start(args.log_level, args.log_file.as_deref())?;
    std::panic::set_hook(Box::new(log::defect));
    let settings = config::rpc(args)?;
    if std::io::stdin().is_terminal() {
        tracing::warn!(
            "requests are read from this terminal, one JSON object a line, as in \
             {{\"submit\":{{\"prompt\":\"hello\"}}}}; Ctrl-D ends, --help tells more"
        );
    }
    let stdio = Stdio::take().context("standard input or output can't be used")?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let exit = runtime.block_on(server::serve(stdio, settings));
    // A name that is still being looked up must not hold up the end.
    runtime.shutdown_background();
    Ok(exit?)
}
