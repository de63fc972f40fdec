//! An MCP server over HTTP that requires a login, and its authorization server: discovery (RFC 9728, RFC
//! 8414), registration (RFC 7591), codes with PKCE (RFC 7636), and refresh tokens each of which is good
//! once: with the second use all tokens become useless.

use data_encoding::{BASE64, BASE64URL_NOPAD};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use url::Url;

/// In every token, so that a test can look for tokens anywhere.
pub(crate) const SECRET: &str = "s3cret-t0ken";

/// That of the client that is registered at a server without registration.
pub(crate) const CLIENT_SECRET: &str = "client-s3cret-t0ken";

/// What a person who is asked does.
const DENIED: &str = "error=access_denied&error_description=not+today";

#[derive(Default)]
struct State {
    address: String,
    /// Seconds for which an access token is good, as the server says.
    lifetime: u64,
    /// The person refuses.
    refuses: bool,
    /// Only a client that is there already is served, with its secret.
    needs_secret: bool,
    /// The lifetime of a token is written as a text.
    writes_text: bool,
    /// Every refresh is refused, with the token in the reason.
    rejects_refresh: bool,
    /// Every request for tokens is answered with this status and text.
    failure: Option<(&'static str, &'static str)>,
    /// A message without a good token is answered with a status alone.
    omits_challenge: bool,
    challenge: String,
    tokens: u64,
    /// The tokens that are good now.
    access: BTreeSet<String>,
    refresh: String,
    refreshes: usize,
    registered: Vec<Value>,
    /// What was wrong in a request.
    wrong: Vec<String>,
}

pub(crate) struct OauthServer {
    state: Arc<Mutex<State>>,
}

type Form = BTreeMap<String, String>;

impl OauthServer {
    /// One whose access tokens are good for `lifetime` seconds, as it says.
    pub(crate) fn start(lifetime: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let state = Arc::new(Mutex::new(State { address, lifetime, ..State::default() }));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().filter_map(Result::ok) {
                let shared = Arc::clone(&shared);
                thread::spawn(move || while serve(&stream, &shared).is_some() {});
            }
        });
        Self { state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.state().address)
    }

    pub(crate) fn refuse(&self) {
        self.state().refuses = true;
    }

    pub(crate) fn reject_refreshes(&self) {
        self.state().rejects_refresh = true;
    }

    /// From now on every request for tokens is answered with this status and text.
    pub(crate) fn fail(&self, status: &'static str, text: &'static str) {
        self.state().failure = Some((status, text));
    }

    /// From now on a message without a good token is answered with a status alone.
    pub(crate) fn omit_challenge(&self) {
        self.state().omits_challenge = true;
    }

    /// From now on clients can't register, and need a secret to get tokens.
    pub(crate) fn need_secret(&self) {
        self.state().needs_secret = true;
    }

    /// From now on the lifetime of a token is written as a text.
    pub(crate) fn write_text(&self) {
        self.state().writes_text = true;
    }

    /// Tokens are good for so long from now on.
    pub(crate) fn set_lifetime(&self, seconds: u64) {
        self.state().lifetime = seconds;
    }

    /// No access token is good any more, although none has expired.
    pub(crate) fn revoke(&self) {
        self.state().access.clear();
    }

    pub(crate) fn refreshes(&self) -> usize {
        self.state().refreshes
    }

    /// The only client that was registered.
    pub(crate) fn client(&self) -> Value {
        let state = self.state();
        assert_eq!(state.wrong, Vec::<String>::new());
        assert_eq!(state.registered.len(), 1);
        state.registered[0].clone()
    }
}

/// What a browser does with `url`: the address that it is sent to.
pub(crate) fn browse(url: &str) -> String {
    let answer = get(url);
    let location = answer.lines().find_map(|line| line.strip_prefix("Location: "));
    location.expect("a redirect").to_owned()
}

/// The answer to a GET request.
pub(crate) fn get(url: &str) -> String {
    let url = Url::parse(url).expect("a URL");
    let address = (url.host_str().expect("a host"), url.port().expect("a port"));
    let mut stream = TcpStream::connect(address).expect("a connection");
    let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("a request");
    // The other end closes what has no more requests.
    stream.shutdown(std::net::Shutdown::Write).expect("a connection");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

fn form(text: &str) -> Form {
    url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

fn response(status: &str, more: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{more}Content-Length: {}\r\n\r\n{body}", body.len())
}

fn json_response(status: &str, body: &Value) -> String {
    response(status, "Content-Type: application/json\r\n", &body.to_string())
}

fn serve(mut stream: &TcpStream, shared: &Mutex<State>) -> Option<()> {
    let mut input = BufReader::new(stream);
    let mut line = String::new();
    input.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        input.read_line(&mut head).ok().filter(|bytes| *bytes > 0)?;
    }
    let header = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    };
    let length = header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    let body = String::from_utf8(body).ok()?;
    let mut words = line.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
    let answer = match (method, path) {
        ("GET", path) if path.starts_with("/.well-known/") => state.metadata(path),
        ("POST", "/register") => state.register(&body),
        ("GET", "/authorize") => state.authorize(&form(query)),
        ("POST", "/token") => state.token(&form(&body), header("authorization")),
        ("POST", "/mcp") => state.mcp(header("authorization"), &body),
        _ => response("405 Method Not Allowed", "", ""),
    };
    stream.write_all(answer.as_bytes()).ok()
}

