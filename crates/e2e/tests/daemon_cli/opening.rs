//! `acpd open` (contract 7.1): the browser is let in by a code.

use crate::cli::{args, done, fails, json};
use acpd_e2e::{Answer, Daemon, Http, Scratch, acpd, until};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

const JSON: (&str, &str) = ("Content-Type", "application/json");

fn post(daemon: &Daemon, path: &str, body: &str) -> Answer {
    Http::on(daemon.connect()).request("POST", path, &[JSON], body)
}

fn exchange(daemon: &Daemon, code: &str) -> Answer {
    post(daemon, "/v1/open", &json!({"code": code}).to_string())
}

fn get(daemon: &Daemon, path: &str, token: &str) -> Answer {
    Http::on(daemon.connect()).request("GET", path, &[("Authorization", &format!("Bearer {token}"))], "")
}

/// The code in an address.
fn code_of(url: &str) -> &str {
    let code = url.split("#code=").nth(1).unwrap_or_else(|| panic!("there is no code: {url}"));
    code.split('&').next().unwrap_or_default()
}

// contract 7.1: acpd open gets a single-use code over the Unix socket; a page changes it for a token that may do
// what the owner may, also where the daemon has tokens
#[test]
fn a_browser_is_let_in_once() {
    let scratch = Scratch::new();
    let token = format!("[tokens.ci]\nhash = \"sha256:{}\"\nscope = \"observe\"\n", "0".repeat(64));
    let scratch = scratch.config(&token);
    let mut daemon = scratch.serve();
    let told = json(&scratch, &["open"]);
    let url = told["url"].as_str().expect("an address");
    assert!(url.starts_with(&format!("{}/#code=", daemon.url())), "{url}");
    assert!(told["expiresAt"].as_str().is_some_and(|at| at.ends_with('Z')), "{told}");
    let code = code_of(url);
    let opened = exchange(&daemon, code);
    assert_eq!(opened.status, 200);
    let secret = opened.json()["token"].as_str().expect("a token").to_owned();
    let caller = get(&daemon, "/v1/whoami", &secret).json();
    assert_eq!(
        (&caller["scope"], &caller["sees"], caller.get("name")),
        (&json!("admin"), &json!("all"), None)
    );
    // It is the owner's, and no token of the configuration.
    let known = get(&daemon, "/v1/tokens", &secret).json();
    assert_eq!(known["tokens"].as_array().map(Vec::len), Some(1), "{known}");
    for wrong in [code, "", "0", &secret] {
        let refused = exchange(&daemon, wrong);
        assert_eq!((refused.status, &*refused.problem()), (401, "unauthorized"), "{wrong}");
    }
    done(&scratch, &["reload"]);
    assert_eq!(get(&daemon, "/v1/whoami", &secret).status, 200, "a reload takes it from no browser");
    assert_eq!(get(&daemon, "/v1/whoami", code).status, 401);
    daemon.stop();
    let mut daemon = scratch.serve();
    assert_eq!(get(&daemon, "/v1/whoami", &secret).status, 401, "it ends with its daemon");
    daemon.stop();
}

// contract 7.1: a code is for the owner at the Unix socket, and for JSON that no form of a foreign page can send
#[test]
fn a_code_is_given_to_the_owner_only() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let refused = post(&daemon, "/v1/codes", "");
    assert_eq!((refused.status, &*refused.problem()), (403, "forbidden"));
    let code = code_of(json(&scratch, &["open"])["url"].as_str().expect("an address")).to_owned();
    for (kind, body, status) in [
        ("text/plain", json!({"code": code}).to_string(), 415),
        ("application/json", "{}".to_owned(), 400),
        ("application/json", "[]".to_owned(), 400),
        ("application/json", json!({"code": code, "more": 1}).to_string(), 400),
    ] {
        let answer = Http::on(daemon.connect()).request("POST", "/v1/open", &[("Content-Type", kind)], &body);
        assert_eq!(answer.status, status, "{kind} {body}");
    }
    let foreign = [JSON, ("Origin", "https://evil.test")];
    let body = json!({"code": code}).to_string();
    assert_eq!(Http::on(daemon.connect()).request("POST", "/v1/open", &foreign, &body).status, 403);
    assert_eq!(exchange(&daemon, &code).status, 200, "none of these took it");
    daemon.stop();
}

// contract 7.1: acpd open ID shows one session; a wrong id or no daemon is 4; elsewhere a token is asked for
#[test]
fn a_session_is_opened() {
    let scratch = Scratch::new();
    scratch.config_file();
    assert!(fails(&scratch, 4, &["open"]).contains("`acpd serve` starts one"));
    let mut daemon = scratch.serve();
    let mut client = daemon.over_websocket(&scratch, "/acp");
    client.initialize();
    let id = client.new_session();
    let end = &id[id.len() - 8..];
    let url = done(&scratch, &["open", "--print", end]);
    assert!(url.trim_end().ends_with(&format!("&to=%2Fsessions%2F{id}")), "{url}");
    let elsewhere = daemon.url();
    let url = done(&scratch, &["open", "--print", "--connect", &elsewhere, &id]);
    assert!(url.contains(&format!("{elsewhere}/#/sessions/{id}")) && !url.contains("code="), "{url}");
    fails(&scratch, 4, &["open", "none"]);
    daemon.stop();
}

// inspector: the browser is started with a file of this user's, so that no other user reads the code; without a display the
// address is printed
#[test]
fn the_code_is_in_no_argument() {
    let scratch = Scratch::new();
    scratch.config_file();
    let mut daemon = scratch.serve();
    let bin = scratch.path("bin");
    std::fs::create_dir_all(&bin).expect("a directory");
    let seen = scratch.path("seen");
    let browser = bin.join("xdg-open");
    let script = format!("#!/bin/sh\nprintf '%s' \"$*\" > '{0}.new' && mv '{0}.new' '{0}'\n", seen.display());
    scratch.write_program(&browser, &script);
    let open = |display: &str| {
        let mut command = scratch.command(acpd());
        for word in args(&scratch, &["open"]) {
            command.arg(&*word);
        }
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
        command.env("PATH", path).env("DISPLAY", display).env_remove("WAYLAND_DISPLAY");
        let output = command.output().expect("it starts");
        assert!(output.status.success(), "{output:?}");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        (text(output.stdout), text(output.stderr))
    };
    let (out, err) = open("");
    assert!(out.contains("/#code=") && err.contains("no display"), "{out}{err}");
    let (out, err) = open(":0");
    assert!(out.contains("opened http://") && !out.contains("code="), "{out}{err}");
    let given = until("the browser is started", || std::fs::read_to_string(&seen).ok());
    assert!(given.ends_with("open.html") && !given.contains("code="), "{given}");
    let page = std::fs::read_to_string(&given).expect("the page is there");
    let mode = std::fs::metadata(&given).expect("the page is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let code = page.split("#code=").nth(1).and_then(|rest| rest.split('"').next()).expect("a code");
    let opened: Value = exchange(&daemon, code).json();
    assert!(opened["token"].is_string(), "{opened}");
    daemon.stop();
}
