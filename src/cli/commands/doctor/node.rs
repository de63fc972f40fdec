//! A node of a fleet, as a client of it meets it.

use super::Check;
use crate::cli::commands::args::{DoctorArgs, NodeArgs};
use crate::cli::shell;
use crate::engine::TlsRoots;
use crate::engine::provider::http;
use crate::engine::provider::roots::RootsReader;
use crate::yaml;
use anyhow::{Context, Result, anyhow, ensure};
use reqwest::{Client, StatusCode, Url};
use serde_json::Value;
use std::error::Error;
use std::fs;
use std::time::Duration;

/// Time for a connection, and for an answer.
const CONNECT_MAX: Duration = Duration::from_secs(5);
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// Longest answer that is read.
const ANSWER_BYTES_MAX: u64 = 1024 * 1024;

/// Checks the node at `node`.
pub(super) fn check(node: &str, args: &DoctorArgs, checks: &mut Vec<Check>) {
    if args.offline {
        checks.push(Check::note("node", format!("{node}: not asked (--offline)")));
        return;
    }
    let runtime = match shell::runtime() {
        Ok(runtime) => runtime,
        Err(error) => {
            return checks
                .push(Check::wrong("node", format!("events can't be waited for: {error}")));
        }
    };
    runtime.block_on(async {
        match Asker::new(node, &args.node).await {
            Ok(asker) => asker.check(checks).await,
            Err(error) => checks.push(Check::wrong("node", format!("{error:#}"))),
        }
    });
    runtime.shutdown_background();
}

/// Asks a node.
struct Asker {
    client: Client,
    url: Url,
    token: Option<String>,
}

impl Asker {
    async fn new(node: &str, args: &NodeArgs) -> Result<Self> {
        let url = Url::parse(node).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url =
            url.with_context(|| format!("--node {node} is no address; write http://HOST:PORT"))?;
        ensure!(
            url.username().is_empty() && url.password().is_none(),
            "--node: an address has no password; name the file with the token with --token-file"
        );
        let token = args.token_file.as_ref().map(|file| {
            let read = fs::read_to_string(file);
            let token =
                read.with_context(|| format!("--token-file: {} can't be read", file.display()))?;
            Ok::<_, anyhow::Error>(yaml::without_mark(&token).trim().to_owned())
        });
        let roots = RootsReader::new(TlsRoots::Builtin, args.node_ca.clone());
        let roots = roots.roots(CONNECT_MAX).await.map_err(|why| anyhow!("--node-ca: {why}"))?;
        let client =
            http::client(&url, CONNECT_MAX, Some(roots)).map_err(|why| anyhow!("{why}"))?;
        Ok(Self { client, url, token: token.transpose()? })
    }

    async fn check(&self, checks: &mut Vec<Check>) {
        let url = &self.url;
        match self.get("/health/ready").await {
            Err(why) => {
                let why = format!(
                    "{url} can't be reached: {why}; check the address and that the node runs, and for a certificate \
                     of your own name its authority with --node-ca"
                );
                return checks.push(Check::wrong("node", why));
            }
            Ok((StatusCode::OK, _)) => {
                checks.push(Check::fine("node", format!("{url} takes clients")));
            }
            Ok((StatusCode::SERVICE_UNAVAILABLE, _)) => {
                let found = format!("{url} is about to end and takes no new conversations");
                checks.push(Check::note("node", found));
            }
            Ok((status, _)) => {
                let found = format!("{url} answers {status}, as no node does; check the address");
                return checks.push(Check::wrong("node", found));
            }
        }
        let is_known = self.check_info(checks).await;
        if is_known {
            self.check_store(checks).await;
        }
    }

    /// What the node says of itself; whether it does.
    async fn check_info(&self, checks: &mut Vec<Check>) -> bool {
        let (status, body) = match self.get("/v1/info").await {
            Ok(answer) => answer,
            Err(why) => {
                checks.push(Check::wrong("node information", why));
                return false;
            }
        };
        match status {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED => {
                let why = match self.token {
                    Some(_) => "the node does not know the token of --token-file",
                    None => {
                        "the node serves tenants alone; name a file with the token of one with --token-file"
                    }
                };
                checks.push(Check::wrong("token", why));
                return false;
            }
            StatusCode::TOO_MANY_REQUESTS => {
                let why =
                    "the tenant sends as many requests as it may (--tenant-rate); try again later";
                checks.push(Check::note("node information", why));
                return false;
            }
            status => {
                checks.push(Check::wrong("node information", format!("the node answers {status}")));
                return false;
            }
        }
        if self.token.is_some() {
            checks.push(Check::fine("token", "the node takes it, or needs none"));
        }
        let info: Value = serde_json::from_str(&body).unwrap_or_default();
        let text = |name: &str| info[name].as_str().unwrap_or_default().to_owned();
        let (version, own) = (text("version"), env!("CARGO_PKG_VERSION"));
        checks.push(match version == own {
            true => Check::fine("version", version),
            false => Check::note("version", format!("{version:?}; this program has {own}")),
        });
        let held = format!(
            "{} conversations in memory, {} runs, {} clients",
            info["conversations"], info["runs"], info["clients"]
        );
        checks.push(Check::fine("load", held));
        true
    }

    /// Whether the node can list what it has stored.
    async fn check_store(&self, checks: &mut Vec<Check>) {
        checks.push(match self.get("/v1/sessions?page_size=1").await {
            Ok((StatusCode::OK, _)) => Check::fine("store", "the node can list its conversations"),
            Ok((status, body)) => {
                let body: Value = serde_json::from_str(&body).unwrap_or_default();
                let why = body["refused"]["message"].as_str().unwrap_or("it gives no reason");
                let found = format!("the node can't list conversations ({status}): {why}");
                match why.contains("--store") {
                    // It was started without one.
                    true => Check::note("store", found),
                    false => Check::wrong("store", found),
                }
            }
            Err(why) => Check::wrong("store", why),
        });
    }

    /// The status of an answer, and its body.
    async fn get(&self, path: &str) -> Result<(StatusCode, String), String> {
        let url = self.url.join(path).map_err(|error| error.to_string())?;
        let mut request = self.client.get(url).timeout(ANSWER_MAX);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        let mut response = request.send().await.map_err(|error| innermost(&error))?;
        let (status, mut body) = (response.status(), Vec::new());
        while let Some(chunk) = response.chunk().await.map_err(|error| innermost(&error))? {
            body.extend_from_slice(&chunk);
            if body.len() as u64 > ANSWER_BYTES_MAX {
                return Err(format!("the answer is longer than {ANSWER_BYTES_MAX} bytes"));
            }
        }
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }
}

/// The first cause of an error, which says what is wrong.
fn innermost(error: &dyn Error) -> String {
    match error.source() {
        Some(source) => innermost(source),
        None => error.to_string(),
    }
}
