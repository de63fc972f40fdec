//! `duologue tools` with MCP servers.

use crate::mcp_servers::{assert_gone, config, mark};
use crate::server::Folder;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// `duologue tools` with the servers of `faults`.
pub(crate) fn tools(mark: &str, faults: &[&str], args: &[&str]) -> Command {
    command(mark, faults, &["tools"], args)
}

/// `duologue <name> <args>` with the servers of `faults`.
pub(crate) fn command(mark: &str, faults: &[&str], name: &[&str], args: &[&str]) -> Command {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("duologue-mcp-{mark}.json"));
    fs::write(&path, config(mark, faults, &json!({"startTimeout": 20_000}))).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_duologue"));
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.args(name).arg("--mcp-config").arg(path).args(args);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn listed(mark: &str, faults: &[&str], args: &[&str]) -> Output {
    let output = tools(mark, faults, args).output().expect("the binary");
    assert_gone(mark);
    output
}

#[test]
fn the_command_lists_what_a_model_would_see() {
    let output = listed(&mark(), &["none", "odd"], &[]);
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(
        out,
        "act (none)\n    parameters: none\n\
         echo (none)\n    Repeats.\n    parameters: text: string\n\
         fine (odd)\n    parameters: none\n\
         null (odd)\n    parameters: none\n\
         odd__with_dots_and_more (odd)\n    \\x1b[31mred\n    second line\n    parameters: none\n"
    );
    assert!(
        err.contains("its tool `list` can't be used: its inputSchema is not an object"),
        "{err}"
    );
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn the_command_names_servers_that_fail() {
    let args = ["--output", "json", "--allow", "ec*", "--deny", "act"];
    let output = listed(&mark(), &["crash-at-init", "none"], &args);
    let err = String::from_utf8_lossy(&output.stderr);
    let reason = "crash-at-init: it ended with status 4";
    assert!(err.ends_with(&format!("duologue: MCP server {reason}\n")), "{err}");
    // What it wrote is in the log, and no reason.
    let wrote = "MCP server crash-at-init wrote before its end: database is locked\n";
    assert!(err.contains(wrote), "{err}");
    assert_eq!(output.status.code(), Some(1));
    let listed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(listed["ok"], false);
    assert_eq!(listed["error"]["code"], "mcp_server_failed");
    assert_eq!(listed["error"]["detail"], reason);
    let tools = listed["data"].as_array().expect("a list");
    let shown: Vec<_> =
        tools.iter().map(|it| [&it["name"], &it["server"], &it["approval"]]).collect();
    assert_eq!(json!(shown), json!([["act", "none", "deny"], ["echo", "none", "allow"]]));
    assert_eq!(tools[1]["inputSchema"]["required"], json!(["text"]));
}

/// The commonest mistakes with a server over HTTP: no scheme, no server, and a proxy that is in the way.
#[test]
fn a_server_that_can_not_be_reached_is_said_with_what_to_do() {
    let run = |words: &[&str], variables: &[(&str, &str)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_duologue"));
        command.env_clear().args(words).envs(variables.iter().copied());
        let output = command.output().expect("the binary");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let tools =
        |server: &str, variables: &[(&str, &str)]| run(&["tools", "--mcp", server], variables);
    let hint = "an address begins with https:// or http://";
    for server in ["example.com/mcp", "localhost:3000", "127.0.0.1:3000/mcp", "host:80"] {
        let error = tools(server, &[]);
        assert!(error.contains("can't start") && error.contains(hint), "{server}: {error}");
    }
    for program in ["no-such-program", "./server.py", "/no/such.d/server", "server.py"] {
        let error = tools(program, &[]);
        assert!(error.contains("can't start") && !error.contains(hint), "{program}: {error}");
    }
    let gone = tools("http://127.0.0.1:1/mcp", &[]);
    assert!(gone.contains("it can't be reached: check that it runs, its address"), "{gone}");
    let proxy = [("HTTP_PROXY", "http://ada:s3cret@127.0.0.1:1")];
    let proxied = tools("http://example.test/mcp", &proxy);
    assert!(
        proxied.contains("through the proxy http://127.0.0.1:1: check HTTP_PROXY"),
        "{proxied}"
    );
    assert!(!proxied.contains("s3cret"), "{proxied}");
    let login = run(&["mcp", "login", "example.com"], &[("HOME", "/nowhere")]);
    assert!(login.contains("write it with https://, as https://example.com/mcp"), "{login}");
}

#[test]
fn a_wrong_configuration_is_a_wrong_command_line() {
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_duologue"));
        let output = command.env_clear().arg("tools").args(args).output().expect("the binary");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(run(&[]).contains("no MCP server is named"));
    assert!(run(&["--mcp", "a 'b"]).contains("--mcp, number 1: quotes that don't match"));
    let refused = run(&["--mcp", "API_KEY=s3cret npx server"]);
    assert!(refused.contains("--mcp, number 1: it begins with a variable"), "{refused}");
    assert!(!refused.contains("s3cret"), "{refused}");
    assert!(run(&["--mcp-config", "/nowhere.json"]).contains("/nowhere.json can't be read"));
    assert!(run(&["--mcp-config", "/dev/null"]).contains("is not a regular file"));
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("duologue-mcp-{}.json", mark()));
    let text = r#"{"mcpServers": {"s": {"command": "a", "env": {"KEY": ["s3cret"]}}}}"#;
    fs::write(&path, text).expect("a file");
    let shown = path.to_string_lossy();
    let expected =
        format!("duologue: --mcp-config: {shown}: mcpServers.s.env.KEY: must be a string\n");
    assert_eq!(run(&["--mcp-config", &shown]), expected);
    let text = r#"{"mcpServers": {"my": {"command": "a"}, "my__server": {"command": "b"}}}"#;
    fs::write(&path, text).expect("a file");
    let refused = run(&["--mcp-config", &shown, "--allow", "my__server__rm"]);
    assert!(refused.contains("--allow 'my__server__rm' can be read as"), "{refused}");
    fs::remove_file(&path).expect("a file");
    let server = r#"{"command": "cat", "args": [], "args": []}"#;
    let (status, err) = tools_of(&format!(r#"{{"mcpServers": {{"s": {server}}}}}"#));
    assert!(status == Some(2) && err.contains("duplicate key \"args\" at line 1"), "{err}");
}

/// The status of `duologue tools` with the file `json`, and what it writes to standard error. Two variables are set.
fn tools_of(json: &str) -> (Option<i32>, String) {
    let folder = Folder::new();
    fs::write(folder.path("servers"), json).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_duologue"));
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("KEY", "k3y-0123456789").env("OPTIONS", "key=k3y-0123456789 password=hunter2");
    command.args(["tools", "--mcp-config", &folder.name("servers")]);
    let output = command.output().expect("the binary");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Standard error of `duologue tools` with the server `s`, which can't be used.
fn failure_of(server: &Value) -> String {
    let (status, err) = tools_of(&json!({"mcpServers": {"s": server}}).to_string());
    assert_eq!(status, Some(1), "{err}");
    err
}

/// A server says what is wrong with its key, and its arguments may have one.
#[test]
fn a_key_that_a_variable_holds_is_in_no_log() {
    let script = "echo \"invalid key $0\" >&2; exit 1";
    let err = failure_of(&json!({"command": "sh", "args": ["-c", script, "${KEY}"]}));
    assert!(err.contains("wrote before its end: invalid key [redacted]\n"), "{err}");
    assert!(!err.contains("k3y-0123456789"), "{err}");
    // The value of one variable is part of that of another one.
    let script = "echo \"bad options: $1\" >&2; exit 1";
    let err = failure_of(&json!({"command": "sh", "args": ["-c", script, "${KEY}", "${OPTIONS}"]}));
    assert!(err.contains("wrote before its end: bad options: [redacted]\n"), "{err}");
}

/// The system's error for a folder that is not there is the one for a program that is not there.
#[test]
fn a_folder_that_a_server_can_not_run_in_is_named() {
    let named = |cwd: &str| failure_of(&json!({"command": "cat", "cwd": cwd}));
    let err = named("/nowhere");
    assert!(err.contains("s: its folder \"/nowhere\" can't be used: No such file"), "{err}");
    let err = named("/dev/null");
    assert!(err.contains("s: its folder \"/dev/null\" can't be used: Not a directory"), "{err}");
}
