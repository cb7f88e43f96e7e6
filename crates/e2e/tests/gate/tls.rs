//! The door with TLS.

use crate::door::{bearer, entry};
use acpd_e2e::{Daemon, Exit, PATIENCE, Scratch};
use acpd_supervisor::TaskScope;
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A scratch whose daemon has a certificate of its own, and the certificate.
fn scratch() -> (Scratch, CertificateDer<'static>) {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
    let scratch = Scratch::new();
    let [cert, key] = files(&scratch);
    std::fs::write(&cert, made.cert.pem()).expect("it is written");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("it is written");
    let server = format!("[server]\ntls_cert = {cert:?}\ntls_key = {key:?}\n");
    (scratch.config(&format!("{server}{}", entry("root", "scope = \"admin\""))), made.cert.der().clone())
}

fn files(scratch: &Scratch) -> [PathBuf; 2] {
    [scratch.path("cert.pem"), scratch.path("key.pem")]
}

async fn connect(
    daemon: &Daemon,
    cert: &CertificateDer<'static>,
    protocols: &[&[u8]],
) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(cert.clone()).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config =
        config.expect("the versions are known").with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let stream = TcpStream::connect(daemon.address()).await.expect("the daemon accepts");
    let name = ServerName::try_from("127.0.0.1").expect("a name");
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.expect("a handshake")
}

fn talk(talk: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { tokio::time::timeout(PATIENCE, talk).await }).expect("in time");
}

fn request(daemon: &Daemon, path: &str, headers: &[(&str, &str)]) -> hyper::Request<Empty<Bytes>> {
    let mut request = hyper::Request::get(format!("https://{}{path}", daemon.address()));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Empty::new()).expect("a request")
}

