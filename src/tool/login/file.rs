//! Where the login at a server is kept: a file of its own, which its user alone can read, replaced at once, and
//! locked while a token is refreshed, since a refresh may make all earlier tokens useless.

use crate::support::files::{make_folders_of, read_limited, replace};
use crate::support::lock;
use crate::support::secret::Secret;
use crate::support::terminal::escape_control;
use async_trait::async_trait;
use data_encoding::HEXLOWER;
use reqwest::Url;
use ring::digest::{SHA256, digest};
use rmcp::transport::auth::{
    AuthError, CredentialRefreshGuard, CredentialStore, OAuthClientConfig, StoredCredentials,
};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Longest file of a login.
const FILE_BYTES_MAX: usize = 256 * 1024;

/// Mode of the file that is locked.
const PRIVATE_MODE: u32 = 0o600;

/// Longest wait for another process that refreshes the token.
const LOCK_MAX: Duration = Duration::from_secs(60);

/// Digits of a URL's hash in the name of its file.
const NAME_DIGITS: usize = 32;

/// Secrets that are remembered: those of a login, and earlier ones, which errors may still quote.
const SECRETS_MAX: usize = 64;

/// The members of a response that are tokens (RFC 6749, section 5.1; OpenID Connect Core, section 3.1.3.3).
const TOKENS: [&str; 3] = ["access_token", "refresh_token", "id_token"];

/// The file of the login at one server. Clones share what they have read.
#[derive(Clone)]
pub struct LoginFile {
    path: PathBuf,
    url: Arc<Url>,
    /// The secret of the client of a new login.
    client_secret: Option<Secret>,
    /// Tokens and secrets that were read or written, none of which may be shown.
    secrets: Arc<Mutex<Vec<Secret>>>,
}

/// What is in the file.
#[derive(Serialize, Deserialize)]
struct Stored {
    /// For people, and against a file that stands in the wrong place.
    url: Url,
    /// The secret of the client that has the tokens, if it has one: a refresh needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_secret: Option<String>,
    credentials: StoredCredentials,
}

impl LoginFile {
    /// The file of the server at `url`, in `folder`.
    pub fn new(folder: &Path, url: &Url) -> Self {
        let mut url = url.clone();
        url.set_fragment(None);
        let hash = HEXLOWER.encode(digest(&SHA256, url.as_str().as_bytes()).as_ref());
        let path = folder.join(format!("{}.json", &hash[..NAME_DIGITS]));
        Self { path, url: url.into(), client_secret: None, secrets: Arc::default() }
    }

    /// The file for a new login, of a client that has this secret.
    pub(super) fn with_client_secret(self, secret: Option<Secret>) -> Self {
        self.remember(secret.iter().map(Secret::expose));
        Self { client_secret: secret, ..self }
    }

    /// The address of the server.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Whether somebody has logged in there.
    pub fn exists(&self) -> bool {
        self.path.exists()
    }

    /// Forgets the login; returns whether there was one.
    ///
    /// # Errors
    /// If its file can't be removed.
    pub fn remove(&self) -> io::Result<bool> {
        match std::fs::remove_file(&self.path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// `text`, which others may have written, for people: without tokens and control characters.
    pub(in crate::tool) fn shown(&self, text: &str) -> String {
        escape_control(&self.redacted(text)).trim().to_owned()
    }

    /// `text` without tokens.
    pub(in crate::tool) fn redacted(&self, text: &str) -> String {
        let secrets = lock(&self.secrets);
        secrets.iter().fold(text.to_owned(), |text, secret| secret.redact(&text))
    }

    /// The client that has the tokens, if it has a secret.
    pub(super) fn confidential_client(&self) -> Result<Option<OAuthClientConfig>, AuthError> {
        let Some(stored) = self.read()? else { return Ok(None) };
        let id = stored.credentials.client_id;
        // The redirect URI is not used any more.
        let client =
            |secret| OAuthClientConfig::new(id, self.url.as_str()).with_client_secret(secret);
        Ok(stored.client_secret.map(client))
    }

    fn read(&self) -> Result<Option<Stored>, AuthError> {
        let text = match read_limited(&self.path, FILE_BYTES_MAX) {
            Ok((text, _)) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.unusable("be read", &error)),
        };
        // The error of the parser may quote a token.
        let broken = io::Error::other("it is not what was written; log in again");
        let stored: Stored =
            serde_json::from_str(&text).map_err(|_| self.unusable("be read", &broken))?;
        if stored.url != *self.url {
            return Err(self.unusable("be used", &io::Error::other("it is for another server")));
        }
        self.remember_all(&stored.credentials);
        self.remember(stored.client_secret.as_deref());
        Ok(Some(stored))
    }

    fn write(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        self.remember_all(&credentials);
        let client_secret = match &self.client_secret {
            Some(secret) => Some(secret.expose().to_owned()),
            // Of a refresh. What can't be read is replaced.
            None => self.read().ok().flatten().and_then(|before| {
                before
                    .client_secret
                    .filter(|_| before.credentials.client_id == credentials.client_id)
            }),
        };
        let stored = Stored { url: Url::clone(&self.url), client_secret, credentials };
        let written = serde_json::to_vec(&stored).map_err(io::Error::other);
        let written = written.and_then(|bytes| replace(&self.path, &bytes));
        written.map_err(|error| self.unusable("be written", &error))
    }

    fn remember_all(&self, credentials: &StoredCredentials) {
        let Ok(tokens) = serde_json::to_value(&credentials.token_response) else { return };
        self.remember(TOKENS.iter().filter_map(|name| tokens[name].as_str()));
    }

    fn remember<'t>(&self, texts: impl IntoIterator<Item = &'t str>) {
        let mut secrets = lock(&self.secrets);
        for text in texts {
            let is_new = secrets.iter().all(|secret| secret.expose() != text);
            secrets.extend(Secret::new(text).filter(|_| is_new));
        }
        let surplus = secrets.len().saturating_sub(SECRETS_MAX);
        secrets.drain(..surplus);
    }

    /// A lock that no other process has.
    fn lock(&self) -> io::Result<File> {
        let path = self.path.with_extension("lock");
        make_folders_of(&path)?;
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(false).mode(PRIVATE_MODE);
        let file = options.open(path)?;
        file.lock()?;
        Ok(file)
    }

    fn unusable(&self, how: &str, error: &io::Error) -> AuthError {
        let path = self.path.display();
        AuthError::CredentialStoreError(format!("{path} can't {how}: {error}"))
    }
}

impl std::fmt::Debug for LoginFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("LoginFile").field(&self.path).finish()
    }
}

#[async_trait]
impl CredentialStore for LoginFile {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        Ok(self.read()?.map(|stored| stored.credentials))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        self.write(credentials)
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.remove().map(drop).map_err(|error| self.unusable("be removed", &error))
    }

    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let file = self.clone();
        // A thread waits for the lock: whoever has it waits for a server.
        let locked = match timeout(LOCK_MAX, spawn_blocking(move || file.lock())).await {
            Ok(Ok(locked)) => locked,
            Ok(Err(error)) => Err(io::Error::other(error)),
            Err(_) => Err(io::Error::other("another process has it locked")),
        };
        let lock = locked.map_err(|error| self.unusable("be locked", &error))?;
        Ok(Some(CredentialRefreshGuard::new(lock)))
    }
}
