//! Sessions of a daemon as tables: the list, and what `acpd top` shows.
//!
//! Pure. Nothing of an agent or a daemon gets past [`line`].

use super::columns::{Cell, Column, Cut, Tone, table};
use super::facts::grouped;
use super::paint::{Paint, Screen};
use super::short_ids::{short_ends, short_id};
use super::spans::{age, byte_count};
use crate::clean::line;
use crate::daemon::{Hit, Pruned, Session};
use jiff::Timestamp;

/// Characters of a text that are shown at most, whatever the width.
const TEXT: usize = 200;

const LIST: [Column; 6] = [
    Column::text("ID", Cut::Never),
    Column::text("STATE", Cut::Never),
    Column::number("AGE"),
    Column::text("AGENT", Cut::End(8)),
    Column::text("TITLE", Cut::End(10)),
    Column::text("CWD", Cut::Start(10)),
];

/// The list of sessions, each with the time since it changed, with ends of ids that name each of them.
pub(crate) fn list(
    sessions: &[Session],
    now: Timestamp,
    width: Option<usize>,
    screen: Screen,
) -> Vec<String> {
    let ids: Vec<&str> = sessions.iter().map(|session| session.session_id.as_str()).collect();
    let row = |(session, id): (&Session, String)| {
        let [agent, title, cwd] = known_by(&session.agent, session.known_as(), &session.cwd);
        [id.into(), state(session), age(session.updated_at, now).into(), agent, title, cwd]
    };
    let rows: Vec<[Cell; 6]> = sessions.iter().zip(short_ends(&ids)).map(row).collect();
    let paint = Paint::new(screen.colour);
    match sessions.iter().any(|session| session.node.is_some()) {
        false => table(&LIST, &rows, width, paint),
        true => table::<7>(&with_node(LIST, NODE), &with_nodes(sessions.iter(), rows), width, paint),
    }
}

const NODE: Column = Column::text("NODE", Cut::Never);

/// A row with one more cell, behind what a session does: `MORE` is one more than `N`.
fn with_node<T, const N: usize, const MORE: usize>(row: [T; N], node: T) -> [T; MORE] {
    let (mut row, mut node) = (row.into_iter(), Some(node));
    std::array::from_fn(|at| if at == 2 { node.take() } else { row.next() }.expect("there is one more"))
}

fn with_nodes<'a, const N: usize, const MORE: usize>(
    sessions: impl Iterator<Item = &'a Session>,
    rows: Vec<[Cell; N]>,
) -> Vec<[Cell; MORE]> {
    let node = |session: &Session| line(session.node.as_deref().unwrap_or_default(), 64).into();
    sessions.zip(rows).map(|(session, row)| with_node(row, node(session))).collect()
}

/// What a person knows a session by.
fn known_by(agent: &str, title: Option<&str>, cwd: &str) -> [Cell; 3] {
    let cwd = Cell { text: line(cwd, TEXT), tone: Tone::Dim };
    [line(agent, 40).into(), line(title.unwrap_or_default(), TEXT).into(), cwd]
}

const HITS: [Column; 5] = [
    Column::text("ID", Cut::Never),
    Column::number("TURN"),
    Column::number("AGE"),
    Column::text("PART", Cut::Never),
    Column::text("TEXT", Cut::End(10)),
];

/// What a search has found, with ends of ids that are likely to name each session.
pub(crate) fn hits(hits: &[Hit], now: Timestamp, width: Option<usize>, screen: Screen) -> Vec<String> {
    let row = |hit: &Hit| {
        [
            short_id(&hit.session_id).into(),
            Cell { text: hit.seq.to_string(), tone: Tone::Dim },
            age(hit.at, now).into(),
            line(&hit.part, 20).into(),
            line(&hit.snippet, TEXT).into(),
        ]
    };
    let rows: Vec<[Cell; 5]> = hits.iter().map(row).collect();
    table(&HITS, &rows, width, Paint::new(screen.colour))
}

const PRUNED: [Column; 6] = [
    Column::text("ID", Cut::Never),
    Column::number("AGE"),
    Column::number("SIZE"),
    Column::text("AGENT", Cut::End(8)),
    Column::text("TITLE", Cut::End(10)),
    Column::text("CWD", Cut::Start(10)),
];

