//! The supervisor of one server: starts it, restarts it, ends it, and reports its state to the table.

mod restarts;
#[cfg(test)]
mod tests;

use crate::support::time_limit::time_limit;
use crate::task::server::{ServerName, ServerTool};
use crate::tool::child::{Child, Program};
use crate::tool::config::{ServerConfig, Transport};
use crate::tool::connection::{Closing, Connection, Link, NotReady};
use crate::tool::elicitation::{Asker, Questions};
use crate::tool::guard;
use crate::tool::http::HttpTransport;
use crate::tool::line_transport::{LineTransport, Writer};
use crate::tool::table::{Phase, Table};
use restarts::{Cause, Next, Outcome, RESTARTS_MAX, Report, Restarts, STABLE_AFTER};
use rmcp::model::ProtocolVersion;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;
use tokio::process::ChildStdin;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};

/// Changes of a list of tools within this time are coalesced. It doubles while a server continues to report
/// changes as soon as its tools are listed.
const LIST_DELAY: Duration = Duration::from_millis(50);

/// Longest such time.
const LIST_DELAY_MAX: Duration = Duration::from_secs(30);

/// How long the status of a process is waited for after it has closed its output.
const STATUS_MAX: Duration = Duration::from_secs(2);

/// How long the output of a process is read after its end, for an answer that is still in the pipe: others may hold
/// it open.
const OUTPUT_GRACE: Duration = Duration::from_millis(200);

/// The reason with which the calls of a server that is ended fail.
const CLOSED: &str = "this program is ending";

/// The reason with which the calls of a server fail that a person has restarted.
const RESTARTED: &str = "the person had it started again";

/// The error of a call after a panic of the task.
const DEFECT: &str = "internal error; please report it";

/// Supervises one server.
pub(super) struct Supervisor {
    pub(super) config: Arc<ServerConfig>,
    pub(super) guard: Option<PathBuf>,
    pub(super) table: watch::Sender<Table>,
    /// A call waits for the server.
    pub(super) wanted: Arc<Notify>,
    /// The server is to be started again, whatever its state.
    pub(super) restart: Arc<Notify>,
    pub(super) closing: watch::Receiver<bool>,
    /// Where its questions for the person go, if somebody can be asked.
    pub(super) questions: Option<Questions>,
}

/// How a server's run ended.
enum End {
    /// By our will.
    Closing,
    /// A person wants it started again. `had_run`: its tools were known.
    Restarted { had_run: bool },
    /// Before its tools were known.
    NotStarted(String, Cause),
    /// After that; how long they could be called.
    Ended(String, Duration),
}

/// Why a server that has failed is to be started again.
enum Wanted {
    ByPerson,
    InSilence,
}

/// Why a server is left whose tools are known.
enum Left {
    Closed,
    Restarted,
    Ended(Closing),
}

/// The outcome of a connection.
enum Endpoint {
    Process(Box<Child>, Writer<ChildStdin>),
    Remote,
}

type Opening = Pin<Box<dyn Future<Output = Result<Connection, NotReady>> + Send>>;

impl Supervisor {
    /// Runs the server until all servers are closed. One that has failed is started again when a person wants it, and
    /// some in silence from time to time: no run waits for that, and no failure of it is reported.
    pub(super) async fn keep(self) {
        let mut restarts = Restarts::default();
        loop {
            if !restarts.is_silent() {
                self.set(Phase::Starting, Arc::new([]));
            }
            let (reason, outcome) = match self.run(restarts.is_on_probation()).await {
                End::Closing => return,
                End::Restarted { had_run } => {
                    restarts.wanted(had_run);
                    continue;
                }
                End::NotStarted(reason, cause) => (self.shown(&reason), Outcome::NotStarted(cause)),
                End::Ended(reason, lifetime) => (self.shown(&reason), Outcome::Ended(lifetime)),
            };
            match restarts.next(outcome) {
                Next::Soon(delay) => {
                    if let Outcome::NotStarted(_) = outcome {
                        self.set(Phase::Gone { reason }, Arc::new([]));
                    }
                    tokio::select! {
                        biased;
                        () = self.closed() => return,
                        () = self.wanted.notified() => {}
                        () = self.restart.notified() => {}
                        () = sleep(delay) => {}
                    }
                }
                Next::Failed { retry, report } => {
                    self.failed(reason, report);
                    match self.wanted_again(retry).await {
                        None => return,
                        Some(Wanted::ByPerson) => restarts.wanted(false),
                        Some(Wanted::InSilence) => restarts.retry(),
                    }
                }
            }
        }
    }

    /// Reports that the server is not started again at once, unless that is known.
    fn failed(&self, reason: String, report: Report) {
        let reason = match report {
            Report::Nothing => {
                tracing::debug!("MCP server {} can't be used yet: {reason}", self.config.name);
                return;
            }
            Report::Reason => reason,
            Report::ReasonAndRestarts => {
                format!("{reason}; it was started again {RESTARTS_MAX} times")
            }
        };
        self.set(Phase::Failed { reason }, Arc::new([]));
    }

