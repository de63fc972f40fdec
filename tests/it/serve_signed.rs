//! Tokens that an identity provider has signed, and certificates of clients.

use crate::frames::{Frame, finished_text, submit};
use crate::postgres_server::{Database, PASSWORD};
use crate::serve_node::{LISTEN, Node, Talk, attach, attach_over, wait, with_root};
use crate::serve_tenants::{hash, line};
use crate::server::{Folder, Launch};
use data_encoding::BASE64URL_NOPAD;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
    RsaKeyPair, RsaPublicKeyComponents,
};
use rustix::process::Signal;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};
use tonic::Code;
use tonic::transport::{Certificate, ClientTlsConfig, Identity};

const ISSUER: &str = "https://login.example";
const AUDIENCE: &str = "duologue";

fn data(name: &str) -> String {
    format!("{}/tests/data/tls/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn base64(bytes: impl AsRef<[u8]>) -> String {
    BASE64URL_NOPAD.encode(bytes.as_ref())
}

/// A key of the identity provider.
enum Signer {
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
    /// The secret is what everybody knows of a key.
    Hmac(Vec<u8>),
    /// It signs nothing.
    Nothing,
}

impl Signer {
    fn rsa() -> Self {
        let key = PrivatePkcs8KeyDer::from_pem_file(data("rsa.key")).expect("a key");
        Self::Rsa(RsaKeyPair::from_pkcs8(key.secret_pkcs8_der()).expect("a key"))
    }

    fn ec() -> Self {
        let random = SystemRandom::new();
        let kind = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(kind, &random).expect("a key");
        Self::Ec(EcdsaKeyPair::from_pkcs8(kind, document.as_ref(), &random).expect("a key"))
    }

    fn ed() -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
        Self::Ed(Ed25519KeyPair::from_pkcs8(document.as_ref()).expect("a key"))
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Rsa(_) => "RS256",
            Self::Ec(_) => "ES256",
            Self::Ed(_) => "EdDSA",
            Self::Hmac(_) => "HS256",
            Self::Nothing => "none",
        }
    }

    /// The public key.
    fn jwk(&self, id: &str) -> Value {
        match self {
            Self::Rsa(key) => {
                let RsaPublicKeyComponents { n, e } =
                    RsaPublicKeyComponents::<Vec<u8>>::from(key.public());
                json!({"kty": "RSA", "kid": id, "n": base64(n), "e": base64(e)})
            }
            Self::Ec(key) => {
                let (x, y) = key.public_key().as_ref()[1..].split_at(32);
                let (x, y) = (base64(x), base64(y));
                json!({"kty": "EC", "crv": "P-256", "alg": "ES256", "kid": id, "x": x, "y": y})
            }
            Self::Ed(key) => {
                let x = base64(key.public_key().as_ref());
                json!({"kty": "OKP", "crv": "Ed25519", "use": "sig", "kid": id, "x": x})
            }
            Self::Hmac(secret) => json!({"kty": "oct", "kid": id, "k": base64(secret)}),
            Self::Nothing => Value::Null,
        }
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).expect("signed");
                signature
            }
            Self::Ec(key) => key.sign(&random, message).expect("signed").as_ref().to_vec(),
            Self::Ed(key) => key.sign(message).as_ref().to_vec(),
            Self::Hmac(secret) => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
                hmac::sign(&key, message).as_ref().to_vec()
            }
            Self::Nothing => Vec::new(),
        }
    }

    /// A token with these claims, which says that the key of that id has signed it.
    fn token(&self, id: &str, claims: &Value) -> String {
        let header = json!({"alg": self.algorithm(), "kid": id, "typ": "JWT"});
        self.token_with(&header, claims)
    }

    fn token_with(&self, header: &Value, claims: &Value) -> String {
        let signed = format!("{}.{}", base64(header.to_string()), base64(claims.to_string()));
        format!("{signed}.{}", base64(self.sign(signed.as_bytes())))
    }
}

/// Claims of a tenant that are good for an hour, changed by `more`.
fn claims(tenant: &str, more: &Value) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_secs();
    let mut claims =
        json!({"iss": ISSUER, "aud": [AUDIENCE, "other"], "exp": now + 3600, "org": tenant});
    for (name, value) in more.as_object().expect("an object") {
        claims[name] = value.clone();
    }
    claims
}

/// A node that takes tokens by these keys.
fn node(keys: &str, more: &[&str]) -> Node {
    let signed = ["--jwks", keys, "--jwt-issuer", ISSUER, "--jwt-audience", AUDIENCE];
    let rest = ["serve", "--engine", "echo", "--log-level", "info", "--jwt-tenant-claim", "org"];
    Node::launch(Launch::new(&[&rest, LISTEN, &signed, more].concat()))
}

