//! A provider that somebody else wrote, driven through the binary. Its side of the conversations
//! stands in `tests/clients/third_party/conversations.json`.

use super::server::{
    API_KEY, DEADLINE, Lines, Server, end, event, event_name, events, is_done, status_of, submit,
    text_of,
};
use super::{SOURCES, installed};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

#[test]
fn an_answer_of_a_third_party_arrives_as_it_was_streamed() -> Result<()> {
    needs!(Aimock);
    let provider = Provider::start()?;
    let mut server = provider.serve()?;
    let frames = server.turn("r1", "introduce yourself")?;
    assert_eq!(text_of(&frames, "ChatTextPatch"), "I am a provider that somebody else wrote.");
    assert_eq!(text_of(&frames, "ChatReasoningPatch"), "Somebody asks who I am.");
    assert!(events(&frames, "ChatTextPatch").count() > 1, "the answer came in one piece");
    assert_eq!(status_of(&frames, "r1"), "ok");
    let finished = event(&frames, "ChatProviderCallFinished")?;
    assert_eq!(finished["usage"], json!({"inputTokens": 11, "outputTokens": 7}));
    server.finish()
}

#[test]
fn a_third_party_gets_the_turns_before() -> Result<()> {
    needs!(Aimock);
    let provider = Provider::start()?;
    let mut server = provider.serve()?;
    server.turn("r1", "my name is Ada")?;
    let frames = server.turn("r2", "what is my name")?;
    assert_eq!(text_of(&frames, "ChatTextPatch"), "Your name is Ada.");
    let messages = [
        ("user", "my name is Ada"),
        ("assistant", "Nice to meet you, Ada."),
        ("user", "what is my name"),
    ];
    assert_eq!(provider.last_messages()?, messages.map(|(role, text)| (role.into(), text.into())));
    server.finish()
}

#[test]
fn a_cancel_stops_a_third_partys_answer_and_the_next_turn_knows_what_came_of_it() -> Result<()> {
    needs!(Aimock);
    let provider = Provider::start()?;
    let mut server = provider.serve()?;
    server.send(&submit("r1", "count slowly"))?;
    let mut frames = server.frames_until(|frame| event_name(frame) == "ChatTextPatch")?;
    server.send(&json!({"version": 1, "requestId": "r2", "cancel": {}}))?;
    frames.extend(server.frames_until(|frame| is_done(frame, "r1"))?);

    assert_eq!(status_of(&frames, "r1"), "stopped");
    assert_eq!(status_of(&frames, "r2"), "ok");
    assert_eq!(events(&frames, "ChatRunStopped").count(), 1);
    assert_eq!(events(&frames, "ChatRunFinished").count(), 0);
    let partial = text_of(&frames, "ChatTextPatch");
    assert!(partial.starts_with("numb") && !partial.contains("number 200"), "{partial:?}");

    let frames = server.turn("r3", "what did you count")?;
    assert_eq!(text_of(&frames, "ChatTextPatch"), "Some numbers.");
    let messages = provider.last_messages()?;
    let knows = |part: &str| messages.iter().any(|(_, text)| text.contains(part));
    assert!(knows("count slowly") && knows(&partial), "{messages:#?}");
    server.finish()
}

/// This provider cuts an emoji into two deltas, each with half a surrogate pair.
#[test]
fn odd_letters_of_a_third_party_arrive_whole() -> Result<()> {
    needs!(Aimock);
    let provider = Provider::start()?;
    let mut server = provider.serve()?;
    let frames = server.turn("r1", "write odd letters")?;
    let expected = "a\u{2028}b\u{2029}c\u{85}d\0e\rf\u{1F600}\u{1F468}\u{200D}\u{1F469}g";
    assert_eq!(text_of(&frames, "ChatTextPatch"), expected);
    server.finish()
}

