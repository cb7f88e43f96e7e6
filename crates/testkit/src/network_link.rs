//! A link between two programs, as a proxy on loopback: it can be cut, stand still, or be slow, and is as before afterwards.
//!
//! Owned by one test; its connections end with it.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// What a link does with what is sent over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// All of it, at once.
    All,
    /// All of it, each piece so much later.
    Slowly(Duration),
    /// Nothing, as a cable that is pulled: neither side learns of it. It comes when the link carries again.
    Nothing,
    /// Nothing, and connections end.
    NoConnection,
}

/// A link to a server.
#[derive(Debug)]
pub struct NetworkLink {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    carries: Carries,
    open: Vec<TcpStream>,
    is_over: bool,
}

impl NetworkLink {
    /// A link to `server` that carries all.
    pub fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("it has an address");
        let state = State { carries: Carries::All, open: Vec::new(), is_over: false };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let mut state = accepting.state();
                if state.is_over {
                    return;
                }
                if state.carries == Carries::NoConnection {
                    continue;
                }
                let Ok(server) = TcpStream::connect(server) else { continue };
                for socket in [&client, &server] {
                    state.open.push(socket.try_clone().expect("a handle"));
                }
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (from, to) = (from.try_clone().expect("a handle"), to.try_clone().expect("a handle"));
                    let shared = Arc::clone(&accepting);
                    std::thread::spawn(move || shared.carry(from, to));
                }
            }
        });
        Self { address, shared }
    }

    /// Where it is connected to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on it carries that.
    pub fn set(&self, carries: Carries) {
        let mut state = self.shared.state();
        state.carries = carries;
        if carries == Carries::NoConnection {
            state.close();
        }
        self.shared.changed.notify_all();
    }
}

impl Drop for NetworkLink {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.is_over = true;
        state.close();
        drop(state);
        self.shared.changed.notify_all();
        // What accepts learns of it.
        let _gone = TcpStream::connect(self.address);
    }
}

impl State {
    fn close(&mut self) {
        for socket in self.open.drain(..) {
            // It may be gone already.
            let _gone = socket.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics there")
    }

    fn carry(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut bytes = [0; 16 * 1024];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            let stands = |state: &mut State| state.carries == Carries::Nothing && !state.is_over;
            let state = self.changed.wait_while(self.state(), stands).expect("nobody panics there");
            let carries = state.carries;
            drop(state);
            if let Carries::Slowly(later) = carries {
                #[expect(clippy::disallowed_methods, reason = "a slow link is what is asked for")]
                // tidy: allow sleep, a slow link is what is asked for
                std::thread::sleep(later);
            }
            if carries == Carries::NoConnection || to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        for socket in [&from, &to] {
            let _gone = socket.shutdown(Shutdown::Both);
        }
    }
}