fn attached(node: &Node, token: &str) -> Result<Talk, String> {
    node.attach_with(Some(token), attach("s")).map_err(|status| {
        assert_eq!(status.code(), Code::Unauthenticated);
        status.message().to_owned()
    })
}

#[test]
fn a_signed_token_is_of_the_tenant_that_it_names() {
    let folder = Folder::new();
    let keys = folder.name("keys.json");
    let all = [("rsa", Signer::rsa()), ("ec", Signer::ec()), ("ed", Signer::ed())];
    let mut set: Vec<_> = all.iter().map(|(id, signer)| signer.jwk(id)).collect();
    // Providers have keys for other purposes as well.
    set.push(json!({"kty": "RSA", "alg": "RSA-OAEP", "use": "enc", "kid": "enc", "n": "AQAB", "e": "AQAB"}));
    fs::write(&keys, json!({ "keys": set }).to_string()).expect("a file");
    let node = node(&keys, &[]);
    for (number, (id, signer)) in all.iter().enumerate() {
        let token = signer.token(id, &claims("ann", &json!({})));
        let mut talk = attached(&node, &token).expect(id);
        talk.send(submit("r", "hello"));
        assert_eq!(talk.wait_done("r"), "ok");
        let other = signer.token(id, &claims(&format!("other{number}"), &json!({})));
        let mut talk = attached(&node, &other).expect("attached");
        assert_eq!(talk.wait("a snapshot", Frame::is_snapshot).messages().len(), 0, "it is alone");
    }
}

#[test]
fn a_token_that_is_not_good_is_refused() {
    let folder = Folder::new();
    let keys = folder.name("keys.json");
    let (rsa, ec) = (Signer::rsa(), Signer::ec());
    let set = json!({ "keys": [rsa.jwk("rsa"), ec.jwk("ec")] });
    fs::write(&keys, set.to_string()).expect("a file");
    let node = node(&keys, &[]);
    let good = json!({});
    let check = |token: String, expected: &str| {
        let why = attached(&node, &token).err().unwrap_or_else(|| panic!("taken: {expected}"));
        assert!(why.contains(expected), "{expected}: {why}");
    };
    assert!(attached(&node, &rsa.token("rsa", &claims("ann", &good))).is_ok());
    let with = |more: Value| rsa.token("rsa", &claims("ann", &more));
    check(with(json!({"exp": 1000})), "expired");
    check(with(json!({"exp": null})), "must have exp");
    check(with(json!({"exp": "tomorrow"})), "");
    check(with(json!({"nbf": 99999999999_u64})), "not valid yet");
    check(with(json!({"iss": "https://evil.example"})), "another issuer");
    check(with(json!({"iss": null})), "must have exp, iss and aud");
    check(with(json!({"aud": "other"})), "another audience");
    check(with(json!({"aud": null})), "must have exp, iss and aud");
    for wrong in [json!("a/b"), json!(""), json!("@nodes"), json!(7), Value::Null] {
        check(with(json!({ "org": wrong })), "names no tenant");
    }
    // What a token says of its algorithm counts for nothing.
    let public = BASE64URL_NOPAD.decode(rsa.jwk("")["n"].as_str().expect("n").as_bytes());
    let claims = claims("ann", &good);
    check(Signer::Hmac(public.expect("bytes")).token("rsa", &claims), "another algorithm");
    check(Signer::Nothing.token("rsa", &claims), "");
    check(ec.token("rsa", &claims), "another algorithm");
    check(Signer::ec().token("ec", &claims), "signature of the token is wrong");
    check(rsa.token("unknown", &claims), "key that the token is signed with");
    check(rsa.token_with(&json!({"alg": "RS256"}), &claims), "key that the token is signed with");
    let critical = json!({"alg": "RS256", "kid": "rsa", "crit": ["x"], "x": 1});
    check(rsa.token_with(&critical, &claims), "critical header");
    let changed = rsa.token("rsa", &claims);
    let (head, rest) = changed.split_once('.').expect("a token");
    let (_, signature) = rest.split_once('.').expect("a token");
    let forged = claims.to_string().replace("ann", "bob");
    check(format!("{head}.{}.{signature}", base64(forged)), "signature of the token is wrong");
    check("a.b.c".to_owned(), "no JSON Web Token");
    check("a".to_owned(), "not known here");
}