    /// Waits until a server that has failed is to be started again; `None` if all servers are closed.
    async fn wanted_again(&self, retry: Option<Duration>) -> Option<Wanted> {
        let in_silence = async {
            match retry {
                Some(delay) => sleep(delay).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.closed() => None,
            () = self.restart.notified() => Some(Wanted::ByPerson),
            () = in_silence => Some(Wanted::InSilence),
        }
    }

    /// Starts the server once and stays with it until it has ended. One that is `on_probation` is offered, and people
    /// are told of it, when it has run for [`STABLE_AFTER`].
    async fn run(&self, on_probation: bool) -> End {
        // One limit for all of it: a login may ask other servers before anything is sent to this one.
        let mut limit = pin!(time_limit(self.config.start_limit));
        let begun = tokio::select! {
            biased;
            () = self.closed() => return End::Closing,
            () = self.restart.notified() => return End::Restarted { had_run: false },
            begun = self.begin(on_probation) => begun,
            () = &mut limit => return self.not_in_time(Cause::Unreached),
        };
        let (mut endpoint, opening) = match begun {
            Ok(begun) => begun,
            Err((reason, cause)) => return End::NotStarted(reason, cause),
        };
        let opened = tokio::select! {
            biased;
            () = self.closed() => Err(End::Closing),
            () = self.restart.notified() => Err(End::Restarted { had_run: false }),
            opened = initialized(opening) => Ok(opened),
            reason = endpoint.ended() => Err(endpoint.ended_early(reason)),
            () = &mut limit => Err(self.not_in_time(endpoint.cause())),
        };
        let end = match opened {
            Ok(Ok((connection, tools, warnings))) => {
                if !on_probation {
                    self.warn(&warnings);
                }
                return self.stay(endpoint, connection, tools, on_probation).await;
            }
            Ok(Err(NotReady::Refused(reason))) => End::NotStarted(reason, Cause::Refused),
            Ok(Err(NotReady::Unreached(reason))) => End::NotStarted(reason, Cause::Unreached),
            Ok(Err(NotReady::Closed(reason))) => {
                let reason = endpoint.reason(reason).await;
                endpoint.ended_early(reason)
            }
            Err(end) => end,
        };
        endpoint.end().await;
        end
    }

    fn not_in_time(&self, cause: Cause) -> End {
        let reason = format!("it was not ready within {:?}", self.config.start_limit);
        End::NotStarted(reason, cause)
    }

    /// Stays with a server whose tools are known.
    async fn stay(
        &self,
        mut endpoint: Endpoint,
        connection: Connection,
        tools: Arc<[ServerTool]>,
        on_probation: bool,
    ) -> End {
        let begun = Instant::now();
        let link = connection.link();
        let offered = async {
            if on_probation {
                sleep(STABLE_AFTER).await;
            }
            self.set(Phase::Ready(link.clone()), tools);
            self.follow_list(&connection, &link).await;
        };
        let left = tokio::select! {
            biased;
            () = self.closed() => Left::Closed,
            reason = endpoint.ended() => Left::Ended(Closing::Fault(reason)),
            closing = connection.closed() => Left::Ended(closing),
            () = self.restart.notified() => Left::Restarted,
            () = offered => Left::Closed,
        };
        let lifetime = begun.elapsed();
        if let Left::Ended(_) = left {
            timeout(OUTPUT_GRACE, connection.closed()).await.ok();
        }
        let end = match left {
            Left::Closed => End::Closing,
            Left::Restarted => End::Restarted { had_run: true },
            Left::Ended(Closing::Fault(reason)) => End::Ended(reason, lifetime),
            Left::Ended(Closing::Remote) => {
                End::Ended(endpoint.reason("it closed the connection".to_owned()).await, lifetime)
            }
        };
        let reason = match &end {
            End::Closing => CLOSED.to_owned(),
            End::Restarted { .. } => RESTARTED.to_owned(),
            End::NotStarted(reason, _) | End::Ended(reason, _) => self.shown(reason),
        };
        if let End::Ended(_, lifetime) = end
            && (!on_probation || lifetime >= STABLE_AFTER)
        {
            // Before its calls fail: a client that has their results has also seen the reason.
            self.set(Phase::Gone { reason: reason.clone() }, Arc::new([]));
        }
        connection.close(&reason).await;
        endpoint.end().await;
        end
    }

    /// Begins to start the server. Needs a runtime.
    async fn begin(&self, on_probation: bool) -> Result<(Endpoint, Opening), (String, Cause)> {
        let version = self.version().map_err(|why| (why, Cause::Refused))?;
        let closed = watch::Sender::new(None);
        let server = self.config.name.clone();
        let asker = self.questions.clone().map(|questions| Asker { questions, server });
        match &self.config.transport {
            Transport::Stdio { command, args, env, cwd } => {
                let server = &self.config.name;
                let cwd = cwd.as_deref();
                let secrets = &self.config.all_secrets();
                let program = Program { server, command, args, env, cwd, secrets, on_probation };
                let started = Child::start(&program, self.guard.as_ref());
                let (child, pipes) =
                    started.map_err(|error| (not_started(&error, cwd), Cause::Unreached))?;
                let transport = LineTransport::new(pipes.output, pipes.input, closed.clone());
                let endpoint = Endpoint::Process(Box::new(child), transport.writer());
                Ok((endpoint, Box::pin(Connection::open(transport, version, closed, asker))))
            }
            Transport::Http { url, headers, login } => {
                let login = login.as_ref();
                let transport = HttpTransport::new(url, headers, login, closed.clone()).await;
                let transport = transport.map_err(|why| (why, Cause::Unreached))?;
                Ok((
                    Endpoint::Remote,
                    Box::pin(Connection::open(transport, version, closed, asker)),
                ))
            }
        }
    }

    fn version(&self) -> Result<Option<ProtocolVersion>, String> {
        let Some(text) = &self.config.protocol_version else { return Ok(None) };
        let known = ProtocolVersion::KNOWN_VERSIONS.iter();
        let mut known = known.filter(|version| version.has_initialize());
        match known.find(|version| version.as_str() == text) {
            Some(version) => Ok(Some(version.clone())),
            None => Err(format!("its protocolVersion {text:?} is not known here")),
        }
    }

    /// Lists the server's tools again whenever it says that they have changed. Never ends.
    async fn follow_list(&self, connection: &Connection, link: &Link) {
        let mut delay = LIST_DELAY;
        let mut listed = None::<Instant>;
        loop {
            connection.list_changed().await;
            let is_flood = listed.is_some_and(|listed| listed.elapsed() < delay);
            delay = if is_flood { (delay * 2).min(LIST_DELAY_MAX) } else { LIST_DELAY };
            sleep(delay).await;
            match timeout(self.config.start_limit, link.tools()).await {
                Ok(Ok((tools, warnings))) => {
                    self.warn(&warnings);
                    self.set(Phase::Ready(link.clone()), tools);
                }
                Ok(Err(reason)) => self.warn(&[format!("its tools can't be listed: {reason}")]),
                Err(_) => self.warn(&["it did not list its changed tools in time".to_owned()]),
            }
            listed = Some(Instant::now());
        }
    }

    /// Waits until all servers are closed.
    async fn closed(&self) {
        let mut closing = self.closing.clone();
        // Also if the sender is gone.
        closing.wait_for(|closing| *closing).await.ok();
    }

    fn set(&self, phase: Phase, tools: Arc<[ServerTool]>) {
        self.table.send_modify(|table| table.set(&self.config.name, phase, tools));
    }

    fn warn(&self, warnings: &[String]) {
        for warning in warnings {
            tracing::warn!("MCP server {}: {}", self.config.name, self.shown(warning));
        }
    }

    fn shown(&self, text: &str) -> String {
        self.config.shown(text)
    }
}

/// Why a process could not be started. The system's error does not say whether it is about the program or its folder.
fn not_started(error: &io::Error, folder: Option<&Path>) -> String {
    // With the dot it fails for a file, and for a folder that can't be entered.
    let unusable = folder.and_then(|folder| Some((folder, folder.join(".").metadata().err()?)));
    match unusable {
        Some((folder, why)) => {
            format!("its folder \"{}\" can't be used: {why}", folder.display())
        }
        None => format!("can't start it: {error}"),
    }
}

/// An open connection and the server's tools, with a warning about those left out.
async fn initialized(
    opening: Opening,
) -> Result<(Connection, Arc<[ServerTool]>, Vec<String>), NotReady> {
    let connection = opening.await?;
    match connection.link().tools().await {
        Ok((tools, warnings)) => Ok((connection, tools, warnings)),
        Err(reason) => Err(connection.not_listed(reason)),
    }
}

impl Endpoint {
    /// Waits until the process has ended by itself; returns how. There is none elsewhere.
    async fn ended(&mut self) -> String {
        match self {
            Self::Process(child, _) => child.ended().await,
            Self::Remote => std::future::pending().await,
        }
    }

