//! Options of the front end for fleets.

use super::numbers::whole;
use super::prepare::many::Many;
use super::{EngineName, SessionArgs};
use clap::builder::BoolishValueParser;
use clap::{Args, ValueHint};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// Default time for clients of a conversation that nobody uses.
const IDLE_MS: u64 = 10 * 60 * 1000;

/// Default time for clients of a run.
const DETACHED_MS: u64 = 10 * 60 * 1000;

/// Default time for a client that takes nothing of its stream.
const UNREAD_MS: u64 = 5 * 60 * 1000;

/// Default time for runs when the node ends.
const DRAIN_MS: u64 = 25 * 1000;

/// Default number of conversations in memory.
const CONVERSATIONS: u32 = 10_000;

/// Default number of runs at once.
const RUNS: u32 = 2_000;

/// The largest of these numbers that can be set.
const COUNT_MAX: u32 = 10_000_000;

/// Options of `serve`.
#[derive(Args, Debug)]
#[command(next_help_heading = "Node options", mut_args(|arg| Many::Serve.offered(arg)))]
pub struct ServeArgs {
    /// Address and port to listen on; with port 0 the system chooses one. The address is printed
    #[arg(
        long,
        env = "DUOLOGUE_LISTEN",
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:8642",
        value_parser = address
    )]
    pub listen: SocketAddr,

    /// How long a conversation that nobody uses stays in memory. Without a store it is lost then
    #[arg(
        long,
        env = "DUOLOGUE_IDLE_MS",
        value_name = "MS",
        default_value_t = IDLE_MS,
        value_parser = whole::<u64>(0..=u64::MAX)
    )]
    pub idle_ms: u64,

    /// How long a run goes on without any client
    #[arg(
        long,
        env = "DUOLOGUE_DETACHED_MS",
        value_name = "MS",
        default_value_t = DETACHED_MS,
        value_parser = whole::<u64>(0..=u64::MAX)
    )]
    pub detached_ms: u64,

    /// Longest time of a run, after which it is stopped. Without this option it ends when the model has answered
    #[arg(
        long,
        env = "DUOLOGUE_RUN_MS",
        value_name = "MS",
        value_parser = whole::<u64>(1..=u64::MAX)
    )]
    pub run_ms: Option<u64>,

    /// How long a client may take nothing of its stream before that is ended. Its conversation goes on
    #[arg(
        long,
        env = "DUOLOGUE_UNREAD_MS",
        value_name = "MS",
        default_value_t = UNREAD_MS,
        value_parser = whole::<u64>(1..=u64::MAX)
    )]
    pub unread_ms: u64,

    /// How long runs may go on once a signal asks the node to end
    #[arg(
        long,
        env = "DUOLOGUE_DRAIN_MS",
        value_name = "MS",
        default_value_t = DRAIN_MS,
        value_parser = whole::<u64>(0..=u64::MAX)
    )]
    pub drain_ms: u64,

    /// Serve the tenants in this file alone: a line for each token or certificate, with the name of its tenant and
    /// its SHA-256 in hexadecimal digits. SIGHUP has it read again
    #[arg(long, env = "DUOLOGUE_TENANTS", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub tenants: Option<PathBuf>,

    /// Serve also whom an identity provider knows: the file has its keys (a JWK set) for the signatures of tokens
    /// (JWT). SIGHUP has it read again
    #[arg(
        long,
        env = "DUOLOGUE_JWKS",
        value_name = "FILE",
        requires_all = ["jwt_issuer", "jwt_audience"],
        value_hint = ValueHint::FilePath
    )]
    pub jwks: Option<PathBuf>,

    /// Who signs the tokens: their claim iss
    #[arg(long, env = "DUOLOGUE_JWT_ISSUER", value_name = "ISSUER", requires = "jwks")]
    pub jwt_issuer: Option<String>,

    /// Whom the tokens are for: one of their claim aud
    #[arg(long, env = "DUOLOGUE_JWT_AUDIENCE", value_name = "AUDIENCE", requires = "jwks")]
    pub jwt_audience: Option<String>,

    /// The claim of the tokens that names the tenant
    #[arg(long, env = "DUOLOGUE_JWT_TENANT_CLAIM", value_name = "CLAIM", default_value = "tenant")]
    pub jwt_tenant_claim: String,

    /// Accept clients without authentication also at an address that other machines can reach
    #[arg(long, env = "DUOLOGUE_INSECURE", value_parser = BoolishValueParser::new())]
    pub insecure: bool,

    /// Certificate chain of the node (PEM); clients connect by TLS then. SIGHUP has it read again
    #[arg(long, env = "DUOLOGUE_TLS_CERT", value_name = "FILE", requires = "tls_key", value_hint = ValueHint::FilePath)]
    pub tls_cert: Option<PathBuf>,

    /// Private key of --tls-cert (PEM)
    #[arg(long, env = "DUOLOGUE_TLS_KEY", value_name = "FILE", requires = "tls_cert", value_hint = ValueHint::FilePath)]
    pub tls_key: Option<PathBuf>,

    /// Authorities (PEM) of certificates that clients may show, each of which is in --tenants
    #[arg(long, env = "DUOLOGUE_CLIENT_CA", value_name = "FILE", requires = "tls_cert", value_hint = ValueHint::FilePath)]
    pub client_ca: Option<PathBuf>,

    /// Address at which the other nodes of the fleet reach this one, as http://10.0.0.1:8642. The nodes share a
    /// database of PostgreSQL
    #[arg(long, env = "DUOLOGUE_ADVERTISE", value_name = "URL")]
    pub advertise: Option<String>,

    /// File with the token by which the nodes know each other: that of the tenant @nodes in --tenants
    #[arg(long, env = "DUOLOGUE_NODE_TOKEN_FILE", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub node_token_file: Option<PathBuf>,

    /// Authorities (PEM) of the other nodes' certificates
    #[arg(long, env = "DUOLOGUE_NODE_CA", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub node_ca: Option<PathBuf>,

    /// Send traces to the OpenTelemetry collector at this address, by OTLP over HTTP: runs, their provider calls and
    /// their calls of tools, without what is said
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", value_name = "URL")]
    pub otlp_endpoint: Option<String>,

    /// Engines that clients may choose beside the one of --engine and those of profiles, with commas between them. They
    /// have the addresses and keys of the node's environment
    #[arg(long, env = "DUOLOGUE_ENGINES", value_name = "NAMES", value_enum, value_delimiter = ',')]
    pub engines: Vec<EngineName>,

    /// Most runs at once
    #[arg(
        long,
        env = "DUOLOGUE_MAX_RUNS",
        value_name = "N",
        default_value_t = RUNS,
        value_parser = whole::<u32>(1..=u64::from(COUNT_MAX))
    )]
    pub max_runs: u32,

    /// Most runs of a tenant at once
    #[arg(
        long,
        env = "DUOLOGUE_TENANT_RUNS",
        value_name = "N",
        default_value_t = RUNS,
        value_parser = whole::<u32>(1..=u64::from(COUNT_MAX))
    )]
    pub tenant_runs: u32,

    /// Most conversations of a tenant in memory
    #[arg(
        long,
        env = "DUOLOGUE_TENANT_CONVERSATIONS",
        value_name = "N",
        default_value_t = CONVERSATIONS,
        value_parser = whole::<u32>(1..=u64::from(COUNT_MAX))
    )]
    pub tenant_conversations: u32,

    /// Most requests of a tenant in a second, and as many at once: calls, and the requests of a stream. Without this
    /// option there may be any number
    #[arg(
        long,
        env = "DUOLOGUE_TENANT_RATE",
        value_name = "N",
        value_parser = whole::<u32>(1..=u64::from(COUNT_MAX))
    )]
    pub tenant_rate: Option<u32>,

    /// Most bytes in memory of a tenant's conversations and requests. Without this option there may be any number
    #[arg(
        long,
        env = "DUOLOGUE_TENANT_BYTES",
        value_name = "BYTES",
        value_parser = whole::<u64>(1..=u64::MAX)
    )]
    pub tenant_bytes: Option<u64>,

    /// Most conversations in memory
    #[arg(
        long,
        env = "DUOLOGUE_MAX_CONVERSATIONS",
        value_name = "N",
        default_value_t = CONVERSATIONS,
        value_parser = whole::<u32>(1..=u64::from(COUNT_MAX))
    )]
    pub max_conversations: u32,

    /// Options of every conversation.
    #[command(flatten, next_help_heading = None)]
    pub session: SessionArgs,
}

/// An address to listen on. Of names only the one of this machine is known: another one may have several addresses.
fn address(text: &str) -> Result<SocketAddr, String> {
    let own = text.strip_prefix("localhost:").and_then(|port| port.parse().ok());
    let own = own.map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    own.or_else(|| text.parse().ok()).ok_or_else(|| {
        "it is no address with a port; write ADDRESS:PORT, as 127.0.0.1:8642, or [::1]:8642"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_port_and_may_be_that_of_this_machine() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(address(text).ok().map(|it| it.to_string()).as_deref(), expected, "{text}");
        };
        check("0.0.0.0:1", Some("0.0.0.0:1"));
        check("[::1]:8642", Some("[::1]:8642"));
        check("localhost:8642", Some("127.0.0.1:8642"));
        for text in ["8642", ":8642", "localhost", "localhost:x", "example.com:1", ""] {
            check(text, None);
            assert!(address(text).is_err_and(|why| why.contains("write ADDRESS:PORT")), "{text}");
        }
    }
}
