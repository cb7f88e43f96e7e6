//! JSON as editors write it by hand: with comments, and commas behind the last member.
//!
//! Pure. Invariant: lines and columns stay, so that an error names the right place; nothing in a string changes.

use std::borrow::Cow;

/// The same as plain JSON, with spaces in the place of what that does not have.
pub(super) fn plain_json(text: &str) -> Cow<'_, str> {
    let mut bytes = text.as_bytes().to_vec();
    let mut comma = None;
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at..] {
            [b'"', ..] => string_end(&bytes, at),
            [b'/', b'/', ..] => {
                let line = bytes[at..].iter().position(|byte| *byte == b'\n');
                blank(&mut bytes, at, line.map_or(text.len(), |line| at + line))
            }
            [b'/', b'*', ..] => {
                let close = bytes[at + 2..].windows(2).position(|pair| pair == b"*/");
                // One that is not closed is left to the reader of JSON, which names the place.
                let Some(close) = close else { break };
                blank(&mut bytes, at, at + 2 + close + 2)
            }
            _ => at + 1,
        };
        match bytes[at] {
            b',' => comma = Some(at),
            b'}' | b']' => {
                if let Some(comma) = comma.take() {
                    bytes[comma] = b' ';
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        at = end;
    }
    match String::from_utf8(bytes) {
        Ok(plain) if plain != text => Cow::Owned(plain),
        _ => Cow::Borrowed(text),
    }
}

/// The place behind a string.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Makes a part blank, but for its line ends; the place behind it.
fn blank(bytes: &mut [u8], from: usize, to: usize) -> usize {
    for byte in bytes[from..to].iter_mut().filter(|byte| **byte != b'\n') {
        *byte = b' ';
    }
    to
}

#[cfg(test)]
mod tests {
    use super::*;

    // issue 28, R12: comments and last commas go, strings stay, and so do the places of everything
    #[test]
    fn comments_become_blanks() {
        for (text, plain) in [
            ("{\"a\": 1}", "{\"a\": 1}"),
            ("{ // x\n\"a\": 1 /* y\nz */ }", "{     \n\"a\": 1     \n     }"),
            ("{\"a\": \"// /* \\\" // \", }", "{\"a\": \"// /* \\\" // \"  }"),
            ("[1, 2, // é\n]", "[1, 2       \n]"),
            ("[1,, 2]", "[1,, 2]"),
            ("[\",\", \"]\"]", "[\",\", \"]\"]"),
            ("{ /* open", "{ /* open"),
            ("\"open \\", "\"open \\"),
            ("", ""),
        ] {
            assert_eq!(plain_json(text), plain, "{text}");
        }
    }
}
