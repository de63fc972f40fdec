//! Against servers that are a few lines of a test.

use super::*;
use crate::engine::provider::http::HttpError;
use data_encoding::BASE64;
use rustls::{ClientConfig, RootCertStore, crypto};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::yield_now;

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// A client, and the listener and the address of its server.
async fn served() -> (Direct, TcpListener, Url) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/v1/chat?a=b#c", listener.local_addr().expect("it has an address"));
    let provider = Arc::new(crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider);
    let tls = tls.with_safe_default_protocol_versions().expect("TLS of ring");
    let tls = tls.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
    let connect = Connect::new(Arc::new(tls), Duration::from_secs(10));
    (Direct::new(connect), listener, url.parse().expect("a URL"))
}

async fn send(client: &Direct, url: &Url) -> Result<Exchange, Error> {
    client.send(Method::POST, url, HeaderMap::new(), Bytes::from_static(b"{}")).await
}

/// The body of the response to a request.
async fn answer(client: &Direct, url: &Url) -> Result<Vec<u8>, Error> {
    let mut exchange = send(client, url).await?;
    let mut body = Vec::new();
    while let Some(bytes) = exchange.chunk().await? {
        body.extend(bytes);
    }
    Ok(body)
}

/// Reads a request to its end.
async fn read_request(stream: &mut TcpStream) -> String {
    let mut request = Vec::new();
    while !request.ends_with(b"{}") {
        assert_ne!(stream.read_buf(&mut request).await.expect("reads"), 0, "the client has gone");
    }
    String::from_utf8(request).expect("text")
}

async fn respond(stream: &mut TcpStream, response: &str) -> String {
    let request = read_request(stream).await;
    stream.write_all(response.as_bytes()).await.expect("writes");
    request
}

/// A server may take its time to read a large request.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_system_sets_no_limit_to_what_a_server_has_not_read() {
    let (client, listener, url) = served().await;
    let io = client.connect.to(&url).await.expect("connects");
    let Io::Http(stream) = io else { panic!("it has TLS") };
    let limit_ms = rustix::net::sockopt::tcp_user_timeout(stream.inner());
    assert_eq!(limit_ms.expect("a TCP socket"), 0);
    drop(listener);
}

#[tokio::test]
async fn a_request_has_what_servers_need_and_no_secret_in_its_line() {
    let (client, listener, mut url) = served().await;
    url.set_username("C\\b\u{fc}%2541").expect("has a host");
    url.set_password(Some("p%3Aw")).expect("has a host");
    let serving = async {
        let (mut stream, _) = listener.accept().await.expect("accepts");
        respond(&mut stream, OK).await
    };
    let (body, request) = tokio::join!(answer(&client, &url), serving);
    assert_eq!(body.expect("answers"), b"ok");
    let request = request.to_lowercase();
    assert!(request.starts_with("post /v1/chat?a=b http/1.1\r\n"), "{request}");
    let host = listener.local_addr().expect("it has an address").to_string();
    let login = BASE64.encode("C\\b\u{fc}%41:p:w".as_bytes()).to_lowercase();
    for header in [
        format!("host: {host}"),
        format!("authorization: basic {login}"),
        format!("user-agent: {}", super::super::USER_AGENT),
        "accept: */*".to_owned(),
        "content-length: 2".to_owned(),
    ] {
        assert!(request.contains(&format!("\r\n{header}\r\n")), "{header} in {request}");
    }
}

/// Gateways repeat the headers of the provider behind them.
#[tokio::test]
async fn a_response_may_have_many_headers_and_not_any_number() {
    for (headers, is_taken) in [(HEADERS_MAX - 1, true), (HEADERS_MAX, false)] {
        let (client, listener, url) = served().await;
        let many = "x-odd: y\r\n".repeat(headers);
        let response = format!("HTTP/1.1 200 OK\r\n{many}content-length: 2\r\n\r\nok");
        let serving = async {
            let (mut stream, _) = listener.accept().await.expect("accepts");
            respond(&mut stream, &response).await;
            stream
        };
        let (body, _stream) = tokio::join!(answer(&client, &url), serving);
        if is_taken {
            assert_eq!(body.expect("answers"), b"ok");
        } else {
            let error = HttpError::Direct(body.expect_err("there are too many"));
            assert!(error.is_head_too_large(), "{error:?}");
        }
    }
}

#[tokio::test]
async fn a_connection_whose_response_was_read_is_used_again() {
    let (client, listener, url) = served().await;
    let serving = async {
        let (mut stream, _) = listener.accept().await.expect("accepts");
        for _ in 0..3 {
            respond(&mut stream, OK).await;
        }
    };
    let asking = async {
        for _ in 0..3 {
            assert_eq!(answer(&client, &url).await.expect("answers"), b"ok");
        }
    };
    tokio::join!(serving, asking);
}

#[tokio::test]
async fn a_connection_that_the_server_has_closed_is_replaced() {
    let (client, listener, url) = served().await;
    for says_so in [true, false] {
        let response = match says_so {
            true => "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok",
            false => OK,
        };
        let serving = async {
            let (mut stream, _) = listener.accept().await.expect("accepts");
            respond(&mut stream, response).await;
        };
        let (body, ()) = tokio::join!(answer(&client, &url), serving);
        assert_eq!(body.expect("answers"), b"ok");
    }
}

