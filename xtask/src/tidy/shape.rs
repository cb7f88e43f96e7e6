//! Limits: how long files, functions and structs are, and that folders of a crate import each other in no circle.
//!
//! Not here: tests, which may be as long as they have to, if they are not in the file of what they test.

use crate::tree::{File, Tree, end_of_item, pattern};
use std::collections::{BTreeMap, BTreeSet};

/// The begin of an item that is measured.
const ITEM: &str = r#"^ *(?:pub(?:\([\w: ]+\))? )?(?:(?:const|async|unsafe|extern "") )*(fn|struct) \w"#;
const FIELD: &str = r"^ *(?:pub(?:\([\w: ]+\))? )?\w+: ";
/// What is named of the own crate, in a path or in the braces of an import.
const IMPORT: &str = r"\bcrate::(?:(\w+)|\{([^;]*);)";

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut findings: Vec<String> = tree.product().flat_map(sizes).collect();
    findings.extend(circles(tree));
    findings
}

fn sizes(file: &File) -> Vec<String> {
    let is_upper_half = ["crates/api/src/", "crates/host/src/", "crates/gateway/src/"]
        .iter()
        .any(|dir| file.path.starts_with(dir));
    let mut findings = Vec::new();
    let mut judge = |line: usize, count: usize, most: usize, what: &str| {
        if count > most {
            findings.push(format!("{}:{}: {count} {what}, more than {most}", file.path, line + 1));
        }
    };
    let lines: Vec<&str> = file.code.lines().collect();
    let most = if is_upper_half { 400 } else { 600 };
    judge(0, lines.len() - file.test_lines, most, "lines without tests; split it: a file holds one idea");
    judge(0, file.test_lines, 200, "lines of tests; move them to tests.rs in a directory of its name");
    let (item, field) = (pattern(ITEM), pattern(FIELD));
    let items = lines.iter().enumerate().filter(|_| is_upper_half);
    for (start, kind) in items.filter_map(|(at, line)| Some((at, item.captures(line)?.get(1)?.as_str()))) {
        let body = &lines[start..=end_of_item(&lines, start)];
        if kind == "fn" {
            judge(start, body.len(), 60, "lines of one function; give a step of it a name");
            continue;
        }
        let indent = |line: &str| line.len() - line.trim_start().len();
        let fields = body.iter().filter(|line| indent(line) == indent(body[0]) + 4 && field.is_match(line));
        judge(start, fields.count(), 12, "fields of one struct; those that change together are a struct");
    }
    findings
}

/// For each crate: the folders that import themselves through others.
fn circles(tree: &Tree) -> Vec<String> {
    // What each folder imports, by its crate; a file beside the folder belongs to it.
    let mut imports: BTreeMap<&str, BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
    let (import, first) = (pattern(IMPORT), pattern(r"(?:^|[{,])\s*(\w+)"));
    for file in tree.product() {
        let Some((name, rest)) = file.path.split_once("/src/") else { continue };
        let folder = rest.split(['/', '.']).next().unwrap_or_default();
        let named = imports.entry(name).or_default().entry(folder).or_default();
        for found in import.captures_iter(&file.code) {
            named.extend(found.get(1).map(|name| name.as_str()));
            let group = found.get(2).map_or("", |group| group.as_str());
            named.extend(first.captures_iter(group).filter_map(|found| Some(found.get(1)?.as_str())));
        }
    }
    let mut findings = Vec::new();
    for (name, of_crate) in &mut imports {
        // Files of the same level without a folder may do as they like.
        let prefix = |folder: &str| format!("{name}/src/{folder}/");
        of_crate.retain(|folder, _| tree.files.iter().any(|file| file.path.starts_with(&prefix(folder))));
        for start in of_crate.keys() {
            let mut reached = BTreeSet::new();
            let mut next = vec![start];
            while let Some(folder) = next.pop() {
                let others = of_crate.get(folder).into_iter().flatten().filter(|other| *other != folder);
                next.extend(others.filter(|other| reached.insert(**other)));
            }
            if reached.contains(start) {
                findings.push(format!("{name}/src/{start}:1: imports itself through other folders; let one of them import the others only"));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tests::tree;

    const HOST: &str = "crates/host/src/a.rs";

    #[test]
    fn files_functions_and_structs_have_limits_that_tests_do_not_count_for() {
        let function =
            |lines: usize| format!("fn f(\n    a: u8,\n) {{\n{}}}\n", "    g();\n".repeat(lines - 4));
        let fields = |count: usize| {
            format!(
                "pub(crate) struct A<T: B> {{\n{}}}\n",
                "    #[x(y)]\n    pub(super) a: Vec<(T, u8)>,\n".repeat(count)
            )
        };
        let test = |text: &str| format!("#[cfg(test)]\nmod tests {{\n{text}}}\n");
        let (line, indented) = ("const A: u8 = 1;\n", "    const A: u8 = 1;\n");
        for (text, problem) in [
            (function(60), ""),
            (function(61), "1: 61 lines of one function"),
            (fields(12), ""),
            (fields(13), "1: 13 fields of one struct"),
            (line.repeat(400) + &test(&indented.repeat(197)), ""),
            (line.repeat(401), "1: 401 lines without tests"),
            (line.to_owned() + &test(&indented.repeat(198)), "1: 201 lines of tests"),
            (line.to_owned() + &test(&function(100)), ""),
        ] {
            let found = check(&tree(&[(HOST, &text)])).join("\n");
            assert!(
                found.starts_with(&format!("{HOST}:{problem}")) || found == problem,
                "{found} for {problem}"
            );
        }
        assert!(check(&tree(&[("crates/wire/src/a.rs", &(line.repeat(500) + &function(80)))])).is_empty());
        assert_eq!(check(&tree(&[("crates/wire/src/a.rs", &line.repeat(601))])).len(), 1);
        assert!(check(&tree(&[("crates/wire/src/a/tests.rs", &line.repeat(900))])).is_empty());
    }

    #[test]
    fn folders_that_import_each_other_are_found() {
        let of = |back: &str| {
            circles(&tree(&[
                ("crates/host/src/a/x.rs", "use crate::{b::Y, error::E};\n"),
                ("crates/host/src/b/y.rs", "use crate::c::Z;\n"),
                ("crates/host/src/c.rs", back),
                ("crates/host/src/c/z.rs", "use crate::error::E;\n"),
                ("crates/host/src/error.rs", "use crate::a::X;\n"),
            ]))
        };
        let found = of("fn f() { crate::a::X; }\n");
        assert_eq!(found.len(), 3);
        assert!(found[0].starts_with("crates/host/src/a:1: imports itself"));
        assert!(of("use crate::error::E;\n#[cfg(test)]\nuse crate::a::X;\n").is_empty());
    }
}
