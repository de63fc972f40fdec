//! Logins at MCP servers over HTTP, by OAuth as the protocol's specification has it
//! (<https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization>): the SDK finds the
//! authorization server, registers this program there, and exchanges and refreshes tokens.
//!
//! `file` is where a login is kept, `http` the HTTP client for it.

mod file;
mod http;

pub use file::LoginFile;

use crate::engine::provider::http::is_this_machine;
use crate::support::secret::Secret;
use crate::tool::connection::causes;
use ::http::Uri;
use reqwest::{Client, Url};
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationRequest, AuthorizationSession,
};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Longest time to find an authorization server and to register there, and to get tokens from it.
const STEP_MAX: Duration = Duration::from_secs(60);

/// The name under which this program is registered, which people see when they are asked.
const CLIENT_NAME: &str = "duologue";

/// The beginning of what the SDK says of an answer of the authorization server that is an error.
const ERROR_ANSWER: &str = "Server returned error response: ";

/// The errors of such answers after which the next request for tokens may succeed (RFC 6749, section 4.1.2.1).
const PASSING_ERRORS: [&str; 2] = ["server_error", "temporarily_unavailable"];

/// What the SDK says of a request for tokens that has no answer.
const UNANSWERED: &str = "Request failed";

/// How this program is known at the authorization server, beyond what the server says itself.
#[derive(Clone, Debug, Default)]
pub struct LoginOptions {
    /// The id of a client that was registered there before; else this program registers itself.
    pub client_id: Option<String>,
    /// The secret of that client, if it has one.
    pub client_secret: Option<Secret>,
    /// Scopes to ask for; those that the server names, if there are none.
    pub scopes: Vec<String>,
}

/// A login that waits for a person.
pub struct Login {
    session: AuthorizationSession,
    file: LoginFile,
}

/// Whether tokens may be sent to `url`: nobody on the way must read them.
pub fn is_safe(url: &Url) -> bool {
    url.scheme() == "https" || url.scheme() == "http" && is_this_machine(url)
}

impl Login {
    /// Begins a login at the server that `file` is for. The answer of the authorization server is to come to
    /// `redirect_uri`. Needs a runtime.
    ///
    /// # Errors
    /// If the server has no authorization, or refuses to begin: why, for people.
    pub async fn begin(
        file: LoginFile,
        redirect_uri: &str,
        options: &LoginOptions,
    ) -> Result<Self, String> {
        let file = file.with_client_secret(options.client_secret.clone());
        let client = crate::tool::http::login_client(file.url()).await?;
        let begun = timeout(STEP_MAX, session(&file, client, redirect_uri, options)).await;
        match begun {
            Ok(Ok(session)) => Ok(Self { session, file }),
            Ok(Err(error)) => Err(said(&file, &error)),
            Err(_) => Err(format!("there was no answer within {STEP_MAX:?}")),
        }
    }

    /// Where a person agrees to the login.
    pub fn url(&self) -> &str {
        self.session.get_authorization_url()
    }

    /// Whether `address` is the answer to this login, which has its `state`: anybody can send another one.
    pub fn is_answered_by(&self, address: &str) -> bool {
        let state_of = |address: &str| {
            let url = Url::parse(address.trim()).ok()?;
            url.query_pairs().find(|(name, _)| name == "state").map(|(_, state)| state.into_owned())
        };
        let own = state_of(self.url());
        own.is_some() && own == state_of(address)
    }

    /// Ends the login with its answer, the address to which the authorization server has sent the browser. The
    /// tokens are in the file then.
    ///
    /// # Errors
    /// If it was refused: why, for people.
    pub async fn finish(self, answer: &str) -> Result<(), String> {
        let answer = answer.trim();
        let url = Url::parse(answer).map_err(|error| format!("the answer is no URL: {error}"))?;
        let value = |name: &str| {
            url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
        };
        if let Some(error) = value("error") {
            let about = value("error_description").map(|it| format!(": {it}")).unwrap_or_default();
            return Err(self.file.shown(&format!("it was refused: {error}{about}")));
        }
        let code = value("code").and_then(|code| Secret::new(&code));
        match timeout(STEP_MAX, self.session.handle_callback_url(answer)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => {
                let said = said(&self.file, &error);
                Err(code.map_or(said.clone(), |code| code.redact(&said)))
            }
            Err(_) => Err(format!("there was no answer within {STEP_MAX:?}")),
        }
    }
}

