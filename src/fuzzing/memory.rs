//! The memory that each parser takes for an input that makes it take much, as the kernel counts it. Each input
//! has a process of its own.

use super::{acp, profile, replay, store, tool, tui};
use crate::command_file::CommandFile;
use crate::conformance::recording::Recording;
use crate::extract::{Extractor, ResponseType, Schema};
use crate::protocol::any::read_message;
use crate::protocol::id::RequestId;
use crate::protocol::json;
use crate::protocol::proto::rpc::RpcLine;
use crate::protocol::wire;
use crate::template::Template;
use crate::transport;
use crate::yaml::Node;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::str::from_utf8;

/// Most memory for each byte of an input.
const MEMORY_PER_BYTE_MAX: usize = 20;

/// Memory that any input may take, in bytes.
const MEMORY_BYTES_MIN: usize = 32 * 1024 * 1024;

/// Names the case that a process measures.
const CASE_VARIABLE: &str = "DUOLOGUE_MEMORY_CASE";

const MEGABYTE: usize = 1024 * 1024;

/// Parsers that take longer inputs are given so many bytes, where memory is already that of twenty for each.
const INPUT_BYTES_MAX: usize = 2 * MEGABYTE;

/// Bytes that come at once where they stream.
const PIECE_BYTES: usize = 16 * 1024;

/// A parser, the longest input that it takes, and what it is made of: a beginning, a piece that is repeated,
/// and an end.
struct Case {
    name: String,
    bytes: usize,
    parts: [String; 3],
    parse: fn(&[u8]),
}

impl Case {
    fn input(&self) -> Vec<u8> {
        let [begin, piece, end] = &self.parts;
        let bytes = self.bytes.min(INPUT_BYTES_MAX);
        let pieces = (bytes - begin.len() - end.len()) / piece.len();
        let mut input = Vec::with_capacity(bytes);
        input.extend_from_slice(begin.as_bytes());
        (0..pieces).for_each(|_| input.extend_from_slice(piece.as_bytes()));
        input.extend_from_slice(end.as_bytes());
        input
    }
}

/// Pieces of JSON that take much memory as values.
const JSON_PIECES: [(&str, &str); 7] = [
    ("numbers", "0,"),
    ("texts", "\"\","),
    ("lists", "[0],"),
    ("objects", "{\"\":0},"),
    ("records", "{\"id\":1,\"name\":\"abc\",\"tags\":[\"x\",\"y\"]},"),
    ("long records", "{\"identifier\":12345678,\"description\":\"abcdefghijklmnopqrstuvwxyz\"},"),
    ("text", "word word word word "),
];

/// A document around a list: before it, and after it.
struct Around {
    name: &'static str,
    bytes: usize,
    begin: &'static str,
    end: &'static str,
    parse: fn(&[u8]),
}

const DOCUMENTS: [Around; 13] = [
    Around {
        name: "request, a result",
        bytes: 10 * MEGABYTE,
        begin: r#"{"toolResult":{"toolCallId":"c","result":{"a":"#,
        end: "}}}",
        parse: request,
    },
    Around {
        name: "request, an unknown field",
        bytes: 10 * MEGABYTE,
        begin: r#"{"cancel":{},"unknown":"#,
        end: "}",
        parse: request,
    },
    Around {
        name: "frame, a result",
        bytes: 10 * MEGABYTE,
        begin: r#"{"uiEvent":{"payload":{"@type":"type.googleapis.com/google.protobuf.Value","value":"#,
        end: "}}}",
        parse: frame,
    },
    Around {
        name: "recorded line",
        bytes: 10 * MEGABYTE,
        begin: r#"{"version":1,"unknown":"#,
        end: "}",
        parse: recorded,
    },
    Around {
        name: "mcp line",
        bytes: 16 * MEGABYTE,
        begin: r#"{"jsonrpc":"2.0","id":1,"result":{"structuredContent":{"a":"#,
        end: "}}}",
        parse: tool::fuzzing::receive,
    },
    Around {
        name: "acp line",
        bytes: 10 * MEGABYTE,
        begin: r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"#,
        end: "}}",
        parse: acp::fuzzing::read,
    },
    Around { name: "answer", bytes: 10 * MEGABYTE, begin: "", end: "", parse: answer },
    Around { name: "schema", bytes: 256 * 1024, begin: "{\"enum\":", end: "}", parse: schema },
    Around {
        name: "openai event",
        bytes: 8 * MEGABYTE,
        begin: r#"data: {"choices":[],"error":"#,
        end: "}\n\n",
        parse: |body| read_stream("openai", body),
    },
    Around {
        name: "responses event",
        bytes: 8 * MEGABYTE,
        begin: r#"data: {"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","summary":"#,
        end: "}}\n\n",
        parse: |body| read_stream("responses", body),
    },
    Around {
        name: "anthropic event",
        bytes: 8 * MEGABYTE,
        begin: r#"data: {"type":"message_start","message":{"usage":"#,
        end: "}}\n\n",
        parse: |body| read_stream("anthropic", body),
    },
    Around {
        name: "gemini event",
        bytes: 8 * MEGABYTE,
        begin: r#"data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":"#,
        end: "}}}]}}]}\n\n",
        parse: |body| read_stream("gemini", body),
    },
    Around {
        name: "ollama line",
        bytes: 8 * MEGABYTE,
        begin: r#"{"message":{"tool_calls":[{"function":{"name":"f","arguments":{"a":"#,
        end: "}}}]}}\n",
        parse: |body| read_stream("ollama", body),
    },
];

