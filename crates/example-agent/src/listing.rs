//! `session/list`: what is stored, newest first, in pages.
//!
//! Invariants: the filter comes before the paging; a cursor belongs to its filter; following the cursors gives
//! each session that does not change meanwhile exactly once. Listing starts nothing.
//! Not an index: it reads the directory each time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::failure::Failure;
use crate::history::Past;

/// Newest first, ids in order where the times are the same.
type ListPosition = (std::cmp::Reverse<Duration>, String);

impl Agent {
    pub(crate) fn list(&self, params: &Value) -> Result<Value, Failure> {
        let cwd = match &params["cwd"] {
            Value::Null => None,
            Value::String(cwd) if cwd.starts_with('/') => Some(cwd.as_str()),
            _ => return Err(Failure::invalid_params("cwd is an absolute path")),
        };
        let after = match &params["cursor"] {
            Value::Null => None,
            cursor => Some(
                cursor
                    .as_str()
                    .and_then(|cursor| read_cursor(cursor, cwd))
                    .ok_or_else(|| Failure::invalid_params("the cursor is not from this list"))?,
            ),
        };
        let mut positions: Vec<ListPosition> = self.store.entries().into_iter().map(position).collect();
        positions.sort();

        let mut sessions = Vec::new();
        let mut last: Option<ListPosition> = None;
        for position in
            positions.into_iter().filter(|position| after.as_ref().is_none_or(|after| position > after))
        {
            let Some(entry) = self.entry(&position, cwd) else { continue };
            if sessions.len() == self.options.page_size {
                let cursor = last.as_ref().map(|last| write_cursor(last, cwd));
                return Ok(json!({"sessions": sessions, "nextCursor": cursor}));
            }
            sessions.push(entry);
            last = Some(position);
        }
        Ok(json!({"sessions": sessions}))
    }

    fn entry(&self, position: &ListPosition, cwd: Option<&str>) -> Option<Value> {
        let past = Past::read(&self.store.read(&position.1)?);
        if cwd.is_some_and(|cwd| cwd != past.cwd) {
            return None;
        }
        let mut entry =
            json!({"sessionId": position.1, "cwd": past.cwd, "updatedAt": iso_8601(position.0.0)});
        if !past.additional_directories.is_empty() {
            entry["additionalDirectories"] = json!(past.additional_directories);
        }
        if let Some(title) = past.title {
            entry["title"] = json!(title);
        }
        Some(entry)
    }
}

fn position((id, modified): (String, SystemTime)) -> ListPosition {
    (std::cmp::Reverse(modified.duration_since(UNIX_EPOCH).unwrap_or_default()), id)
}

fn write_cursor(position: &ListPosition, cwd: Option<&str>) -> String {
    format!("{}.{}:{}", position.0.0.as_nanos(), position.1, cwd.unwrap_or_default())
}

fn read_cursor(cursor: &str, cwd: Option<&str>) -> Option<ListPosition> {
    let (position, filter) = cursor.split_once(':')?;
    let (nanoseconds, id) = position.split_once('.')?;
    let nanoseconds: u64 = nanoseconds.parse().ok()?;
    let position = (std::cmp::Reverse(Duration::from_nanos(nanoseconds)), id.to_owned());
    (filter == cwd.unwrap_or_default()).then_some(position)
}

/// UTC with milliseconds. The calendar counts years from March, so that the leap day is a year's last.
fn iso_8601(since_epoch: Duration) -> String {
    let seconds = since_epoch.as_secs();
    let days = seconds / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    let millisecond = since_epoch.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    // SE-11
    #[test]
    fn times_are_iso_8601() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_704_067_199, "2023-12-31T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(iso_8601(Duration::from_secs(seconds)), expected);
        }
    }

    // SE-12
    #[test]
    fn a_cursor_belongs_to_its_filter() {
        let position = (std::cmp::Reverse(Duration::from_nanos(5)), "example-1".to_owned());
        let cursor = write_cursor(&position, Some("/a:b"));
        assert_eq!(read_cursor(&cursor, Some("/a:b")), Some(position));
        assert_eq!(read_cursor(&cursor, None), None);
        assert_eq!(read_cursor("garbage", None), None);
    }
}
