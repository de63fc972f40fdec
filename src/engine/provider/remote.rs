//! The engine of a remote provider, over its [`Interface`]: settings, connection, and one call.

mod listing;

use super::address;
use super::call::ProviderCall;
use super::clock::Clock;
use super::connection::Connection;
use super::failure::{Failure, Failures};
use super::interface::{Interface, Refused};
use super::key::{Key, KeySource};
use super::optional::{OptionalParts, Suspects};
use super::post::{Post, Target};
use super::response::ResponseReader;
use super::retry::Retry;
use super::schema;
use super::settings::Settings;
use crate::conversation::tool::ToolSpec;
use crate::conversation::transcript::Message;
use crate::engine::{CallEnd, CallSettings, CallSpec, EngineEvent, ErrorClass, RunError, Sink};
use crate::support::lock;
use crate::support::log_targets::words_of_provider;
use crate::support::secret::Secret;
use crate::task::settings::merge;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Names a file of root certificates, here as in other programs that use TLS.
const ROOTS_VARIABLE: &str = "SSL_CERT_FILE";

/// Tools that are left out with a warning; further ones are left out without.
const WARNED_TOOLS_MAX: usize = 1_024;

/// Declares an engine of that name over an interface: its public type, and the type that stands for the
/// interface.
macro_rules! remote_engine {
    ($engine:ident over $interface:ident, named $name:ident) => {
        /// The engine. Clones share one client and its connection.
        #[derive(Clone, Debug)]
        pub struct $engine {
            pub(super) remote: $crate::engine::provider::remote::Remote<$interface>,
        }

        #[derive(Clone, Debug)]
        pub(super) struct $interface;

        impl $engine {
            /// An engine with `settings`, and with the root certificates that the environment names.
            /// Reads no file.
            pub fn new(settings: Settings) -> Self {
                Self { remote: $crate::engine::provider::remote::Remote::new(settings) }
            }
        }

        impl $crate::engine::Engine for $engine {
            fn name(&self) -> &str {
                $name
            }

            fn model(&self) -> &str {
                self.remote.model()
            }

            fn provider(&self) -> String {
                self.remote.host()
            }

            fn fault(&self) -> Option<$crate::engine::RunError> {
                self.remote.fault()
            }

            fn start(
                &self,
                spec: $crate::engine::CallSpec,
                sink: $crate::engine::Sink,
            ) -> $crate::engine::Running {
                Box::pin(self.remote.clone().answer(spec, sink))
            }

            fn models<'a>(
                &'a self,
                settings: &'a $crate::engine::CallSettings,
            ) -> $crate::engine::Listing<'a> {
                Box::pin(self.remote.models(settings))
            }
        }
    };
}

pub(in crate::engine) use remote_engine;

/// The engine. Clones share one client and its connection.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Remote<I> {
    shared: Arc<Shared>,
    interface: PhantomData<I>,
}

/// The parameters of a call, beside the key.
#[derive(Clone, Copy)]
struct Attempt<'a> {
    spec: &'a CallSpec,
    model: &'a str,
    sink: &'a Sink,
    /// The call has not begun before, with another key.
    is_first: bool,
}

#[derive(Debug)]
struct Shared {
    settings: Settings,
    key: Key,
    connection: Connection,
    /// Settings of calls that were warned of, because the provider has no place for them.
    warned: Mutex<BTreeSet<&'static str>>,
    /// Tools that were left out with a warning.
    left_out: Mutex<BTreeSet<String>>,
}

impl<I: Interface> Remote<I> {
    /// An engine with `settings`, and with the root certificates that the environment names.
    /// Reads no file.
    pub(in crate::engine) fn new(settings: Settings) -> Self {
        let roots_file = std::env::var_os(ROOTS_VARIABLE).filter(|path| !path.is_empty());
        Self::with_roots(settings, roots_file.map(PathBuf::from))
    }

    pub(in crate::engine) fn with_roots(settings: Settings, roots_file: Option<PathBuf>) -> Self {
        let connection = Connection::new(settings.connect_timeout, settings.tls_roots, roots_file);
        let key = Key::new(settings.key.clone(), settings.key_source.clone(), settings.names);
        let shared = Shared {
            settings,
            key,
            connection,
            warned: Mutex::default(),
            left_out: Mutex::default(),
        };
        Self { shared: Arc::new(shared), interface: PhantomData }
    }

