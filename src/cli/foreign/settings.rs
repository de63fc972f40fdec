//! Settings of calls as Pinocchio names them, where they are not just other names of options.

use crate::cli::EngineName;
use crate::cli::calls::CallArgs;
use crate::cli::texts::not_blank;
use crate::command_file::separated;
use crate::engine::CallSettings;
use anyhow::{Result, anyhow};
use clap::{Args, ValueEnum};
use serde_json::Value;
use std::collections::BTreeMap;

/// Settings of calls. Of one that is typed under two names, `inference-` wins over `ai-`.
#[derive(Args, Clone, Debug, Default)]
pub struct TypedSettings {
    /// As --temperature
    #[arg(long, hide = true, value_name = "N", value_parser = not_blank, allow_negative_numbers = true)]
    pub inference_temperature: Option<String>,
    /// As --temperature
    #[arg(long, hide = true, value_name = "N", value_parser = not_blank, allow_negative_numbers = true)]
    pub ai_temperature: Option<String>,
    /// As --top-p
    #[arg(long, hide = true, value_name = "N", value_parser = not_blank, allow_negative_numbers = true)]
    pub inference_top_p: Option<String>,
    /// As --top-p
    #[arg(long, hide = true, value_name = "N", value_parser = not_blank, allow_negative_numbers = true)]
    pub ai_top_p: Option<String>,
    /// As --max-tokens
    #[arg(long, hide = true, value_name = "N", value_parser = not_blank, allow_negative_numbers = true)]
    pub inference_max_response_tokens: Option<String>,
    /// As --max-tokens
    #[arg(long, hide = true, value_name = "N", value_parser = not_blank, allow_negative_numbers = true)]
    pub ai_max_response_tokens: Option<String>,
    /// As --stop, several separated by commas
    #[arg(long, hide = true, value_name = "TEXTS", value_parser = texts)]
    pub inference_stop: Vec<Texts>,
    /// As --stop, several separated by commas
    #[arg(long, hide = true, value_name = "TEXTS", value_parser = texts)]
    pub ai_stop: Vec<Texts>,
    /// As --reasoning-effort, for the engine responses alone
    #[arg(long, hide = true, value_name = "WORD", value_parser = not_blank)]
    pub openai_reasoning_effort: Option<String>,
    /// As --reasoning-effort, for the engine openai alone
    #[arg(long, hide = true, value_name = "WORD", value_parser = not_blank)]
    pub openai_chat_reasoning_effort: Option<String>,
    /// As --reasoning-effort, for the engine gemini alone
    #[arg(long, hide = true, value_name = "WORD", value_parser = not_blank)]
    pub gemini_thinking_level: Option<String>,
    /// As --reasoning-budget, for the engine gemini alone
    #[arg(long, hide = true, value_name = "N", value_parser = not_blank, allow_negative_numbers = true)]
    pub gemini_thinking_budget: Option<String>,
}

/// An option for one engine: its name, the engine, the setting, and the value.
type OfEngine<'a> = (&'static str, EngineName, &'static str, &'a str);

impl TypedSettings {
    /// The options for one engine alone that were typed.
    fn of_engines(&self) -> impl Iterator<Item = OfEngine<'_>> {
        use EngineName::{Gemini, Openai, Responses};
        let (effort, budget) = ("reasoning_effort", "reasoning_budget");
        let all = [
            ("--openai-reasoning-effort", Responses, effort, &self.openai_reasoning_effort),
            ("--openai-chat-reasoning-effort", Openai, effort, &self.openai_chat_reasoning_effort),
            ("--gemini-thinking-level", Gemini, effort, &self.gemini_thinking_level),
            ("--gemini-thinking-budget", Gemini, budget, &self.gemini_thinking_budget),
        ];
        let typed = all.into_iter();
        typed
            .filter_map(|(option, of, setting, text)| Some((option, of, setting, text.as_deref()?)))
    }

    /// The options that are for another engine than `engine`, each with its own.
    pub(crate) fn unused(
        &self,
        engine: EngineName,
    ) -> impl Iterator<Item = (&'static str, EngineName)> {
        let others = self.of_engines().filter(move |(_, of, ..)| *of != engine);
        others.map(|(option, of, ..)| (option, of))
    }
}

impl CallArgs {
    /// Sets options whose settings were typed under the names of Pinocchio. Their own names win.
    pub(crate) fn take_foreign(&mut self) {
        let Self { temperature, top_p, max_tokens, stop, foreign, typed, .. } = self;
        let of_pinocchio = [
            ("temperature", temperature, [&foreign.inference_temperature, &foreign.ai_temperature]),
            ("top_p", top_p, [&foreign.inference_top_p, &foreign.ai_top_p]),
            (
                "max_tokens",
                max_tokens,
                [&foreign.inference_max_response_tokens, &foreign.ai_max_response_tokens],
            ),
        ];
        for (id, own, names) in of_pinocchio {
            let value = names.into_iter().flatten().next();
            if let Some(value) = value.filter(|_| !typed.iter().any(|typed| typed == id)) {
                *own = Some(value.clone());
                typed.push(id.to_owned());
            }
        }
        let texts = [&foreign.inference_stop, &foreign.ai_stop];
        let texts = texts.into_iter().find(|texts| !texts.is_empty());
        if let Some(texts) = texts.filter(|_| !typed.iter().any(|typed| typed == "stop")) {
            *stop = texts.iter().flat_map(|texts| texts.0.clone()).collect();
            typed.push("stop".to_owned());
        }
    }

