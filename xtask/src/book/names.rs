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

/// A shell's commands with each `acpd serve` started behind them: [`START`] goes on when the daemon is ready.
pub(super) fn in_background(script: &str) -> String {
    let serve =
        crate::tree::pattern(r"(?m)^(\s*(?:[A-Z_]+=\S*\s+)*)acpd serve\b([^\n#]*?)[ \t]*&?[ \t]*(#.*)?$");
    let started = serve.replace_all(script, format!("${{1}}{START}${{2}} ${{3}}"));
    started.into_owned()
}

/// A function of the page's shell.
pub(super) const START: &str = "__serve";

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
            ("acpd serve --listen 127.0.0.1:0 &", "__serve --listen 127.0.0.1:0 "),
            ("  ACPD_LOG=warn acpd serve   # a & b", "  ACPD_LOG=warn __serve # a & b"),
            ("a\nacpd serve 2>&1 & # b\nc", "a\n__serve 2>&1 # b\nc"),
            ("acpd serve && a", "__serve && a "),
            ("acpd server", "acpd server"),
            ("echo acpd serve", "echo acpd serve"),
        ] {
            assert_eq!(in_background(line), started);
        }
    }
}