    /// The model that answers; empty if one is required and none is named.
    pub(in crate::engine) fn model(&self) -> &str {
        match self.shared.settings.model.as_deref().map(str::trim) {
            Some(model) if !model.is_empty() => model,
            Some(_) | None if self.is_own() => I::MODEL,
            Some(_) | None => "",
        }
    }

    /// The provider's host, with its port if that is not the scheme's default; empty if the address
    /// can't be parsed.
    pub(in crate::engine) fn host(&self) -> String {
        let host = address::host(self.base_url()).unwrap_or_default();
        // A host is in lower case, and so is a key that was put in its place by mistake.
        let key = self.shared.key.known();
        let key = key.and_then(|key| Secret::new(&key.expose().to_ascii_lowercase()));
        key.map_or(host.clone(), |key| key.redact(&host))
    }

    /// Answers the last turn of the transcript. Dropped, it closes the connection.
    pub(in crate::engine) async fn answer(self, mut spec: CallSpec, sink: Sink) -> CallEnd {
        let host = address::host(self.base_url()).unwrap_or_default();
        spec.transcript.leave_out_data_of_others(&host);
        self.leave_out_tools(&mut spec);
        let Err(error) = self.run(&spec, &sink).await else { return CallEnd::Finished };
        if error.class == ErrorClass::ContextOverflow && spec.asks_for_context {
            let model = spec.model.as_deref().unwrap_or_else(|| self.model());
            // On the heap, as hardly any call asks for it and each would have room for it.
            let asking = Box::pin(self.context_tokens(model, &spec.settings));
            if let Some(tokens) = asking.await {
                sink.send(EngineEvent::ContextTokens(tokens)).await;
            }
        }
        CallEnd::Failed(error)
    }

    /// The client has been built.
    #[cfg(test)]
    pub(in crate::engine) fn has_client(&self) -> bool {
        self.shared.connection.client.get().is_some()
    }

    fn base_url(&self) -> &str {
        self.shared.settings.base_url.as_deref().unwrap_or(I::BASE_URL)
    }

    /// The provider whose interface it is answers itself.
    fn is_own(&self) -> bool {
        // The address is compared for a model without a name: the name depends on the answer.
        self.base_url() == I::BASE_URL
            || I::url(self.base_url(), "", true)
                .is_ok_and(|url| I::url(I::BASE_URL, "", true) == Ok(url))
    }

    async fn run(&self, spec: &CallSpec, sink: &Sink) -> Result<(), RunError> {
        let Shared { settings, key, .. } = &*self.shared;
        let model = spec.model.as_deref().unwrap_or_else(|| self.model());
        // Before the key is got: a person may be asked for it.
        let unkeyed = self.failures(key.known().as_ref(), model, &spec.settings);
        self.url(model, &unkeyed).map_err(Failure::into_error)?;
        let got = key.get().await.map_err(|why| unkeyed.no_key_from_source(why).into_error())?;
        self.warn_of_ignored(model, &spec.settings);
        let mut clock = Clock::new(settings.total_timeout);
        let attempt = Attempt { spec, model, sink, is_first: true };
        let Err(failure) = self.call(&attempt, got.as_ref(), &mut clock).await else {
            return Ok(());
        };
        // Nothing has come yet: that status is the answer to the request itself.
        let (Retry::OtherKey, Some(refused)) = (failure.retry, got) else {
            return Err(failure.into_error());
        };
        let Some(other) = clock.apart(key.renewed(&refused)).await else {
            return Err(failure.into_error());
        };
        tracing::info!("the provider refuses the key; the request is sent again with a new one");
        let attempt = Attempt { is_first: false, ..attempt };
        self.call(&attempt, Some(&other), &mut clock).await.map_err(Failure::into_error)
    }

