//! PostgreSQL servers for tests: real ones, of Debian's package, each with a folder and a port of its
//! own. A shell stays with each server and ends it when the tests end, however they end.

use crate::log_rows::{StoredEvent, events_of};
use crate::process::eventually;
use crate::server::{Launch, echo};
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread;

/// The password of the only user. It may appear nowhere.
pub(crate) const PASSWORD: &str = "pg-a-pass@word-that-nobody-may-see";

/// The same in a URL.
const PASSWORD_IN_URL: &str = "pg-a-pass%40word-that-nobody-may-see";

pub(crate) const USER: &str = "duologue_test";

/// Starts a server, and ends with its standard input.
const SCRIPT: &str = include_str!("postgres_server.sh");

/// A server that runs.
pub(crate) struct PostgresServer {
    shell: Child,
    /// Signals go in here; the server ends with it.
    control: Option<ChildStdin>,
    port: u16,
    /// Of its files and its socket.
    folder: PathBuf,
}

/// A database of its own for each test.
pub(crate) struct Database {
    pub(crate) name: String,
    pub(crate) port: u16,
}

/// The folder of the newest server's programs, where Debian's package has them; `None` if it is not
/// installed.
pub(crate) fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let folders = versions.filter_map(|version| Some(version.ok()?.path().join("bin")));
    let mut folders: Vec<_> = folders.filter(|folder| folder.join("initdb").exists()).collect();
    folders.sort_by_key(|path| path.to_string_lossy().len());
    folders.pop()
}

/// A port of this machine that nothing uses.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}

impl PostgresServer {
    /// A new one; waits until it answers.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same, with TLS and the certificate of the test authority, which is for this machine.
    pub(crate) fn start_with_tls() -> Self {
        Self::start_with(&[("server.pem", "server.pem"), ("server.key", "server.key")])
    }

    /// The same, with a certificate that the server has signed itself and that has a common name alone.
    pub(crate) fn start_with_own_certificate() -> Self {
        Self::start_with(&[("self_signed.pem", "server.pem"), ("self_signed.key", "server.key")])
    }

    /// The same, and it knows the user `cert_user` by a certificate.
    pub(crate) fn start_with_clients() -> Self {
        let files = ["server.pem", "server.key", "client.pem"];
        Self::start_with(&files.map(|name| (name, name)))
    }

    /// With files of the tests under other names.
    fn start_with(files: &[(&str, &str)]) -> Self {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        // Its user must be able to enter the folder, and a socket's path is short.
        let name = format!("duologue-it-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder).expect("a folder");
        fs::write(folder.join("password"), PASSWORD).expect("a file");
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tls");
        for (file, name) in files {
            fs::copy(data.join(file), folder.join(name)).expect("a copy");
        }
        let port = free_port();
        let mut shell = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "sh"])
            .args([programs().expect("PostgreSQL").as_path(), &folder])
            .args([port.to_string().as_str(), USER])
            .stdin(Stdio::piped())
            .spawn()
            .expect("a shell");
        let control = shell.stdin.take();
        let server = Self { shell, control, port, folder };
        let admin = Database { name: "postgres".to_owned(), port };
        eventually("the server answers", || admin.try_query("SELECT 1"));
        server
    }

    /// The one that most tests share.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: LazyLock<PostgresServer> = LazyLock::new(PostgresServer::start);
        &SHARED
    }

    /// The folder of its socket.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A new database.
    pub(crate) fn database(&self) -> Database {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}", MADE.fetch_add(1, Ordering::Relaxed));
        let admin = Database { name: "postgres".to_owned(), port: self.port };
        admin.query(&format!("CREATE DATABASE {name}"));
        Database { name, port: self.port }
    }

    /// Has the server end by this signal, and starts it again.
    pub(crate) fn restart(&mut self, signal: &str) {
        let control = self.control.as_mut().expect("it runs");
        writeln!(control, "{signal}").expect("the shell reads");
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.control = None;
        self.shell.wait().ok();
    }
}

impl Database {
    /// A new database of the server that tests share.
    pub(crate) fn new() -> Self {
        PostgresServer::shared().database()
    }

    /// Its address, with the password.
    pub(crate) fn dsn(&self) -> String {
        self.dsn_at(self.port)
    }

    /// The same at another port.
    pub(crate) fn dsn_at(&self, port: u16) -> String {
        format!("postgres://{USER}:{PASSWORD_IN_URL}@127.0.0.1:{port}/{}", self.name)
    }

