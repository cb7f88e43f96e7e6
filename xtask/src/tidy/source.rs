//! Rust source as the checks see it: code with comments and literals blanked out, and which lines are tests.
//!
//! Invariant: the masked code has the same bytes per line as the text, so that positions agree. Not here: a
//! parser; what the compiler would reject may be seen wrongly.

use std::ops::Range;

/// One Rust file.
pub(super) struct Source {
    /// The text with every comment and every string or character literal blanked out.
    pub(super) code: String,
    /// Lines (from 0) of modules and items under `#[cfg(test)]`.
    pub(super) test_regions: Vec<Range<usize>>,
    /// Names of `#[cfg(test)] mod name;`, which lie in files of their own.
    pub(super) test_modules: Vec<String>,
}

impl Source {
    pub(super) fn new(text: &str) -> Self {
        let mut source = Self { code: mask(text), test_regions: Vec::new(), test_modules: Vec::new() };
        source.find_tests();
        source
    }

    /// Whether this line (from 0) is under `#[cfg(test)]`.
    pub(super) fn is_test_line(&self, line: usize) -> bool {
        self.test_regions.iter().any(|region| region.contains(&line))
    }

    fn find_tests(&mut self) {
        let mut at = 0;
        while let Some(found) = self.code[at..].find("#[cfg(test)]") {
            let attribute = at + found;
            let item = attribute + "#[cfg(test)]".len();
            let Some(end) = self.code[item..].find(['{', ';']).map(|offset| item + offset) else { return };
            let head = &self.code[item..end];
            if self.code.as_bytes()[end] == b';' {
                if let Some((_, name)) = head.split_once("mod ") {
                    self.test_modules.push(name.trim().to_owned());
                }
                at = end;
            } else {
                at = matching_brace(self.code.as_bytes(), end);
            }
            let line_of = |position: usize| self.code[..position].matches('\n').count();
            self.test_regions.push(line_of(attribute)..line_of(at) + 1);
        }
    }
}

/// The position of the brace that closes the one at `open`, or the end.
fn matching_brace(code: &[u8], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in code.iter().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    code.len()
}

/// Blanks out comments and literals; line ends stay.
fn mask(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let Some(end) = literal_or_comment(text, at) else {
            at += 1;
            continue;
        };
        for byte in &mut out[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The end of the comment or literal that begins at `at`, if one does.
fn literal_or_comment(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let end = match (bytes[at], bytes.get(at + 1)) {
        (b'/', Some(b'/')) => bytes[at..].iter().position(|&byte| byte == b'\n').map(|offset| at + offset),
        (b'/', Some(b'*')) => block_comment(bytes, at),
        (b'"', _) => string(bytes, at),
        (b'\'', _) => return character(text, at),
        (b'r', _) if !follows_name(bytes, at) => return raw_string(text, at),
        _ => return None,
    };
    Some(end.unwrap_or(bytes.len()))
}

fn block_comment(bytes: &[u8], start: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = start;
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

fn string(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match bytes.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// A character literal; a lifetime is none.
fn character(text: &str, start: usize) -> Option<usize> {
    let rest = &text[start + 1..];
    if rest.starts_with('\\') {
        let close = rest.get(2..)?.find('\'')?;
        return Some(start + 1 + 2 + close + 1);
    }
    let width = rest.chars().next()?.len_utf8();
    rest[width..].starts_with('\'').then_some(start + 1 + width + 1)
}

fn raw_string(text: &str, start: usize) -> Option<usize> {
    let rest = &text[start + 1..];
    let hashes = rest.bytes().take_while(|&byte| byte == b'#').count();
    let body = rest[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let length = body.find(&close).map_or(body.len(), |offset| offset + close.len());
    Some(start + 1 + hashes + 1 + length)
}

/// Whether the `r` at `at` ends a longer name; the `b` and `c` of `br"` and `cr"` are none.
fn follows_name(bytes: &[u8], at: usize) -> bool {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut before = bytes[..at].iter().rev();
    match before.next() {
        Some(b'b' | b'c') => before.next().is_some_and(|&byte| is_name(byte)),
        Some(&byte) => is_name(byte),
        None => false,
    }
}

/// Whether `word` stands in `text` as a word of its own, and where first.
pub(super) fn find_word(text: &str, word: &str) -> Option<usize> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).map(|(at, _)| at).find(|&at| {
        !text[..at].chars().next_back().is_some_and(is_name)
            && !text[at + word.len()..].chars().next().is_some_and(is_name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_code_is_not() {
        let masked = |text: &str| mask(text).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(masked("a // b\nc"), "a c");
        assert_eq!(masked("a /* b /* c */ d */ e"), "a e");
        assert_eq!(masked(r#"f("x \" y", z)"#), "f( , z)");
        assert_eq!(masked("let x = r#\"a \" b\"# + br\"c\" ;"), "let x = + b ;");
        assert_eq!(
            masked("fn f<'a>(x: &'a str) { '\\'' ; 'ä' ; '\"' ; g() }"),
            "fn f<'a>(x: &'a str) { ; ; ; g() }"
        );
        assert_eq!(masked("r#type for"), "r#type for");
        assert_eq!(masked("\"never closed"), "");
    }

    #[test]
    fn masking_keeps_every_position() {
        let text = "x \"ä\n\" y // ö\nz";
        assert_eq!(mask(text).len(), text.len());
        assert_eq!(mask(text).lines().count(), text.lines().count());
    }

    #[test]
    fn test_modules_are_found_inline_and_in_files() {
        let source = Source::new(
            "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() { \"}\"; }\n}\nfn c() {}\n#[cfg(test)]\nmod model;\n",
        );
        assert_eq!(source.test_regions, [1..5, 6..8]);
        assert_eq!(source.test_modules, ["model"]);
        assert!(source.is_test_line(3) && !source.is_test_line(5));
    }

    #[test]
    fn words_are_whole() {
        assert_eq!(find_word("unsafe_code unsafe", "unsafe"), Some(12));
        assert_eq!(find_word("mkXXX.XXXX", "XXX"), None);
    }
}
