//! Authentication: a token, or the certificate of a connection, tells the tenant of a client. A token is in the list of
//! the node, or an identity provider has signed it (`jwt`). A node with neither serves one tenant without a name, and
//! takes only requests that no page of a browser can make.

use super::jwt::{JwtRules, Tokens, is_jwt};
use super::peers::PeerRules;
use crate::store::Namespace;
use crate::support::lock;
use crate::yaml;
use anyhow::{Context, Result, bail, ensure};
use data_encoding::HEXLOWER_PERMISSIVE;
use http::{HeaderMap, Uri, header};
use ring::digest::{SHA256, digest};
use std::collections::HashMap;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The tenant of nodes, which act for others.
const NODES: &str = "@nodes";

/// The header by which a node says for which tenant it acts.
pub(super) const TENANT_HEADER: &str = "x-duologue-tenant";

/// Characters of a tenant's name.
const NAME_CHARS_MAX: usize = 64;

/// Hash of a token or of a certificate.
pub(super) type Fingerprint = [u8; 32];

/// The sender of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Caller {
    pub(super) tenant: Namespace,
    /// The caller is a node that passes a client's request on.
    pub(super) is_node: bool,
}

/// The tenants that a node serves, by their tokens and certificates.
#[derive(Debug)]
pub(crate) struct Authority {
    /// The tenants in the file, which is read again on a signal.
    accounts: Option<(PathBuf, Mutex<Arc<Accounts>>)>,
    /// The tenants that an identity provider names. With neither, everybody who can connect is served.
    signed: Option<Tokens>,
}

/// The tenants, by the hashes of their tokens and certificates.
#[derive(Debug, Default)]
struct Accounts(HashMap<Fingerprint, String>);

impl Authority {
    /// Serves the tenants in the file and those whose tokens keep to the rules; with neither, everybody.
    ///
    /// # Errors
    /// If a file can't be used.
    pub(crate) fn new(file: Option<PathBuf>, signed: Option<JwtRules>) -> Result<Self> {
        let accounts = file.map(|file| {
            let accounts = Accounts::read(&file)?;
            Ok::<_, anyhow::Error>((file, Mutex::new(Arc::new(accounts))))
        });
        let signed = signed.map(Tokens::new);
        Ok(Self { accounts: accounts.transpose()?, signed: signed.transpose()? })
    }

    pub(crate) fn is_open(&self) -> bool {
        self.accounts.is_none() && self.signed.is_none()
    }

    /// Reads each of the files again. A file that can't be used leaves in place what was read of it before.
    pub(super) fn reload(&self) -> [Result<()>; 2] {
        let accounts = self.accounts.as_ref().map_or(Ok(()), |(file, accounts)| {
            let read = Arc::new(Accounts::read(file)?);
            *lock(accounts) = read;
            Ok(())
        });
        let signed = self.signed.as_ref().map_or(Ok(()), Tokens::reload);
        [accounts, signed]
    }

    /// Whether there is a token or a certificate for a tenant. An identity provider may have signed one for any.
    pub(super) fn serves(&self, tenant: &Namespace) -> bool {
        let Some((_, accounts)) = self.accounts.as_ref().filter(|_| self.signed.is_none()) else {
            return true;
        };
        let accounts = lock(accounts);
        accounts.0.values().any(|name| name == tenant.tenant())
    }

    /// The sender of a request that came over a connection with this certificate.
    ///
    /// # Errors
    /// Why nobody is served, for people.
    pub(super) fn caller(
        &self,
        headers: &HeaderMap,
        uri: &Uri,
        certificate: Option<Fingerprint>,
        peers: &PeerRules,
    ) -> Result<Caller, &'static str> {
        if self.is_open() {
            check_origin(headers, uri, peers)?;
            let is_node = is_passed_on(headers, peers)?;
            return Ok(Caller { tenant: Namespace::default(), is_node });
        }
        let token = bearer(headers)?;
        let tenant = self.tenant(token, certificate)?;
        // A browser shows the certificate of its user for any page.
        if token.is_none() && is_of_other_origin(headers, uri) {
            return Err(
                "a page of another origin may not use the certificate of its user; send the request with a token",
            );
        }
        if tenant != NODES {
            return Ok(Caller { tenant: Namespace::of_tenant(&tenant), is_node: false });
        }
        let acted_for = headers.get(TENANT_HEADER).and_then(|value| value.to_str().ok());
        let acted_for = acted_for.filter(|name| is_name(name));
        let acted_for = acted_for.ok_or("a node must name the tenant for which it acts")?;
        Ok(Caller { tenant: Namespace::of_tenant(acted_for), is_node: true })
    }
}

