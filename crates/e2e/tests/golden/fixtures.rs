//! What today's acpd shows of each fixture, next to what the version showed that wrote it.

use crate::archive::{path, read_text, unpack, write_text};
use crate::difference::difference;
use crate::show::{View, show};
use acpd_e2e::judge_log;
use std::sync::{Mutex, PoisonError};

/// The part of a fixture's text that belongs to a view.
fn part(text: &str, view: View) -> &str {
    let from = text.find(&view.heading()).unwrap_or_else(|| panic!("{view:?} is not in the fixture"));
    let text = &text[from..];
    let end = View::ALL.iter().filter_map(|other| text.find(&format!("\n{}", other.heading())));
    &text[..end.min().map_or(text.len(), |end| end + 1)]
}

fn is_shown_as_before(fixture: &str, view: View) {
    let got = show(&path(fixture, "tar"), view, &acpd_e2e::acpd());
    // Read and written by one test at a time.
    static ACCEPTING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = ACCEPTING.lock().unwrap_or_else(PoisonError::into_inner);
    let expected = read_text(&path(fixture, "expected"));
    let before = part(&expected, view);
    let Some(difference) = difference(before, &got) else { return };
    if std::env::var_os("ACPD_GOLDEN_ACCEPT").is_none() {
        panic!("{fixture}, {view:?}: today's acpd shows something else\n{difference}");
    }
    eprintln!("{fixture}, {view:?}: accepted\n{difference}");
    write_text(&expected.replacen(before, &got, 1), &path(fixture, "expected"));
}

/// Every log is legal.
fn is_legal(fixture: &str) {
    let dir = tempfile::tempdir().expect("a scratch directory");
    unpack(&path(fixture, "tar"), dir.path());
    judge_log(&dir.path().join("state")).unwrap_or_else(|wrong| panic!("{fixture}: {wrong}"));
}

macro_rules! fixtures {
    ($($(#[doc = $what:literal])+ $name:ident;)+) => {$(
        $(#[doc = $what])+
        mod $name {
            use super::{View, is_legal, is_shown_as_before};
            use crate::archive::path;
            use crate::exported::come_back;

            // contract 1.3: lists, sessions, events in pages and as streams
            #[test]
            fn over_rest() {
                is_shown_as_before(stringify!($name), View::Rest);
            }

            // contract 1.1: lists, statuses and replays over ACP
            #[test]
            fn in_replays() {
                is_shown_as_before(stringify!($name), View::Replays);
            }

            // contract 1.4: sessions go on, over stdio
            #[test]
            fn when_taken_up() {
                is_shown_as_before(stringify!($name), View::TakenUp);
            }

            // contract 1.4: transcripts and forks
            #[test]
            fn with_transcripts() {
                is_shown_as_before(stringify!($name), View::Transcripts);
            }

            // contract 7.3: the export of an import is byte-equal
            #[test]
            fn as_files() {
                come_back(&path(stringify!($name), "tar"));
            }

            // contract 1.6: what every recorded log satisfies
            #[test]
            fn by_law() {
                is_legal(stringify!($name));
            }
        }
    )+};
}

fixtures! {
    /// All scenes by 1895ace, shown by 249005b: what changed between the two changed on purpose.
    first;
    /// All scenes by 249005b.
    second;
    /// By 249005b, as SIGKILL left it in the middle of turns: with its write-ahead file, and with sessions that look live.
    second_killed;
}
