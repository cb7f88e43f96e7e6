//! `GET /` for those who click the address that `acpd serve` prints.

use crate::door::{entry, plain};
use acpd_e2e::Scratch;

const BROWSER: (&str, &str) = ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");

// contract 6, SC-1, SC-2: a page without a token and without a script, for browsers that call acpd by a name it has; all
// others are answered as anywhere
#[test]
fn a_browser_gets_a_page_that_tells_nothing() {
    let scratch = Scratch::new().config(&entry("root", "scope = \"admin\""));
    let mut daemon = scratch.serve();
    let page = plain(&daemon, "GET", "/", &[BROWSER]);
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(
        page.header("content-security-policy").is_some_and(|policy| policy.contains("default-src 'none'"))
    );
    let text = String::from_utf8(page.body).expect("text");
    assert!(!text.contains("<script") && !text.contains("javascript:"), "{text}");
    let mut links = 0;
    for link in text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        let status = plain(&daemon, "GET", link, &[]).status;
        let is_open = ["/v1/health", "/v1/ready"].contains(&link);
        assert_eq!(status, if is_open { 200 } else { 401 }, "{link}");
        links += 1;
    }
    assert_eq!(links, 5);
    for accept in
        [&[][..], &[("Accept", "*/*")], &[("Accept", "application/json")], &[("Accept", "text/html;q=0")]]
    {
        let refused = plain(&daemon, "GET", "/", accept);
        assert_eq!((refused.status, &*refused.problem()), (401, "unauthorized"), "{accept:?}");
    }
    assert_eq!(plain(&daemon, "POST", "/", &[BROWSER]).status, 401);
    assert_eq!(plain(&daemon, "GET", "/v1/sessions", &[BROWSER]).status, 401);
    for foreign in [("Host", "evil.test"), ("Origin", "https://evil.test")] {
        assert_eq!(plain(&daemon, "GET", "/", &[BROWSER, foreign]).status, 403, "{foreign:?}");
    }
    daemon.stop();
    let open = Scratch::new();
    let mut daemon = open.serve();
    let nothing = plain(&daemon, "GET", "/", &[]);
    assert_eq!((nothing.status, &*nothing.problem()), (404, "not_found"));
    assert_eq!(plain(&daemon, "GET", "/", &[BROWSER]).status, 200);
    daemon.stop();
}
