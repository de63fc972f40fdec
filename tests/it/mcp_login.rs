//! Logins at MCP servers: the real binary against a server that requires one.

use crate::oauth_server::{CLIENT_SECRET, OauthServer, SECRET, browse, get};
use crate::server::Folder;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::thread;

/// A person with a folder of their own.
struct Person {
    folder: Folder,
}

/// A login that waits for the person.
struct Waiting {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// The address to open.
    url: String,
}

impl Person {
    fn new() -> Self {
        Self { folder: Folder::new() }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_duologue"));
        command.env_clear().env("XDG_DATA_HOME", self.folder.name("data")).args(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn begin(&self, server: &OauthServer) -> Waiting {
        self.waiting(self.login(server, &[]))
    }

    fn login(&self, server: &OauthServer, more: &[&str]) -> Command {
        let own = ["mcp", "login", &server.url(), "--log-level", "trace"];
        self.command(&[&own[..], more].concat())
    }

    /// `login`, once it waits for the person.
    fn waiting(&self, mut login: Command) -> Waiting {
        let mut child = login.spawn().expect("the binary");
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut url = String::new();
        while !url.starts_with("http") {
            url.clear();
            let bytes = stdout.read_line(&mut url).expect("a line");
            assert!(bytes > 0, "{:?}", child.wait_with_output());
        }
        Waiting { child, stdout, url: url.trim().to_owned() }
    }

    /// Logs in by a browser on the same machine.
    fn log_in(&self, server: &OauthServer) {
        self.log_in_by(self.login(server, &[]));
    }

    fn log_in_by(&self, login: Command) {
        let waiting = self.waiting(login);
        let page = get(&browse(&waiting.url));
        assert!(page.contains("Go back to the terminal"), "{page}");
        let (status, text) = waiting.end();
        assert_eq!(status, 0, "{text}");
        assert!(text.contains("Logged in at"), "{text}");
    }

    /// `duologue tools` with the server.
    fn tools(&self, server: &OauthServer) -> Output {
        let mut command = self.command(&["tools", "--log-level", "trace", "--mcp", &server.url()]);
        without_tokens(command.output().expect("the binary"))
    }

    #[track_caller]
    fn check_tools(&self, server: &OauthServer) {
        let listed = self.tools(server);
        let text = String::from_utf8_lossy(&listed.stdout);
        assert!(text.contains("private_search"), "{listed:?}");
    }

    /// The files of logins.
    fn files(&self) -> Vec<PathBuf> {
        let folder = self.folder.path("data").join("duologue/mcp");
        let files = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("one").path());
        files.filter(|path| path.extension().is_some_and(|it| it == "json")).collect()
    }
}

impl Waiting {
    /// The status, and all that was printed.
    fn end(mut self) -> (i32, String) {
        let mut text = String::new();
        self.stdout.read_to_string(&mut text).expect("text");
        let output = self.child.wait_with_output().expect("an end");
        text += &String::from_utf8_lossy(&output.stderr);
        assert!(!text.contains(SECRET) && !text.contains("c0de-1"), "{text}");
        (output.status.code().expect("a status"), text)
    }
}

#[track_caller]
fn without_tokens(output: Output) -> Output {
    for stream in [&output.stdout, &output.stderr] {
        let text = String::from_utf8_lossy(stream);
        assert!(!text.contains(SECRET), "{text}");
    }
    output
}

#[test]
fn a_login_by_a_browser_is_used_until_the_logout() {
    let (server, person) = (OauthServer::start(3_600), Person::new());
    let before = person.tools(&server);
    assert_eq!(before.status.code(), Some(1));
    let text = String::from_utf8_lossy(&before.stderr);
    assert!(text.contains(&format!("`duologue mcp login {}`", server.url())), "{text}");

    person.log_in(&server);
    let client = server.client();
    assert_eq!(client["client_name"], "duologue", "{client}");
    let files = person.files();
    assert_eq!(files.len(), 1);
    let mode = |path: &PathBuf| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    assert_eq!(mode(&files[0]), 0o600);
    assert_eq!(mode(&files[0].parent().expect("a folder").to_owned()), 0o700);
    person.check_tools(&server);
    assert_eq!(server.refreshes(), 0);

    let logout = |expected| {
        let output = person.command(&["mcp", "logout", &server.url()]).output();
        assert_eq!(output.expect("the binary").status.code(), Some(expected));
    };
    logout(0);
    assert_eq!(person.files(), Vec::<PathBuf>::new());
    logout(1);
    assert_eq!(person.tools(&server).status.code(), Some(1));
}

#[test]
fn the_address_that_a_browser_elsewhere_is_sent_to_can_be_pasted() {
    let (server, person) = (OauthServer::start(3_600), Person::new());
    let mut waiting = person.begin(&server);
    let answer = browse(&waiting.url);
    let mut input = waiting.child.stdin.take().expect("a pipe");
    // Another's answer, and what is no address.
    write!(input, "{}\n\nhello\n{answer}\n", answer.replace("state=", "state=x")).expect("a pipe");
    let (status, text) = waiting.end();
    assert_eq!(status, 0, "{text}");
    assert_eq!(text.matches("that is not the address").count(), 2, "{text}");
    person.check_tools(&server);
}

/// Anybody on the machine can send requests to the port.
#[test]
fn an_answer_to_another_login_is_not_taken() {
    let (server, person) = (OauthServer::start(3_600), Person::new());
    let waiting = person.begin(&server);
    let answer = browse(&waiting.url);
    for other in [answer.replace("state=", "state=x"), answer.replace("/callback?", "/icon?x")] {
        let page = get(&other.replace("&state", "&other"));
        assert!(page.starts_with("HTTP/1.1 404"), "{page}");
    }
    assert!(get(&answer).starts_with("HTTP/1.1 200"));
    assert_eq!(waiting.end().0, 0);
    person.check_tools(&server);
}

#[test]
fn a_refused_login_is_an_error_and_leaves_nothing() {
    let (server, person) = (OauthServer::start(3_600), Person::new());
    server.refuse();
    let waiting = person.begin(&server);
    get(&browse(&waiting.url));
    let (status, text) = waiting.end();
    assert_eq!(status, 1);
    assert!(text.contains("it was refused: access_denied: not today"), "{text}");
    assert!(!person.folder.path("data").join("duologue/mcp").exists());
}

#[test]
fn tokens_are_refreshed_when_they_expire_or_are_revoked() {
    let (server, person) = (OauthServer::start(1), Person::new());
    person.log_in(&server);
    person.check_tools(&server);
    assert!(server.refreshes() > 0);
    server.set_lifetime(3_600);
    person.check_tools(&server);
    let before = server.refreshes();
    person.check_tools(&server);
    assert_eq!(server.refreshes(), before, "the new token is kept");
    server.revoke();
    person.check_tools(&server);
    assert_eq!(server.refreshes(), before + 1);
}

#[test]
fn a_token_is_refreshed_where_a_status_alone_says_that_it_is_revoked() {
    let (server, person) = (OauthServer::start(3_600), Person::new());
    person.log_in(&server);
    server.omit_challenge();
    server.revoke();
    person.check_tools(&server);
    assert_eq!(server.refreshes(), 1);
}

/// The server takes each refresh token once: a process that used an old one would end the login.
#[test]
fn processes_refresh_one_after_the_other() {
    let (server, person) = (OauthServer::start(1), Person::new());
    person.log_in(&server);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| person.check_tools(&server));
        }
    });
    assert!(server.refreshes() >= 4);
}