impl State {
    fn metadata(&self, path: &str) -> String {
        let origin = format!("http://{}", self.address);
        if path.starts_with("/.well-known/oauth-protected-resource") {
            let resource = format!("{origin}/mcp");
            return json_response(
                "200 OK",
                &json!({ "resource": resource, "authorization_servers": [origin] }),
            );
        }
        if path != "/.well-known/oauth-authorization-server" {
            return response("404 Not Found", "", "");
        }
        let mut metadata = json!({
            "issuer": origin,
            "authorization_endpoint": format!("{origin}/authorize"),
            "token_endpoint": format!("{origin}/token"),
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
        });
        let methods = "token_endpoint_auth_methods_supported";
        if self.needs_secret {
            metadata[methods] = json!(["client_secret_basic"]);
        } else {
            metadata[methods] = json!(["none"]);
            metadata["registration_endpoint"] = json!(format!("{origin}/register"));
        }
        json_response("200 OK", &metadata)
    }

    fn register(&mut self, body: &str) -> String {
        let mut client: Value = serde_json::from_str(body).expect("JSON");
        client["client_id"] = "client-1".into();
        self.registered.push(client.clone());
        json_response("201 Created", &client)
    }

    fn authorize(&mut self, asked: &Form) -> String {
        let value = |name: &str| asked.get(name).map_or("", String::as_str);
        for (name, expected) in [
            ("response_type", "code"),
            ("code_challenge_method", "S256"),
            ("client_id", "client-1"),
        ] {
            self.expect(value(name) == expected, name);
        }
        let resource = format!("http://{}/mcp", self.address);
        self.expect(value("resource") == resource, "resource");
        self.challenge = value("code_challenge").to_owned();
        let answer = if self.refuses { DENIED } else { "code=c0de-1" };
        let (to, state) = (value("redirect_uri"), value("state"));
        response("302 Found", &format!("Location: {to}?{answer}&state={state}\r\n"), "")
    }

    fn token(&mut self, asked: &Form, authorization: Option<&str>) -> String {
        if let Some((status, text)) = self.failure {
            return response(status, "Content-Type: text/plain\r\n", text);
        }
        let basic = BASE64.encode(format!("client-1:{CLIENT_SECRET}").as_bytes());
        if self.needs_secret && authorization != Some(&format!("Basic {basic}")) {
            return json_response("401 Unauthorized", &json!({ "error": "invalid_client" }));
        }
        let value = |name: &str| asked.get(name).map_or("", String::as_str);
        let refused = |why: &str| {
            let error = json!({ "error": "invalid_grant", "error_description": why });
            json_response("400 Bad Request", &error)
        };
        match value("grant_type") {
            "authorization_code" => {
                let hash = digest(&SHA256, value("code_verifier").as_bytes());
                let is_proved = BASE64URL_NOPAD.encode(hash.as_ref()) == self.challenge;
                self.expect(is_proved, "code_verifier");
                self.expect(value("code") == "c0de-1", "code");
            }
            "refresh_token" => {
                let token = value("refresh_token");
                if self.rejects_refresh || token != self.refresh {
                    // Whoever uses an old one may have stolen it.
                    (self.access, self.refresh) = Default::default();
                    return refused(&format!("the token {token} is not good"));
                }
                self.refreshes += 1;
            }
            _ => return refused("no such grant"),
        }
        self.tokens += 1;
        let access = format!("access-{}-{SECRET}", self.tokens);
        self.access.insert(access.clone());
        self.refresh = format!("refresh-{}-{SECRET}", self.tokens);
        let lifetime = self.lifetime;
        let seconds = if self.writes_text { json!(lifetime.to_string()) } else { json!(lifetime) };
        let tokens = json!({ "access_token": access, "refresh_token": self.refresh,
            "token_type": "Bearer", "expires_in": seconds });
        json_response("200 OK", &tokens)
    }

    fn mcp(&self, authorization: Option<&str>, body: &str) -> String {
        let token = authorization.and_then(|it| it.strip_prefix("Bearer ")).unwrap_or_default();
        if !self.access.contains(token) {
            let metadata = format!("http://{}/.well-known/oauth-protected-resource", self.address);
            let challenge = format!(
                "WWW-Authenticate: Bearer error=\"invalid_token\", error_description=\"{token} is \
                 not good\", resource_metadata=\"{metadata}\"\r\n"
            );
            let challenge = if self.omits_challenge { "" } else { challenge.as_str() };
            return response("401 Unauthorized", challenge, "");
        }
        let message: Value = serde_json::from_str(body).expect("JSON");
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "private", "version": "1" },
            }),
            Some("tools/list") => json!({ "tools": [{ "name": "private_search" }] }),
            Some(_) | None => return response("202 Accepted", "", ""),
        };
        json_response("200 OK", &json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))
    }

    fn expect(&mut self, holds: bool, what: &str) {
        if !holds {
            self.wrong.push(what.to_owned());
        }
    }
}
