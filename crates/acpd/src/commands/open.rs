//! `acpd open`: shows a daemon, or one of its sessions, in the browser.
//!
//! The browser is let in by a code that is good once and for a minute. Invariant: the code is in no argument of a process,
//! which others on this machine could read: the browser is given a file of this user's that leads on.

mod browser;

use crate::address::{Address, encoded};
use crate::cli::Open;
use crate::daemon::{Daemon, need_daemon};
use crate::daemon_address;
use crate::exit::Failure;
use crate::streams::{print, print_json, remark};
use http::Method;
use serde::Deserialize;
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// What lets a browser in, once.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Code {
    code: String,
    expires_at: String,
}

pub(crate) async fn open(args: Open) -> Result<(), Failure> {
    let daemon = need_daemon(args.which).await?;
    let session = match &args.id {
        Some(id) => Some(daemon.session(id).await?.session_id),
        None => None,
    };
    let dir = state_dir(&daemon);
    let (page, code) = match dir {
        Some(dir) => (page_of(dir)?, Some(daemon.ask::<Code>(Method::POST, "/v1/codes").await?)),
        None => (daemon.address().to_string(), None),
    };
    let url = address(&page, code.as_ref().map(|code| code.code.as_str()), session.as_deref());
    if args.json {
        let told = json!({"url": url, "expiresAt": code.map(|code| code.expires_at)});
        return print_json(&told.to_string()).map(drop);
    }
    if args.print {
        print(&url)?;
    } else if let Err(why) = browser::show(&url, dir) {
        print(&url)?;
        let within = if code.is_some() { " within a minute, once" } else { "" };
        remark(&format!("{why}; open this address in a browser{within}"));
    } else {
        print(&format!("opened {page} in the browser"))?;
    }
    if code.is_none() {
        remark("it asks for a token there, unless none is needed");
    }
    Ok(())
}

/// The state directory that the daemon serves, if it is one of this machine's.
fn state_dir(daemon: &Daemon) -> Option<&Path> {
    match daemon.address() {
        Address::Local(dir) => Some(dir),
        Address::Unix(socket) => socket.parent(),
        Address::Tcp { .. } => None,
    }
}

/// The address of the pages of the daemon of a state directory, as a browser of this machine reaches it.
fn page_of(state_dir: &Path) -> Result<String, Failure> {
    let noted = daemon_address::of(state_dir);
    noted.map(|url| reachable(&url)).ok_or_else(|| {
        Failure::Failed(format!(
            "the daemon of {} does not say where it listens for browsers; `acpd stop` and `acpd serve` help if it is an \
             earlier version's",
            state_dir.display()
        ))
    })
}

/// An address that stands for all of a machine's is reached by the one of loopback.
fn reachable(url: &str) -> String {
    let Some((scheme, place)) = url.split_once("://") else { return url.to_owned() };
    match place.parse::<SocketAddr>() {
        Ok(at) if at.ip().is_unspecified() => {
            let own: IpAddr =
                if at.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
            format!("{scheme}://{}", SocketAddr::new(own, at.port()))
        }
        _ => url.to_owned(),
    }
}

/// The address that a browser is sent to. What follows on `#` is sent to no server.
fn address(page: &str, code: Option<&str>, session: Option<&str>) -> String {
    let page = page.trim_end_matches('/');
    let to = session.map(|id| format!("/sessions/{}", encoded(id)));
    match (code, to) {
        (Some(code), Some(to)) => format!("{page}/#code={code}&to={}", encoded(&to)),
        (Some(code), None) => format!("{page}/#code={code}"),
        (None, Some(to)) => format!("{page}/#{to}"),
        (None, None) => format!("{page}/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // inspector: acpd open passes the code in the fragment
    #[test]
    fn the_address_leads_to_the_session() {
        for (code, session, expected) in [
            (None, None, "http://h:1/"),
            (None, Some("a/b"), "http://h:1/#/sessions/a%2Fb"),
            (Some("c0de"), None, "http://h:1/#code=c0de"),
            (Some("c0de"), Some("019a"), "http://h:1/#code=c0de&to=%2Fsessions%2F019a"),
        ] {
            assert_eq!(address("http://h:1", code, session), expected);
        }
    }

    // inspector: acpd open opens what acpd serve listens on
    #[test]
    fn all_addresses_are_reached_by_one() {
        for (noted, page) in [
            ("http://127.0.0.1:2273", "http://127.0.0.1:2273"),
            ("http://0.0.0.0:2273", "http://127.0.0.1:2273"),
            ("https://[::]:2273", "https://[::1]:2273"),
            ("https://192.0.2.1:2273", "https://192.0.2.1:2273"),
            ("odd", "odd"),
        ] {
            assert_eq!(reachable(noted), page);
        }
    }
}
