//! For tests: tool servers that are a script, without processes.

use super::{CallStep, ToolServers};
use crate::task::limits::ToolLimits;
use crate::task::server::ServerName;
use crate::tool::config::{ServerConfig, Transport};
use futures_util::future::Either;
use futures_util::stream::Stream;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

/// A call that goes on.
pub(crate) type ScriptedCall = Pin<Box<dyn Stream<Item = CallStep> + Send>>;

/// Makes the call of a tool: by the name of the server, that of the tool, and the arguments.
type MakeCall = dyn Fn(&ServerName, &str, &Map<String, Value>) -> ScriptedCall + Send + Sync;

/// What takes the place of servers.
#[derive(Clone)]
pub(crate) struct Script(pub(crate) Arc<MakeCall>);

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Script")
    }
}

impl ToolServers {
    /// A server of this name, whose calls `script` makes. Its states are inputs of the session.
    pub(crate) fn of_script(name: &ServerName, script: Script) -> Self {
        let (command, args, env, cwd) = (String::new(), Vec::new(), BTreeMap::new(), None);
        let transport = Transport::Stdio { command, args, env, cwd };
        let config = ServerConfig::new(name.clone(), transport);
        let servers = Self::new(vec![config], ToolLimits::default(), None);
        Self { script: Some(script), ..servers }
    }

    pub(super) fn scripted(
        &self,
        server: &ServerName,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> Option<ScriptedCall> {
        let Script(script) = self.script.as_ref()?;
        Some(script(server, tool, arguments))
    }
}

/// The scripted call, or else the real one.
pub(super) fn or<S: Stream<Item = CallStep>>(
    scripted: Option<ScriptedCall>,
    real: S,
) -> Either<ScriptedCall, S> {
    match scripted {
        Some(scripted) => Either::Left(scripted),
        None => Either::Right(real),
    }
}