    /// Its address without the password.
    pub(crate) fn bare_dsn(&self) -> String {
        self.bare_dsn_at(self.port)
    }

    /// The same at another port.
    pub(crate) fn bare_dsn_at(&self, port: u16) -> String {
        format!("postgres://{USER}@127.0.0.1:{port}/{}", self.name)
    }

    /// `duologue rpc` with the echo engine, for the session `s`.
    pub(crate) fn stored(&self, args: &[&str]) -> Launch {
        let dsn = self.bare_dsn();
        let store = ["--store", &dsn, "--session-id", "s"];
        echo(&[&store, args].concat()).secret("PGPASSWORD", PASSWORD)
    }

    /// The same, which goes on with what is stored.
    pub(crate) fn resumed(&self, args: &[&str]) -> Launch {
        self.stored(&[&["--resume"], args].concat())
    }

    /// What psql prints for a query: a line for each row, with `|` between columns.
    #[track_caller]
    pub(crate) fn query(&self, sql: &str) -> String {
        let output = self.psql(sql).output().expect("psql");
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("a text").trim_end().to_owned()
    }

    pub(crate) fn try_query(&self, sql: &str) -> Option<String> {
        let output = self.psql(sql).output().expect("psql");
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    fn psql(&self, sql: &str) -> Command {
        let mut command = Command::new(programs().expect("PostgreSQL").join("psql"));
        command.args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-c", sql]);
        command.arg(self.bare_dsn()).env("PGPASSWORD", PASSWORD).stdin(Stdio::null());
        command
    }

    /// The events that are stored.
    #[track_caller]
    pub(crate) fn events(&self) -> Vec<StoredEvent> {
        let sql = "SELECT encode(events, 'hex') FROM duologue.log ORDER BY session, number";
        let row = |line: &str| data_encoding::HEXLOWER.decode(line.as_bytes()).expect("bytes");
        self.query(sql).lines().flat_map(|line| events_of(&row(line))).collect()
    }
}

/// What a proxy does with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Open,
    Cut,
    Stalled,
}

/// A proxy before a server, which can lose a question or its answer, or everything from a moment on.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    armed: Arc<Mutex<Armed>>,
    /// Bytes of the largest answer to what a client has sent at once.
    largest: Arc<AtomicUsize>,
    /// Connections so far.
    made: Arc<AtomicUsize>,
    /// What was cut since [`Proxy::cut`].
    #[cfg(feature = "serve")]
    cut: Arc<AtomicUsize>,
}

/// What is lost, and how.
#[derive(Clone, Copy, Debug, Default)]
struct Armed {
    what: Lost,
    /// How many of these until then.
    after: u32,
    how: Option<Loss>,
    /// Nothing gets through of the connections before this one, and none of them ends.
    stalled_before: usize,
    /// From the first question with these words on, all of them are stalled.
    stalled_at: Option<&'static str>,
    /// The server can't be reached: whatever is sent cuts its connection, and there are no new ones.
    is_cut: bool,
}

/// What is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Lost {
    /// The commit of a batch.
    #[default]
    Commit,
    /// What a client sends at once, whatever it is.
    Question,
}

/// How it is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The server gets it, and its answer is lost.
    Answer,
    /// The server does not get it.
    Request,
}

