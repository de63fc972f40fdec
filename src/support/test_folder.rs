//! A folder for one test.

use std::path::{Path, PathBuf};

/// Has a name that no other test has, and is removed with all it holds when it is dropped.
pub(crate) struct TestFolder(PathBuf);

impl TestFolder {
    pub(crate) fn new() -> Self {
        let path = std::env::temp_dir().join(format!("duologue-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir(&path).expect("a folder");
        // On some systems the folder for temporary files is a symbolic link.
        Self(path.canonicalize().expect("it is there"))
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.join(name)
    }

    /// Makes a file with this content.
    pub(crate) fn file(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).expect("a file");
        path
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}
