//! Where a reader of events goes on: a sequence number, or a page's `nextCursor`, which also names its session
//! (contract 1.6).

use super::super::problem::Problem;
use acpd_api::ProblemKind;
use acpd_eventlog::CursorError;
use acpd_record::SessionId;
use http::StatusCode;

/// Reads `Last-Event-ID` or `after`.
pub(super) fn read_event_cursor(text: &str, session: &SessionId) -> Result<u64, Problem> {
    let (number, of) = match text.split_once('@') {
        Some((number, of)) => (number, Some(of)),
        None => (text, None),
    };
    let number = number.parse().ok().filter(|_| number.bytes().all(|byte| byte.is_ascii_digit()));
    let number = number.ok_or_else(|| {
        let detail = "the cursor is not readable; give the id of the last event that was seen, or 0 for all";
        Problem::new(StatusCode::BAD_REQUEST, ProblemKind::CursorUnreadable, detail).about(session.as_str())
    })?;
    if of.is_some_and(|of| of != session.as_str()) {
        let detail = "the cursor belongs to another session; begin without a cursor";
        return Err(Problem::new(StatusCode::CONFLICT, ProblemKind::CursorOfAnotherSession, detail)
            .about(session.as_str()));
    }
    Ok(number)
}

/// A `nextCursor`.
pub(super) fn write_event_cursor(number: u64, session: &SessionId) -> String {
    format!("{number}@{session}")
}

/// Why a cursor cannot be followed.
pub(super) fn cursor_problem(error: &CursorError, session: &SessionId) -> Problem {
    match error {
        CursorError::Unknown { .. } => Problem::session_not_found(session.as_str()),
        CursorError::Future { after, last } => {
            let detail = format!("the last event is {last}, and the cursor stands behind {after}");
            Problem::new(StatusCode::CONFLICT, ProblemKind::CursorInTheFuture, detail).about(session.as_str())
        }
        CursorError::Closed => {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, ProblemKind::ShuttingDown, error.to_string())
        }
        _ => {
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, ProblemKind::HistoryUnreadable, error.to_string())
                .about(session.as_str())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 1.6: unreadable, or of another session, is an error of its own
    #[test]
    fn a_place_is_a_number_or_names_its_session() {
        let s = SessionId::parse("s").expect("an id");
        assert_eq!(read_event_cursor("0", &s).ok(), Some(0));
        assert_eq!(read_event_cursor(&write_event_cursor(7, &s), &s).ok(), Some(7));
        for unreadable in ["", "-1", "+1", "x", "1.5", "99999999999999999999", "@s", "1 "] {
            let problem = read_event_cursor(unreadable, &s).expect_err(unreadable);
            assert!(format!("{problem:?}").contains("CursorUnreadable"), "{unreadable}");
        }
        let foreign = read_event_cursor("7@t", &s).expect_err("of another session");
        assert!(format!("{foreign:?}").contains("CursorOfAnotherSession"));
    }
}
