//! Servers that are silent, links that are slow, and sessions that are in each other's way: what is stored, and what is
//! asked at once.

use crate::once::{Ended, Once, duologue};
use crate::postgres_server::{Database, PASSWORD};
use crate::process::eventually;
use crate::server::Folder;
use std::thread;

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
