//! The names of the settings of engines on the command line: options and variables.

use crate::engine::SettingNames;

/// Those that are no provider's.
pub(super) const GENERAL: SettingNames = SettingNames {
    base_url: "--base-url or DUOLOGUE_BASE_URL",
    model: "--model or DUOLOGUE_MODEL",
    key: "DUOLOGUE_API_KEY",
    key_command: "--key-command or the profile's key-command",
    key_file: "--key-file or the profile's key-file",
    connect_timeout: "--connect-timeout-ms",
    idle_timeout: "--idle-timeout-ms",
    total_timeout: "--total-timeout-ms",
    list_of_models: " (`duologue models` lists them)",
    other_engine: " with --engine",
    echo_answer: "--echo-answer",
    echo_script: "--echo-script",
};

pub(super) const OPENAI: SettingNames = SettingNames {
    base_url: "--base-url, DUOLOGUE_BASE_URL or OPENAI_BASE_URL",
    key: "DUOLOGUE_API_KEY or OPENAI_API_KEY",
    ..GENERAL
};

pub(super) const ANTHROPIC: SettingNames = SettingNames {
    base_url: "--base-url, DUOLOGUE_BASE_URL or ANTHROPIC_BASE_URL",
    key: "DUOLOGUE_API_KEY or ANTHROPIC_API_KEY",
    ..GENERAL
};

pub(super) const GEMINI: SettingNames = SettingNames {
    base_url: "--base-url, DUOLOGUE_BASE_URL or GEMINI_BASE_URL",
    key: "DUOLOGUE_API_KEY, GEMINI_API_KEY or GOOGLE_API_KEY",
    ..GENERAL
};

pub(super) const OLLAMA: SettingNames = SettingNames {
    base_url: "--base-url, DUOLOGUE_BASE_URL or OLLAMA_HOST",
    key: "DUOLOGUE_API_KEY or OLLAMA_API_KEY",
    ..GENERAL
};