#[test]
fn keys_are_read_again_and_a_shared_secret_is_none() {
    let folder = Folder::new();
    let keys = folder.name("keys.json");
    let (old, new) = (Signer::ed(), Signer::ed());
    let write = |signer: &Signer| {
        fs::write(&keys, json!({ "keys": [signer.jwk("k")] }).to_string()).expect("a file");
    };
    write(&old);
    let tenants = folder.name("tenants");
    fs::write(&tenants, line("bob", "token-of-bob")).expect("a file");
    let node = node(&keys, &["--tenants", &tenants]);
    let claims = claims("ann", &json!({}));
    assert!(attached(&node, &old.token("k", &claims)).is_ok());
    assert!(attached(&node, "token-of-bob").is_ok(), "those in the file as well");
    write(&new);
    node.server.signal(Signal::HUP);
    node.server.wait_log("read again");
    assert!(attached(&node, &new.token("k", &claims)).is_ok());
    assert!(attached(&node, &old.token("k", &claims)).is_err());
    // Each file that can't be used is named.
    write(&Signer::Hmac(vec![1; 32]));
    fs::write(&tenants, "bob\n").expect("a file");
    node.server.signal(Signal::HUP);
    node.server.wait_log("goes on as before");
    node.server.wait_log("must have the name of a tenant");
    node.server.wait_log("shared secret");
    assert!(attached(&node, "token-of-bob").is_ok());
    assert!(attached(&node, &new.token("k", &claims)).is_ok());
    let arguments = ["serve", "--engine", "echo", "--listen", "127.0.0.1:0", "--jwks", &keys];
    let mut alone = Launch::new(&arguments).start();
    assert_eq!(alone.exit_status().code(), Some(2));
    alone.wait_log("--jwt-issuer");
}

/// What a client of the fleet shows and trusts.
fn tls(shows: Option<(&str, &str)>) -> ClientTlsConfig {
    let read = |name: &str| fs::read(data(name)).expect("a file");
    let tls = ClientTlsConfig::new().domain_name("localhost");
    let tls = tls.ca_certificate(Certificate::from_pem(read("ca.pem")));
    match shows {
        None => tls,
        Some((chain, key)) => tls.identity(Identity::from_pem(read(chain), read(key))),
    }
}

#[test]
fn a_certificate_is_of_a_tenant() {
    let folder = Folder::new();
    let tenants = folder.name("tenants");
    let certificate = CertificateDer::from_pem_file(data("fleet_client.pem")).expect("one");
    let lines = format!("carol {}\n", hash(&certificate)) + &line("ann", "token-of-ann");
    fs::write(&tenants, lines).expect("a file");
    let [chain, key, authority] = ["server.pem", "server.key", "fleet_ca.pem"].map(data);
    let files = ["--tls-cert", &chain, "--tls-key", &key, "--client-ca", &authority];
    let store = folder.name("store.db");
    let node = Node::start(&[&files[..], &["--tenants", &tenants, "--store", &store]].concat());
    let with = |shows, token| attach_over(&node, tls(shows), token, attach("s"));
    let own = Some(("fleet_client.pem", "fleet_client.key"));
    let mut talk = with(own, None).expect("attached");
    talk.send(submit("r", "hello from carol"));
    assert_eq!(talk.wait_done("r"), "ok");
    let mut other = with(None, Some("token-of-ann")).expect("attached");
    assert_eq!(other.wait("a snapshot", Frame::is_snapshot).messages().len(), 0);
    // A token counts for more than the certificate beside it.
    let mut other = with(own, Some("token-of-ann")).expect("attached");
    assert_eq!(other.wait("a snapshot", Frame::is_snapshot).messages().len(), 0);
    assert_eq!(with(None, None).err().map(|it| it.code()), Some(Code::Unauthenticated));
    // One that the authority has not signed does not get as far.
    let unknown = Some(("client.pem", "client.key"));
    let refused = with(unknown, None).err().map(|it| it.code());
    assert!(matches!(refused, Some(Code::Unknown | Code::Unavailable)), "{refused:?}");
    let port = node.address.rsplit_once(':').expect("a port").1;
    let authority = fs::read(data("ca.pem")).expect("a file");
    let status = wait(async {
        let client = with_root(Some(&authority));
        let sent = client.get(format!("https://localhost:{port}/v1/info")).send().await;
        sent.expect("an answer").status().as_u16()
    });
    assert_eq!(status, 401);
}

