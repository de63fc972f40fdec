//! A provider with OpenAI's chat completions that knows when it said what.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Text of a delta of a long answer, in bytes.
pub(crate) const LONG_DELTA_BYTES: usize = 4_000;

/// How the provider answers.
#[derive(Clone, Copy)]
pub(crate) enum Manner {
    /// With this many deltas, this long apart.
    Paced { deltas: usize, pace: Duration },
    /// With this many deltas, in one write.
    AtOnce { deltas: usize },
    /// With this many deltas of [`LONG_DELTA_BYTES`], as fast as the client takes them.
    Long { deltas: usize },
    /// Not at all.
    Silent,
}

/// A provider on a port of this machine, until the process ends.
pub(crate) struct Provider {
    address: SocketAddr,
    said: mpsc::Receiver<Vec<Instant>>,
}

impl Provider {
    pub(crate) fn start(manner: Manner) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let (report, said) = mpsc::channel();
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let report = report.clone();
                // A client that hangs up ends its connection, and nothing else.
                thread::spawn(move || drop(serve(&connection, manner, &report)));
            }
        });
        Ok(Self { address, said })
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// When each delta of the last answer was said; nothing of an answer in one write.
    pub(crate) fn said(&self) -> io::Result<Vec<Instant>> {
        self.said.recv().map_err(io::Error::other)
    }
}

fn serve(
    connection: &TcpStream,
    manner: Manner,
    report: &mpsc::Sender<Vec<Instant>>,
) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let mut requests = BufReader::new(connection);
    loop {
        read_request(&mut requests)?;
        let said = match manner {
            Manner::Paced { deltas, pace } => paced(connection, deltas, pace)?,
            Manner::AtOnce { deltas } => at_once(connection, deltas)?,
            Manner::Long { deltas } => long(connection, deltas)?,
            Manner::Silent => continue,
        };
        if report.send(said).is_err() {
            return Ok(());
        }
    }
}

fn read_request(requests: &mut BufReader<&TcpStream>) -> io::Result<()> {
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
            io::copy(&mut requests.by_ref().take(body_bytes), &mut io::sink())?;
            return Ok(());
        }
    }
}

const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

fn paced(mut connection: &TcpStream, deltas: usize, pace: Duration) -> io::Result<Vec<Instant>> {
    connection.write_all(HEAD)?;
    let mut said = Vec::with_capacity(deltas);
    for _ in 0..deltas {
        thread::sleep(pace);
        let event = delta();
        said.push(Instant::now());
        connection.write_all(event.as_bytes())?;
    }
    connection.write_all(end().as_bytes())?;
    Ok(said)
}

/// Written before anybody waits for it, so that a delta costs the provider next to nothing.
fn at_once(mut connection: &TcpStream, deltas: usize) -> io::Result<Vec<Instant>> {
    let answer = [HEAD, delta().repeat(deltas).as_bytes(), end().as_bytes()].concat();
    connection.write_all(&answer)?;
    Ok(Vec::new())
}

fn long(mut connection: &TcpStream, deltas: usize) -> io::Result<Vec<Instant>> {
    connection.write_all(HEAD)?;
    let text = "conversation ".repeat(LONG_DELTA_BYTES);
    let delta = event(&format!("{{\"content\":\"{}\"}}", &text[..LONG_DELTA_BYTES]), "null");
    (0..deltas).try_for_each(|_| connection.write_all(delta.as_bytes()))?;
    connection.write_all(end().as_bytes())?;
    Ok(Vec::new())
}

fn delta() -> String {
    event("{\"content\":\"conversation \"}", "null")
}

fn end() -> String {
    event("{}", "\"stop\"") + &chunk("data: [DONE]\n\n") + "0\r\n\r\n"
}

fn event(delta: &str, finish_reason: &str) -> String {
    chunk(&format!(
        "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\
         \"model\":\"model\",\"choices\":[{{\"index\":0,\"delta\":{delta},\
         \"finish_reason\":{finish_reason}}}]}}\n\n"
    ))
}

fn chunk(data: &str) -> String {
    format!("{:x}\r\n{data}\r\n", data.len())
}
