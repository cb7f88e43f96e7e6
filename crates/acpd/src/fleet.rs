//! The fleet that a daemon is a node of: from the configuration to a member that does its part (contract 7.2).
//!
//! Not here: what a node does (`crates/fleet`), and what its door shows of the others (`crates/gateway`, `fleet.rs`).

mod beginnings;
mod engine;
mod identity;
mod sessions;

use crate::address::Address;
use crate::config::{Config, Fleet as Section, PeerCa, Scope, Sees, Token};
use crate::daemon::{connect, unreached};
use crate::exit::Failure;
use acpd_fleet::{Member, NodeRecord};
use acpd_gateway::{Dial, Fleet, PeerStream, fingerprint};
use acpd_host::{Host, Pending, TaskScope, fresh_id};
use beginnings::FleetBeginnings;
use sessions::{Fingerprints, OwnSessions};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio_util::sync::CancellationToken;

/// A daemon as a node of a fleet.
pub(crate) struct Joined {
    member: Member,
    fingerprints: Fingerprints,
    /// Live sessions that the node takes.
    most: Arc<AtomicU32>,
    state_dir: PathBuf,
    dial: Arc<Peers>,
    over: CancellationToken,
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.over.cancel();
    }
}

impl Joined {
    /// Begins to be a node, if the configuration says so. A fleet that cannot be reached now is tried again and again.
    pub(crate) fn begin(config: &Config, host: &Host, listening: &str) -> Result<Option<Self>, Failure> {
        let Section { url: Some(_), node: Some(name), .. } = &config.fleet else { return Ok(None) };
        let address = address(&config.fleet, listening).map_err(Failure::Usage)?;
        let state_dir = config.storage.path.clone();
        let id = identity::node_id(&state_dir).map_err(|error| {
            Failure::Usage(format!(
                "{} cannot be read or written: {error}",
                identity::id_file(&state_dir).display()
            ))
        })?;
        let lease = config.fleet.lease().ok_or_else(|| Failure::Usage("[fleet]: no lease".to_owned()))?;
        let engine = engine::engine(&config.fleet).map_err(Failure::Usage)?;
        let mut record = NodeRecord::new(name.clone(), id, env!("CARGO_PKG_VERSION"));
        (record.run, record.address) = (fresh_id(), Some(address));
        record.draining = identity::drains(&state_dir);
        let member = Member::new(engine, record, lease);
        let dial = Arc::new(Peers { ca: config.fleet.peer_ca.clone() });
        let (fingerprints, most) = Default::default();
        let joined = Self { member, fingerprints, most, state_dir, dial, over: CancellationToken::new() };
        joined.set(config, host);
        host.drain(joined.member.me().draining);
        let (member, fingerprints) = (joined.member.clone(), Arc::clone(&joined.fingerprints));
        host.ask_fleet(Arc::new(FleetBeginnings { member, fingerprints }));
        // Until it is known whose they are.
        host.fence_new();
        Ok(Some(joined))
    }

    /// Does a node's part until this is dropped: also while sessions end, so that the others learn how.
    pub(crate) fn run(&self, host: &Host, scope: &TaskScope) {
        let (fingerprints, most) = (Arc::clone(&self.fingerprints), Arc::clone(&self.most));
        let own = OwnSessions { host: host.clone(), fingerprints, most };
        let (member, ended) = (self.member.clone(), self.over.clone());
        scope.spawn("fleet", async move {
            let _ended = ended.run_until_cancelled(member.run(&own)).await;
        });
    }

    /// What the front door has of it.
    pub(crate) fn door(&self) -> Fleet {
        Fleet::new(self.member.clone(), Arc::clone(&self.dial) as _)
    }

