//! `duologue mcp`: logins at MCP servers over HTTP. What servers offer is listed by `offers`.

use super::FOUND;
use super::args::{McpArgs, McpCommand, McpLoginArgs, McpLogoutArgs};
use super::document;
use super::offers;
use super::output::{Failure, Out, message, status};
use crate::cli::tools::login_folder;
use crate::cli::{log, shell};
use crate::support::files::{is_private, read_named};
use crate::support::secret::{Secret, without_userinfo};
use crate::support::terminal::escape_control;
use crate::support::threads;
use crate::tool::login::{Login, LoginFile, LoginOptions, is_safe};
use std::env::VarError;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;
use url::Url;

/// Longest time for a person to agree.
const PERSON_MAX: Duration = Duration::from_secs(15 * 60);

/// Longest time in which a browser sends a request.
const BROWSER_MAX: Duration = Duration::from_secs(10);

/// Longest first line of a browser's request, and longest line of a person.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// Longest file with the secret of a client.
const SECRET_FILE_BYTES_MAX: usize = 64 * 1024;

/// Holds the secret of the client, which is no option: other users can see the options of a process.
const SECRET_VARIABLE: &str = "DUOLOGUE_MCP_CLIENT_SECRET";

/// The path to which the browser is sent at the end.
const ANSWER_PATH: &str = "/callback";

/// An address that may be the answer to a login.
struct Answer {
    address: String,
    /// The browser that waits for a page.
    browser: Option<TcpStream>,
}

/// Does what `args` say; returns the exit status.
pub fn mcp(args: &McpArgs) -> u8 {
    match &args.command {
        McpCommand::Resources(args) => document::list(args.is_json(), || offers::resources(args)),
        McpCommand::Prompts(args) => document::list(args.is_json(), || offers::prompts(args)),
        McpCommand::Login(args) => status(login(args)),
        McpCommand::Logout(args) => status(logout(args)),
    }
}

fn login(args: &McpLoginArgs) -> Result<u8, Failure> {
    log::start(args.log.log_level, None).map_err(|error| Failure::Usage(format!("{error:#}")))?;
    let file = file(&args.url)?;
    let client_secret = client_secret(args).map_err(Failure::Usage)?;
    let failed = |why: &str| {
        message(&format!("no login at {}: {}", shown(&file), escape_control(why)));
        Ok(FOUND)
    };
    let listener = match TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)) {
        Ok(listener) => listener,
        Err(error) => return failed(&format!("port {} can't be used: {error}", args.port)),
    };
    let (runtime, origin) = match (shell::runtime(), listener.local_addr()) {
        (Ok(runtime), Ok(address)) => (runtime, format!("http://{address}")),
        (Err(error), _) | (_, Err(error)) => return failed(&error.to_string()),
    };
    let (client_id, scopes) = (args.client_id.clone(), args.scope.clone());
    let options = LoginOptions { client_id, client_secret, scopes };
    let redirect_uri = format!("{origin}{ANSWER_PATH}");
    let begin = Login::begin(file.clone(), &redirect_uri, &options);
    let login = match runtime.block_on(begin) {
        Ok(login) => login,
        Err(why) => return failed(&why),
    };
    let mut out = Out::new()?;
    out.line("Open this address in a browser, and agree there:")?;
    out.line(&escape_control(login.url()))?;
    out.line(
        "If the browser runs on another machine, paste the address that it is sent to at the end.",
    )?;
    out.flush()?;
    let answer = match wait(&login, listener, origin) {
        Ok(answer) => answer,
        Err(why) => return failed(&why),
    };
    if let Err(why) = runtime.block_on(login.finish(&answer)) {
        return failed(&why);
    }
    out.line(&format!("Logged in at {}.", shown(&file)))?;
    out.flush()?;
    Ok(0)
}

fn logout(args: &McpLogoutArgs) -> Result<u8, Failure> {
    let file = file(&args.url)?;
    match file.remove() {
        Ok(true) => {
            let mut out = Out::new()?;
            out.line(&format!("Logged out at {}.", shown(&file)))?;
            out.flush()?;
            Ok(0)
        }
        Ok(false) => {
            message(&format!("nobody is logged in at {}", shown(&file)));
            Ok(FOUND)
        }
        Err(error) => Err(Failure::Usage(format!("the login can't be removed: {error}"))),
    }
}

/// The file of the login at `url`.
fn file(url: &str) -> Result<LoginFile, Failure> {
    let wrong = |why: &str| Failure::Usage(format!("the address of the server {why}"));
    let url = Url::parse(url).map_err(|error| {
        wrong(&format!("is no URL: {error}; write it with https://, as https://example.com/mcp"))
    })?;
    if !is_safe(&url) {
        return Err(wrong("must begin with https://, as others could read the login otherwise"));
    }
    let folder = login_folder().ok_or_else(|| {
        Failure::Usage("there is no folder for logins: set XDG_DATA_HOME or HOME".to_owned())
    })?;
    Ok(LoginFile::new(&folder, &url))
}

