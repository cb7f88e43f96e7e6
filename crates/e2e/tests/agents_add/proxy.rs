//! A proxy that leads to any host, and keeps what it was asked.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Serves until it is dropped.
pub(crate) struct Proxy {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
    ended: Arc<AtomicBool>,
}

impl Proxy {
    /// One that leads on, if `answer` is 200.
    pub(crate) fn answering(answer: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it has one");
        let (heads, ended): (Arc<Mutex<Vec<String>>>, Arc<AtomicBool>) = Default::default();
        let proxy = Self { address, heads: Arc::clone(&heads), ended: Arc::clone(&ended) };
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let heads = Arc::clone(&heads);
                // A client may leave at any time.
                std::thread::spawn(move || drop(lead(stream, answer, &heads)));
            }
        });
        proxy
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it was asked, each with its headers.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.heads.lock().expect("no thread panics with it").clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        // So that it looks.
        let _gone = TcpStream::connect(self.address);
    }
}

fn lead(mut stream: TcpStream, answer: u16, heads: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut read = BufReader::new(stream.try_clone()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && read.read_line(&mut head)? > 0 {}
    let to = head.split(' ').nth(1).unwrap_or_default().to_owned();
    heads.lock().expect("no thread panics with it").push(head);
    write!(stream, "HTTP/1.1 {answer} As it is\r\n\r\n")?;
    if answer != 200 {
        return Ok(());
    }
    let mut host = TcpStream::connect(to)?;
    let (mut there, mut back) = (host.try_clone()?, stream.try_clone()?);
    std::thread::spawn(move || {
        let _left = std::io::copy(&mut read, &mut there);
        there.shutdown(std::net::Shutdown::Write)
    });
    std::io::copy(&mut host, &mut back)?;
    back.shutdown(std::net::Shutdown::Write)
}
