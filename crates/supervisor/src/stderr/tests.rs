//! Excerpts of every size, and of lines that are cut.

use super::*;
use proptest::prelude::*;

fn record(bytes: &[u8]) -> StderrExcerpt {
    let mut recorder = StderrRecorder::default();
    recorder.push(bytes);
    recorder.excerpt()
}

fn numbered(range: std::ops::RangeInclusive<u32>) -> String {
    range.map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n")
}

// contract 1.2: 250 lines give head 50, tail 50, truncated, total_lines 250
#[test]
fn two_hundred_and_fifty_lines() {
    let excerpt = record((numbered(1..=250) + "\n").as_bytes());
    assert_eq!(
        excerpt,
        StderrExcerpt {
            head: numbered(1..=50),
            tail: Some(numbered(201..=250)),
            truncated: true,
            total_lines: 250
        }
    );
}

// contract 1.2: all of stderr when not truncated
#[test]
fn up_to_one_hundred_lines_are_all_head() {
    for count in [1, 50, 51, 99, 100] {
        let excerpt = record((numbered(1..=count) + "\n").as_bytes());
        assert_eq!(
            excerpt,
            StderrExcerpt {
                head: numbered(1..=count),
                tail: None,
                truncated: false,
                total_lines: u64::from(count)
            }
        );
    }
    let excerpt = record((numbered(1..=101) + "\n").as_bytes());
    assert_eq!(excerpt.tail.as_deref(), Some(numbered(52..=101).as_str()));
    assert!(excerpt.truncated);
}

// contract 1.2: an unfinished last line is part of stderr
#[test]
fn the_last_line_needs_no_newline() {
    assert_eq!(record(b"a\nb").head, "a\nb");
    assert_eq!(record(b"a\nb").total_lines, 2);
    let excerpt = record(numbered(1..=101).as_bytes());
    assert_eq!((excerpt.truncated, excerpt.total_lines), (true, 101));
    assert_eq!(excerpt.tail.as_deref(), Some(numbered(52..=101).as_str()));
    assert!(record(b"").is_empty());
    assert_eq!(record(b"\n").total_lines, 1);
}

// contract 1.2: lines are capped at 4 KiB each, cut at a character boundary
#[test]
fn a_line_of_one_mebibyte_is_cut_and_costs_little() {
    let mut recorder = StderrRecorder::default();
    for _ in 0..1024 {
        recorder.push(&[b'x'; 1024]);
    }
    assert!(recorder.line.capacity() < 64 * 1024);
    recorder.push(b"\nnext");
    let excerpt = recorder.excerpt();
    assert_eq!(excerpt.head, "x".repeat(4096) + "\nnext");
    assert_eq!(excerpt.total_lines, 2);
}

// contract 1.2: cut at a character boundary
#[test]
fn a_character_across_the_cut_is_left_out_whole() {
    for (lead, character) in [(4095, "é"), (4094, "€"), (4095, "€"), (4093, "🦀"), (4094, "🦀"), (4095, "🦀")]
    {
        let line = "a".repeat(lead) + character + "tail";
        assert_eq!(record(line.as_bytes()).head, "a".repeat(lead), "{lead} {character}");
    }
    let fits = "a".repeat(4092) + "🦀";
    assert_eq!(record((fits.clone() + "more").as_bytes()).head, fits);
}

// contract 1.2: invalid UTF-8 becomes U+FFFD
#[test]
fn invalid_bytes_are_replaced() {
    assert_eq!(record(b"a\xffb\n").head, "a\u{fffd}b");
    let all_bad = vec![0xff; 5000];
    let head = record(&all_bad).head;
    assert!(head.len() <= 4096 && head.chars().all(|c| c == '\u{fffd}'));
}

proptest! {
    // However the bytes were cut when they were read, the excerpt is the same.
    #[test]
    fn chunking_changes_nothing(
        lines in proptest::collection::vec("[a-zé🦀]{0,12}", 0..160),
        cuts in proptest::collection::vec(0usize..2000, 0..20),
    ) {
        let text = lines.join("\n");
        let whole = record(text.as_bytes());
        let mut cuts: Vec<usize> = cuts.into_iter().filter(|c| *c < text.len()).collect();
        cuts.sort_unstable();
        let mut recorder = StderrRecorder::default();
        let mut from = 0;
        for cut in cuts.into_iter().chain([text.len()]) {
            recorder.push(&text.as_bytes()[from..cut]);
            from = cut;
        }
        prop_assert_eq!(recorder.excerpt(), whole);
    }
}
