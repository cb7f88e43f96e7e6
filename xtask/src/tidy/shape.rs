//! Limits of what the host and the gateway are made of, and of what decides: these may only get better.
//!
//! Each file is measured and held to a limit. A file that is beyond it stands in `exceptions.toml`, with the reason and
//! with exactly what it has: more is a finding, and less is one too until `cargo xtask tidy --lower` has written it
//! down. A circle of imports is measured for a whole crate. Not here: tests, which may be as long as they have to.

use super::Finding;
use super::rust_files::Code;
use super::source::Source;
use super::tree::Tree;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const FILE: &str = "xtask/src/tidy/exceptions.toml";
const HEADER: &str = "\
# What is beyond a limit of xtask/src/tidy/shape.rs, file by file: what it has, and why. The numbers may only fall;
# `cargo xtask tidy --lower` writes down that they did.
";

/// What is counted in a file.
struct Measure {
    name: &'static str,
    limit: usize,
    applies: fn(&str) -> bool,
    /// How many, and the line of the worst or last.
    of: fn(&Code<'_>) -> (usize, usize),
    problem: &'static str,
    fix: &'static str,
}

const MEASURES: &[Measure] = &[
    Measure::new(
        "lines",
        400,
        |code| (code.lines(), 1),
        "lines without tests",
        "split it: a file holds one idea",
    ),
    Measure::new("function", 60, longest_function, "lines of one function", "give a step of it a name"),
    Measure::new(
        "fields",
        12,
        widest_struct,
        "fields of one struct",
        "those that change together are a struct",
    ),
    Measure::new(
        "values",
        0,
        untyped_values,
        "uses of `json!` and of values by name",
        "give the message a type",
    ),
    Measure {
        applies: decides,
        ..Measure::new(
            "impure",
            0,
            impurities,
            "names of a runtime, a clock or IO in what decides",
            "let them come in",
        )
    },
];
const CIRCLE: &str = "circle";

impl Measure {
    /// A measure of the host and the gateway.
    const fn new(
        name: &'static str,
        limit: usize,
        of: fn(&Code<'_>) -> (usize, usize),
        problem: &'static str,
        fix: &'static str,
    ) -> Self {
        Self { name, limit, applies: is_upper_half, of, problem, fix }
    }
}

fn is_upper_half(path: &str) -> bool {
    path.starts_with("crates/host/src/") || path.starts_with("crates/gateway/src/")
}

/// Whether a file holds what a session is, or what a session or the gateway decides, which is computed and nothing else.
fn decides(path: &str) -> bool {
    const OF_GATEWAY: &[&str] =
        &["access", "methods", "viewer/core", "viewer/effects", "connection/core", "connection/effects"];
    const OF_SESSION: &[&str] = &["effects", "questions", "requests", "transcribing", "turns", "prompt"];
    let module = path.strip_prefix("crates/host/src/session/").and_then(|rest| rest.split(['/', '.']).next());
    let of_gateway = path.strip_prefix("crates/gateway/src/").is_some_and(|rest| {
        OF_GATEWAY.iter().any(|name| rest.strip_prefix(name).is_some_and(|rest| rest.starts_with(['/', '.'])))
    });
    path.starts_with("crates/record/src/")
        || of_gateway
        || module.is_some_and(|module| module.starts_with("core") || OF_SESSION.contains(&module))
}

/// Why a file is an exception, and what it has.
type Exceptions = BTreeMap<String, toml::Table>;

pub(super) fn check(code: &[Code<'_>], tree: &Tree) -> Vec<Finding> {
    let Some(file) = tree.file(FILE) else { return Vec::new() };
    let exceptions: Exceptions = match toml::from_str(&file.text) {
        Ok(exceptions) => exceptions,
        Err(error) => return vec![Finding::new(FILE, 1, format!("unreadable: {error}"), "mend it")],
    };
    let measured = measured(code);
    let mut findings = Vec::new();
    for (path, name, value, line, problem, fix) in &measured {
        let limit = limit(name);
        let exception = exceptions.get(path).and_then(|of_file| of_file.get(*name)?.as_integer());
        let allowed = exception.and_then(|number| usize::try_from(number).ok()).unwrap_or(limit);
        if *value > allowed {
            let problem = format!("{value} {problem}, more than {allowed}");
            findings.push(Finding::new(path, *line, problem, fix.clone()));
        } else if exception.is_some() && *value < allowed {
            let problem = format!("{path} has fewer {problem} than {allowed}: {value}");
            findings.push(Finding::new(
                FILE,
                line_of(&file.text, path),
                problem,
                "run `cargo xtask tidy --lower`",
            ));
        }
    }
    for (path, of_file) in &exceptions {
        let names_file = measured.iter().any(|(measured, ..)| measured == path);
        let has_reason = of_file.get("why").and_then(toml::Value::as_str).is_some_and(|why| !why.is_empty());
        if !names_file || !has_reason {
            let problem = format!("{path} {}", if names_file { "has no reason" } else { "is not measured" });
            let fix = "write `why`, or drop what is not there any more with `cargo xtask tidy --lower`";
            findings.push(Finding::new(FILE, line_of(&file.text, path), problem, fix));
        }
    }
    findings
}

/// The exceptions as they should be now: none raised, none added; None when they cannot be read.
pub(super) fn lowered(code: &[Code<'_>], tree: &Tree) -> Option<String> {
    let exceptions: Exceptions = toml::from_str(&tree.file(FILE)?.text).ok()?;
    let measured = measured(code);
    let mut text = HEADER.to_owned();
    for (path, of_file) in exceptions {
        let mut lines = String::new();
        for (_, name, value, ..) in measured.iter().filter(|(measured, ..)| *measured == path) {
            let old = of_file
                .get(*name)
                .and_then(toml::Value::as_integer)
                .and_then(|old| usize::try_from(old).ok());
            let kept = old.map(|old| old.min(*value)).filter(|kept| *kept > limit(name));
            lines += &kept.map(|kept| format!("{name} = {kept}\n")).unwrap_or_default();
        }
        if !lines.is_empty() {
            let why = of_file.get("why").map(ToString::to_string).unwrap_or_default();
            text += &format!("\n[\"{path}\"]\nwhy = {why}\n{lines}");
        }
    }
    Some(text)
}

fn limit(name: &str) -> usize {
    MEASURES.iter().find(|measure| measure.name == name).map_or(0, |measure| measure.limit)
}

fn line_of(text: &str, path: &str) -> usize {
    text.lines().position(|line| line == format!("[\"{path}\"]")).map_or(1, |line| line + 1)
}

/// What of which file, how much, where, and in words.
type Measured = (String, &'static str, usize, usize, &'static str, String);

fn measured(code: &[Code<'_>]) -> Vec<Measured> {
    let mut all = Vec::new();
    for code in code.iter().filter(|code| !code.is_test) {
        for measure in MEASURES.iter().filter(|measure| (measure.applies)(&code.file.path)) {
            let (value, line) = (measure.of)(code);
            let path = code.file.path.clone();
            all.push((path, measure.name, value, line, measure.problem, measure.fix.to_owned()));
        }
    }
    for (name, folders) in circles(code) {
        let fix = format!("let one of these import the others only: {}", folders.join(", "));
        all.push((name, CIRCLE, folders.len(), 1, "folders that import each other in a circle", fix));
    }
    all
}

fn longest_function(code: &Code<'_>) -> (usize, usize) {
    let source = &code.source;
    let lengths = items(source, "fn").map(|start| {
        let line = source.tokens[start].line;
        let end = source.end_of_item(start).map_or(line, |end| source.tokens[end].line);
        (end + 1 - line, line)
    });
    lengths.max().unwrap_or_default()
}

fn widest_struct(code: &Code<'_>) -> (usize, usize) {
    let source = &code.source;
    let widths = items(source, "struct").map(|start| {
        let (depth, line) = (source.tokens[start].depth, source.tokens[start].line);
        let end = source.end_of_item(start).unwrap_or(start);
        let body = &source.tokens[start..=end];
        let is_colon = |at: usize| body.get(at).is_some_and(|token| token.text == ":");
        let is_field = |at: &usize| {
            is_colon(*at)
                && !is_colon(at + 1)
                && !is_colon(at.wrapping_sub(1))
                && body[*at].depth == depth + 1
        };
        ((0..body.len()).filter(is_field).count(), line)
    });
    widths.max().unwrap_or_default()
}

/// Where items with a name begin that are no tests.
fn items<'a>(source: &'a Source, keyword: &'static str) -> impl Iterator<Item = usize> + 'a {
    let has_name = |at: &usize| source.tokens.get(at + 1).is_some_and(|next| next.text != "(");
    source.find(keyword).filter(move |at| has_name(at) && !source.is_test_line(source.tokens[*at].line))
}

/// `json!`, and `["name"]` behind a value.
fn untyped_values(code: &Code<'_>) -> (usize, usize) {
    const NO_VALUES: &[&str] = &["in", "return", "else", "mut", "match", "if", "break"];
    let tokens = &code.source.tokens;
    let is_index = |at: usize| {
        let text = |at: usize| tokens.get(at).map(|token| token.text.as_str()).unwrap_or_default();
        let before = text(at.wrapping_sub(1));
        let ends_value = before.ends_with(|c: char| c.is_alphanumeric() || "_)]?".contains(c));
        ends_value && !NO_VALUES.contains(&before) && text(at + 1).starts_with('"') && text(at + 2) == "]"
    };
    let indexed = code.source.find("[").filter(|at| is_index(*at));
    let places = code.source.find("json !").chain(indexed).map(|at| tokens[at].line);
    counted(code, places)
}

fn impurities(code: &Code<'_>) -> (usize, usize) {
    const NAMES: &[&str] = &["tokio", "rustix", "SystemTime", "Instant : : now", "Timestamp : : now"];
    const OF_STD: &[&str] = &["fs", "io", "net", "process", "thread", "os"];
    let source = &code.source;
    let named = NAMES.iter().flat_map(|name| source.lines_of(name));
    let of_std = imported(source, "std").into_iter().filter(|(name, _)| OF_STD.contains(name));
    counted(code, named.chain(of_std.map(|(_, line)| line)))
}

fn counted(code: &Code<'_>, lines: impl Iterator<Item = usize>) -> (usize, usize) {
    let lines: Vec<usize> = lines.filter(|line| !code.source.is_test_line(*line)).collect();
    (lines.len(), lines.iter().copied().max().unwrap_or(1))
}

/// The names right behind `root::`, also in braces, with their lines.
fn imported<'a>(source: &'a Source, root: &str) -> Vec<(&'a str, usize)> {
    let mut names = Vec::new();
    for at in source.find(&format!("{root} : :")) {
        let Some(first) = source.tokens.get(at + 3) else { continue };
        if first.text != "{" {
            names.push((first.text.as_str(), first.line));
            continue;
        }
        let group = source.tokens[at + 4..].iter().take_while(|token| token.depth > first.depth);
        let group: Vec<_> = group.filter(|token| token.depth == first.depth + 1).collect();
        let parts = group.split(|token| token.text == ",").filter_map(|part| part.first());
        names.extend(parts.map(|token| (token.text.as_str(), token.line)));
    }
    names
}

/// For each crate: the folders that import themselves through others.
fn circles(code: &[Code<'_>]) -> BTreeMap<String, Vec<String>> {
    // What each folder imports, by its crate; a file beside the folder belongs to it.
    let mut imports: BTreeMap<&str, BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
    let product = || code.iter().filter(|code| !code.is_test && code.file.path.starts_with("crates/"));
    let place = |path| -> Option<(&str, &str)> { str::split_once(path, "/src/") };
    for (name, rest) in product().filter_map(|code| place(&code.file.path)) {
        if let Some((folder, _)) = rest.split_once('/') {
            imports.entry(name).or_default().entry(folder).or_default();
        }
    }
    for code in product() {
        let Some((name, rest)) = place(&code.file.path) else { continue };
        let folder = rest.split(['/', '.']).next().unwrap_or_default();
        let Some(of_folder) = imports.get_mut(name).and_then(|of_crate| of_crate.get_mut(folder)) else {
            continue;
        };
        let named = imported(&code.source, "crate").into_iter();
        of_folder.extend(named.filter(|(_, line)| !code.source.is_test_line(*line)).map(|(name, _)| name));
    }
    let in_circle = |of_crate: &BTreeMap<&str, BTreeSet<&str>>, start: &str| {
        let mut reached: BTreeSet<&str> = BTreeSet::new();
        let mut next = vec![start];
        while let Some(folder) = next.pop() {
            let others = of_crate.get(folder).into_iter().flatten().filter(|import| **import != folder);
            next.extend(others.filter(|import| reached.insert(import)));
        }
        reached.contains(start)
    };
    let folders = |of_crate: &BTreeMap<&str, BTreeSet<&str>>| -> Vec<String> {
        of_crate
            .keys()
            .filter(|folder| in_circle(of_crate, folder))
            .map(|folder| (*folder).to_owned())
            .collect()
    };
    imports.iter().map(|(name, of_crate)| ((*name).to_owned(), folders(of_crate))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::rust_files::code;
    use super::*;

    /// What is measured in a file of the host.
    fn of(path: &str, text: &str, name: &str) -> usize {
        let tree = Tree::of(&[(path, text)]);
        let measured = measured(&code(&tree));
        measured.iter().find(|(_, measure, ..)| *measure == name).map_or(0, |(_, _, value, ..)| *value)
    }

    const HOST: &str = "crates/host/src/session/turns.rs";

    #[test]
    fn functions_structs_and_values_are_measured_without_tests() {
        let text = "struct A<T: B> {\n a: c::D,\n #[x(y = \"z\")]\n b: Vec<(T, u8)>,\n}\nfn f(\n) {\n json!({})[\"a\"];\n \
            for x in [\"a\"] {}\n}\n#[cfg(test)]\nmod tests { fn g() {\n\n\n\n\n json!({}) } }\n";
        for (name, value) in [("fields", 2), ("function", 5), ("values", 2), ("lines", 10)] {
            assert_eq!(of(HOST, text, name), value, "{name}");
        }
        assert_eq!(of("crates/wire/src/a.rs", text, "values"), 0, "only above");
    }

    #[test]
    fn what_decides_has_no_runtime_no_clock_and_no_io() {
        let text = "use std::{collections::BTreeMap, fs};\nuse std::time::Instant;\nuse tokio::sync::mpsc;\n\
            fn f(now: Instant) { Instant::now(); std::io::stdout(); }\n";
        assert_eq!(of(HOST, text, "impure"), 4);
        assert_eq!(of("crates/host/src/session/core_tests/a.rs", text, "impure"), 4);
        assert_eq!(of("crates/host/src/session/task.rs", text, "impure"), 0);
        assert_eq!(of("crates/record/src/event.rs", text, "impure"), 4);
        assert_eq!(of("crates/gateway/src/connection/core/state.rs", text, "impure"), 4);
        assert_eq!(of("crates/gateway/src/connection/work.rs", text, "impure"), 0);
    }

    #[test]
    fn folders_that_import_each_other_are_found() {
        let of = |back: &str| {
            let tree = Tree::of(&[
                ("crates/host/src/a/x.rs", "use crate::{b::Y, error::E};\n"),
                ("crates/host/src/b/y.rs", "use crate::c::Z;\n"),
                ("crates/host/src/c.rs", back),
                ("crates/host/src/c/z.rs", "use crate::error::E;\n"),
                ("crates/host/src/error.rs", "use crate::a::X;\n"),
            ]);
            circles(&code(&tree)).remove("crates/host").unwrap_or_default()
        };
        assert_eq!(of("use crate::a::X;\n"), ["a", "b", "c"]);
        assert!(of("use crate::error::E;\n").is_empty());
    }

    #[test]
    fn an_exception_has_a_reason_and_only_shrinks() {
        let three = "//! x\nfn f() { json!(1); json!(2); json!(3); }\n";
        let tree = |number: &str| {
            let list = format!("{HEADER}\n[\"{HOST}\"]\nwhy = \"x\"\nvalues = {number}\n");
            Tree::of(&[(HOST, three), (FILE, &list)])
        };
        let problems =
            |tree: &Tree| check(&code(tree), tree).into_iter().map(|it| it.problem).collect::<Vec<_>>();
        assert!(problems(&tree("3")).is_empty());
        assert_eq!(problems(&tree("2")), ["3 uses of `json!` and of values by name, more than 2"]);
        assert_eq!(problems(&tree("4")).len(), 1);
        let lower = tree("4");
        assert_eq!(
            lowered(&code(&lower), &lower),
            Some(tree("3").file(FILE).expect("it is there").text.clone())
        );
        let raised = tree("2");
        assert_eq!(
            lowered(&code(&raised), &raised),
            Some(raised.file(FILE).expect("it is there").text.clone())
        );
        let gone = Tree::of(&[(FILE, "[\"crates/host/src/gone.rs\"]\nvalues = 1\n")]);
        assert_eq!(problems(&gone), ["crates/host/src/gone.rs is not measured"]);
        assert_eq!(lowered(&code(&gone), &gone).as_deref(), Some(HEADER));
    }
}
