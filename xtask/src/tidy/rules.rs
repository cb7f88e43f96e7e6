//! The rules that are tables: what must not be found in which files, what must, and the exceptions.
//!
//! The files of tidy itself are left out: they hold the bad examples. Not here: what clippy knows (`unwrap`, `todo!`,
//! banned functions).

use crate::tree::{File, Tree, pattern};

/// What of a file is looked at: all of it, Rust that is no test, tests.
type In = fn(&File) -> &str;
const TEXT: In = |file| &file.text;
const CODE: In = |file| &file.code;
const TESTS: In = |file| &file.tests;

const ALL: &str = "^";
const SOURCE: &str = r"\.(rs|toml|ts|js|mjs|sh|html|css)$|^\.ci/run$";
const UPPER_HALF: &str = "^crates/(api|host|gateway)/src/";
/// What a session is, and what a session, an agent or the gateway decides: computed and nothing else.
const DECIDES: &str = r"(?x) ^crates/ (
    (api|record)/src/
    | host/src/ ( agent/core | session/ (core\w*|effects|prompt|questions|requests|transcribing|turns) ) [./]
    | gateway/src/ ( access | methods | (viewer|connection)/(core|effects) ) [./] )";

const REGISTRY: &str = r"(?x) crates\.io | npmjs\.(org|com) | pypi\.org | pythonhosted\.org | proxy\.golang\.org
    | jfrog\.io | (registry|sparse)\+http
    | https?://(registry[.-]|npm\.|pypi\.|crates\.|index\.crates|mirrors?\.|artifactory\.|nexus\.)";
const NO_RE_EXPORT: &str = r"(?mx) ^( use\ | ( pub(\(\w+\))?\ )?
    ( const|static|type|struct|enum|trait|impl|unsafe|async|fn|extern|macro_rules!|mod\ \w+\ \{ ) )";
