use super::*;
use serde_json::json;

fn variable(name: &str) -> Option<String> {
    match name {
        "TOKEN" => Some("s3cret-token".to_owned()),
        "TOKENS" => Some("first=s3cret-token second=0ther-token".to_owned()),
        "EMPTY" => Some(String::new()),
        "HOME" => Some("/home/somebody".to_owned()),
        "PROJECT" => Some("/srv/project".to_owned()),
        "MCP_HOST" => Some("Mcp.example.com".to_owned()),
        "MCP_URL" => Some("https://mcp.example.com/mcp?key=k3y-in-the-query".to_owned()),
        "MCP_LOGIN" => Some("someone:passw0rd@mcp.example.com".to_owned()),
        _ => None,
    }
}

fn read(file: &Value) -> Result<Servers, String> {
    let mut servers = Servers::default();
    let added = servers.add_file(&file.to_string(), &variable);
    added.map(|()| servers).map_err(|error| error.to_string())
}

/// What is read of a server with the members `server`, in a form that can be compared.
fn one(server: Value) -> Result<Value, String> {
    let servers = read(&json!({"mcpServers": {"s": server}}))?;
    let Some(config) = servers.configs.first() else { return Ok(Value::Null) };
    let shown = |values: &BTreeMap<String, Protected>| {
        let values = values.iter().map(|(name, value)| (name.clone(), value.expose().into()));
        Value::Object(values.collect())
    };
    let mut read = match &config.transport {
        Transport::Stdio { command, args, env, cwd } => {
            json!({"command": command, "args": args, "env": shown(env), "cwd": cwd})
        }
        Transport::Http { url, headers, .. } => {
            json!({"url": url.as_str(), "headers": shown(headers)})
        }
    };
    if config.start_limit != START_LIMIT {
        read["ms"] = u64::try_from(config.start_limit.as_millis()).expect("small").into();
    }
    if let Some(version) = &config.protocol_version {
        read["version"] = version.clone().into();
    }
    Ok(read)
}

