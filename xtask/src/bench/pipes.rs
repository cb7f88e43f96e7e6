//! What acpd costs on pipes, next to the agent itself: messages a second, round trips, starts.
//!
//! Both sides take turns, so that a slow moment of the machine meets both. The agent's stream is written in large
//! batches, so the direct side of throughput is little more than the pipe itself: what a program can reach that does
//! nothing but count. Not here: requests that do work; what is measured is the way there and back.

use super::client::{Client, Peer, Wire, prompt};
use super::programs::{Programs, Side};
use super::progress;
use super::report::{Figure, shown};
use super::samples::{in_both_places, median, millis, now, percentile};
use acpd_testkit::Scratch;

/// Bytes of text in a message.
const TEXT: usize = 200;
/// What must be left of the newline counter's figure.
const SHARE: f64 = 0.1;
/// One read: several times what a pipe holds.
const READ: usize = 256 * 1024;
/// Enough to hold the last line, which is an answer.
const TAIL: usize = 1024;
/// Requests of each kind and side that count, after those that do not, in turns of a block.
const REQUESTS: usize = 5_000;
const WARM_UP: usize = 500;
const BLOCK: usize = 250;
/// Microseconds that acpd may add to a trivial request.
const EXTRA: f64 = 60.0;
/// Starts of each kind and side that count.
const STARTS: usize = 20;
/// Milliseconds in which a daemon listens.
const LISTENS: f64 = 50.0;

/// What is asked, of what method and with which parameters in place of `SESSION`, and whether the limit is for it, as
/// nothing is done for it. The last causes an update, and its answer waits until that was recorded and shown.
const KINDS: [(&str, &str, &str, bool); 3] = [
    ("of the connection", "_example/ping", "{}", true),
    ("in a session", "_example/ping", "{\"sessionId\":SESSION}", true),
    ("with an update", "session/set_mode", "{\"sessionId\":SESSION,\"modeId\":\"plan\"}", false),
];

pub(super) fn throughput(programs: &Programs, messages: u64, rounds: u64) -> (Vec<Figure>, String) {
    let mut speeds = [Vec::new(), Vec::new()];
    for round in 1..=rounds {
        for side in Side::BOTH {
            let speed = stream(programs, side, messages);
            // Far apart, they say that the machine was not the same all the time.
            progress(format_args!("throughput {round}/{rounds} {side:?}: {} messages/s", shown(speed)));
            speeds[side as usize].push(speed);
        }
    }
    let medians = speeds.each_mut().map(|samples| median(samples));
    let remark =
        format!("throughput: median of {rounds} rounds of {messages} messages of {TEXT} bytes of text");
    (vec![Figure::new("throughput", "messages/s", medians).at_least(SHARE)], remark)
}

/// Messages a second.
pub(super) fn stream(programs: &Programs, side: Side, messages: u64) -> f64 {
    let scratch = programs.scratch();
    let mut client = Client::start(programs.speaker(side, &scratch));
    let session = client.settled_session();
    // The messages and the answer.
    let expected = messages + 1;
    let mut space = vec![0; READ];
    let mut lines = 0;
    let mut tail = Vec::with_capacity(2 * TAIL);
    let begun = now();
    client.send("session/prompt", &prompt(&session, &format!("stream {messages} {TEXT}")).to_string());
    while lines < expected {
        let count = client.wire.read(&mut space);
        let read = &space[..count];
        lines += memchr::memchr_iter(b'\n', read).count() as u64;
        tail.extend_from_slice(&read[read.len().saturating_sub(TAIL)..]);
        tail.drain(..tail.len().saturating_sub(TAIL));
    }
    let elapsed = begun.elapsed();
    check_last(&tail, lines, expected);
    client.wire.finish();
    messages as f64 / elapsed.as_secs_f64()
}

/// Whatever was counted, the stream must have ended with the good end of the turn.
fn check_last(tail: &[u8], lines: u64, expected: u64) {
    let last = tail.strip_suffix(b"\n").and_then(|tail| tail.rsplit(|byte| *byte == b'\n').next());
    let last = String::from_utf8_lossy(last.unwrap_or_default());
    let is_answer = lines == expected && last.contains("\"stopReason\":\"end_turn\"");
    assert!(is_answer, "after {expected} lines the answer to the prompt was due, not {last}");
}