    /// What it means that the server is not ready, and has not said why.
    fn cause(&self) -> Cause {
        match self {
            Self::Process(..) => Cause::Refused,
            Self::Remote => Cause::Unreached,
        }
    }

    /// The end of a server, for this reason, before its tools were known.
    fn ended_early(&self, reason: String) -> End {
        // A guard was started, and could not start the program.
        let is_missing = reason.starts_with(guard::CANT_START);
        let cause = if is_missing { Cause::Unreached } else { self.cause() };
        End::NotStarted(reason, cause)
    }

    /// Why the server ended, if its process says so within a moment; else `otherwise`.
    async fn reason(&mut self, otherwise: String) -> String {
        match self {
            Self::Process(child, _) => match timeout(STATUS_MAX, child.ended()).await {
                Ok(how) => how,
                Err(_) => otherwise,
            },
            Self::Remote => otherwise,
        }
    }

    /// Ends the process and all that it started, within a few seconds.
    async fn end(&mut self) {
        if let Self::Process(child, input) = self {
            input.close().await;
            child.end().await;
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // Tasks that wait for the server must not wait for ever.
        let reason = if std::thread::panicking() { DEFECT } else { CLOSED };
        let name: &ServerName = &self.config.name;
        self.table.send_modify(|table| table.close(name, reason));
    }
}
