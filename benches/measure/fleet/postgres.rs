//! A PostgreSQL server of Debian's package, and what it says of its clients.

use crate::store::Folder;
use std::io;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

/// The same as that of the tests.
const SCRIPT: &str = include_str!("../../../tests/it/postgres_server.sh");

const USER: &str = "bench";
const PASSWORD: &str = "bench";

const START_MAX: Duration = Duration::from_secs(60);

/// A server that runs.
pub(super) struct Postgres {
    shell: Child,
    /// The server ends with it.
    control: Option<ChildStdin>,
    programs: PathBuf,
    port: u16,
    _folder: Folder,
}

/// The programs of the newest version.
fn programs() -> io::Result<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib/postgresql")?.flatten();
    let mut folders: Vec<_> = folders.map(|version| version.path().join("bin")).collect();
    folders.sort();
    folders.pop().ok_or_else(|| io::ErrorKind::NotFound.into())
}

impl Postgres {
    pub(super) fn start() -> io::Result<Self> {
        let (programs, folder) = (programs()?, Folder::named("postgres")?);
        std::fs::write(folder.path("password"), PASSWORD)?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut shell = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "sh"])
            .args([&programs, &folder.path("")])
            .args([port.to_string().as_str(), USER])
            .args(["-c", "shared_preload_libraries=pg_stat_statements"])
            .stdin(Stdio::piped())
            .spawn()?;
        let control = shell.stdin.take();
        let server = Self { shell, control, programs, port, _folder: folder };
        let until = Instant::now() + START_MAX;
        loop {
            match server.query("CREATE EXTENSION pg_stat_statements") {
                Ok(_) => return Ok(server),
                Err(error) if Instant::now() >= until => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    }

    pub(super) fn dsn(&self) -> String {
        format!("postgres://{USER}:{PASSWORD}@127.0.0.1:{}/postgres", self.port)
    }

    fn query(&self, sql: &str) -> io::Result<f64> {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-c", sql, &self.dsn()]);
        let output = psql.stdin(Stdio::null()).output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(io::Error::other(said));
        }
        let printed = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok(printed.parse().unwrap_or(f64::NAN))
    }

    /// Statements that clients have had executed, those of this program's own queries left out.
    pub(super) fn statements(&self) -> io::Result<f64> {
        self.query("SELECT sum(calls) FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat%'")
    }

    pub(super) fn connections(&self) -> io::Result<f64> {
        self.query(
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' \
             AND pid <> pg_backend_pid()",
        )
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.control = None;
        drop(self.shell.wait());
    }
}
