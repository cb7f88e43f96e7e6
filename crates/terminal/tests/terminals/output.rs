//! What is shown of a command's output.

use super::bench::{Bench, Gate, command, shell, snapshot, text};
use acpd_terminal::{TerminalOutput, TerminalSettings};

fn output(text: &str, truncated: bool) -> TerminalOutput {
    TerminalOutput { text: text.into(), truncated }
}

// contract 2.3, TE-5: stdout and stderr as they came
#[tokio::test]
async fn both_streams_come_in_their_order() {
    let bench = Bench::new();
    let terminal =
        bench.sh("i=0; while [ $i -lt 200 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done").await;
    terminal.wait_for_exit().await;
    let expected: String = (0..200).map(|i| format!("out {i}\nerr {i}\n")).collect();
    assert_eq!(text(&terminal).await, expected);
    bench.nothing_left().await;
}

// contract 2.3, TE-3: at most the limit, the tail; exactly the limit is not truncated
#[tokio::test]
async fn the_terminals_limit_is_exact() {
    let bench = Bench::new();
    for (limit, expected) in [
        (0, output("", true)),
        (3, output("789", true)),
        (9, output("123456789", true)),
        (10, output("0123456789", false)),
        (11, output("0123456789", false)),
    ] {
        let mut spec = command("printf", &["0123456789"]);
        spec.output_byte_limit = Some(limit);
        let terminal = bench.create(spec).await.expect("printf starts");
        terminal.wait_for_exit().await;
        assert_eq!(snapshot(&terminal).await.output, expected, "{limit}");
    }
    bench.nothing_left().await;
}

// contract 2.3, TE-3: a question may have a limit of its own
#[tokio::test]
async fn a_questions_limit_is_for_that_question() {
    let bench = Bench::new();
    let mut spec = command("printf", &["0123456789"]);
    spec.output_byte_limit = Some(5);
    let terminal = bench.create(spec).await.expect("printf starts");
    terminal.wait_for_exit().await;
    let asked = async |limit| terminal.output(limit).await.expect("it is not released").output;
    assert_eq!(asked(None).await, output("56789", true));
    assert_eq!(asked(Some(2)).await, output("89", true));
    assert_eq!(asked(Some(8)).await, output("23456789", true));
    assert_eq!(asked(Some(10)).await, output("0123456789", false));
    assert_eq!(asked(Some(u64::MAX)).await, output("0123456789", false));
    assert_eq!(asked(None).await, output("56789", true));
    bench.nothing_left().await;
}

// contract 2.3, TE-4: a ceiling bounds what any limit can ask for
#[tokio::test]
async fn no_limit_reaches_above_the_ceiling() {
    let settings = TerminalSettings { output_byte_ceiling: 1000, ..TerminalSettings::default() };
    let bench = Bench::with(settings);
    for limit in [None, Some(1001), Some(u64::MAX)] {
        let mut spec = shell("head -c 5000 /dev/zero | tr '\\0' x; printf end");
        spec.output_byte_limit = limit;
        let terminal = bench.create(spec).await.expect("sh starts");
        terminal.wait_for_exit().await;
        let shown = terminal.output(limit).await.expect("it is not released").output;
        assert_eq!((shown.text.len(), shown.truncated), (1000, true));
        assert!(shown.text.ends_with("xend"));
    }
    bench.nothing_left().await;
}

// TE-3: a character of four bytes across the limit is left out whole
#[tokio::test]
async fn the_limit_does_not_cut_characters() {
    let bench = Bench::new();
    let terminal = bench.create(command("printf", &["ab\u{1F980}cd"])).await.expect("printf starts");
    terminal.wait_for_exit().await;
    for (limit, expected) in [(2, "cd"), (3, "cd"), (5, "cd"), (6, "\u{1F980}cd"), (7, "b\u{1F980}cd")] {
        let shown = terminal.output(Some(limit)).await.expect("it is not released").output;
        assert_eq!(shown, output(expected, true), "{limit}");
    }
    bench.nothing_left().await;
}

// TE-3: a character whose bytes come apart is one character, and is not shown by halves
#[tokio::test]
async fn a_character_may_come_in_pieces() {
    let bench = Bench::new();
    let gate = Gate::new();
    let script = format!("printf 'a\\360\\237'; cat <{}", gate.path().display());
    let (terminal, _feed) = bench.told(&script, "a").await;
    assert_eq!(text(&terminal).await, "a");
    gate.pass(b"\xA6\x80b").await;
    terminal.wait_for_exit().await;
    assert_eq!(snapshot(&terminal).await.output, output("a\u{1F980}b", false));
    bench.nothing_left().await;
}

// TE-3: invalid bytes are replaced, at the very end too
#[tokio::test]
async fn what_is_no_text_is_replaced() {
    let bench = Bench::new();
    let terminal = bench.sh("printf 'a\\377b\\303(\\000\\360\\237'").await;
    terminal.wait_for_exit().await;
    assert_eq!(text(&terminal).await, "a\u{FFFD}b\u{FFFD}(\0\u{FFFD}");
    // Replacements are longer than what they replace, and count as they are shown.
    let shown = terminal.output(Some(4)).await.expect("it is not released").output;
    assert_eq!(shown, output("\0\u{FFFD}", true));
    bench.nothing_left().await;
}

// TE-4: a line without an end is output like any other
#[tokio::test]
async fn random_bytes_do_no_harm() {
    let bench = Bench::new();
    let mut spec = command("head", &["-c", "3000000", "/dev/urandom"]);
    spec.output_byte_limit = Some(1000);
    let terminal = bench.create(spec).await.expect("head starts");
    assert_eq!(terminal.wait_for_exit().await.exit_code(), Some(0));
    let shown = snapshot(&terminal).await.output;
    assert!((997..=1000).contains(&shown.text.len()) && shown.truncated);
    bench.nothing_left().await;
}
