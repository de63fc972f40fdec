//! Providers with TLS, and the root certificates that they are trusted by.

use super::*;
use crate::engine::TlsRoots;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;

#[tokio::test]
async fn a_server_without_tls_is_told_apart_and_not_tried_again() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let base_url = Some(format!("https://{}", listener.local_addr().expect("an address")));
    let serving = spawn_blocking(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut hello = [0; 4_096];
        assert!(stream.read(&mut hello).expect("a hello") > 0);
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").expect("it listens");
        std::io::copy(&mut stream, &mut std::io::sink())
    });
    let settings = Settings { base_url, model: Some("m".into()), ..Settings::default() };
    let (_, end) = run(settings).await;
    let error = failed(end);
    assert_eq!(error.class, ErrorClass::Network);
    assert!(error.message.contains("answers without TLS"), "{error:?}");
    assert!(error.message.contains("http:// in place of https://"), "{error:?}");
    drop(serving.await.expect("no panic"));
}

fn tls_data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tls").join(name)
}

/// Speaks TLS with the certificate of the test authority; answers one request if it is trusted.
fn serve_tls(listener: &TcpListener) -> std::io::Result<()> {
    let certificate = CertificateDer::from_pem_file(tls_data("server.pem")).expect("PEM");
    let key = PrivateKeyDer::from_pem_file(tls_data("server.key")).expect("PEM");
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(ring)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("a pair");
    let connection = rustls::ServerConnection::new(Arc::new(config)).expect("good settings");
    let mut stream = rustls::StreamOwned::new(connection, listener.accept()?.0);
    let mut request = Vec::new();
    while !request.ends_with(b"}") {
        let mut bytes = [0; 4_096];
        let read = stream.read(&mut bytes)?;
        request.extend_from_slice(&bytes[..read]);
    }
    let body = r#"{"choices":[{"message":{"content":"safe"}}]}"#;
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())?;
    stream.flush()
}

#[tokio::test]
async fn a_provider_is_trusted_by_the_authority_in_the_named_file() {
    let run_tls = async |tls_roots, roots_file: Option<PathBuf>| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let base_url = Some(format!("https://{}", listener.local_addr().expect("an address")));
        let serving = spawn_blocking(move || serve_tls(&listener));
        let model = Some("m".into());
        let settings = Settings { base_url, model, retries: 0, tls_roots, ..Settings::default() };
        let engine = with_roots(settings, roots_file);
        let (running, events) = start(&engine, EVENTS_MAX);
        let end = running.await;
        (serving.await.expect("no panic"), text(&collect(events).await), end)
    };
    for tls_roots in [TlsRoots::Builtin, TlsRoots::System] {
        let (served, text, end) = run_tls(tls_roots, Some(tls_data("ca.pem"))).await;
        served.expect("trusted");
        assert_eq!((text.as_str(), end), ("safe", CallEnd::Finished));
    }

    let (served, _, end) = run_tls(TlsRoots::Builtin, None).await;
    served.expect_err("not trusted");
    let error = failed(end);
    assert_eq!((error.stage, error.class), (Stage::Run, ErrorClass::Network));
    assert!(error.message.contains("SSL_CERT_FILE"), "{error:?}");
}

#[tokio::test]
async fn a_file_without_certificates_is_a_trouble_with_settings_where_tls_is_spoken() {
    let provider = Provider::start(vec![says("plain")]);
    for file in ["nowhere.pem", "server.key", "README.md"] {
        let tls = Settings { base_url: Some("https://127.0.0.1:9".into()), ..settings(&provider) };
        let engine = with_roots(tls, Some(tls_data(file)));
        let error = failed(start(&engine, EVENTS_MAX).0.await);
        assert_eq!((error.stage, error.class), (Stage::Init, ErrorClass::Config), "{file}");
        assert!(error.message.contains("SSL_CERT_FILE"), "{error:?}");
        assert!(error.message.contains(file), "{error:?}");
    }
    let plain = with_roots(settings(&provider), Some(tls_data("nowhere.pem")));
    let (running, _events) = start(&plain, EVENTS_MAX);
    assert_eq!(running.await, CallEnd::Finished);
}

#[tokio::test]
async fn certificates_that_have_no_end_or_never_come_are_an_error() {
    let provider = Provider::start(Vec::new());
    let https = |connect_timeout| Settings {
        base_url: Some("https://127.0.0.1:9".into()),
        connect_timeout,
        ..settings(&provider)
    };
    // `/dev/zero` has no end; the reading end of a pipe that stays open gives nothing.
    let (silent, _writer) = std::io::pipe().expect("a pipe");
    let silent = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&silent));
    let short = Duration::from_millis(50);
    for (file, limit, words) in
        [("/dev/zero", CONNECT_TIMEOUT, "larger than"), (silent.as_str(), short, "within 50ms")]
    {
        let engine = with_roots(https(limit), Some(file.into()));
        // Twice: the second run does not wait for the first one's thread without a limit.
        for _ in 0..2 {
            let error = failed(start(&engine, EVENTS_MAX).0.await);
            assert_eq!((error.stage, error.class), (Stage::Init, ErrorClass::Config), "{file}");
            assert!(error.message.contains(words), "{error:?}");
        }
    }
}
