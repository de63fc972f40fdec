//! The descriptor set that `duologue schema` prints is all that a compiler and a library need.

use super::server::Server;
use super::{python_with_protobuf, run_with};
use crate::server::Folder;
use anyhow::{Context, Result, ensure};
use serde_json::json;
use std::process::Command;

const DOCUMENT: &str = include_str!("../../../docs/clients.md");

/// Reads frames strictly with the code that was generated, and prints the member that each has.
const READ: &str = r#"
import sys
sys.path.insert(0, "gen")
from google.protobuf import json_format
import pinocchio.chatapp.v1.chat_pb2
from pinocchio.chatapp.rpc.v1.rpc_pb2 import RpcLine
print(*[json_format.Parse(line, RpcLine()).WhichOneof("frame") for line in sys.stdin.buffer])
"#;

#[test]
fn a_compiler_makes_types_of_the_descriptors_alone() -> Result<()> {
    needs!(PythonProtobuf);
    let folder = Folder::new();
    let mut schema = Command::new(env!("CARGO_BIN_EXE_duologue"));
    let printed = schema.args(["schema", "descriptors"]).output()?;
    std::fs::write(folder.path("d.pb"), &printed.stdout)?;
    std::fs::create_dir(folder.path("gen"))?;
    let command = DOCUMENT.split_once("protoc --descriptor_set_in=d.pb").context("a command")?.1;
    let words = command.split("```").next().context("a block")?.split_whitespace();
    let files: Vec<_> = words.filter(|word| word.ends_with(".proto")).collect();
    let mut protoc = python(&folder);
    let options = ["-m", "grpc_tools.protoc", "--descriptor_set_in=d.pb", "--python_out=gen"];
    protoc.args(options).args(files);
    run_with(protoc, b"").context("protoc")?;

    let mut server = Server::start(&[], &[("DUOLOGUE_ENGINE", "echo")])?;
    server.turn("r1", "hello")?;
    server.send(&json!({ "requestId": "r2", "snapshot": {} }))?;
    let frames = server.output_to_end()?;
    let mut read = python(&folder);
    read.args(["-c", READ]);
    let members = run_with(read, &frames)?;
    ensure!(
        members.starts_with("hello ui_event ") && members.ends_with("snapshot done\n"),
        "{members}"
    );
    Ok(())
}

fn python(folder: &Folder) -> Command {
    let mut command = Command::new(python_with_protobuf());
    command.current_dir(folder.path(""));
    command
}