/// As at servers that register no client.
#[test]
fn a_client_with_a_secret_logs_in_and_refreshes() {
    let (server, person) = (OauthServer::start(1), Person::new());
    server.need_secret();
    let file = person.folder.name("secret");
    fs::write(&file, format!("{CLIENT_SECRET}\nof the team\n")).expect("a file");
    let words = ["--client-id", "client-1", "--client-secret-file", &file];
    let set_mode = |mode| {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("a mode");
    };
    set_mode(0o644);
    let refused = person.login(&server, &words).output().expect("the binary");
    assert_eq!(refused.status.code(), Some(2));
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(text.contains("--client-secret-file: ") && text.contains("`chmod 600 "), "{text}");

    set_mode(0o600);
    person.log_in_by(person.login(&server, &words));
    // Each process refreshes, with the secret that the refresh before has left in its place.
    for _ in 0..2 {
        let before = server.refreshes();
        person.check_tools(&server);
        assert!(server.refreshes() > before);
    }

    let other = Person::new();
    let mut login = other.login(&server, &words[..2]);
    login.env("DUOLOGUE_MCP_CLIENT_SECRET", CLIENT_SECRET);
    other.log_in_by(login);
    other.check_tools(&server);
}

#[test]
fn a_lifetime_that_is_written_as_a_text_is_read() {
    let (server, person) = (OauthServer::start(3_600), Person::new());
    server.write_text();
    person.log_in(&server);
    person.check_tools(&server);
    assert_eq!(server.refreshes(), 0);
}

#[test]
fn a_login_that_is_over_says_what_to_do_without_its_tokens() {
    let (server, person) = (OauthServer::start(1), Person::new());
    person.log_in(&server);
    server.reject_refreshes();
    let failed = person.tools(&server);
    assert_eq!(failed.status.code(), Some(1));
    let text = String::from_utf8_lossy(&failed.stderr);
    assert!(text.contains(&format!("`duologue mcp login {}`", server.url())), "{text}");
}

#[test]
fn a_fault_of_the_authorization_server_is_not_the_end_of_a_login() {
    let (server, person) = (OauthServer::start(1), Person::new());
    person.log_in(&server);
    for (status, answer, expected) in [
        ("500 Internal Server Error", "oops", "status 500"),
        ("503 Service Unavailable", r#"{"error":"invalid_grant"}"#, "status 503: invalid_grant"),
        ("429 Too Many Requests", "slower", "status 429"),
    ] {
        server.fail(status, answer);
        let failed = person.tools(&server);
        assert_eq!(failed.status.code(), Some(1), "{status}");
        let text = String::from_utf8_lossy(&failed.stderr);
        let expected = format!("the authorization server answered with {expected}");
        assert!(text.contains(&expected), "{status}: {text}");
        assert!(!text.contains("duologue mcp login"), "{status}: {text}");
        assert_eq!(person.files().len(), 1, "{status}");
    }
}

#[test]
fn a_login_is_for_addresses_that_nobody_can_read_along() {
    let person = Person::new();
    for (url, expected) in [
        ("http://example.com/mcp", "must begin with https://"),
        ("ftp://example.com", "must begin with https://"),
        ("server", "is no URL"),
    ] {
        let output = person.command(&["mcp", "login", url]).output().expect("the binary");
        assert_eq!(output.status.code(), Some(2), "{url}");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains(expected), "{url}: {text}");
    }
}

#[test]
fn a_server_that_is_not_there_is_said_not_to_be_reached() {
    let person = Person::new();
    let output = person.command(&["mcp", "login", "http://127.0.0.1:1/mcp"]).output();
    let output = output.expect("the binary");
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("http://127.0.0.1:1 can't be reached: check that it runs"), "{text}");
}
