//! Messages a second from an agent to a client: counting newlines behind acpd, next to counting them at the agent.
//!
//! The agent's stream is written in large batches, so the direct side is little more than the pipe itself: what a
//! program can reach that does nothing but count. acpd reads, routes, records and forwards each message.

use super::peer::Peer;
use super::program::{Programs, Side};
use super::report::{Comparison, Measured, Measurement};
use super::statistics::{median, shown};
use super::{now, progress};

/// Bytes of text in a message.
const TEXT: usize = 200;
/// What must be left of the newline counter's figure.
const SHARE: f64 = 0.1;
/// One read: several times what a pipe holds.
const READ: usize = 256 * 1024;
/// Enough to hold the last line, which is an answer.
const TAIL: usize = 1024;

pub(super) fn measure(programs: &Programs, messages: u64, rounds: u64) -> Measured {
    let mut per_second = [Vec::new(), Vec::new()];
    let mut line_bytes = [0.0; 2];
    for round in 1..=rounds {
        for (place, side) in Side::BOTH.into_iter().enumerate() {
            let (speed, bytes) = stream(programs, side, messages);
            progress(format_args!(
                "throughput {round}/{rounds} {}: {} messages/s",
                side.name(),
                shown(speed)
            ));
            per_second[place].push(speed);
            line_bytes[place] = bytes;
        }
    }
    let medians = per_second.each_mut().map(|samples| median(samples));
    // Sorted by now. Far apart, they say that the machine was not the same all the time.
    let range =
        |samples: &Vec<f64>| format!("{} to {}", shown(samples[0]), shown(samples[samples.len() - 1]));
    let ([direct_range, acpd_range], [direct, acpd]) =
        (per_second.each_ref().map(range), line_bytes.map(shown));
    let remark = format!(
        "throughput: median of {rounds} rounds of {} messages of {TEXT} bytes of text; \
         a line has {direct} bytes, with acpd's session id {acpd}; \
         rounds: direct {direct_range}, acpd {acpd_range}",
        shown(messages as f64),
    );
    let limit = Comparison::Share { at_least: SHARE };
    (vec![Measurement::new("throughput", "messages/s", medians, limit)], remark)
}

/// Messages a second, and bytes of a line.
pub(super) fn stream(programs: &Programs, side: Side, messages: u64) -> (f64, f64) {
    let scratch = programs.scratch();
    let mut peer = Peer::start(programs.speaker(side, &scratch));
    peer.initialize();
    let session = peer.new_session();
    let request = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":\"stream\",\"method\":\"session/prompt\",\"params\":{{\"sessionId\":{session},\
         \"prompt\":[{{\"type\":\"text\",\"text\":\"stream {messages} {TEXT}\"}}]}}}}\n"
    );
    // The messages and the answer.
    let expected = messages + 1;
    let mut space = vec![0; READ];
    let (mut lines, mut bytes) = (0, 0);
    let mut tail = Vec::with_capacity(2 * TAIL);
    let begun = now();
    peer.write(&request);
    while lines < expected {
        let count = peer.read(&mut space);
        let read = &space[..count];
        lines += memchr::memchr_iter(b'\n', read).count() as u64;
        bytes += read.len();
        tail.extend_from_slice(&read[read.len().saturating_sub(TAIL)..]);
        tail.drain(..tail.len().saturating_sub(TAIL));
    }
    let elapsed = begun.elapsed();
    check_last(&tail, lines, expected);
    peer.finish();
    (messages as f64 / elapsed.as_secs_f64(), bytes as f64 / lines as f64)
}

/// Whatever was counted, the stream must have ended with the good end of the turn.
fn check_last(tail: &[u8], lines: u64, expected: u64) {
    let last = tail.strip_suffix(b"\n").and_then(|tail| tail.rsplit(|byte| *byte == b'\n').next());
    let last = String::from_utf8_lossy(last.unwrap_or_default());
    let is_answer = lines == expected && last.contains("\"stopReason\":\"end_turn\"");
    assert!(is_answer, "after {expected} lines the answer to the prompt was due, not {last}");
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
