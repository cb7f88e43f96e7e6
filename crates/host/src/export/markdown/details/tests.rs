//! Blocks of code, and changes of files.

use super::*;

// issue 28, RA10: nothing in a block ends it, whatever is in it
#[test]
fn a_fence_is_longer_than_what_it_encloses() {
    for (text, block) in [
        ("x", "```\nx\n```"),
        ("a `b` c\n\n", "```\na `b` c\n```"),
        ("```sh\nls\n```\n# x", "````\n```sh\nls\n```\n# x\n````"),
        ("~~~\n``````", "```````\n~~~\n``````\n```````"),
    ] {
        assert_eq!(fenced("", text), block, "{text:?}");
    }
}

// contract 7.3: what is in a file of another goes to no terminal as an order
#[test]
fn no_control_character_comes_out() {
    for (text, expected) in [
        ("\u{1b}[1;31mred\u{1b}[0m", "red"),
        ("\u{1b}[2J\u{1b}]0;t\u{7}x", "]0;tx"),
        ("\u{1b}[31", ""),
        ("\u{1b}[12\u{1b}[m.", "."),
        ("a\r\nb\tc\r10%\r20%", "a\nb\tc\n10%\n20%"),
        ("\u{9b}2Jx\u{0}", "2Jx"),
    ] {
        assert_eq!(plain(text), expected, "{text:?}");
    }
}

// issue 28, RA10: a change is what `diff -u` says of it
#[test]
fn a_change_is_written_in_hunks() {
    let many: String = (1..=20).map(|number| format!("{number}\n")).collect();
    for (old, new, expected) in [
        (None, "x\ny\n", "--- /dev/null\n+++ f\n@@ -0,0 +1,2 @@\n+x\n+y"),
        (Some("x\n"), "", "--- f\n+++ f\n@@ -1,1 +0,0 @@\n-x"),
        (Some("x\n"), "x\n", "--- f\n+++ f"),
        (Some("1\n2\n3\n"), "1\nb\n3\n", "--- f\n+++ f\n@@ -1,3 +1,3 @@\n 1\n-2\n+b\n 3"),
        (
            Some(&*many),
            &many.replace("5\n", "five\n").replace("19\n", ""),
            "--- f\n+++ f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n@@ -12,9 +12,8 @@\n 12\n 13\n 14\n-15\n+1five\n \
             16\n 17\n 18\n-19\n 20",
        ),
    ] {
        assert_eq!(change("f", old, new), format!("```diff\n{expected}\n```"), "{old:?} {new:?}");
    }
    let hostile = change("f\n```\n# x", Some(""), "```\n");
    assert_eq!(hostile, "````diff\n--- f ``` # x\n+++ f ``` # x\n@@ -0,0 +1,1 @@\n+```\n````");
}

// contract 7.3: of a terminal that writes on and on the end is held
#[test]
fn the_end_of_much_output_is_held() {
    let mut terminal = Terminal::new("t");
    let text = "\u{e4}".repeat(1000);
    for _ in 0..3000 {
        let news = TerminalOutput { terminal_id: "t".into(), output: text.as_str().into(), dropped_bytes: 0 };
        terminal.write(&news);
        assert!(terminal.held() <= 2 * OUTPUT);
    }
    assert!(terminal.held() >= OUTPUT && terminal.write_out().0 == "Terminal t: runs; the end of its output");
}
