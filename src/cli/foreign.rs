//! Options of Pinocchio and of its libraries: those that are taken, and those that are something else
//! here, or nothing.

pub(crate) mod provider;
pub(super) mod settings;
pub(super) mod switches;

/// What to write in place of an option of Pinocchio that is not taken; `None` if it has no such option.
pub(super) fn equivalent(wrong: &str) -> Option<&'static str> {
    let name = wrong.strip_prefix("--")?;
    let known = |(names, _): &&(&[&str], _)| names.contains(&name);
    EQUIVALENTS.iter().find(known).map(|(_, tip)| *tip)
}

/// Whether the hidden option `known` is to be suggested for the typed `wrong`.
pub(super) fn is_suggested(known: &str, wrong: &str) -> bool {
    let start = STARTS.iter().find(|start| known.starts_with(**start));
    match start {
        Some(start) => wrong.starts_with(start),
        None => !UNSEEN.contains(&known),
    }
}

/// What to do in place of an option that names a proxy.
pub(super) const PROXY_TIP: &str = "set the variable HTTPS_PROXY, or HTTP_PROXY";

/// Options that are taken and not in help.
const UNSEEN: [&str; 5] =
    ["--config-file", "--log-format", "--log-to-stdout", "--timeout", "--with-caller"];

/// The prefix of more such names.
const STARTS: [&str; 6] =
    ["--ai-", "--claude-", "--gemini-", "--inference-", "--ollama-", "--openai-"];

/// Names of options, and their replacements.
const EQUIVALENTS: [(&[&str], &str); 31] = [
    (
        &[
            "ai-structured-output-mode",
            "ai-structured-output-name",
            "ai-structured-output-description",
            "ai-structured-output-schema",
            "ai-structured-output-strict",
            "ai-structured-output-require-valid",
        ],
        "write `schema:` in the command file, or `exec --schema FILE`; -O structured=native or =prompt \
         says who makes the answer fit it",
    ),
    (
        &["ai-cache-type", "ai-cache-max-size", "ai-cache-max-entries", "ai-cache-directory"],
        "leave it out: answers are not cached here",
    ),
    (&["organization"], "use --header 'OpenAI-Organization: ID'"),
    (&["user-agent"], "use --header 'User-Agent: TEXT'"),
    (&["proxy-url"], PROXY_TIP),
    (
        &["proxy-from-environment"],
        "leave it out: the variables HTTPS_PROXY, HTTP_PROXY and NO_PROXY always count",
    ),
    (&["claude-top-k"], r#"use --extra-body '{"top_k": N}'"#),
    (&["claude-user-id"], r#"use --extra-body '{"metadata": {"user_id": "ID"}}'"#),
    (&["gemini-api-version"], "write the version at the end of --base-url, as in …/v1beta"),
    (&["gemini-include-thoughts"], "leave it out: reasoning is shown where the model sends it"),
    (&["openai-n"], "leave it out: one answer is asked for"),
    (&["openai-presence-penalty"], r#"use --extra-body '{"presence_penalty": N}'"#),
    (&["openai-frequency-penalty"], r#"use --extra-body '{"frequency_penalty": N}'"#),
    (&["openai-logit-bias"], r#"use --extra-body '{"logit_bias": {"TOKEN": N}}'"#),
    (
        &["openai-thinking-type", "inference-thinking-type"],
        r#"use --extra-body '{"thinking": {"type": "enabled"}}'"#,
    ),
    (&["openai-parallel-tool-calls"], r#"use --extra-body '{"parallel_tool_calls": true}'"#),
    (
        &["openai-reasoning-summary", "inference-reasoning-summary"],
        "use --reasoning-summary WORD, as in --reasoning-summary auto",
    ),
    (
        &["openai-include-reasoning-encrypted"],
        "leave it out: reasoning is asked for in a form that can be sent back",
    ),
    (&["openai-stream-include-usage"], "leave it out: the counts of tokens are always asked for"),
    (
        &[
            "embeddings-type",
            "embeddings-engine",
            "embeddings-dimensions",
            "embeddings-cache-type",
            "embeddings-cache-max-size",
            "embeddings-cache-max-entries",
            "embeddings-cache-directory",
            "rerank-type",
            "rerank-engine",
            "rerank-max-request-bytes",
            "rerank-max-response-bytes",
        ],
        "leave it out: there are no embeddings and no reranking here",
    ),
    (
        &["message-file", "append-message-file"],
        "use --history FILE, with a message as JSON on each line",
    ),
    (
        &["print-inference-settings"],
        "`duologue doctor` prints what is configured, and `duologue profiles show NAME` a profile",
    ),
    (
        &["turns-backend", "timeline-backend"],
        "leave it out: the value of --store, --turns-db, --turns-dsn, --timeline-db or --timeline-dsn \
         says what kind of store it is",
    ),
    (&["autosave"], "use --store FILE, which stores the conversation while it is held"),
    (&["with-metadata", "full-output"], "--output json prints counts, costs and times as `meta`"),
    (
        &["create-command", "create-alias", "create-cliopatra", "print-yaml"],
        "copy the command file, and change it",
    ),
    (
        &["print-parsed-fields", "print-parsed-parameters"],
        "--print-prompt prints what would be sent to the model",
    ),
    (&["print-schema", "long-help"], "--help lists the flags of the command file"),
    (
        &["load-fields-from-file", "load-parameters-from-json"],
        "type the values as flags of the command file, or write them as their `default`",
    ),
    (&["profile-file"], "use --profile-registries FILE"),
    (
        &["log-config", "log-area", "areas", "strict-log-areas", "logstash-host"],
        "use --log-level and --log-file",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::calls::CallArgs;
    use clap::Args;
    use std::collections::BTreeSet;

    #[test]
    fn each_option_has_one_equivalent() {
        let names: Vec<_> = EQUIVALENTS.iter().flat_map(|(names, _)| *names).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        for name in names {
            assert!(equivalent(&format!("--{name}")).is_some(), "{name}");
        }
        // A member of a body takes the place of all that a setting has put into it.
        let settings = CallArgs::augment_args(clap::Command::new("test"));
        for (names, tip) in EQUIVALENTS.iter().filter(|(_, tip)| tip.contains("--extra-body")) {
            let member = tip.split('"').nth(1).expect("a member");
            let is_set = |arg: &clap::Arg| arg.get_id().as_str().starts_with(member);
            assert!(!settings.get_arguments().any(is_set), "{names:?}: {tip}");
        }
        assert_eq!((equivalent("autosave"), equivalent("--nothing")), (None, None));
    }
}