    /// Says what the configuration says of this node now. Where the fleet is, and what this node is called, stays.
    pub(crate) fn set(&self, config: &Config, host: &Host) {
        let print = |token: &Token| fingerprint(&token.hash.0);
        let names = config.tokens.iter().map(|(name, token)| (name.clone(), print(token)));
        *self.fingerprints.write() = names.collect::<BTreeMap<_, _>>();
        let sees_all = |token: &&Token| token.scope == Scope::Admin || token.sees == Sees::All;
        let seers = config.tokens.values().filter(sees_all).map(print).collect();
        let agents = host.agents().specs().iter().map(|spec| spec.name.clone()).collect();
        self.most.store(config.limits.sessions.get(), Ordering::Relaxed);
        host.in_fleet(config.fleet.partition, config.no_failover());
        self.member.change(|record| {
            (record.seers, record.agents, record.labels) = (seers, agents, config.fleet.labels.clone());
        });
    }

    /// Takes no new sessions from now on, or takes them again; also after a restart.
    pub(crate) fn drain(&self, host: &Host, drains: bool) -> Result<(), String> {
        identity::keep_draining(&self.state_dir, drains).map_err(|error| {
            let file = identity::draining_file(&self.state_dir);
            format!("{} cannot be written: {error}", file.display())
        })?;
        // A request that comes in between is sent on, or takes the session all the same.
        if !drains {
            host.drain(false);
        }
        self.member.change(|record| record.draining = drains);
        if drains {
            host.drain(true);
        }
        Ok(())
    }

    /// Leaves the fleet, which shows this node as gone at once, and how its sessions ended.
    pub(crate) async fn leave(&self) {
        self.member.leave().await;
    }
}

/// Whether a daemon that listens there could be a node as the configuration says, if it says so.
///
/// # Errors
/// Why not.
pub(crate) fn check(config: &Config, listening: &str) -> Result<(), String> {
    if config.fleet.url.is_none() {
        return Ok(());
    }
    address(&config.fleet, listening)?;
    for (key, file) in config.fleet.named_files() {
        std::fs::File::open(file)
            .map_err(|error| format!("[fleet] \"{key}\": {} cannot be read: {error}", file.display()))?;
    }
    engine::engine(&config.fleet).map(drop)
}

/// How others reach a daemon that listens there: without an address of its own, those on this machine.
fn address(section: &Section, listening: &str) -> Result<String, String> {
    if let Some(address) = &section.address {
        return Ok(address.clone());
    }
    match Address::parse(listening) {
        Ok(address) if address.is_here() => Ok(address.to_string()),
        _ => Err(format!(
            "[fleet] needs \"address\", by which other nodes reach this one, such as https://HOST:PORT: it listens at {listening}"
        )),
    }
}

/// The other nodes. Their addresses come from the directory, which others may write to, and the tokens of callers go there: each
/// is judged as this node's own is, before there is a connection.
#[derive(Debug)]
struct Peers {
    ca: Option<PeerCa>,
}

impl Peers {
    /// Where a node is reached, and by which certificates it is known; None: by those of the system.
    fn check(&self, address: &str) -> Result<(Address, Option<&Path>), String> {
        let to = Address::of_node(address).map_err(|why| format!("its address is not used: {why}"))?;
        match &self.ca {
            Some(PeerCa::File(file)) => Ok((to, Some(file))),
            Some(PeerCa::System) => Ok((to, None)),
            None if to.is_here() => Ok((to, None)),
            None => Err(
                "its address is not used: it is beyond loopback, and this node has no \"peer_ca\" in [fleet] by which to know it".to_owned(),
            ),
        }
    }
}

