//! Servers that are silent, links that are slow, and sessions that are in each other's way: what is stored, and what is
//! asked at once.

use crate::frames::errors;
use crate::once::{Ended, Once, duologue};
use crate::postgres_server::{Database, PASSWORD, PostgresServer, Proxy, USER};
use crate::process::eventually;
use crate::server::{Folder, echo};
use crate::store::wait_state;
use rustix::net::{AddressFamily, SocketType, bind, listen, socket};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::Duration;

const MIB: usize = 1024 * 1024;

/// `duologue <words>` on a store, with the password.
fn stored(folder: &Folder, dsn: &str, words: &[&str]) -> Once {
    let mut command = duologue(folder, &[words, &["--store", dsn]].concat());
    command.env("PGPASSWORD", PASSWORD);
    let mut once = Once::start(command);
    once.close_stdin();
    once
}

/// Has the session `id` say something, with these files.
fn said(folder: &Folder, dsn: &str, id: &str, files: &[&str]) -> Once {
    let words = ["exec", "--engine", "echo", "--session-id", id, "hello"];
    let files = files.iter().flat_map(|file| ["--attach", file]);
    stored(folder, dsn, &words.into_iter().chain(files).collect::<Vec<_>>())
}

#[track_caller]
fn check(ended: &Ended) {
    assert!(ended.status == 0 && !ended.stderr.contains("store"), "{ended:?}");
}