/// The secret of the client that is registered: that of the file, else that of the variable.
fn client_secret(args: &McpLoginArgs) -> Result<Option<Secret>, String> {
    if let Some(path) = &args.client_secret_file {
        let shown = escape_control(&path.display().to_string());
        let wrong = |why: String| format!("--client-secret-file: {shown} {why}");
        return secret_in(path, &shown).map(Some).map_err(wrong);
    }
    // A client without an id is registered now, and not by the person.
    match args.client_id.as_ref().map(|_| std::env::var(SECRET_VARIABLE)) {
        Some(Ok(text)) => Ok(Secret::new(&text)),
        Some(Err(VarError::NotUnicode(_))) => Err(format!("{SECRET_VARIABLE} is not UTF-8")),
        Some(Err(VarError::NotPresent)) | None => Ok(None),
    }
}

fn secret_in(path: &Path, shown: &str) -> Result<Secret, String> {
    let read = read_named(path, SECRET_FILE_BYTES_MAX);
    let (text, about) = read.map_err(|error| format!("can't be read: {error}"))?;
    // What is in a pipe is read once, and by its own reader.
    if !about.file_type().is_fifo() && !is_private(&about) {
        return Err(format!("can be read by other users; run `chmod 600 {shown}`"));
    }
    let secret = text.lines().next().and_then(Secret::new);
    secret.ok_or_else(|| "holds no secret in its first line".to_owned())
}

/// The address of the server, for people: a query may be a key.
fn shown(file: &LoginFile) -> String {
    let mut url = file.url().clone();
    url.set_query(None);
    escape_control(&without_userinfo(url.as_str()))
}

/// Waits for the answer to `login`, by a browser or pasted by a person.
fn wait(login: &Login, listener: TcpListener, origin: String) -> Result<String, String> {
    let (sender, answers) = mpsc::channel();
    let of_person = sender.clone();
    let browser = threads::spawn("login by browser", move || accept(&listener, &origin, &sender));
    let person = threads::spawn("login by paste", move || read_pasted(&of_person));
    browser.and(person).map_err(|error| error.to_string())?;
    loop {
        let Ok(Answer { address, browser }) = answers.recv_timeout(PERSON_MAX) else {
            return Err(format!("nobody agreed within {} minutes", PERSON_MAX.as_secs() / 60));
        };
        let is_it = login.is_answered_by(&address);
        match browser {
            Some(browser) => reply(browser, is_it),
            None if is_it => {}
            None => message("that is not the address that the browser is sent to at the end"),
        }
        if is_it {
            return Ok(address);
        }
    }
}

/// Takes the requests of browsers, which may open connections that they don't use.
fn accept(listener: &TcpListener, origin: &str, answers: &Sender<Answer>) {
    for browser in listener.incoming().filter_map(Result::ok) {
        let (origin, answers) = (origin.to_owned(), answers.clone());
        let read = move || {
            let Some(path) = requested(&browser) else { return };
            let address = format!("{origin}{path}");
            // The other end is gone once a login has its answer.
            answers.send(Answer { address, browser: Some(browser) }).ok();
        };
        if threads::spawn("login answer", read).is_err() {
            return;
        }
    }
}

/// The path of a request, with its query.
fn requested(browser: &TcpStream) -> Option<String> {
    browser.set_read_timeout(Some(BROWSER_MAX)).ok()?;
    let mut line = String::new();
    BufReader::new(browser.take(LINE_BYTES_MAX)).read_line(&mut line).ok()?;
    let path = line.strip_prefix("GET ")?.split(' ').next()?;
    Some(path.to_owned())
}

fn reply(mut browser: TcpStream, is_it: bool) {
    let (status, text) = match is_it {
        true => ("200 OK", "duologue has the answer. Go back to the terminal."),
        false => ("404 Not Found", "This is not the answer to the login that duologue waits for."),
    };
    let head = "Content-Type: text/plain\r\nConnection: close";
    let length = text.len();
    let page = format!("HTTP/1.1 {status}\r\n{head}\r\nContent-Length: {length}\r\n\r\n{text}");
    // The login has its answer, whether or not the browser shows it.
    browser.write_all(page.as_bytes()).ok();
}

fn read_pasted(answers: &Sender<Answer>) {
    let mut input = io::stdin().lock();
    loop {
        let mut line = String::new();
        match input.by_ref().take(LINE_BYTES_MAX).read_line(&mut line) {
            Ok(1..) if line.trim().is_empty() => {}
            Ok(1..) => {
                let address = line.trim().to_owned();
                if answers.send(Answer { address, browser: None }).is_err() {
                    return;
                }
            }
            Ok(0) | Err(_) => return,
        }
    }
}
