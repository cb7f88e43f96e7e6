//! How an engine is reached, and whether it can be used: servers that are new enough, streams that are there.
//!
//! Not here: what becomes of a connection that is lost, which the client makes again by itself.

use crate::archive::Archive;
use crate::credentials::Credentials;
use crate::entries::Bucket;
use crate::link::{HEADERS, Link};
use crate::settings::NatsSettings;
use crate::streams;
use acpd_fleet::{EngineError, MOST_BYTES};
use async_nats::jetstream::stream::Config;
use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, ServerAddr};
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::watch;
use tracing::{debug, info, warn};

/// The first version whose entries say that they have left by their age.
const OLDEST: (u32, u32) = (2, 11);

/// The smallest messages that a server may take: entries are shorter than half of it.
const SMALLEST: usize = 16 * 1024;

/// How long between two tries to reach a server again, once some have failed.
const BETWEEN_TRIES: Duration = Duration::from_secs(1);

/// Why an engine over NATS cannot be used.
#[derive(Debug, Error)]
pub enum NatsError {
    /// An address that is none, or no address at all.
    #[error("\"{0}\" is no address of a NATS server: write nats://HOST:PORT or tls://HOST:PORT")]
    Address(String),
    /// A prefix that cannot stand in the names of streams and subjects.
    #[error("\"{}\" is no prefix: use up to 32 letters, digits, dashes and underscores", .0.escape_debug())]
    Prefix(String),
    /// A lease or an age that the servers do not keep.
    #[error("{what} of {length:?} is too short: at least {least:?}")]
    TooShort {
        /// What it is of.
        what: &'static str,
        /// How long it is.
        length: Duration,
        /// How long it has to be.
        least: Duration,
    },
    /// The file with credentials cannot be used.
    #[error("cannot use the credentials in {}", file.display())]
    Credentials {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        source: io::Error,
    },
    /// No server is there, or none lets this node in.
    #[error("no NATS server can be used: {source}")]
    Connect {
        /// What the client says.
        source: async_nats::ConnectError,
    },
    /// No server has answered in time.
    #[error("no NATS server has answered in {0:?}")]
    Silent(Duration),
    /// The server is older than what a fleet needs.
    #[error("the NATS server is of version {version}; a fleet needs {}.{} or newer", OLDEST.0, OLDEST.1)]
    TooOld {
        /// Its version.
        version: String,
    },
    /// The server takes only messages that are too short.
    #[error(
        "the NATS server takes messages of {bytes} bytes at most; a fleet needs {SMALLEST}, better 1 MiB: raise `max_payload` in its \
         configuration"
    )]
    TooSmall {
        /// The most bytes of a message.
        bytes: usize,
    },
    /// A stream of the fleet's name is there, but not the fleet's.
    #[error("the stream {stream} cannot be used: {why}")]
    Unusable {
        /// Its name.
        stream: String,
        /// What is wrong with it.
        why: String,
    },
    /// A stream can neither be found nor made.
    #[error("the stream {stream} is not to be had: {source}")]
    Engine {
        /// Its name.
        stream: String,
        /// What the servers say.
        source: EngineError,
    },
}

impl NatsError {
    pub(crate) fn unusable(stream: &Config, why: &str) -> Self {
        Self::Unusable { stream: stream.name.clone(), why: why.to_owned() }
    }

    /// Whether it may be otherwise in a while, with the same settings.
    pub fn is_temporary(&self) -> bool {
        use ConnectErrorKind::{Dns, Io, TimedOut};
        match self {
            Self::Connect { source } => matches!(source.kind(), Dns | Io | TimedOut),
            Self::Engine { source, .. } => matches!(source, EngineError::Unavailable(_)),
            Self::Silent(_) => true,
            _ => false,
        }
    }
}

/// What a connection is used for.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) link: Link,
    pub(crate) nodes: Bucket,
    pub(crate) sessions: Bucket,
    pub(crate) archive: Archive,
}

/// Connects, and finds or makes what a fleet has there. Each step ends within the settings' patience.
pub(crate) async fn connect(settings: &NatsSettings) -> Result<Parts, NatsError> {
    check(settings)?;
    let link = link(settings).await?;
    let prefix = &settings.prefix;
    let nodes = Bucket::new(link.clone(), prefix, "nodes");
    let sessions = Bucket::new(link.clone(), prefix, "sessions");
    let archive = Archive::new(link.clone(), prefix);
    for stream in [
        streams::bucket(nodes.stream(), &nodes.root(), Some(settings.lease)),
        streams::bucket(sessions.stream(), &sessions.root(), None),
        streams::archive(archive.stream(), archive.root(), settings),
    ] {
        let ensured = streams::ensure(&link, &stream, settings.replicas);
        let ensured = tokio::time::timeout(settings.patience, ensured).await;
        ensured.unwrap_or(Err(NatsError::Silent(settings.patience)))?;
    }
    Ok(Parts { link, nodes, sessions, archive })
}

fn check(settings: &NatsSettings) -> Result<(), NatsError> {
    let prefix = &settings.prefix;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !(1..=32).contains(&prefix.len()) || !prefix.bytes().all(is_plain) {
        return Err(NatsError::Prefix(prefix.clone()));
    }
    // The server looks that often at most, and takes no shorter age of a message.
    let least = Duration::from_secs(1);
    for (what, length) in [("a lease", settings.lease), ("an archive", settings.archive_age)] {
        if length < least {
            return Err(NatsError::TooShort { what, length, least });
        }
    }
    Ok(())
}

