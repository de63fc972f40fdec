//! Options about answers: what they must match, and what they cost.

use super::numbers::whole;
use crate::conversation::usage::Cost;
use crate::engine::ResponseSchema;
use crate::extract::{SCHEMA_BYTES_MAX, Schema};
use crate::protocol::json;
use crate::session::prices::PriceList;
use crate::support::files::read_named;
use crate::yaml;
use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueHint};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of a price list.
const PRICES_BYTES_MAX: usize = 1024 * 1024;

/// Most repairs that can be asked for: each is another call of the provider.
const REPAIRS_MAX: u64 = 10;

/// One of these is in every schema that says anything of a value. (`type` is also in a response format of OpenAI, where
/// it is `json_schema`.)
const KEYWORDS: [&str; 9] =
    ["$ref", "$defs", "allOf", "anyOf", "const", "enum", "items", "oneOf", "properties"];

/// Longest name of a schema that providers take, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Options about answers.
#[derive(Args, Clone, Debug, Default)]
pub struct AnswerOptions {
    /// Ask again, up to this many times, for a document that does not match its schema; lines of JSON Lines are not
    /// asked for again
    #[arg(long, env = "DUOLOGUE_REPAIR", value_name = "N", default_value_t = 0, value_parser = whole::<u32>(0..=REPAIRS_MAX))]
    pub repair: u32,

    /// Report costs by the prices in this YAML or JSON file, a currency and models with the prices of a
    /// million tokens, in place of the list prices of well-known models that come with the program
    #[arg(long, env = "DUOLOGUE_PRICES", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub prices: Option<PathBuf>,

    /// Ask the model no more where a conversation would cost more than this, in the currency of the prices
    #[arg(long, env = "DUOLOGUE_BUDGET", value_name = "AMOUNT", value_parser = amount)]
    pub budget: Option<Cost>,
}

/// An amount of money, as in 1.50.
fn amount(text: &str) -> Result<Cost, String> {
    Cost::read(text).ok_or_else(|| {
        "it is not an amount, such as 1.50, with up to 6 digits after the point".to_owned()
    })
}

impl AnswerOptions {
    /// The prices in the file that is named, or else those that come with the program.
    ///
    /// # Errors
    /// If the file can't be used.
    pub(crate) fn prices(&self) -> Result<PriceList> {
        let Some(path) = &self.prices else { return Ok(PriceList::BuiltIn) };
        let load = || {
            let text = text(path, PRICES_BYTES_MAX)?;
            yaml::deserialize(&text).map_err(|error| anyhow!("{error}"))
        };
        let prices = load().with_context(|| format!("--prices: {}", path.display()))?;
        Ok(PriceList::Own(Arc::new(prices)))
    }
}

/// A schema that answers must match, for us and for the provider.
#[derive(Clone, Debug)]
pub(crate) struct AnswerSchema {
    /// The schema that answers are checked against.
    pub(crate) compiled: Schema,
    /// The schema for the provider; `None` if it is no object.
    pub(crate) for_provider: Option<Arc<ResponseSchema>>,
}

impl AnswerSchema {
    /// The schema `schema` of the command `name`.
    ///
    /// # Errors
    /// If it is no schema.
    pub(crate) fn new(name: &str, schema: &Value) -> Result<Self> {
        // Every answer would match it.
        if let Some(member) = wrapping(schema) {
            bail!(
                "it is a format for the answers of a provider, which has the schema under `{member}`; give that alone"
            );
        }
        let compiled = Schema::compile(schema)?;
        let members = schema.as_object().cloned();
        let for_provider =
            members.map(|schema| Arc::new(ResponseSchema { name: wire_name(name), schema }));
        Ok(Self { compiled, for_provider })
    }

    /// The schema in the file that `--schema` names, as YAML or JSON.
    ///
    /// # Errors
    /// If the file can't be read, or holds no schema.
    pub(crate) fn load(path: &Path) -> Result<Self> {
        let load = || {
            let schema = schema(&text(path, SCHEMA_BYTES_MAX)?)?;
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            Self::new(&name, &schema)
        };
        load().with_context(|| format!("--schema: {}", path.display()))
    }
}

/// A name in the form that providers take.
fn wire_name(name: &str) -> String {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let letters = name.chars().map(|c| if is_fine(c) { c } else { '_' });
    match letters.take(NAME_BYTES_MAX).collect::<String>() {
        name if name.is_empty() => "answer".to_owned(),
        name => name,
    }
}

/// The text of a file, or of a pipe.
fn text(path: &Path, bytes_max: usize) -> Result<String> {
    let (text, _) = read_named(path, bytes_max)
        .map_err(|error| anyhow!("it can't be read: {error}; name a file of YAML or JSON"))?;
    Ok(text)
}

/// A schema as JSON, or else as YAML, whose limits are not those of a schema.
fn schema(text: &str) -> Result<Value> {
    let json_text = yaml::without_mark(text);
    match serde_json::from_str(json_text) {
        Ok(schema) => {
            // Of a key that is there twice, a constraint would be lost.
            json::well_formed(json_text).map_err(|error| anyhow!("{error}"))?;
            Ok(schema)
        }
        Err(_) => yaml::deserialize(text).map_err(|error| anyhow!("{error}")),
    }
}

/// The member that has the schema in what programs write around it for a provider.
fn wrapping(schema: &Value) -> Option<&'static str> {
    let has = |name: &str| schema.get(name).is_some_and(Value::is_object);
    let is_schema = KEYWORDS.iter().any(|keyword| schema.get(keyword).is_some());
    ["schema", "json_schema"].into_iter().find(|name| has(name)).filter(|_| !is_schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_that_providers_take() {
        assert_eq!(wire_name("two words.json"), "two_words_json");
        assert_eq!(wire_name("é"), "_");
        assert_eq!(wire_name(""), "answer");
        assert_eq!(wire_name(&"x".repeat(100)).len(), NAME_BYTES_MAX);
    }
}
