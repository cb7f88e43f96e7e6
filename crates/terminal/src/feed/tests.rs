//! The feed's pieces, against made-up time.

use super::*;
use proptest::prelude::*;

const PACE: FeedPace =
    FeedPace { interval: Duration::from_millis(50), piece: 10, held: 20, burst: 1000, rate: 100 };

fn start() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "a test needs some point in time to count from")]
    Instant::now()
}

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn piece(dropped: u64, text: &str) -> Piece {
    Piece { dropped, text: text.into() }
}

// TE-10: what comes within a short time is one piece
#[test]
fn little_output_is_gathered() {
    let zero = start();
    let mut feed = Feed::new(PACE, zero);
    assert_eq!(feed.due(), None);
    feed.push("ab", zero + ms(100));
    feed.push("cd", zero + ms(120));
    assert_eq!(feed.due(), Some(zero + ms(150)));
    assert_eq!(feed.take(zero + ms(150)), piece(0, "abcd"));
    assert_eq!(feed.due(), None);
}

#[test]
fn a_full_piece_does_not_wait() {
    let zero = start();
    let mut feed = Feed::new(PACE, zero);
    feed.push("0123456789abc", zero + ms(1));
    assert_eq!(feed.due(), Some(zero + ms(1)));
    assert_eq!(feed.take(zero + ms(1)), piece(0, "0123456789"));
    assert_eq!(feed.due(), Some(zero + ms(51)), "the rest waits for company");
    feed.end();
    assert_eq!(feed.due(), Some(zero + ms(1)), "unless there will be none");
    assert_eq!(feed.take(zero + ms(2)), piece(0, "abc"));
}

// TE-4: what a slow reader misses is the middle, and it is counted
#[test]
fn the_middle_is_dropped_and_counted() {
    let zero = start();
    let mut feed = Feed::new(PACE, zero);
    feed.push("0123456789", zero);
    assert_eq!(feed.take(zero), piece(0, "0123456789"));
    for _ in 0..100 {
        feed.push("----------", zero);
    }
    feed.push("\u{1F980}z", zero);
    // Room for 20: the five newest bytes and 15 of the dashes.
    assert_eq!(feed.take(zero), piece(985, "----------"));
    assert_eq!(feed.take(zero), piece(0, "-----\u{1F980}z"));
}

// TE-4: hours of flood are told at the rate, after the burst
#[test]
fn a_flood_is_told_at_the_rate() {
    let zero = start();
    let mut feed = Feed::new(PACE, zero);
    let (mut told, mut dropped, mut now) = (0, 0, zero);
    while now < zero + Duration::from_secs(100) {
        feed.push("0123456789", now);
        while feed.due().is_some_and(|due| due <= now) {
            let piece = feed.take(now);
            told += piece.text.len() as u64;
            dropped += piece.dropped;
        }
        now += ms(10);
    }
    let most = PACE.burst + PACE.rate * 100;
    assert!((most - most / 100..=most).contains(&told), "{told} of {most}");
    let rest = feed.dropped + feed.waiting.len() as u64;
    assert_eq!(told + dropped + rest, 100_000, "what is not told is counted");
}

#[test]
fn a_budget_smaller_than_a_piece_is_no_standstill() {
    let zero = start();
    let mut feed = Feed::new(FeedPace { burst: 4, rate: 0, ..PACE }, zero);
    feed.push("0123456789", zero);
    feed.take(zero);
    feed.push("0123456789", zero);
    assert_eq!(feed.due(), Some(zero + Duration::from_secs(4)));
}

proptest! {
    // Whatever comes when: pieces and counts add up to everything, in order, within the bounds.
    #[test]
    fn nothing_is_lost_silently(steps in proptest::collection::vec(("\\PC{0,12}", 0u64..200, any::<bool>()), 0..60)) {
        let mut now = start();
        let mut feed = Feed::new(PACE, now);
        let (mut all, mut seen) = (String::new(), 0);
        let mut check = |feed: &mut Feed, all: &str, now| {
            let piece = feed.take(now);
            seen += usize::try_from(piece.dropped).expect("small");
            prop_assert!(piece.text.len() <= PACE.piece);
            prop_assert_eq!(all.get(seen..seen + piece.text.len()), Some(piece.text.as_str()));
            seen += piece.text.len();
            Ok(seen)
        };
        for (text, wait, reads) in steps {
            now += ms(wait);
            feed.push(&text, now);
            all.push_str(&text);
            prop_assert!(feed.waiting.len() <= PACE.held);
            if reads && feed.due().is_some_and(|due| due <= now) {
                check(&mut feed, &all, now)?;
            }
        }
        feed.end();
        let mut seen = None;
        while feed.due().is_some_and(|due| due <= now) {
            seen = Some(check(&mut feed, &all, now)?);
        }
        prop_assert_eq!(feed.due(), None);
        prop_assert!(seen.is_none_or(|seen| seen == all.len()));
    }
}
