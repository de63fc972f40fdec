//! Proxies that the environment names: what goes through them, and what does not.

use crate::once::{Ended, Once, duologue};
use crate::provider::{Provider, Step, says};
use crate::server::{Folder, KEY};
use crate::socks::{Conduct, Socks};

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
    for exempt in [
        NOWHERE,
        "invalid",
        ".invalid",
        "*",
        "other.example, models.invalid",
        "*.invalid",
        "models.invalid:80",
        "other.example models.invalid",
    ] {
        let proxy = Provider::start(Vec::new());
        let address = proxy.base_url();
        let variables = [("HTTP_PROXY", address.as_str()), ("NO_PROXY", exempt)];
        let ended = exec(&format!("http://{NOWHERE}/v1"), &variables);
        assert_eq!(ended.status, 75, "{exempt}: {ended:?}");
        assert_eq!(proxy.requests(), 0, "{exempt}");
    }
}

#[test]
fn a_host_that_is_exempt_at_another_port_is_asked_through_the_proxy() {
    for exempt in ["models.invalid:8080", "*.other.invalid", "other.example:80 *.example"] {
        let proxy = Provider::start(vec![says("by proxy")]);
        let address = format!("ann:hid%20den@{}", proxy.base_url().trim_start_matches("http://"));
        let address = format!("http://{address}");
        let variables = [("HTTP_PROXY", address.as_str()), ("NO_PROXY", exempt)];
        let ended = exec(&format!("http://{NOWHERE}/v1"), &variables);
        assert_eq!((ended.status, ended.stdout.as_str()), (0, "by proxy\n"), "{exempt}: {ended:?}");
        let login = proxy.wait_request(1).header("proxy-authorization").map(str::to_owned);
        assert_eq!(login.as_deref(), Some("Basic YW5uOmhpZCBkZW4="), "{exempt}");
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

/// An error names the proxy, without its login, and not the provider, which was never reached.
#[test]
fn a_fault_of_the_proxy_names_the_proxy() {
    let status = |status: u16| vec![vec![Step::Status(status, Vec::new(), "oops".to_owned())]];
    let check = |scheme: &str, script: Option<u16>, says: &str, status_of_exit: i32| {
        let proxy = Provider::start(script.map(status).unwrap_or_default());
        let base_url = proxy.base_url();
        let address = base_url.trim_start_matches("http://").trim_end_matches("/v1");
        // Nobody listens there once the provider is gone.
        let with_login = format!("http://ann:hidden@{address}");
        let _proxy = script.map(|_| proxy);
        let variables = [("HTTP_PROXY", &*with_login), ("HTTPS_PROXY", &with_login)];
        let ended = exec(&format!("{scheme}://{NOWHERE}/v1"), &variables);
        assert!(ended.stderr.contains(&says.replace("PROXY", address)), "{says}: {ended:?}");
        assert!(!ended.stderr.contains("hidden") && !ended.stderr.contains("ann"), "{ended:?}");
        assert_eq!(ended.status, status_of_exit, "{ended:?}");
    };
    check("https", None, "the proxy http://PROXY, through which https://models.invalid/v1", 75);
    check("http", None, "the proxy http://PROXY, through which http://models.invalid/v1", 75);
    check("https", Some(502), "the proxy http://PROXY makes no connection to https://", 75);
    check("http", Some(502), "the request went through the proxy http://PROXY", 75);
    for scheme in ["http", "https"] {
        check(scheme, Some(407), "requires a login: put name and password", 1);
    }
}

/// What a proxy of SOCKS is asked for has the provider's name, which this machine can't look up.
#[test]
fn requests_go_through_a_socks_proxy_which_looks_the_name_up() {
    for (login, in_address) in [(None, ""), (Some(("ann", "hid den")), "ann:hid%20den@")] {
        let provider = Provider::start(vec![says("by SOCKS")]);
        let socks = Socks::start(Conduct { target: Some(provider.address()), login });
        let proxy = format!("socks5h://{in_address}{}", socks.address());
        let ended = exec(&format!("http://{NOWHERE}:8080/v1"), &[("ALL_PROXY", &proxy)]);
        assert_eq!((ended.status, ended.stdout.as_str()), (0, "by SOCKS\n"), "{ended:?}");
        assert_eq!(socks.asked(), ["models.invalid:8080"]);
        assert_eq!(provider.wait_request(1).path, "/v1/chat/completions");
    }
}

#[test]
fn a_fault_of_a_socks_proxy_names_the_proxy() {
    let check = |scheme: &str, conduct: Option<Conduct>, says: &str, status: i32| {
        let closed = Conduct { target: None, login: None };
        let socks = Socks::start(conduct.unwrap_or(closed));
        let address = socks.address();
        // Nobody listens there once the proxy is gone.
        let _socks = conduct.map(|_| socks);
        let proxy = format!("{scheme}://ann:hidden@{address}");
        let says = says.replace("PROXY", &format!("{scheme}://{address}"));
        for of_provider in ["http", "https"] {
            let base_url = format!("{of_provider}://{NOWHERE}/v1");
            let ended = exec(&base_url, &[("ALL_PROXY", &proxy)]);
            assert!(ended.stderr.contains(&says), "{says}: {ended:?}");
            assert!(!ended.stderr.contains("hidden") && !ended.stderr.contains("ann"), "{ended:?}");
            assert_eq!(ended.status, status, "{ended:?}");
        }
    };
    let refusing = Conduct { target: None, login: Some(("ann", "hidden")) };
    let other = Conduct { target: None, login: Some(("ann", "other")) };
    check("socks5h", None, "the proxy PROXY, through which", 75);
    check("socks5h", Some(refusing), "the proxy PROXY makes no connection to", 75);
    check("socks5h", Some(other), "as in socks5h://NAME:PASSWORD@HOST:PORT", 1);
    check("socks5", Some(refusing), "with socks5h:// (or socks4a://)", 75);
}
