//! Command files: what they add to the start, and whether rendering and extraction grow with their
//! input and no faster.

use crate::child::{Child, Program};
use crate::table::{Aim, Unit, least, median, row};
use duologue::extract::{Extractor, ResponseType, Schema};
use duologue::template::{Template, Types};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::time::Instant;

const ROUNDS: usize = 200;

/// What `run-command` may add to the start of the server, in milliseconds.
const ADDED_MILLIS_MAX: f64 = 3.0;

/// How much the cost of an item may rise from the smaller to the larger input.
const FLAT: f64 = 1.25;

/// Items of a rendering, and lines of an answer.
const SIZES: [usize; 2] = [10_000, 200_000];

/// Bytes of a long answer.
const ANSWER_BYTES: usize = 100_000_000;

/// Memory that such an answer may take on its way, in MB.
const STREAM_MEBIBYTES_MAX: f64 = 32.0;

/// Bytes of a piece of an answer: a token or two.
const PIECE_BYTES: usize = 8;

const LINE: &str =
    r#"{"entity": "photosynthesis", "definition": "how plants turn light into sugar"}"#;

const SMALL: &str = r#"
name: summarize
short: Summarize a text
flags:
  - name: text
    type: string
    default: nothing
  - name: words
    type: int
    default: 20
system-prompt: You are terse.
prompt: |
  Summarize in {{ .words }} words:
  {{ .text }}
"#;

const EXTRACT: &str = r#"
name: extract
response-type: jsonl
schema:
  type: object
  properties: { entity: { type: string }, definition: { type: string } }
  required: [entity, definition]
prompt: List them all.
"#;

pub(crate) fn measure() -> io::Result<()> {
    start()?;
    rendering()?;
    extraction()?;
    stream()
}

/// From starting the process to its first line.
fn start() -> io::Result<()> {
    let file = Scratch::new("small.yaml", |file| file.write_all(SMALL.as_bytes()))?;
    let path = file.0.to_string_lossy();
    let args = ["run-command", &path, "--engine", "echo", "--rpc", "--words", "5"];
    let (mut ours, mut rpc) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(millis_to_first_line(&args)?);
        rpc.push(millis_to_first_line(&["rpc", "--engine", "echo"])?);
    }
    let (ours, rpc) = (median(&ours), median(&rpc));
    row("start of run-command to hello, against rpc", Unit::Millis, ours, Some(rpc), Aim::None);
    let what = "what a small command file adds to that";
    row(what, Unit::Millis, ours - rpc, None, Aim::Value(ADDED_MILLIS_MAX));
    Ok(())
}

fn millis_to_first_line(args: &[&str]) -> io::Result<f64> {
    let start = Instant::now();
    let child = Child::greeted(Program::Duologue, args)?;
    let time = start.elapsed();
    drop(child);
    Ok(time.as_secs_f64() * 1000.0)
}

/// A list of files, rendered one after the other.
fn rendering() -> io::Result<()> {
    let text = "{{ range $i, $f := .files }}## {{ $f.Path | upper }}\n{{ indent 2 $f.Content }}\n{{ end }}";
    let template = Template::parse("prompt", text, &Value::Null).map_err(io::Error::other)?;
    let now = jiff::Zoned::now();
    let mut times = Vec::new();
    for items in SIZES {
        let file = json!({ "Path": "src/main.rs", "Content": "fn main() {\n    run();\n}" });
        let values = json!({ "files": vec![file; items] });
        times.push(micros_per(items, || {
            template.render(&values, &Types::new(), &now).map_err(io::Error::other)
        })?);
    }
    flat("render a file of a range", &times);
    Ok(())
}

/// An answer in JSON Lines, in small pieces, held against a schema.
fn extraction() -> io::Result<()> {
    let schema = json!({
        "type": "object",
        "properties": { "entity": { "type": "string" }, "definition": { "type": "string" } },
        "required": ["entity", "definition"]
    });
    let schema = Schema::compile(&schema).map_err(io::Error::other)?;
    let mut times = Vec::new();
    for lines in SIZES {
        let answer = format!("{LINE}\n").repeat(lines);
        let extract = || {
            let mut extractor = Extractor::new(ResponseType::Jsonl, Some(schema.clone()));
            let pieces = answer.as_bytes().chunks(PIECE_BYTES);
            let found = pieces.map(|piece| extractor.push(&String::from_utf8_lossy(piece)).len());
            Ok(found.sum::<usize>() + extractor.finish(false).len())
        };
        times.push(micros_per(lines, extract)?);
    }
    flat("extract a line", &times);
    let read = || {
        let answer = format!("{LINE}\n").repeat(SIZES[0]);
        answer.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()
    };
    let reference = micros_per(SIZES[0], || read().map_err(io::Error::other))?;
    let what = "extract a line, against reading its JSON and nothing else";
    row(what, Unit::Micros, times[0], Some(reference), Aim::None);
    Ok(())
}

/// A long answer on its way through the program.
fn stream() -> io::Result<()> {
    let file = Scratch::new("extract.yaml", |file| file.write_all(EXTRACT.as_bytes()))?;
    let path = file.0.to_string_lossy();
    let mut times = Vec::new();
    for bytes in [ANSWER_BYTES / 10, ANSWER_BYTES] {
        let lines = bytes / (LINE.len() + 1);
        let answer = Scratch::new("answer.jsonl", |file| {
            (0..lines).try_for_each(|_| writeln!(file, "{LINE}"))
        })?;
        let answer = answer.0.to_string_lossy();
        let common = ["--engine", "echo", "--echo-answer", &answer];
        let args = [&["run-command", &path, "--output", "objects"][..], &common].concat();
        let start = Instant::now();
        let mut child = Child::start(Program::Duologue, &args)?;
        let counted = child.count_all()?;
        times.push(start.elapsed().as_secs_f64() * 1_000_000.0 / lines as f64);
        // One line names the format.
        let what = format!("objects of an answer of {} MB", bytes / 1_000_000);
        row(&what, Unit::Count, (counted.lines - 1) as f64, Some(lines as f64), Aim::All);
        let what = format!("peak memory for that answer of {} MB", bytes / 1_000_000);
        row(&what, Unit::Mebibytes, counted.peak, None, Aim::Value(STREAM_MEBIBYTES_MAX));
    }
    flat("a line on its way through the program", &times);
    Ok(())
}

/// Prints the cost of an item in the smaller and the larger input.
fn flat(what: &str, times: &[f64]) {
    let what = format!("{what}, large input against small");
    row(&what, Unit::Micros, times[1], Some(times[0]), Aim::Ratio(FLAT));
}

fn micros_per<T>(items: usize, mut work: impl FnMut() -> io::Result<T>) -> io::Result<f64> {
    let mut times = Vec::new();
    for _ in 0..5 {
        let start = Instant::now();
        std::hint::black_box(work()?);
        times.push(start.elapsed().as_secs_f64() * 1_000_000.0 / items as f64);
    }
    Ok(least(&times))
}

/// A file that is removed again.
struct Scratch(PathBuf);

impl Scratch {
    fn new(
        name: &str,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("duologue-{}-{name}", std::process::id()));
        let mut file = BufWriter::new(File::create(&path)?);
        let scratch = Self(path);
        write(&mut file)?;
        file.flush()?;
        Ok(scratch)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left of a temporary file is the system's to clear.
        drop(std::fs::remove_file(&self.0));
    }
}