/// The attachment is in the database, and is deleted with the other session before it is referred to.
#[test]
fn an_attachment_that_is_deleted_meanwhile_is_stored_again() {
    needs!(Postgres);
    let (database, folder) = (Database::new(), Folder::new());
    let dsn = database.bare_dsn();
    std::fs::write(folder.path("notes.txt"), "shared bytes").expect("a file");
    check(&said(&folder, &dsn, "old", &["notes.txt"]).finish());
    database.query(
        "CREATE FUNCTION waits() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END'; \
         CREATE TRIGGER waits BEFORE INSERT ON duologue.session_blobs \
         FOR EACH STATEMENT EXECUTE FUNCTION waits()",
    );
    let locks = |is_granted: bool| {
        format!(
            "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted = {is_granted} \
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
    };
    let deletes = format!(
        "DO $$ BEGIN PERFORM pg_advisory_lock(1); \
         LOOP EXIT WHEN EXISTS ({}); PERFORM pg_sleep(0.01); END LOOP; \
         DELETE FROM duologue.sessions WHERE id = 'old'; DELETE FROM duologue.blobs; COMMIT; \
         PERFORM pg_advisory_unlock(1); END $$",
        locks(false)
    );
    thread::scope(|scope| {
        let deleting = scope.spawn(|| database.query(&deletes));
        let granted = locks(true);
        eventually("the attachment is about to be deleted", || {
            database.try_query(&granted).filter(|found| found == "1")
        });
        check(&said(&folder, &dsn, "new", &["notes.txt"]).finish());
        deleting.join().expect("it is deleted");
    });
    let kept = "SELECT s.id, convert_from(b.data, 'UTF8') FROM duologue.sessions s \
                JOIN duologue.session_blobs r ON r.session = s.key \
                JOIN duologue.blobs b USING (sha256)";
    assert_eq!(database.query(kept), "new|shared bytes");
}

/// A port at which nothing answers: its queue of connections is full.
fn silent_port() -> (TcpListener, Vec<TcpStream>, u16) {
    let server = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    bind(&server, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listen(&server, 0).expect("a queue");
    let server = TcpListener::from(server);
    let address = server.local_addr().expect("an address");
    let waiting = std::iter::from_fn(|| {
        TcpStream::connect_timeout(&address, Duration::from_millis(200)).ok()
    });
    let waiting = waiting.collect();
    (server, waiting, address.port())
}

#[test]
fn the_next_host_is_used_where_the_first_is_silent() {
    needs!(Postgres);
    let database = Database::new();
    let (_full, _waiting, unconnected) = silent_port();
    // It takes connections, and says nothing.
    let deaf = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let deaf = deaf.local_addr().map(|address| (address.port(), deaf)).expect("an address");
    for (number, port) in [unconnected, deaf.0].into_iter().enumerate() {
        for options in ["", "?connect_timeout=1"] {
            let dsn = format!(
                "postgres://{USER}@127.0.0.1:{port},127.0.0.1:{}/{}{options}",
                database.port, database.name
            );
            let id = format!("s{number}{options}");
            let launch = echo(&["--store", &dsn, "--session-id", &id]);
            let mut server = launch.secret("PGPASSWORD", PASSWORD).start();
            assert_eq!(server.turn("r1", "one"), "ok", "{dsn}");
            assert_eq!(errors(&server.finish().frames, ""), [""; 0], "{dsn}");
        }
    }
    assert_eq!(database.query("SELECT count(*) FROM duologue.sessions"), "4");
}

/// The first server has no line, as in psql.
#[test]
fn each_host_has_the_password_of_its_own_line() {
    needs!(Postgres);
    let (database, folder) = (Database::new(), Folder::new());
    let passwords = folder.name("passwords");
    std::fs::write(&passwords, format!("127.0.0.1:{}:*:{USER}:{PASSWORD}\n", database.port))
        .expect("a file");
    let mode = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(&passwords, mode).expect("our file");
    let dsn =
        format!("postgres://{USER}@127.0.0.1:1,127.0.0.1:{}/{}", database.port, database.name);
    let launch = echo(&["--store", &dsn, "--session-id", "s"]).env("PGPASSFILE", &passwords);
    let mut server = launch.start();
    assert_eq!(server.turn("r1", "one"), "ok");
    assert_eq!(errors(&server.finish().frames, ""), [""; 0]);
    assert_eq!(database.query("SELECT turns FROM duologue.sessions"), "1");
}

/// Without heartbeats other processes take the sessions after this time.
const LEASE_SECONDS: f64 = 10.0;

#[test]
fn a_heartbeat_over_a_connection_that_hangs_is_followed_by_one_in_time() {
    needs!(Postgres);
    let database = Database::new();
    let proxy = Proxy::start(database.port);
    let dsn = database.bare_dsn_at(proxy.port);
    let launch = echo(&["--store", &dsn, "--session-id", "s"]);
    let mut server = launch.secret("PGPASSWORD", PASSWORD).start();
    assert_eq!(server.turn("r1", "one"), "ok");
    let beat = || -> f64 {
        let sql = "SELECT extract(epoch FROM heartbeat_at) FROM duologue.processes";
        database.query(sql).parse().expect("a time")
    };
    // The thread has its connection, which the row alone does not show.
    let joined = beat();
    let before = eventually("the first heartbeat", || Some(beat()).filter(|at| *at > joined));
    proxy.stall_open();
    let after = eventually("the next heartbeat", || Some(beat()).filter(|at| *at > before));
    assert!(after - before < LEASE_SECONDS, "{}", after - before);
}

#[test]
fn large_attachments_come_in_several_answers() {
    needs!(Postgres);
    let (database, folder) = (Database::new(), Folder::new());
    let files = ["a.txt", "b.txt", "c.txt", "d.txt"];
    for (file, mib) in files.into_iter().zip([1, 1, 1, 2]) {
        std::fs::write(folder.path(file), file.repeat(mib * MIB / file.len())).expect("a file");
    }
    check(&said(&folder, &database.bare_dsn(), "s", &files).finish());
    let proxy = Proxy::start(database.port);
    let dsn = database.bare_dsn_at(proxy.port);
    let exported = stored(&folder, &dsn, &["sessions", "export", "s"]).finish();
    assert_eq!(exported.status, 0, "{}", exported.stderr);
    assert!(exported.stdout.len() > 5 * MIB, "all of them: {}", exported.stdout.len());
    let largest = proxy.largest_answer();
    assert!(largest > 2 * MIB && largest < 3 * MIB, "{largest}");
}

/// The server counts the time in which a statement is on its way.
#[test]
fn the_server_leaves_a_large_attachment_its_time() {
    needs!(Postgres);
    let (database, folder) = (Database::new(), Folder::new());
    let dsn = database.bare_dsn();
    check(&said(&folder, &dsn, "first", &[]).finish());
    database.query(
        "CREATE TABLE public.limits(\"limit\" text); \
         CREATE FUNCTION notes() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN INSERT INTO public.limits SELECT current_setting(''statement_timeout''); RETURN NULL; END'; \
         CREATE TRIGGER notes AFTER INSERT ON duologue.blobs \
         FOR EACH STATEMENT EXECUTE FUNCTION notes()",
    );
    for (file, bytes) in [("small.txt", 10), ("large.txt", 4 * MIB)] {
        std::fs::write(folder.path(file), "x".repeat(bytes)).expect("a file");
        check(&said(&folder, &dsn, file, &[file]).finish());
    }
    assert_eq!(database.query("SELECT * FROM public.limits"), "10s\n42s");
}

#[test]
fn a_store_that_can_not_be_completed_does_not_stop_the_other() {
    needs!(Postgres);
    let (database, folder) = (Database::new(), Folder::new());
    let (dsn, file) = (database.dsn(), folder.name("file"));
    check(&said(&folder, &database.bare_dsn(), "first", &[]).finish());
    let mut first = echo(&["--turns-db", &file, "--session-id", "s"]).start();
    assert_eq!(first.turn("r1", "one"), "ok");
    first.finish();
    database.query(
        "CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN RAISE EXCEPTION ''no room''; END'; \
         CREATE TRIGGER fails BEFORE INSERT ON duologue.log \
         FOR EACH ROW EXECUTE FUNCTION fails()",
    );
    let both = ["--turns-db", &file, "--timeline-dsn", &dsn, "--session-id", "s", "--resume"];
    let mut second = echo(&both).start();
    assert_eq!(wait_state(&mut second).messages().len(), 2);
    assert_eq!(second.turn("r2", "two"), "ok");
    let ended = second.finish();
    assert!(ended.stderr.contains("could not be completed"), "{}", ended.stderr);
    assert!(ended.stderr.contains("no room"), "{}", ended.stderr);
    assert_eq!(database.query("SELECT id FROM duologue.sessions"), "first");
    let mut third = echo(&["--turns-db", &file, "--session-id", "s", "--resume"]).start();
    assert_eq!(wait_state(&mut third).messages().len(), 4);
    third.finish();
}

/// As with libpq, where the variable is set for other servers.
#[test]
fn a_socket_needs_no_encryption() {
    needs!(Postgres);
    let database = Database::new();
    let folder = PostgresServer::shared().folder();
    let dsn = format!(
        "host={} port={} user={USER} dbname={}",
        folder.display(),
        database.port,
        database.name
    );
    for mode in ["require", "verify-full"] {
        let args = ["--turns-dsn", &dsn, "--timeline-dsn", &dsn, "--session-id", mode];
        let launch = echo(&args).secret("PGPASSWORD", PASSWORD).env("PGSSLMODE", mode);
        let mut server = launch.start();
        assert_eq!(server.turn("r1", "one"), "ok", "{mode}");
        assert_eq!(errors(&server.finish().frames, ""), [""; 0], "{mode}");
    }
}
