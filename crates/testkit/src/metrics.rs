//! What a daemon counts, for what it tells in no other way.

use crate::clock::until;
use crate::daemon::connect;
use crate::http::Http;
use std::net::SocketAddr;

/// Waits until a series of `/metrics` has this value.
///
/// # Panics
/// When it does not come to it.
pub fn until_counted(daemon: SocketAddr, series: &str, value: u64) {
    let line = format!("{series} {value}");
    let mut http = Http::on(connect(daemon));
    until(&line, || {
        let text = http.request("GET", "/metrics", &[], "").body;
        String::from_utf8_lossy(&text).lines().any(|counted| counted == line).then_some(())
    });
}

/// Waits until a daemon says that a reader over this transport has stalled.
///
/// # Panics
/// When it does not.
pub fn until_stalled(daemon: SocketAddr, transport: &str) {
    until_counted(daemon, &format!("acpd_viewer_stalls_total{{transport=\"{transport}\"}}"), 1);
}
