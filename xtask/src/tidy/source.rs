//! Rust source as the checks see it: its tokens with their lines, and which lines are tests.
//!
//! The lexer is rustc's own, outside rustc. Not here: a parser; what the compiler would reject may be seen wrongly.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::ops::RangeInclusive;

/// One token; brackets are tokens too.
#[derive(Debug)]
pub(super) struct Token {
    pub(super) text: String,
    /// From 1.
    pub(super) line: usize,
    /// How many brackets are open around it.
    pub(super) depth: usize,
}

/// One Rust file.
pub(super) struct Source {
    pub(super) tokens: Vec<Token>,
    /// Lines of modules and items under `#[cfg(test)]`.
    pub(super) test_regions: Vec<RangeInclusive<usize>>,
    /// Names of `#[cfg(test)] mod name;`, which lie in files of their own.
    pub(super) test_modules: Vec<String>,
}

impl Source {
    /// Without tokens if it is no Rust, which the compiler reports.
    pub(super) fn new(text: &str) -> Self {
        let mut source = Self { tokens: Vec::new(), test_regions: Vec::new(), test_modules: Vec::new() };
        source.flatten(text.parse().unwrap_or_default(), 0);
        source.find_tests();
        source
    }

    fn flatten(&mut self, stream: TokenStream, depth: usize) {
        for tree in stream {
            let line = tree.span().start().line;
            let mut push = |text: String, line| self.tokens.push(Token { text, line, depth });
            let TokenTree::Group(group) = tree else {
                push(tree.to_string(), line);
                continue;
            };
            let (open, close) = match group.delimiter() {
                Delimiter::Parenthesis => ("(", ")"),
                Delimiter::Brace => ("{", "}"),
                Delimiter::Bracket => ("[", "]"),
                Delimiter::None => ("", ""),
            };
            push(open.to_owned(), line);
            self.flatten(group.stream(), depth + 1);
            self.tokens.push(Token { text: close.to_owned(), line: group.span_close().start().line, depth });
        }
    }

    fn find_tests(&mut self) {
        const MARK: &str = "# [ cfg ( test ) ]";
        let marks: Vec<usize> = self.find(MARK).collect();
        for mark in marks {
            let item = mark + MARK.split(' ').count();
            let Some(end) = self.end_of_item(item) else { continue };
            let words: Vec<&str> = self.tokens[item..=end].iter().map(|token| token.text.as_str()).collect();
            if let ["mod", name, ";"] = *words {
                self.test_modules.push(name.to_owned());
            }
            self.test_regions.push(self.tokens[mark].line..=self.tokens[end].line);
        }
    }

    /// The `;` or the closing brace behind which the item that begins at `start` is over.
    pub(super) fn end_of_item(&self, start: usize) -> Option<usize> {
        let depth = self.tokens.get(start)?.depth;
        let ends = |token: &Token| token.depth == depth && [";", "}"].contains(&token.text.as_str());
        let end = start + self.tokens[start..].iter().position(|token| ends(token) || token.depth < depth)?;
        (self.tokens[end].depth == depth).then_some(end)
    }

    /// Where these tokens stand, separated by spaces here: the first of each place.
    pub(super) fn find(&self, pattern: &str) -> impl Iterator<Item = usize> {
        let pattern: Vec<&str> = pattern.split(' ').collect();
        let places = 0..(self.tokens.len() + 1).saturating_sub(pattern.len());
        places.filter(move |at| {
            self.tokens[*at..].iter().zip(&pattern).all(|(token, text)| token.text == *text)
        })
    }

    /// The lines of [`Self::find`].
    pub(super) fn lines_of(&self, pattern: &str) -> impl Iterator<Item = usize> {
        self.find(pattern).map(|at| self.tokens[at].line)
    }

    /// Whether this line is under `#[cfg(test)]`.
    pub(super) fn is_test_line(&self, line: usize) -> bool {
        self.test_regions.iter().any(|region| region.contains(&line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_no_code_and_lifetimes_are() {
        let source = Source::new(
            "// unsafe\n/* unsafe /* */ */ f(\"unsafe\", r#\"\"unsafe\"#, 'u')\nunsafe fn f<'a>() {}",
        );
        assert_eq!(source.lines_of("unsafe").collect::<Vec<_>>(), [3]);
        assert!(Source::new("\"never closed").tokens.is_empty());
    }

    #[test]
    fn test_modules_are_found_inline_and_in_files() {
        let source = Source::new(
            "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() { \"}\"; }\n}\nfn c() {}\n#[cfg(test)]\nmod model;\n",
        );
        assert_eq!(source.test_regions, [2..=5, 7..=8]);
        assert_eq!(source.test_modules, ["model"]);
        assert!(source.is_test_line(4) && !source.is_test_line(6));
    }
}
