//! Messages a second from an agent to a client: counting newlines behind acpd, next to counting them at the agent.
//!
//! The agent's stream is written in large batches, so the direct side is little more than the pipe itself: what a
//! program can reach that does nothing but count. acpd reads, routes, records and forwards each message.

use super::figures::{median, shown};
use super::peer::{Peer, PeerError};
use super::program::{Programs, Side};
use super::report::Comparison;
use super::{Measurement, now, progress};

/// Bytes of text in a message.
const TEXT: usize = 200;
/// What must be left of the newline counter's figure.
const SHARE: f64 = 0.1;
/// One read: several times what a pipe holds.
const READ: usize = 256 * 1024;
/// Enough to hold the last line, which is an answer.
const TAIL: usize = 1024;

/// One measurement.
pub(super) struct Flow {
    pub(super) per_second: f64,
    line_bytes: f64,
}

pub(super) fn measure(
    programs: &Programs,
    messages: u64,
    rounds: u64,
) -> Result<(Vec<Measurement>, String), PeerError> {
    let mut per_second = [Vec::new(), Vec::new()];
    let mut line_bytes = [0.0; 2];
    for round in 1..=rounds {
        for (place, side) in Side::BOTH.into_iter().enumerate() {
            let flow = stream(programs, side, messages)?;
            let name = side.name();
            progress(format_args!(
                "throughput {round}/{rounds} {name}: {} messages/s",
                shown(flow.per_second)
            ));
            per_second[place].push(flow.per_second);
            line_bytes[place] = flow.line_bytes;
        }
    }
    let [direct, acpd] = per_second.each_mut().map(|samples| median(samples));
    // Sorted by now. Far apart, they say that the machine was not the same all the time.
    let range = |samples: &[f64]| format!("{} to {}", shown(samples[0]), shown(samples[samples.len() - 1]));
    let [direct_range, acpd_range] = [&per_second[0], &per_second[1]].map(|samples| range(samples));
    let [direct_line, acpd_line] = line_bytes.map(shown);
    let remark = format!(
        "throughput: median of {rounds} rounds of {} messages of {TEXT} bytes of text; \
         a line has {direct_line} bytes, with acpd's session id {acpd_line}; \
         rounds: direct {direct_range}, acpd {acpd_range}",
        shown(messages as f64),
    );
    let comparison = Comparison::Share { at_least: SHARE };
    Ok((
        vec![Measurement { name: "throughput".to_owned(), unit: "messages/s", direct, acpd, comparison }],
        remark,
    ))
}

pub(super) fn stream(programs: &Programs, side: Side, messages: u64) -> Result<Flow, PeerError> {
    let state = programs.state_dir()?;
    let mut peer = Peer::start(programs.speaker(side, &state))?;
    peer.initialize()?;
    let session = peer.new_session()?;
    let prompt = format!("[{{\"type\":\"text\",\"text\":\"stream {messages} {TEXT}\"}}]");
    let request = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":\"stream\",\"method\":\"session/prompt\",\
         \"params\":{{\"sessionId\":{session},\"prompt\":{prompt}}}}}\n"
    );
    // The messages and the answer.
    let expected = messages + 1;
    let mut space = vec![0; READ];
    let (mut lines, mut bytes) = (0, 0);
    let mut tail = Vec::with_capacity(2 * TAIL);
    let begun = now();
    peer.write(request.as_bytes())?;
    while lines < expected {
        let count = peer.read(&mut space)?;
        if count == 0 {
            return Err(PeerError::Ended);
        }
        let read = &space[..count];
        lines += memchr::memchr_iter(b'\n', read).count() as u64;
        bytes += read.len();
        tail.extend_from_slice(&read[read.len().saturating_sub(TAIL)..]);
        tail.drain(..tail.len().saturating_sub(TAIL));
    }
    let elapsed = begun.elapsed();
    check_last(&tail, lines, expected)?;
    peer.finish()?;
    Ok(Flow { per_second: messages as f64 / elapsed.as_secs_f64(), line_bytes: bytes as f64 / lines as f64 })
}

/// Whatever was counted, the stream must have ended with the good end of the turn.
fn check_last(tail: &[u8], lines: u64, expected: u64) -> Result<(), PeerError> {
    let last = tail.strip_suffix(b"\n").and_then(|tail| tail.rsplit(|byte| *byte == b'\n').next());
    let is_answer = |line: &[u8]| memchr::memmem::find(line, b"\"stopReason\":\"end_turn\"").is_some();
    if lines == expected && last.is_some_and(is_answer) {
        return Ok(());
    }
    let line = String::from_utf8_lossy(last.unwrap_or_default()).into_owned();
    Err(PeerError::Miscounted { expected, line })
}

#[cfg(test)]
mod tests {
    use super::*;

    // issue 2, 8: what was lost on the way is not fast
    #[test]
    fn only_a_complete_stream_counts() {
        let answer = b"..ted\n{\"id\":\"stream\",\"result\":{\"stopReason\":\"end_turn\"}}\n".as_slice();
        assert!(check_last(answer, 3, 3).is_ok());
        assert!(check_last(answer, 4, 3).is_err(), "a line too many");
        for tail in [&b"{\"method\":\"session/update\"}\n"[..], &answer[..answer.len() - 1], b""] {
            assert!(check_last(tail, 3, 3).is_err(), "{}", String::from_utf8_lossy(tail));
        }
    }
}
