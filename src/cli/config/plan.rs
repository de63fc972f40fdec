//! A command as it was typed, and the settings that its options mean.

use super::engines::{Chosen, choose};
use super::format::{RunFacts, format};
use super::hints::hint;
use super::missing;
use super::profile::{self, ProfileValues};
use super::request::PromptRequest;
use super::resume;
use super::store::{announce, complete, goes_on, store};
use super::system::system_prompt;
use super::typed::{warn_of_foreign, warn_of_keys};
use crate::cli::tools::guard;
use crate::cli::{Mode, OnBusy, PatchFields, SessionArgs};
use crate::conversation::patch::Patches;
use crate::conversation::transcript::Preamble;
use crate::engine::Engine;
use crate::extract::ResponseType;
use crate::host::{CodedWarning, FilePolicy, HostSettings};
use crate::output::{Format, Shown};
use crate::protocol::attachment::Attachment;
use crate::protocol::command::Extension;
use crate::protocol::constants::capability::{
    ALWAYS, EVENTS, EXTRACT, LEAN_PATCHES, OF_STDIN, QUEUE, REQUEST_BYTES,
};
use crate::protocol::json;
use crate::session::approval::ApprovalRules;
use crate::session::{
    Extraction, ExtractionReport, FinalSnapshot, Hints, LogRules, Retention, Rules, SessionMode,
    ToolRules,
};
use crate::stdio::{Requests, Settings};
use crate::support::fail_point::Faults;
#[cfg(debug_assertions)]
use crate::support::fail_point::Place;
use crate::support::terminal::escape_control;
use crate::tool::config::ServerConfig;
use crate::tool::servers::ToolServers;
use crate::transport::{DebugFile, ToLine};
use anyhow::{Context, Result, ensure};

/// The name of the warning that no provider is configured.
const NO_PROVIDER: &str = "no_provider";

/// A command as it was typed.
pub(super) struct Plan {
    pub(super) command: &'static str,
    pub(super) mode: Mode,
    /// A person at a terminal sees which engine answers.
    pub(super) is_attended: bool,
    /// A client sends requests, by which it may choose a profile.
    pub(super) has_client: bool,
    pub(super) session: SessionArgs,
    /// Extensions that the front end needs, beside those that were named.
    pub(super) own_extensions: Vec<Extension>,
    pub(super) request: PromptRequest,
}

impl Plan {
    /// The settings of the run. Opens the debug file.
    ///
    /// # Errors
    /// If an option, or the file it names, can't be used.
    pub(super) fn settings(mut self, mut requests: Requests) -> Result<Settings> {
        // A program names its session by the whole id: after a deletion another one may begin so.
        if !self.mode.is_protocol() {
            complete(&mut self.session)?;
        }
        let (store, session) = store(&self.session)?;
        announce(&self.session.store, self.command == "acp");
        resume::go_on(&mut self.session, store.as_ref(), session.as_ref())?;
        profile::choose_default(&mut self.session.provider)?;
        let Chosen { engines, profile, notices, origin } =
            choose(&self.session, self.mode.session_mode())?;
        if !notices.is_empty() {
            self.ensure_engine_may_answer()?;
        }
        warn_of_foreign(&self.session.foreign);
        warn_of_keys(&self.session.provider);
        // Before the debug file is truncated: a wrong option changes no file.
        let tools = self.session.tools.settings(self.mode.session_mode(), &profile.tools)?;
        settle_servers(&mut requests, &tools.servers)?;
        let prices = self.session.answers.prices()?;
        let debug_file = self.debug_file()?;
        for warning in &tools.warnings {
            tracing::warn!("--mcp-config: {}", escape_control(warning));
        }
        let engine = engines.initial();
        let format = self.format(engine, &notices);
        let extraction = self.extraction();
        let capabilities = capabilities(self.mode, &self.session, engine, extraction.as_ref());
        let has_servers = !tools.servers.is_empty();
        let goes_on = goes_on(store.as_ref(), session.as_ref());
        let rules = Rules {
            retention: self.retention(debug_file.is_some(), has_servers),
            session,
            origin,
            extraction,
            prices,
            tools: ToolRules {
                // A client may declare a tool that a rule names at any time.
                typed: if self.has_client { ApprovalRules::default() } else { tools.typed },
                requires_servers: tools.require_tools,
                ..ToolRules::new(tools.rules, &tools.limits)
            },
            ..self.rules(&profile, goes_on)
        };
        let mut host = HostSettings {
            capabilities,
            rules,
            store,
            files: FilePolicy::Any,
            faults: faults(),
            ..HostSettings::new(engines)
        };
        if has_servers {
            host.servers = ToolServers::new(tools.servers, tools.limits, guard());
        }
        Ok(Settings {
            host,
            requests,
            format,
            drawing: None,
            saved: None,
            asking: None,
            progress: None,
            debug_file,
            notices,
            unread: None,
        })
    }