impl Proxy {
    pub(crate) fn start(server: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let armed: Arc<Mutex<Armed>> = Arc::default();
        let shared = Arc::clone(&armed);
        let largest: Arc<AtomicUsize> = Arc::default();
        let shared_largest = Arc::clone(&largest);
        let made: Arc<AtomicUsize> = Arc::default();
        let shared_made = Arc::clone(&made);
        let cut: Arc<AtomicUsize> = Arc::default();
        let shared_cut = Arc::clone(&cut);
        thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                if shared.lock().expect("no panic").is_cut {
                    shared_cut.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                // While the server starts again, nobody gets through.
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                let armed = Arc::clone(&shared);
                let largest = Arc::clone(&shared_largest);
                let number = shared_made.fetch_add(1, Ordering::Relaxed);
                thread::spawn(move || forward(number, (&client, &server), &armed, &largest));
            }
        });
        Self {
            port,
            armed,
            largest,
            made,
            #[cfg(feature = "serve")]
            cut,
        }
    }

    /// The `nth` commit of a batch from here on is lost, and its connection with it.
    pub(crate) fn lose(&self, nth: u32, how: Loss) {
        self.arm(Armed { after: nth, how: Some(how), ..Armed::default() });
    }

    /// The same for the `nth` of all questions.
    pub(crate) fn lose_question(&self, nth: u32, how: Loss) {
        let what = Lost::Question;
        self.arm(Armed { what, after: nth, how: Some(how), ..Armed::default() });
    }

    /// From here on the server hangs.
    pub(crate) fn stall(&self) {
        self.arm(Armed { stalled_before: usize::MAX, ..Armed::default() });
    }

    /// The server hangs from the first question with these words on.
    pub(crate) fn stall_at(&self, words: &'static str) {
        self.arm(Armed { stalled_at: Some(words), ..Armed::default() });
    }

    /// The connections that there are hang, and others do not.
    pub(crate) fn stall_open(&self) {
        let stalled_before = self.made.load(Ordering::Relaxed);
        self.arm(Armed { stalled_before, ..Armed::default() });
    }

    /// From here on the server can't be reached. Waits until somebody has noticed.
    #[cfg(feature = "serve")]
    pub(crate) fn cut(&self) {
        self.cut.store(0, Ordering::Relaxed);
        self.arm(Armed { is_cut: true, ..Armed::default() });
        let has_cut = || (self.cut.load(Ordering::Relaxed) > 0).then_some(());
        eventually("a connection is refused", has_cut);
    }

    /// Everything gets through again.
    #[cfg(feature = "serve")]
    pub(crate) fn heal(&self) {
        self.arm(Armed::default());
    }

    fn arm(&self, armed: Armed) {
        *self.armed.lock().expect("no panic") = armed;
    }

    /// Connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.made.load(Ordering::Relaxed)
    }

    /// Bytes of the largest answer so far.
    pub(crate) fn largest_answer(&self) -> usize {
        self.largest.load(Ordering::Relaxed)
    }

    /// Whether that has happened.
    pub(crate) fn has_lost(&self) -> bool {
        self.armed.lock().expect("no panic").how.is_none()
    }
}

/// Copies both ways until one side ends or the connection is cut.
fn forward(
    number: usize,
    (client, server): (&TcpStream, &TcpStream),
    armed: &Mutex<Armed>,
    largest: &AtomicUsize,
) {
    let is_deaf = Mutex::new(false);
    let is_stalled = || number < armed.lock().expect("no panic").stalled_before;
    let answered = AtomicUsize::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            copy(server, client, |bytes| {
                let before = answered.fetch_add(bytes.len(), Ordering::Relaxed);
                largest.fetch_max(before + bytes.len(), Ordering::Relaxed);
                match *is_deaf.lock().expect("no panic") {
                    true => Fate::Cut,
                    false if is_stalled() => Fate::Stalled,
                    false => Fate::Open,
                }
            });
            // A server that hangs ends no connection.
            if !is_stalled() {
                close(client, server);
            }
        });
        let mut writes = false;
        copy(client, server, |bytes| {
            answered.store(0, Ordering::Relaxed);
            let has = |text: &str| bytes.windows(text.len()).any(|it| it == text.as_bytes());
            // The renewal of a lease writes no batch, nor does what brings the tables to the newest format.
            writes |= has("UPDATE duologue.sessions s SET updated_ms");
            let is_commit = writes && has("COMMIT\0");
            writes &= !is_commit;
            let mut armed = armed.lock().expect("no panic");
            if armed.is_cut {
                return Fate::Cut;
            }
            if armed.stalled_at.is_some_and(has) {
                armed.stalled_before = usize::MAX;
            }
            if number < armed.stalled_before {
                return Fate::Stalled;
            }
            if armed.what == Lost::Commit && !is_commit {
                return Fate::Open;
            }
            let Some(how) = armed.how else { return Fate::Open };
            armed.after = armed.after.saturating_sub(1);
            if armed.after > 0 {
                return Fate::Open;
            }
            armed.how = None;
            *is_deaf.lock().expect("no panic") = true;
            if how == Loss::Request { Fate::Cut } else { Fate::Open }
        });
        close(client, server);
    });
}

fn copy(mut from: &TcpStream, mut to: &TcpStream, mut fate: impl FnMut(&[u8]) -> Fate) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(bytes @ 1..) = from.read(&mut buffer) {
        let is_over = match fate(&buffer[..bytes]) {
            Fate::Open => to.write_all(&buffer[..bytes]).is_err(),
            Fate::Cut => true,
            Fate::Stalled => false,
        };
        if is_over {
            return;
        }
    }
}

fn close(client: &TcpStream, server: &TcpStream) {
    for stream in [client, server] {
        stream.shutdown(Shutdown::Both).ok();
    }
}