    /// Makes the call with `key`.
    async fn call(
        &self,
        attempt: &Attempt<'_>,
        key: Option<&Secret>,
        clock: &mut Clock,
    ) -> Result<(), Failure> {
        let Shared { settings, connection, .. } = &*self.shared;
        let Attempt { spec, model, sink, is_first } = *attempt;
        let host = self.host();
        let refused = OptionalParts::refused_by(&host, model);
        // Of the request as it is sent: one without a schema is not refused for it.
        let has_schema = schema::native(&refused.left_out_of(spec)).is_some();
        let failures = self.failures(key, model, &spec.settings).with_schema(has_schema);
        let failures = failures.with_tools(spec.tools.iter().map(|tool| tool.name.as_str()));
        let url = self.url(model, &failures)?;
        let headers = headers::<I>(key, &url, &spec.settings, &failures)?;
        let has_secret = key.is_some() || !spec.settings.extra_headers.is_empty();
        let client = connection.client(&url, has_secret, &failures).await?;
        let body = |parts| self.body(model, spec, parts).map_err(|why| failures.refused(why));
        let body_first = body(refused)?;
        if is_first {
            clock.apart(sink.send(EngineEvent::CallStarted)).await;
        }
        let target = Target { url, headers };
        let post = Post { client, target, body: body_first, idle_timeout: settings.idle_timeout };
        let follows_results = follows_good_results(&spec.transcript.messages());
        let new_reader = |end| {
            let mut reader = I::reader(&failures, end, &spec.tools);
            reader.response_mut().set_follows_results(follows_results);
            reader
        };
        let mut call = ProviderCall::new(settings, post, &failures, sink, new_reader);
        let Err(failure) = call.run(clock).await else {
            Suspects::forget_guesses(&host, model);
            return Ok(());
        };
        let Retry::Without(suspects) = failure.retry else { return Err(failure) };
        // The server's message is shown once, with the error if there is one.
        let why = words_of_provider(failure.message());
        tracing::debug!(why, "a part of the request may be refused");
        let mut without = refused;
        for suspects in suspects.within(spec).steps() {
            without = without.and(suspects.parts);
            let body_without = body(without)?;
            if body_without == call.post.body {
                continue;
            }
            tracing::warn!(
                "the request is sent again without a part that {host} may refuse: {}",
                suspects.parts.words(I::OPTIONAL_MEMBERS)
            );
            call.post.body = body_without;
            let result = call.run(clock).await;
            if call.is_taken() {
                suspects.remember(&host, model);
                return result;
            }
            let is_refused_again =
                result.is_err_and(|failure| matches!(failure.retry, Retry::Without(_)));
            if !is_refused_again {
                break;
            }
        }
        // The parts were not the reason.
        Err(failure)
    }

    /// The failures of calls of `model` with `key`, which hide the headers of `settings`, too.
    fn failures(&self, key: Option<&Secret>, model: &str, settings: &CallSettings) -> Failures {
        let settings_of_engine = &self.shared.settings;
        let failures = Failures::new(settings_of_engine.names, key, self.base_url(), model);
        let failures = failures.of_key_in(settings_of_engine.key_place.clone());
        let failures = failures.of_urls_like(I::BASE_URL_EXAMPLE);
        failures.hiding(settings.extra_headers.iter())
    }

    /// Why no call can ever be made with these settings, if that is so.
    pub(in crate::engine) fn fault(&self) -> Option<RunError> {
        let (model, settings) = (self.model(), CallSettings::default());
        let key = self.shared.key.known();
        let failures = self.failures(key.as_ref(), model, &settings);
        let checked = self.url(model, &failures);
        let checked =
            checked.and_then(|url| headers::<I>(key.as_ref(), &url, &settings, &failures));
        let fault = checked.err().or_else(|| self.key_source_fault(&failures));
        fault.map(Failure::into_error)
    }

    /// A key file that is not there, or a variable that is not set. A program is looked for when it is run.
    fn key_source_fault(&self, failures: &Failures) -> Option<Failure> {
        match self.shared.settings.key_source.as_ref()? {
            source @ (KeySource::File(_) | KeySource::Variable(_)) => source
                .look(self.shared.settings.names)
                .err()
                .map(|why| failures.no_key_from_source(why)),
            KeySource::Command(_) => None,
        }
    }

    /// Where requests go, if the settings are complete.
    fn url(&self, model: &str, failures: &Failures) -> Result<Url, Failure> {
        let url = I::url(self.base_url(), model, !self.shared.key.is_configured());
        let url = url.map_err(|why| failures.bad_base_url(&why, I::BASE_URL_EXAMPLE))?;
        self.ensure_key(failures)?;
        if model.is_empty() {
            return Err(failures.no_model());
        }
        if !I::can_be_model(model) {
            return Err(failures.bad_model());
        }
        Ok(url)
    }

