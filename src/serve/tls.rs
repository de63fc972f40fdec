//! The certificates of a node; they are read again when they are renewed.

use crate::support::lock;
use anyhow::{Context, Result, ensure};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tokio_rustls::TlsAcceptor;

/// The protocols that are offered, the preferred one first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The files of the certificates, and what was read of them.
#[derive(Debug)]
pub(crate) struct Certificates {
    files: Files,
    config: Mutex<Arc<ServerConfig>>,
}

#[derive(Debug)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
    /// The authorities of clients, if these may show certificates.
    clients: Option<PathBuf>,
}

impl Certificates {
    /// Reads the certificate of the node with its key, and the authorities that sign those of clients.
    ///
    /// # Errors
    /// If one of the files can't be used.
    pub(crate) fn new(
        certificate: PathBuf,
        key: PathBuf,
        clients: Option<PathBuf>,
    ) -> Result<Self> {
        let files = Files { certificate, key, clients };
        let config = Mutex::new(Arc::new(files.read()?));
        Ok(Self { files, config })
    }

    /// Reads the files again; what was read before stays if they can't be used.
    pub(super) fn reload(&self) -> Result<()> {
        let config = Arc::new(self.files.read()?);
        *lock(&self.config) = config;
        Ok(())
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        Arc::clone(&lock(&self.config)).into()
    }
}

impl Files {
    fn read(&self) -> Result<ServerConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let own = chain(&self.certificate).context("--tls-cert")?;
        let path = self.key.display();
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .with_context(|| format!("--tls-key: {path} has no key in PEM that can be read"))?;
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let builder = match &self.clients {
            None => builder.with_no_client_auth(),
            Some(file) => {
                let mut roots = RootCertStore::empty();
                for root in chain(file).context("--client-ca")? {
                    roots.add(root).context("--client-ca")?;
                }
                // A client without a certificate may have a token.
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                        .allow_unauthenticated();
                builder.with_client_cert_verifier(verifier.build().context("--client-ca")?)
            }
        };
        let mut config = builder
            .with_single_cert(own, key)
            .context("--tls-cert and --tls-key do not belong together")?;
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        Ok(config)
    }
}

/// The certificates of a file, at least one.
pub(super) fn chain(file: &PathBuf) -> Result<Vec<CertificateDer<'static>>> {
    let path = file.display();
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain =
        read.with_context(|| format!("{path} has no certificates in PEM that can be read"))?;
    ensure!(!chain.is_empty(), "{path} has no certificate");
    Ok(chain)
}
