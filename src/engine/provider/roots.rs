//! Root certificates of the user's: the file that `SSL_CERT_FILE` names. It may be a pipe that nobody
//! writes to, or a device without an end, so it is read by a thread of its own, in bounded time and
//! memory; the conversation goes on meanwhile.

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::error::Error;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// Bytes of the file. Mozilla's certificates in PEM take 0.2 MiB.
pub(in crate::engine) const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Mozilla's root certificates and those of the file, or why it can't be used.
pub(crate) type Roots = Result<RootCertStore, String>;

/// A file of root certificates.
#[derive(Debug)]
pub(crate) struct RootsFile {
    path: PathBuf,
    /// Runs that are cancelled while the file is read must not leave a thread each: the next run waits
    /// for the same thread.
    reading: Mutex<Option<watch::Receiver<Option<Roots>>>>,
}

impl RootsFile {
    /// The file at `path`, which is not read yet.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, reading: Mutex::new(None) }
    }

    /// Mozilla's root certificates and those of the file, if it can be read within `limit`.
    pub(crate) async fn roots(&self, limit: Duration) -> Roots {
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
        read.map_err(|why| format!("{}: {why}", self.path.display()))
    }

    /// The reading that is under way, or a new one.
    fn reading(&self) -> std::io::Result<watch::Receiver<Option<Roots>>> {
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reading) = &*reading {
            return Ok(reading.clone());
        }
        let (sender, receiver) = watch::channel(None);
        let path = self.path.clone();
        thread::Builder::new().name("certificates".to_owned()).spawn(move || {
            let roots = read(&path).map_err(|error| error.to_string());
            sender.send_replace(Some(roots));
        })?;
        *reading = Some(receiver.clone());
        Ok(receiver)
    }

    /// The next run reads the file again: it may have been corrected.
    fn forget(&self) {
        *self.reading.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// The root certificates that are built in.
pub(crate) fn mozilla() -> RootCertStore {
    webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect()
}

fn read(path: &Path) -> Result<RootCertStore, Box<dyn Error>> {
    let mut pem = Vec::new();
    let bytes = File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut pem)?;
    if u64::try_from(bytes)? > FILE_BYTES_MAX {
        return Err(format!("it is larger than {FILE_BYTES_MAX} bytes").into());
    }
    let certificates = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>()?;
    let mut roots = mozilla();
    // One that can't be used is ignored, as in any other such file of a system; if all are, the file
    // is the wrong one.
    match roots.add_parsable_certificates(certificates) {
        (0, unusable) => {
            Err(format!("it has no usable certificate, and {unusable} unusable ones").into())
        }
        (1.., _) => Ok(roots),
    }
}
