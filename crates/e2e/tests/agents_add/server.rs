//! A server on loopback, with TLS or without, that answers each path as a test says.

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

/// What is answered.
#[derive(Clone)]
pub(crate) enum Answer {
    Bytes(Vec<u8>),
    Redirect(String),
    /// So many bytes are announced, and none come.
    Announced(u64),
    /// Zeros without an end, in chunks.
    Endless,
    /// A few bytes; then it is told that they went, and no more come until the client leaves.
    Stalls(SyncSender<()>),
}

type Answers = Arc<Mutex<HashMap<String, Answer>>>;

/// A certificate for 127.0.0.1.
pub(crate) struct Certificate {
    made: rcgen::CertifiedKey<rcgen::KeyPair>,
}

impl Certificate {
    pub(crate) fn new() -> Self {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        Self { made: rcgen::generate_simple_self_signed(names).expect("a certificate") }
    }

    pub(crate) fn pem(&self) -> String {
        self.made.cert.pem()
    }

    fn config(&self) -> Arc<ServerConfig> {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.made.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.expect("the versions are known").with_no_client_auth();
        Arc::new(
            config.with_single_cert(vec![self.made.cert.der().clone()], key).expect("they belong together"),
        )
    }
}

/// Serves until it is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    scheme: &'static str,
    answers: Answers,
    ended: Arc<AtomicBool>,
}

impl Server {
    pub(crate) fn plain() -> Self {
        Self::start(None)
    }

    pub(crate) fn with_tls(certificate: &Certificate) -> Self {
        Self::start(Some(certificate.config()))
    }

    fn start(tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it has one");
        let (answers, ended): (Answers, Arc<AtomicBool>) = Default::default();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let server = Self { address, scheme, answers: Arc::clone(&answers), ended: Arc::clone(&ended) };
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let (answers, tls) = (Arc::clone(&answers), tls.clone());
                std::thread::spawn(move || match tls {
                    Some(config) => {
                        let connection = ServerConnection::new(config).expect("the configuration is whole");
                        serve(StreamOwned::new(connection, stream), &answers);
                    }
                    None => serve(stream, &answers),
                });
            }
        });
        server
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address)
    }

    pub(crate) fn put(&self, path: &str, answer: Answer) {
        self.answers.lock().expect("no thread panics with it").insert(path.to_owned(), answer);
    }

    pub(crate) fn bytes(&self, path: &str, bytes: impl Into<Vec<u8>>) {
        self.put(path, Answer::Bytes(bytes.into()));
    }

    /// Something comes there that stalls; what tells when it does.
    pub(crate) fn stalls(&self, path: &str) -> Receiver<()> {
        let (sender, receiver) = sync_channel(8);
        self.put(path, Answer::Stalls(sender));
        receiver
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        // So that it looks.
        let _gone = TcpStream::connect(self.address);
    }
}

fn serve(stream: impl Read + Write, answers: &Answers) {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    // A client that does not like the certificate says nothing.
    if stream.read_line(&mut line).is_err() {
        return;
    }
    let path = line.split(' ').nth(1).unwrap_or_default().split('?').next().unwrap_or_default().to_owned();
    loop {
        let mut header = String::new();
        match stream.read_line(&mut header) {
            Ok(read) if read > 2 => {}
            _ => break,
        }
    }
    let answer = answers.lock().expect("no thread panics with it").get(&path).cloned();
    // A client may leave at any time.
    let _left = respond(stream.get_mut(), answer);
}

fn respond(out: &mut (impl Read + Write), answer: Option<Answer>) -> std::io::Result<()> {
    const HEAD: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\n";
    let kind = |bytes: &[u8]| match bytes.first() {
        Some(b'{') => "application/json",
        Some(b'<') => "text/html",
        _ => "application/octet-stream",
    };
    match answer {
        None => write!(out, "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")?,
        Some(Answer::Bytes(bytes)) => {
            write!(out, "{HEAD}Content-Type: {}\r\nContent-Length: {}\r\n\r\n", kind(&bytes), bytes.len())?;
            out.write_all(&bytes)?;
        }
        Some(Answer::Redirect(to)) => write!(
            out,
            "HTTP/1.1 302 Found\r\nConnection: close\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n"
        )?,
        Some(Answer::Announced(bytes)) => write!(out, "{HEAD}Content-Length: {bytes}\r\n\r\n")?,
        Some(Answer::Endless) => {
            write!(out, "{HEAD}Transfer-Encoding: chunked\r\n\r\n")?;
            let piece = vec![0; 64 * 1024];
            // 2 GiB, if it were let.
            for _ in 0..32 * 1024 {
                write!(out, "{:x}\r\n", piece.len())?;
                out.write_all(&piece)?;
                write!(out, "\r\n")?;
            }
            write!(out, "0\r\n\r\n")?;
        }
        Some(Answer::Stalls(came)) => {
            write!(out, "{HEAD}Content-Length: 1000\r\n\r\n....")?;
            out.flush()?;
            let _unheard = came.try_send(());
            // Until it leaves.
            let _end = out.read(&mut [0; 1]);
        }
    }
    out.flush()
}
