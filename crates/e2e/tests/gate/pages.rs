//! The inspector's pages, as a browser gets them.

use crate::door::{entry, plain};
use acpd_e2e::{Answer, Daemon, Scratch, acpd};

const BROWSER: [(&str, &str); 2] = [
    ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    ("Accept-Encoding", "gzip, deflate, br"),
];

/// The scripts and styles that the first page names.
fn loaded(page: &Answer) -> Vec<String> {
    let text = String::from_utf8(page.body.clone()).expect("text");
    let quoted = text.split('"').filter(|part| part.starts_with("/assets/"));
    quoted.map(str::to_owned).collect()
}

fn get(daemon: &Daemon, path: &str, more: &[(&str, &str)]) -> Answer {
    let headers: Vec<_> = BROWSER.into_iter().chain(more.iter().copied()).collect();
    plain(daemon, "GET", path, &headers)
}

// contract 6, SC-1, SC-2: GET / is the inspector, for browsers that call acpd by a name it has; it needs no token, and all
// others are answered as anywhere
#[test]
fn a_browser_gets_the_inspector_without_a_token() {
    let scratch = Scratch::new().config(&entry("root", "scope = \"admin\""));
    let mut daemon = scratch.serve();
    let page = get(&daemon, "/", &[]);
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let loaded = loaded(&page);
    assert!(loaded.iter().any(|path| path.ends_with(".js")), "{loaded:?}");
    for path in &loaded {
        assert_eq!(get(&daemon, path, &[]).status, 200, "{path}");
    }
    assert_eq!(get(&daemon, "/assets/none.js", &[]).status, 401);
    for accept in
        [&[][..], &[("Accept", "*/*")], &[("Accept", "application/json")], &[("Accept", "text/html;q=0")]]
    {
        let refused = plain(&daemon, "GET", "/", accept);
        assert_eq!((refused.status, &*refused.problem()), (401, "unauthorized"), "{accept:?}");
    }
    assert_eq!(plain(&daemon, "POST", "/", &BROWSER).status, 401);
    assert_eq!(get(&daemon, "/v1/sessions", &[]).status, 401);
    for foreign in [("Host", "evil.test"), ("Origin", "https://evil.test")] {
        assert_eq!(get(&daemon, "/", &[foreign]).status, 403, "{foreign:?}");
        assert_eq!(get(&daemon, &loaded[0], &[foreign]).status, 403, "{foreign:?}");
    }
    daemon.stop();
    let open = Scratch::new();
    let mut daemon = open.serve();
    let nothing = plain(&daemon, "GET", "/", &[]);
    assert_eq!((nothing.status, &*nothing.problem()), (404, "not_found"));
    assert_eq!(get(&daemon, "/", &[]).status, 200);
    daemon.stop();
}

// inspector: strong tags, immutable hashed names, compressed as it lies there, and a policy that lets nothing else in
#[test]
fn pages_are_kept_and_let_nothing_in() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let first = get(&daemon, "/", &[]);
    assert_eq!(first.header("cache-control"), Some("no-cache"));
    let loaded = loaded(&first);
    let script = loaded.iter().find(|path| path.ends_with(".js")).expect("a script");
    let page = get(&daemon, script, &[]);
    assert_eq!(page.header("content-type"), Some("text/javascript; charset=utf-8"));
    assert_eq!(page.header("content-encoding"), Some("gzip"));
    assert_eq!(page.header("cache-control"), Some("public, max-age=31536000, immutable"));
    assert!(page.body.starts_with(&[0x1f, 0x8b]));
    for page in [&first, &page] {
        let policy = page.header("content-security-policy").expect("a policy");
        for rule in ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"]
        {
            assert!(policy.contains(rule), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
        assert!(page.header("vary").is_some_and(|vary| vary.contains("Accept-Encoding")));
    }
    for (path, page) in [("/", &first), (script.as_str(), &page)] {
        let etag = page.header("etag").expect("a tag");
        assert!(etag.starts_with('"'), "{etag}");
        let same = get(&daemon, path, &[("If-None-Match", etag)]);
        assert_eq!((same.status, same.body.len(), same.header("etag")), (304, 0, Some(etag)));
        assert_eq!(get(&daemon, path, &[("If-None-Match", "\"other\"")]).status, 200);
    }
    let refused = plain(&daemon, "GET", script, &[("Accept-Encoding", "identity")]);
    assert_eq!((refused.status, &*refused.problem()), (406, "not_acceptable"));
    daemon.stop();
}

// inspector: ACPD_WEB_DIR serves a folder while developing; one without pages is named at the start
#[test]
fn a_directory_of_pages_is_served() {
    let scratch = Scratch::new();
    let web = scratch.path("web");
    std::fs::create_dir_all(&web).expect("a directory");
    let with_pages = || {
        let mut command = scratch.command(acpd());
        command.env("ACPD_WEB_DIR", &web);
        command
    };
    let mut command = with_pages();
    let refused = command.arg("serve").arg("--state-dir").arg(scratch.state()).output().expect("it starts");
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("ACPD_WEB_DIR=") && stderr.contains("npm run build"), "{stderr}");
    std::fs::write(web.join("index.html"), "<p>mine</p>").expect("written");
    let mut daemon = scratch.serve_by(with_pages(), "127.0.0.1:0");
    assert_eq!(get(&daemon, "/", &[]).body, b"<p>mine</p>");
    std::fs::write(web.join("index.html"), "<p>again</p>").expect("written");
    assert_eq!(get(&daemon, "/", &[]).body, b"<p>again</p>");
    assert_eq!(get(&daemon, "/../config.toml", &[]).status, 404);
    daemon.stop();
}
