//! Where a daemon is: a URL, or the socket of the local one.

use acpd_gateway::local_socket_path;
use http::Uri;
use http::uri::{Authority, Scheme};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::fmt;
use std::path::PathBuf;
use thiserror::Error;

/// Why a text names no daemon.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum AddressError {
    /// It is no URL.
    #[error("this is no URL; write http://HOST:PORT, https://HOST:PORT or unix:PATH")]
    NoUrl,
    /// A URL of another kind.
    #[error("a daemon is reached by http:, https: or unix:, not by \"{0}:\"")]
    Scheme(String),
    /// `user:password@`, a query or a fragment.
    #[error(
        "a daemon's URL has a host, a port and perhaps a path; a token goes into ACPD_TOKEN or --token-file"
    )]
    TooMuch,
    /// `unix:` and nothing.
    #[error("a path has to follow on \"unix:\"")]
    NoPath,
    /// A colon behind the host, and no port.
    #[error("the port has to be a number from 1 to 65535")]
    Port,
}

/// The port of a URL's host, if it has one.
///
/// # Errors
/// When it is none: [`Uri`] takes anything that looks like one.
pub(crate) fn port_of(authority: &Authority) -> Result<Option<u16>, AddressError> {
    match authority.port() {
        Some(port) if port.as_u16() > 0 => Ok(Some(port.as_u16())),
        None if authority.as_str().ends_with(authority.host()) => Ok(None),
        _ => Err(AddressError::Port),
    }
}

/// True for the part of a URL that names a host, perhaps with a port, and no user.
pub(crate) fn is_host_and_port(text: &str) -> bool {
    let authority =
        Some(text).filter(|text| !text.contains('@')).and_then(|text| text.parse::<Authority>().ok());
    authority.is_some_and(|authority| !authority.host().is_empty() && port_of(&authority).is_ok())
}

/// The address of a daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// By TCP.
    Tcp {
        /// A name or an IP address, without brackets.
        host: String,
        /// The port.
        port: u16,
        /// Whether TLS is spoken.
        tls: bool,
        /// What all paths begin with, for a daemon behind a proxy; without a slash at its end.
        base: String,
    },
    /// By a Unix socket.
    Unix(PathBuf),
    /// The daemon that serves this state directory, by its Unix socket.
    Local(PathBuf),
}

impl Address {
    /// Reads `http://HOST:PORT`, `https://HOST:PORT` or `unix:PATH`.
    ///
    /// # Errors
    /// What is wrong with it. What was written is not repeated: it may hold a password.
    pub(crate) fn parse(text: &str) -> Result<Self, AddressError> {
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return match path {
                "" => Err(AddressError::NoPath),
                path => Ok(Self::Unix(path.into())),
            };
        }
        if text.contains('#') {
            return Err(AddressError::TooMuch);
        }
        let uri: Uri = text.parse().map_err(|_| AddressError::NoUrl)?;
        let tls = match uri.scheme() {
            None => return Err(AddressError::NoUrl),
            Some(scheme) if *scheme == Scheme::HTTP => false,
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            Some(other) => return Err(AddressError::Scheme(other.as_str().chars().take(20).collect())),
        };
        let authority = uri.authority().ok_or(AddressError::NoUrl)?;
        if authority.as_str().contains('@') || uri.query().is_some() {
            return Err(AddressError::TooMuch);
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(AddressError::NoUrl);
        }
        let port = port_of(authority)?.unwrap_or(if tls { 443 } else { 80 });
        let base = uri.path().trim_end_matches('/').to_owned();
        Ok(Self::Tcp { host: host.to_owned(), port, tls, base })
    }

    /// Whether it is this machine for certain: no wire carries what is said.
    pub(crate) fn is_here(&self) -> bool {
        match self {
            Self::Unix(_) | Self::Local(_) => true,
            Self::Tcp { host, .. } => {
                host.eq_ignore_ascii_case("localhost")
                    || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
            }
        }
    }

    /// The address of a node of a fleet, as others of its nodes reach it: the tokens of callers go there.
    ///
    /// # Errors
    /// In words, when it is no URL of one, or tokens would go over a network as they are.
    pub(crate) fn of_node(text: &str) -> Result<Self, String> {
        let address = Self::parse(text).map_err(|error| error.to_string())?;
        match &address {
            Self::Tcp { tls, .. } if *tls || address.is_here() => Ok(address),
            Self::Tcp { .. } => {
                Err("beyond loopback nodes speak https: tokens would go over the network as they are"
                    .to_owned())
            }
            Self::Unix(_) | Self::Local(_) => {
                Err("other nodes need a URL such as https://HOST:PORT".to_owned())
            }
        }
    }

    /// What a request's `Host` header says.
    pub(crate) fn authority(&self) -> String {
        match self {
            Self::Tcp { host, port, .. } if host.contains(':') => format!("[{host}]:{port}"),
            Self::Tcp { host, port, .. } => format!("{host}:{port}"),
            Self::Unix(_) | Self::Local(_) => "localhost".to_owned(),
        }
    }

    /// The path of a request.
    pub(crate) fn path(&self, path: &str) -> String {
        match self {
            Self::Tcp { base, .. } => format!("{base}{path}"),
            Self::Unix(_) | Self::Local(_) => path.to_owned(),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { tls, base, .. } => {
                let scheme = if *tls { "https" } else { "http" };
                write!(f, "{scheme}://{}{base}", self.authority())
            }
            Self::Unix(path) => write!(f, "{}", path.display()),
            Self::Local(dir) => write!(f, "{}", local_socket_path(dir).display()),
        }
    }
}