#[test]
fn nodes_pass_clients_on_over_tls_and_each_to_its_tenant() {
    needs!(Postgres);
    let database = Database::new();
    let folder = Folder::new();
    let [tenants, token] = ["tenants", "token"].map(|name| folder.name(name));
    let lines = line("ann", "token-of-ann") + &line("bob", "token-of-bob");
    fs::write(&tenants, lines + &line("@nodes", "token-of-nodes")).expect("a file");
    fs::write(&token, "token-of-nodes\n").expect("a file");
    let [chain, key, authority] = ["server.pem", "server.key", "ca.pem"].map(data);
    let dsn = database.bare_dsn();
    let start = |node_token: &str| {
        let fleet =
            ["--store", &dsn, "--advertise", "https://localhost:0", "--node-ca", &authority];
        let who = ["--tenants", &tenants, "--node-token-file", node_token];
        let over = ["--tls-cert", &chain, "--tls-key", &key];
        let all = [&["serve", "--engine", "echo"], LISTEN, &fleet, &who, &over].concat();
        Node::launch(Launch::new(&all).secret("PGPASSWORD", PASSWORD))
    };
    let (one, other) = (start(&token), start(&token));
    let with = |node: &Node, token| attach_over(node, tls(None), Some(token), attach("s"));
    let mut here = with(&one, "token-of-ann").expect("attached");
    here.send(submit("r", "hello"));
    assert_eq!(here.wait_done("r"), "ok");
    let mut there = with(&other, "token-of-ann").expect("passed on");
    let snapshot = there.wait("a snapshot", Frame::is_snapshot);
    assert_eq!(snapshot.messages()[1].1, "Turn 1. You said: hello");
    there.send(submit("r2", "from elsewhere"));
    assert_eq!(there.wait_done("r2"), "ok");
    assert_eq!(here.wait_done("r2"), "ok");
    assert!(finished_text(&here.frames(), "r2").starts_with("Turn 2"));
    // The same id is another conversation for another tenant, also through another node.
    let mut bob = with(&other, "token-of-bob").expect("attached");
    assert_eq!(bob.wait("a snapshot", Frame::is_snapshot).messages().len(), 0);
    let port = other.address.rsplit_once(':').expect("a port").1;
    let read = fs::read(&authority).expect("a file");
    let held = |token: &str| {
        wait(async {
            let url = format!("https://localhost:{port}/v1/sessions");
            let sent = with_root(Some(&read)).get(url).bearer_auth(token).send().await;
            sent.expect("an answer").text().await.expect("a body")
        })
    };
    assert!(held("token-of-ann").contains("\"turns\":2"));
    assert!(!held("token-of-bob").contains("hello"));
    // A node whose token the others do not know reaches nothing of theirs.
    let wrong = folder.name("wrong");
    fs::write(&wrong, "another\n").expect("a file");
    let stranger = start(&wrong);
    let refused = with(&stranger, "token-of-ann").err().expect("refused");
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    assert!(refused.message().contains("--node-token-file"), "{refused}");
}

/// Its conversations stay where they are meanwhile.
#[test]
fn what_nodes_know_each_other_by_is_read_again() {
    needs!(Postgres);
    let database = Database::new();
    let folder = Folder::new();
    let name = |name: &str| folder.name(name);
    let [tenants, token, wrong, ca] = ["tenants", "token", "wrong", "ca.pem"].map(name);
    let lines = line("ann", "token-of-ann") + &line("@nodes", "token-of-nodes");
    fs::write(&tenants, lines).expect("a file");
    fs::write(&token, "token-of-nodes\n").expect("a file");
    fs::write(&wrong, "another\n").expect("a file");
    let [chain, key, authority] = ["server.pem", "server.key", "ca.pem"].map(data);
    fs::copy(data("self_signed.pem"), &ca).expect("a file");
    let dsn = database.bare_dsn();
    let start = |token: &str, ca: &str| {
        let fleet = ["--store", &dsn, "--advertise", "https://localhost:0", "--node-ca", ca];
        let who = ["--tenants", &tenants, "--node-token-file", token, "--log-level", "info"];
        let over = ["--tls-cert", &chain, "--tls-key", &key];
        let all = [&["serve", "--engine", "echo"], LISTEN, &fleet, &who, &over].concat();
        Node::launch(Launch::new(&all).secret("PGPASSWORD", PASSWORD))
    };
    let (one, other) = (start(&token, &authority), start(&wrong, &ca));
    let with = |node: &Node| attach_over(node, tls(None), Some("token-of-ann"), attach("s"));
    let mut here = with(&one).expect("attached");
    here.send(submit("r", "hello"));
    assert_eq!(here.wait_done("r"), "ok");
    fs::copy(&authority, &ca).expect("a file");
    fs::copy(&token, &wrong).expect("a file");
    other.server.signal(Signal::HUP);
    other.server.wait_log("read again");
    let mut there = with(&other).expect("passed on");
    let snapshot = there.wait("a snapshot", Frame::is_snapshot);
    assert_eq!(snapshot.messages()[1].1, "Turn 1. You said: hello");
}
