//! Settings of an engine for a remote provider, whatever its interface.

use super::key::KeySource;
use super::roots::TlsRoots;
use crate::support::secret::Secret;
use std::time::Duration;

/// Time limit for connecting.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Time limit for the first byte, and for the time between two parts of an answer; messages that
/// only keep the connection alive don't count. A model may reason for long before it answers.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// Time limit for the whole call, its retries included.
pub(crate) const TOTAL_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// How often a request is sent again.
pub(crate) const RETRIES: u32 = 2;

/// Settings of an engine. Nothing in them is checked before the first run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address before the path of the interface, or all of it: `http` or `https`. May be
    /// left out for the provider whose interface it is.
    pub base_url: Option<String>,
    /// The model's name, in the provider's spelling; may be left out where `base_url` may.
    pub model: Option<String>,
    /// The key; may be left out for any other provider than the one whose interface it is.
    pub key: Option<Secret>,
    /// Where the key is got when the first call needs it; has precedence over `key`.
    pub key_source: Option<KeySource>,
    /// Where a person finds the key, for errors about it; may be left out where `names` say it.
    pub key_place: Option<String>,
    /// The root certificates that are trusted.
    pub tls_roots: TlsRoots,
    /// Time limit for connecting.
    pub connect_timeout: Duration,
    /// Time limit for the first byte, and for the time between two parts of an answer.
    pub idle_timeout: Duration,
    /// Time limit for the whole call, its retries included. None of the three limits counts the
    /// time that the reader of the events takes.
    pub total_timeout: Duration,
    /// How often a failed request is sent again. A request is not sent again once part of its
    /// answer has been sent to the sink.
    pub retries: u32,
    /// The names of these settings in errors.
    pub names: &'static SettingNames,
}

/// The names of an engine's settings where people set them, for errors. A front end with
/// options names these; by default the settings have the names of their fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingNames {
    /// The address of the provider.
    pub base_url: &'static str,
    /// The model.
    pub model: &'static str,
    /// The key.
    pub key: &'static str,
    /// The program that prints the key.
    pub key_command: &'static str,
    /// The file that holds the key.
    pub key_file: &'static str,
    /// The time limit for connecting.
    pub connect_timeout: &'static str,
    /// The time limit between two parts of an answer.
    pub idle_timeout: &'static str,
    /// The time limit for the whole call.
    pub total_timeout: &'static str,
    /// How the models of the provider are listed, after "name one with --model"; may be blank.
    pub list_of_models: &'static str,
    /// How another engine is chosen, after "choose another engine"; may be blank.
    pub other_engine: &'static str,
    /// The file with the answer of the built-in engine.
    pub echo_answer: &'static str,
    /// The file with the script of the built-in engine.
    pub echo_script: &'static str,
}

impl SettingNames {
    /// The names of the fields.
    pub const FIELDS: Self = Self {
        base_url: "the setting base_url",
        model: "the setting model",
        key: "the setting key",
        key_command: "the setting key_source",
        key_file: "the setting key_source",
        connect_timeout: "the setting connect_timeout",
        idle_timeout: "the setting idle_timeout",
        total_timeout: "the setting total_timeout",
        list_of_models: "",
        other_engine: "",
        echo_answer: "the setting answer",
        echo_script: "the setting script",
    };
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            base_url: None,
            model: None,
            key: None,
            key_source: None,
            key_place: None,
            tls_roots: TlsRoots::default(),
            connect_timeout: CONNECT_TIMEOUT,
            idle_timeout: IDLE_TIMEOUT,
            total_timeout: TOTAL_TIMEOUT,
            retries: RETRIES,
            names: &SettingNames::FIELDS,
        }
    }
}
