//! How a line looks on the screen: its rows, cut to the screen, and the place of the cursor.
//!
//! Pure. Invariant: a row is never wider than the screen, there are never more rows than may be, and no control character
//! is among them.

use crate::clean::verbatim;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Rows of a line on the screen.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Input {
    pub(crate) rows: Vec<String>,
    /// Row and column of the cursor.
    pub(crate) cursor: (usize, usize),
}

/// The rows of `text` behind a label, on a screen of so many columns, at most so many rows: those around the cursor, which is
/// behind so many bytes.
pub(crate) fn layout(label: &str, text: &str, cursor: usize, columns: usize, most: usize) -> Input {
    let indent = label.width().min(columns / 2);
    // The last column stays free: some terminals wrap when it is written.
    let room = columns.saturating_sub(indent + 1).max(2);
    let mut left = indent;
    let fits = |c: &char| {
        let rest = left.checked_sub(c.width().unwrap_or_default());
        left = rest.unwrap_or_default();
        rest.is_some()
    };
    let label: String = label.chars().take_while(fits).collect();
    let label = format!("{label}{}", " ".repeat(indent - label.width().min(indent)));
    let mut rows = vec![label];
    let (mut width, mut place) = (0, (0, indent));
    for (at, c) in text.char_indices() {
        if at == cursor {
            place = (rows.len() - 1, indent + width);
        }
        let next_row = |rows: &mut Vec<String>| rows.push(" ".repeat(indent));
        if c == '\n' {
            next_row(&mut rows);
            width = 0;
            continue;
        }
        let shown = verbatim(c.encode_utf8(&mut [0; 4]), 1);
        let wide = shown.width();
        if width + wide > room {
            next_row(&mut rows);
            width = 0;
            if at == cursor {
                place = (rows.len() - 1, indent);
            }
        }
        if let Some(row) = rows.last_mut() {
            row.push_str(&shown);
        }
        width += wide;
    }
    if cursor >= text.len() {
        place = (rows.len() - 1, indent + width);
    }
    let most = most.max(1);
    let first = (place.0 + 1).saturating_sub(most).max(place.0.saturating_sub(most / 2));
    let first = first.min(rows.len().saturating_sub(most));
    let rows = rows.into_iter().skip(first).take(most).collect();
    Input { rows, cursor: (place.0 - first, place.1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, cursor: usize, columns: usize, most: usize) -> (String, (usize, usize)) {
        let input = layout("› ", text, cursor, columns, most);
        assert!(input.rows.len() <= most.max(1));
        for row in &input.rows {
            assert!(row.width() < columns.max(4) && !row.contains(char::is_control), "{row:?}");
        }
        (input.rows.join("|"), input.cursor)
    }

    // contract 7.1: a line fits every screen, also one of 40 columns
    #[test]
    fn a_line_is_cut_into_rows() {
        for (text, cursor, columns, most, rows, place) in [
            ("", 0, 40, 5, "› ", (0, 2)),
            ("abc", 1, 40, 5, "› abc", (0, 3)),
            ("a\nbc", 3, 40, 5, "› a|  bc", (1, 3)),
            ("abcdef", 6, 7, 5, "› abcd|  ef", (1, 4)),
            ("abcd", 4, 7, 5, "› abcd", (0, 6)),
            ("abcde", 4, 7, 5, "› abcd|  e", (1, 2)),
            ("漢漢漢", 9, 7, 5, "› 漢漢|  漢", (1, 4)),
            ("a漢漢", 1, 6, 5, "› a漢|  漢", (0, 3)),
            ("e\u{301}x", 3, 40, 5, "› e\u{301}x", (0, 3)),
            ("\u{1b}[2J\t\u{202e}", 0, 40, 5, "› ␛[2J \u{fffd}", (0, 2)),
            // Those around the cursor.
            ("1\n2\n3\n4\n5", 9, 40, 2, "  4|  5", (1, 3)),
            ("1\n2\n3\n4\n5", 0, 40, 2, "› 1|  2", (0, 2)),
            ("1\n2\n3\n4\n5", 4, 40, 3, "  2|  3|  4", (1, 2)),
            ("abc", 3, 0, 0, "c", (0, 1)),
        ] {
            assert_eq!(shown(text, cursor, columns, most), (rows.to_owned(), place), "{text:?} {columns}");
        }
    }
}
