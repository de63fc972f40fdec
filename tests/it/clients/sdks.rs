//! Requests as the providers' own libraries declare them: a proxy in front of a provider refuses what
//! the types of these libraries do not have (`tests/clients/sdks`).

use super::interfaces::{INTERFACES, look_at_image, weather};
use super::server::{DEADLINE, Lines, Server, end, is_done, text_of};
use super::third_party::{Provider, environment};
use super::{SOURCES, installed};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// Tools with reasoning, an image, settings and a schema, each on top of what was before.
#[test]
fn every_request_has_the_types_of_the_providers_library() -> Result<()> {
    needs!(Aimock, ProviderSdks);
    // One for all interfaces: a proxy takes seconds to load the libraries.
    let provider = Provider::start()?;
    let proxy = Proxy::start(&provider)?;
    for interface in &INTERFACES {
        let mut server = interface.serve_with(&environment(&proxy.root))?;
        all_kinds(&mut server).context(interface.engine)?;
        server.output_to_end()?;
    }
    Ok(())
}

/// The proxy can refuse: the same interface, with a member that no library has.
#[test]
fn a_request_with_an_odd_member_is_refused() -> Result<()> {
    needs!(Aimock, ProviderSdks);
    let provider = Provider::start()?;
    let proxy = Proxy::start(&provider)?;
    for interface in &INTERFACES {
        let mut server = interface.serve_with(&environment(&proxy.root))?;
        let settings = json!({"extra_body": {"odd_member": 1}});
        let frames = submit_with(&mut server, "my name is Ada", json!({"settings": settings}))?;
        let frames = Value::from(frames).to_string();
        ensure!(frames.contains("body.odd_member: not in"), "{}: {frames}", interface.engine);
    }
    Ok(())
}

fn all_kinds(server: &mut Server) -> Result<()> {
    weather(server)?;
    server.send(&look_at_image("image"))?;
    let frames = server.frames_until(|frame| is_done(frame, "image"))?;
    ensure!(text_of(&frames, "ChatTextPatch") == "I see a picture.", "{frames:#?}");
    let schema = json!({
        "type": "object", "properties": {"city": {"type": "string"}},
        "required": ["city"], "additionalProperties": false,
    });
    let settings = json!({
        "temperature": 1, "top_p": 0.9, "max_tokens": 3000, "stop": ["END"], "seed": 7,
        "reasoning_effort": "low",
    });
    let members = json!({"settings": settings, "responseSchema": schema});
    let frames = submit_with(server, "name a city as JSON", members)?;
    ensure!(text_of(&frames, "ChatTextPatch") == r#"{"city":"Oslo"}"#, "{frames:#?}");
    Ok(())
}

fn submit_with(server: &mut Server, prompt: &str, mut submit: Value) -> Result<Vec<Value>> {
    submit["prompt"] = prompt.into();
    server.send(&json!({"requestId": prompt, "submit": submit}))?;
    server.frames_until(|frame| is_done(frame, prompt))
}

/// The proxy on a free port.
struct Proxy {
    child: Child,
    root: String,
    output: Lines,
}

impl Proxy {
    fn start(provider: &Provider) -> Result<Self> {
        let mut child = Command::new(installed("sdks/python/bin/python"))
            .arg(format!("{SOURCES}/sdks/requests_of_sdks.py"))
            .arg(format!("http://{}", provider.address()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("see tests/clients/README.md")?;
        let output = Lines::of(child.stdout.take().context("stdout")?);
        let mut proxy = Self { child, root: String::new(), output };
        let line = proxy.output.next(Instant::now() + DEADLINE)?;
        proxy.root = String::from_utf8(line.context("the proxy ended")?)?.trim().to_owned();
        Ok(proxy)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}