// contract 6, SC-1, SC-2: both versions of HTTP by ALPN, behind the same guard; the door's own origin is https
#[test]
fn https_speaks_both_versions() {
    let (scratch, cert) = scratch();
    let mut daemon = scratch.serve();
    let (token, own) = (bearer("root"), format!("https://{}", daemon.address()));
    let plain = own.replace("https", "http");
    let cases: [(&[(&str, &str)], u16); 5] = [
        (&[("authorization", &token)], 200),
        (&[], 401),
        (&[("authorization", &token), ("origin", &own)], 200),
        (&[("authorization", &token), ("origin", &plain)], 403),
        (&[("authorization", &token), ("origin", "null")], 403),
    ];
    talk(async {
        let scope = TaskScope::default();
        let stream = connect(&daemon, &cert, &[b"h2", b"http/1.1"]).await;
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (mut http, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
                .await
                .expect("HTTP/2");
        scope.spawn("http/2", connection);
        for (headers, status) in cases {
            let answer =
                http.send_request(request(&daemon, "/v1/sessions", headers)).await.expect("an answer");
            assert_eq!(answer.status(), status, "{headers:?}");
        }
        for protocols in [&[&b"http/1.1"[..]][..], &[]] {
            let stream = connect(&daemon, &cert, protocols).await;
            assert_eq!(stream.get_ref().1.alpn_protocol(), protocols.first().copied());
            let (mut http, connection) =
                hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("HTTP/1.1");
            scope.spawn("http/1.1", connection);
            for (headers, status) in cases {
                let headers = [headers, &[("host", own.trim_start_matches("https://"))]].concat();
                let mut asked = request(&daemon, "/v1/sessions", &headers);
                *asked.uri_mut() = "/v1/sessions".parse().expect("a path");
                let answer = http.send_request(asked).await.expect("an answer");
                assert_eq!(answer.status(), status, "{headers:?}");
                let body = answer.into_body().collect().await.expect("a body").to_bytes();
                assert!(status != 200 || &body[..] == b"{\"sessions\":[]}");
            }
        }
    });
    daemon.stop();
}

// contract 6, WS-1: a WebSocket over TLS
#[test]
fn a_websocket_runs_over_tls() {
    let (scratch, cert) = scratch();
    let mut daemon = scratch.serve();
    talk(async {
        let mut stream = connect(&daemon, &cert, &[b"http/1.1"]).await;
        let upgrade = format!(
            "GET /acp HTTP/1.1\r\nHost: {}\r\nAuthorization: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            daemon.address(),
            bearer("root")
        );
        stream.write_all(upgrade.as_bytes()).await.expect("the daemon reads");
        let mut said = Vec::new();
        while !said.ends_with(b"\r\n\r\n") {
            said.push(stream.read_u8().await.expect("an answer"));
        }
        let said = String::from_utf8(said).expect("ASCII");
        assert!(said.starts_with("HTTP/1.1 101 ") && said.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{said}");
        let message = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#;
        let mut frame = vec![0x81, 0x80 | u8::try_from(message.len()).expect("it is short"), 0, 0, 0, 0];
        frame.extend(message);
        stream.write_all(&frame).await.expect("the daemon reads");
        let mut answer = String::new();
        while !answer.contains("\"protocolVersion\":1") {
            let mut bytes = [0; 4096];
            let read = stream.read(&mut bytes).await.expect("an answer");
            assert_ne!(read, 0, "it ended: {answer}");
            answer.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
    });
    daemon.stop();
}

// contract 6: who speaks plain HTTP, garbage or nothing to TLS is let go of, and holds nobody up
#[test]
fn plain_http_to_tls_does_not_hang() {
    let (scratch, cert) = scratch();
    let mut daemon = scratch.serve();
    let _silent = daemon.connect();
    for said in [
        &b"GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"[..],
        b"\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x16\x03\x01\xff\xff",
    ] {
        let mut plain = daemon.connect();
        plain.write_all(said).expect("the daemon reads");
        let mut answer = Vec::new();
        // It may be reset: the daemon has not read all of it.
        match plain.read_to_end(&mut answer) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "nothing came"),
        }
        assert!(!answer.starts_with(b"HTTP/1.1 2"), "{answer:?}");
    }
    talk(async {
        let mut stream = connect(&daemon, &cert, &[]).await;
        let asked =
            format!("GET /v1/health HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", daemon.address());
        stream.write_all(asked.as_bytes()).await.expect("the daemon reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    });
    daemon.stop();
}

// HT-12: half a handshake holds no socket, nor does half a head behind a whole one
#[test]
fn half_a_handshake_is_given_up() {
    let (scratch, cert) = scratch();
    let mut daemon = scratch.serve();
    // The beginning of a ClientHello: 512 bytes are to follow.
    let mut half = daemon.connect();
    half.write_all(b"\x16\x03\x01\x02\x00\x01").expect("the daemon reads");
    talk(async {
        let mut stream = connect(&daemon, &cert, &[b"http/1.1"]).await;
        stream.write_all(b"GET /v1/health HTTP/1.1\r\nHo").await.expect("the daemon reads");
        // It ends without a word.
        let mut answer = Vec::new();
        let _torn = stream.read_to_end(&mut answer).await;
        assert_eq!(answer, b"");
    });
    let mut answer = Vec::new();
    match half.read_to_end(&mut answer) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "nothing came"),
    }
    daemon.stop();
}

// contract 6: files that cannot be used are told by their name, before anything listens
#[test]
fn unusable_files_are_named() {
    let (scratch, _) = scratch();
    let [cert, key] = files(&scratch);
    let [config, state] =
        [scratch.config_file(), scratch.state()].map(|path| path.to_string_lossy().into_owned());
    let good = std::fs::read_to_string(&key).expect("it is there");
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let other = other.signing_key.serialize_pem();
    let serve = |what: &str, says: &str| {
        let args = ["serve", "--listen", "127.0.0.1:0", "--config", &config, "--state-dir", &state];
        let (exit, stdout, stderr) = scratch.run(&args);
        assert_eq!((exit, &*stdout), (Exit::Code(1), ""), "{what}: {stderr}");
        assert!(stderr.contains(says) && !stderr.contains("panicked"), "{what}: {stderr}");
        assert!(!stderr.contains("PRIVATE KEY"), "{stderr}");
    };
    std::fs::write(&key, other).expect("it is written");
    serve("the key of another", "certificate and key cannot be used");
    std::fs::write(&key, "no key").expect("it is written");
    serve("no key", "key.pem");
    std::fs::remove_file(&key).expect("it is there");
    serve("no file", "key.pem");
    std::fs::write(&key, good).expect("it is written");
    std::fs::write(&cert, "no certificate").expect("it is written");
    serve("no certificate", "cert.pem");
}
