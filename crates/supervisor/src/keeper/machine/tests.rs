//! The machine with a pipe, a stdin and hosts that come and go, all of them made up.

use super::super::output::Take;
use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

const DETACHED: u64 = 40;
const LINE: u64 = 10;
const BOUND: usize = (DETACHED + LINE) as usize;
const PIPE: usize = 32;
const KEEP: Duration = Duration::from_secs(60);

fn keep_for() -> Keep {
    Keep {
        keep_ms: 60_000,
        detached_bytes: DETACHED,
        line_bytes: LINE,
        directory: "/nowhere".into(),
        name: "host.1".into(),
        key: "key".into(),
    }
}

fn start() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "a point of time to count from")]
    Instant::now()
}

/// Byte of stdout at a position.
fn byte_at(position: u64) -> u8 {
    (position % 251) as u8
}

/// What a host knows, and loses when it is gone.
struct Host {
    /// What it has read, up to here.
    read: u64,
}

struct World {
    machine: Machine,
    now: Instant,
    pipe: VecDeque<u8>,
    written: u64,
    host: Option<Host>,
    /// Up to here stdout is in the log, which outlives all hosts.
    log: u64,
    /// Frames that were accepted, and what stdin got.
    accepted: Vec<u8>,
    stdin: Vec<u8>,
    frames: u8,
    marks: BTreeMap<String, String>,
    hosts: u64,
    is_kept: bool,
}

#[derive(Clone, Debug)]
enum Step {
    Print(u8),
    Read(u8),
    Commit(u8),
    /// The keeper finds so many bytes in each of its reads, at most.
    Progress(u8),
    Write(u8, bool),
    Put(u8, bool),
    TakeStdin(u8),
    Keep,
    Detach,
    TakeStdout(u8),
    Attach,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1u8..24).prop_map(Step::Print),
        4 => (1u8..40).prop_map(Step::Read),
        2 => (1u8..40).prop_map(Step::Commit),
        4 => (1u8..24).prop_map(Step::Progress),
        3 => (0u8..20, any::<bool>()).prop_map(|(length, marked)| Step::Write(length, marked)),
        1 => (0u8..4, any::<bool>()).prop_map(|(key, stored)| Step::Put(key, stored)),
        3 => (1u8..12).prop_map(Step::TakeStdin),
        1 => Just(Step::Keep),
        1 => Just(Step::Detach),
        3 => (1u8..24).prop_map(Step::TakeStdout),
        2 => Just(Step::Attach),
    ]
}

impl World {
    fn new() -> Self {
        let mut machine = Machine::new();
        machine.output.bound_to(BOUND, 0);
        Self {
            machine,
            now: start(),
            pipe: VecDeque::new(),
            written: 0,
            host: Some(Host { read: 0 }),
            log: 0,
            accepted: Vec::new(),
            stdin: Vec::new(),
            frames: 0,
            marks: BTreeMap::new(),
            hosts: 0,
            is_kept: false,
        }
    }

