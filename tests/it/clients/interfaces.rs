//! The same conversations over every interface of a provider that somebody else wrote: OpenAI's two,
//! Anthropic's, Google's and Ollama's. The provider reads each interface into one form, which its
//! journal shows: what it has understood of a request is compared with what was said.

use super::server::{Server, event, event_name, events, is_done, status_of, submit, text_of};
use super::third_party::Provider;
use crate::attachments::PNG;
use anyhow::{Context, Result, bail, ensure};
use data_encoding::BASE64;
use serde_json::{Value, json};
use std::process::Command;

/// One interface, and what the provider has of it.
pub(super) struct Interface {
    pub(super) engine: &'static str,
    /// The provider takes an answer's reasoning from models that it knows to reason.
    model: &'static str,
    options: &'static [&'static str],
    /// Reasoning is streamed under the name that the interface has for it.
    reasons: bool,
    /// Token counts are not all 0.
    counts: bool,
    /// The end of an answer that calls tools, and of one that was too long.
    ends: [&'static str; 2],
    lists_models: bool,
}

pub(super) const INTERFACES: [Interface; 5] = [
    Interface {
        engine: "openai",
        model: "deepseek-r1",
        options: &[],
        reasons: true,
        counts: true,
        ends: ["tool_calls", "max_tokens"],
        lists_models: true,
    },
    Interface {
        engine: "responses",
        model: "gpt-5",
        options: &[],
        reasons: true,
        counts: true,
        ends: ["tool_calls", "max_tokens"],
        lists_models: true,
    },
    Interface {
        engine: "anthropic",
        model: "claude-sonnet-4-5",
        // With it the provider refuses a call that follows tools without the signed reasoning.
        options: &["-O", "reasoning_budget=2000"],
        reasons: true,
        counts: true,
        ends: ["tool_calls", "max_tokens"],
        lists_models: true,
    },
    Interface {
        engine: "gemini",
        model: "gemini-2.5-pro",
        options: &[],
        reasons: true,
        counts: true,
        ends: ["tool_calls", "max_tokens"],
        lists_models: false,
    },
    Interface {
        engine: "ollama",
        model: "qwen3",
        options: &[],
        reasons: false,
        counts: false,
        ends: ["tool_calls", "completed"],
        lists_models: true,
    },
];

impl Interface {
    fn serve(&self, provider: &Provider) -> Result<Server> {
        self.serve_with(&provider.environment())
    }

    pub(super) fn serve_with(&self, environment: &[(&str, String)]) -> Result<Server> {
        let options = [&["--engine", self.engine, "--model", self.model], self.options].concat();
        let environment: Vec<_> =
            environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
        Server::start(&options, &environment)
    }
}

/// Has `check` talk to a provider of its own over each interface.
fn over_each(check: impl Fn(&Interface, &Provider, &mut Server) -> Result<()>) -> Result<()> {
    for interface in &INTERFACES {
        let provider = Provider::start()?;
        let mut server = interface.serve(&provider)?;
        check(interface, &provider, &mut server)
            .and_then(|()| server.output_to_end().map(drop))
            .context(interface.engine)?;
    }
    Ok(())
}

#[test]
fn text_reasoning_and_counts_arrive_over_every_interface() -> Result<()> {
    needs!(Aimock);
    over_each(|interface, _, server| {
        let frames = server.turn("r1", "introduce yourself")?;
        ensure!(status_of(&frames, "r1") == "ok", "{frames:#?}");
        let text = text_of(&frames, "ChatTextPatch");
        ensure!(text == "I am a provider that somebody else wrote.", "{text}");
        ensure!(events(&frames, "ChatTextPatch").count() > 1, "the answer came in one piece");
        let reasoning = text_of(&frames, "ChatReasoningPatch");
        let expected = if interface.reasons { "Somebody asks who I am." } else { "" };
        ensure!(reasoning == expected, "{reasoning}");
        let finished = event(&frames, "ChatProviderCallFinished")?;
        let counts = json!({"inputTokens": 11, "outputTokens": 7});
        let expected = if interface.counts { counts } else { json!({}) };
        ensure!(finished["usage"] == expected, "{finished}");

        let frames = server.turn("r2", "write odd letters")?;
        let text = text_of(&frames, "ChatTextPatch");
        let expected = "a\u{2028}b\u{2029}c\u{85}d\0e\rf\u{1F600}\u{1F468}\u{200D}\u{1F469}g";
        ensure!(text == expected, "{text:?}");

        let frames = server.turn("r3", "answer in part")?;
        ensure!(event(&frames, "ChatProviderCallFinished")?["finishClass"] == interface.ends[1]);
        Ok(())
    })
}