/// What stays as it is in a part of a path or query.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'~').remove(b'.');

/// One part of a path or query, with all that could mean something in a URL replaced.
pub(crate) fn encoded(part: &str) -> String {
    match part {
        // Clients and proxies take them out as they are.
        "." | ".." => part.replace('.', "%2E"),
        part => utf8_percent_encode(part, PLAIN).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 6: --connect URL
    #[test]
    fn addresses_are_read_and_shown() {
        for (text, shown, host) in [
            ("http://127.0.0.1:2273", "http://127.0.0.1:2273", "127.0.0.1:2273"),
            ("http://127.0.0.1:2273/", "http://127.0.0.1:2273", "127.0.0.1:2273"),
            ("http://localhost", "http://localhost:80", "localhost:80"),
            ("HTTPS://Host.example/agents/", "https://Host.example:443/agents", "Host.example:443"),
            ("http://[::1]:7", "http://[::1]:7", "[::1]:7"),
            ("unix:/run/acpd.sock", "/run/acpd.sock", "localhost"),
            ("unix:///run/acpd.sock", "/run/acpd.sock", "localhost"),
        ] {
            let address = Address::parse(text).expect(text);
            assert_eq!((address.to_string().as_str(), address.authority().as_str()), (shown, host));
        }
        let behind_a_proxy = Address::parse("https://h/agents/").expect("a URL");
        assert_eq!(behind_a_proxy.path("/v1/health"), "/agents/v1/health");
    }

    // contract 6: what is no address is a usage error, and a password in it is not repeated
    #[test]
    fn wrong_addresses_are_refused() {
        for (text, error) in [
            ("", AddressError::NoUrl),
            ("localhost:2273", AddressError::NoUrl),
            ("/run/acpd.sock", AddressError::NoUrl),
            ("http://", AddressError::NoUrl),
            ("http://h:port", AddressError::Port),
            ("http://h:", AddressError::Port),
            ("http://h:99999", AddressError::Port),
            ("https://[::1]:0/base", AddressError::Port),
            ("ws://h", AddressError::Scheme("ws".to_owned())),
            ("http://me:secret@h", AddressError::TooMuch),
            ("http://h/?token=secret", AddressError::TooMuch),
            ("http://h/#secret", AddressError::TooMuch),
            ("unix:", AddressError::NoPath),
        ] {
            let refused = Address::parse(text).expect_err(text);
            assert!(refused == error && !refused.to_string().contains("secret"), "{text}: {refused}");
        }
    }

    #[test]
    fn only_loopback_and_sockets_are_here() {
        for (text, here) in [
            ("unix:/s", true),
            ("http://localhost:1", true),
            ("http://127.9.9.9:1", true),
            ("http://[::1]:1", true),
            ("http://10.0.0.1:1", false),
            ("http://localhost.example:1", false),
            // Names and numbers that may be loopback, or may not: who resolves them says.
            ("http://0.0.0.0:1", false),
            ("http://127.1:1", false),
            ("http://2130706433:1", false),
            ("http://0x7f000001:1", false),
            ("http://[::ffff:127.0.0.1]:1", false),
            ("http://[::]:1", false),
            ("http://localhost.:1", false),
            ("http://127.0.0.1.example:1", false),
        ] {
            assert_eq!(Address::parse(text).expect(text).is_here(), here, "{text}");
        }
    }

    #[test]
    fn nothing_in_a_part_means_anything_in_a_url() {
        assert_eq!(encoded("a-Z_0~9.b"), "a-Z_0~9.b");
        assert_eq!(encoded("../x?y#z%é"), "..%2Fx%3Fy%23z%25%C3%A9");
        assert_eq!(encoded(".."), "%2E%2E");
    }
}
