//! What errors of the configuration look like.

use super::*;

// contract 6: unknown keys are errors with line and column
#[test]
fn an_unknown_key_is_shown_in_its_line() {
    let text = "# mine\n\n[server]\ndefault_agent = \"example\"\n\n# here:\nlistenn = \"127.0.0.1:1\"\n";
    assert_eq!(
        bench(text).error(),
        r#"acpd.toml:7:1: unknown key "listenn" in [server]; did you mean "listen"?
  |
7 | listenn = "127.0.0.1:1"
  | ^^^^^^^"#
    );
}

// contract 6: errors with line and column
#[test]
fn errors_point_at_the_wrong_part_and_say_what_to_write() {
    for (text, expected) in [
        ("[servr]\n", "1:2: unknown section [servr]; did you mean [server]?"),
        (
            "listen = 'x'\n",
            "1:1: unknown section or key \"listen\"; the sections are server, storage, continuity, timeouts, terminal, \
             files, limits, compat, client, fleet, agents, tokens, hooks",
        ),
        (
            "[storage]\ncolour = 1\n",
            "2:1: unknown key \"colour\" in [storage]; known: path, durability, search, keep_for, keep_bytes",
        ),
        (
            "[storage]\nkeep_for = \"0s\"\n",
            "2:12: \"keep_for\" in [storage]: \"0s\" is out of range; write \"never\" to remove nothing",
        ),
        (
            "[storage]\nkeep_for = \"a month\"\n",
            "2:12: \"keep_for\" in [storage]: \"a month\" is not a duration such as \"12h\", \"30d\" or \"never\"",
        ),
        (
            "[storage]\nkeep_bytes = 0\n",
            "2:14: \"keep_bytes\" in [storage]: 0 is out of range; the least is 1 MiB",
        ),
        (
            "[storage]\nkeep_bytes = \"8 apples\"\n",
            "2:14: \"keep_bytes\" in [storage]: \"8 apples\" is not a byte count such as \"8 MiB\", \"1 GiB\" or \
             \"never\"",
        ),
        (
            "[timeouts]\nidle = \"5 minutes\"\n",
            "2:8: \"idle\" in [timeouts]: \"5 minutes\" is not a duration such as \"250ms\", \"1s\", \"5m\", \
             \"2h\" or \"never\"",
        ),
        (
            "[timeouts]\nidle = 5\n",
            "2:8: \"idle\" in [timeouts]: expected a duration such as \"250ms\", \"1s\", \"5m\", \"2h\" or \
             \"never\", found integer `5`",
        ),
        (
            "timeouts.term_grace = \"never\"\n",
            "1:23: \"term_grace\" in [timeouts]: \"never\" is not possible here; write a duration such as \
             \"250ms\", \"1s\", \"5m\" or \"2h\"",
        ),
        (
            "[server]\nlisten = \"somewhere\"\n",
            "2:10: \"listen\" in [server]: \"somewhere\" is not an address and port such as \"127.0.0.1:2273\"",
        ),
        (
            "[server]\ndefault_agent = \"opencod\"\n[agents.opencode]\ncommand = \"x\"\n",
            "2:17: no agent is called \"opencod\": there is no [agents.opencod]; did you mean \"opencode\"?",
        ),
        (
            "[files]\nmax_bytes = \"1 GiB\"\n",
            "2:13: \"max_bytes\" in [files]: \"1 GiB\" is out of range; allowed are 1 to 256 MiB",
        ),
        (
            "[files]\nconfine = \"no\"\n",
            "2:11: \"confine\" in [files]: expected true or false, found string \"no\"",
        ),
        (
            "[limits]\nline_bytes = 100\n",
            "2:14: \"line_bytes\" in [limits]: 100 is out of range; allowed are 4 KiB to 1 GiB",
        ),
        (
            "[terminal]\noutput_byte_limit = -1\n",
            "2:21: \"output_byte_limit\" in [terminal]: -1 is out of range; allowed are 1 to 256 MiB",
        ),
        (
            "[limits]\nline_bytes = \"64 megs\"\n",
            "2:14: \"line_bytes\" in [limits]: \"64 megs\" is not a byte count such as 1048576 or \"64 MiB\"",
        ),
        (
            "[agents.x]\ncommand = \" \"\n",
            "2:11: \"command\" in [agents.x]: must not be empty; write the name or path of a program",
        ),
        ("[agents.x]\nargs = []\n", "1:1: [agents.x] needs the key \"command\""),
        (
            "[agents.x]\ncommand = \"a\"\nargs = [\"b\", 5]\n",
            "3:14: \"args\" in [agents.x]: expected a string, found integer `5`",
        ),
        (
            "[agents.x]\ncommand = \"a\"\npermission_mode = \"acceptedits\"\n",
            "3:19: \"permission_mode\" in [agents.x]: \"acceptedits\" is unknown; did you mean \"acceptEdits\"?",
        ),
        (
            "[agents.x]\ncommand = \"a\"\nspare = 300\n",
            "3:9: \"spare\" in [agents.x]: 300 is out of range; allowed are 0 and 1",
        ),
        (
            "[agents.x]\ncommand = \"a\"\nspare = 2\n",
            "3:9: \"spare\" in [agents.x]: 2 is out of range; allowed are 0 and 1",
        ),
        (
            "[agents.x]\ncommand = \"a\"\nspare = true\n",
            "3:9: \"spare\" in [agents.x]: expected a whole number, found boolean `true`",
        ),
        (
            "[agents.y]\ncommand = \"a\"\nspare = 1\n[agents.x]\ncommand = \"a\"\nshare_process = true\nspare = 1\n",
            "7:9: \"spare\" in [agents.x]: there is nothing to spare with share_process = true: one process \
             serves all sessions; leave out one of the two",
        ),
        (
            "[agents.\"open code\"]\ncommand = \"a\"\n",
            "1:9: \"open code\" in [agents]: \"open code\" is not a name: use letters, digits, \".\", \"_\" and \
             \"-\", and begin with a letter or digit",
        ),
        (
            "[server]\ntls_key = \"key.pem\"\n",
            "2:11: \"tls_key\" in [server] needs \"tls_cert\" beside it; TLS takes both",
        ),
        (
            "[server]\nallowed_origins = [\"*\"]\n",
            "2:19: \"allowed_origins\" in [server]: \"*\" is not an origin; write scheme, host and port, such as \
             \"https://acpd.example.org\"",
        ),
        (
            "[server]\nallowed_hosts = [\"http://x\"]\n",
            "2:17: \"allowed_hosts\" in [server]: \"http://x\" is not a host name; write the name alone, such as \
             \"acpd.example.org\"",
        ),
        (
            "[limits]\nsessions = 0\n",
            "2:12: \"sessions\" in [limits]: 0 is out of range; allowed are 1 to 4294967295",
        ),
        ("[tokens.ci]\nscope = \"admin\"\n", "1:1: [tokens.ci] needs the key \"hash\""),
        (
            "[storage]\npath = \"\"\n",
            "2:8: \"path\" in [storage]: must not be empty; leave the key out for the default state directory",
        ),
        (
            "[agents.x]\ncommand = \"a\"\nargs = \"b\"\n",
            "3:8: \"args\" in [agents.x]: expected a list such as [\"a\", \"b\"], found string \"b\"",
        ),
        ("server = 5\n", "1:10: \"server\": expected a table, found integer `5`"),
    ] {
        let shown = bench(text).error();
        let first = shown.lines().next().unwrap_or_default();
        assert_eq!(first, format!("acpd.toml:{expected}"), "{text}");
    }
}