#[test]
fn tools_are_called_in_two_rounds_over_every_interface() -> Result<()> {
    needs!(Aimock);
    over_each(|interface, provider, server| {
        let frames = weather(server)?;
        let finished: Vec<&Value> = events(&frames, "ChatProviderCallFinished").collect();
        let classes: Vec<&Value> = finished.iter().map(|event| &event["finishClass"]).collect();
        ensure!(classes == [interface.ends[0], interface.ends[0], "completed"], "{finished:#?}");
        let text = text_of(&frames, "ChatTextPatch");
        ensure!(text == "Let me look.Clouds in Oslo and Lima, rain in Bergen.", "{text}");
        let reasoning = text_of(&frames, "ChatReasoningPatch");
        let expected = if interface.reasons { "I need a tool.One city is left." } else { "" };
        ensure!(reasoning == expected, "{reasoning}");

        let known = provider.last_messages()?;
        let results: Vec<&str> = known
            .iter()
            .filter(|(role, _)| role == "tool")
            .map(|(_, text)| text.as_str())
            .collect();
        let [oslo, lima, bergen] = results.as_slice() else { bail!("{known:#?}") };
        let fits = oslo.contains("Oslo") && lima.contains("Lima") && bergen.contains("Bergen");
        ensure!(fits, "{known:#?}");
        ensure!(known.iter().any(|(role, text)| role == "assistant" && text == "Let me look."));
        // The calls and results of a turn before do not confuse the next.
        let frames = server.turn("after", "my name is Ada")?;
        ensure!(text_of(&frames, "ChatTextPatch") == "Nice to meet you, Ada.");
        Ok(())
    })
}

#[test]
fn every_interface_takes_an_image() -> Result<()> {
    needs!(Aimock);
    over_each(|_, provider, server| {
        server.send(&look_at_image("r1"))?;
        let frames = server.frames_until(|frame| is_done(frame, "r1"))?;
        ensure!(text_of(&frames, "ChatTextPatch") == "I see a picture.", "{frames:#?}");
        let frames = server.turn("r2", "what did you see")?;
        ensure!(text_of(&frames, "ChatTextPatch") == "A picture.", "{frames:#?}");
        let known = provider.last_messages()?;
        let roles: Vec<&str> = known.iter().map(|(role, _)| role.as_str()).collect();
        ensure!(roles == ["user", "assistant", "user"], "{known:#?}");
        Ok(())
    })
}

#[test]
fn a_cancel_stops_an_answer_over_every_interface() -> Result<()> {
    needs!(Aimock);
    over_each(|_, provider, server| {
        server.send(&submit("r1", "count slowly"))?;
        let mut frames = server.frames_until(|frame| event_name(frame) == "ChatTextPatch")?;
        server.send(&json!({"version": 1, "requestId": "r2", "cancel": {}}))?;
        frames.extend(server.frames_until(|frame| is_done(frame, "r1"))?);
        ensure!(status_of(&frames, "r1") == "stopped", "{frames:#?}");
        let partial = text_of(&frames, "ChatTextPatch");
        ensure!(partial.starts_with("num") && !partial.contains("number 200"), "{partial:?}");
        let frames = server.turn("r3", "what did you count")?;
        ensure!(text_of(&frames, "ChatTextPatch") == "Some numbers.", "{frames:#?}");
        let known = provider.last_messages()?;
        let is_partial =
            |(role, text): &(String, String)| role == "assistant" && text.contains(&partial);
        ensure!(known.iter().any(is_partial), "{known:#?}");
        Ok(())
    })
}

#[test]
fn what_fails_over_any_interface_is_a_typed_error_and_what_passes_is_tried_again() -> Result<()> {
    needs!(Aimock);
    over_each(|_, _, server| {
        let failures = [
            ("refuse my key", "auth: status 401"),
            ("forget the model", "provider: status 404"),
            ("hang up", "network:"),
        ];
        for (prompt, detail) in failures {
            let frames = server.turn(prompt, prompt)?;
            let errors = frames.iter().map(|frame| &frame["error"]).filter(|it| !it.is_null());
            let errors: Vec<&Value> = errors.collect();
            let [error] = errors.as_slice() else { bail!("{prompt}: {frames:#?}") };
            let is_expected = error["detail"].as_str().is_some_and(|it| it.starts_with(detail));
            ensure!(is_expected && status_of(&frames, prompt) == "failed", "{prompt}: {error}");
        }
        for (prompt, answer) in
            [("be busy once", "Now I have time."), ("break once", "I am whole again.")]
        {
            let frames = server.turn(prompt, prompt)?;
            ensure!(text_of(&frames, "ChatTextPatch") == answer, "{prompt}: {frames:#?}");
        }
        Ok(())
    })
}