    fn ensure_key(&self, failures: &Failures) -> Result<(), Failure> {
        let is_missing = I::REQUIRES_KEY && !self.shared.key.is_configured() && self.is_own();
        if is_missing { Err(failures.no_key(I::PROVIDER)) } else { Ok(()) }
    }

    /// The request with the additions of the settings, and without the parts `without`.
    fn body(
        &self,
        model: &str,
        spec: &CallSpec,
        without: OptionalParts,
    ) -> Result<Vec<u8>, Refused> {
        let spec = &without.left_out_of(spec);
        let body = match self.is_own() {
            true => I::body(model, spec)?,
            false => {
                let host = address::host(self.base_url()).unwrap_or_default();
                I::body_for_others(model, spec, &host)?
            }
        };
        let body = match without.unsaid_reasoning {
            true => I::with_reasoning_said(body).map_err(Refused::Unwritable)?,
            false => body,
        };
        let body = self.with_extra(body, spec)?;
        without.left_out_of_body(body, I::OPTIONAL_MEMBERS).map_err(Refused::Unwritable)
    }

    fn with_extra(&self, body: Vec<u8>, spec: &CallSpec) -> Result<Vec<u8>, Refused> {
        let extra = &spec.settings.extra_body;
        if extra.is_empty() {
            return Ok(body);
        }
        let mut members: Map<String, Value> =
            serde_json::from_slice(&body).map_err(Refused::Unwritable)?;
        merge(&mut members, extra);
        serde_json::to_vec(&members).map_err(Refused::Unwritable)
    }

    /// Leaves out the tools for which the provider would refuse the whole request, with a warning of each, once.
    fn leave_out_tools(&self, spec: &mut CallSpec) {
        let fault = |tool: &ToolSpec| Some((tool.name.clone(), I::tool_fault(tool)?));
        let faults: Vec<_> = spec.tools.iter().filter_map(fault).collect();
        if faults.is_empty() {
            return;
        }
        let has_fault = |tool: &ToolSpec| faults.iter().any(|(name, _)| *name == tool.name);
        spec.tools = spec.tools.iter().filter(|tool| !has_fault(tool)).cloned().collect();
        let mut left_out = lock(&self.shared.left_out);
        for (name, why) in faults {
            if left_out.len() < WARNED_TOOLS_MAX && left_out.insert(name.clone()) {
                tracing::warn!(
                    "the tool {name} is not offered to the model: {} would refuse every request with it, \
                     as {why}, or choose another engine",
                    I::PROVIDER
                );
            }
        }
    }

    /// Warns once of each setting that the provider has no place for: the call goes on without it.
    fn warn_of_ignored(&self, model: &str, settings: &CallSettings) {
        let mut warned = lock(&self.shared.warned);
        for name in I::ignored_settings(model, settings) {
            if warned.insert(name) {
                tracing::warn!(
                    "the setting {name} is ignored: the interface of {} has no place for it, or the \
                     model refuses it; extra_body can add what a server takes besides",
                    I::PROVIDER
                );
            }
        }
    }
}

/// Whether a conversation ends with the results of tools of which one at least did what it was called for: only then
/// the model may have nothing to add.
fn follows_good_results(messages: &[Message<'_>]) -> bool {
    let mut are_good = messages.iter().rev().map_while(|message| match message {
        Message::Tool { is_error, .. } => Some(!is_error),
        Message::System(_) | Message::User { .. } | Message::Assistant { .. } => None,
    });
    are_good.any(|is_good| is_good)
}

/// The headers of a request to `url` with `key`, and those of the settings.
fn headers<I: Interface>(
    key: Option<&Secret>,
    url: &Url,
    settings: &CallSettings,
    failures: &Failures,
) -> Result<HeaderMap, Failure> {
    let mut headers = I::headers_at(key, url).ok_or_else(|| failures.odd_key())?;
    add_headers(&mut headers, settings);
    Ok(headers)
}

/// Adds the headers of the settings, which have been checked, in the place of those of the same name.
fn add_headers(headers: &mut HeaderMap, settings: &CallSettings) {
    for (name, value) in &settings.extra_headers {
        let name = HeaderName::try_from(name.as_str());
        if let (Ok(name), Ok(mut value)) = (name, HeaderValue::try_from(value.expose())) {
            value.set_sensitive(true);
            headers.insert(name, value);
        }
    }
}