// contract 6: errors with line and column, also for what is no TOML
#[test]
fn broken_toml_is_shown_in_its_line() {
    let shown = bench("[server]\nlisten = 127.0.0.1:2273\n").error();
    assert!(shown.starts_with("acpd.toml:2:"), "{shown}");
    assert!(shown.contains("\n2 | listen = 127.0.0.1:2273\n"), "{shown}");
    let shown = bench("[server]\n\n[server]\n").error();
    assert!(shown.starts_with("acpd.toml:3:2: duplicate key"), "{shown}");
    let bench = bench("");
    std::fs::write(bench.directory.path().join("acpd.toml"), b"# ok\n# \xffx\n").unwrap();
    assert!(bench.error().starts_with("acpd.toml:2:3: not UTF-8"), "{}", bench.error());
}

// contract 6: columns count characters; a long line is shown around the mistake
#[test]
fn columns_count_characters_and_long_lines_are_cut() {
    let shown = bench("agents = { \"é\" = { command = \"x\" } }\n").error();
    assert!(shown.starts_with("acpd.toml:1:12: "), "{shown}");
    assert!(shown.ends_with("  |            ^^^"), "{shown}");
    let long = format!("[agents.x]\ncommand = \"a\"\nargs = [{} 5]\n", "\"word\", ".repeat(200));
    let shown = bench(&long).error();
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[2].len() < 140, "{shown}");
    let mark = lines[3].find('^').expect("a mark");
    assert_eq!(&lines[2][mark..=mark], "5", "{shown}");
}

// contract 1.7: no secret is ever logged
#[test]
fn secrets_are_not_repeated() {
    let token = bench("[tokens.ci]\nhash = \"hunter2\"\n").error();
    assert!(token.starts_with("acpd.toml:2:8: \"hash\" in [tokens.ci]: must be \"sha256:\""), "{token}");
    assert!(!token.contains("hunter2"), "{token}");
    let variable = bench("[agents.x]\ncommand = \"a\"\nenv = { API_KEY = 81727 }\n").error();
    assert_eq!(variable, "acpd.toml:3:19: \"API_KEY\" in [agents.x.env]: expected a string");
    let config = bench(SAMPLE).load().unwrap();
    let debug = format!("{config:?}");
    assert!(debug.contains("KEY") && !debug.contains("value"), "{debug}");
}
