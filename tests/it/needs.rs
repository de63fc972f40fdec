//! Programs of others that tests need. A test begins with `needs!(…)`: without the program it is skipped,
//! and a line says so; where all of them must be there, as in `.ci/run`, it fails.

use crate::clients::{installed, python_with_protobuf};
use std::ffi::OsStr;
use std::io::{Write, stderr};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread;

/// Set to anything but nothing: a test whose program is not installed fails.
const REQUIRE_VARIABLE: &str = "DUOLOGUE_TESTS_REQUIRE_ALL";

/// Ends the test if one of these programs is not installed.
macro_rules! needs {
    ($($program:ident),+) => {
        if $crate::needs::is_any_missing(&[$($crate::needs::Program::$program),+]) {
            return $crate::needs::Skipped::skipped();
        }
    };
}

/// What a test may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Dash,
    Jq,
    Python,
    Node,
    Tmux,
    Postgres,
    PythonProtobuf,
    NodeProtobuf,
    GoProtobuf,
    McpServers,
    Aimock,
    ProviderSdks,
    AcpTypeScript,
    AcpPython,
    AcpGo,
    AcpRust,
    #[cfg_attr(not(feature = "serve"), expect(dead_code, reason = "for the tests of fleets"))]
    Manifests,
    #[cfg_attr(not(feature = "serve"), expect(dead_code, reason = "for the tests of fleets"))]
    FleetClients,
    Zsh,
    Fish,
    Chromium,
}

impl Program {
    /// How many there are.
    const COUNT: usize = Self::Chromium as usize + 1;

    /// Whether a test is skipped without it even where all are required: too large for what it shows, or a shell
    /// that few have.
    fn is_optional(self) -> bool {
        matches!(self, Self::Zsh | Self::Fish | Self::Chromium)
    }

    /// What is to be installed.
    fn name(self) -> &'static str {
        match self {
            Self::Dash => "dash",
            Self::Jq => "jq",
            Self::Python => "python3",
            Self::Node => "node",
            Self::Tmux => "tmux",
            Self::Postgres => "PostgreSQL",
            Self::PythonProtobuf => "python3 with protobuf (tests/clients/install.sh)",
            Self::NodeProtobuf => "node with @bufbuild/protobuf (tests/clients/install.sh)",
            Self::GoProtobuf => "go with google.golang.org/protobuf (tests/clients/install.sh)",
            Self::McpServers => "node and python3 with MCP servers (tests/clients/install.sh)",
            Self::Aimock => "node with aimock (tests/clients/install.sh)",
            Self::ProviderSdks => "python3 with libraries of providers (tests/clients/install.sh)",
            Self::AcpTypeScript => "node with the SDK of ACP (tests/clients/install.sh)",
            Self::AcpPython => "python3 with the SDK of ACP (tests/clients/install.sh)",
            Self::AcpGo => "a program on the Go SDK of ACP (tests/clients/install.sh)",
            Self::AcpRust => "a program on the Rust crate of ACP (tests/clients/install.sh)",
            Self::Manifests => "linters of manifests (tests/clients/install.sh)",
            Self::FleetClients => "clients of gRPC in Go (tests/clients/install.sh)",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
            Self::Chromium => "Chromium",
        }
    }

    fn is_installed(self) -> bool {
        static FOUND: [OnceLock<bool>; Program::COUNT] =
            [const { OnceLock::new() }; Program::COUNT];
        *FOUND[self as usize].get_or_init(|| self.look())
    }

    fn look(self) -> bool {
        let node_with = |package: &str| Self::Node.is_installed() && installed(package).exists();
        match self {
            Self::Dash => succeeds("dash", &["-c", ":"]),
            Self::Jq => succeeds("jq", &["--version"]),
            Self::Python => succeeds("python3", &["--version"]),
            Self::Node => succeeds("node", &["--version"]),
            Self::Tmux => succeeds("tmux", &["-V"]),
            Self::Postgres => crate::postgres_server::programs().is_some(),
            Self::PythonProtobuf => {
                let imports = ["-c", "import google.protobuf, grpc_tools.protoc"];
                succeeds(python_with_protobuf(), &imports)
            }
            Self::NodeProtobuf => node_with("node/node_modules/@bufbuild/protobuf"),
            Self::GoProtobuf => {
                installed("go/check_frames").exists() && succeeds("go", &["version"])
            }
            Self::McpServers => {
                node_with("mcp/node_modules/.bin/mcp-server-everything")
                    && succeeds(installed("mcp/python/bin/python"), &["-c", "import mcp"])
            }
            Self::Aimock => node_with("third_party/node_modules/@copilotkit/aimock"),
            Self::ProviderSdks => {
                succeeds(installed("sdks/python/bin/python"), &["-c", "import openai, anthropic"])
            }
            Self::AcpTypeScript => node_with("acp/node/node_modules/@agentclientprotocol/sdk"),
            Self::AcpPython => {
                succeeds(installed("acp/python/python/bin/python"), &["-c", "import acp"])
            }
            Self::AcpGo => installed("acp/go/scenarios").exists(),
            Self::AcpRust => installed("acp/rust/debug/scenarios").exists(),
            Self::Manifests => installed("manifests/python/bin/kubernetes-validate").exists(),
            Self::FleetClients => ["fleet", "grpcurl", "ghz"]
                .iter()
                .all(|it| installed(&format!("fleet/bin/{it}")).exists()),
            Self::Zsh => succeeds("zsh", &["--version"]),
            Self::Fish => succeeds("fish", &["--version"]),
            Self::Chromium => succeeds("chromium", &["--version"]),
        }
    }
}

fn succeeds(program: impl AsRef<OsStr>, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Whether the test is skipped, of which a line tells.
pub(crate) fn is_any_missing(programs: &[Program]) -> bool {
    let Some(missing) = programs.iter().find(|program| !program.is_installed()) else {
        return false;
    };
    let test = thread::current().name().unwrap_or_default().to_owned();
    let line = format!("skipped: {test} needs {}\n", missing.name());
    let required = std::env::var_os(REQUIRE_VARIABLE).is_some_and(|value| !value.is_empty());
    assert!(
        !required || missing.is_optional(),
        "{REQUIRE_VARIABLE} is set, and this test would be {line}"
    );
    // Not by a macro, whose output is captured where a test passes.
    stderr().write_all(line.as_bytes()).expect("standard error");
    true
}

/// What a test that is skipped returns.
pub(crate) trait Skipped {
    fn skipped() -> Self;
}

impl Skipped for () {
    fn skipped() -> Self {}
}

impl<E> Skipped for Result<(), E> {
    fn skipped() -> Self {
        Ok(())
    }
}

/// Runs a test that needs `python3` where no program is on the `PATH`.
fn run_without_programs(required: &str) -> std::process::Output {
    let own = std::env::current_exe().expect("a path");
    let test = ["--exact", "examples::the_minimal_client_prints_an_answer"];
    let mut command = Command::new(own);
    command.args(test).env_clear().env("PATH", "/nowhere").env(REQUIRE_VARIABLE, required);
    command.output().expect("the tests run")
}

#[test]
fn a_test_without_its_program_is_skipped_and_a_line_says_so() {
    let output = run_without_programs("");
    let line = "skipped: examples::the_minimal_client_prints_an_answer needs python3\n";
    assert_eq!(String::from_utf8_lossy(&output.stderr), line);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_test_without_its_program_fails_where_all_are_required() {
    let output = run_without_programs("1");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success() && said.contains("needs python3"), "{said}");
}
