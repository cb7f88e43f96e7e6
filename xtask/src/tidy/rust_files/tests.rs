//! Each rule with an example that keeps it and one that breaks it.

use super::*;

/// The findings in one file, without their fixes.
fn problems(path: &str, text: &str) -> Vec<String> {
    let tree = Tree::of(&[(path, text)]);
    let findings = check(&code(&tree));
    findings.iter().map(|finding| format!("{}: {}", finding.line, finding.problem)).collect()
}

const FILE: &str = "crates/wire/src/frame.rs";
const LIB: &str = "crates/wire/src/lib.rs";

#[test]
fn module_docs_come_first() {
    assert!(problems(FILE, "//! Frames.\n").is_empty());
    assert!(problems("crates/wire/tests/all.rs", "fn a() {}\n").is_empty());
    assert_eq!(problems(FILE, "use std::io;\n"), ["1: a module without docs"]);
}

#[test]
fn mod_rs_is_not_used() {
    assert_eq!(problems("crates/wire/src/frame/mod.rs", "//! x\n"), ["1: mod.rs is not used here"]);
}

#[test]
fn a_file_is_measured_without_its_tests() {
    let code = "fn a() {}\n".repeat(598);
    let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "    fn b() {}\n".repeat(100));
    assert!(problems(FILE, &format!("//! x\n{code}{tests}")).is_empty());
    assert_eq!(
        problems(FILE, &format!("//! x\n{code}{code}{tests}")),
        ["1: 1197 lines without tests, more than 600"]
    );
}

#[test]
fn long_tests_have_a_file_of_their_own() {
    let tests = format!("//! x\n#[cfg(test)]\nmod tests {{\n{}}}\n", "    fn b() {}\n".repeat(198));
    assert_eq!(problems(FILE, &tests), ["2: 201 lines of tests, more than 200"]);
    assert!(
        problems("crates/wire/src/frame/tests.rs", &format!("//! x\n{}", "fn a() {}\n".repeat(900)))
            .is_empty()
    );
}

#[test]
fn a_test_module_in_a_file_of_any_name_is_a_test_file() {
    let tree = Tree::of(&[
        (LIB, "//! x\n#[cfg(test)]\nmod model;\n"),
        ("crates/wire/src/model.rs", &format!("//! x\n{}", "fn a() {}\n".repeat(700))),
        (FILE, "//! x\n#[cfg(test)]\nmod cases;\n"),
        ("crates/wire/src/frame/cases.rs", &format!("//! x\n{}", "fn a() {}\n".repeat(700))),
    ]);
    assert_eq!(check(&code(&tree)), []);
}

#[test]
fn lib_rs_holds_docs_and_re_exports() {
    let good = concat!(
        "//! Wire; one crate.\n#![expect(x, reason = \"a; b\")]\n\nmod frame;\npub mod table;\n",
        "#[cfg(test)]\nmod model;\npub(crate) use frame::A;\npub use frame::{\n    B, // why\n    C,\n};\n"
    );
    assert_eq!(problems(LIB, good), Vec::<String>::new());
    for bad in ["fn a() { b(); }", "pub const A: u8 = 1;", "mod a { }", "use std::io;", "pub struct A;"] {
        let text = format!("//! x\nmod frame;\n{bad}\n");
        assert_eq!(problems(LIB, &text), ["3: lib.rs holds something else than re-exports"], "{bad}");
    }
}

#[test]
fn unsafe_lives_in_one_file() {
    let text = "//! x\nfn a() { unsafe { b() } }\n";
    assert_eq!(problems(FILE, text), ["2: `unsafe` outside its file"]);
    assert!(problems(UNSAFE_FILE, text).is_empty());
    assert!(
        problems(FILE, "//! no unsafe\n#![deny(unsafe_code)]\n// unsafe\nfn a() { \"unsafe\"; }\n")
            .is_empty()
    );
}

#[test]
fn no_test_is_ignored() {
    assert_eq!(problems(FILE, "//! x\n#[ignore = \"slow\"]\nfn a() {}\n"), ["2: an ignored test"]);
    assert!(problems(FILE, "//! x\n// #[ignore]\n").is_empty());
}

#[test]
fn tests_do_not_sleep_without_a_reason() {
    let test = |line: &str| format!("//! x\n#[cfg(test)]\nmod tests {{\n{line}\n}}\n");
    let sleep = "    std::thread::sleep(SECOND);";
    assert_eq!(problems(FILE, &test(sleep)), ["4: a test that sleeps"]);
    assert_eq!(
        problems("crates/e2e/src/x.rs", "//! x\nuse tokio::time::sleep;\n"),
        ["2: a test that sleeps"]
    );
    let reason = "    // tidy: allow sleep, the thing under test is a clock";
    assert!(problems(FILE, &test(&format!("{reason}\n{sleep}"))).is_empty());
    assert_eq!(problems(FILE, &test(&format!("    // tidy: allow sleep, \n{sleep}"))).len(), 1);
    assert!(problems(FILE, &format!("//! x\nfn a() {{\n{sleep}\n}}\n")).is_empty());
}
