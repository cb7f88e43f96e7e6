//! How many 200-byte messages a second one core splits and parses. Run with `--release`.
//!
//! Prints the best of several rounds for: newline search alone, lines alone, lines and envelopes, and one long line.

use std::hint::black_box;
use std::time::{Duration, Instant};

use acpd_wire::{DEFAULT_LINE_LIMIT, LineBuffer, Message};

const MESSAGES: usize = 500_000;
const MESSAGE_BYTES: usize = 200;
const READ: usize = 64 * 1024;
const ROUNDS: usize = 7;

fn main() {
    let input = chunks();
    let newlines = best(|| memchr::memchr_iter(b'\n', &input).count());
    let lines = best(|| for_each_line(&input, |line| line.len()));
    let messages = best(|| {
        for_each_line(&input, |line| match Message::parse(line) {
            Ok(Message::Notification { method, .. }) => method.len(),
            other => panic!("not a notification: {other:?}"),
        })
    });
    report("newline search alone", newlines);
    report("lines", lines);
    report("lines and envelopes", messages);

    let mut long = vec![b'x'; 60 * 1024 * 1024];
    long.push(b'\n');
    let seconds = best(|| for_each_line(&long, |line| line.len())).as_secs_f64();
    print(&format!("one line of 60 MiB in reads of 64 KiB: {:.1} ms", seconds * 1e3));
}

fn chunks() -> Vec<u8> {
    let head = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"0198f1c2-aaaa-7000-8000-000000000001","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""#;
    let tail = "\"}}}}\n";
    let text = "x".repeat(MESSAGE_BYTES.saturating_sub(head.len() + tail.len()));
    let line = format!("{head}{text}{tail}");
    line.repeat(MESSAGES).into_bytes()
}

fn for_each_line(input: &[u8], mut use_line: impl FnMut(&[u8]) -> usize) -> usize {
    let mut lines = LineBuffer::new(DEFAULT_LINE_LIMIT);
    let mut rest = input;
    let mut sum = 0;
    while !rest.is_empty() {
        let space = lines.space();
        let (read, later) = rest.split_at(rest.len().min(READ).min(space.capacity() - space.len()));
        space.extend_from_slice(read);
        rest = later;
        while let Some(line) = lines.next_line().expect("lines are short") {
            sum += use_line(&line);
        }
    }
    sum
}

fn best(mut run: impl FnMut() -> usize) -> Duration {
    let once = |run: &mut dyn FnMut() -> usize| {
        #[expect(clippy::disallowed_methods, reason = "this program measures time")]
        let start = Instant::now();
        black_box(run());
        start.elapsed()
    };
    (0..ROUNDS).map(|_| once(&mut run)).min().expect("at least one round")
}

fn report(what: &str, time: Duration) {
    let rate = MESSAGES as f64 / time.as_secs_f64() / 1e6;
    let each = time.as_nanos() as f64 / MESSAGES as f64;
    print(&format!("{what}: {rate:.2} M/s, {each:.0} ns each"));
}

#[expect(clippy::print_stdout, reason = "the report is the purpose of this program")]
fn print(line: &str) {
    println!("{line}");
}
