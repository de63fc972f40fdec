//! Credentials by which the nodes of a fleet know each other; they are read again when they are renewed.

use super::tls::chain;
use crate::support::lock;
use crate::yaml;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tonic::metadata::{Ascii, MetadataValue};

/// The files by which nodes know each other, and what was read of them.
#[derive(Debug, Default)]
pub(crate) struct Credentials {
    files: Files,
    read: Mutex<Arc<Credential>>,
}

#[derive(Debug, Default)]
struct Files {
    token: Option<PathBuf>,
    authority: Option<PathBuf>,
}

/// Credentials that nodes show each other.
#[derive(Debug, Default)]
pub(super) struct Credential {
    /// The token of all nodes, as a header.
    pub(super) token: Option<MetadataValue<Ascii>>,
    /// Authorities (PEM) of the certificates of nodes; `None`: those that the system trusts.
    pub(super) authority: Option<Vec<u8>>,
}

impl Credentials {
    /// Reads the token of the nodes, and the authorities of their certificates.
    ///
    /// # Errors
    /// If one of the files can't be used.
    pub(crate) fn new(token: Option<PathBuf>, authority: Option<PathBuf>) -> Result<Self> {
        let files = Files { token, authority };
        let read = Mutex::new(Arc::new(files.read()?));
        Ok(Self { files, read })
    }

    /// Reads the files again; what was read before stays if they can't be used.
    pub(super) fn reload(&self) -> Result<()> {
        let read = Arc::new(self.files.read()?);
        *lock(&self.read) = read;
        Ok(())
    }

    pub(super) fn newest(&self) -> Arc<Credential> {
        Arc::clone(&lock(&self.read))
    }

    #[cfg(test)]
    pub(super) fn of_token(token: &str) -> Self {
        let token = Some(format!("Bearer {token}").parse().expect("a value"));
        let read = Mutex::new(Arc::new(Credential { token, authority: None }));
        Self { files: Files::default(), read }
    }
}

impl Files {
    fn read(&self) -> Result<Credential> {
        let token = self.token.as_ref().map(|file| {
            let path = file.display();
            let token = fs::read_to_string(file);
            let token =
                token.with_context(|| format!("--node-token-file: {path} can't be read"))?;
            let token = yaml::without_mark(&token).trim();
            // With an empty token a caller that shows none would be taken for a node.
            ensure!(!token.is_empty(), "--node-token-file: {path} has no token");
            // The content of the file is not quoted.
            let value = format!("Bearer {token}").parse().ok();
            value
                .with_context(|| format!("--node-token-file: {path} has no token that can be sent"))
        });
        let authority = self.authority.as_ref().map(|file| {
            let read = fs::read(file);
            let read =
                read.with_context(|| format!("--node-ca: {} can't be read", file.display()))?;
            chain(file).context("--node-ca")?;
            anyhow::Ok(read)
        });
        Ok(Credential { token: token.transpose()?, authority: authority.transpose()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::test_folder::TestFolder;

    #[test]
    fn a_file_without_a_token_is_refused_and_the_old_token_stays() {
        let folder = TestFolder::new();
        let file = folder.file("token", "token-of-nodes\n");
        let credentials = Credentials::new(Some(file.clone()), None).expect("a token");
        for empty in ["", " \n", "\u{feff}\n"] {
            folder.file("token", empty);
            let why = credentials.reload().expect_err("no token").to_string();
            assert!(why.contains("--node-token-file") && why.contains("has no token"), "{why}");
            let shown = credentials.newest().token.clone().expect("a token");
            assert_eq!(shown, "Bearer token-of-nodes");
            assert!(Credentials::new(Some(file.clone()), None).is_err(), "at start as well");
        }
        folder.file("token", "\u{feff}renewed\n");
        credentials.reload().expect("a token");
        assert_eq!(credentials.newest().token.clone().expect("a token"), "Bearer renewed");
    }
}