impl Authority {
    /// The tenant of a token, or of a certificate if there is no token.
    fn tenant(
        &self,
        token: Option<&str>,
        certificate: Option<Fingerprint>,
    ) -> Result<String, &'static str> {
        let presented = token.map(|token| fingerprint(token.as_bytes())).or(certificate);
        let presented = presented.ok_or(
            "this node serves tenants with a token alone; send the header authorization: Bearer TOKEN",
        )?;
        let listed = self.accounts.as_ref().and_then(|(_, accounts)| {
            let accounts = lock(accounts);
            accounts.0.get(&presented).cloned()
        });
        match (listed, &self.signed, token) {
            (Some(tenant), _, _) => Ok(tenant),
            (None, Some(signed), Some(token)) if is_jwt(token) => signed.tenant(token),
            (None, _, _) => Err("the token or certificate is not known here"),
        }
    }
}

/// Whether another node of a fleet without tenants passes the request on.
fn is_passed_on(headers: &HeaderMap, peers: &PeerRules) -> Result<bool, &'static str> {
    if peers.own.is_none() || !headers.contains_key(TENANT_HEADER) {
        return Ok(false);
    }
    let presented = headers.get(header::AUTHORIZATION).map(|value| fingerprint(value.as_bytes()));
    let credential = peers.credentials.newest();
    let token = credential.token.as_ref().map(|token| fingerprint(token.as_encoded_bytes()));
    if token.is_some() && token != presented {
        return Err("only a node may name a tenant; give all nodes the same --node-token-file");
    }
    Ok(true)
}

/// The token of a request, if it has one.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, &'static str> {
    let Some(value) = headers.get(header::AUTHORIZATION) else { return Ok(None) };
    let words = value.to_str().ok().and_then(|text| text.split_once(' '));
    let (_, token) = words
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .ok_or("the authorization header must be: Bearer TOKEN")?;
    Ok(Some(token.trim()))
}

/// The hash of a token, or of a certificate in DER.
pub(super) fn fingerprint(bytes: &[u8]) -> Fingerprint {
    let mut hash = Fingerprint::default();
    hash.copy_from_slice(digest(&SHA256, bytes).as_ref());
    hash
}

impl Accounts {
    fn read(file: &Path) -> Result<Self> {
        let path = file.display();
        let text =
            fs::read_to_string(file).with_context(|| format!("--tenants: {path} can't be read"))?;
        Self::parse(&text).with_context(|| format!("--tenants: {path} can't be used"))
    }

    /// A line for each token or certificate: the name of its tenant, and its hash.
    fn parse(text: &str) -> Result<Self> {
        let mut accounts = Self::default();
        for (number, line) in yaml::without_mark(text).lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<_> = line.split_whitespace().collect();
            let at = number + 1;
            let (tenant, hash) = match words[..] {
                [] => continue,
                [tenant, hash] => (tenant, hash),
                // The line is not quoted: it may have a token.
                _ => bail!("line {at} must have the name of a tenant and a SHA-256"),
            };
            ensure!(
                tenant == NODES || is_name(tenant),
                "line {at}: the name of a tenant has up to {NAME_CHARS_MAX} letters, digits, -, _ and ."
            );
            let hash = HEXLOWER_PERMISSIVE.decode(hash.replace(':', "").as_bytes());
            let hash = hash.ok().and_then(|hash| Fingerprint::try_from(hash).ok());
            let hash = hash.with_context(|| {
                format!(
                    "line {at}: the SHA-256 of a token or a certificate has 64 hexadecimal digits"
                )
            })?;
            let known = accounts.0.insert(hash, tenant.to_owned());
            ensure!(known.is_none(), "line {at}: this token or certificate is in the file already");
        }
        ensure!(!accounts.0.is_empty(), "it names no tenant, so nobody would be served");
        Ok(accounts)
    }
}

