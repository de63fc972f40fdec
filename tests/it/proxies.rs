//! Proxies that the environment names: what goes through them, and what does not.

use crate::once::{Ended, Once, duologue};
use crate::provider::{Provider, Step, says};
use crate::server::{Folder, KEY};

/// A name that no server has (RFC 6761).
const NOWHERE: &str = "models.invalid";

/// `exec hello` with a provider at `base_url`, and these variables.
fn exec(base_url: &str, variables: &[(&str, &str)]) -> Ended {
    let folder = Folder::new();
    let words = ["exec", "hello", "--model", "m", "--base-url", base_url, "--retries", "0"];
    // For a machine whose name server does not answer.
    let limit = ["--connect-timeout-ms", "2000"];
    let mut command = duologue(&folder, &[&words[..], &limit].concat());
    command.env("DUOLOGUE_API_KEY", KEY).envs(variables.iter().copied());
    let mut once = Once::start(command);
    once.close_stdin();
    once.finish()
}

#[test]
fn requests_go_through_the_proxy_that_is_named() {
    for variable in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        let proxy = Provider::start(vec![says("by proxy")]);
        let address = proxy.base_url();
        let ended = exec(&format!("http://{NOWHERE}/v1"), &[(variable, &address)]);
        assert_eq!(
            (ended.status, ended.stdout.as_str()),
            (0, "by proxy\n"),
            "{variable}: {ended:?}"
        );
        let asked = proxy.wait_request(1).path;
        assert_eq!(asked, format!("http://{NOWHERE}/v1/chat/completions"), "{variable}");
    }
}

/// Mistral's own server refuses a request with a member that it doesn't know.
#[test]
fn mistral_is_sent_no_stream_options() {
    for (host, is_sent) in [("api.mistral.ai", false), (NOWHERE, true)] {
        let proxy = Provider::start(vec![says("Bonjour")]);
        let ended = exec(&format!("http://{host}/v1"), &[("HTTP_PROXY", &proxy.base_url())]);
        assert_eq!((ended.status, ended.stdout.as_str()), (0, "Bonjour\n"), "{ended:?}");
        let request = proxy.wait_request(1);
        assert_eq!(request.path, format!("http://{host}/v1/chat/completions"));
        assert_eq!(request.body.get("stream_options").is_some(), is_sent, "{host}");
    }
}

/// The proxy opens a tunnel, and sees neither the key nor the conversation.
#[test]
fn a_provider_with_tls_is_reached_through_a_tunnel() {
    let refusal = vec![Step::Status(403, Vec::new(), String::new())];
    let proxy = Provider::start(vec![refusal]);
    let address = proxy.base_url();
    let ended = exec(&format!("https://{NOWHERE}/v1"), &[("HTTPS_PROXY", &address)]);
    assert_eq!(ended.status, 75, "{ended:?}");
    let request = proxy.wait_request(1);
    assert_eq!((request.method.as_str(), request.path.as_str()), ("CONNECT", "models.invalid:443"));
    assert_eq!(request.header("authorization"), None);
}

#[test]
fn hosts_that_are_exempt_are_asked_directly() {
    for exempt in [NOWHERE, "invalid", ".invalid", "*", "other.example, models.invalid"] {
        let proxy = Provider::start(Vec::new());
        let address = proxy.base_url();
        let variables = [("HTTP_PROXY", address.as_str()), ("NO_PROXY", exempt)];
        let ended = exec(&format!("http://{NOWHERE}/v1"), &variables);
        assert_eq!(ended.status, 75, "{exempt}: {ended:?}");
        assert_eq!(proxy.requests(), 0, "{exempt}");
    }
}

#[test]
fn this_machine_is_asked_directly() {
    let proxy = Provider::start(Vec::new());
    let provider = Provider::start(vec![says("directly")]);
    let address = proxy.base_url();
    let variables = [("HTTP_PROXY", address.as_str()), ("ALL_PROXY", &address)];
    let ended = exec(&provider.base_url(), &variables);
    assert_eq!((ended.status, ended.stdout.as_str()), (0, "directly\n"), "{ended:?}");
    assert_eq!(proxy.connections(), 0);
}