#[test]
fn what_fails_at_a_third_party_is_one_error_and_the_session_lives() -> Result<()> {
    needs!(Aimock);
    let provider = Provider::start()?;
    let mut server = provider.serve()?;
    let failures: [(&str, &[&str]); 2] =
        [("hang up", &["network:", "malformed_stream:"]), ("refuse my key", &["auth:"])];
    for (prompt, classes) in failures {
        let frames = server.turn(prompt, prompt)?;
        let errors: Vec<&Value> =
            frames.iter().map(|f| &f["error"]).filter(|e| !e.is_null()).collect();
        let [error] = errors.as_slice() else { bail!("{prompt}: {errors:#?}") };
        assert_eq!(error["code"], "run_failed");
        let detail = error["detail"].as_str().unwrap_or_default();
        assert!(classes.iter().any(|class| detail.starts_with(class)), "{prompt}: {detail}");
        assert_eq!(status_of(&frames, prompt), "failed");
    }
    let frames = server.turn("after", "introduce yourself")?;
    assert_eq!(status_of(&frames, "after"), "ok");
    server.finish()
}

/// The third party's provider on a free port.
pub(super) struct Provider {
    child: Child,
    address: String,
    log: Lines,
}

impl Provider {
    pub(super) fn start() -> Result<Self> {
        let mut child = Command::new(format!("{SOURCES}/third_party/start.sh"))
            .arg(installed("third_party"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let log = Lines::of(child.stdout.take().context("stdout")?);
        let mut provider = Self { child, address: String::new(), log };
        provider.address = provider.announced_address()?;
        Ok(provider)
    }

    fn announced_address(&self) -> Result<String> {
        let deadline = Instant::now() + DEADLINE;
        while let Some(line) = self.log.next(deadline)? {
            if let Some((_, address)) = String::from_utf8(line)?.split_once("http://") {
                return Ok(address.trim().to_owned());
            }
        }
        bail!("the provider ended before it announced its address: see tests/clients/README.md")
    }

    /// The binary, with this for its provider.
    fn serve(&self) -> Result<Server> {
        let base_url = format!("http://{}/v1", self.address);
        let arguments =
            ["--engine", "openai", "--base-url", &base_url, "--model", "third-party-model"];
        // A proxy that the environment names is not for this machine.
        Server::start(&arguments, &[("OPENAI_API_KEY", API_KEY), ("NO_PROXY", "127.0.0.1")])
    }

    /// What each engine reads its address from, and a key for each.
    pub(super) fn environment(&self) -> Vec<(&'static str, String)> {
        environment(&format!("http://{}", self.address))
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Role and text of each message in the last request it got, but for instructions.
    pub(super) fn last_messages(&self) -> Result<Vec<(String, String)>> {
        let journal: Value = serde_json::from_str(&self.get("/__aimock/journal")?)?;
        let last = journal.as_array().and_then(|entries| entries.last()).context("no request")?;
        let messages = last["body"]["messages"].as_array().context("no messages")?;
        let text = |value: &Value| match value.as_array() {
            Some(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
            None => value.as_str().unwrap_or_default().to_owned(),
        };
        let messages =
            messages.iter().map(|message| (text(&message["role"]), text(&message["content"])));
        Ok(messages.filter(|(role, _)| role != "system" && role != "developer").collect())
    }

    fn get(&self, path: &str) -> Result<String> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        // HTTP/1.0: the body comes in one piece and ends with the connection.
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.address)?;
        let mut response = String::new();
        stream.read_to_string(&mut response)?;
        let (_, body) = response.split_once("\r\n\r\n").context("no HTTP response")?;
        Ok(body.to_owned())
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// The same for the server at `root`.
pub(super) fn environment(root: &str) -> Vec<(&'static str, String)> {
    vec![
        ("OPENAI_BASE_URL", format!("{root}/v1")),
        ("ANTHROPIC_BASE_URL", root.to_owned()),
        ("GEMINI_BASE_URL", root.to_owned()),
        ("OLLAMA_HOST", root.to_owned()),
        ("DUOLOGUE_API_KEY", API_KEY.to_owned()),
        // A proxy that the environment names is not for this machine.
        ("NO_PROXY", "127.0.0.1".to_owned()),
    ]
}
