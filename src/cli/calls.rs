//! Options that are settings of every provider call.

use super::foreign::settings::TypedSettings;
use super::texts::not_blank;
use crate::engine::CallSettings;
use crate::yaml;
use anyhow::{Result, anyhow};
use clap::Args;
use serde_json::{Map, Value};

/// Settings of every provider call.
#[derive(Args, Clone, Debug, Default)]
pub struct CallArgs {
    /// How random the choice of words is, from 0 to 2
    #[arg(long, env = "DUOLOGUE_TEMPERATURE", value_name = "N", value_parser = not_blank, allow_negative_numbers = true)]
    pub temperature: Option<String>,

    /// The share of likely words that are chosen from, from 0 to 1
    #[arg(long, env = "DUOLOGUE_TOP_P", value_name = "N", value_parser = not_blank, allow_negative_numbers = true)]
    pub top_p: Option<String>,

    /// Most tokens of an answer
    #[arg(long, env = "DUOLOGUE_MAX_TOKENS", value_name = "N", value_parser = not_blank, allow_negative_numbers = true)]
    pub max_tokens: Option<String>,

    /// A text that ends the answer. May be repeated
    #[arg(long, env = "DUOLOGUE_STOP", value_name = "TEXT")]
    pub stop: Vec<String>,

    /// Number that makes answers repeatable, as far as the provider can
    #[arg(
        long,
        alias = "inference-seed",
        env = "DUOLOGUE_SEED",
        value_name = "N",
        value_parser = not_blank,
        allow_negative_numbers = true
    )]
    pub seed: Option<String>,

    /// How much the model reasons, in the provider's words: low, medium, high …
    #[arg(
        long,
        alias = "inference-reasoning-effort",
        env = "DUOLOGUE_REASONING_EFFORT",
        value_name = "WORD",
        value_parser = not_blank
    )]
    pub reasoning_effort: Option<String>,

    /// Most tokens that the model reasons with
    #[arg(
        long,
        alias = "inference-thinking-budget",
        env = "DUOLOGUE_REASONING_BUDGET",
        value_name = "N",
        value_parser = not_blank,
        allow_negative_numbers = true
    )]
    pub reasoning_budget: Option<String>,

    /// Summary of the model's reasoning that the provider is asked for: auto, none, or another word of
    /// the provider
    #[arg(long, env = "DUOLOGUE_REASONING_SUMMARY", value_name = "WORD", value_parser = not_blank)]
    pub reasoning_summary: Option<String>,

    /// Members for the body of every request, as a JSON object; they replace those of the same name
    #[arg(long, env = "DUOLOGUE_EXTRA_BODY", value_name = "JSON", hide_env_values = true)]
    pub extra_body: Option<String>,

    /// Header for every request, as in 'X-Team: blue'. May be repeated
    #[arg(long, env = "DUOLOGUE_HEADER", value_name = "NAME: VALUE", hide_env_values = true)]
    pub header: Vec<String>,

    /// Set any of these as NAME=VALUE, as in top_p=0.5; wins over the option of that name. May be
    /// repeated
    #[arg(short = 'O', long, value_name = "NAME=VALUE")]
    pub option: Vec<String>,

    /// Settings as Pinocchio takes them.
    #[command(flatten)]
    pub foreign: TypedSettings,

    /// The settings of a command file, where no option sets them.
    #[arg(skip)]
    pub of_file: Vec<(String, Value)>,

    /// Ids of the options that were typed, and so win over the command file.
    #[arg(skip)]
    pub typed: Vec<String>,
}

/// The options with one value, by their ids, which are the names of the settings.
type Named<'a> = [(&'static str, Option<&'a String>); 7];

impl CallArgs {
    /// What the options mean: variables, the command file, typed options, and `-O`, the later of
    /// which win.
    ///
    /// # Errors
    /// If a value is wrong. The message has no value of a header.
    pub(crate) fn settings(&self) -> Result<CallSettings> {
        let mut settings = CallSettings::default();
        self.add_options(&mut settings, |id| !self.is_typed(id))?;
        for (name, value) in &self.of_file {
            let mut of_file = CallSettings::default();
            of_file.set(name, value).map_err(|why| anyhow!("the command file: {why}"))?;
            settings = settings.overlay(&of_file);
        }
        self.add_options(&mut settings, |id| self.is_typed(id))?;
        let mut stops = Vec::new();
        for pair in &self.option {
            let (name, text) = pair
                .split_once('=')
                .ok_or_else(|| anyhow!("-O is written as NAME=VALUE, as in -O top_p=0.5"))?;
            let mut typed = CallSettings::default();
            set(&mut typed, name.trim(), text).map_err(|why| anyhow!("-O {name}: {why}"))?;
            // As with --stop, each adds one.
            if let Some(more) = typed.stop.take() {
                stops.extend(more);
                typed.stop = Some(stops.clone());
            }
            settings = settings.overlay(&typed);
        }
        Ok(settings)
    }

