//! What can go wrong in a provider call, in words for people and classes for programs.

use super::address;
use super::key::NoKey;
use super::remote::Refused;
use super::retry::{RETRY_AFTER_MAX, Retry, is_passing};
use crate::engine::{ErrorClass, RunError, Stage};
use crate::support::secret::{Secret, unescaped, without_userinfo};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use complaint::{Complaint, ErrorNumber, is_out_of_credit};
use reqwest::Url;
use serde_json::Value;
use std::error::Error;
use std::time::Duration;
use transport::{TlsFault, causes, tls_fault};

mod answer;
mod complaint;
#[cfg(test)]
mod tests;
mod transport;

/// Characters of the provider's words that a message quotes.
const QUOTE_CHARS_MAX: usize = 300;

/// Characters of the provider's words that a detail holds.
const DETAIL_CHARS_MAX: usize = 2_000;

/// What helps against a server or a model that takes no schema, or not this one.
const SCHEMA_HINT: &str =
    "; if it can't take the schema of the answer, `-O structured=prompt` puts it into the prompt";

/// The status of a request with a key that is not, or no longer, valid.
const KEY_REFUSED: u16 = 401;

/// Bytes of the provider's words that are searched for secrets before they are quoted.
const QUOTED_BYTES_MAX: usize = 64 * 1024;

/// The options and variables from which an engine's settings come, as messages name them.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct SettingSources {
    pub(in crate::engine) base_url_source: &'static str,
    /// A base URL, for a message.
    pub(in crate::engine) base_url_example: &'static str,
    pub(in crate::engine) model_source: &'static str,
    pub(in crate::engine) key_source: &'static str,
}

/// A failed call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine) struct Failure {
    stage: Stage,
    pub(in crate::engine) class: ErrorClass,
    message: String,
    detail: String,
    pub(in crate::engine) retry: Retry,
}

/// Makes the failures of a call. All text that others wrote goes through [`Failures::quote`], so that
/// no failure holds a secret.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Failures {
    /// The key, and what the login in the base URL holds.
    secrets: Vec<Secret>,
    has_key: bool,
    /// Without login and query.
    base_url: String,
    /// Of the base URL.
    host: String,
    /// As in the settings.
    model: String,
    sources: SettingSources,
}

/// Which time limit ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Elapsed {
    /// No byte came within this time.
    Idle(Duration),
    /// Only keep-alive messages came within this time.
    Pings(Duration),
    /// The call was not complete within this time.
    Total(Duration),
}

impl Failure {
    fn new(class: ErrorClass, message: impl Into<String>, detail: impl Into<String>) -> Self {
        let (stage, retry) = (Stage::Run, Retry::Never);
        Self { stage, class, message: message.into(), detail: detail.into(), retry }
    }

    /// Marks the failure as one before anything was sent.
    fn at_init(self) -> Self {
        Self { stage: Stage::Init, ..self }
    }

    fn or(self, retry: Retry) -> Self {
        Self { retry, ..self }
    }

    /// The message, for people; holds no secret.
    pub(in crate::engine) fn message(&self) -> &str {
        &self.message
    }

    /// The error of the run that the call belongs to.
    pub(in crate::engine) fn into_error(self) -> RunError {
        let Self { stage, class, message, detail, retry: _ } = self;
        RunError { stage, class, message, detail }
    }
}

impl Failures {
    /// For calls with these settings.
    pub(in crate::engine) fn new(
        sources: SettingSources,
        key: Option<&Secret>,
        base_url: &str,
        model: &str,
    ) -> Self {
        let login = Url::parse(base_url.trim()).map_or(Vec::new(), |url| login(&url));
        Self {
            secrets: key.cloned().into_iter().chain(login).collect(),
            has_key: key.is_some(),
            base_url: address::shown(base_url),
            host: address::host(base_url).unwrap_or_default(),
            model: model.to_owned(),
            sources,
        }
    }

