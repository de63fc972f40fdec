//! How much of a request a provider can read from its cache: the bytes that the request of the last turn
//! of a long conversation begins with, like that of the turn before.

use crate::child::{Child, Program, submit};
use crate::table::{Aim, Unit, row};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;

const TURNS: usize = 1_000;

/// Tokens that the model can be sent in a conversation that is compacted.
const CONTEXT_TOKENS: &str = "8000";

const BYTES_PER_KILOBYTE: f64 = 1024.0;

/// The engines, each with an answer in its interface.
const ENGINES: [(&str, &str); 5] = [
    (
        "openai",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"yes\"},\"finish_reason\":\"stop\"}]}\n\n\
         data: [DONE]\n\n",
    ),
    (
        "responses",
        "event: response.output_text.delta\n\
         data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"content_index\":0,\"delta\":\"yes\"}\n\n\
         event: response.completed\n\
         data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[]}}\n\n",
    ),
    (
        "anthropic",
        "data: {\"type\":\"message_start\",\"message\":{\"content\":[],\"usage\":{}}}\n\n\
         data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
         data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"yes\"}}\n\n\
         data: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
         data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{}}\n\n\
         data: {\"type\":\"message_stop\"}\n\n",
    ),
    (
        "gemini",
        "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"yes\"}]},\"finishReason\":\"STOP\"}]}\n\n",
    ),
    (
        "ollama",
        "{\"message\":{\"role\":\"assistant\",\"content\":\"yes\"},\"done\":false}\n\
         {\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\"}\n",
    ),
];

pub(crate) fn measure() -> io::Result<()> {
    for (engine, answer) in ENGINES {
        let (address, bodies) = start(answer)?;
        let base_url = format!("http://{address}");
        let args = ["rpc", "--engine", engine, "--base-url", &base_url, "--model", "m"];
        let options = ["--system", "Be brief.", "--final-snapshot", "none"];
        let mut child = Child::greeted(Program::Duologue, &[&args[..], &options].concat())?;
        let (mut before, mut last) = (Vec::new(), Vec::new());
        for _ in 0..TURNS {
            child.send(&submit("and what comes after that?"))?;
            child.count()?;
            let body = bodies.recv().map_err(io::Error::other)?;
            before = std::mem::replace(&mut last, body);
        }
        let shared = last.iter().zip(&before).take_while(|(last, before)| last == before).count();
        let what = format!(
            "request of turn {TURNS}, {engine}: bytes that it begins with like that of turn {}",
            TURNS - 1
        );
        row(&what, Unit::Kibibytes, kilobytes(shared), Some(kilobytes(before.len())), Aim::None);
    }
    measure_compacted()
}

/// The same in a conversation that is compacted again and again: of all requests, those for summaries included.
fn measure_compacted() -> io::Result<()> {
    let [(engine, answer), ..] = ENGINES;
    let (address, bodies) = start(answer)?;
    let base_url = format!("http://{address}");
    let args = ["rpc", "--engine", engine, "--base-url", &base_url, "--model", "m"];
    let options = ["--context-tokens", CONTEXT_TOKENS, "--final-snapshot", "none"];
    let mut child = Child::greeted(Program::Duologue, &[&args[..], &options].concat())?;
    let (mut before, mut shared, mut all, mut requests) = (Vec::new(), 0, 0, 0);
    for _ in 0..TURNS {
        child.send(&submit("and what comes after that?"))?;
        child.count()?;
        for body in bodies.try_iter() {
            let same = |(one, other): &(&u8, &u8)| one == other;
            shared += body.iter().zip(&before).take_while(same).count();
            all += body.len();
            requests += 1;
            before = body;
        }
    }
    let what = format!(
        "{requests} requests of {TURNS} turns, compacted before {CONTEXT_TOKENS} tokens, {engine}: bytes that \
         they begin with like the request before, of all their bytes"
    );
    row(&what, Unit::Kibibytes, kilobytes(shared), Some(kilobytes(all)), Aim::None);
    Ok(())
}

fn kilobytes(bytes: usize) -> f64 {
    bytes as f64 / BYTES_PER_KILOBYTE
}

/// A provider that gives this answer to every request, and the bodies of the requests.
fn start(answer: &'static str) -> io::Result<(String, mpsc::Receiver<Vec<u8>>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    let (to_bodies, bodies) = mpsc::channel();
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let to_bodies = to_bodies.clone();
            // A client that hangs up ends its connection, and nothing else.
            thread::spawn(move || drop(serve(&connection, answer, &to_bodies)));
        }
    });
    Ok((address, bodies))
}

fn serve(
    mut connection: &TcpStream,
    answer: &str,
    to_bodies: &mpsc::Sender<Vec<u8>>,
) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let mut requests = BufReader::new(connection);
    loop {
        let body = read_body(&mut requests)?;
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        connection.write_all((head + answer).as_bytes())?;
        if to_bodies.send(body).is_err() {
            return Ok(());
        }
    }
}

fn read_body(requests: &mut BufReader<&TcpStream>) -> io::Result<Vec<u8>> {
    let mut body_bytes = 0;
    loop {
        let mut line = String::new();
        if requests.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(length) = line.strip_prefix("content-length:") {
            body_bytes = length.trim().parse().map_err(io::Error::other)?;
        }
        if line.is_empty() {
            let mut body = vec![0; body_bytes];
            requests.read_exact(&mut body)?;
            return Ok(body);
        }
    }
}
