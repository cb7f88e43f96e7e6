//! A proxy in front of a daemon that cuts its connections: after so many bytes of an answer, or when it is told to.
//!
//! Owned by one test; it ends with it, when its listener has nobody to accept any more.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A proxy that listens.
pub(crate) struct CuttingProxy {
    address: SocketAddr,
    cuts: Arc<AtomicUsize>,
    open: Arc<Mutex<Vec<TcpStream>>>,
    blocks: Arc<AtomicBool>,
}

impl CuttingProxy {
    /// In front of `daemon`; each answer that is longer than `after` bytes is cut there, `times` times in all.
    pub(crate) fn new(daemon: SocketAddr, after: usize, times: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it has an address");
        let cuts = Arc::new(AtomicUsize::new(0));
        let made = Arc::clone(&cuts);
        let (open, blocks) = (Arc::<Mutex<Vec<TcpStream>>>::default(), Arc::<AtomicBool>::default());
        let (opened, blocked) = (Arc::clone(&open), Arc::clone(&blocks));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if blocked.load(Ordering::SeqCst) {
                    continue;
                }
                opened.lock().expect("it is whole").push(client.try_clone().expect("a handle"));
                let made = Arc::clone(&made);
                std::thread::spawn(move || carry(client, daemon, after, times, &made));
            }
        });
        Self { address, cuts, open, blocks }
    }

    /// Cuts all connections.
    pub(crate) fn cut(&self) {
        for client in self.open.lock().expect("it is whole").drain(..) {
            // It may be gone already.
            let _gone = client.shutdown(Shutdown::Both);
        }
    }

    /// Takes no connections, or takes them again.
    pub(crate) fn block(&self, blocks: bool) {
        self.blocks.store(blocks, Ordering::SeqCst);
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How many connections were cut.
    pub(crate) fn cuts(&self) -> usize {
        self.cuts.load(Ordering::SeqCst)
    }
}

fn carry(client: TcpStream, daemon: SocketAddr, after: usize, times: usize, cuts: &AtomicUsize) {
    let Ok(daemon) = TcpStream::connect(daemon) else { return };
    let (mut from, mut to) = (client.try_clone().expect("a handle"), daemon.try_clone().expect("a handle"));
    std::thread::spawn(move || {
        // Either end may go at any time; that is what the test is about.
        let _cut = std::io::copy(&mut from, &mut to);
        let _gone = to.shutdown(Shutdown::Write);
    });
    let (mut daemon, mut client) = (daemon, client);
    let (mut bytes, mut carried) = ([0; 1024], 0);
    while let Ok(count) = daemon.read(&mut bytes) {
        if count == 0 || client.write_all(&bytes[..count]).is_err() {
            break;
        }
        carried += count;
        if carried > after
            && cuts.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| (n < times).then_some(n + 1)).is_ok()
        {
            break;
        }
    }
    for socket in [&daemon, &client] {
        let _gone = socket.shutdown(Shutdown::Both);
    }
}