impl Dial for Peers {
    fn dial(&self, address: String) -> Pending<'_, Result<Box<dyn PeerStream>, String>> {
        Box::pin(async move {
            let (to, ca) = self.check(&address)?;
            let stream = connect(&to, &address, ca).await.map_err(unreached)?;
            Ok(Box::new(stream) as Box<dyn PeerStream>)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.2: on loopback a node is reached where it listens; beyond, it says how
    #[test]
    fn a_node_says_where_it_is_reached() {
        let mut config = Config::default();
        assert_eq!(check(&config, "https://192.0.2.1:1"), Ok(()), "it is in no fleet");
        config.fleet.url = Some("nats://127.0.0.1:4222".to_owned());
        config.fleet.peer_ca = Some(PeerCa::File("/nowhere/peers.pem".into()));
        let missing = check(&config, "http://127.0.0.1:7").expect_err("it is not there");
        assert!(missing.contains("\"peer_ca\": /nowhere/peers.pem cannot be read"), "{missing}");
        config.fleet.peer_ca = None;
        for (own, listening, reached) in [
            (None, "http://127.0.0.1:7", Some("http://127.0.0.1:7")),
            (None, "http://[::1]:7", Some("http://[::1]:7")),
            (None, "https://192.0.2.1:7", None),
            (None, "http://0.0.0.0:7", None),
            (Some("https://a.example:1"), "https://0.0.0.0:7", Some("https://a.example:1")),
        ] {
            config.fleet.address = own.map(str::to_owned);
            let found = address(&config.fleet, listening);
            assert_eq!(found.as_deref().ok(), reached, "{listening}");
            assert!(found.is_ok() || check(&config, listening).is_err_and(|why| why.contains("\"address\"")));
        }
        assert_eq!(check(&config, "http://127.0.0.1:7").is_ok(), cfg!(feature = "nats"));
    }

    // contract 7.3: an address from the directory is judged as a node's own: a token goes over no network as it is, and to no
    // node that is known by nothing
    #[test]
    fn another_nodes_address_is_judged_as_an_own_one() {
        let reached = |ca: &Option<PeerCa>, address: &str| {
            Peers { ca: ca.clone() }.check(address).map(|(_, ca)| ca.map(Path::to_owned))
        };
        let file = PathBuf::from("/peers.pem");
        let [none, system, one] = [None, Some(PeerCa::System), Some(PeerCa::File(file.clone()))];
        for ca in [&none, &system, &one] {
            for address in [
                "http://vm:1",
                "http://10.0.0.1:1",
                "http://0.0.0.0:1",
                "http://127.1:1",
                "http://2130706433:1",
                "http://[::ffff:127.0.0.1]:1",
                "http://localhost.example:1",
                "HTTP://vm:1",
            ] {
                let why = reached(ca, address).expect_err(address);
                assert!(why.contains("https") && why.contains("its address"), "{address}: {why}");
            }
            for address in ["unix:/run/acpd.sock", "ws://vm:1", "http://me:secret@127.0.0.1:1", "vm:1", ""] {
                let why = reached(ca, address).expect_err(address);
                assert!(!why.contains("secret"), "{why}");
            }
            for address in ["http://127.0.0.1:1", "http://localhost:1", "https://[::1]:1"] {
                assert!(reached(ca, address).is_ok(), "{address}");
            }
        }
        let beyond = "https://vm:1";
        let why = reached(&none, beyond).expect_err("it is known by nothing");
        assert!(why.contains("peer_ca"), "{why}");
        assert_eq!(reached(&system, beyond), Ok(None));
        assert_eq!(reached(&one, beyond), Ok(Some(file)));
    }

    // contract 7.3: what is not to be reached is not connected to
    #[tokio::test]
    async fn nothing_is_connected_to_an_address_that_is_not_used() {
        let listener = tokio::net::TcpListener::bind("0.0.0.0:0").await.expect("a port");
        let port = listener.local_addr().expect("it is bound").port();
        let refused = Peers { ca: None }.dial(format!("http://0.0.0.0:{port}")).await;
        assert!(refused.is_err_and(|why| why.contains("https")));
        let here = Peers { ca: None }.dial(format!("http://127.0.0.1:{port}")).await;
        let here = here.expect("it is here");
        let (first, _) = listener.accept().await.expect("that one");
        drop((here, first));
    }
}
