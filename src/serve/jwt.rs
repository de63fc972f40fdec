//! Tokens that an identity provider signs (JSON Web Tokens, RFC 7519), and the keys that they are checked with (a JWK
//! set, RFC 7517). A key says which algorithm it is for, and a token has no choice: RS256, ES256 or EdDSA.

use super::auth::is_name;
use crate::support::lock;
use anyhow::{Context, Result, bail, ensure};
use data_encoding::BASE64URL_NOPAD;
use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::jwk::{
    AlgorithmParameters, CommonParameters, EllipticCurve, Jwk, JwkSet, KeyAlgorithm, PublicKeyUse,
};
use jsonwebtoken::signature::{self, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, Validation, decode};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Bytes of a token; that of a person in many groups has some thousand.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// Bytes of the file of keys.
const KEYS_BYTES_MAX: u64 = 1024 * 1024;

/// Seconds by which the clocks of nodes and providers may differ.
const LEEWAY_S: u64 = 30;

/// Claims that tokens must have, and the keys that sign them.
#[derive(Clone, Debug)]
pub(crate) struct JwtRules {
    /// The file of the keys.
    pub(crate) keys: PathBuf,
    /// The issuer of the tokens (`iss`).
    pub(crate) issuer: String,
    /// The audience of the tokens (`aud`).
    pub(crate) audience: String,
    /// The claim that names the tenant.
    pub(crate) tenant_claim: String,
}

/// Checks tokens.
#[derive(Debug)]
pub(super) struct Tokens {
    rules: JwtRules,
    keys: Mutex<Arc<Keys>>,
}

/// The keys by their ids; one may have none.
#[derive(Debug)]
struct Keys(BTreeMap<String, Key>);

#[derive(Clone, Debug)]
struct Key {
    key: DecodingKey,
    algorithm: Algorithm,
}

impl Tokens {
    /// Reads the keys.
    ///
    /// # Errors
    /// If the file can't be used.
    pub(super) fn new(rules: JwtRules) -> Result<Self> {
        // Another part of the process may have installed a provider: the algorithms are the same.
        RING.install_default().ok();
        let keys = Mutex::new(Arc::new(Keys::read(&rules)?));
        Ok(Self { rules, keys })
    }

    /// Reads the keys again; if the file can't be used, the old ones stay.
    pub(super) fn reload(&self) -> Result<()> {
        let keys = Arc::new(Keys::read(&self.rules)?);
        *lock(&self.keys) = keys;
        Ok(())
    }

    /// The tenant that a token names.
    ///
    /// # Errors
    /// Why it is not taken, for people.
    pub(super) fn tenant(&self, token: &str) -> Result<String, &'static str> {
        let keys = Arc::clone(&lock(&self.keys));
        let Key { key, algorithm } = keys.find(&header(token)?)?;
        let JwtRules { issuer, audience, tenant_claim, .. } = &self.rules;
        let mut validation = Validation::new(*algorithm);
        validation.leeway = LEEWAY_S;
        validation.validate_nbf = true;
        validation.set_issuer(&[issuer]);
        validation.set_audience(&[audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        let claims = decode::<Map<String, Value>>(token, key, &validation);
        let claims = claims.map_err(|error| refusal(&error))?.claims;
        let tenant = claims.get(tenant_claim).and_then(Value::as_str).filter(|name| is_name(name));
        tenant
            .map(str::to_owned)
            .ok_or("the token names no tenant in the claim of --jwt-tenant-claim")
    }
}

/// Whether a token has the form of one that is signed.
pub(super) fn is_jwt(token: &str) -> bool {
    token.bytes().filter(|byte| *byte == b'.').count() == 2
}

const NOT_READABLE: &str = "the token is no JSON Web Token that can be read";

/// The header of a token, which has a say only in which key is meant.
fn header(token: &str) -> Result<Map<String, Value>, &'static str> {
    if token.len() > TOKEN_BYTES_MAX {
        return Err("the token is longer than any may be");
    }
    let (header, _) = token.split_once('.').ok_or(NOT_READABLE)?;
    let header = BASE64URL_NOPAD.decode(header.as_bytes()).map_err(|_| NOT_READABLE)?;
    let header: Map<String, Value> = serde_json::from_slice(&header).map_err(|_| NOT_READABLE)?;
    if header.contains_key("crit") {
        return Err("the token has a critical header that is not known here");
    }
    Ok(header)
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the library may get more of them")]
fn refusal(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::ExpiredSignature => "the token has expired; get a new one",
        ErrorKind::ImmatureSignature => "the token is not valid yet",
        ErrorKind::InvalidIssuer => "the token is of another issuer than --jwt-issuer names",
        ErrorKind::InvalidAudience => "the token is for another audience than --jwt-audience names",
        ErrorKind::MissingRequiredClaim(_) => "the token must have exp, iss and aud",
        ErrorKind::InvalidAlgorithm => {
            "the token is signed by another algorithm than its key is for"
        }
        ErrorKind::InvalidSignature => "the signature of the token is wrong",
        _ => NOT_READABLE,
    }
}

