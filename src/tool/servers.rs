//! MCP servers. Tasks of the runtime start and supervise them; their states are in
//! one table, which calls and [`ToolServers::changed`] read. `offers` is what people ask servers for.

mod offers;
#[cfg(test)]
pub(crate) mod scripted;

pub(crate) use crate::tool::connection::Listings;
pub use offers::Offers;

use crate::conversation::event::{CallProgress, ToolResult};
use crate::task::limits::ToolLimits;
use crate::task::server::{ServerChange, ServerName};
use crate::tool::config::ServerConfig;
use crate::tool::connection::Link;
use crate::tool::elicitation::Questions;
use crate::tool::result;
use crate::tool::server::Supervisor;
use crate::tool::table::{Phase, Table};
use futures_util::stream::{self, Stream};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

/// How long the servers' processes are waited for at the end. Each ends sooner, if the system ends it
/// at all.
const CLOSE_MAX: Duration = Duration::from_secs(6);

/// Time between two reports on the progress of a call; of those between, the newest counts.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

/// Why a call is not made whose tool is another one once its server is ready again.
const CHANGED: &str = "the call was not made: its server was started again, and the tool has changed \
                       meanwhile";

/// A step of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub enum CallStep {
    /// Its server has reported how far it is.
    Progress(CallProgress),
    /// It has ended with this result.
    Ended(ToolResult),
}

/// The MCP servers of a process. When it is dropped, they are ended without being waited for.
#[derive(Debug, Default)]
pub struct ToolServers {
    servers: BTreeMap<ServerName, Server>,
    limits: ToolLimits,
    guard: Option<PathBuf>,
    table: watch::Sender<Table>,
    /// Revisions of the rows that [`ToolServers::changed`] has returned.
    reported: BTreeMap<ServerName, u64>,
    closing: watch::Sender<bool>,
    /// Where their questions for the person go, if somebody can be asked.
    questions: Option<Questions>,
    supervisors: JoinSet<()>,
    /// What takes the place of servers in a test.
    #[cfg(test)]
    script: Option<scripted::Script>,
}

#[derive(Debug)]
struct Server {
    config: Arc<ServerConfig>,
    /// Wakes the supervisor of the server when a call waits for it.
    wanted: Arc<Notify>,
    /// Has its supervisor start it again.
    restart: Arc<Notify>,
}

impl ToolServers {
    /// The servers of `configs`, none of which is started yet. `guard` is an executable of this
    /// program, which can act as the guard of a server's processes (`guard::main`). Without it only the
    /// server's process group is ended, and nothing is if this process is killed.
    pub fn new(configs: Vec<ServerConfig>, limits: ToolLimits, guard: Option<PathBuf>) -> Self {
        let servers: BTreeMap<_, _> = configs
            .into_iter()
            .map(|config| (config.name.clone(), Arc::new(config)))
            .map(|(name, config)| {
                (name, Server { config, wanted: Arc::default(), restart: Arc::default() })
            })
            .collect();
        let table = watch::Sender::new(Table::new(servers.keys()));
        Self { servers, limits, guard, table, ..Self::default() }
    }

    /// Has servers that are started from here on ask the person.
    pub(crate) fn ask_with(&mut self, questions: Questions) {
        self.questions = Some(questions);
    }

    /// Starts all servers, in parallel. Needs a runtime; a second call does nothing.
    pub fn start(&mut self) {
        if !self.supervisors.is_empty() || *self.closing.borrow() {
            return;
        }
        #[cfg(test)]
        if self.script.is_some() {
            return;
        }
        for server in self.servers.values() {
            let supervisor = Supervisor {
                config: Arc::clone(&server.config),
                guard: self.guard.clone(),
                table: self.table.clone(),
                wanted: Arc::clone(&server.wanted),
                restart: Arc::clone(&server.restart),
                closing: self.closing.subscribe(),
                questions: self.questions.clone(),
            };
            self.supervisors.spawn(supervisor.keep());
        }
    }

    /// The names of all servers, in order.
    pub fn names(&self) -> impl Iterator<Item = &ServerName> {
        self.servers.keys()
    }

    /// Starts the server of this name again, also one that has failed; its open calls fail. False if there is
    /// none. From now on its state says so.
    pub fn restart(&self, name: &str) -> bool {
        let mut servers = self.servers.iter();
        let Some((name, server)) = servers.find(|(other, _)| other.as_str() == name) else {
            return false;
        };
        self.table.send_modify(|table| table.set(name, Phase::Starting, Arc::new([])));
        server.restart.notify_one();
        true
    }