    /// What the shell does: as long as the machine wants something and the pipe has it.
    fn consume(&mut self, most: usize) {
        while let Some(take) = self.machine.output.next() {
            let (Take::Discard(wanted) | Take::Retain(wanted)) = take;
            let there = wanted.min(most).min(self.pipe.len());
            let output = &mut self.machine.output;
            match take {
                _ if there == 0 => break,
                Take::Discard(_) => output.discarded(self.pipe.drain(..there).count()),
                Take::Retain(_) => {
                    let room = output.room(there);
                    let taken = room.len();
                    room.iter_mut().zip(self.pipe.drain(..taken)).for_each(|(to, byte)| *to = byte);
                    output.retain(taken);
                }
            }
        }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Print(bytes) => {
                for _ in 0..usize::from(bytes).min(PIPE - self.pipe.len()) {
                    self.pipe.push_back(byte_at(self.written));
                    self.written += 1;
                }
            }
            Step::Keep => {
                self.is_kept |= self.host.is_some();
                if self.host.is_some() {
                    self.machine.keep(keep_for());
                }
            }
            Step::TakeStdin(bytes) => {
                if let Some(next) = self.machine.input.next() {
                    let part = usize::from(bytes).min(next.len());
                    self.stdin.extend_from_slice(&next[..part]);
                    self.machine.input.wrote(part);
                }
            }
            Step::Detach if self.host.take().is_some() => {
                let loss = self.machine.lost(self.now);
                assert_eq!(loss == Loss::Detached, self.is_kept);
            }
            Step::TakeStdout(most) if self.host.is_none() => self.consume(usize::from(most)),
            Step::Attach => self.attach(),
            Step::Read(_) | Step::Commit(_) | Step::Progress(_) | Step::Write(..) | Step::Put(..) => {
                self.ask(step)
            }
            Step::Detach | Step::TakeStdout(_) => {}
        }
    }

    /// What only a host does.
    fn ask(&mut self, step: &Step) {
        let Some(host) = &mut self.host else { return };
        match *step {
            Step::Read(bytes) => host.read = self.written.min(host.read + u64::from(bytes)),
            Step::Commit(bytes) => self.log = self.log.max(host.read.min(self.log + u64::from(bytes))),
            Step::Progress(most) => {
                let progress = Progress { read: host.read, committed: self.log.min(host.read) };
                self.machine.progress(progress).expect("it makes sense");
                self.consume(usize::from(most));
                let end = self.host.as_ref().expect("there is one").read;
                let consumed = self.machine.output.consumed();
                assert!(consumed == end || self.machine.output.retained() == BOUND, "all of it, or no room");
            }
            Step::Write(length, is_marked) => {
                self.frames = self.frames.wrapping_add(1);
                let bytes = vec![self.frames; usize::from(length)];
                self.accepted.extend_from_slice(&bytes);
                let mark = is_marked.then(|| ("frame".to_owned(), self.frames.to_string()));
                self.marks.extend(mark.clone());
                self.machine.write(mark, bytes.into(), 5).expect("there is room");
            }
            Step::Put(key, is_stored) => {
                let (key, value) = (key.to_string(), is_stored.then(|| "value".to_owned()));
                match value.clone() {
                    Some(value) => drop(self.marks.insert(key.clone(), value)),
                    None => drop(self.marks.remove(&key)),
                }
                self.machine.put(Put { key, value }, 5).expect("there is room");
            }
            _ => {}
        }
    }

    /// The next host, in place of the last one if that is still there.
    fn attach(&mut self) {
        if self.machine.may_attach("key").is_err() {
            assert!(!self.is_kept);
            return;
        }
        self.machine.attach(self.now);
        self.hosts += 1;
        assert_eq!((self.machine.lease(), self.machine.marks()), (self.hosts, &self.marks));
        let output = &self.machine.output;
        // It begins where nothing is missing, and has read what it is given.
        assert!(output.consumed() - output.retained() as u64 <= self.log);
        self.host = Some(Host { read: output.consumed() });
    }

    fn check(&self) {
        let output = &self.machine.output;
        // I1: every byte is in exactly one place.
        assert_eq!(output.consumed() + self.pipe.len() as u64, self.written);
        let begin = output.consumed() - output.retained() as u64;
        let mut position = begin;
        while position < output.consumed() {
            let piece = output.retained_from(usize::try_from(position - begin).expect("it is small"));
            assert!(!piece.is_empty(), "all of it is there");
            for byte in piece {
                assert_eq!(*byte, byte_at(position));
                position += 1;
            }
        }
        assert!(begin <= self.log, "what is settled is in the log");
        // I2
        assert!(self.host.as_ref().is_none_or(|host| output.consumed() <= host.read));
        // I3
        assert!(self.accepted.starts_with(&self.stdin));
        let waits: usize = self.accepted.len() - self.stdin.len();
        assert_eq!(waits == 0, self.machine.input.next().is_none());
        // I7
        assert!(output.retained() <= BOUND);
    }
}

proptest! {
    // KEEP, I1-I3, I7: whatever happens in whatever order, nothing is lost, doubled, or held without a bound
    #[test]
    fn nothing_is_lost_or_doubled(steps in proptest::collection::vec(step(), 1..200)) {
        let mut world = World::new();
        for step in &steps {
            world.take(step);
            world.check();
        }
        // In the end a host reads, and commits, all of it.
        world.take(&Step::Keep);
        world.take(&Step::Attach);
        if world.host.is_some() {
            world.take(&Step::Keep);
            for _ in 0..20 {
                [Step::Read(255), Step::Commit(255), Step::Progress(255)].iter().for_each(|step| world.take(step));
                world.check();
            }
            let output = &world.machine.output;
            prop_assert_eq!((output.consumed(), output.retained(), world.log), (world.written, 0, world.written));
            (0..4000).for_each(|_| world.take(&Step::TakeStdin(255)));
            prop_assert_eq!(world.stdin, world.accepted);
        }
    }
}

/// How much of what a program writes without end is retained without a controller, which has kept `before`.
fn retained_of(line: usize, before: usize) -> usize {
    let mut world = World::new();
    world.machine.keep(keep_for());
    let text = |position: usize| if position % line == line - 1 { b'\n' } else { b'.' };
    let mut position = 0;
    let mut take = |machine: &mut Machine, most: usize| {
        let mut left = most;
        while let Some(Take::Retain(wanted)) = machine.output.next().filter(|_| left > 0) {
            let room = machine.output.room(wanted.min(left));
            let taken = room.len();
            room.iter_mut().zip(position..).for_each(|(to, at)| *to = text(at));
            machine.output.retain(taken);
            (position, left) = (position + taken, left - taken);
        }
    };
    world.machine.progress(Progress { read: before as u64, committed: 0 }).expect("it makes sense");
    take(&mut world.machine, before);
    world.machine.lost(world.now);
    take(&mut world.machine, usize::MAX);
    world.machine.output.retained()
}

