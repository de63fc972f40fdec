//! TLS to a PostgreSQL server, and which certificates are accepted.

use super::address::{Address, Authorities, Identity, Tls};
use super::certificate;
use crate::engine::provider::roots::{RootsReader, TlsRoots};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::{Connect, TlsConnector};

/// Bytes of a file with a certificate or a key.
const PEM_BYTES_MAX: u64 = 1024 * 1024;

/// How long certificates are read.
const ROOTS_READ_MAX: Duration = Duration::from_secs(5);

/// Makes connections encrypted.
#[derive(Clone)]
pub(super) struct Connector(Arc<ClientConfig>);

/// A handshake with one host.
pub(super) struct Handshake {
    config: Arc<ClientConfig>,
    host: ServerName<'static>,
}

/// An encrypted connection.
pub(super) struct Encrypted<S>(tokio_rustls::client::TlsStream<S>);

/// A handshake that goes on.
pub(super) struct Encrypting<S>(Connect<S>);

impl Connector {
    /// For the protection of an address. Reads the certificates that it needs.
    pub(super) async fn new(address: &Address) -> Result<Self, String> {
        let provider = Arc::new(ring::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match &address.tls {
            Tls::Off | Tls::Preferred | Tls::Unverified => {
                Arc::new(AnyCertificate { provider: Arc::clone(&provider) })
            }
            Tls::Authority(authorities) => Arc::new(trusted(authorities, &provider, false).await?),
            Tls::Host(authorities) => Arc::new(trusted(authorities, &provider, true).await?),
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let config = match &address.identity {
            None => config.with_no_client_auth(),
            Some(identity) => {
                let (certificates, key) = own_certificate(identity)?;
                let config = config.with_client_auth_cert(certificates, key);
                config.map_err(|error| format!("sslcert and sslkey can't be used: {error}"))?
            }
        };
        Ok(Self(Arc::new(config)))
    }
}

/// The certificates and the key of this client.
fn own_certificate(
    identity: &Identity,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
    let Identity { certificates, key } = identity;
    let unread = |option: &str, path: &Path, why: &dyn fmt::Display| {
        format!("{option} can't be read from {}: {why}", path.display())
    };
    let read = |option, path: &Path, is_secret| {
        read_regular(path, is_secret).map_err(|why| unread(option, path, &why))
    };
    let text = read("sslcert", certificates, false)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain.map_err(|error| unread("sslcert", certificates, &error))?;
    let text = read("sslkey", key, true)?;
    let key =
        PrivateKeyDer::from_pem_slice(&text).map_err(|error| unread("sslkey", key, &error))?;
    Ok((chain, key))
}

/// A regular file up to a limit; one with a secret only if nobody but its owner may read it, as libpq
/// wants it.
fn read_regular(path: &Path, is_secret: bool) -> Result<Vec<u8>, String> {
    let about = path.metadata().map_err(|error| error.to_string())?;
    if !about.is_file() || about.len() > PEM_BYTES_MAX {
        return Err("it is no file of certificates or keys".to_owned());
    }
    if is_secret && about.mode() & 0o077 != 0 {
        return Err("other users may read it; run chmod 600 on it".to_owned());
    }
    fs::read(path).map_err(|error| error.to_string())
}

async fn trusted(
    authorities: &Authorities,
    provider: &Arc<CryptoProvider>,
    checks_host: bool,
) -> Result<Trusted, String> {
    let reader = match authorities {
        Authorities::Builtin => {
            let file = std::env::var_os("SSL_CERT_FILE").filter(|path| !path.is_empty());
            RootsReader::new(TlsRoots::Builtin, file.map(PathBuf::from))
        }
        Authorities::System => RootsReader::new(TlsRoots::System, None),
        Authorities::File(path) => RootsReader::new(TlsRoots::System, Some(path.clone())),
    };
    let roots = reader.roots(ROOTS_READ_MAX).await;
    let roots = roots.map_err(|why| format!("root certificates can't be read: {why}"))?;
    let roots = Arc::new(roots);
    let builder =
        WebPkiServerVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(provider));
    let chain = builder.build().map_err(|error| error.to_string())?;
    Ok(Trusted { chain, roots, checks_host })
}

/// Whether the certificate is for another host, and nothing else is wrong with it.
fn is_of_name(error: &Error) -> bool {
    use CertificateError::{NotValidForName, NotValidForNameContext};
    matches!(error, Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. }))
}

/// Accepts every certificate whose owner makes the handshake.
#[derive(Debug)]
struct AnyCertificate {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Accepts the certificates of authorities, and those of servers that are named as an authority, as libpq
/// does: that of a server which has signed its own certificate.
#[derive(Debug)]
struct Trusted {
    chain: Arc<WebPkiServerVerifier>,
    roots: Arc<RootCertStore>,
    /// The certificate must be for the host.
    checks_host: bool,
}

impl Trusted {
    /// Whether the key and the name of the certificate are those of a root.
    fn is_root(&self, certificate: &CertificateDer<'_>) -> bool {
        let mut own = RootCertStore::empty();
        let added = own.add(certificate.clone().into_owned());
        added.is_ok() && own.roots.iter().all(|it| self.roots.roots.contains(it))
    }
}

impl ServerCertVerifier for Trusted {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        use CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
        let verified = match self.chain.verify_server_cert(certificate, between, host, ocsp, now) {
            // The dates are checked first.
            Err(Error::InvalidCertificate(
                why @ (Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. }),
            )) => Err(Error::InvalidCertificate(why)),
            Err(error) if !is_of_name(&error) && self.is_root(certificate) => {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, host)
            }
            verified => verified.map(drop),
        };
        match verified {
            // The name is checked last: with a wrong one everything else is right.
            Err(error) if is_of_name(&error) => {
                let is_right = !self.checks_host || certificate::is_named(certificate, host);
                if is_right { Ok(ServerCertVerified::assertion()) } else { Err(error) }
            }
            verified => verified.map(|()| ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chain.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chain.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
    }
}

impl<S> MakeTlsConnect<S> for Connector
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Encrypted<S>;
    type TlsConnect = Handshake;
    type Error = InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, InvalidDnsNameError> {
        // Without a name (a socket of the system) there is no TLS either.
        let host = if host.is_empty() { "localhost" } else { host };
        let host = ServerName::try_from(host)?.to_owned();
        Ok(Handshake { config: Arc::clone(&self.0), host })
    }
}

impl<S> TlsConnect<S> for Handshake
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Encrypted<S>;
    type Error = io::Error;
    type Future = Encrypting<S>;

    fn connect(self, stream: S) -> Encrypting<S> {
        Encrypting(TlsConnector::from(self.config).connect(self.host, stream))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Future for Encrypting<S> {
    type Output = io::Result<Encrypted<S>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map_ok(Encrypted)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Encrypted<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
    }
}
