//! The messages of the Agent Client Protocol, version 1 (<https://agentclientprotocol.com>), as far as
//! this program reads or writes them: lenient types for what is read, strict ones for what is written.
//! Pure.

use crate::tool::elicitation::Askable;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The version of the protocol.
pub(super) const PROTOCOL_VERSION: u16 = 1;

/// What the client can do. What it has not announced is not used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ClientCapabilities {
    /// It gives the text of a file as its buffer has it.
    pub(super) reads_files: bool,
    /// It shows notices.
    pub(super) has_notices: bool,
    /// It shows compactions.
    pub(super) has_compaction: bool,
    /// What of the questions of MCP servers it asks the person.
    pub(super) askable: Askable,
}

impl ClientCapabilities {
    /// Those in the parameters of `initialize`.
    pub(super) fn of(params: &Value) -> Self {
        let at = |path: &str| params.pointer(&format!("/clientCapabilities/{path}"));
        let is_there =
            |path: &str| at(path).is_some_and(|it| !matches!(it, Value::Null | Value::Bool(false)));
        Self {
            reads_files: at("fs/readTextFile") == Some(&Value::Bool(true)),
            has_notices: is_there("session/notices"),
            has_compaction: is_there("session/compaction"),
            askable: Askable {
                forms: is_there("elicitation/form"),
                urls: is_there("elicitation/url"),
            },
        }
    }
}

/// Parameters of `session/new`, `session/load` and `session/resume`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OpenParams {
    pub(super) cwd: String,
    pub(super) mcp_servers: Option<Vec<McpServer>>,
}

/// An MCP server of the client. Its kind is its type, or what it has.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct McpServer {
    pub(super) r#type: Option<String>,
    pub(super) name: String,
    pub(super) command: Option<String>,
    pub(super) args: Option<Vec<String>>,
    pub(super) env: Option<Pairs>,
    pub(super) url: Option<String>,
    pub(super) headers: Option<Pairs>,
}

/// Names with values: a list of pairs, or an object, as other programs have it.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Pairs {
    List(Vec<Pair>),
    Object(BTreeMap<String, String>),
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Pair {
    name: String,
    value: String,
}

impl Pairs {
    pub(super) fn into_map(self) -> BTreeMap<String, String> {
        match self {
            Self::List(pairs) => pairs.into_iter().map(|pair| (pair.name, pair.value)).collect(),
            Self::Object(map) => map,
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct PromptParams {
    pub(super) prompt: Vec<ContentBlock>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetModeParams {
    pub(super) mode_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetConfigOptionParams {
    pub(super) config_id: String,
    pub(super) value: Value,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct ListParams {
    pub(super) cwd: Option<String>,
    pub(super) cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CancelRequestParams {
    pub(super) request_id: Value,
}

/// A part of a prompt or of a message.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(super) enum ContentBlock {
    Text {
        text: String,
    },
    Image {
        data: String,
        mime_type: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        uri: Option<String>,
    },
    Audio {
        #[serde(default)]
        mime_type: String,
    },
    ResourceLink {
        uri: String,
        #[serde(default)]
        name: String,
    },
    Resource {
        resource: EmbeddedResource,
    },
}

/// The content of a file that the client has put into a prompt.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EmbeddedResource {
    #[serde(default)]
    pub(super) uri: String,
    pub(super) mime_type: Option<String>,
    pub(super) text: Option<String>,
    /// In base64.
    pub(super) blob: Option<String>,
}

/// A change of a session, as `session/update` has it, unless it is a piece of a message.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "sessionUpdate", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(super) enum Update {
    ToolCall(ToolCall),
    #[serde(rename = "tool_call_update")]
    ToolCallChanged(ToolCall),
    #[serde(rename = "available_commands_update")]
    Commands {
        available_commands: Vec<AvailableCommand>,
    },
    #[serde(rename = "current_mode_update")]
    Mode {
        current_mode_id: &'static str,
    },
    #[serde(rename = "config_option_update")]
    ConfigOptions {
        config_options: Value,
    },
    #[serde(rename = "session_info_update")]
    SessionInfo {
        title: String,
    },
    #[serde(rename = "usage_update")]
    Usage {
        used: u64,
        size: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        cost: Option<Cost>,
    },
    #[serde(rename = "compaction_update")]
    Compaction {
        compaction_id: String,
        status: &'static str,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        summary: Vec<ContentBlock>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    Notice {
        severity: &'static str,
        title: String,
    },
}

/// A tool call, or what is new of one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolCall {
    pub(super) tool_call_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<ToolKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<ToolStatus>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) content: Vec<ToolContent>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) locations: Vec<Location>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) raw_input: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToolKind {
    Read,
    Edit,
    Delete,
    Move,
    Search,
    Execute,
    Think,
    Fetch,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToolStatus {
    Pending,
    InProgress,
    Completed,
    Failed,
}

/// A part of what a tool call shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ToolContent {
    Content { content: ContentBlock },
}

/// A file that a tool call is about; its path is absolute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Location {
    pub(super) path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<u32>,
}

/// A command that the person can begin a prompt with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct AvailableCommand {
    pub(super) name: String,
    pub(super) description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) input: Option<CommandInput>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct CommandInput {
    pub(super) hint: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Cost {
    pub(super) amount: f64,
    pub(super) currency: String,
}

/// An update of a session.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SessionNotification<'a> {
    pub(super) session_id: &'a str,
    pub(super) update: &'a Update,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PermissionRequest<'a> {
    pub(super) session_id: &'a str,
    pub(super) tool_call: ToolCall,
    pub(super) options: Vec<PermissionOption>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PermissionOption {
    pub(super) option_id: &'static str,
    pub(super) name: &'static str,
    pub(super) kind: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StopReason {
    EndTurn,
    MaxTokens,
    MaxTurnRequests,
    Cancelled,
}

/// A session in the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SessionInfo {
    pub(super) session_id: String,
    pub(super) cwd: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) title: String,
    pub(super) updated_at: String,
}

impl ContentBlock {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

impl ToolContent {
    pub(super) fn image(data: String, mime_type: String) -> Self {
        Self::Content { content: ContentBlock::Image { data, mime_type, uri: None } }
    }

    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Content { content: ContentBlock::text(text) }
    }
}