#[test]
fn models_are_listed_where_the_provider_lists_them() -> Result<()> {
    needs!(Aimock);
    let provider = Provider::start()?;
    for interface in &INTERFACES {
        let mut command = Command::new(env!("CARGO_BIN_EXE_duologue"));
        command.args(["models", "--engine", interface.engine]).envs(provider.environment());
        let output = command.output()?;
        let shown = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        ensure!(output.status.success() == interface.lists_models, "{}: {shown}", interface.engine);
        let expected =
            if interface.lists_models { "gpt-4o\n" } else { "know this address (status 404)" };
        ensure!(shown.contains(expected), "{}: {shown}", interface.engine);
    }
    Ok(())
}

/// From each interface of one provider to the next interface of another, with calls of tools, an
/// image, and reasoning that only the first can read.
#[test]
fn a_conversation_goes_on_at_another_provider() -> Result<()> {
    needs!(Aimock);
    for (index, from) in INTERFACES.iter().enumerate() {
        let to = &INTERFACES[(index + 1) % INTERFACES.len()];
        // OpenAI's two interfaces have one address.
        let to = if from.engine == "openai" { &INTERFACES[2] } else { to };
        switch(from, to).with_context(|| format!("from {} to {}", from.engine, to.engine))?;
    }
    Ok(())
}

fn switch(from: &Interface, to: &Interface) -> Result<()> {
    let [first, second] = [Provider::start()?, Provider::start()?];
    let variable = match to.engine {
        "anthropic" => "ANTHROPIC_BASE_URL",
        "gemini" => "GEMINI_BASE_URL",
        "ollama" => "OLLAMA_HOST",
        _ => "OPENAI_BASE_URL",
    };
    let other = second.environment().into_iter().filter(|(name, _)| *name == variable);
    let kept = first.environment().into_iter().filter(|(name, _)| *name != variable);
    let environment: Vec<_> = kept.chain(other).collect();
    let environment: Vec<_> =
        environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let options = [&["--engine", from.engine, "--model", from.model], from.options].concat();
    let mut server = Server::start(&options, &environment)?;
    weather(&mut server)?;
    server.send(&look_at_image("image"))?;
    server.frames_until(|frame| is_done(frame, "image"))?;

    let switch = json!({"engine": to.engine, "model": to.model});
    server.send(&json!({"requestId": "switch", "switchModel": switch}))?;
    let frames = server.frames_until(|frame| is_done(frame, "switch"))?;
    ensure!(status_of(&frames, "switch") == "ok", "{frames:#?}");
    let frames = server.turn("after", "what did you see")?;
    ensure!(text_of(&frames, "ChatTextPatch") == "A picture.", "{frames:#?}");

    let known = second.last_messages()?;
    let has = |role: &str, part: &str| known.iter().any(|it| it.0 == role && it.1.contains(part));
    for (role, part) in [
        ("user", "what is the weather"),
        ("assistant", "Let me look."),
        ("tool", "Oslo"),
        ("tool", "Lima"),
        ("tool", "Bergen"),
        ("assistant", "Clouds in Oslo and Lima, rain in Bergen."),
        ("user", "look at the picture"),
        ("assistant", "I see a picture."),
        ("user", "what did you see"),
    ] {
        ensure!(has(role, part), "{role} {part}: {known:#?}");
    }
    ensure!(!has("assistant", "I need a tool."), "reasoning of another: {known:#?}");
    server.output_to_end().map(drop)
}

/// A turn in which the model asks for the weather in two cities, and then in a third; the client
/// answers.
pub(super) fn weather(server: &mut Server) -> Result<Vec<Value>> {
    let schema = json!({
        "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
    });
    let tool =
        json!({"name": "get_weather", "description": "The weather now.", "inputSchema": schema});
    let tools = json!({"tools": [tool], "revision": 1});
    server.send(&json!({"requestId": "tools", "declareTools": tools}))?;
    server.send(&submit("weather", "what is the weather"))?;
    let mut frames = Vec::new();
    for sky in ["clouds", "clouds", "rain"] {
        let is_call = |frame: &Value| event_name(frame) == "FrontendToolCallRequested";
        frames.extend(server.frames_until(is_call)?);
        let call = &frames.last().context("a call")?["uiEvent"]["payload"];
        let city = call["input"]["city"].as_str().context("a city")?;
        let id = call["toolCallId"].as_str().context("an id")?;
        let result = json!({"toolCallId": id, "result": {"sky": format!("{sky} in {city}")}});
        server.send(&json!({"requestId": format!("result {id}"), "toolResult": result}))?;
    }
    frames.extend(server.frames_until(|frame| is_done(frame, "weather"))?);
    ensure!(status_of(&frames, "weather") == "ok", "{frames:#?}");
    Ok(frames)
}

pub(super) fn look_at_image(request: &str) -> Value {
    let url = format!("data:image/png;base64,{}", BASE64.encode(PNG));
    let submit = json!({"prompt": "look at the picture", "attachments": [{"url": url}]});
    json!({"requestId": request, "submit": submit})
}