impl Keys {
    fn read(rules: &JwtRules) -> Result<Self> {
        let file = &rules.keys;
        let path = file.display();
        let read = || {
            let bytes = fs::metadata(file)?.len();
            ensure!(bytes <= KEYS_BYTES_MAX, "it is longer than {KEYS_BYTES_MAX} bytes");
            Ok::<_, anyhow::Error>(fs::read(file)?)
        };
        let text = read().with_context(|| format!("--jwks: {path} can't be read"))?;
        Self::parse(&text).with_context(|| format!("--jwks: {path} can't be used"))
    }

    fn parse(text: &[u8]) -> Result<Self> {
        let set: JwkSet = serde_json::from_slice(text).context("it is no JWK set")?;
        let mut keys = BTreeMap::new();
        for (number, jwk) in set.keys.iter().enumerate() {
            let at = number + 1;
            // Providers have keys for other purposes in the same set.
            let Some(algorithm) = algorithm(jwk).with_context(|| format!("key {at}"))? else {
                continue;
            };
            let key = DecodingKey::from_jwk(jwk).with_context(|| format!("key {at}"))?;
            let id = jwk.common.key_id.clone().unwrap_or_default();
            let known = keys.insert(id, Key { key, algorithm });
            ensure!(known.is_none(), "key {at} has the same id (kid) as another one");
        }
        ensure!(
            !keys.is_empty(),
            "it has no key for RS256, ES256 or EdDSA (Ed25519), so nobody would be served"
        );
        Ok(Self(keys))
    }

    /// The key that a header names; a header without an id means the only key.
    fn find(&self, header: &Map<String, Value>) -> Result<&Key, &'static str> {
        match header.get("kid") {
            Some(id) => id.as_str().and_then(|id| self.0.get(id)),
            None if self.0.len() == 1 => self.0.values().next(),
            None => None,
        }
        .ok_or("the key that the token is signed with is not known here")
    }
}

/// The algorithm that a key is for; `None` if tokens here are not signed with it. A secret that is shared with the
/// signer is refused: whoever has such a file could sign.
#[expect(clippy::wildcard_enum_match_arm, reason = "the library may get more of them")]
fn algorithm(jwk: &Jwk) -> Result<Option<Algorithm>> {
    let (algorithm, named) = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => (Algorithm::RS256, KeyAlgorithm::RS256),
        AlgorithmParameters::EllipticCurve(it) if it.curve == EllipticCurve::P256 => {
            (Algorithm::ES256, KeyAlgorithm::ES256)
        }
        AlgorithmParameters::OctetKeyPair(it) if it.curve == EllipticCurve::Ed25519 => {
            (Algorithm::EdDSA, KeyAlgorithm::EdDSA)
        }
        AlgorithmParameters::OctetKey(_) => {
            bail!("a shared secret (oct) is not taken; have tokens signed with a pair of keys")
        }
        _ => return Ok(None),
    };
    let CommonParameters { key_algorithm, public_key_use, .. } = &jwk.common;
    let is_meant = key_algorithm.is_none_or(|it| it == named)
        && !matches!(public_key_use, Some(PublicKeyUse::Encryption));
    Ok(is_meant.then_some(algorithm))
}

/// Checks signatures with ring, which TLS has in the program already.
static RING: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::InvalidAlgorithm.into()),
    verifier_factory: |algorithm, key| {
        Ok(Box::new(Signed { algorithm: *algorithm, key: key.clone() }))
    },
    key_utils: KeyUtils::new_unimplemented(),
};

/// Checks signatures of a key.
struct Signed {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl JwtVerifier for Signed {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for Signed {
    fn verify(&self, message: &[u8], signed: &Vec<u8>) -> Result<(), signature::Error> {
        let checked = match (self.algorithm, self.key.kind()) {
            (Algorithm::RS256, DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, message, signed)
            }
            (Algorithm::ES256, DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key).verify(message, signed)
            }
            (Algorithm::EdDSA, DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(&ED25519, key).verify(message, signed)
            }
            (_, _) => return Err(signature::Error::new()),
        };
        checked.map_err(|_| signature::Error::new())
    }
}