    /// Failures that hide `headers`, too, also without the word for their scheme.
    pub(in crate::engine) fn hiding<'a>(
        mut self,
        headers: impl Iterator<Item = &'a Secret>,
    ) -> Self {
        let forms = |header: &Secret| [Some(header.clone()), credentials(header)];
        self.secrets.extend(headers.flat_map(forms).flatten());
        self
    }

    /// The base URL can't be used. `why` continues a sentence that begins with "the base URL".
    pub(in crate::engine) fn bad_base_url(&self, why: &str) -> Failure {
        let SettingSources { base_url_source, base_url_example, .. } = self.sources;
        let message = format!(
            "the base URL {:?} {why}: name one like {base_url_example} with {base_url_source}",
            self.base()
        );
        Failure::new(ErrorClass::Config, message, "").at_init()
    }

    /// There is no key, and `provider` requires one.
    pub(in crate::engine) fn no_key(&self, provider: &str) -> Failure {
        let SettingSources { base_url_source, key_source, .. } = self.sources;
        let message = format!(
            "{provider} requires a key: set {key_source}; for another provider name its address with \
             {base_url_source}"
        );
        Failure::new(ErrorClass::Auth, message, "no key").at_init()
    }

    /// The key could not be got from where it is kept.
    pub(in crate::engine) fn no_key_from_source(&self, why: NoKey) -> Failure {
        let NoKey { message, detail } = why;
        Failure::new(ErrorClass::Auth, message, detail).at_init()
    }

    /// The key can't be sent.
    pub(in crate::engine) fn odd_key(&self) -> Failure {
        let SettingSources { key_source, .. } = self.sources;
        let message = format!("the key holds characters that no key can hold: check {key_source}");
        Failure::new(ErrorClass::Auth, message, "the key can't be a header").at_init()
    }

    /// What the provider sent is no list of models.
    pub(in crate::engine) fn no_list(&self) -> Failure {
        let message = format!(
            "{} answers, but not with a list of models; it may have none, or the base URL may be \
             wrong",
            self.base()
        );
        Failure::new(ErrorClass::Provider, message, "no list of models")
    }

    /// No model is named, and the provider has no default.
    pub(in crate::engine) fn no_model(&self) -> Failure {
        let SettingSources { model_source, .. } = self.sources;
        let message = format!(
            "no model is named, and {} has no default: name one with {model_source}",
            self.base()
        );
        Failure::new(ErrorClass::Config, message, "no model").at_init()
    }

    /// The model's name can't be one.
    pub(in crate::engine) fn bad_model(&self) -> Failure {
        let SettingSources { model_source, .. } = self.sources;
        let model = self.quote(&self.model, QUOTE_CHARS_MAX);
        let message = format!(
            "{model:?} can't be the name of a model, and nothing was sent: name one with \
             {model_source}"
        );
        Failure::new(ErrorClass::Config, message, "odd model").at_init()
    }

    /// The file of root certificates can't be used.
    pub(in crate::engine) fn no_roots(&self, why: &str) -> Failure {
        let why = self.quote(why, DETAIL_CHARS_MAX);
        let message = format!(
            "the root certificates can't be read ({why}): name a file that holds some in PEM with \
             SSL_CERT_FILE, or unset it"
        );
        Failure::new(ErrorClass::Config, message, why).at_init()
    }

    /// The HTTP client can't be built.
    pub(in crate::engine) fn no_client(&self, why: &dyn Error) -> Failure {
        let why = self.quote(&why.to_string(), DETAIL_CHARS_MAX);
        let message = format!(
            "the HTTP client can't be built ({why}): check the proxy variables HTTP_PROXY, \
             HTTPS_PROXY and ALL_PROXY"
        );
        Failure::new(ErrorClass::Config, message, why).at_init()
    }

    /// The provider answered with an error status. `after` is the wait that it requests.
    pub(in crate::engine) fn status(
        &self,
        status: u16,
        body: &[u8],
        after: Option<Duration>,
    ) -> Failure {
        let complaint = Complaint::from_body(body);
        let failure = self.complaint(ErrorNumber::Status(status), &complaint);
        let passing = is_passing(status) && !is_out_of_credit(status, &complaint);
        match after.or(complaint.after) {
            Some(_) | None if status == KEY_REFUSED => failure.or(Retry::OtherKey),
            Some(wait) if passing && wait > RETRY_AFTER_MAX => {
                let seconds = wait.as_secs();
                let message = format!("{}; it requests a wait of {seconds} s", failure.message);
                Failure { message, ..failure }
            }
            Some(wait) if passing => failure.or(Retry::After(wait)),
            None if passing => failure.or(Retry::Backoff),
            Some(_) | None => failure,
        }
    }

    /// The provider reports an error inside an answer that began well.
    pub(in crate::engine) fn reported(&self, error: &Value) -> Failure {
        self.reported_as(error, None)
    }

    /// The same; `status` is the HTTP status that its own word for the error stands for.
    pub(in crate::engine) fn reported_as(&self, error: &Value, status: Option<u16>) -> Failure {
        let mut complaint = Complaint::from_value(error);
        complaint.status = complaint.status.or(status);
        let number = complaint.status.map_or(ErrorNumber::Missing, ErrorNumber::Code);
        let failure = self.complaint(number, &complaint);
        match complaint.status {
            Some(status) if is_passing(status) && !is_out_of_credit(status, &complaint) => {
                failure.or(complaint.after.map_or(Retry::Backoff, Retry::After))
            }
            Some(_) | None => failure,
        }
    }

    /// The provider reports an error inside an answer, in an event that is no JSON.
    pub(in crate::engine) fn reported_text(&self, text: &[u8]) -> Failure {
        self.reported(&Value::String(String::from_utf8_lossy(text).into_owned()))
    }

    /// The provider redirects to another address.
    pub(in crate::engine) fn redirected(&self, status: u16, location: Option<&Url>) -> Failure {
        let SettingSources { base_url_source, .. } = self.sources;
        let location = location.map(address::shown_url);
        let location = location.as_deref().unwrap_or("nowhere that can be read");
        let location = self.quote(location, QUOTE_CHARS_MAX);
        let message = format!(
            "{} redirects to {location} (status {status}), and the key is not sent there \
             without your consent: if that is the right address, name it with {base_url_source}",
            self.base()
        );
        Failure::new(ErrorClass::Config, message, format!("status {status}, location {location}"))
    }

    /// The provider could not be reached, or the connection broke.
    pub(in crate::engine) fn network(&self, error: &reqwest::Error) -> Failure {
        let SettingSources { base_url_source, .. } = self.sources;
        let detail = self.quote(&causes(error), DETAIL_CHARS_MAX);
        let base = self.base();
        if error.is_connect() && error.is_timeout() {
            let message = format!(
                "connecting to {base} took too long: check your network and {base_url_source}, or raise \
                 --connect-timeout-ms"
            );
            return Failure::new(ErrorClass::Timeout, message, detail);
        }
        let tls = tls_fault(error);
        if tls == Some(TlsFault::Plain) {
            let message = format!(
                "{base} answers without TLS, as a server for plain http does: name it with http:// \
                 in place of https:// ({base_url_source})"
            );
            return Failure::new(ErrorClass::Network, message, detail);
        }
        if tls == Some(TlsFault::Other) {
            let message = format!(
                "no secure connection to {base} could be made, because of its certificate or its TLS: \
                 check {base_url_source} and the clock of this computer, and name the provider's \
                 own root certificates, if it has some, with SSL_CERT_FILE"
            );
            return Failure::new(ErrorClass::Network, message, detail);
        }
        let message = match error.is_connect() {
            true => {
                format!(
                    "{base} can't be reached: check that it runs, your network, and {base_url_source}"
                )
            }
            false => format!(
                "the connection to {base} broke: send the prompt again, and check your network if \
                 it breaks again"
            ),
        };
        Failure::new(ErrorClass::Network, message, detail).or(Retry::Backoff)
    }

    /// There is no request.
    pub(in crate::engine) fn refused(&self, why: Refused) -> Failure {
        match why {
            Refused::Unsupported(what) => {
                Failure::new(ErrorClass::Config, self.redacted(&what), "unsupported").at_init()
            }
            Refused::Unwritable(why) => {
                let message = "the request could not be written: this is a defect of this program, \
                               please report it";
                Failure::new(ErrorClass::Internal, message, why.to_string())
            }
        }
    }

    /// A word of the provider's for an event: without secrets, and of `bytes_max` bytes at most.
    pub(in crate::engine) fn shown(&self, word: &str, bytes_max: usize) -> String {
        let mut word = self.redacted(word);
        word.truncate(word.floor_char_boundary(bytes_max));
        word
    }

    /// A text of the provider's that was cut off, without secrets, including one that is cut by its end.
    pub(in crate::engine) fn broken_off(&self, text: &[u8]) -> Vec<u8> {
        let text = String::from_utf8_lossy(text).into_owned();
        let redact = |text: String, secret: &Secret| secret.redact_cut(&text);
        self.secrets.iter().fold(text, redact).into_bytes()
    }

    fn redacted(&self, text: &str) -> String {
        let redact = |text: String, secret: &Secret| secret.redact(&text);
        self.secrets.iter().fold(text.to_owned(), redact)
    }

    /// Text that the provider or the user wrote, without secrets, cut to `chars_max` characters.
    fn quote(&self, text: &str, chars_max: usize) -> String {
        let text = match text.get(..text.floor_char_boundary(QUOTED_BYTES_MAX)) {
            // The search for secrets takes time that grows with the text.
            Some(start) if start.len() < text.len() => {
                String::from_utf8_lossy(&self.broken_off(start.as_bytes())).into_owned()
            }
            Some(_) | None => self.redacted(text),
        };
        let text = without_userinfo(&text);
        match text.char_indices().nth(chars_max) {
            Some((end, _)) => format!("{}\u{2026}", &text[..end]),
            None => text,
        }
    }

    /// The host of the provider.
    pub(in crate::engine) fn host(&self) -> &str {
        &self.host
    }

    fn base(&self) -> String {
        self.quote(&self.base_url, QUOTE_CHARS_MAX)
    }

    fn malformed(&self, what: &str, detail: impl Into<String>) -> Failure {
        Failure::new(ErrorClass::MalformedStream, format!("{} {what}", self.base()), detail)
    }

    fn complaint(&self, number: ErrorNumber, complaint: &Complaint) -> Failure {
        let class = complaint.class(number.status());
        let mut message = self.headline(class, number, complaint);
        if !complaint.message.is_empty() {
            let words = self.quote(&complaint.message, QUOTE_CHARS_MAX);
            message += &format!("; the provider says: {words}");
        }
        if number.status() == Some(400) && complaint.is_about_schemas() {
            message += SCHEMA_HINT;
        }
        let status = number.status().map(|status| status.to_string());
        let codes = complaint.codes.iter().filter(|code| Some(*code) != status.as_ref());
        let codes = codes.map(String::as_str).collect::<Vec<_>>().join(" ");
        let mut detail = number.words().unwrap_or_else(|| "in the answer".into());
        for more in [&codes, &complaint.message] {
            if !more.is_empty() {
                detail += ": ";
                detail += &self.quote(more, DETAIL_CHARS_MAX);
            }
        }
        Failure::new(class, message, detail)
    }

    /// What happened, what it means and what to do.
    fn headline(&self, class: ErrorClass, number: ErrorNumber, complaint: &Complaint) -> String {
        let SettingSources { base_url_source, model_source, key_source, .. } = self.sources;
        let base = self.base();
        let status = number.status();
        let number = number.words().map_or(String::new(), |words| format!(" ({words})"));
        let model = self.quote(&self.model, QUOTE_CHARS_MAX);
        match (class, status) {
            (ErrorClass::Auth, _) if !self.has_key => {
                format!("{base} requires a key{number}: set {key_source}")
            }
            (ErrorClass::Auth, _) if model.is_empty() => {
                format!("{base} refuses the key{number}: check {key_source}")
            }
            (ErrorClass::Auth, _) => format!(
                "{base} refuses the key{number}: check {key_source}, and that the key may use model \
                 {model}"
            ),
            (ErrorClass::RateLimited, _)
                if is_out_of_credit(status.unwrap_or_default(), complaint) =>
            {
                format!(
                    "the account at {base} has no credit left{number}: check its plan and billing"
                )
            }
            (ErrorClass::RateLimited, _) => {
                format!("{base} limits the rate of requests{number}: wait a while, then try again")
            }
            (ErrorClass::ContextOverflow, _) => format!(
                "the conversation is too long for model {model}{number}: begin a new session, or \
                 choose one with a larger context with {model_source}"
            ),
            // A list of models is asked for without one.
            (_, Some(404)) if model.is_empty() => format!(
                "{base} doesn't know this address{number}: check {base_url_source}, and whether \
                 this server lists its models"
            ),
            (_, Some(404)) => format!(
                "{base} doesn't know this address or model {model}{number}: check \
                 {base_url_source}, and {model_source}"
            ),
            (_, Some(400..=499)) if model.is_empty() => {
                format!("{base} refuses the request{number}: check {base_url_source}")
            }
            (_, Some(400..=499)) if complaint.is_about_model() => {
                format!("{base} refuses the request{number}: check {model_source} (now {model})")
            }
            (_, Some(400..=499)) if complaint.message.is_empty() => format!(
                "{base} refuses the request{number} without saying why: check {model_source} (now \
                 {model}) and the settings"
            ),
            (_, Some(400..=499)) => {
                format!("{base} refuses the request{number}: change what it names, then try again")
            }
            (_, Some(_) | None) => format!("{base} failed{number}: try again later"),
        }
    }
}

/// What follows the scheme in a header as `Bearer KEY` (RFC 9110, section 11.4). A provider may repeat
/// it alone.
fn credentials(header: &Secret) -> Option<Secret> {
    Secret::new(header.expose().split_once(' ')?.1)
}

/// The secrets of the login in `url`: the password and its form in the header, or a user name
/// without a password, which is a key.
fn login(url: &Url) -> Vec<Secret> {
    let user = url.username();
    let secrets = match url.password() {
        Some(password) => {
            let token = BASE64_STANDARD.encode(unescaped(&format!("{user}:{password}")));
            [Secret::new(password), Secret::new(&token)]
        }
        None => [Secret::new(user), None],
    };
    secrets.into_iter().flatten().collect()
}
