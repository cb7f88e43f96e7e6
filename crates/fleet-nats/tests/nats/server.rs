//! A server of NATS, as an engine uses it in these tests.

use acpd_fleet_nats::{Nats, NatsSettings};
pub(crate) use acpd_testkit::NatsServer as Server;
pub(crate) use acpd_testkit::nats_place as place;
use std::time::Duration;

/// How long anything may take that is bound to happen.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// How long a call may take where a server is to answer it: also beside whatever else the machine does.
const PATIENCE: Duration = Duration::from_secs(15);

/// How long a call may take where a server does not answer; on a busy machine it has to be enough for one that does.
pub(crate) const SHORT: Duration = Duration::from_secs(6);

/// Waits for what is bound to happen.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, what).await.expect("it happens within the limit")
}

/// Tries something until it is as it is to be.
pub(crate) async fn until<T>(mut attempt: impl AsyncFnMut() -> Option<T>) -> T {
    let mut ticks = tokio::time::interval(Duration::from_millis(50));
    let tries = async {
        loop {
            ticks.tick().await;
            if let Some(done) = attempt().await {
                return done;
            }
        }
    };
    soon(tries).await
}

/// The links of two nodes.
pub(crate) async fn linked(settings: NatsSettings) -> (Nats, Nats) {
    let connect = || async { Nats::connect(settings.clone()).await.expect("it can be used") };
    (connect().await, connect().await)
}

/// What these tests do with a server.
pub(crate) trait Used {
    /// What a node is told to use it.
    fn settings(&self) -> NatsSettings;
    /// Of a node whose calls end soon where they are not answered.
    fn short_settings(&self) -> NatsSettings {
        NatsSettings { patience: SHORT, ..self.settings() }
    }
    /// Two nodes' links to it.
    async fn links(&self) -> (Nats, Nats) {
        linked(self.settings()).await
    }
    /// The client itself, for what no engine is asked.
    async fn client(&self) -> async_nats::Client;
}

impl Used for Server {
    fn settings(&self) -> NatsSettings {
        NatsSettings { patience: PATIENCE, ..NatsSettings::new(vec![format!("nats://{}", self.address())]) }
    }

    async fn client(&self) -> async_nats::Client {
        async_nats::connect(self.address().to_string()).await.expect("it can be reached")
    }
}
