//! Root certificates: those built in or the system's, and the file that `SSL_CERT_FILE` names. The file
//! may be a pipe that nobody writes to, or a device without an end, and a system may have hundreds of
//! files, so they are read by a thread of its own, in bounded time; the conversation goes on meanwhile.

use crate::support::lock;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::error::Error;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// Bytes of the file. Mozilla's certificates in PEM take 0.2 MiB.
pub(in crate::engine) const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Root certificates to trust, or why they can't be used.
pub(crate) type Roots = Result<RootCertStore, String>;

/// Which root certificates are trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsRoots {
    /// Mozilla's, which are built in, and those of the file that `SSL_CERT_FILE` names.
    #[default]
    Builtin,
    /// The system's. As in other programs, the file that `SSL_CERT_FILE` names, or the folder that
    /// `SSL_CERT_DIR` names, takes their place.
    System,
}

/// Reads root certificates.
#[derive(Debug)]
pub(crate) struct RootsReader {
    roots: TlsRoots,
    file: Option<PathBuf>,
    /// Runs that are cancelled while certificates are read must not leave a thread each: the next run
    /// waits for the same thread.
    reading: Mutex<Option<watch::Receiver<Option<Roots>>>>,
}

impl RootsReader {
    /// For `roots` and the file that `SSL_CERT_FILE` names. Nothing is read yet.
    pub(crate) fn new(roots: TlsRoots, file: Option<PathBuf>) -> Self {
        Self { roots, file, reading: Mutex::new(None) }
    }

    /// There is nothing to read: they are Mozilla's.
    pub(crate) fn are_built_in(&self) -> bool {
        self.roots == TlsRoots::Builtin && self.file.is_none()
    }

    /// The root certificates, if they can be read within `limit`.
    pub(crate) async fn roots(&self, limit: Duration) -> Roots {
        if self.are_built_in() {
            return Ok(mozilla());
        }
        let read = match self.reading() {
            Ok(mut reading) => match timeout(limit, reading.wait_for(Option::is_some)).await {
                Ok(read) => {
                    self.forget();
                    let read = read.ok().and_then(|read| read.clone());
                    read.unwrap_or_else(|| Err("reading it ended without a result".to_owned()))
                }
                Err(_) => Err(format!("it could not be read within {limit:?}")),
            },
            Err(error) => Err(error.to_string()),
        };
        read.map_err(|why| match &self.file {
            Some(path) => format!("{}: {why}", path.display()),
            None => format!("the system's store: {why}"),
        })
    }

    /// The reading that is under way, or a new one.
    fn reading(&self) -> std::io::Result<watch::Receiver<Option<Roots>>> {
        let mut reading = lock(&self.reading);
        if let Some(reading) = &*reading {
            return Ok(reading.clone());
        }
        let (sender, receiver) = watch::channel(None);
        let (roots, file) = (self.roots, self.file.clone());
        thread::Builder::new().name("certificates".to_owned()).spawn(move || {
            let roots = match (roots, &file) {
                (TlsRoots::Builtin, Some(path)) => read(path, mozilla()),
                (TlsRoots::System, Some(path)) => read(path, RootCertStore::empty()),
                (TlsRoots::Builtin, None) => Ok(mozilla()),
                (TlsRoots::System, None) => system(),
            };
            let roots = roots.map_err(|error| error.to_string());
            sender.send_replace(Some(roots));
        })?;
        *reading = Some(receiver.clone());
        Ok(receiver)
    }

    /// The next run reads the file again: it may have been corrected.
    fn forget(&self) {
        *lock(&self.reading) = None;
    }
}

/// The root certificates that are built in.
pub(crate) fn mozilla() -> RootCertStore {
    webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect()
}

/// The root certificates of the system's store.
fn system() -> Result<RootCertStore, Box<dyn Error>> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    match (roots.add_parsable_certificates(found.certs), found.errors.first()) {
        ((1.., _), _) => Ok(roots),
        ((0, _), Some(error)) => Err(format!("it has no usable certificate ({error})").into()),
        ((0, _), None) => Err("it has no usable certificate".into()),
    }
}

/// `roots`, and the certificates of the file at `path`.
fn read(path: &Path, mut roots: RootCertStore) -> Result<RootCertStore, Box<dyn Error>> {
    let mut pem = Vec::new();
    let bytes = File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut pem)?;
    if u64::try_from(bytes)? > FILE_BYTES_MAX {
        return Err(format!("it is larger than {FILE_BYTES_MAX} bytes").into());
    }
    let certificates = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>()?;
    // An unusable certificate is ignored, as in any other such file of a system; if all are unusable,
    // the file is the wrong one.
    match roots.add_parsable_certificates(certificates) {
        (0, unusable) => {
            Err(format!("it has no usable certificate, and {unusable} unusable ones").into())
        }
        (1.., _) => Ok(roots),
    }
}
