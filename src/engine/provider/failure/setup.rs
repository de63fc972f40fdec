//! Failures before a request is sent: unusable settings, keys and certificates.

use super::{DETAIL_CHARS_MAX, Failure, Failures, QUOTE_CHARS_MAX, SettingNames};
use crate::engine::ErrorClass;
use crate::engine::provider::interface::Refused;
use crate::engine::provider::key::NoKey;
use std::error::Error;

impl Failures {
    /// The base URL can't be used. `why` continues a sentence that begins with "the base URL".
    pub(in crate::engine) fn bad_base_url(&self, why: &str, example: &str) -> Failure {
        let SettingNames { base_url: base_url_source, .. } = self.names;
        let message = format!(
            "the base URL {:?} {why}: name one like {example} with {base_url_source}",
            self.base()
        );
        Failure::new(ErrorClass::Config, message, "").at_init()
    }

    /// There is no key, and `provider` requires one.
    pub(in crate::engine) fn no_key(&self, provider: &str) -> Failure {
        let SettingNames { base_url: base_url_source, key: key_source, .. } = self.names;
        let message = format!(
            "{provider} requires a key: set {key_source}; for another provider name its address with \
             {base_url_source}"
        );
        Failure::new(ErrorClass::Auth, message, "no key").at_init()
    }

    /// The program or file with the key failed.
    pub(in crate::engine) fn no_key_from_source(&self, why: NoKey) -> Failure {
        let NoKey { message, detail } = why;
        Failure::new(ErrorClass::Auth, message, detail).at_init()
    }

    /// The key can't be sent.
    pub(in crate::engine) fn odd_key(&self) -> Failure {
        let place = self.key_place();
        let message = format!("the key holds characters that no key can hold: check {place}");
        Failure::new(ErrorClass::Auth, message, "the key can't be a header").at_init()
    }

    /// No model is named, and the provider has no default.
    pub(in crate::engine) fn no_model(&self) -> Failure {
        let SettingNames { model: model_source, .. } = self.names;
        let message = format!(
            "no model is named, and {} has no default: name one with {model_source}{}",
            self.base(),
            self.names.list_of_models
        );
        Failure::new(ErrorClass::Config, message, "no model").at_init()
    }

    /// The model's name can't be one.
    pub(in crate::engine) fn bad_model(&self) -> Failure {
        let SettingNames { model: model_source, .. } = self.names;
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

    /// There is no request.
    pub(in crate::engine) fn refused(&self, why: Refused) -> Failure {
        match why {
            Refused::Unsupported(what) => {
                Failure::new(ErrorClass::Config, self.redacted(&what), "unsupported").at_init()
            }
            Refused::OtherEngine(what) => {
                let what = self.redacted(&what) + self.names.other_engine;
                Failure::new(ErrorClass::Config, what, "unsupported").at_init()
            }
            Refused::Unwritable(why) => {
                let message = "the request could not be written: this is a defect of this program, \
                               please report it";
                Failure::new(ErrorClass::Internal, message, why.to_string())
            }
        }
    }
}