const IMPURE: &str = r"(?x) \b( tokio | rustix | SystemTime | (Instant|Timestamp)::now )\b
    | \bstd::(\{[^;]*\b)?(fs|io|net|process|thread|os)\b";
const OPERATION: &str = r"\bacpd_api::(\{[^}]*\b)?(Op|Operation|Spec)\b";
const ID: &str = r"(?x) \bpub(\(crate\))?\ (const\ |async\ )*fn\ [^{;]*
    \b(\w*session|connection|viewer|\w+_id):\ &?(str|String|u64)\b";

/// Files, where in them, what must not stand there, and in words.
const FORBIDDEN: &[(&str, In, &str, &str)] = &[
    (ALL, TEXT, r"(?m)(^|[^\w.~$}/-])/(home|work|root|Users)/", "a path of one machine; use a relative path"),
    (ALL, TEXT, REGISTRY, "a package registry's host; leave the choice to the machine's settings"),
    (SOURCE, TEXT, r"\b(TODO|FIXME|XXX)\b", "a reminder; do it, or open an issue and say what holds today"),
    (r"/mod\.rs$", TEXT, "^", "mod.rs is not used here; name the file like its directory"),
    (r"^crates/[^/]+/src/lib\.rs$", CODE, NO_RE_EXPORT, "more than docs, `mod name;` and `pub use`; move it"),
    (ALL, CODE, r"\bunsafe\b", "`unsafe` outside its file; use a safe function of rustix or std"),
    (ALL, TESTS, r"\bunsafe\b", "`unsafe` in a test; use a safe function of rustix or std"),
    (ALL, TESTS, r"#\[ignore", "an ignored test; make it run everywhere, or make it a command of xtask"),
    (ALL, TESTS, r"\b(thread|time)::sleep\b", "a test that sleeps; wait on an event, or say why not"),
    (UPPER_HALF, CODE, r#"\bjson!|[\w)\]?]\[""\]"#, "`json!`, or a value by its name; give it a type"),
    (DECIDES, CODE, IMPURE, "a runtime, a clock or IO in what decides; let it come in"),
    ("^crates/host/src/", CODE, OPERATION, "an operation of REST in the host; it fills in types only"),
    (
        "^crates/(api|record|host|gateway)/src/",
        CODE,
        ID,
        "an id as text or number in a signature; it is a newtype",
    ),
];

/// How a problem begins, and where it is none: a pattern of path, line above and line.
const EXCEPTIONS: &[(&str, &str)] = &[
    // What cargo itself writes into a lock file for the default registry, whatever serves it.
    ("a package", "\nsource = \"registry\\+https://github\\.com/rust-lang/crates\\.io-index\"$"),
    // What runs between fork and exec.
    ("`unsafe` outside", "^crates/supervisor/src/keeper/spawn.rs\n"),
    ("a test that sleeps", r"// tidy: allow sleep, \S"),
    // Secrets are looked for in messages of any kind.
    ("`json!`", "^crates/host/src/secrets.rs\n"),
    // Schemas and descriptions, which are no part of the product.
    ("`json!`", "^crates/api/src/openapi.rs\n"),
    // The trait of what an event is written to; a Vec for every caller.
    ("a runtime", "(?s)^crates/record/src/(event|message).rs\n.*\nuse std::io;$"),
    // Of what clients ask for, which may be no session's, and of what another process wrote.
    ("an id", "^crates/(gateway/src/http/problem|host/src/journal).rs\n"),
];

/// Files, what each must have, and in words.
const REQUIRED: &[(&str, &str, &str)] = &[
    (r"/src/.*\.rs$", r"\A//!", "no docs; begin with `//!`: purpose, owner, invariants, and what it is not"),
    (r"^README\.md$", "(?m)^cargo run -- run \"hello\"$", "does not show `run \"hello\"`"),
    (
        r"^README\.md$|^\.ci/run$",
        "(?m)^cargo xtask test --install$",
        "lacks what CI runs and the README says",
    ),
    (r"^CHANGELOG\.md$", r"(?m)^## \[Unreleased\]$", "add the section of what is not released"),
    (r"^docs/adr/", r"\n## Status\n\n[^#\n]", "no Status"),
    (r"^docs/adr/", r"\n## Context\n\n[^#\n]", "no Context"),
    (r"^docs/adr/", r"\n## Decision\n\n[^#\n]", "no Decision"),
    (r"^docs/adr/", r"\n## Consequences\n\n[^#\n]", "no Consequences"),
];

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let forbidden = FORBIDDEN.iter().flat_map(|(files, place, wrong, problem)| {
        let wrong = pattern(wrong);
        let exceptions = EXCEPTIONS.iter().filter(|(begin, _)| problem.starts_with(begin));
        let exceptions: Vec<_> = exceptions.map(|(_, exception)| pattern(exception)).collect();
        checked(tree, files).flat_map(move |file| {
            let text = place(file);
            let lines = wrong.find_iter(text).map(|found| text[..found.end()].matches('\n').count());
            let lines =
                lines.filter(|line| !exceptions.iter().any(|it| it.is_match(&surroundings(file, *line))));
            lines.map(|line| format!("{}:{}: {problem}", file.path, line + 1)).collect::<Vec<_>>()
        })
    });
    let required = REQUIRED.iter().flat_map(|(files, wanted, problem)| {
        let wanted = pattern(wanted);
        let missing = checked(tree, files).filter(move |file| !wanted.is_match(&file.text));
        missing.map(move |file| format!("{}:1: {problem}", file.path))
    });
    forbidden.chain(required).collect()
}

fn checked<'a>(tree: &'a Tree, files: &str) -> impl Iterator<Item = &'a File> {
    let files = pattern(files);
    tree.files
        .iter()
        .filter(move |file| files.is_match(&file.path) && !file.path.starts_with("xtask/src/tidy/"))
}

