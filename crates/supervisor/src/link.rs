//! Our end of a keeper's control socket, as all that speak through it share it.
//!
//! Frames go out whole and in the order in which they were given, from any task; what the socket does not take at once
//! the process task writes later. That task alone reads. Invariant: what waits for stdin, here and in the keeper, is
//! bounded. Not here: what comes in.

use crate::keeper::protocol::Command;
use crate::keeper_socket::KeeperSocket;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio_util::bytes::{Buf, BytesMut};
use tokio_util::sync::CancellationToken;

/// Bytes of frames that may be on their way to a program's stdin. What comes then is not taken, and has to wait.
const UNDRAINED: usize = 16 << 20;
/// So much may be done with although the keeper has not said so. One that is longer than all that may be on its way
/// is taken when no more than this is.
const UNTOLD: usize = 256 * 1024;

pub(crate) struct Link {
    state: Mutex<State>,
    /// Something waits to be written to the socket.
    waits: Notify,
    /// There may be room for frames.
    room: Notify,
    /// The keeper has consumed, or is gone.
    consumed: Notify,
    /// The program reads no more.
    pub(crate) reader_gone: CancellationToken,
    /// The process is not ours any more.
    pub(crate) let_go: CancellationToken,
}

struct State {
    /// Until the other end is gone: handles of a program outlive it, and it is to cost no descriptor then.
    socket: Option<Arc<KeeperSocket>>,
    waiting: BytesMut,
    undrained: usize,
    /// How many answers to a progress have come, and what the last one said.
    answers: u64,
    position: u64,
    standing: Standing,
}

/// Who has the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The keeper.
    Open,
    /// It is gone. What is left of the program is ours alone.
    Gone,
    /// Another controller, or one to come.
    LetGo,
}

/// How far the keeper has consumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) count: u64,
    pub(crate) position: u64,
    pub(crate) standing: Standing,
}

impl Link {
    pub(crate) fn new(socket: KeeperSocket) -> Self {
        let state = State {
            socket: Some(Arc::new(socket)),
            waiting: BytesMut::new(),
            undrained: 0,
            answers: 0,
            position: 0,
            standing: Standing::Open,
        };
        Self {
            state: Mutex::new(state),
            waits: Notify::new(),
            room: Notify::new(),
            consumed: Notify::new(),
            reader_gone: CancellationToken::new(),
            let_go: CancellationToken::new(),
        }
    }

    /// The socket, while there is another end.
    ///
    /// # Errors
    /// `NotConnected` afterwards.
    pub(crate) fn socket(&self) -> io::Result<Arc<KeeperSocket>> {
        self.state.lock().socket.clone().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Sends a command. One that is lost with its keeper has no effect any more.
    pub(crate) fn send(&self, command: &Command) {
        self.give(&mut self.state.lock(), &command.to_bytes());
    }

    /// Sends bytes before there is a process task.
    pub(crate) async fn send_whole(&self, bytes: &[u8]) {
        self.give(&mut self.state.lock(), bytes);
        while !self.state.lock().waiting.is_empty() {
            self.write_on().await;
        }
    }

    /// Sends whole frames for stdin.
    ///
    /// # Errors
    /// `WouldBlock` when too much is on its way, `BrokenPipe` when it has no use.
    pub(crate) fn offer(&self, frames: &[u8]) -> io::Result<usize> {
        if self.reader_gone.is_cancelled() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let mut state = self.state.lock();
        if state.standing != Standing::Open {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if state.undrained > UNTOLD && state.undrained + frames.len() > UNDRAINED {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        state.undrained += frames.len();
        self.give(&mut state, frames);
        Ok(frames.len())
    }

    /// Waits until there may be room for frames.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn room(&self) {
        let room = self.room.notified();
        let is_full = {
            let state = self.state.lock();
            state.standing == Standing::Open && state.undrained > UNTOLD
        };
        if is_full {
            room.await;
        }
    }

    pub(crate) fn undrained(&self) -> usize {
        self.state.lock().undrained
    }

    /// So many bytes of frames are done with.
    pub(crate) fn drained(&self, bytes: u64) {
        let mut state = self.state.lock();
        state.undrained = state.undrained.saturating_sub(usize::try_from(bytes).unwrap_or(usize::MAX));
        drop(state);
        self.room.notify_waiters();
    }

    /// What a new controller is told of: so many bytes of frames are on their way.
    pub(crate) fn begin_with(&self, undrained: u64) {
        self.state.lock().undrained = usize::try_from(undrained).unwrap_or(usize::MAX);
    }

    /// The keeper has consumed up to there.
    pub(crate) fn consumed(&self, position: u64) {
        let mut state = self.state.lock();
        state.answers += 1;
        state.position = position;
        drop(state);
        self.consumed.notify_one();
    }

    /// Waits until the keeper has consumed, or is gone.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn consuming(&self) {
        self.consumed.notified().await;
    }

    pub(crate) fn answer(&self) -> Answer {
        let state = self.state.lock();
        Answer { count: state.answers, position: state.position, standing: state.standing }
    }

    /// The keeper is gone, and what it kept.
    pub(crate) fn gone(&self) {
        drop(self.end(Standing::Gone));
    }

    /// The process is not ours any more: another controller has it, or is to have it.
    pub(crate) fn let_go(&self) {
        // First, so that it is known when stdout ends.
        self.let_go.cancel();
        if let Some(socket) = self.end(Standing::LetGo) {
            // A task that reads from it still has it.
            let _gone = rustix::net::shutdown(&*socket, rustix::net::Shutdown::Both);
        }
    }

    fn end(&self, standing: Standing) -> Option<Arc<KeeperSocket>> {
        let mut state = self.state.lock();
        if state.standing == Standing::Open {
            state.standing = standing;
        }
        state.waiting = BytesMut::new();
        let socket = state.socket.take();
        drop(state);
        self.consumed.notify_one();
        self.room.notify_waiters();
        socket
    }

    fn give(&self, state: &mut State, frames: &[u8]) {
        let mut rest = frames;
        let Some(socket) = &state.socket else { return };
        if state.waiting.is_empty() {
            // A failure is seen by the process task, which reads.
            rest = &frames[socket.try_write(frames).unwrap_or(0)..];
            if rest.is_empty() {
                return;
            }
            self.waits.notify_one();
        }
        state.waiting.extend_from_slice(rest);
    }

    /// Waits until something waits to be written, or writes some of it.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn write_on(&self) {
        let socket = {
            let state = self.state.lock();
            state.socket.clone().filter(|_| !state.waiting.is_empty())
        };
        let Some(socket) = socket else { return self.waits.notified().await };
        // In a box: it is rare, and room for it would be there all the time.
        Box::pin(socket.writable()).await;
        let mut state = self.state.lock();
        let State { waiting, .. } = &mut *state;
        match socket.try_write(waiting) {
            Ok(written) => waiting.advance(written),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => waiting.clear(),
        }
        if waiting.is_empty() {
            *waiting = BytesMut::new();
        }
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("socket", &self.state.lock().socket).finish_non_exhaustive()
    }
}
