//! `[fleet]`: the fleet that this daemon is a node of.

use super::amounts::{bounded, span};
#[cfg(test)]
use super::described::{Place, Span};
use super::sections::Timeouts;
use super::values::{file, labels, text};
use crate::address::{Address, is_host_and_port};
use acpd_fleet::{Lease, NodeName};
use acpd_record::Partition;
use serde::de::Deserializer;
use serde::{Deserialize, Serialize, Serializer};
use std::num::NonZeroU8;
use std::path::PathBuf;
use std::time::Duration;

/// `[fleet]`
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Fleet {
    /// The NATS servers of the fleet, as URLs with commas between them: `nats://HOST:PORT`, or `tls://HOST:PORT`. Without, the
    /// daemon is in no fleet. Default none.
    #[serde(deserialize_with = "servers")]
    pub url: Option<String>,
    /// What this node is called: unique in the fleet, up to 64 letters, digits, dashes and underscores. Required with `url`.
    #[serde(deserialize_with = "node")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub node: Option<NodeName>,
    /// What the names of the fleet's buckets, streams and subjects begin with, so that fleets can share a server. Letters, digits,
    /// dashes and underscores. Default `acpd`.
    #[serde(deserialize_with = "prefix")]
    pub prefix: String,
    /// A file with credentials for the NATS servers, as `nsc` writes it. `~/` is the home directory, and a relative path begins at the
    /// file's directory. Default none.
    #[serde(deserialize_with = "file")]
    #[cfg_attr(test, schemars(with = "Option<Place>"))]
    pub credentials: Option<PathBuf>,
    /// A PEM file with the certificates to trust for the NATS servers. Default those of the system.
    #[serde(deserialize_with = "file")]
    #[cfg_attr(test, schemars(with = "Option<Place>"))]
    pub tls_ca: Option<PathBuf>,
    /// A PEM file with the certificate by which this node says to the NATS servers who it is; with `tls_key`. Default none.
    #[serde(deserialize_with = "file")]
    #[cfg_attr(test, schemars(with = "Option<Place>"))]
    pub tls_cert: Option<PathBuf>,
    /// A PEM file with the private key of `tls_cert`. Default none.
    #[serde(deserialize_with = "file")]
    #[cfg_attr(test, schemars(with = "Option<Place>"))]
    pub tls_key: Option<PathBuf>,
    /// The URL by which other nodes reach this one, such as `https://10.0.0.5:2273`; beyond loopback it is https. Default: where
    /// the daemon listens, on loopback.
    #[serde(deserialize_with = "own_address")]
    pub address: Option<String>,
    /// A PEM file with the certificates to trust for other nodes, or `system` for all that the system trusts: the tokens of callers go to
    /// whoever shows such a certificate. Required with an `address` beyond loopback; without, no node beyond loopback is reached. Default none.
    #[serde(deserialize_with = "peer_ca")]
    #[cfg_attr(test, schemars(with = "Option<Place>"))]
    pub peer_ca: Option<PeerCa>,
    /// What this node has, for requests that want it: words such as `gpu`. Default none.
    #[serde(deserialize_with = "labels")]
    pub labels: Vec<String>,
    /// How often this node says that it is there: a duration. Default 5 s.
    #[serde(deserialize_with = "bounded", serialize_with = "span")]
    #[cfg_attr(test, schemars(with = "Span"))]
    pub heartbeat: Duration,
    /// How long that counts: a node that was not heard for longer is shown as gone. At least three heartbeats, and the same on all
    /// nodes. Default 20 s.
    #[serde(deserialize_with = "bounded", serialize_with = "span")]
    #[cfg_attr(test, schemars(with = "Span"))]
    pub lease: Duration,
    /// How many of the NATS servers have a copy of what the fleet stores, 1 to 5. Default 3, or as many servers as there are.
    #[cfg_attr(test, schemars(with = "Option<u8>", range(min = 1, max = 5)))]
    pub replicas: Option<NonZeroU8>,
    /// What becomes of sessions of this node when the others do not hear it, unless a session says otherwise: `local`, they belong to
    /// it and go on; `failover`, they end in time and another node takes them up. Default `local`.
    pub partition: Partition,
}

