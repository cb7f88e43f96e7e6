//! Carries lines between a client and a daemon, over as many links as it takes.

use super::News;
use super::away::Away;
use super::core::{FrontCore, Loss, Out};
use crate::daemon::{Daemon, DaemonError, Frame, Heard, Link, Socket, Trouble, WsError, hear, lost};
use acpd_gateway::Arrival;
use acpd_host::chain;
use acpd_wire::{RawId, codes, write_error};
use bytes::{Bytes, BytesMut};
use futures_util::SinkExt;
use futures_util::stream::{SplitSink, SplitStream};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How often the daemon gets a ping, which it has to answer.
const PING: Duration = Duration::from_secs(20);
/// How long the daemon may take to take leave.
const LEAVE: Duration = Duration::from_secs(2);
/// Lines that are written together at most, so that an endless stream of them is flushed now and then.
const TOGETHER: usize = 64;
/// Lines of the client that are read while there is no daemon, to see that it goes. More: it is not read.
const WAITING: usize = 64;

/// What a front end carries.
pub(crate) struct Carried {
    pub(crate) daemon: Daemon,
    pub(crate) agent: Option<String>,
    /// The client's lines.
    pub(crate) lines: mpsc::Receiver<Arrival>,
    /// Cancelled when the client is gone, even while its lines are not read.
    pub(crate) gone: CancellationToken,
    /// Lines for the client.
    pub(crate) pieces: mpsc::Sender<Bytes>,
    /// What is told of the connection. Full: it is not told.
    pub(crate) news: mpsc::Sender<News>,
    /// How long requests of a client that is gone may still wait for their answers.
    pub(crate) patience: Duration,
}

/// Carries lines until the client leaves, or the daemon is given up: what is open then is answered with an error that says so, beside
/// the end.
pub(crate) async fn carry(link: Link, carried: Carried) -> Trouble {
    let fresh = || uuid::Uuid::new_v4().simple().to_string();
    let front = Front {
        core: Mutex::new(FrontCore::new(fresh(), format!("front-{}", fresh()))),
        changed: Notify::new(),
        to_daemon: Mutex::default(),
        to_client: Mutex::default(),
        carried,
        waiting: VecDeque::new(),
        is_ended: false,
        away: None,
    };
    front.run(link).await
}

struct Front {
    core: Mutex<FrontCore>,
    /// A request was answered, or there is something to be sent.
    changed: Notify,
    /// What the daemon is to be sent beside the client's lines: as much as it has asked.
    to_daemon: Mutex<VecDeque<Bytes>>,
    /// What the client is to be sent, also when the link is lost meanwhile: it counts as told. As much as one message of the
    /// daemon has led to.
    to_client: Mutex<VecDeque<Bytes>>,
    carried: Carried,
    /// Lines that came while there was no link.
    waiting: VecDeque<Arrival>,
    /// The client's lines have ended.
    is_ended: bool,
    away: Option<Away>,
}

/// How a link ended.
enum End {
    /// The client left, or does not read any more.
    Left,
    Lost(Loss),
}

impl Front {
    async fn run(mut self, mut link: Link) -> Trouble {
        loop {
            let Loss { why, retry } = match self.over(link).await {
                End::Left => {
                    self.answer_open(
                        "no answer came before this client left; the daemon may go on with what it was asked",
                    );
                    return None;
                }
                End::Lost(loss) => loss,
            };
            self.core.get_mut().lost();
            self.to_daemon.get_mut().clear();
            let is_final = self.is_ended
                || self.carried.daemon.reconnect().is_zero()
                || !self.core.get_mut().can_go_on();
            if is_final {
                self.answer_open(&why);
                return Some(why);
            }
            let (now, keep) = (Instant::now(), self.carried.daemon.reconnect());
            match &mut self.away {
                Some(away) => (away.lost, away.why) = (why.clone(), why),
                None => self.away = Some(Away::new(now, keep, why)),
            }
            match self.find(retry).await {
                Ok(Some(found)) => link = found,
                Ok(None) => {
                    let lost = self.away.as_ref().map_or_else(String::new, |away| away.why.clone());
                    self.answer_open(&format!("{lost}; this client left before it was there again"));
                    return None;
                }
                Err(why) => {
                    self.answer_open(&why);
                    return Some(why);
                }
            }
        }
    }

    /// Answers what is open, and what was read and not sent, in a task of its own: a client that does not read must not hold up the
    /// end.
    fn answer_open(mut self, why: &str) {
        let lines = &mut self.carried.lines;
        lines.close();
        let late = std::iter::from_fn(|| self.waiting.pop_front().or_else(|| lines.try_recv().ok()));
        let to_client = self.to_client.get_mut();
        for arrival in late {
            to_client.extend(take(&self.core, arrival).to_client);
        }
        to_client.extend(self.core.get_mut().given_up(why));
        if to_client.is_empty() {
            return;
        }
        let scope = self.carried.daemon.scope().clone();
        scope.spawn("last answers", async move {
            let _unread = deliver(&self.to_client, &self.carried.pieces).await;
        });
    }

