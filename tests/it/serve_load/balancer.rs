//! haproxy before the nodes, if it is installed (Debian's package). A shell ends it with the tests, however they end.

use crate::postgres_server::free_port;
use crate::process::eventually;
use crate::server::Folder;
use std::fmt::Write;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// `$1` is the configuration. Ends with its standard input.
const SCRIPT: &str = r#"
haproxy -db -f "$1" < /dev/null & balancer=$!
read -r end
kill "$balancer"
wait "$balancer"
"#;

/// A node that is not ready gets no new streams, and keeps those that it has.
const CONFIGURATION: &str = "
global
    maxconn 8000
defaults
    mode http
    timeout connect 2s
    timeout client 1h
    timeout server 1h
    option redispatch
    option httpchk GET /health/ready
frontend clients
    bind 127.0.0.1:PORT proto h2
    default_backend nodes
backend nodes
    default-server proto h2 check inter 500ms fall 2 rise 1
";

/// A balancer that runs.
pub(super) struct Balancer {
    shell: Child,
    /// `127.0.0.1:PORT`.
    pub(super) address: String,
    _folder: Folder,
}

impl Balancer {
    /// Before the nodes at these ports; `None` if haproxy is not installed.
    pub(super) fn start(nodes: &[u16]) -> Option<Self> {
        let is_installed = Command::new("haproxy").arg("-v").stdout(Stdio::null()).status();
        if !is_installed.is_ok_and(|status| status.success()) {
            return None;
        }
        let port = free_port();
        let mut configuration = CONFIGURATION.replace("PORT", &port.to_string());
        for (number, node) in nodes.iter().enumerate() {
            writeln!(configuration, "    server node{number} 127.0.0.1:{node}").expect("a text");
        }
        let folder = Folder::new();
        let file = folder.path("haproxy.cfg");
        std::fs::write(&file, configuration).expect("a file");
        let shell = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "sh"])
            .arg(file)
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let address = format!("127.0.0.1:{port}");
        eventually("the balancer listens", || TcpStream::connect(&address).ok());
        Some(Self { shell, address, _folder: folder })
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        self.shell.wait().ok();
    }
}
