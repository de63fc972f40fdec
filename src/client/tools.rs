//! Functions that the model may call, and decisions about those of tool servers.

use super::struct_of;
use crate::protocol::constants::tool_result;
use crate::protocol::proto::frontendtools::{
    FrontendToolCallRequested, FrontendToolDescriptor, FrontendToolResultCommand,
};
use crate::protocol::proto::rpc::ApproveRequest;
use crate::protocol::proto::tools::{ApprovalDecision, ToolApprovalRequested};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::fmt::{self, Debug, Display};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long a tool may run, unless it says otherwise.
const TOOL_TIME: Duration = Duration::from_secs(60);

/// A type that answers may have, with its JSON Schema. With the crate schemars it is one line:
/// `fn schema() -> Map<String, Value> { serde_json::from_value(schema_for!(Self).into()).unwrap_or_default() }`.
pub trait HasSchema: DeserializeOwned {
    /// The JSON Schema.
    fn schema() -> Map<String, Value>;
}

type Running<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Function = Arc<dyn Fn(Value) -> Running<Result<Value, String>> + Send + Sync>;
pub(super) type Approve = Arc<dyn Fn(ToolApprovalRequested) -> Running<Approval> + Send + Sync>;

/// A function that the model may call.
#[derive(Clone)]
pub struct Tool {
    pub(super) name: String,
    description: String,
    parameters: Map<String, Value>,
    time_max: Duration,
    function: Function,
}

impl Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Tool {
    /// A tool with a name, what it does, for the model, and the JSON Schema of its arguments. An error of the
    /// function is a result that the model reads.
    pub fn new<F, R, T, E>(
        name: impl Into<String>,
        description: impl Into<String>,
        parameters: Map<String, Value>,
        function: F,
    ) -> Self
    where
        F: Fn(Value) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, E>> + Send + 'static,
        T: Serialize,
        E: Display,
    {
        let (name, description) = (name.into(), description.into());
        let function: Function = Arc::new(move |input| {
            let running = function(input);
            Box::pin(async move {
                let value = running.await.map_err(|error| error.to_string())?;
                serde_json::to_value(value)
                    .map_err(|error| format!("the result is no JSON: {error}"))
            })
        });
        Self { name, description, parameters, time_max: TOOL_TIME, function }
    }

    /// How long a call may take.
    #[must_use]
    pub fn time_max(mut self, time: Duration) -> Self {
        self.time_max = time;
        self
    }

    pub(super) fn descriptor(&self) -> FrontendToolDescriptor {
        FrontendToolDescriptor {
            name: self.name.clone(),
            description: self.description.clone(),
            input_schema: Some(struct_of(self.parameters.clone())),
            ..Default::default()
        }
    }

    /// Calls it. What goes wrong is a result too.
    async fn call(&self, input: Value) -> Result<Value, String> {
        let function = Arc::clone(&self.function);
        match apart(async move { function(input).await }, self.time_max).await {
            Ok(result) => result,
            Err(Unfinished::Panicked) => Err("the tool has a defect and panicked".to_owned()),
            Err(Unfinished::TooLong) => {
                Err(format!("the tool took longer than {} s", self.time_max.as_secs_f64()))
            }
        }
    }
}

/// Why a function of the program has returned nothing.
enum Unfinished {
    Panicked,
    TooLong,
}

/// Runs `work` in a task of its own, so that a panic ends that task alone. The task ends with the time, and with the
/// future of this function.
async fn apart<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
    time_max: Duration,
) -> Result<T, Unfinished> {
    let mut task = JoinSet::new();
    task.spawn(work);
    match timeout(time_max, task.join_next()).await {
        Ok(Some(Ok(value))) => Ok(value),
        Ok(Some(Err(_)) | None) => Err(Unfinished::Panicked),
        Err(_) => Err(Unfinished::TooLong),
    }
}

/// Calls the tool that was asked for; `None` if there is none of that name.
pub(super) async fn call(
    tool: Option<Tool>,
    asked: FrontendToolCallRequested,
) -> FrontendToolResultCommand {
    let FrontendToolCallRequested { tool_call_id, tool_name, input, .. } = asked;
    let input = serde_json::to_value(input.unwrap_or_default()).unwrap_or_default();
    let called = match &tool {
        Some(tool) => tool.call(input).await,
        None => Err(format!("there is no tool {tool_name}")),
    };
    let command = FrontendToolResultCommand { tool_call_id, tool_name, ..Default::default() };
    match called {
        Ok(value) => {
            let members = match value.as_object() {
                Some(members) => members.clone(),
                None => Map::from_iter([("result".to_owned(), value)]),
            };
            let (result, status) = (Some(struct_of(members)), tool_result::SUCCESS.to_owned());
            FrontendToolResultCommand { result, status, ..command }
        }
        Err(error) => failed(command, error),
    }
}

/// A result that the model reads as an error.
pub(super) fn failed(
    command: FrontendToolResultCommand,
    error: String,
) -> FrontendToolResultCommand {
    FrontendToolResultCommand {
        result: None,
        status: tool_result::ERROR.to_owned(),
        error,
        ..command
    }
}

/// A decision about a call of a tool server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approval {
    /// Run this call.
    AllowOnce,
    /// Run this call, and every later one of the same tool in this session.
    AllowSession,
    /// Don't run it.
    Deny {
        /// Why, for the model.
        reason: String,
    },
}

impl Approval {
    fn deny(reason: impl Into<String>) -> Self {
        Self::Deny { reason: reason.into() }
    }
}

/// Has the program decide. Nobody to ask, no answer in time, and a panic are a no.
pub(super) async fn decide(
    approve: Option<Approve>,
    asked: ToolApprovalRequested,
    time_max: Duration,
) -> ApproveRequest {
    let tool_call_id = asked.tool_call_id.clone();
    let approval = match approve {
        None => Approval::deny("this program approves no tool calls"),
        Some(approve) => match apart(async move { approve(asked).await }, time_max).await {
            Ok(approval) => approval,
            Err(Unfinished::Panicked) => Approval::deny("the program could not decide"),
            Err(Unfinished::TooLong) => {
                Approval::deny(format!("nobody decided within {} s", time_max.as_secs_f64()))
            }
        },
    };
    let (decision, reason) = match approval {
        Approval::AllowOnce => (ApprovalDecision::AllowOnce, String::new()),
        Approval::AllowSession => (ApprovalDecision::AllowSession, String::new()),
        Approval::Deny { reason } => (ApprovalDecision::Deny, reason),
    };
    ApproveRequest { tool_call_id, decision: decision.into(), reason }
}
