//! A folder of a test's own.

use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder of a test's own, removed with it.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("it-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    /// A folder that every user can reach, with the program in it: the clone may be in the folder of one user alone,
    /// as may be what `TMPDIR` names.
    pub(crate) fn for_all() -> Self {
        // A copy that this process wrote could not be started while another thread makes a process.
        let script = "folder=$(mktemp -d /tmp/duologue-it-XXXXXX) || exit\n\
            ln \"$0\" \"$folder/duologue\" 2>/dev/null || cp \"$0\" \"$folder/duologue\"\n\
            chmod 755 \"$folder\" \"$folder/duologue\" && printf %s \"$folder\"";
        let made = Command::new("sh").args(["-c", script, env!("CARGO_BIN_EXE_duologue")]).output();
        let made = made.expect("sh runs");
        assert!(made.status.success(), "{made:?}");
        Self(String::from_utf8(made.stdout).expect("UTF-8").into())
    }

    /// The program in a folder for all.
    pub(crate) fn program(&self) -> PathBuf {
        self.path("duologue")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The same as text, for a command line.
    pub(crate) fn name(&self, name: &str) -> String {
        self.path(name).into_os_string().into_string().expect("UTF-8")
    }

    /// Makes a named pipe.
    pub(crate) fn fifo(&self, name: &str) -> String {
        let path = self.path(name);
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a named pipe");
        self.name(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}
