//! The engine of a fleet. NATS comes with a feature of the build, since what it takes to build is not worth the wait of who needs none.

use crate::config::Fleet;
use acpd_fleet::Engine;
use std::sync::Arc;

/// The engine that the configuration names. Whether its servers can be reached shows later.
///
/// # Errors
/// What is wrong with the section.
#[cfg(feature = "nats")]
pub(super) fn engine(section: &Fleet) -> Result<Arc<dyn Engine>, String> {
    use acpd_fleet_nats::{NatsSettings, Reached, Tls};
    let urls = section.url.iter().flat_map(|urls| urls.split(',')).map(|url| url.trim().to_owned());
    let identity = section.tls_cert.clone().zip(section.tls_key.clone());
    let has_tls = section.tls_ca.is_some() || identity.is_some();
    let settings = NatsSettings {
        prefix: section.prefix.clone(),
        credentials: section.credentials.clone(),
        tls: has_tls.then(|| Tls { ca: section.tls_ca.clone(), identity }),
        lease: section.lease,
        replicas: section.replicas.map(|replicas| usize::from(replicas.get())),
        ..NatsSettings::new(urls.collect())
    };
    Ok(Arc::new(Reached::new(settings)))
}

/// There is none.
///
/// # Errors
/// Always.
#[cfg(not(feature = "nats"))]
pub(super) fn engine(_section: &Fleet) -> Result<Arc<dyn Engine>, String> {
    Err("[fleet]: this acpd was built without fleets; build it with `--features nats`".to_owned())
}