/// By which certificates other nodes are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerCa {
    /// All that the system trusts.
    System,
    /// Those in this file.
    File(PathBuf),
}

/// The word for all that the system trusts.
const SYSTEM: &str = "system";

impl Serialize for PeerCa {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::System => SYSTEM.serialize(serializer),
            Self::File(file) => file.serialize(serializer),
        }
    }
}

impl Default for Fleet {
    fn default() -> Self {
        Self {
            url: None,
            node: None,
            prefix: "acpd".to_owned(),
            credentials: None,
            tls_ca: None,
            tls_cert: None,
            tls_key: None,
            address: None,
            peer_ca: None,
            labels: Vec::new(),
            heartbeat: Duration::from_secs(5),
            lease: Duration::from_secs(20),
            replicas: None,
            partition: Partition::default(),
        }
    }
}

impl Fleet {
    /// The files that it names.
    pub(super) fn files(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let Self { credentials, tls_ca, tls_cert, tls_key, peer_ca, .. } = self;
        let of_peers = match peer_ca {
            Some(PeerCa::File(file)) => Some(file),
            None | Some(PeerCa::System) => None,
        };
        [credentials, tls_ca, tls_cert, tls_key].into_iter().flatten().chain(of_peers)
    }

    /// Those that are named, by their keys.
    pub(crate) fn named_files(&self) -> impl Iterator<Item = (&'static str, &PathBuf)> {
        let Self { credentials, tls_ca, tls_cert, tls_key, peer_ca, .. } = self;
        let of_peers = match peer_ca {
            Some(PeerCa::File(file)) => Some(file),
            None | Some(PeerCa::System) => None,
        };
        let keys = ["credentials", "tls_ca", "tls_cert", "tls_key", "peer_ca"];
        let files =
            [credentials, tls_ca, tls_cert, tls_key].map(Option::as_ref).into_iter().chain([of_peers]);
        keys.into_iter().zip(files).filter_map(|(key, file)| Some((key, file?)))
    }

    /// How long a node counts as being there.
    pub(crate) fn lease(&self) -> Option<Lease> {
        Lease::new(self.heartbeat, self.lease)
    }

    /// Why no other node can take up sessions of a daemon with these timeouts, if none can: they might run on two nodes.
    pub(crate) fn no_failover(&self, timeouts: &Timeouts) -> Option<String> {
        let lease = self.lease()?;
        let graces = timeouts.stdin_grace + timeouts.term_grace;
        let room = lease.to_end().saturating_sub(lease.to_begin());
        (graces > room).then(|| {
            // A third and a tenth of what is missing.
            let longer = self.lease + (graces - room) * 30 / 13 + Duration::from_secs(1);
            format!(
                "failover needs agents that end before another node takes their sessions up: \"stdin_grace\" and \"term_grace\" in \
                 [timeouts] are {graces:?} together, and \"heartbeat\" and \"lease\" in [fleet] leave {room:.1?}; lower those, or raise \
                 \"lease\" to {} s",
                longer.as_secs()
            )
        })
    }

    /// The first key that does not go together with the others, and what to do.
    pub(super) fn contradiction(&self) -> Option<(&'static str, &'static str)> {
        let is_used = *self != Self::default();
        if is_used && self.url.is_none() {
            return Some((
                "url",
                "[fleet] needs \"url\", the NATS servers of the fleet; leave out the section for a daemon of its own",
            ));
        }
        if self.url.is_some() && self.node.is_none() {
            return Some(("node", "[fleet] needs \"node\", what this daemon is called in it"));
        }
        let is_beyond = |address: &String| Address::parse(address).is_ok_and(|address| !address.is_here());
        if self.peer_ca.is_none() && self.address.as_ref().is_some_and(is_beyond) {
            return Some((
                "peer_ca",
                "[fleet] needs \"peer_ca\" with an \"address\" beyond loopback, by which the certificates of other nodes are checked: the tokens \
                 of callers go there; name a PEM file with the authority of the nodes, or give \"system\" to trust all that the system trusts",
            ));
        }
        if self.lease().is_none() {
            return Some((
                "lease",
                "\"lease\" in [fleet] has to be at least three times \"heartbeat\", which is not zero",
            ));
        }
        if self.tls_cert.is_some() != self.tls_key.is_some() {
            return Some((
                "tls_cert",
                "\"tls_cert\" and \"tls_key\" in [fleet] go together; set both, or none",
            ));
        }
        if self.replicas.is_some_and(|replicas| replicas.get() > 5) {
            return Some(("replicas", "\"replicas\" in [fleet]: 1 to 5 copies are kept"));
        }
        None
    }
}