/// The name, the bytes, the parts and the parser of a case.
type Shape = (&'static str, usize, [&'static str; 3], fn(&[u8]));

/// Lists of messages, of which each may be empty.
const LISTS: [Shape; 18] = [
    (
        "request, attachments",
        10 * MEGABYTE,
        [r#"{"submit":{"prompt":"a","attachments":["#, "{},", "{}]}}"],
        request,
    ),
    ("request, tools", 10 * MEGABYTE, [r#"{"declareTools":{"tools":["#, "{},", "{}]}}"], request),
    ("frame, entities", 10 * MEGABYTE, [r#"{"snapshot":{"entities":["#, "{},", "{}]}}"], frame),
    (
        "recorded line, entities",
        10 * MEGABYTE,
        [r#"{"snapshot":{"entities":["#, "{},", "{}]}}"],
        recorded,
    ),
    (
        "recorded line, members",
        10 * MEGABYTE,
        [r#"{"version":1,"a":[{"#, "\"a\":1},{", "}]}"],
        recorded,
    ),
    (
        "mcp tools",
        16 * MEGABYTE,
        [r#"{"jsonrpc":"2.0","id":1,"result":{"tools":["#, r#"{"name":"a"},"#, "{}]}}"],
        tool::fuzzing::receive,
    ),
    ("openai choices", 8 * MEGABYTE, [r#"data: {"choices":["#, "{},", "{}]}\n\n"], |body| {
        read_stream("openai", body)
    }),
    (
        "openai calls",
        8 * MEGABYTE,
        [r#"data: {"choices":[{"delta":{"tool_calls":["#, "{},", "{}]}}]}\n\n"],
        |body| read_stream("openai", body),
    ),
    (
        "openai events",
        8 * MEGABYTE,
        ["", "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n", ""],
        |body| read_stream("openai", body),
    ),
    (
        "responses content",
        8 * MEGABYTE,
        [
            r#"data: {"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":["#,
            "{},",
            "{}]}}\n\n",
        ],
        |body| read_stream("responses", body),
    ),
    (
        "gemini parts",
        8 * MEGABYTE,
        [r#"data: {"candidates":[{"content":{"parts":["#, "{},", "{}]}}]}\n\n"],
        |body| read_stream("gemini", body),
    ),
    (
        "ollama calls",
        8 * MEGABYTE,
        [r#"{"message":{"tool_calls":["#, r#"{"function":{"name":"f"}},"#, "{}]}}\n"],
        |body| read_stream("ollama", body),
    ),
    ("yaml list", MEGABYTE, ["[", "a,", "a]"], |text| drop(Node::parse(as_text(text)))),
    ("yaml map", MEGABYTE, ["", "a: 1\n", ""], |text| drop(Node::parse(as_text(text)))),
    ("yaml blocks", MEGABYTE, ["", "-\n", ""], |text| drop(Node::parse(as_text(text)))),
    ("command file", MEGABYTE, ["prompt: |\n", "  {{.}}a\n", "flags: [{name: a}]\n"], |text| {
        drop(CommandFile::parse(Path::new("a"), as_text(text)))
    }),
    ("template", MEGABYTE, ["", "{{.}}", ""], |text| {
        drop(Template::parse("a", as_text(text), &Value::Null))
    }),
    ("profiles", MEGABYTE, ["profiles:\n  a:\n    allow: [", "a,", "b]\n"], |text| {
        profile::fuzzing::parse(as_text(text))
    }),
];

const OTHERS: [Shape; 6] = [
    ("lines", 10 * MEGABYTE, ["", "a\n", ""], |bytes| {
        bytes.chunks(PIECE_BYTES).for_each(|it| drop(transport::fuzzing::split(&[it], 4_096)));
    }),
    (
        "store row",
        4 * MEGABYTE,
        ["\x0a\x04\x12\x00\x3a\x00", "\x0a\x02\x3a\x00", ""],
        store::fuzzing::read,
    ),
    ("keys", 16 * MEGABYTE, ["\x1b[200~", "a\r", "\x1b[201~"], tui::fuzzing::type_keys),
    ("markdown words", MEGABYTE / 2, ["", "*a* `b` ", "\n"], |text| {
        tui::fuzzing::stream(as_text(text))
    }),
    ("markdown lines", MEGABYTE / 2, ["", "- a\n", ""], |text| tui::fuzzing::stream(as_text(text))),
    ("markdown table", MEGABYTE / 2, ["|a|b|\n|-|-|\n", "|a|b|\n", ""], |text| {
        tui::fuzzing::stream(as_text(text))
    }),
];

fn cases() -> Vec<Case> {
    let documents = DOCUMENTS.iter().flat_map(|document| {
        let Around { name, bytes, begin, end, parse } = document;
        JSON_PIECES.iter().map(move |(piece_name, piece)| {
            let (open, close) = if *piece_name == "text" { ("\"", "\"") } else { ("[", "0]") };
            let parts = [format!("{begin}{open}"), (*piece).to_owned(), format!("{close}{end}")];
            Case { name: format!("{name}: {piece_name}"), bytes: *bytes, parts, parse: *parse }
        })
    });
    let others = LISTS.iter().chain(&OTHERS).map(|(name, bytes, parts, parse)| {
        let (name, bytes, parse) = ((*name).to_owned(), *bytes, *parse);
        Case { name, bytes, parts: parts.map(str::to_owned), parse }
    });
    documents.chain(others).collect()
}

fn as_text(bytes: &[u8]) -> &str {
    from_utf8(bytes).expect("UTF-8")
}

fn request(line: &[u8]) {
    drop(wire::decode(line, || RequestId::new("fresh").expect("an id")));
}

fn frame(line: &[u8]) {
    drop(read_message::<RpcLine>(as_text(line)));
}

fn recorded(line: &[u8]) {
    let mut recording = Recording::default();
    drop(recording.line(line));
    drop(recording.finish());
}

fn answer(text: &[u8]) {
    let mut extractor = Extractor::new(ResponseType::Json, None);
    extractor.push(as_text(text));
    drop(extractor.finish(false));
}

fn schema(text: &[u8]) {
    drop(Schema::compile(&json::read::<Value>(as_text(text)).expect("JSON")));
}

fn read_stream(engine: &str, body: &[u8]) {
    let (_, read) = replay::ENGINES.iter().find(|(name, _)| *name == engine).expect("an engine");
    drop(read(&body.chunks(PIECE_BYTES).collect::<Vec<_>>()));
}

/// A count of bytes in `/proc/self/status`.
fn status_bytes(field: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("what the kernel counts");
    let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("the field");
    let kilobytes: String = line.chars().filter(char::is_ascii_digit).collect();
    kilobytes.parse::<usize>().expect("a number") * 1024
}

#[test]
#[ignore = "a part of another test, in a process of its own"]
fn one_input_is_parsed() {
    let name = std::env::var(CASE_VARIABLE).expect("a case");
    let case = cases().into_iter().find(|case| case.name == name).expect("a case");
    let input = case.input();
    let before = status_bytes("VmRSS:").max(status_bytes("VmHWM:"));
    let program_before = status_bytes("RssFile:");
    (case.parse)(&input);
    // Pages of the program that are executed for the first time come in pieces of whatever size the file has in the
    // system's cache, megabytes at times.
    let program = status_bytes("RssFile:").saturating_sub(program_before);
    let taken = (status_bytes("VmHWM:") - before).saturating_sub(program);
    let line = format!("\nmemory {taken} {}\n", input.len());
    std::io::stdout().write_all(line.as_bytes()).expect("written");
}

/// The memory that a case takes, and the bytes of its input.
fn measured(name: &str) -> (usize, usize) {
    let test = "fuzzing::memory::one_input_is_parsed";
    let mut child = Command::new(std::env::current_exe().expect("this program"));
    child.args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    let output = child.env(CASE_VARIABLE, name).output().expect("a process");
    let stdout = String::from_utf8_lossy(&output.stdout);
    let line = stdout.lines().find_map(|line| line.strip_prefix("memory "));
    let numbers = line.unwrap_or_else(|| panic!("{name}: {stdout}")).split(' ');
    let numbers: Vec<usize> = numbers.map(|number| number.parse().expect("a number")).collect();
    (numbers[0], numbers[1])
}

#[test]
#[ignore = "it takes minutes without optimization"]
fn memory_of_each_parser_is_at_most_twenty_times_its_input() {
    let mut wrong = Vec::new();
    for case in cases() {
        let (taken, bytes) = measured(&case.name);
        if std::env::var_os("DUOLOGUE_MEMORY_TABLE").is_some() {
            let line =
                format!("{:5.1} {:4} MB {}\n", taken as f64 / bytes as f64, taken >> 20, case.name);
            std::io::stdout().write_all(line.as_bytes()).expect("written");
        }
        if taken > (bytes * MEMORY_PER_BYTE_MAX).max(MEMORY_BYTES_MIN) {
            wrong.push(format!("{}: {taken} bytes for {bytes}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
