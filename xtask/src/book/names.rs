//! What texts of a page stand for where it is run: the usual port for a free one, an id for the one that was printed.

/// The port of every daemon that is told no other.
const PORT: &str = ":2273";

/// Texts, and what they stand for.
#[derive(Debug)]
pub(super) struct Names(Vec<(String, String)>);

impl Names {
    /// Of a page whose daemon has this port.
    pub(super) fn new(port: u16) -> Self {
        let of = |host: &str| (format!("{host}{PORT}"), format!("{host}:{port}"));
        Self(vec![of("127.0.0.1"), of("localhost")])
    }

    pub(super) fn add(&mut self, name: String, value: String) {
        self.0.retain(|(known, _)| *known != name);
        self.0.push((name, value));
        self.0.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    }

    /// The text as it is run. What a name stands for is not looked at again.
    pub(super) fn resolve(&self, text: &str) -> String {
        let mut resolved = String::new();
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            let found = self.0.iter().find(|(name, _)| rest.starts_with(name.as_str()));
            let (taken, value) = found
                .map_or((next.len_utf8(), &rest[..next.len_utf8()]), |(name, value)| (name.len(), value));
            resolved.push_str(value);
            rest = &rest[taken..];
        }
        resolved
    }
}

/// A line that starts a daemon: what is before it, its arguments, whether the shell goes on at once, and a comment.
const SERVE: &str = r"(?m)^(\s*(?:[A-Z_]+=\S*\s+)*)acpd serve\b([^\n#]*?)[ \t]*(&?)[ \t]*(#.*)?$";

/// A shell's commands with each `acpd serve` started behind them: [`START`] goes on when the daemon is ready, for what a reader types
/// in another terminal, and [`START_NOW`] at once, as `acpd serve &` does.
pub(super) fn in_background(script: &str) -> String {
    let started = crate::tree::pattern(SERVE).replace_all(script, |found: &regex_lite::Captures<'_>| {
        let part = |group| found.get(group).map_or("", |text| text.as_str());
        let start = if part(3).is_empty() { START } else { START_NOW };
        format!("{}{start}{} {}", part(1), part(2), part(4))
    });
    started.into_owned()
}

/// Whether a terminal into which the commands are pasted would stay at a daemon, with commands behind it.
pub(super) fn stays_at_daemon(script: &str) -> bool {
    crate::tree::pattern(SERVE).captures_iter(script).any(|found| {
        let end = found.get(0).map_or(0, |line| line.end());
        let rest = script[end..].lines().map(str::trim);
        found[3].is_empty()
            && !found[2].contains("--check")
            && rest.into_iter().any(|line| !line.is_empty() && !line.starts_with('#'))
    })
}

/// Functions of the page's shell.
pub(super) const START: &str = "__serve";
pub(super) const START_NOW: &str = "__serve_now";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced_once_the_longest_first() {
        let mut names = Names::new(4000);
        names.add("5f".into(), "5f0c".into());
        names.add("5f0c9e".into(), "abc".into());
        names.add("abc".into(), "x".into());
        let text = "http://127.0.0.1:2273/ localhost:2273 é 5f0c9e 5f 10.0.0.1:2273";
        assert_eq!(names.resolve(text), "http://127.0.0.1:4000/ localhost:4000 é abc 5f0c 10.0.0.1:2273");
        names.add("5f".into(), "q".into());
        assert_eq!(names.resolve("5f"), "q");
    }

    #[test]
    fn daemons_are_started_behind_the_commands() {
        for (line, started) in [
            ("acpd serve", "__serve "),
            ("acpd serve --listen 127.0.0.1:0 &", "__serve_now --listen 127.0.0.1:0 "),
            ("  ACPD_LOG=warn acpd serve   # a & b", "  ACPD_LOG=warn __serve # a & b"),
            ("a\nacpd serve 2>&1 & # b\nc", "a\n__serve_now 2>&1 # b\nc"),
            ("acpd serve && a", "__serve && a "),
            ("acpd server", "acpd server"),
            ("echo acpd serve", "echo acpd serve"),
        ] {
            assert_eq!(in_background(line), started);
        }
    }

    #[test]
    fn a_block_goes_on_behind_its_daemon() {
        for (block, stays) in [
            ("acpd serve", false),
            ("acpd serve\n\n# that is all\n", false),
            ("acpd serve\nacpd open", true),
            ("acpd serve &\nacpd open", false),
            ("A=b acpd serve 2>log   # it stays\ncurl x", true),
            ("acpd serve --check\nacpd open", false),
        ] {
            assert_eq!(stays_at_daemon(block), stays, "{block}");
        }
    }
}