async fn link(settings: &NatsSettings) -> Result<Link, NatsError> {
    let (is_lost, connection) = watch::channel(false);
    let client = client(settings, is_lost).await?;
    let version = client.server_info().version;
    if !is_new_enough(&version) {
        return Err(NatsError::TooOld { version });
    }
    check_payload(client.max_payload())?;
    Ok(Link { client, patience: settings.patience, is_lost: connection })
}

/// Whether messages of so many bytes will do.
fn check_payload(bytes: usize) -> Result<(), NatsError> {
    if bytes < SMALLEST {
        return Err(NatsError::TooSmall { bytes });
    }
    if bytes < MOST_BYTES + HEADERS {
        warn!(
            max_payload = bytes,
            "the NATS server takes short messages only: the archive is cut into small pieces, and is slower; raise max_payload in its \
             configuration to 1 MiB"
        );
    }
    Ok(())
}

/// The client asks this by a regular expression, of which there is to be none (docs/adr/0028).
fn is_new_enough(version: &str) -> bool {
    let mut numbers = version.trim_start_matches('v').split('.').map_while(|number| number.parse().ok());
    numbers.next().zip(numbers.next()).is_some_and(|version| version >= OLDEST)
}

async fn client(settings: &NatsSettings, is_lost: watch::Sender<bool>) -> Result<Client, NatsError> {
    let addresses =
        settings.urls.iter().map(|url| address(url).ok_or_else(|| NatsError::Address(url.clone())));
    let addresses = addresses.collect::<Result<Vec<ServerAddr>, _>>()?;
    if addresses.is_empty() {
        return Err(NatsError::Address(String::new()));
    }
    let options = ConnectOptions::new()
        .name("acpd")
        // One that takes connections and then says nothing leaves time for two others.
        .connection_timeout(settings.patience / 3)
        // One that stopped answering is left after three of them.
        .ping_interval(settings.patience / 2)
        .reconnect_delay_callback(|tries| match tries {
            0 | 1 => Duration::ZERO,
            tries => BETWEEN_TRIES.min(Duration::from_millis(20) * u32::try_from(tries).unwrap_or(u32::MAX)),
        })
        .event_callback(move |event| {
            tell(&event);
            let is_now = match event {
                Event::Connected => Some(false),
                Event::Disconnected => Some(true),
                _ => None,
            };
            // The first connection, which is told when it is used already, is no change.
            is_lost.send_if_modified(|was| is_now.is_some_and(|is| std::mem::replace(was, is) != is));
            std::future::ready(())
        });
    let options = secure(options, settings).await?;
    match tokio::time::timeout(settings.patience, options.connect(addresses)).await {
        Ok(connected) => connected.map_err(|source| NatsError::Connect { source }),
        Err(_) => Err(NatsError::Silent(settings.patience)),
    }
}

/// Where a server is. A name beyond ASCII would be escaped, be found by nobody and be tried again for ever.
fn address(url: &str) -> Option<ServerAddr> {
    url.parse().ok().filter(|server: &ServerAddr| !server.host().contains('%'))
}

async fn secure(mut options: ConnectOptions, settings: &NatsSettings) -> Result<ConnectOptions, NatsError> {
    if let Some(tls) = &settings.tls {
        options = options.require_tls(true);
        if let Some(ca) = &tls.ca {
            options = options.add_root_certificates(ca.clone());
        }
        if let Some((certificate, key)) = &tls.identity {
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
    }
    match &settings.credentials {
        None => Ok(options),
        Some(file) => match Credentials::read(file).await {
            Ok(credentials) => Ok(credentials.shown_by(options)),
            Err(source) => Err(NatsError::Credentials { file: file.clone(), source }),
        },
    }
}

fn tell(event: &Event) {
    match event {
        Event::Connected => info!("the fleet's engine is connected"),
        Event::Disconnected => warn!("the fleet's engine is not connected"),
        // While there is no connection, one each second.
        other => debug!("the fleet's engine: {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.2: what is no address is refused; names beyond ASCII are written in Punycode (docs/adr/0028)
    #[test]
    fn an_address_has_a_name_in_ascii() {
        let plain = [
            "nats://a.example:4222",
            "tls://127.0.0.1:4222",
            "nats://[::1]:4222",
            "nats://xn--bcher-kva.example:4222",
            "a.example",
        ];
        for url in plain {
            assert!(address(url).is_some(), "{url}");
        }
        for scheme in ["nats", "tls", "ws", "wss"] {
            for name in ["b\u{fc}cher.example", "\u{ff41}.example", "b%C3%BCcher.example", "a\u{ad}b.example"]
            {
                let url = format!("{scheme}://{name}:4222");
                assert_eq!(address(&url), None, "{url}");
            }
        }
        assert_eq!(address("b\u{fc}cher.example"), None);
        assert_eq!(address("http://a.example"), None);
    }

    // design fleet: what a server takes is looked at, and too little is said
    #[test]
    fn messages_may_be_too_short() {
        for (bytes, will_do) in
            [(1 << 20, true), (64 * 1024, true), (SMALLEST, true), (SMALLEST - 1, false), (0, false)]
        {
            assert_eq!(check_payload(bytes).is_ok(), will_do, "{bytes}");
        }
        let error = check_payload(4096).expect_err("it is too little").to_string();
        assert!(error.contains("4096 bytes") && error.contains("max_payload"), "{error}");
    }

    // design fleet: a server has to be of 2.11 at least
    #[test]
    fn a_version_is_compared_by_its_numbers() {
        for new in ["2.11.0", "v2.11.3", "2.12.0-beta.1", "2.100.0", "3.0.0", "10.0"] {
            assert!(is_new_enough(new), "{new}");
        }
        for old in ["2.10.29", "1.99.0", "2", "", "new"] {
            assert!(!is_new_enough(old), "{old}");
        }
    }
}
