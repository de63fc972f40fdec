//! What a client has chosen and what a process answered with, as messages of `duologue.store.v1`, and back.
//! Pure.

use crate::conversation::choices::{
    Choices, ChosenModel, Origin, OriginAddress, OriginKey, OriginTools,
};
use crate::protocol::proto::store::{StoredChoices, StoredModel, StoredOrigin};
use serde_json::Value;

/// What the client has chosen.
pub(in crate::store) fn choices_message(choices: &Choices) -> StoredChoices {
    let Choices { model, tools, origin } = choices;
    let model = model.clone().map(|it| StoredModel {
        profile: it.profile,
        engine: it.engine,
        model: it.model,
        settings: match it.settings.is_empty() {
            true => String::new(),
            false => Value::Object(it.settings).to_string(),
        },
        partial: it.is_partial,
        host: it.host,
    });
    let origin = origin.clone().map(origin_message);
    StoredChoices { model, tools: tools.clone(), origin }
}

pub(in crate::store) fn choices(stored: StoredChoices) -> Choices {
    let model = stored.model.map(|it| ChosenModel {
        profile: it.profile,
        engine: it.engine,
        host: it.host,
        model: it.model,
        settings: serde_json::from_str(&it.settings).unwrap_or_default(),
        is_partial: it.partial,
    });
    Choices { model, tools: stored.tools, origin: stored.origin.map(origin) }
}

fn origin_message(origin: Origin) -> StoredOrigin {
    let Origin { profile, registries, engine, model, address, key, tools } = origin;
    let (key_mark, key_file, key_command) = match key {
        OriginKey::Nowhere => (String::new(), String::new(), false),
        OriginKey::Variable(mark) => (mark, String::new(), false),
        OriginKey::File(file) => (String::new(), file, false),
        OriginKey::Command => (String::new(), String::new(), true),
    };
    StoredOrigin {
        profile,
        profile_registries: registries,
        engine,
        model,
        base_url: address.base_url,
        base_url_partial: address.is_partial,
        host: address.host,
        of_profile: address.is_of_profile,
        key_mark,
        key_file,
        key_command,
        mcp_config: tools.configs,
        mcp: tools.servers,
        mcp_partial: tools.is_partial,
        approval: tools.approval,
        deny: tools.deny,
    }
}

fn origin(stored: StoredOrigin) -> Origin {
    let key = match (stored.key_command, stored.key_file.is_empty(), stored.key_mark.is_empty()) {
        (true, ..) => OriginKey::Command,
        (false, false, _) => OriginKey::File(stored.key_file),
        (false, true, false) => OriginKey::Variable(stored.key_mark),
        (false, true, true) => OriginKey::Nowhere,
    };
    Origin {
        profile: stored.profile,
        registries: stored.profile_registries,
        engine: stored.engine,
        model: stored.model,
        address: OriginAddress {
            base_url: stored.base_url,
            is_partial: stored.base_url_partial,
            host: stored.host,
            is_of_profile: stored.of_profile,
        },
        key,
        tools: OriginTools {
            configs: stored.mcp_config,
            servers: stored.mcp,
            is_partial: stored.mcp_partial,
            approval: stored.approval,
            deny: stored.deny,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_the_same_after_it_was_stored() {
        let keys = [
            OriginKey::Nowhere,
            OriginKey::Variable("salt-0".to_owned()),
            OriginKey::File("/key".to_owned()),
            OriginKey::Command,
        ];
        for key in keys {
            let text = |text: &str| text.to_owned();
            let before = Origin {
                profile: text("p"),
                registries: vec![text("/r")],
                engine: text("openai"),
                model: text("m"),
                address: OriginAddress {
                    base_url: text("https://h/v1"),
                    is_partial: true,
                    host: text("h"),
                    is_of_profile: true,
                },
                key,
                tools: OriginTools {
                    configs: vec![text("/c")],
                    servers: vec![text("a b")],
                    is_partial: true,
                    approval: text("deny"),
                    deny: vec![text("rm*")],
                },
            };
            assert_eq!(origin(origin_message(before.clone())), before);
        }
    }
}
