//! Tables for people: aligned columns that fit the width of a terminal.
//!
//! Pure. Cells are clean text already. What does not fit is cut, in the columns that may be cut, the widest first; the
//! columns that name things are never cut.

use super::paint::Paint;
use std::borrow::Cow;
use std::iter::repeat_n;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Between two columns.
const GAP: usize = 2;
/// Without a screen nothing is cut, and a cell that is wider than this moves what is behind it in its own line: one long title
/// would else make every line as long.
const SPILLS: usize = 40;

/// How a cell is to be seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    #[default]
    Plain,
    Dim,
    Good,
    Bad,
    Notable,
}

/// One cell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) tone: Tone,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, tone: Tone::Plain }
    }
}

/// What may be cut of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    Never,
    /// The end, down to this width.
    End(usize),
    /// The beginning, as of a path, down to this width.
    Start(usize),
}

/// One column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) title: &'static str,
    /// Numbers stand at the right.
    pub(crate) right: bool,
    pub(crate) cut: Cut,
}

impl Column {
    pub(crate) const fn text(title: &'static str, cut: Cut) -> Self {
        Self { title, right: false, cut }
    }

    pub(crate) const fn number(title: &'static str) -> Self {
        Self { title, right: true, cut: Cut::Never }
    }
}

/// The lines of a table with its heads; `screen` is the width of the screen, if there is one.
pub(crate) fn table<const N: usize>(
    columns: &[Column; N],
    rows: &[[Cell; N]],
    screen: Option<usize>,
    paint: Paint,
) -> Vec<String> {
    let mut widths: [usize; N] = std::array::from_fn(|at| {
        let cells = rows.iter().map(|row| width(&row[at].text));
        cells.chain([columns[at].title.len()]).max().unwrap_or_default()
    });
    match screen {
        Some(screen) => fit(columns, &mut widths, screen),
        None => spill(columns, &mut widths),
    }
    let head: [Cell; N] =
        std::array::from_fn(|at| Cell { text: columns[at].title.to_owned(), tone: Tone::Dim });
    let cuts = screen.is_some();
    std::iter::once(&head).chain(rows).map(|row| line(columns, row, (&widths, cuts), paint)).collect()
}

fn spill<const N: usize>(columns: &[Column; N], widths: &mut [usize; N]) {
    for (column, width) in columns.iter().zip(widths) {
        if column.cut != Cut::Never {
            *width = (*width).min(SPILLS);
        }
    }
}

fn fit<const N: usize>(columns: &[Column; N], widths: &mut [usize; N], screen: usize) {
    let least = |at: usize| match columns[at].cut {
        Cut::Never => usize::MAX,
        Cut::End(least) | Cut::Start(least) => least.max(columns[at].title.len()),
    };
    while widths.iter().sum::<usize>() + GAP * N.saturating_sub(1) > screen {
        let widest = (0..N).filter(|at| widths[*at] > least(*at)).max_by_key(|at| widths[*at]);
        match widest {
            Some(at) => widths[at] -= 1,
            None => return,
        }
    }
}

fn line<const N: usize>(
    columns: &[Column; N],
    row: &[Cell; N],
    (widths, cuts): (&[usize; N], bool),
    paint: Paint,
) -> String {
    let mut line = String::with_capacity(widths.iter().sum::<usize>() + GAP * N);
    for at in 0..N {
        let Cell { text, tone } = &row[at];
        let shown = match columns[at].cut {
            _ if !cuts || width(text) <= widths[at] => Cow::Borrowed(text.as_str()),
            Cut::Start(_) => Cow::Owned(cut_start(text, widths[at])),
            Cut::End(_) | Cut::Never => Cow::Owned(cut_end(text, widths[at])),
        };
        let room = widths[at].saturating_sub(width(&shown));
        let gap = if at + 1 == N { 0 } else { GAP };
        let (before, behind) = if columns[at].right { (room, gap) } else { (0, room + gap) };
        line.extend(repeat_n(' ', before));
        match tone {
            _ if !paint.is_coloured() => line.push_str(&shown),
            Tone::Plain => line.push_str(&shown),
            Tone::Dim => line.push_str(&paint.dim(shown)),
            Tone::Good => line.push_str(&paint.good(shown)),
            Tone::Bad => line.push_str(&paint.bad(shown)),
            Tone::Notable => line.push_str(&paint.notable(shown)),
        }
        line.extend(repeat_n(' ', behind));
    }
    let end = line.trim_end().len();
    line.truncate(end);
    line
}

/// The columns that a clean text takes.
fn width(text: &str) -> usize {
    // Most are ASCII, and a list has many.
    if text.is_ascii() { text.len() } else { text.width() }
}

/// At most `most` columns, from the beginning; what is cut becomes an ellipsis.
pub(crate) fn cut_end(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let mut room = most.saturating_sub(1);
    let kept = text.chars().take_while(|c| {
        let taken = c.width().unwrap_or_default();
        let fits = taken <= room;
        room = room.saturating_sub(taken);
        fits
    });
    let mut kept: String = kept.collect();
    if most > 0 {
        kept.push('…');
    }
    kept
}

fn cut_start(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let backwards: String = text.chars().rev().collect();
    cut_end(&backwards, most).chars().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] =
        [Column::text("ID", Cut::Never), Column::number("EVENTS"), Column::text("WHERE", Cut::Start(5))];

    fn rows() -> Vec<[Cell; 3]> {
        [("a", "1", "/src/one"), ("bcd", "1000", "/漢字/two")]
            .map(|(id, events, place)| [id, events, place].map(|text| Cell::from(text.to_owned())))
            .to_vec()
    }

    // contract 6: acpd sessions list, aligned
    #[test]
    fn columns_are_aligned() {
        let lines = table(&COLUMNS, &rows(), None, Paint::new(false));
        assert_eq!(lines, ["ID   EVENTS  WHERE", "a         1  /src/one", "bcd    1000  /漢字/two"]);
    }

    // contract 6: a table fits the window, down to what names things
    #[test]
    fn a_table_fits_the_width() {
        for (width, last) in
            [(22, "bcd    1000  /漢字/two"), (20, "bcd    1000  …字/two"), (1, "bcd    1000  …/two")]
        {
            let lines = table(&COLUMNS, &rows(), Some(width), Paint::new(false));
            assert_eq!(lines[2], last, "{width}");
            assert!(width < 19 || lines.iter().all(|line| line.width() <= width), "{lines:?}");
        }
    }

    // contract 7.1: for programs nothing is cut, and one long cell makes no other line longer
    #[test]
    fn a_long_cell_moves_its_own_line() {
        let long = "/".repeat(200);
        let columns = [Column::text("WHERE", Cut::Start(5)), Column::text("ID", Cut::Never)];
        let row = |place: &str, id: &str| [place, id].map(|text| Cell::from(text.to_owned()));
        let lines = table(&columns, &[row("/src", "a"), row(&long, "b")], None, Paint::new(false));
        assert_eq!(lines[1..], [format!("/src{}a", " ".repeat(38)), format!("{long}  b")]);
        assert_eq!(lines[0].len(), 44);
    }

    #[test]
    fn text_is_cut_by_what_it_takes_on_the_screen() {
        for (text, most, end) in
            [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("漢字", 3, "漢…"), ("漢字", 2, "…"), ("ab", 0, "")]
        {
            assert_eq!(cut_end(text, most), end);
        }
        assert_eq!("e\u{301}é漢".width(), 4);
    }
}