    /// Names of the settings that were typed.
    pub(crate) fn typed_names(&self) -> Vec<String> {
        let pairs = self.option.iter().filter_map(|pair| pair.split_once('='));
        let names = pairs.map(|(name, _)| name.trim().to_owned());
        self.typed.iter().cloned().chain(names).collect()
    }

    fn is_typed(&self, id: &str) -> bool {
        self.typed.iter().any(|typed| typed == id)
    }

    fn named(&self) -> Named<'_> {
        [
            ("temperature", self.temperature.as_ref()),
            ("top_p", self.top_p.as_ref()),
            ("max_tokens", self.max_tokens.as_ref()),
            ("seed", self.seed.as_ref()),
            ("reasoning_effort", self.reasoning_effort.as_ref()),
            ("reasoning_budget", self.reasoning_budget.as_ref()),
            ("reasoning_summary", self.reasoning_summary.as_ref()),
        ]
    }

    /// Adds the options of which `wanted` holds.
    fn add_options(
        &self,
        settings: &mut CallSettings,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<()> {
        let wrong = |id: &str, why| anyhow!("--{}: {why}", id.replace('_', "-"));
        for (id, text) in self.named().into_iter().filter(|(id, _)| wanted(id)) {
            if let Some(text) = text {
                set(settings, id, text).map_err(|why| wrong(id, why))?;
            }
        }
        if wanted("stop") && !self.stop.is_empty() {
            let texts = self.stop.iter().map(|text| Value::from(text.as_str())).collect();
            settings.set("stop", &texts).map_err(|why| wrong("stop", why))?;
        }
        if let Some(text) = self.extra_body.as_ref().filter(|_| wanted("extra_body")) {
            let body = serde_json::from_str(text);
            let body: Value = body.map_err(|_| {
                anyhow!("--extra-body is not JSON; write an object, as '{{\"top_k\": 4}}'")
            })?;
            settings.set("extra_body", &body).map_err(|why| wrong("extra_body", why))?;
        }
        if wanted("header") && !self.header.is_empty() {
            let headers = headers(&self.header)?;
            settings.set("extra_headers", &headers).map_err(|_| unusable_header())?;
        }
        Ok(())
    }
}

fn headers(lines: &[String]) -> Result<Value> {
    let header = |line: &String| {
        let (name, value) = line.split_once(':').ok_or_else(unusable_header)?;
        Ok((name.trim().to_owned(), Value::from(value.trim())))
    };
    Ok(Value::Object(lines.iter().map(header).collect::<Result<Map<_, _>>>()?))
}

/// Not with the header, which may be a key.
fn unusable_header() -> anyhow::Error {
    anyhow!("--header is written as 'NAME: VALUE', with characters that a header can have")
}