pub(super) fn roundtrips(programs: &Programs) -> (Vec<Figure>, String) {
    let figures = in_both_places(|place, limited| {
        let scratches = [programs.scratch(), programs.scratch()];
        let mut sides = Side::BOTH.map(|side| {
            let mut client = Client::start(programs.speaker(side, &scratches[side as usize]));
            let session = client.settled_session().to_string();
            (client, session)
        });
        let mut figures = Vec::new();
        for (what, method, params, trivial) in KINDS {
            progress(format_args!("round trip {what}{place}: {REQUESTS} requests to each side"));
            let params = sides.each_ref().map(|(_, session)| params.replace("SESSION", session));
            let mut times = [Vec::new(), Vec::new()];
            for block in 0..(WARM_UP + REQUESTS) / BLOCK {
                for side in [0, 1] {
                    let client = &mut sides[side].0;
                    let block_times = (0..BLOCK).map(|_| client.timed(method, &params[side])[1]);
                    let block_times: Vec<f64> = block_times.collect();
                    times[side].extend(block_times.into_iter().filter(|_| block >= WARM_UP / BLOCK));
                    // One look at what the last answer says is enough.
                    assert!(client.wire.answer().get("result").is_some(), "{method}");
                }
            }
            let name = format!("round trip {what}{place}");
            let figure = Figure::new(&*name, "us", times.each_mut().map(|times| median(times)));
            figures.push(if trivial && limited { figure.below(EXTRA) } else { figure });
            let slow = times.each_mut().map(|times| percentile(times, 99));
            figures.push(Figure::new(format!("{name}, p99"), "us", slow));
        }
        for (client, _) in sides {
            client.wire.finish();
        }
        figures
    });
    let remark = format!(
        "round trips: medians of {REQUESTS} requests each, in turns of {BLOCK}, after {WARM_UP} that do not count"
    );
    (figures, remark)
}

/// What a person waits for, in state directories that were used before: the first turn, which makes them, does not count.
pub(super) fn starts(programs: &Programs) -> (Vec<Figure>, String) {
    progress(format_args!("starts: {STARTS} of each kind and side"));
    let [mut answers, mut runs] = [[vec![], vec![]], [vec![], vec![]]];
    let scratches = [programs.scratch(), programs.scratch()];
    for turn in 0..=STARTS {
        for side in Side::BOTH {
            let scratch = &scratches[side as usize];
            let times = [first_answer(programs, side, scratch), whole_run(programs, side, scratch)];
            for (all, time) in [&mut answers, &mut runs].into_iter().zip(times).filter(|_| turn > 0) {
                all[side as usize].push(time);
            }
        }
    }
    let of =
        |name, mut times: [Vec<f64>; 2]| Figure::new(name, "ms", times.each_mut().map(|times| median(times)));
    let figures = vec![of("start to first answer", answers), of("whole run of a prompt", runs)];
    (figures, format!("starts: medians of {STARTS}"))
}

/// From the start of a speaker to its answer to `initialize`.
fn first_answer(programs: &Programs, side: Side, scratch: &Scratch) -> f64 {
    let begun = now();
    let client = Client::start(programs.speaker(side, scratch));
    let time = millis(begun.elapsed());
    client.wire.finish();
    time
}

/// One prompt, from the start of the program to its exit: `acpd run`, or what it would do with the agent itself.
fn whole_run(programs: &Programs, side: Side, scratch: &Scratch) -> f64 {
    let begun = now();
    if side == Side::Acpd {
        let mut command = programs.embedded("run", scratch);
        // Its stderr is a conversation with a person.
        command.arg("hi").stderr(std::process::Stdio::null());
        return millis(Peer::start(command).finish() - begun);
    }
    let mut client = Client::start(programs.speaker(side, scratch));
    let session = client.new_session();
    client.request("session/prompt", &prompt(&session, "hi"));
    millis(client.wire.finish() - begun)
}

/// From the start of a daemon to its first line.
pub(super) fn daemon(programs: &Programs) -> (Vec<Figure>, String) {
    let times = (0..STARTS).map(|_| {
        let scratch = programs.scratch();
        let begun = now();
        let mut daemon = programs.serve(&scratch);
        let time = millis(begun.elapsed());
        daemon.stop();
        time
    });
    let times = [0.0, median(&mut times.collect::<Vec<_>>())];
    (
        vec![Figure::new("a daemon listens", "ms", times).below(LISTENS)],
        format!("a daemon listens: median of {STARTS} starts"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    // issue 2, 8: what was lost on the way is not fast
    #[test]
    fn only_a_complete_stream_counts() {
        let answer = b"..ted\n{\"id\":\"stream\",\"result\":{\"stopReason\":\"end_turn\"}}\n".as_slice();
        check_last(answer, 3, 3);
        let refused = |tail: &[u8], lines| std::panic::catch_unwind(|| check_last(tail, lines, 3)).is_err();
        assert!(refused(answer, 4), "a line too many");
        for tail in [&b"{\"method\":\"session/update\"}\n"[..], &answer[..answer.len() - 1], b""] {
            assert!(refused(tail, 3), "{}", String::from_utf8_lossy(tail));
        }
    }
}