/// A path, the line above, and the line.
fn surroundings(file: &File, line: usize) -> String {
    let line_at = |at: Option<usize>| at.and_then(|at| file.text.lines().nth(at)).unwrap_or_default();
    format!("{}\n{}\n{}", file.path, line_at(line.checked_sub(1)), line_at(Some(line)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tests::tree;

    fn of(path: &str, text: &str) -> Vec<String> {
        check(&tree(&[(path, text)]))
    }

    #[test]
    fn each_row_is_kept_by_one_text_and_broken_by_another() {
        let (wire, host, record) =
            ("crates/wire/src/frame.rs", "crates/host/src/a.rs", "crates/record/src/a.rs");
        let (turns, core) =
            ("crates/host/src/session/turns.rs", "crates/gateway/src/connection/core/state.rs");
        let lib = "crates/wire/src/lib.rs";
        let adr =
            "# 1. T\n\n## Status\n\nA.\n\n## Context\n\na\n\n## Decision\n\n- b\n\n## Consequences\n\nc\n";
        let test = "#[cfg(test)]\nmod tests {\n    LINE\n}\n";
        let readme = "cargo run -- run \"hello\"\ncargo xtask test --install\n";
        for (path, good, bad) in [
            ("a.md", "../work/x ~/work/ $HOME/work/ src/home/page https://host/home/x", "cd /home/me/acpd"),
            ("a.toml", "x = \"../work/x\"", "x = \"/work/x\""),
            ("deny.toml", "unknown-registry = \"deny\"", "index = \"sparse+https://packages.example/\""),
            ("a.json", "see https://agentclientprotocol.com", "https://npm.example/x/-/x-1.tgz"),
            (
                "Cargo.lock",
                "source = \"registry+https://github.com/rust-lang/crates.io-index\"",
                "http://mirror.example/x",
            ),
            (wire, "mktemp(\"XXXXXX\")", "// TODO: more"),
            (".ci/run", "\ncargo xtask test --install\n", "cargo test\n"),
            (
                wire,
                "//! unsafe\n#![deny(unsafe_code)]\n// unsafe\nfn a() { \"unsafe\"; }",
                "unsafe fn a() {}",
            ),
            (wire, "// #[ignore]", &test.replace("LINE", "#[ignore = \"slow\"]")),
            (wire, "std::thread::sleep(SECOND)", &test.replace("LINE", "std::thread::sleep(SECOND)")),
            (
                "crates/e2e/src/a.rs",
                "// tidy: allow sleep, a clock\nuse tokio::time::sleep;",
                "// tidy: allow sleep, \nuse tokio::time::sleep;",
            ),
            (host, &test.replace("LINE", "json!({})[\"a\"]"), "x\n    json!({})"),
            (host, "for a in [\"a\"] { b[\"c\".len()] }", "a()?[\"b\"]"),
            (host, "// tokio\nuse tokio::fs;", "pub(crate) fn f(\n    session: &str,\n) {}"),
            (
                host,
                "fn f(session: &str, connection_id: &Id) {}",
                "pub async fn f(of: u8, connection_id: u64) {}",
            ),
            (
                host,
                "use acpd_api::{Session, SessionState};",
                "use acpd_api::{\n    ListSessions,\n    Op,\n};",
            ),
            (
                turns,
                "use std::collections::BTreeMap;\nfn f(now: Instant) {}",
                "use std::{collections::BTreeMap, fs};",
            ),
            (core, "use std::time::Instant;", "fn f() { Instant::now() }"),
            (record, "use std::fmt;", "use tokio::sync::mpsc;"),
            ("crates/record/src/event.rs", "//! x\nuse std::io;", "//! x\nuse std::fs;"),
            (
                lib,
                "mod a;\npub mod b;\npub(crate) use a::A;\npub use b::{\n    B,\n    C,\n};\n#[cfg(test)]\nmod c;",
                "fn a() {}",
            ),
            (lib, "#![expect(x, reason = \"a; b\")]", "pub const A: u8 = 1;"),
            (lib, "mod a;", "mod a {}"),
            (lib, "pub use std::io;", "use std::io;"),
            ("README.md", readme, "cargo run\ncargo xtask test --install\n"),
            ("CHANGELOG.md", "# Change log\n\n## [Unreleased]\n", "# Change log\n"),
            ("docs/adr/0001-a.md", adr, &adr.replace("\n\na\n", "\n")),
        ] {
            let docs = if path.contains("/src/") && !good.starts_with("//!") { "//! x\n" } else { "" };
            assert_eq!(of(path, &format!("{docs}{good}")), Vec::<String>::new());
            let docs = if path.contains("/src/") && !bad.starts_with("//!") { "//! x\n" } else { "" };
            assert_eq!(of(path, &format!("{docs}{bad}")).len(), 1, "{path}: {bad}");
        }
        assert!(of("crates/supervisor/src/keeper/spawn.rs", "//! x\nunsafe fn a() {}").is_empty());
        assert_eq!(of("crates/wire/src/frame/mod.rs", "//! x\n").len(), 1);
        assert_eq!(of(wire, "fn a() {}\n\nunsafe fn a() {}\n")[0], format!("{wire}:3: {}", FORBIDDEN[5].3));
    }
}