    /// What [`ToolServers::changed`] would return at once.
    pub(crate) fn try_changed(&mut self) -> Option<ServerChange> {
        self.table.borrow().unreported(&mut self.reported)
    }

    /// Waits for a change of a server and returns the server's latest state; several changes may
    /// become one. Without servers it waits for ever. A future that is dropped loses nothing.
    pub async fn changed(&mut self) -> ServerChange {
        let mut table = self.table.subscribe();
        loop {
            if let Some(change) = table.borrow_and_update().unreported(&mut self.reported) {
                return change;
            }
            if table.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Calls a server's tool; the last step is the result. Whatever goes wrong is a [`ToolResult::Error`] for the
    /// model. A server that is being started, or started again, is waited for; a call that was sent is never
    /// repeated. A stream that is dropped cancels the call at the server. There is no limit on the time.
    pub fn call(
        &self,
        server: &ServerName,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> impl Stream<Item = CallStep> + Send + 'static + use<> {
        #[cfg(test)]
        let scripted = self.scripted(server, tool, &arguments);
        let table = self.table.subscribe();
        let listed = table.borrow().tool(server, tool);
        let known = self.servers.get(server);
        let known = known.map(|known| (Arc::clone(&known.config), Arc::clone(&known.wanted)));
        let (server, tool) = (server.clone(), tool.to_owned());
        let bytes_max = self.limits.result_bytes;
        let (newest, reported) = watch::channel(None);
        let call = async move {
            let Some((config, wanted)) = known else {
                return ToolResult::Error(format!("there is no MCP server `{server}`"));
            };
            let called = match ready(table.clone(), &server, &wanted).await {
                // The call was allowed for the tool as it was before its server was started again.
                Ok(_) if listed.is_some() && table.borrow().tool(&server, &tool) != listed => {
                    Err(CHANGED.to_owned())
                }
                Ok(link) => link.call(tool, arguments, newest).await,
                Err(why) => Err(why),
            };
            match called {
                Ok(value) => result::render(&value, bytes_max),
                Err(why) => ToolResult::Error(config.shown(&why)),
            }
        };
        let steps = steps(call, reported);
        #[cfg(test)]
        let steps = scripted::or(scripted, steps);
        steps
    }

    /// Ends all servers and waits until their processes have ended: a few seconds at most.
    pub async fn close(&mut self) {
        self.closing.send_replace(true);
        let all = async { while self.supervisors.join_next().await.is_some() {} };
        timeout(CLOSE_MAX, all).await.ok();
        self.supervisors.abort_all();
    }
}

/// The steps of `call`, whose progress is `reported`.
fn steps(
    call: impl Future<Output = ToolResult> + Send + 'static,
    reported: watch::Receiver<Option<CallProgress>>,
) -> impl Stream<Item = CallStep> + Send + 'static {
    let begun = Some((Box::pin(call), reported, Instant::now()));
    stream::unfold(begun, |open| async move {
        let (mut call, mut reported, not_before) = open?;
        tokio::select! {
            biased;
            result = &mut call => Some((CallStep::Ended(result), None)),
            progress = newest(&mut reported, not_before) => {
                let open = (call, reported, Instant::now() + PROGRESS_INTERVAL);
                Some((CallStep::Progress(progress), Some(open)))
            }
        }
    })
}

/// The newest report, once there is another one and it is time for it.
async fn newest(
    reported: &mut watch::Receiver<Option<CallProgress>>,
    not_before: Instant,
) -> CallProgress {
    while reported.changed().await.is_ok() {
        sleep_until(not_before).await;
        if let Some(progress) = reported.borrow_and_update().clone() {
            return progress;
        }
    }
    // The call ends, which says all.
    std::future::pending().await
}

/// The link to a server, once it can be called.
async fn ready(
    mut table: watch::Receiver<Table>,
    server: &ServerName,
    wanted: &Notify,
) -> Result<Link, String> {
    loop {
        let phase = table.borrow_and_update().phase(server);
        match phase {
            Some(Phase::Ready(link)) => return Ok(link),
            Some(Phase::Failed { reason }) => {
                return Err(format!("the MCP server `{server}` is not running: {reason}"));
            }
            Some(Phase::Gone { .. }) => wanted.notify_one(),
            Some(Phase::Starting) | None => {}
        }
        if table.changed().await.is_err() {
            return Err(format!("the MCP server `{server}` is not running"));
        }
    }
}