pub(super) fn is_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=NAME_CHARS_MAX).contains(&name.len()) && name.chars().all(is_allowed)
}

/// Refuses what a page in a browser of this machine may send: a request of another origin, or one for a name
/// that only claims to be this machine. The name that the other nodes have for it is its own.
fn check_origin(headers: &HeaderMap, uri: &Uri, peers: &PeerRules) -> Result<(), &'static str> {
    if headers.contains_key(header::ORIGIN) {
        return Err("a page of another origin may not use a node without tenants (--tenants)");
    }
    let host = host(headers, uri);
    let name = host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
    let name = name.map_or(host, |(name, _)| name).trim_matches(['[', ']']);
    let own = peers.own.as_ref().and_then(|own| own.parse::<Uri>().ok());
    let is_own = own.as_ref().and_then(Uri::host).is_some_and(|own| own.eq_ignore_ascii_case(name));
    let is_meant = name.is_empty() || name == "localhost" || name.parse::<IpAddr>().is_ok();
    if is_meant || is_own {
        return Ok(());
    }
    Err(
        "a node without tenants (--tenants) is called by its IP address, localhost, or the name in --advertise",
    )
}

/// Whether a page has sent the request that does not come from where the request goes to.
fn is_of_other_origin(headers: &HeaderMap, uri: &Uri) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else { return false };
    let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    origin.is_none_or(|(_, from)| !from.eq_ignore_ascii_case(host(headers, uri)))
}

