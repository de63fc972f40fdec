//! A provider with OpenAI's chat completions that streams any number of answers at a time, each at a pace. The
//! benchmarks and the tests of fleets share it.

use serde_json::{Value, json};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{MissedTickBehavior, interval};

/// The head of every answer.
const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// The data of the last event.
const END: &str = "[DONE]";

/// The events of an answer. Each is made at the moment when it is sent.
pub(crate) type Answer = Box<dyn Iterator<Item = String> + Send>;

/// Listens on a free port of the loopback address, until the runtime ends; gives the base URL. `answer` makes the
/// answer to the body of a request.
pub(crate) async fn start(
    pace: Duration,
    answer: impl Fn(&Value) -> Answer + Send + Sync + 'static,
) -> io::Result<String> {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    let address = listener.local_addr()?;
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answer = Arc::clone(&answer);
            // A client that leaves ends its connection, and nothing else.
            tokio::spawn(async move { serve(stream, pace, &*answer).await.ok() });
        }
    });
    Ok(format!("http://{address}/v1"))
}

async fn serve(
    stream: TcpStream,
    pace: Duration,
    answer: &(impl Fn(&Value) -> Answer + Sync),
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    loop {
        let body = read_request(&mut stream).await?;
        let mut events = answer(&body);
        stream.write_all(HEAD).await?;
        let mut ticks = interval(pace);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let Some(data) = events.next() else { break };
            let event = format!("data: {data}\n\n");
            let chunk = format!("{:x}\r\n{event}\r\n", event.len());
            stream.write_all(chunk.as_bytes()).await?;
        }
        stream.write_all(b"0\r\n\r\n").await?;
    }
}

/// The body of the next request.
async fn read_request(stream: &mut BufReader<TcpStream>) -> io::Result<Value> {
    let mut body_bytes = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(bytes) = line.strip_prefix("content-length:") {
            body_bytes = bytes.trim().parse().map_err(io::Error::other)?;
        }
    }
    let mut body = vec![0; body_bytes];
    stream.read_exact(&mut body).await?;
    Ok(serde_json::from_slice(&body)?)
}

/// An event with a delta, as `{"content":"…"}`.
pub(crate) fn delta(delta: &Value) -> String {
    json!({ "choices": [{ "index": 0, "delta": delta }] }).to_string()
}

/// The events that end an answer for this reason.
pub(crate) fn end(reason: &str) -> impl Iterator<Item = String> + Send + use<> {
    let usage = json!({ "prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5 });
    let last = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }], "usage": usage });
    [last.to_string(), END.to_owned()].into_iter()
}