async fn session(
    file: &LoginFile,
    client: Client,
    redirect_uri: &str,
    options: &LoginOptions,
) -> Result<AuthorizationSession, AuthError> {
    let mut manager = manager(file, client).await?;
    let found = manager.resolve_metadata().await?;
    manager.set_metadata(found.metadata);
    let mut request = AuthorizationRequest::new(redirect_uri)
        .with_client_name(CLIENT_NAME)
        .with_scopes(options.scopes.iter().cloned())
        .with_initial_scope_selection();
    if let Some(id) = &options.client_id {
        request = request.with_preregistered_client(id.as_str());
    }
    if let Some(secret) = &options.client_secret {
        request = request.with_client_secret(secret.expose());
    }
    AuthorizationSession::new(manager, request).await.map_err(|(_, error)| error)
}

async fn manager(file: &LoginFile, client: Client) -> Result<AuthorizationManager, AuthError> {
    let http = Arc::new(http::LoginHttp::new(client));
    let url = file.url().as_str();
    let mut manager = AuthorizationManager::new_with_oauth_http_client(url, http).await?;
    manager.set_credential_store(file.clone());
    Ok(manager)
}

/// The tokens of the server at `url` for requests that `client` sends; those of `file`, if somebody has
/// logged in. Needs a runtime.
///
/// # Errors
/// If the login can't be used now: why, for people.
pub(super) async fn tokens(
    url: &Url,
    file: Option<&LoginFile>,
    client: Client,
) -> Result<AuthorizationManager, String> {
    match file {
        Some(file) if file.exists() => {
            let opened = async {
                let mut manager = manager(file, client).await?;
                // The SDK keeps the id of the client alone.
                if manager.initialize_from_store().await?
                    && let Some(client) = file.confidential_client()?
                {
                    manager.configure_client(client)?;
                }
                Ok(manager)
            };
            opened.await.map_err(|error: AuthError| {
                format!("the login can't be used: {}", said(file, &error))
            })
        }
        Some(_) | None => {
            let http = Arc::new(http::LoginHttp::new(client));
            let manager = AuthorizationManager::new_with_oauth_http_client(url.as_str(), http);
            manager.await.map_err(|error| error.to_string())
        }
    }
}

fn said(file: &LoginFile, error: &AuthError) -> String {
    file.shown(&unreached(error).unwrap_or_else(|| causes(error)))
}

/// Whether there may be a token later: no connection could be made, to the server or to that of its login, or that one
/// has a fault of its own.
#[expect(clippy::wildcard_enum_match_arm, reason = "the list of the SDK's errors is open")]
pub(super) fn is_passing(error: &AuthError) -> bool {
    match error {
        AuthError::TokenRefreshFailed(why) => is_passing_refresh(why),
        _ => unreached(error).is_some(),
    }
}

/// Whether `why`, which the SDK says of a request for tokens, may be over later. Any other answer of the authorization
/// server than such an error is a refusal: many use words of their own, and the next answer would be the same.
fn is_passing_refresh(why: &str) -> bool {
    match why.strip_prefix(ERROR_ANSWER) {
        Some(error) => PASSING_ERRORS.iter().any(|passing| error.starts_with(passing)),
        None => why.starts_with(UNANSWERED),
    }
}

/// That no connection could be made, if that is why.
fn unreached(error: &AuthError) -> Option<String> {
    let all = std::iter::successors(error.source(), |cause| (*cause).source());
    let requests = all.filter_map(|cause| cause.downcast_ref::<reqwest::Error>());
    let failed = requests.into_iter().find(|request| request.is_connect())?;
    let origin = failed.url()?.origin().ascii_serialization();
    Some(format!("{origin} can't be reached: check that it runs, its address, and your network"))
}

/// Whether a request of a login may be sent to `uri`.
fn is_safe_uri(uri: &Uri) -> bool {
    Url::parse(&uri.to_string()).is_ok_and(|url| is_safe(&url))
}
