//! A reader that takes little at a time, whatever it speaks: a proxy that carries a few bytes, waits, and goes on.

use acpd_e2e::connect;
use rustix::net::sockopt::set_socket_recv_buffer_size;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// Bytes that are carried at a time.
const LITTLE: usize = 16 * 1024;
/// What the system reads ahead: two of the largest packets of the loopback interface, below which it only creeps.
const AHEAD: usize = 128 * 1024;
/// Then nothing is for this long.
const PAUSE: Duration = Duration::from_millis(50);

/// A proxy for one connection.
pub(crate) struct Sluggish {
    pub(crate) address: SocketAddr,
    hurry: SyncSender<()>,
}

impl Sluggish {
    /// In front of a daemon.
    pub(crate) fn new(daemon: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it has an address");
        let (hurry, told) = sync_channel(0);
        std::thread::spawn(move || carry(&listener, daemon, &told));
        Self { address, hurry }
    }

    /// From now on it carries what it can.
    pub(crate) fn hurry(self) {
        drop(self.hurry);
    }
}

fn carry(listener: &TcpListener, daemon: SocketAddr, told: &Receiver<()>) {
    let (mut client, _) = listener.accept().expect("the viewer comes");
    let mut daemon = connect(daemon);
    // What the system reads for it would count as taken.
    set_socket_recv_buffer_size(&daemon, AHEAD).expect("a socket has a buffer");
    let (mut from, mut to) = (client.try_clone().expect("a handle"), daemon.try_clone().expect("a handle"));
    std::thread::spawn(move || {
        // Whoever leaves first ends it.
        let _cut = std::io::copy(&mut from, &mut to);
        let _gone = to.shutdown(Shutdown::Write);
    });
    let mut bytes = [0; LITTLE];
    while let Ok(count) = daemon.read(&mut bytes) {
        if count == 0 || client.write_all(&bytes[..count]).is_err() {
            break;
        }
        // Until somebody is in a hurry; then this is no wait.
        let _slow = told.recv_timeout(PAUSE);
    }
    for socket in [&daemon, &client] {
        let _gone = socket.shutdown(Shutdown::Both);
    }
}
