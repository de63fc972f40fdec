//! Errors that a provider reports: a status, or an error inside a response that began with success.

use super::complaint::{Complaint, ErrorNumber};
use super::transport::login_needed;
use super::{DETAIL_CHARS_MAX, Failure, Failures, QUOTE_CHARS_MAX, SettingNames};
use crate::engine::ErrorClass;
use crate::engine::provider::retry::{RETRY_AFTER_MAX, Retry};
use crate::task::report::{QUOTATION, is_passing};
use serde_json::Value;
use std::time::Duration;

/// The advice if a server or a model accepts no schema, or not this one.
const SCHEMA_HINT: &str =
    "; if it can't take the schema of the answer, `-O structured=prompt` puts it into the prompt";

/// The advice if a model requires reasoning that the conversation doesn't have, and an empty one did not help.
const THINKING_HINT: &str = "; the reasoning of these answers is not known, as another model gave them: have the model \
    answer without thinking, with `-O 'extra_body={\"thinking\":{\"type\":\"disabled\"}}'`, or begin a new session";

/// The status of a request with a key that is not, or no longer, valid.
const KEY_REFUSED: u16 = 401;

/// The first and the last status with which a provider refuses a request. A status above may come
/// after a part of the work.
const REFUSED_FIRST: u16 = 400;
const REFUSED_LAST: u16 = 499;

/// The status with which a proxy asks for a login (RFC 9110, section 15.5.8).
const PROXY_LOGIN_NEEDED: u16 = 407;

/// The first status of a failing server, which may be a proxy.
const SERVER_FAILED_FIRST: u16 = 500;

/// Whether a server answers so to an address, or a method, that it doesn't know.
pub(super) fn is_unknown_address(status: u16) -> bool {
    matches!(status, 404 | 405 | 501)
}

/// `failure`, after which the request may be sent again, after the `wait` that the provider requests. If that is longer
/// than a call waits, it is said instead.
fn after_wait(failure: Failure, wait: Option<Duration>) -> Failure {
    match wait {
        Some(wait) if wait > RETRY_AFTER_MAX => {
            let message =
                format!("{}; it requests a wait of {} s", failure.message, wait.as_secs());
            Failure { message, ..failure }
        }
        Some(wait) => failure.or(Retry::After(wait)),
        None => failure.or(Retry::Backoff),
    }
}

impl Failure {
    /// The failure where the provider says itself whether the request `should_retry`, after the wait `after`: it knows
    /// more than its status says.
    pub(in crate::engine) fn advised(
        self,
        should_retry: Option<bool>,
        after: Option<Duration>,
    ) -> Self {
        let is_retried = matches!(self.retry, Retry::Backoff | Retry::After(_));
        let is_final = self.class == ErrorClass::Provider && self.retry == Retry::Never;
        match should_retry {
            Some(false) if is_retried => self.or(Retry::Never),
            Some(true) if is_final => after_wait(self, after),
            Some(_) | None => self,
        }
    }
}

impl Failures {
    /// The provider answered with an error status. `after` is the wait that it requests.
    pub(in crate::engine) fn status(
        &self,
        status: u16,
        body: &[u8],
        after: Option<Duration>,
    ) -> Failure {
        let complaint = Complaint::from_body(body);
        let failure =
            self.by_way_of_proxy(status, self.complaint(ErrorNumber::Status(status), &complaint));
        let failure = match status {
            REFUSED_FIRST..=REFUSED_LAST => failure.at_refusal(),
            _ => failure,
        };
        let suspects = complaint.suspects(status);
        if status == KEY_REFUSED {
            failure.or(Retry::OtherKey)
        } else if suspects.parts.are_tool_images() {
            // Whatever the status means otherwise.
            failure.or(Retry::Without(suspects))
        } else if complaint.is_passing(status) || complaint.is_by_chance() {
            after_wait(failure, after.or(complaint.after))
        } else if failure.class == ErrorClass::Provider && !suspects.parts.is_empty() {
            failure.or(Retry::Without(suspects))
        } else {
            failure
        }
    }

    /// `failure`, which may be the proxy's: what goes to a provider without TLS, a proxy may answer.
    fn by_way_of_proxy(&self, status: u16, failure: Failure) -> Failure {
        let is_plain = self.base_url.starts_with("http://");
        let may_be_of_proxy = status == PROXY_LOGIN_NEEDED || status >= SERVER_FAILED_FIRST;
        // One of SOCKS forwards bytes, and answers no request.
        let answers = |proxy: &String| is_plain && !proxy.starts_with("socks");
        let Some(proxy) = may_be_of_proxy.then(|| self.proxy()).flatten().filter(answers) else {
            return failure;
        };
        let proxy = self.quote(&proxy, QUOTE_CHARS_MAX);
        if status == PROXY_LOGIN_NEEDED {
            let message = login_needed(&proxy, &self.base());
            return Failure { class: ErrorClass::Config, message, ..failure };
        }
        let message = format!("{}; the request went through the proxy {proxy}", failure.message);
        Failure { message, ..failure }
    }

    /// The provider reports an error inside an answer that began well.
    pub(in crate::engine) fn reported(&self, error: &Value) -> Failure {
        self.reported_as(error, None)
    }

