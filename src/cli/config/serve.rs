//! Settings of the front end for fleets: those of each conversation are made when it is opened.

use super::chat::library;
use super::plan::Plan;
use super::{PromptRequest, stdin};
use crate::cli::store::StoreArgs;
use crate::cli::{EngineName, Mode, ServeArgs, SessionArgs};
use crate::host::{FilePolicy, HostSettings};
use crate::serve::{
    Authority, Certificates, Credentials, JwtRules, Limits, Opening, PeerRules, Services, Times,
};
use crate::session::LogRules;
use crate::stdio::Settings;
use crate::store::{OpenMode, StorePlace};
use anyhow::{Context, Result, anyhow, ensure};
use clap::ValueEnum;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// Time for clients that are given their last frames.
const FLUSH_MAX: Duration = Duration::from_secs(5);

/// The longest time that is waited for.
const WAIT_MAX: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// What the front end needs. Makes the settings of a conversation once, so that a wrong option is reported at
/// the start.
///
/// # Errors
/// If an option can't be used.
pub(crate) fn services(args: ServeArgs) -> Result<Services> {
    let session = args.session.clone();
    let millis = |ms: u64| Duration::from_millis(ms).min(WAIT_MAX);
    let number = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
    let places = session.store.places().map_err(|why| anyhow!(why))?;
    let library = library(&session);
    let engines: BTreeSet<_> = args.engines.iter().filter_map(name).collect();
    let checked = settings(unstored(&session), &engines)?;
    // Once for the node, and not with each conversation.
    checked.notices.iter().for_each(|notice| tracing::warn!("{notice}"));
    if places.is_empty() {
        tracing::warn!(
            "conversations are not stored, and lost when nobody has used them for {} ms or the node ends; \
             --store names a place for them",
            args.idle_ms
        );
    }
    let authority = Authority::new(args.tenants.clone(), signed(&args))?;
    ensure!(
        !authority.is_open() || args.insecure || args.listen.ip().is_loopback(),
        "--listen {} can be reached from other machines, and everybody there could use this node and its keys: name \
         the tenants with --tenants or --jwks, or say --insecure",
        args.listen
    );
    let certificates = args.tls_cert.clone().zip(args.tls_key.clone());
    let certificates = certificates
        .map(|(chain, key)| Certificates::new(chain, key, args.client_ca.clone()))
        .transpose()?;
    let collector = args.otlp_endpoint.as_ref().map(|address| {
        let url = Url::parse(address).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        url.with_context(|| {
            format!("--otlp-endpoint {address} is no address; write http://HOST:4318")
        })
    });
    Ok(Services {
        collector: collector.transpose()?,
        listen: args.listen,
        peers: peers(&args, &authority, &places)?,
        library,
        places,
        authority,
        certificates,
        times: Times {
            idle: millis(args.idle_ms),
            detached: millis(args.detached_ms),
            run: args.run_ms.map(millis),
            unread: millis(args.unread_ms),
            drain: millis(args.drain_ms),
            flush: FLUSH_MAX,
        },
        request_bytes_max: usize::try_from(session.max_request_bytes)?,
        limits: Limits {
            conversations: number(args.max_conversations),
            runs: number(args.max_runs),
            tenant_conversations: number(args.tenant_conversations),
            tenant_runs: number(args.tenant_runs),
            tenant_rate: args.tenant_rate,
            tenant_bytes: args.tenant_bytes,
        },
        opener: Arc::new(move |opening| opened(session.clone(), &engines, opening)),
    })
}

/// What tokens must say that an identity provider has signed, if such are taken.
fn signed(args: &ServeArgs) -> Option<JwtRules> {
    Some(JwtRules {
        keys: args.jwks.clone()?,
        issuer: args.jwt_issuer.clone()?,
        audience: args.jwt_audience.clone()?,
        tenant_claim: args.jwt_tenant_claim.clone(),
    })
}

/// How the node speaks to the others, if there are others.
fn peers(args: &ServeArgs, authority: &Authority, places: &[StorePlace]) -> Result<PeerRules> {
    let Some(own) = &args.advertise else { return Ok(PeerRules::default()) };
    let is_shared = places.iter().any(|place| matches!(place, StorePlace::Postgres(_)));
    ensure!(
        is_shared,
        "--advertise is for nodes that share a database of PostgreSQL; name it with --store, or leave \
         --advertise out"
    );
    let url = Url::parse(own).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let url =
        url.with_context(|| format!("--advertise {own} is no address; write http://HOST:PORT"))?;
    ensure!(
        url.path() == "/" && url.query().is_none() && url.username().is_empty(),
        "--advertise must have a scheme, a host and a port alone, as http://10.0.0.1:8642"
    );
    ensure!(
        authority.is_open() || args.node_token_file.is_some(),
        "nodes that serve tenants show each other a token: name its file with --node-token-file, and its tenant \
         @nodes in --tenants"
    );
    let credentials = Credentials::new(args.node_token_file.clone(), args.node_ca.clone())?;
    let own = Some(own.trim_end_matches('/').to_owned());
    Ok(PeerRules { own, credentials: Arc::new(credentials) })
}

fn unstored(session: &SessionArgs) -> SessionArgs {
    SessionArgs { store: StoreArgs::default(), ..session.clone() }
}

/// The name of an engine, as requests have it.
fn name(engine: &EngineName) -> Option<String> {
    Some(engine.to_possible_value()?.get_name().to_owned())
}

fn opened(
    mut session: SessionArgs,
    engines: &BTreeSet<String>,
    opening: Opening,
) -> Result<HostSettings> {
    let Opening { namespace, session: id, mode } = opening;
    session.store.namespace = namespace;
    let is_stored = !session.store.places().map_err(|why| anyhow!(why))?.is_empty();
    session.session_id = Some(id.as_str().to_owned());
    match mode {
        OpenMode::New => {}
        // Without a store there is nothing that it could go on with.
        OpenMode::Either | OpenMode::Resume if !is_stored => {}
        OpenMode::Either => session.store.session = session.session_id.clone(),
        OpenMode::Resume => session.store.resume = true,
    }
    Ok(settings(session, engines)?.host)
}

fn settings(session: SessionArgs, engines: &BTreeSet<String>) -> Result<Settings> {
    let requests = stdin(&session)?;
    let plan = Plan {
        command: "serve",
        mode: Mode::Server,
        // What nobody has configured is reported once, when the node starts.
        is_attended: false,
        has_client: true,
        session,
        own_extensions: Vec::new(),
        request: PromptRequest::default(),
    };
    let mut settings = plan.settings(requests)?;
    let host = &mut settings.host;
    // Clients are elsewhere: no path of theirs is one of this machine.
    host.files = FilePolicy::None;
    // Others are at addresses, and with keys, that nobody has configured for clients.
    host.engines.offer_named(engines.clone());
    host.rules.log = LogRules { has_request_ids: true, ..host.rules.log };
    Ok(settings)
}