    /// Carries lines over a link until it is lost, or the client leaves.
    async fn over(&mut self, link: Link) -> End {
        let (sink, stream, at) = link.split();
        let mut out = Out::default();
        self.core.get_mut().linked(&mut out);
        self.to_daemon.get_mut().extend(out.to_daemon);
        self.to_client.get_mut().extend(out.to_client);
        let Self { core, changed, to_daemon, to_client, carried, waiting, is_ended, away } = self;
        let Carried { lines, gone, pieces, news, patience, .. } = carried;
        let shared = Shared { core, changed, to_daemon, to_client, gone, pieces };
        if out.is_back {
            back(away, news);
        }
        let outgoing = shared.send_all(sink, (lines, waiting, is_ended), *patience);
        let incoming = shared.receive_all(stream, &at, || back(away, news));
        tokio::pin!(outgoing, incoming);
        let sent = tokio::select! {
            end = &mut incoming => return end,
            sent = &mut outgoing => sent,
        };
        // What the daemon still says on its way out is read, for a moment. When writing has failed, reading says best why.
        match (sent, tokio::time::timeout(LEAVE, &mut incoming).await) {
            (Ok(()), _) => End::Left,
            (Err(_), Ok(end)) => end,
            (Err(error), Err(_)) => End::Lost(Loss { why: lost(&at, &error), retry: None }),
        }
    }

    /// Tries to find the daemon again. None when the client has left meanwhile; an error when it is given up.
    async fn find(&mut self, mut retry: Option<Duration>) -> Result<Option<Link>, String> {
        let Self { carried, waiting, is_ended, away, .. } = self;
        let Some(away) = away else { return Ok(None) };
        loop {
            let next = away.next_try(Instant::now(), retry.take());
            let mut tried = std::pin::pin!(async {
                tokio::time::sleep_until(next).await;
                carried.daemon.link(carried.agent.as_deref()).await
            });
            let found = loop {
                let reads = !*is_ended && waiting.len() < WAITING;
                tokio::select! {
                    found = &mut tried => break found,
                    () = carried.gone.cancelled() => return Ok(None),
                    () = carried.pieces.closed() => return Ok(None),
                    line = carried.lines.recv(), if reads => match line {
                        Some(line) => waiting.push_back(line),
                        None => *is_ended = true,
                    },
                    () = until(away.says_at()) => {
                        away.says();
                        // One that is not read needs no news.
                        let _full = carried.news.try_send(News::Away(away.lost.clone()));
                    }
                    () = tokio::time::sleep_until(away.until) => return Err(given_up(away, carried.daemon.reconnect())),
                }
                if *is_ended && waiting.is_empty() {
                    return Ok(None);
                }
            };
            match found {
                Ok(link) => return Ok(Some(link)),
                Err(error) if may_pass(&error) => away.why = chain(&error).to_string(),
                Err(error) => return Err(chain(&error).to_string()),
            }
            if away.is_over(Instant::now()) {
                return Err(given_up(away, carried.daemon.reconnect()));
            }
        }
    }
}

/// Whether a daemon may come to be there.
fn may_pass(error: &DaemonError) -> bool {
    error.may_pass() || matches!(error, DaemonError::NotHttp { .. } | DaemonError::Unreadable { .. })
}

fn given_up(away: &Away, keep: Duration) -> String {
    format!("{}; it was tried again for {keep:?}, without success", away.why)
}

fn back(away: &mut Option<Away>, news: &mpsc::Sender<News>) {
    if away.take().is_some_and(|away| away.is_said()) {
        let _full = news.try_send(News::Back);
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// What both directions use.
#[derive(Clone, Copy)]
struct Shared<'a> {
    core: &'a Mutex<FrontCore>,
    changed: &'a Notify,
    to_daemon: &'a Mutex<VecDeque<Bytes>>,
    to_client: &'a Mutex<VecDeque<Bytes>>,
    gone: &'a CancellationToken,
    pieces: &'a mpsc::Sender<Bytes>,
}

type Sink = SplitSink<Socket, Frame>;
/// The client's lines, those that have waited, and whether they have ended.
type Lines<'a> = (&'a mut mpsc::Receiver<Arrival>, &'a mut VecDeque<Arrival>, &'a mut bool);

enum Next {
    Arrival(Option<Arrival>),
    Own,
    Ping,
}