#[test]
fn servers_are_read_as_other_clients_write_them() {
    let stdio = |command: &str| json!({"command": command, "args": [], "env": {}, "cwd": null});
    assert_eq!(one(json!({"command": "a"})), Ok(stdio("a")));
    assert_eq!(one(json!({"type": "stdio", "command": "a", "args": null})), Ok(stdio("a")));
    assert_eq!(one(json!({"command": "a", "cwd": "${EMPTY}"})), Ok(stdio("a")));
    assert_eq!(one(json!({"command": "a", "disabled": true})), Ok(Value::Null));
    assert_eq!(one(json!({"command": "a", "disabled": false})), Ok(stdio("a")));
    assert_eq!(
        one(json!({
            "command": "${NONE:-/home/x}/bin", "args": ["-y", "${TOKEN}", 7], "cwd": "/tmp",
            "env": {"A": "x${env:TOKEN}y", "N": 1, "B": true, "D": "${EMPTY:-d}", "P": "$HOME"},
        })),
        Ok(json!({
            "command": "/home/x/bin", "args": ["-y", "s3cret-token", "7"], "cwd": "/tmp",
            "env": {"A": "xs3cret-tokeny", "N": "1", "B": "true", "D": "d", "P": "$HOME"},
        }))
    );
    let remote = json!({"url": "https://h/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}});
    let expected =
        json!({"url": "https://h/mcp", "headers": {"Authorization": "Bearer s3cret-token"}});
    for kind in [json!(null), json!("http"), json!("streamable-http")] {
        let mut remote = remote.clone();
        remote["type"] = kind;
        assert_eq!(one(remote), Ok(expected.clone()));
    }
    let with_limits =
        json!({"url": "http://h", "startTimeout": 5, "protocolVersion": "2025-06-18"});
    let expected = json!({"url": "http://h/", "headers": {}, "ms": 5, "version": "2025-06-18"});
    assert_eq!(one(with_limits), Ok(expected));
}

#[test]
fn what_is_wrong_is_named_without_its_value() {
    let cases = [
        (json!({}), "mcpServers.s: has no command and no url"),
        (json!({"command": "a", "url": "http://h"}), "mcpServers.s: has both a command and a url"),
        (
            json!({"type": "stdio", "url": "http://h"}),
            "mcpServers.s.type: goes with a command and no url",
        ),
        (
            json!({"type": "http", "command": "x"}),
            "mcpServers.s.type: goes with a url and no command",
        ),
        (json!({"type": "ws", "url": "http://h"}), "mcpServers.s.type: must be stdio or http"),
        (json!({"command": ["s3cret-token"]}), "mcpServers.s.command: must be a string"),
        (
            json!({"command": "a", "args": "s3cret-token"}),
            "mcpServers.s.args: must be an array of strings",
        ),
        (json!({"command": "a", "args": ["x", {}]}), "mcpServers.s.args[1]: must be a string"),
        (json!({"command": "a", "env": {"K": null}}), "mcpServers.s.env.K: must be a string"),
        (json!({"command": "a", "env": {"K=": ""}}), "mcpServers.s.env.K=: is no name"),
        (json!({"command": "a\u{0}"}), "mcpServers.s.command: contains a NUL character"),
        (
            json!({"command": "a", "env": {"K": "${NONE}"}}),
            "mcpServers.s.env.K: the variable NONE is not set",
        ),
        (json!({"command": "${"}), "mcpServers.s.command: `${` without a `}`"),
        (
            json!({"command": "${input:x}"}),
            "mcpServers.s.command: `${…}` must hold the name of a variable",
        ),
        (json!({"url": "ftp://h"}), "mcpServers.s.url: must begin with http:// or https://"),
        (
            json!({"command": "a", "startTimeout": 0}),
            "mcpServers.s.startTimeout: must be a number of milliseconds above 0",
        ),
        (json!({"command": "a", "disabled": "no"}), "mcpServers.s.disabled: must be true or false"),
        (json!("a"), "mcpServers.s: must be an object"),
    ];
    for (server, expected) in cases {
        assert_eq!(one(server.clone()), Err(expected.to_owned()), "{server}");
    }
    let sse = one(json!({"type": "sse", "url": "http://h"})).expect_err("not supported");
    assert!(sse.starts_with("mcpServers.s.type: the transport `sse`"), "{sse}");
    assert_eq!(read(&json!({})).expect_err("nothing"), "it has no member `mcpServers`");
    assert_eq!(read(&json!({"mcpServers": []})).expect_err("no"), "mcpServers: must be an object");
    let broken = Servers::default().add_file("{\"a\": s3cret}", &variable).expect_err("no JSON");
    assert_eq!(broken.to_string(), "it is not JSON: expected value at line 1 column 7");
    let twice = r#"{"mcpServers": {"s": {"command": "a"}, "t": {"command": "b"}, "s": {}}}"#;
    let twice = Servers::default().add_file(twice, &variable).expect_err("two of a name");
    assert!(twice.to_string().starts_with("duplicate key \"s\" at line 1 "), "{twice}");
    let config = &read(&json!({"mcpServers": {"s": {"command": "a", "env": {"K": "${TOKEN}"}}}}))
        .expect("a server")
        .configs;
    assert!(!format!("{config:?}").contains("s3cret"), "{config:?}");
}

#[test]
fn what_is_ignored_is_reported() {
    let server = json!({"command": "a", "autoApprove": [], "headers": {}});
    let warnings = read(&json!({"mcpServers": {"s": server}})).expect("a server").warnings;
    let expected = [
        "mcpServers.s.autoApprove: not known here, ignored",
        "mcpServers.s.headers: has no meaning for this transport, ignored",
    ];
    assert_eq!(warnings, expected);
}

#[test]
fn a_command_line_has_words_and_a_name() {
    let mut servers = Servers::default();
    let lines = [
        ("/usr/bin/mcp-server-git --repository '/my repo'", "mcp-server-git"),
        ("npx -y @modelcontextprotocol/server-filesystem@1.2.3 /tmp", "server-filesystem"),
        ("npx -y @modelcontextprotocol/server-filesystem /etc", "server-filesystem-2"),
        ("uv run server.py", "server"),
        ("python3 -m mcp_server_time", "mcp_server_time"),
        ("docker run -i --rm mcp/fetch", "fetch"),
        ("docker run -i --rm -e TOKEN ghcr.io/github/github-mcp-server", "github-mcp-server"),
        ("podman run -v /tmp:/data --env=A=b mcp/filesystem:latest", "filesystem"),
        ("docker run -i host:5000/mcp/time@sha256:0123", "time"),
        ("uv --directory /srv/servers run weather.py", "weather"),
        ("docker run --pull always --cap-drop ALL -m 512m -i mcp/sqlite", "sqlite"),
        ("uv run --env-file .env forecast.py", "forecast"),
        ("uvx --from git+https://h/x mcp-x", "mcp-x"),
        ("npx -y -p typescript mcp-ts", "mcp-ts"),
        ("deno run -A npm:@scope/mcp-deno@1", "mcp-deno"),
        ("node -r dotenv/config build/main.js", "main"),
        ("python3 -u clock.py", "clock"),
        ("env -u HOME mcp-env", "mcp-env"),
        ("./a=b", "a=b"),
        ("env KEY=x node dist/index.js", "node"),
        ("npx", "npx"),
        ("/", "server-2"),
        ("https://mcp.example.com/mcp?x=1", "mcp.example.com"),
        ("http://localhost:3000/mcp", "localhost"),
    ];
    for (line, name) in lines {
        servers.add_command(line).expect(line);
        assert_eq!(servers.configs.last().map(|it| it.name.as_str()), Some(name), "{line}");
    }
    let Transport::Stdio { command, args, .. } = &servers.configs[0].transport else {
        panic!("not a command")
    };
    assert_eq!(
        (command.as_str(), args.as_slice()),
        ("/usr/bin/mcp-server-git", &["--repository".to_owned(), "/my repo".to_owned()][..])
    );
    for (wrong, why) in
        [("", "no command"), ("''", "no command"), ("a 'b", "quotes that don't match")]
    {
        let error = servers.add_command(wrong).expect_err(wrong);
        assert_eq!(error.to_string(), why);
    }
    let error = servers.add_command("API_KEY=s3cret npx server").expect_err("a variable");
    let error = error.to_string();
    assert!(
        error.starts_with("it begins with a variable;") && !error.contains("s3cret"),
        "{error}"
    );
    assert!(servers.add_command("http://").is_err());
    let again = servers.add_file(r#"{"mcpServers": {"npx": {"command": "a"}}}"#, &variable);
    assert_eq!(again.expect_err("twice").to_string(), "mcpServers.npx: there is already one");
}

/// What is shown of the text of a server with the members `server`.
fn shown(server: Value, text: &str) -> String {
    let servers = read(&json!({"mcpServers": {"s": server}})).expect("a configuration");
    servers.configs.first().expect("a server").shown(text)
}

/// A server writes its log a line at a time, so each line of a secret is one.
#[test]
fn secrets_of_several_lines_are_not_shown() {
    let key = "-----BEGIN KEY-----\nMIIEvQIBADAN\nBgkqhkiG9w0B\nend\n-----END KEY-----\n";
    let check = |text: &str, expected: &str| {
        let server = json!({"command": "a", "env": {"KEY": key}});
        assert_eq!(shown(server, text), expected, "{text:?}");
    };
    check("bad key MIIEvQIBADAN here", "bad key [redacted] here");
    check("BgkqhkiG9w0B: no such key", "[redacted]: no such key");
    check("-----BEGIN KEY----- is wrong", "[redacted] is wrong");
    // Half of a line at the end of a text that was cut is half of a secret.
    check("bad key MIIEvQIBA", "bad key");
    // And one character, or two, is no beginning of one.
    check("it ended with status M", "it ended with status M");
    // A short line may be any word.
    check("the end of it", "the end of it");
}

/// A server's error quotes a token without its scheme.
#[test]
fn the_token_of_a_header_is_not_shown_alone() {
    let check = |value: &str, text: &str, expected: &str| {
        let server = json!({"url": "https://h/mcp", "headers": {"Authorization": value}});
        assert_eq!(shown(server, text), expected, "{text:?}");
    };
    check("Bearer tok-5f3c9a", "token tok-5f3c9a has expired", "token [redacted] has expired");
    check("Bearer tok-5f3c9a", "Bearer tok-5f3c9a: no", "[redacted]: no");
    check("Token token=\"tok-5f3c9a\"", "unknown: tok-5f3c9a", "unknown: [redacted]");
    check("Bearer tok-5f3c9a", "the bearer has gone", "the bearer has gone");
}

/// Keys are found in the path and in the query of a URL, and in its headers.
#[test]
fn secrets_of_a_url_are_not_shown() {
    let check = |text: &str, expected: &str| {
        let server = json!({
            "url": "https://h/v1/k3y-in-the-path/mcp?token=k3y-in-the-query",
            "headers": {"X-Key": "k3y-in-a-header"},
        });
        assert_eq!(shown(server, text), expected, "{text:?}");
    };
    check(
        "404 at https://h/v1/k3y-in-the-path/mcp?token=k3y-in-the-query",
        "404 at https://h/v1/[redacted]/mcp?[redacted]",
    );
    check("no route for /k3y-in-the-path", "no route for /[redacted]");
    check("k3y-in-a-header is refused", "[redacted] is refused");
    check("v1 and mcp are ordinary words", "v1 and mcp are ordinary words");
}

/// A server's error quotes one parameter of several, and has it without the escapes of the URL.
#[test]
fn each_value_in_the_query_of_a_url_is_not_shown() {
    let check = |query: &str, text: &str, expected: &str| {
        let server = json!({ "url": format!("https://h/mcp?{query}") });
        assert_eq!(shown(server, text), expected, "{query}: {text:?}");
    };
    let query = "api_key=sk%2Flive%2F0123456789&profile=x";
    check(query, "no key sk/live/0123456789, profile x", "no key [redacted], profile x");
    check(query, "no key sk%2Flive%2F0123456789", "no key [redacted]");
    check("key=two+words+0123", "no key two words 0123", "no key [redacted]");
    check("sk-0123456789&x", "no key sk-0123456789", "no key [redacted]");
    check("e", "error sending request", "error sending request");
}

/// A variable's value is part of a longer text here, and is quoted without that.
#[test]
fn values_of_variables_are_not_shown() {
    let check = |server: Value, text: &str, expected: &str| {
        assert_eq!(shown(server, text), expected, "{text:?}");
    };
    let said = "no such key: s3cret-token";
    let redacted = "no such key: [redacted]";
    check(json!({"command": "a", "args": ["--key=${TOKEN}"]}), said, redacted);
    check(json!({"command": "a", "env": {"OPTIONS": "--key=${TOKEN} -v"}}), said, redacted);
    check(json!({"url": "https://h/${TOKEN}-1/mcp?v=1.${TOKEN}"}), said, redacted);
    // The name of the host is the beginning of the key.
    check(json!({"url": "https://s3cret/v1-${TOKEN}/mcp"}), said, redacted);
    check(json!({"url": "https://s3cret/mcp?v=1.${TOKEN}"}), said, redacted);
    // One value is part of another one.
    let both = json!({"command": "a", "args": ["${TOKEN}", "${TOKENS}"]});
    check(both, "bad: first=s3cret-token second=0ther-token", "bad: [redacted]");
    let both = json!({"url": "https://h/s3cret-token", "headers": {"X-Keys": "${TOKENS}"}});
    check(both, "bad: first=s3cret-token second=0ther-token", "bad: [redacted]");
    // A folder is no key, and says in an error which file it is about.
    let home = json!({"command": "a", "args": ["${HOME}/docs"]});
    check(home, "no file /home/somebody/docs/a", "no file /home/somebody/docs/a");
}

/// People need them to find what is wrong.
#[test]
fn variables_in_an_address_and_a_folder_are_shown() {
    let check = |server: Value, text: &str, expected: &str| {
        assert_eq!(shown(server, text), expected, "{text:?}");
    };
    let login = "`duologue mcp login https://mcp.example.com/mcp`";
    for url in ["https://${MCP_HOST}/mcp", "${MCP_URL}"] {
        check(json!({ "url": url }), login, login);
    }
    check(json!({"url": "${MCP_URL}"}), "no key k3y-in-the-query", "no key [redacted]");
    let with_login = json!({"url": "https://${MCP_LOGIN}/mcp"});
    check(with_login, "nobody is someone:passw0rd@mcp.example.com", "nobody is [redacted]");
    let with_folder =
        json!({"command": "a", "args": ["--root", "${PROJECT}"], "cwd": "${PROJECT}"});
    check(with_folder, "its folder \"/srv/project\"", "its folder \"/srv/project\"");
    let with_program = json!({"command": "${PROJECT}/bin/a", "args": ["${PROJECT}"]});
    check(with_program, "no program /srv/project/bin/a", "no program /srv/project/bin/a");
}