    /// Like `reported`; `status` is the HTTP status that the provider's own word for the error stands for.
    pub(in crate::engine) fn reported_as(&self, error: &Value, status: Option<u16>) -> Failure {
        let mut complaint = Complaint::from_value(error);
        complaint.status = complaint.status.or(status);
        let number = complaint.status.map_or(ErrorNumber::Missing, ErrorNumber::Code);
        let failure = self.complaint(number, &complaint);
        let is_passing = complaint.status.is_some_and(|status| complaint.is_passing(status));
        match is_passing || complaint.is_by_chance() {
            true => after_wait(failure, complaint.after),
            false => failure,
        }
    }

    /// The provider reports an error inside an answer, in an event that is no JSON.
    pub(in crate::engine) fn reported_text(&self, text: &[u8]) -> Failure {
        self.reported(&Value::String(String::from_utf8_lossy(text).into_owned()))
    }

    fn complaint(&self, number: ErrorNumber, complaint: &Complaint) -> Failure {
        let class = complaint.class(number.status());
        let mut message = self.headline(class, number, complaint);
        if number.status().is_some_and(is_unknown_address) && !complaint.is_about_model() {
            message += &self.path_hint();
        }
        if !complaint.message.is_empty() {
            let words = self.quote(&complaint.message, QUOTE_CHARS_MAX);
            message += &format!("{QUOTATION}{words}");
        }
        if number.status() == Some(400) && self.has_schema && complaint.is_about_schemas() {
            message += SCHEMA_HINT;
        }
        if number.status() == Some(400) && complaint.wants_reasoning() {
            message += THINKING_HINT;
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

    /// The event, its meaning for the person and the remedy.
    fn headline(&self, class: ErrorClass, number: ErrorNumber, complaint: &Complaint) -> String {
        let SettingNames {
            base_url: base_url_source, model: model_source, key: key_source, ..
        } = self.names;
        let base = self.base();
        let status = number.status();
        let number = number.words().map_or(String::new(), |words| format!(" ({words})"));
        let model = self.quote(&self.model, QUOTE_CHARS_MAX);
        match (class, status) {
            (ErrorClass::Auth, _) if !self.has_key => {
                format!("{base} requires a key{number}: set {key_source}")
            }
            (ErrorClass::Auth, _) if model.is_empty() => {
                format!("{base} refuses the key{number}: check {}", self.key_place())
            }
            (ErrorClass::Auth, _) => format!(
                "{base} refuses the key{number}: check {}, and that the key may use model {model}",
                self.key_place()
            ),
            (ErrorClass::RateLimited, _) if complaint.is_out_of_credit(status) => {
                format!(
                    "the account at {base} has no credit left{number}: check its plan and billing"
                )
            }
            (ErrorClass::RateLimited, _) if complaint.is_out_of_quota(status) => format!(
                "the quota of the day at {base} is used up{number}, or this key has none for model \
                 {model}: try again tomorrow, or choose another model with {model_source}"
            ),
            (ErrorClass::RateLimited, _) => {
                format!("{base} limits the rate of requests{number}: wait a while, then try again")
            }
            (ErrorClass::ContextOverflow, _) if complaint.exceeds_rate_alone(status) => format!(
                "the request alone has more tokens than {base} lets model {model} have in a minute\
                 {number}, so that waiting does not help: begin a new session, send less, or choose a \
                 model with a higher limit with {model_source}"
            ),
            (ErrorClass::ContextOverflow, _) => format!(
                "the conversation is too long for model {model}{number}: begin a new session, or \
                 choose one with a larger context with {model_source}"
            ),
            (_, Some(status @ REFUSED_FIRST..=REFUSED_LAST)) => {
                self.refusal(status, &number, complaint)
            }
            (_, Some(status)) if !is_passing(status) => {
                format!("{base} can't do what it was asked for{number}: check {base_url_source}")
            }
            (_, Some(_) | None) => format!("{base} failed{number}: try again later"),
        }
    }

    /// The headline of a request that the provider refuses with `status`; `number` has it in words.
    fn refusal(&self, status: u16, number: &str, complaint: &Complaint) -> String {
        let SettingNames { base_url: base_url_source, model: model_source, .. } = self.names;
        let (base, model) = (self.base(), self.quote(&self.model, QUOTE_CHARS_MAX));
        match status {
            // A list of models is asked for without one.
            404 if model.is_empty() => format!(
                "{base} doesn't know this address{number}: check {base_url_source}, and whether \
                 this server lists its models"
            ),
            404 => format!(
                "{base} doesn't know this address or model {model}{number}: check \
                 {base_url_source}, and {model_source}"
            ),
            408 => format!("{base} did not get the request in time{number}: try again later"),
            409 => {
                format!("{base} reports a conflict with another request{number}: try again later")
            }
            _ if model.is_empty() => {
                format!("{base} refuses the request{number}: check {base_url_source}")
            }
            _ if complaint.is_by_chance() => format!(
                "{base} could not read what the model wrote{number}: send the prompt again, or choose \
                 another model with {model_source}"
            ),
            _ if complaint.is_about_answer_limit() => format!(
                "{base} refuses the request{number}: model {model} takes no `max_tokens` as large as \
                 this; set a smaller one, as with `-O max_tokens=1000`"
            ),
            _ if complaint.is_about_model() && !complaint.is_forbidden() => {
                format!("{base} refuses the request{number}: check {model_source} (now {model})")
            }
            _ if complaint.message.is_empty() => format!(
                "{base} refuses the request{number} without saying why: check {model_source} (now \
                 {model}) and the settings"
            ),
            _ => {
                format!("{base} refuses the request{number}: change what it names, then try again")
            }
        }
    }
}