// contract 7.2: without a daemon a keeper holds `detached_bytes`, and beyond that nothing but one line that is longer
#[test]
fn small_lines_do_not_go_beyond_the_bound() {
    let (detached, line) = (DETACHED as usize, LINE as usize);
    for small in [1, 2, 7, detached - 1, detached] {
        assert_eq!(retained_of(small, 0), detached, "{small}");
    }
    // Read in pieces: a part of the next line may come with the end of this one.
    for long in [detached + 1, detached + line / 2, detached + line] {
        assert!((long..=detached + line).contains(&retained_of(long, 0)), "{long}");
    }
    assert_eq!(retained_of(2 * (detached + line), 0), detached + line, "no line may be so long");
    // With a controller more may wait to be committed; then nothing is added.
    assert_eq!(retained_of(2, detached + line), detached + line);
}

// KEEP: when a lost controller is waited for, and for how long
#[test]
fn a_lost_controller_is_waited_for_if_that_was_said() {
    for (name, is_kept, is_stopping, loss) in [
        ("a start that is not finished", false, false, Loss::Ladder),
        ("kept", true, false, Loss::Detached),
        ("kept, and stopped", true, true, Loss::Ladder),
    ] {
        let (mut machine, now) = (Machine::new(), start());
        if is_kept {
            assert!(machine.keep(keep_for()) && !machine.keep(keep_for()), "{name}");
        }
        if is_stopping {
            machine.stopping();
        }
        assert_eq!(machine.lost(now), loss, "{name}");
        assert_eq!(machine.due(), (loss == Loss::Detached).then_some(now + KEEP), "{name}");
        assert!(!machine.tick(now + KEEP / 2), "{name}");
        assert_eq!(machine.tick(now + KEEP), loss == Loss::Detached, "{name}");
        assert!(!machine.tick(now + 2 * KEEP), "{name}: once");
        assert_eq!(machine.detached_for(now + KEEP), KEEP, "{name}");
    }
}

// KEEP: the newest controller with the right key wins, and the clock begins anew with each that is lost
#[test]
fn the_newest_with_the_key_is_the_controller() {
    let (mut machine, now) = (Machine::new(), start());
    assert_eq!(machine.may_attach("key"), Err(Why::Key), "there is none yet");
    machine.keep(keep_for());
    for (key, allowed) in [("", false), ("ke", false), ("keys", false), ("Key", false), ("key", true)] {
        assert_eq!(machine.may_attach(key).is_ok(), allowed, "{key}");
    }
    assert_eq!((machine.attach(now), machine.lease()), (Duration::ZERO, 1));
    machine.lost(now);
    assert_eq!((machine.attach(now + KEEP / 2), machine.lease()), (KEEP / 2, 2));
    assert!(machine.is_attached() && machine.due().is_none());
    machine.lost(now + KEEP);
    assert_eq!(machine.due(), Some(now + 2 * KEEP));
    machine.tick(now + 3 * KEEP);
    assert_eq!(machine.attach(now + 4 * KEEP), 3 * KEEP, "also when it is given up");
}

// KEEP: what a controller says that cannot be changes nothing
#[test]
fn what_cannot_be_is_refused() {
    let mut machine = Machine::new();
    assert_eq!(machine.progress(Progress { read: 4, committed: 5 }), Err(Impossible));
    let much = "x".repeat(2 << 20);
    assert_eq!(machine.put(Put { key: "a".into(), value: Some(much.clone()) }, 5), Err(Impossible));
    assert_eq!(machine.write(Some(("a".into(), much)), Bytes::new(), 5), Err(Impossible));
    assert_eq!((machine.marks().len(), machine.input.undrained()), (0, 0));
    // More than there is: nothing of it is consumed, and the next controller begins where the pipe does.
    assert_eq!(machine.progress(Progress { read: 100, committed: 100 }), Ok(()));
    assert_eq!(machine.output.next(), Some(Take::Discard(100)));
    machine.keep(keep_for());
    machine.lost(start());
    machine.attach(start());
    assert_eq!((machine.output.next(), machine.output.consumed()), (None, 0));
}

// KEEP: stdin ends with what was accepted, and the daemon learns what is done with
#[test]
fn stdin_ends_with_what_was_accepted() {
    let mut input = Input::default();
    assert!(input.accept(Bytes::from_static(b"ab"), 300_000) && input.accept(Bytes::from_static(b"c"), 10));
    assert_eq!((input.take_told(), input.undrained(), input.is_to_close()), (None, 300_010, false));
    input.wrote(1);
    input.close();
    assert!(!input.is_to_close() && input.is_closed());
    assert!(input.accept(Bytes::from_static(b"late"), 20), "it is dropped");
    input.wrote(1);
    assert_eq!((input.take_told(), input.take_told(), input.undrained()), (Some(300_020), None, 10));
    input.wrote(1);
    assert!(input.is_to_close() && input.next().is_none());

    let mut input = Input::default();
    assert!(input.accept(Bytes::from_static(b"ab"), 300_000));
    input.no_reader();
    assert!(input.next().is_none());
    assert_eq!((input.take_told(), input.undrained()), (Some(300_000), 0));
    assert!(!input.accept(Bytes::new(), usize::MAX / 2), "more than ever may wait");
}