impl Shared<'_> {
    /// Sends lines until they end, then takes leave.
    async fn send_all(
        self,
        mut sink: Sink,
        (lines, waiting, is_ended): Lines<'_>,
        patience: Duration,
    ) -> Result<(), WsError> {
        let mut pings = tokio::time::interval(PING);
        pings.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        self.send_own(&mut sink).await?;
        while let Some(arrival) = waiting.pop_front() {
            self.feed(&mut sink, arrival).await?;
        }
        sink.flush().await?;
        while !*is_ended {
            let next = tokio::select! {
                line = lines.recv() => Next::Arrival(line),
                () = self.changed.notified() => Next::Own,
                _ = pings.tick() => Next::Ping,
            };
            match next {
                Next::Ping => sink.send(Frame::Ping(Bytes::new())).await?,
                Next::Own => self.send_own(&mut sink).await?,
                Next::Arrival(None) => *is_ended = true,
                Next::Arrival(Some(first)) => {
                    self.feed(&mut sink, first).await?;
                    for _ in 1..TOGETHER {
                        let Ok(more) = lines.try_recv() else { break };
                        self.feed(&mut sink, more).await?;
                    }
                    sink.flush().await?;
                }
            }
        }
        let answered = async {
            while !self.core.lock().is_idle() {
                self.changed.notified().await;
                self.send_own(&mut sink).await?;
            }
            Ok::<(), WsError>(())
        };
        drop(tokio::time::timeout(patience, answered).await);
        match sink.close().await {
            Err(WsError::ConnectionClosed | WsError::AlreadyClosed) => Ok(()),
            closed => closed,
        }
    }

    /// Sends what the daemon is sent beside the client's lines.
    async fn send_own(self, sink: &mut Sink) -> Result<(), WsError> {
        loop {
            let line = self.to_daemon.lock().pop_front();
            match line {
                Some(line) => sink.feed(frame(line)).await?,
                None => return sink.flush().await,
            }
        }
    }

    /// Sends a line, or answers one that cannot be sent.
    async fn feed(self, sink: &mut Sink, arrival: Arrival) -> Result<(), WsError> {
        let out = take(self.core, arrival);
        for line in out.to_daemon {
            sink.feed(frame(line)).await?;
        }
        if !out.to_client.is_empty() {
            self.to_client.lock().extend(out.to_client);
            // A client that does not read its errors is not read, and leaves all the same. The receiver notices one that has gone.
            let _unread = self.gone.run_until_cancelled(deliver(self.to_client, self.pieces)).await;
        }
        Ok(())
    }

    /// Receives messages until there are no more.
    async fn receive_all(self, mut stream: SplitStream<Socket>, at: &str, mut is_back: impl FnMut()) -> End {
        loop {
            if deliver(self.to_client, self.pieces).await.is_err() {
                return End::Left;
            }
            let heard = tokio::select! {
                heard = hear(&mut stream, at) => heard,
                () = self.pieces.closed() => return End::Left,
            };
            let line = match heard {
                Heard::Line(line) => line,
                Heard::Nothing => continue,
                Heard::End(why) => return End::Lost(Loss { why, retry: None }),
            };
            let mut out = Out::default();
            self.core.lock().daemon_said(line, &mut out);
            if out.is_back {
                is_back();
            }
            self.to_client.lock().extend(out.to_client);
            let is_idle = self.core.lock().is_idle();
            if is_idle || !out.to_daemon.is_empty() {
                self.to_daemon.lock().extend(out.to_daemon);
                self.changed.notify_one();
            }
            if let Some(loss) = out.lost {
                return End::Lost(loss);
            }
        }
    }
}

/// Takes a line of the client; one that cannot be sent is answered as a daemon would.
fn take(core: &Mutex<FrontCore>, arrival: Arrival) -> Out {
    let mut out = Out::default();
    let (code, message) = match arrival {
        Arrival::TooLong { limit } => {
            (codes::INVALID_REQUEST, format!("the line is longer than {limit} bytes"))
        }
        Arrival::Line(line) if line.iter().all(u8::is_ascii_whitespace) => return out,
        Arrival::Line(line) if std::str::from_utf8(&line).is_err() => {
            (codes::PARSE_ERROR, "the line is not UTF-8".to_owned())
        }
        Arrival::Line(line) => {
            core.lock().client_said(line, fresh_key, &mut out);
            return out;
        }
    };
    let mut line = BytesMut::new();
    write_error(&mut line, RawId::NULL, code, &message, None);
    out.to_client.push(line.freeze());
    out
}

/// Sends the client what it is to be sent.
///
/// # Cancel safety
/// Nothing is lost when the future is dropped.
async fn deliver(
    lines: &Mutex<VecDeque<Bytes>>,
    pieces: &mpsc::Sender<Bytes>,
) -> Result<(), mpsc::error::SendError<()>> {
    while !lines.lock().is_empty() {
        let place = pieces.reserve().await?;
        let line = lines.lock().pop_front();
        if let Some(line) = line {
            place.send(ended(line));
        }
    }
    Ok(())
}

/// A key for what may be sent again. A session that is created under it has its time in its id.
fn fresh_key() -> String {
    format!("{}-front", uuid::Uuid::now_v7())
}

/// A line of the client's, which is UTF-8, or of our own.
fn frame(line: Bytes) -> Frame {
    let line = line.strip_suffix(b"\n").map_or_else(|| line.clone(), |text| line.slice_ref(text));
    Frame::Text(line.try_into().unwrap_or_default())
}

/// The line with its end.
fn ended(line: Bytes) -> Bytes {
    if line.ends_with(b"\n") {
        return line;
    }
    let mut ended = BytesMut::from(line);
    ended.extend_from_slice(b"\n");
    ended.freeze()
}