#[tokio::test]
async fn an_idle_connection_that_the_server_closes_is_let_go() {
    let (client, listener, url) = served().await;
    let serving = async {
        let (mut stream, _) = listener.accept().await.expect("accepts");
        respond(&mut stream, OK).await;
        stream.shutdown().await.expect("shuts down");
        // The end of what the client sends: it has closed its side, too.
        assert_eq!(stream.read(&mut [0]).await.expect("reads"), 0);
    };
    let (body, ()) = tokio::join!(answer(&client, &url), serving);
    assert_eq!(body.expect("answers"), b"ok");
    while client.idle.lock().is_some() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed_in_the_end() {
    let (client, listener, url) = served().await;
    let serving = async {
        let (mut stream, _) = listener.accept().await.expect("accepts");
        respond(&mut stream, OK).await;
        assert_eq!(stream.read(&mut [0]).await.expect("reads"), 0);
    };
    let (body, ()) = tokio::join!(answer(&client, &url), serving);
    assert_eq!(body.expect("answers"), b"ok");
}

#[tokio::test]
async fn a_response_that_nobody_reads_on_closes_its_connection_at_once() {
    let (client, listener, url) = served().await;
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n";
    let serving = async {
        let (mut stream, _) = listener.accept().await.expect("accepts");
        respond(&mut stream, head).await;
        assert_eq!(stream.read(&mut [0]).await.expect("reads"), 0);
    };
    let asking = async {
        let mut exchange = send(&client, &url).await.expect("answers");
        assert_eq!(exchange.chunk().await.expect("reads").expect("a part"), "a");
        drop(exchange);
    };
    tokio::join!(serving, asking);
    assert!(client.idle.lock().is_none());
}

#[tokio::test]
async fn a_request_that_is_given_up_closes_its_connection() {
    let (client, listener, url) = served().await;
    let mut stream = {
        let mut asking = pin!(send(&client, &url));
        tokio::select! {
            _ = &mut asking => panic!("there is no response"),
            stream = async {
                let (mut stream, _) = listener.accept().await.expect("accepts");
                read_request(&mut stream).await;
                stream
            } => stream,
        }
    };
    assert_eq!(stream.read(&mut [0]).await.expect("reads"), 0);
}

/// Counts how often it was woken.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn a_part_of_a_body_that_is_taken_wakes_its_task_no_more() {
    let (client, listener, url) = served().await;
    let serving = async {
        let (mut stream, _) = listener.accept().await.expect("accepts");
        respond(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nok").await;
        stream
    };
    let (exchange, _stream) = tokio::join!(send(&client, &url), serving);
    let mut exchange = exchange.expect("answers");
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(Arc::clone(&wakes));
    let mut chunk = pin!(exchange.chunk());
    loop {
        let before = wakes.0.load(Ordering::Relaxed);
        if let Poll::Ready(bytes) = chunk.as_mut().poll(&mut Context::from_waker(&waker)) {
            assert_eq!(bytes.expect("reads").expect("a part"), "ok");
            assert_eq!(wakes.0.load(Ordering::Relaxed), before);
            return;
        }
        yield_now().await;
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_is_an_error_and_a_slow_one_is_awaited() {
    let (client, listener, url) = served().await;
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let serving = async {
        let (mut stream, _) = listener.accept().await.expect("accepts");
        respond(&mut stream, head).await;
        for byte in "1\r\na\r\n1\r\nb\r\n1\r\n".bytes() {
            tokio::task::yield_now().await;
            stream.write_all(&[byte]).await.expect("writes");
        }
    };
    let asking = async {
        let mut exchange = send(&client, &url).await.expect("answers");
        assert_eq!(exchange.chunk().await.expect("reads").expect("a part"), "a");
        assert_eq!(exchange.chunk().await.expect("reads").expect("a part"), "b");
        assert!(matches!(exchange.chunk().await, Err(Error::Broken(_))));
    };
    tokio::join!(serving, asking);
}

#[tokio::test]
async fn requests_at_once_have_connections_of_their_own() {
    let (client, listener, url) = served().await;
    let serving = async {
        let (mut first, _) = listener.accept().await.expect("accepts");
        let (mut second, _) = listener.accept().await.expect("accepts");
        respond(&mut second, OK).await;
        respond(&mut first, OK).await;
    };
    let (one, other, ()) = tokio::join!(answer(&client, &url), answer(&client, &url), serving);
    assert_eq!((one.expect("answers"), other.expect("answers")), (b"ok".to_vec(), b"ok".to_vec()));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_can_not_be_reached_is_told_apart() {
    let (client, listener, url) = served().await;
    drop(listener);
    let error = send(&client, &url).await.expect_err("no server");
    assert!(matches!(&error, Error::Connect(ConnectError::Failed(_))), "{error:?}");
    assert!(error.cause().to_string().contains("connect"), "{error:?}");
}
