//! temporary
#![allow(missing_docs, clippy::allow_attributes)]
use crate::secret::Secret;
use std::time::Duration;
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
pub const TOTAL_TIMEOUT: Duration = Duration::from_secs(1800);
pub const RETRIES: u32 = 2;
pub const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";
#[derive(Debug)]
pub struct Settings {
    pub base_url: String,
    pub model: Option<String>,
    pub key: Option<Secret>,
    pub connect_timeout: Duration,
    pub idle_timeout: Duration,
    pub total_timeout: Duration,
    pub retries: u32,
}
#[derive(Debug)]
pub struct OpenAi(pub Settings);
impl OpenAi {
    pub fn new(s: Settings) -> Self {
        Self(s)
    }
}