/// Sets `name` to the value that `text` is in YAML, or to the text itself where only that is right. A number is
/// decimal: in YAML leading zeros make it octal, which nobody means who types `0100`.
fn set(settings: &mut CallSettings, name: &str, text: &str) -> Result<(), String> {
    let decimal = text.trim().parse::<i64>().ok();
    if let Some(number) = decimal.filter(|_| CallSettings::is_number(name)) {
        return settings.set(name, &Value::from(number));
    }
    let value = yaml::Node::parse(text).map(|node| node.json());
    let value = value.unwrap_or_else(|_| Value::from(text));
    let set = settings.set(name, &value);
    if set.is_ok() || value.is_object() || value.is_array() {
        return set;
    }
    settings.set(name, &Value::from(text)).or(set)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::FromArgMatches;
    use serde_json::json;

    fn args(words: &[&str]) -> CallArgs {
        let command = CallArgs::augment_args(clap::Command::new("test").no_binary_name(true));
        let matches = command.try_get_matches_from(words).expect("right options");
        CallArgs::from_arg_matches(&matches).expect("options")
    }

    #[test]
    fn options_are_settings() {
        let words = [
            "--temperature",
            "0.5",
            "--top-p",
            "1",
            "--max-tokens",
            "100",
            "--stop",
            "END",
            "--stop",
            "a: b",
            "--seed",
            "-7",
            "--reasoning-effort",
            "off",
            "--reasoning-budget",
            "1024",
            "--reasoning-summary",
            "auto",
            "--extra-body",
            r#"{"a": {"b": 1}}"#,
            "--header",
            "X-Team: blue:green",
        ];
        let settings = args(&words).settings().expect("settings");
        let mut expected = CallSettings::default();
        for (name, value) in [
            ("temperature", json!(0.5)),
            ("top_p", json!(1)),
            ("max_tokens", json!(100)),
            ("stop", json!(["END", "a: b"])),
            ("seed", json!(-7)),
            ("reasoning_effort", json!("off")),
            ("reasoning_budget", json!(1024)),
            ("reasoning_summary", json!("auto")),
            ("extra_body", json!({ "a": { "b": 1 } })),
            ("extra_headers", json!({ "X-Team": "blue:green" })),
        ] {
            expected.set(name, &value).expect("a setting");
        }
        assert_eq!(settings, expected);
        let options = [
            "temperature=0.5",
            "top-p=1",
            "maxTokens=100",
            "stop=[END, 'a: b']",
            "seed=-7",
            "reasoning_effort=off",
            "reasoning-budget=1024",
            "reasoning_summary=auto",
            "extra_body={a: {b: 1}}",
            "extra_headers={X-Team: 'blue:green'}",
        ];
        let words: Vec<_> = options.iter().flat_map(|option| ["-O", option]).collect();
        assert_eq!(args(&words).settings().expect("settings"), expected);
    }

    #[test]
    fn digits_behind_a_zero_are_decimal() {
        let words = ["--max-tokens", "0100", "--seed", "-010", "--reasoning-budget", "0008"];
        let settings = args(&words).settings().expect("settings");
        let read = (settings.max_tokens, settings.seed, settings.reasoning_budget);
        assert_eq!(read, (Some(100), Some(-10), Some(8)));
        let words = ["-O", "maxTokens= 0100", "-O", "temperature=01", "-O", "seed=0x10"];
        let settings = args(&words).settings().expect("settings");
        let read = (settings.max_tokens, settings.temperature, settings.seed);
        assert_eq!(read, (Some(100), Some(1.0), Some(16)));
        // It has too many digits, and is not read in another way then.
        let wrong = args(&["--max-tokens", "010000000000"]).settings().expect_err("too many");
        assert!(wrong.to_string().contains("max_tokens must be"), "{wrong}");
        // A text is what was typed.
        let settings = args(&["-O", "stop=a", "-O", "stop=[b, c]"]).settings().expect("texts");
        assert_eq!(settings.stop.expect("texts"), ["a", "b", "c"]);
        let settings = args(&["-O", "stop=0100", "--reasoning-effort", "010"]).settings();
        let settings = settings.expect("settings");
        assert_eq!(settings.stop, Some(vec!["0100".to_owned()]));
        assert_eq!(settings.reasoning_effort.as_deref(), Some("010"));
    }

    #[test]
    fn later_ones_win() {
        let mut args = args(&["--temperature", "0.1", "--seed", "1", "-O", "seed=2"]);
        args.of_file =
            vec![("temperature".to_owned(), json!(0.2)), ("top_p".to_owned(), json!(0.3))];
        let settings = args.settings().expect("settings");
        let read = (settings.temperature, settings.top_p, settings.seed);
        assert_eq!(read, (Some(0.2), Some(0.3), Some(2)));
        args.typed = vec!["temperature".to_owned()];
        assert_eq!(args.settings().expect("settings").temperature, Some(0.1));
    }

    #[test]
    fn a_wrong_value_names_the_option_and_shows_no_header() {
        let check = |words: &[&str], expected: &str| {
            let error = args(words).settings().expect_err("wrong").to_string();
            assert!(error.contains(expected) && !error.contains("s3cret"), "{error}");
        };
        check(&["--temperature", "warm"], "--temperature: temperature must be a number");
        check(&["--max-tokens", "-1"], "--max-tokens: max_tokens must be");
        check(
            &["--extra-body", "{"],
            "--extra-body is not JSON; write an object, as '{\"top_k\": 4}'",
        );
        check(&["--header", "s3cret"], "--header is written as");
        check(&["--header", "a b: s3cret"], "--header is written as");
        check(&["-O", "seed"], "-O is written as NAME=VALUE");
        check(&["-O", "sed=1"], "there is no setting \"sed\"");
        check(&["-O", "extra_headers={a b: s3cret}"], "-O extra_headers: ");
    }
}