fn servers<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    text(from, "the URLs of NATS servers", |text| {
        let is_one = |url: &str| {
            let rest = url.strip_prefix("nats://").or_else(|| url.strip_prefix("tls://"));
            rest.is_some_and(is_host_and_port)
        };
        // What is wrong is not repeated: it may hold a password.
        match text.split(',').all(|url| is_one(url.trim())) {
            true => Ok(Some(text.to_owned())),
            false => Err("not NATS servers; write nats://HOST:PORT or tls://HOST:PORT, with commas between several, and a user's \
                          name or token into \"credentials\""
                .to_owned()),
        }
    })
}

fn node<'de, D: Deserializer<'de>>(from: D) -> Result<Option<NodeName>, D::Error> {
    text(from, "the name of a node", |text| {
        NodeName::try_from(text.to_owned()).map(Some).map_err(|error| error.to_string())
    })
}

fn prefix<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    text(from, "a prefix such as \"acpd\"", |text| match NodeName::try_from(text.to_owned()) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err("not a prefix: use up to 64 letters, digits, dashes and underscores".to_owned()),
    })
}

fn own_address<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    text(from, "the URL of this daemon", |text| {
        Address::of_node(text).map(|address| Some(address.to_string()))
    })
}

fn peer_ca<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PeerCa>, D::Error> {
    let file = file(from)?;
    Ok(file.map(|file| if file.as_os_str() == SYSTEM { PeerCa::System } else { PeerCa::File(file) }))
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    // contract 7.2: what does not go together in [fleet] is told with what to do, and no password is repeated
    #[test]
    fn mistakes_are_told() {
        let node = "url = \"nats://a:1,tls://b:2\"\nnode = \"a\"\n";
        let read = |more: &str| {
            let config =
                toml::from_str::<Config>(&format!("[fleet]\n{more}")).map_err(|error| error.to_string())?;
            config.fleet.contradiction().map_or(Ok(()), |(_, why)| Err(why.to_owned()))
        };
        assert_eq!(read(""), Ok(()));
        assert_eq!(read(node), Ok(()));
        assert_eq!(read(&format!("{node}address = \"http://127.0.0.1:1\"")), Ok(()));
        for ca in ["peers.pem", "system"] {
            assert_eq!(read(&format!("{node}address = \"https://a.example\"\npeer_ca = \"{ca}\"")), Ok(()));
        }
        for (wrong, says) in [
            ("node = \"a\"", "needs \"url\""),
            ("url = \"nats://a:1\"", "needs \"node\""),
            ("url = \"nats://me:secret@a:1\"", "not NATS servers"),
            ("url = \"nats://a:1,nats://b:99999\"", "not NATS servers"),
            ("url = \"tls://a:0\"", "not NATS servers"),
            ("url = \"http://a:1\"", "not NATS servers"),
            ("node = \"a.b\"", "no name of a node"),
            ("prefix = \"a b\"", "not a prefix"),
            ("labels = [\"a b\"]", "not a label"),
            ("partition = \"both\"", "expected `local` or `failover`"),
            (&format!("{node}address = \"http://192.0.2.1:1\""), "https"),
            (&format!("{node}address = \"unix:/run/acpd.sock\""), "https://HOST:PORT"),
            (&format!("{node}address = \"https://a.example\""), "needs \"peer_ca\""),
            (&format!("{node}address = \"https://a.example\"\npeer_ca = \"\""), "leave the key out"),
            (&format!("{node}lease = \"9s\""), "three times"),
            (&format!("{node}tls_cert = \"a\""), "go together"),
            (&format!("{node}replicas = 6"), "1 to 5"),
        ] {
            let told = read(wrong).expect_err(wrong);
            assert!(told.contains(says), "{wrong}: {told}");
            assert!(!told.lines().last().unwrap_or_default().contains("secret"), "{told}");
        }
    }
}