/// The name that the client has for this node, and the port.
fn host<'a>(headers: &'a HeaderMap, uri: &'a Uri) -> &'a str {
    let host = headers.get(header::HOST).map(|host| host.to_str().unwrap_or_default());
    uri.authority().map(|authority| authority.as_str()).or(host).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::credentials::Credentials;
    use http::HeaderValue;

    const TOKEN: &str = "a token";

    fn hex(token: &str) -> String {
        HEXLOWER_PERMISSIVE.encode(&fingerprint(token.as_bytes()))
    }

    fn with(lines: &str) -> Authority {
        let accounts = Accounts::parse(lines).expect("accounts");
        Authority { accounts: Some((PathBuf::new(), Mutex::new(Arc::new(accounts)))), signed: None }
    }

    fn headers(of: &[(&'static str, &str)]) -> HeaderMap {
        let value = |text: &str| HeaderValue::from_str(text).expect("a value");
        of.iter().map(|(name, text)| ((*name).parse().expect("a name"), value(text))).collect()
    }

    #[test]
    fn a_token_or_a_certificate_is_of_a_tenant() {
        let lines =
            format!("# people\nann {}\n@nodes {}\nbob {}\n", hex(TOKEN), hex("n"), hex("der"));
        let authority = with(&lines);
        let uri = Uri::default();
        let caller = |of: &[(&'static str, &str)], certificate: Option<&str>| {
            let certificate = certificate.map(|der| fingerprint(der.as_bytes()));
            authority.caller(&headers(of), &uri, certificate, &PeerRules::default())
        };
        let ann = Caller { tenant: Namespace::of_tenant("ann"), is_node: false };
        assert_eq!(caller(&[("authorization", "Bearer a token")], None), Ok(ann.clone()));
        let bob = Caller { tenant: Namespace::of_tenant("bob"), is_node: false };
        assert_eq!(caller(&[], Some("der")), Ok(bob));
        for wrong in ["Bearer another", "Basic a token", "Bearer", ""] {
            assert!(caller(&[("authorization", wrong)], Some("der")).is_err(), "{wrong:?}");
        }
        assert!(caller(&[], None).is_err() && caller(&[], Some("other")).is_err());
        // A tenant acts for nobody else, and a node for a tenant that it names.
        let claims = [("authorization", "Bearer a token"), (TENANT_HEADER, "bob")];
        assert_eq!(caller(&claims, None), Ok(ann));
        let node = Caller { tenant: Namespace::of_tenant("bob"), is_node: true };
        assert_eq!(
            caller(&[("authorization", "Bearer n"), (TENANT_HEADER, "bob")], None),
            Ok(node)
        );
        assert!(caller(&[("authorization", "Bearer n")], None).is_err());
    }

    #[test]
    fn a_wrong_list_is_refused_and_not_repeated() {
        for wrong in ["", "ann", "ann x", "a/b 00", "ann secret token"] {
            let why = Accounts::parse(wrong).expect_err(wrong);
            assert!(!format!("{why:#}").contains("secret"), "{why:#}");
        }
        let twice = format!("ann {}\nbob {}", hex(TOKEN), hex(TOKEN));
        assert!(Accounts::parse(&twice).is_err());
    }

    #[test]
    fn pages_of_a_browser_can_not_use_an_open_node() {
        let open = Authority { accounts: None, signed: None };
        let call = |of: &[(&'static str, &str)]| {
            open.caller(&headers(of), &Uri::default(), None, &PeerRules::default())
        };
        for host in ["127.0.0.1:8642", "localhost:8642", "[::1]:8642", "localhost", "[::1]"] {
            assert!(call(&[("host", host)]).is_ok(), "{host}");
        }
        assert!(call(&[("host", "evil.example:8642")]).is_err());
        let other = [("host", "127.0.0.1:8642"), ("origin", "http://evil.example")];
        assert!(call(&other).is_err());
        // Another node calls it by the name that it has said.
        let own = Some("http://node-1:8642".to_owned());
        let fleet = PeerRules { own, ..PeerRules::default() };
        let passed_on = |host: &str| {
            let headers = headers(&[("host", host), (TENANT_HEADER, "")]);
            open.caller(&headers, &Uri::default(), None, &fleet).map(|it| it.is_node)
        };
        for own in ["node-1:8642", "NODE-1:8642", "node-1", "127.0.0.1:8642"] {
            assert_eq!(passed_on(own), Ok(true), "{own}");
        }
        assert!(passed_on("node-2:8642").is_err());
    }

    #[test]
    fn pages_of_other_origins_can_not_use_a_certificate() {
        let authority = with(&format!("ann {}\nbob {}", hex(TOKEN), hex("der")));
        let call = |of: &[(&'static str, &str)]| {
            let host = [("host", "node.example:8642")];
            let headers = headers(&[&host, of].concat());
            authority.caller(
                &headers,
                &"/v1".parse().expect("a URI"),
                Some(fingerprint(b"der")),
                &PeerRules::default(),
            )
        };
        for own in ["https://node.example:8642", "https://NODE.example:8642"] {
            assert!(call(&[("origin", own)]).is_ok(), "{own}");
        }
        for other in ["https://evil.example", "https://node.example:1", "null", ""] {
            assert!(call(&[("origin", other)]).is_err(), "{other}");
            // A page has to be given a token.
            let with_token = [("origin", other), ("authorization", "Bearer a token")];
            assert!(call(&with_token).is_ok(), "{other}");
        }
        let other = headers(&[("origin", "https://other.example")]);
        let uri = "https://other.example/v1".parse().expect("a URI");
        let rules = PeerRules::default();
        assert!(
            authority.caller(&other, &uri, Some(fingerprint(b"der")), &rules).is_ok(),
            "HTTP/2"
        );
    }

    #[test]
    fn only_nodes_of_a_fleet_pass_requests_on() {
        let open = Authority { accounts: None, signed: None };
        let is_node = |peers: &PeerRules, token: Option<&str>| {
            let token = token.map(|token| ("authorization", token));
            let all: Vec<_> = [(TENANT_HEADER, "")].into_iter().chain(token).collect();
            open.caller(&headers(&all), &Uri::default(), None, peers).map(|it| it.is_node)
        };
        let alone = PeerRules::default();
        assert_eq!(is_node(&alone, None), Ok(false));
        let fleet = PeerRules { own: Some("http://127.0.0.1:1".to_owned()), ..alone };
        assert_eq!(is_node(&fleet, None), Ok(true));
        let credentials = Arc::new(Credentials::of_token("n"));
        let secret = PeerRules { credentials, ..fleet };
        assert_eq!(is_node(&secret, Some("Bearer n")), Ok(true));
        assert!(is_node(&secret, None).is_err() && is_node(&secret, Some("Bearer x")).is_err());
        let client = open.caller(&HeaderMap::new(), &Uri::default(), None, &secret);
        assert_eq!(client, Ok(Caller::default()));
    }
}
