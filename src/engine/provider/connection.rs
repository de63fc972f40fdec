//! The connection to a provider: one HTTP client, built when the first run needs it.

use super::caution;
use super::failure::{Failure, Failures};
use super::http::ProviderClient;
use super::roots::{RootsReader, TlsRoots};
use reqwest::Url;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

/// The HTTP client of an engine, and the settings that it is built from.
#[derive(Debug)]
pub(in crate::engine) struct Connection {
    connect_timeout: Duration,
    roots: RootsReader,
    pub(in crate::engine) client: OnceLock<ProviderClient>,
}

impl Connection {
    /// A connection that trusts `roots` and those of `roots_file`. Nothing is read yet.
    pub(in crate::engine) fn new(
        connect_timeout: Duration,
        roots: TlsRoots,
        roots_file: Option<PathBuf>,
    ) -> Self {
        let roots = RootsReader::new(roots, roots_file);
        Self { connect_timeout, roots, client: OnceLock::new() }
    }

    /// The client, built for `url` by the first run; warns of settings under which
    /// the key or the conversation can be read on the way.
    ///
    /// # Errors
    /// If the root certificates can't be read or the client can't be built.
    pub(in crate::engine) async fn client(
        &self,
        url: &Url,
        has_key: bool,
        failures: &Failures,
    ) -> Result<&ProviderClient, Failure> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let time_max = self.connect_timeout;
        let roots = match url.scheme() {
            "https" if !self.roots.are_built_in() => {
                Some(self.roots.roots(time_max).await.map_err(|why| failures.no_roots(&why))?)
            }
            // A proxy may be reached over TLS.
            _ => None,
        };
        let built = ProviderClient::new(url, time_max, roots);
        let built = built.map_err(|why| failures.no_client(&*why))?;
        for warning in caution::warnings(url, has_key, |name| std::env::var_os(name)) {
            tracing::warn!("{warning}");
        }
        Ok(self.client.get_or_init(|| built))
    }
}