    /// No provider is configured, so that the built-in engine answers.
    ///
    /// # Errors
    /// If a provider is required, or nobody sees which engine answers and there is a part of a configuration.
    fn ensure_engine_may_answer(&self) -> Result<()> {
        let SessionArgs { provider, foreign, require_provider, .. } = &self.session;
        if self.is_attended && !require_provider {
            return Ok(());
        }
        missing::ensure_unconfigured(foreign)?;
        if !self.has_client || profile::name(provider).is_some() {
            missing::ensure_no_profiles(provider)?;
        }
        ensure!(
            !require_provider,
            "--require-provider refuses to run, as no provider is configured: run `duologue profiles init`, \
             or set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or --base-url and --model"
        );
        Ok(())
    }

    /// The format of the output. `notices` say that no provider is configured.
    fn format(&self, engine: &dyn Engine, notices: &[&'static str]) -> Format {
        let response = self.request.response;
        let repairs = self.session.answers.repair > 0;
        let shown = match (response, &self.request.schema) {
            (ResponseType::Json, Some(_)) => Shown::Document(None, String::new()),
            (ResponseType::Json, None) if repairs => Shown::AtEnd(String::new()),
            (ResponseType::Text | ResponseType::Json | ResponseType::Jsonl, _) => Shown::Pieces,
        };
        let warning =
            |text: &&'static str| CodedWarning { code: NO_PROVIDER, message: (*text).to_owned() };
        let of_prompt = self.request.warnings.iter().cloned();
        let warnings = notices.iter().map(warning).chain(of_prompt).collect();
        let facts = RunFacts::new(self.command, self.request.name.clone(), engine);
        format(self.mode, (response, shown), facts.with_warnings(warnings))
    }

    /// What is remembered of the conversation. The debug file holds all frames; and after tool calls,
    /// or to repair its answer, the model is sent its own words.
    fn retention(&self, has_debug_file: bool, has_servers: bool) -> Retention {
        let is_sent_again = has_servers || self.session.answers.repair > 0;
        match self.mode.is_protocol() || has_debug_file || is_sent_again {
            true => Retention::Everything,
            false => Retention::Nothing,
        }
    }

    /// The rules that follow from the mode, the options and the profile alone.
    fn rules(&mut self, profile: &ProfileValues, goes_on: bool) -> Rules {
        let Self { mode, session: args, request, own_extensions, .. } = self;
        let Preamble { system, history } = std::mem::take(&mut request.preamble);
        let system = system_prompt(system, args, profile, goes_on);
        let is_protocol = mode.is_protocol();
        Rules {
            mode: mode.session_mode(),
            preamble: Preamble { system, history },
            on_busy: args.on_busy.into(),
            // The other formats join the pieces themselves.
            patches: match is_protocol {
                true => Patches { mode: args.patch_mode.into(), fields: args.patch_fields.into() },
                false => Patches::default(),
            },
            final_snapshot: match args.final_snapshot {
                Some(typed) => typed.into(),
                // Only a client of the protocol sees it, and how long it is.
                None if is_protocol => FinalSnapshot::FullUntilLong,
                None => FinalSnapshot::Full,
            },
            extensions: args.extensions.iter().chain(own_extensions.iter()).copied().collect(),
            // The other formats are made of the events.
            events: args.events.clone().filter(|_| is_protocol).unwrap_or_default(),
            budget: args.answers.budget,
            compaction: args.compaction.rules(),
            heartbeat_ms: Some(args.heartbeat_ms),
            is_model_typed: !args.provider.typed.is_empty(),
            typed_settings: args.calls.typed_names(),
            repairs: args.answers.repair,
            log: LogRules {
                backend_events: args.store.backend_events && is_protocol,
                ..LogRules::default()
            },
            hints: Hints(hint),
            ..Rules::default()
        }
    }

    /// The debug file, without extensions that no option named.
    fn debug_file(&self) -> Result<Option<DebugFile>> {
        let Some(path) = &self.session.debug_events_jsonl else { return Ok(None) };
        let to_line: ToLine = |frame, line| json::write_line(frame, line).is_ok();
        let file = DebugFile::open(path, to_line).with_context(|| {
            format!("--debug-events-jsonl: {} can't be written", path.display())
        })?;
        let own = self.own_extensions.iter();
        let unnamed = own.filter(|extension| !self.session.extensions.contains(extension));
        Ok(Some(file.hiding(unnamed.map(|extension| extension.as_str()))))
    }

    fn extraction(&self) -> Option<Extraction> {
        let request = &self.request;
        let is_on = self.session.extensions.contains(&Extension::Structured);
        let report = match request.reports_values || is_on {
            true => ExtractionReport::Messages,
            false if self.mode.is_protocol() => ExtractionReport::Nothing,
            false => ExtractionReport::Text,
        };
        (request.response != ResponseType::Text).then(|| Extraction {
            response: request.response,
            schema: request.schema.as_ref().map(|schema| schema.compiled.clone()),
            report,
            // In JSON Lines the schema is that of a line, which no provider knows.
            response_schema: match request.response {
                ResponseType::Json => {
                    request.schema.as_ref().and_then(|it| it.for_provider.clone())
                }
                ResponseType::Text | ResponseType::Jsonl => None,
            },
            repairs: self.session.answers.repair,
        })
    }
}

/// The extensions whose events a document needs: for the times of the answer, and for its costs.
pub(super) fn extensions_of_document(mode: Mode) -> Vec<Extension> {
    match mode {
        Mode::Json | Mode::Yaml => vec![Extension::Timing, Extension::Usage],
        Mode::Text
        | Mode::Objects { .. }
        | Mode::JsonStream
        | Mode::OneShot
        | Mode::Server
        | Mode::Frames => Vec::new(),
    }
}

/// The failure planted by a test: `<place>:<nth>`, as in `project:3`. Anything else plants none.
#[cfg(debug_assertions)]
fn faults() -> Faults {
    let plan = std::env::var("DUOLOGUE_FAULT").unwrap_or_default();
    let planted = plan
        .split_once(':')
        .and_then(|(place, nth)| Some(Faults::new(Place::named(place)?, nth.parse().ok()?)));
    planted.unwrap_or_default()
}

/// A release build has no planted failures.
#[cfg(not(debug_assertions))]
fn faults() -> Faults {
    Faults::default()
}

/// Settles which servers have the resources that the prompt of the command line names.
///
/// # Errors
/// If there is no such server.
fn settle_servers(requests: &mut Requests, servers: &[ServerConfig]) -> Result<()> {
    let attachments = match requests {
        Requests::Once(submit) => &mut submit.attachments,
        Requests::Awaited(prompt) => &mut prompt.attachments,
        Requests::Stdin { .. } | Requests::Refused(_) | Requests::Interrupted(_) => return Ok(()),
    };
    let names: Vec<_> = servers.iter().map(|server| server.name.as_str()).collect();
    attachments.iter_mut().for_each(|it| it.settle_server(names.iter().copied()));
    for name in attachments.iter().filter_map(Attachment::as_resource) {
        let is_known = names.contains(&name.server.as_str());
        let known = match names.is_empty() {
            true => "none is named; name one with --mcp or --mcp-config".to_owned(),
            false => format!("there are: {}", names.join(", ")),
        };
        ensure!(is_known, "--resource {name}: there is no MCP server {:?}; {known}", name.server);
    }
    Ok(())
}

/// The capabilities of a process of this mode with this engine.
fn capabilities(
    mode: Mode,
    args: &SessionArgs,
    engine: &dyn Engine,
    extraction: Option<&Extraction>,
) -> Vec<String> {
    let queue = match args.on_busy {
        OnBusy::Reject => None,
        OnBusy::Queue => Some(QUEUE.to_owned()),
    };
    let lean = match args.patch_fields {
        PatchFields::Full => None,
        PatchFields::Lean => Some(LEAN_PATCHES.to_owned()),
    };
    let is_reported =
        extraction.is_some_and(|extraction| extraction.report != ExtractionReport::Nothing);
    let host = Some(engine.provider()).filter(|host| !host.is_empty() && engine.name() != host);
    let host = host.map(|host| format!("host={host}"));
    let fault = engine.fault().map(|fault| format!("config-error={}", fault.message));
    let request_bytes = format!("{REQUEST_BYTES}{}", args.max_request_bytes);
    let extract = is_reported.then(|| EXTRACT.to_owned());
    let on = Extension::ALL.into_iter().filter(|extension| args.extensions.contains(extension));
    let on = on.map(|extension| extension.as_str().to_owned());
    let events = args.events.as_ref().map(|events| format!("{EVENTS}{events}"));
    let extensions = events.into_iter().chain(queue).chain(lean).chain(extract).chain(on);
    let names = [format!("engine={}", engine.name()), format!("model={}", engine.model())];
    let settings = names.into_iter().chain(host).chain([request_bytes]).chain(fault);
    capabilities_of_nobody(mode).into_iter().chain(settings).chain(extensions).collect()
}

/// Capabilities of a process of this mode before its engine is known.
pub(super) fn capabilities_of_nobody(mode: Mode) -> Vec<String> {
    let version = format!("server-version={}", env!("CARGO_PKG_VERSION"));
    let of_stdin: &[&str] = match mode.session_mode() {
        SessionMode::Conversation => &OF_STDIN,
        SessionMode::OneShot => &[],
    };
    let words = ALWAYS.iter().chain(of_stdin).copied().map(str::to_owned);
    words.chain([version]).collect()
}
