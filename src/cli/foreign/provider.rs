//! Keys and addresses of providers as Pinocchio names them.

use crate::cli::EngineName;
use crate::cli::texts::not_blank;
use crate::support::secret::Secret;
use clap::Args;

/// Keys of providers. They are taken so that a command line that was written for Pinocchio works.
#[derive(Args, Clone, Debug, Default)]
pub struct TypedKeys {
    /// As the variable OPENAI_API_KEY
    #[arg(long, hide = true, value_name = "KEY", value_parser = key)]
    pub openai_api_key: Option<Secret>,

    /// As the variable ANTHROPIC_API_KEY
    #[arg(long, hide = true, value_name = "KEY", value_parser = key)]
    pub claude_api_key: Option<Secret>,

    /// As the variable GEMINI_API_KEY
    #[arg(long, hide = true, value_name = "KEY", value_parser = key)]
    pub gemini_api_key: Option<Secret>,
}

fn key(text: &str) -> Result<Secret, String> {
    Secret::new(text).ok_or_else(|| "it is empty; leave the option out".to_owned())
}

impl TypedKeys {
    /// Those that were typed: the option, and the variable that it stands for.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, &'static str, &Secret)> {
        let all = [
            ("--openai-api-key", "OPENAI_API_KEY", &self.openai_api_key),
            ("--claude-api-key", "ANTHROPIC_API_KEY", &self.claude_api_key),
            ("--gemini-api-key", "GEMINI_API_KEY", &self.gemini_api_key),
        ];
        all.into_iter().filter_map(|(option, name, key)| Some((option, name, key.as_ref()?)))
    }

    /// The option that stands for one of these variables, and its key.
    pub(crate) fn of(&self, variables: &[&str]) -> Option<(&'static str, &Secret)> {
        let mut all = self.all();
        all.find(|(_, name, _)| variables.contains(name)).map(|(option, _, key)| (option, key))
    }
}

/// Addresses of providers, each for its own provider alone.
#[derive(Args, Clone, Debug, Default)]
pub struct TypedAddresses {
    /// Of the engines openai and responses
    #[arg(long, hide = true, value_name = "URL", value_parser = not_blank)]
    pub openai_base_url: Option<String>,

    /// Of the engine anthropic
    #[arg(long, hide = true, value_name = "URL", value_parser = not_blank)]
    pub claude_base_url: Option<String>,

    /// Of the engine gemini
    #[arg(long, hide = true, value_name = "URL", value_parser = not_blank)]
    pub gemini_base_url: Option<String>,

    /// Of the engine ollama
    #[arg(long, hide = true, value_name = "URL", value_parser = not_blank)]
    pub ollama_base_url: Option<String>,
}

impl TypedAddresses {
    fn of_engines(&self) -> [(&'static str, EngineName, &Option<String>); 4] {
        [
            ("--openai-base-url", EngineName::Openai, &self.openai_base_url),
            ("--claude-base-url", EngineName::Anthropic, &self.claude_base_url),
            ("--gemini-base-url", EngineName::Gemini, &self.gemini_base_url),
            ("--ollama-base-url", EngineName::Ollama, &self.ollama_base_url),
        ]
    }

    /// Those that were typed: the option, the engine that it is for, and the address.
    fn all(&self) -> impl Iterator<Item = (&'static str, EngineName, &str)> {
        let typed = self.of_engines().into_iter();
        let typed = typed.filter_map(|(option, of, url)| Some((option, of, url.as_deref()?)));
        typed.filter(|(_, _, url)| !url.trim().is_empty())
    }

    /// The option with the address for `engine`, and that address.
    pub(crate) fn of(&self, engine: EngineName) -> Option<(&'static str, &str)> {
        self.all().find(|(_, of, _)| *of == provider(engine)).map(|(option, _, url)| (option, url))
    }

    /// The engine of the first of them.
    pub(crate) fn engine(&self) -> Option<EngineName> {
        self.all().next().map(|(_, engine, _)| engine)
    }

    /// The options that are not for `engine`.
    pub(crate) fn unused(&self, engine: EngineName) -> impl Iterator<Item = &'static str> {
        let others = self.all().filter(move |(_, of, _)| *of != provider(engine));
        others.map(|(option, _, _)| option)
    }
}

/// The engine that stands for the provider of `engine`.
fn provider(engine: EngineName) -> EngineName {
    match engine {
        EngineName::Openai | EngineName::Responses => EngineName::Openai,
        EngineName::Echo | EngineName::Anthropic | EngineName::Gemini | EngineName::Ollama => {
            engine
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_stands_for_its_variable_and_is_not_shown() {
        let typed = TypedKeys { claude_api_key: Secret::new("s3cret"), ..TypedKeys::default() };
        let found = typed.of(&["ANTHROPIC_API_KEY"]).map(|(option, key)| (option, key.expose()));
        assert_eq!(found, Some(("--claude-api-key", "s3cret")));
        assert!(typed.of(&["OPENAI_API_KEY"]).is_none());
        assert!(!format!("{typed:?}").contains("s3cret"));
    }

    #[test]
    fn an_address_is_for_its_own_provider() {
        let typed = TypedAddresses {
            claude_base_url: Some("http://c".to_owned()),
            openai_base_url: Some("http://o".to_owned()),
            gemini_base_url: Some(" ".to_owned()),
            ..TypedAddresses::default()
        };
        for (engine, expected) in [
            (EngineName::Openai, Some("http://o")),
            (EngineName::Responses, Some("http://o")),
            (EngineName::Anthropic, Some("http://c")),
            (EngineName::Gemini, None),
            (EngineName::Ollama, None),
            (EngineName::Echo, None),
        ] {
            assert_eq!(typed.of(engine).map(|(_, url)| url), expected, "{engine:?}");
        }
        assert_eq!(typed.engine(), Some(EngineName::Openai));
        let unused: Vec<_> = typed.unused(EngineName::Responses).collect();
        assert_eq!(unused, ["--claude-base-url"]);
        assert_eq!(TypedAddresses::default().engine(), None);
    }
}
