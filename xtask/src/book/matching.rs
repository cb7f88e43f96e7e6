//! Whether a block printed what the page says.
//!
//! `...` in a line is any run of characters, alone in a line any lines. Colours, blanks at the ends of lines and empty lines
//! at the end do not count.

const ANY: &str = "...";

/// What is printed as it is compared: without colours and what terminals alone see.
pub(super) fn plain(output: &str) -> String {
    let text = anstream::adapter::strip_str(output).to_string().replace('\r', "");
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_end().to_owned()
}

/// The first line of `expected`, from 0, that `actual` does not have; None when all is as said.
pub(super) fn differs(expected: &str, actual: &str) -> Option<usize> {
    let (expected, actual) = (plain(expected), plain(actual));
    let (expected, actual): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), actual.lines().collect());
    // The rows of `actual` that may come next, after each line of `expected`.
    let mut reached = vec![0];
    for (at, line) in expected.iter().enumerate() {
        reached = if line.trim() == ANY {
            (reached[0]..=actual.len()).collect()
        } else {
            let fits = |row: &&usize| actual.get(**row).is_some_and(|actual| line_fits(line, actual));
            reached.iter().filter(fits).map(|row| row + 1).collect()
        };
        if reached.is_empty() {
            return Some(at);
        }
    }
    (!reached.contains(&actual.len())).then_some(expected.len())
}

fn line_fits(expected: &str, actual: &str) -> bool {
    let Some((first, rest)) = expected.split_once(ANY) else { return expected == actual };
    let Some(mut actual) = actual.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split(ANY).collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = actual.find(part) else { return false };
        actual = &actual[at + part.len()..];
    }
    actual.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_any_text_in_a_line_and_any_lines_alone() {
        for (expected, actual, first) in [
            ("a\nb\n", "a  \r\n\x1b[1mb\x1b[0m\n\n", None),
            ("a", "b", Some(0)),
            ("a", "a\nb", Some(1)),
            ("a\nb", "a", Some(1)),
            ("x ... y", "x 1 2 y", None),
            ("x ... y", "x 1 2 z", Some(0)),
            ("x...x", "x", Some(0)),
            ("a ... b ... c", "a 1 b 2 c", None),
            ("a ... c ... b", "a 1 b 2 c", Some(0)),
            ("...\nb", "a\na\nb", None),
            ("...\nb", "b", None),
            ("a\n...\nb\n...", "a\nb\nb\nc", None),
            ("a\n...\nc\nb", "a\nb\nc\nc\nb", None),
            ("a\n...\nq", "a\nb", Some(2)),
            ("...", "", None),
            ("", "", None),
            ("", "a", Some(0)),
        ] {
            assert_eq!(differs(expected, actual), first, "{expected:?} {actual:?}");
        }
    }
}