    /// Typed options for one engine alone, by the engine's name. An option for all engines wins.
    ///
    /// # Errors
    /// If a value is wrong.
    pub(crate) fn settings_of_engines(&self) -> Result<BTreeMap<String, CallSettings>> {
        let general = self.typed_names();
        let is_general = |name| general.iter().any(|typed| CallSettings::is_same_name(typed, name));
        let mut all = BTreeMap::<String, CallSettings>::new();
        for (option, engine, name, text) in self.foreign.of_engines() {
            let Some(engine) = engine.to_possible_value().filter(|_| !is_general(name)) else {
                continue;
            };
            let value = text.parse::<i64>().map_or_else(|_| Value::from(text), Value::from);
            let settings = all.entry(engine.get_name().to_owned()).or_default();
            settings.set(name, &value).map_err(|why| anyhow!("{option}: {why}"))?;
        }
        Ok(all)
    }
}

/// Texts that were typed as one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Texts(Vec<String>);

fn texts(typed: &str) -> Result<Texts, String> {
    separated(typed).map(Texts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::FromArgMatches;
    use serde_json::json;

    /// The options `words`, all of them typed.
    fn args(words: &[&str]) -> CallArgs {
        let command = CallArgs::augment_args(clap::Command::new("test").no_binary_name(true));
        let matches = command.try_get_matches_from(words).expect("right options");
        let mut args = CallArgs::from_arg_matches(&matches).expect("options");
        args.typed = matches.ids().map(ToString::to_string).collect();
        args.take_foreign();
        args
    }

    fn settings(values: &[(&str, Value)]) -> CallSettings {
        let mut settings = CallSettings::default();
        for (name, value) in values {
            settings.set(name, value).expect("a setting");
        }
        settings
    }

    #[test]
    fn a_setting_has_several_names_of_which_one_wins() {
        let check = |words: &[&str], expected: &[(&str, Value)]| {
            let read = args(words).settings().expect("settings");
            assert_eq!(read, settings(expected), "{words:?}");
        };
        check(&["--ai-temperature", "0.1"], &[("temperature", json!(0.1))]);
        let both = ["--inference-temperature", "0.2", "--ai-temperature", "0.1"];
        check(&both, &[("temperature", json!(0.2))]);
        check(&[&both[..], &["--temperature", "0.3"]].concat(), &[("temperature", json!(0.3))]);
        check(&[&both[..], &["-O", "temperature=0.4"]].concat(), &[("temperature", json!(0.4))]);
        let words = ["--ai-max-response-tokens", "9", "--inference-top-p", "0.5"];
        check(&words, &[("max_tokens", json!(9)), ("top_p", json!(0.5))]);
    }

    #[test]
    fn texts_that_end_an_answer_are_separated_by_commas() {
        let check = |words: &[&str], expected: &[&str]| {
            let read = args(words).settings().expect("settings");
            assert_eq!(read, settings(&[("stop", json!(expected))]), "{words:?}");
        };
        check(&["--ai-stop", "a,b", "--ai-stop", "c"], &["a", "b", "c"]);
        check(&["--ai-stop", "\"a,b\",\"x \"\"y\"\"\""], &["a,b", "x \"y\""]);
        check(&["--ai-stop", "a", "--inference-stop", "b,c"], &["b", "c"]);
        // The option of this program takes one text.
        check(&["--ai-stop", "a", "--stop", "b,c"], &["b,c"]);
    }

    #[test]
    fn a_setting_of_one_engine_is_for_that_engine() {
        let words = [
            "--openai-reasoning-effort",
            "low",
            "--openai-chat-reasoning-effort",
            "none",
            "--gemini-thinking-level",
            "HIGH",
            "--gemini-thinking-budget",
            "777",
        ];
        let typed = args(&words);
        assert_eq!(typed.settings().expect("settings"), CallSettings::default());
        let of_engines = typed.settings_of_engines().expect("settings");
        let of_gemini = [("reasoning_effort", json!("HIGH")), ("reasoning_budget", json!(777))];
        let expected = [
            ("gemini", settings(&of_gemini)),
            ("openai", settings(&[("reasoning_effort", json!("none"))])),
            ("responses", settings(&[("reasoning_effort", json!("low"))])),
        ];
        let expected: BTreeMap<_, _> =
            expected.into_iter().map(|(name, settings)| (name.to_owned(), settings)).collect();
        assert_eq!(of_engines, expected);
        let unused: Vec<_> =
            typed.foreign.unused(EngineName::Gemini).map(|(name, _)| name).collect();
        assert_eq!(unused, ["--openai-reasoning-effort", "--openai-chat-reasoning-effort"]);
        for general in [&["--inference-reasoning-effort", "high"], &["-O", "reasoningEffort=high"]]
        {
            let typed = args(&[&words[..], general].concat());
            let of_engines = typed.settings_of_engines().expect("settings");
            let of_gemini = settings(&[("reasoning_budget", json!(777))]);
            assert_eq!(of_engines, BTreeMap::from([("gemini".to_owned(), of_gemini)]));
        }
        let wrong = args(&["--gemini-thinking-budget", "much"]).settings_of_engines();
        let wrong = wrong.expect_err("no number").to_string();
        assert!(wrong.starts_with("--gemini-thinking-budget: "), "{wrong}");
    }
}