/// Sessions that would be removed, each with the time since it changed and with what its events take.
pub(crate) fn pruned(
    sessions: &[Pruned],
    now: Timestamp,
    width: Option<usize>,
    screen: Screen,
) -> Vec<String> {
    let row = |session: &Pruned| {
        let [agent, title, cwd] = known_by(&session.agent, session.title.as_deref(), &session.cwd);
        [
            short_id(&session.session_id).into(),
            age(session.updated_at, now).into(),
            byte_count(session.bytes).into(),
            agent,
            title,
            cwd,
        ]
    };
    let rows: Vec<[Cell; 6]> = sessions.iter().map(row).collect();
    table(&PRUNED, &rows, width, Paint::new(screen.colour))
}

const TOP: [Column; 7] = [
    Column::text("ID", Cut::Never),
    Column::text("STATE", Cut::Never),
    Column::number("AGE"),
    Column::number("EVENTS"),
    Column::number("/S"),
    Column::text("AGENT", Cut::End(8)),
    Column::text("TITLE", Cut::End(10)),
];

/// What `acpd top` shows of a session.
pub(crate) struct TopRow<'a> {
    pub(crate) session: &'a Session,
    /// Events a second since the last look; None at the first.
    pub(crate) rate: Option<f64>,
}

/// The table of `acpd top`.
pub(crate) fn top(
    sessions: &[TopRow<'_>],
    now: Timestamp,
    width: Option<usize>,
    screen: Screen,
) -> Vec<String> {
    let ids: Vec<&str> = sessions.iter().map(|row| row.session.session_id.as_str()).collect();
    let row = |(TopRow { session, rate }, id): (&TopRow<'_>, String)| {
        let rate = match rate {
            Some(rate) if *rate >= 10.0 => format!("{rate:.0}"),
            Some(rate) if *rate > 0.0 => format!("{rate:.1}"),
            Some(_) => String::new(),
            None => "-".to_owned(),
        };
        [
            id.into(),
            state(session),
            age(session.created_at, now).into(),
            grouped(session.event_count).into(),
            rate.into(),
            line(&session.agent, 40).into(),
            line(session.known_as().unwrap_or(&session.cwd), TEXT).into(),
        ]
    };
    let rows: Vec<[Cell; 7]> = sessions.iter().zip(short_ends(&ids)).map(row).collect();
    let paint = Paint::new(screen.colour);
    match sessions.iter().any(|row| row.session.node.is_some()) {
        false => table(&TOP, &rows, width, paint),
        true => {
            let nodes = with_nodes(sessions.iter().map(|row| row.session), rows);
            table::<8>(&with_node(TOP, NODE), &nodes, width, paint)
        }
    }
}

/// What a session is doing, or how it ended.
pub(crate) fn state(session: &Session) -> Cell {
    let (text, tone) = match (session.ended, session.end_reason().as_deref()) {
        (true, Some("error")) => ("ended: error".to_owned(), Tone::Bad),
        (true, Some(reason)) => (format!("ended: {}", line(reason, 20)), Tone::Dim),
        (true, None) => ("ended".to_owned(), Tone::Dim),
        // As far as other nodes know.
        (false, _) if session.unreachable_since.is_some() => {
            (format!("{}, unreachable", line(&session.state, 20)), Tone::Bad)
        }
        // It does that without a daemon, until the next one takes it over.
        (false, _) if session.detached_since.is_some() => {
            (format!("{}, detached", line(&session.state, 20)), Tone::Notable)
        }
        (false, _) => match session.state.as_str() {
            "waiting" => (waiting(session.open_questions), Tone::Notable),
            "running" => ("running".to_owned(), Tone::Good),
            other => (line(other, 20), Tone::Plain),
        },
    };
    Cell { text, tone }
}

/// One question is the usual.
fn waiting(questions: u64) -> String {
    match questions {
        0 | 1 => "waiting".to_owned(),
        more => format!("waiting: {}", grouped(more)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Screen = Screen { terminal: false, colour: false, shared: false };

    fn session(id: &str, state: &str, reason: Option<&str>) -> Session {
        Session {
            session_id: id.to_owned(),
            state: state.to_owned(),
            ended: reason.is_some(),
            reason: reason.map(str::to_owned),
            agent: "example".to_owned(),
            cwd: "/src/project".to_owned(),
            created_at: "2026-11-21T11:58:00Z".into(),
            updated_at: "2026-11-21T11:58:00Z".into(),
            event_count: 1234,
            ..Session::default()
        }
    }

    fn now() -> Timestamp {
        "2026-11-21T12:00:00Z".parse().expect("a time")
    }

    // contract 6: acpd sessions list: state, age, agent, title, cwd, and how the ended ones ended
    #[test]
    fn sessions_are_listed() {
        let mut titled = session("019a2b3c-4d5e-7000", "running", None);
        titled.title = Some("Fix\u{1b}[2J it\nnow".to_owned());
        let sessions = [titled, session("019a2b3c-4d5e-7001", "ended", Some("error"))];
        assert_eq!(
            list(&sessions, now(), None, PLAIN),
            [
                "ID      STATE         AGE  AGENT    TITLE           CWD",
                "e-7000  running        2m  example  Fix␛[2J it now  /src/project",
                "e-7001  ended: error   2m  example                  /src/project",
            ]
        );
    }

    // contract 7.3: in a fleet, where each is, and which cannot be reached
    #[test]
    fn sessions_of_a_fleet_are_listed_with_their_nodes() {
        let here = Session { node: Some("a".to_owned()), ..session("s-0001", "idle", None) };
        let since = Some("2026-11-21T11:59:00Z".into());
        let gone = Session {
            node: Some("build-2".to_owned()),
            unreachable_since: since,
            ..session("s-0002", "running", None)
        };
        let sessions = [here, gone];
        assert_eq!(
            list(&sessions, now(), None, PLAIN),
            [
                "ID      STATE                 NODE     AGE  AGENT    TITLE  CWD",
                "s-0001  idle                  a         2m  example         /src/project",
                "s-0002  running, unreachable  build-2   2m  example         /src/project",
            ]
        );
        let rows = [TopRow { session: &sessions[0], rate: None }];
        assert_eq!(
            top(&rows, now(), None, PLAIN),
            [
                "ID      STATE  NODE  AGE  EVENTS  /S  AGENT    TITLE",
                "s-0001  idle   a      2m   1,234   -  example  /src/project",
            ]
        );
    }

    // contract 7.1: acpd sessions search: the session, where in it, and what was said
    #[test]
    fn what_was_found_is_listed() {
        let hit = Hit {
            session_id: "019a2b3c-4d5e-7000".to_owned(),
            seq: 12,
            at: "2026-11-21T11:58:00Z".into(),
            part: "answer".to_owned(),
            snippet: "the \u{1b}[2Jparser is fixed".to_owned(),
            ..Hit::default()
        };
        assert_eq!(
            hits(std::slice::from_ref(&hit), now(), None, PLAIN),
            ["ID        TURN  AGE  PART    TEXT", "d5e-7000    12   2m  answer  the ␛[2Jparser is fixed",]
        );
        let narrow = hits(&[hit], now(), Some(40), PLAIN);
        assert!(narrow.iter().all(|line| line.chars().count() <= 40), "{narrow:?}");
    }

    // contract 7.3: how many questions wait for an answer, where it is not one
    #[test]
    fn questions_are_counted() {
        for (questions, shown) in
            [(0, "waiting"), (1, "waiting"), (2, "waiting: 2"), (1234, "waiting: 1,234")]
        {
            let asked = Session { open_questions: questions, ..session("019a", "waiting", None) };
            assert_eq!(state(&asked).text, shown);
        }
    }

    // contract 7.1: acpd sessions prune --dry-run: what would go, with sizes, also in a narrow window
    #[test]
    fn what_would_be_removed_is_listed() {
        let session = Pruned {
            session_id: "019a2b3c-4d5e-7000".to_owned(),
            agent: "example".to_owned(),
            cwd: "/src/project".to_owned(),
            title: Some("Fix \u{1b}[2J it".to_owned()),
            updated_at: "2026-10-21T12:00:00Z".into(),
            bytes: 3 << 20,
            ..Pruned::default()
        };
        assert_eq!(
            pruned(std::slice::from_ref(&session), now(), None, PLAIN),
            [
                "ID        AGE     SIZE  AGENT    TITLE        CWD",
                "d5e-7000  31d  3.0 MiB  example  Fix ␛[2J it  /src/project",
            ]
        );
        let narrow = pruned(&[session], now(), Some(60), PLAIN);
        assert!(narrow.iter().all(|line| line.chars().count() <= 60), "{narrow:?}");
    }

    // contract 6: acpd top: state, age, events and their rate
    #[test]
    fn top_shows_rates() {
        let session = session("019a2b3c-4d5e-7000", "waiting", None);
        for (rate, shown) in [(None, "-"), (Some(0.0), ""), (Some(0.5), "0.5"), (Some(1234.6), "1235")] {
            let lines = top(&[TopRow { session: &session, rate }], now(), None, PLAIN);
            let words: Vec<&str> = lines[1].split_whitespace().collect();
            let mut expected = vec!["e-7000", "waiting", "2m", "1,234", shown, "example", "/src/project"];
            expected.retain(|word| !word.is_empty());
            assert_eq!(words, expected);
        }
    }
}
