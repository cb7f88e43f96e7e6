//! hyper's waits for clients, by the [`Pulse`] of this process: a client is not late because acpd stood still.

use super::pulse::Pulse;
use hyper::rt::{Sleep, Timer};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;

/// Gives hyper its waits.
#[derive(Clone)]
pub(super) struct ClientTimer(Arc<Pulse>);

impl ClientTimer {
    pub(super) fn new(pulse: Arc<Pulse>) -> Self {
        Self(pulse)
    }
}

impl Timer for ClientTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        let (pulse, since) = (Arc::clone(&self.0), Instant::now());
        Box::pin(Wait(Box::pin(async move { pulse.run_out(since, duration).await })))
    }

    fn sleep_until(&self, deadline: std::time::Instant) -> Pin<Box<dyn Sleep>> {
        self.sleep(Instant::from_std(deadline).saturating_duration_since(Instant::now()))
    }

    fn now(&self) -> std::time::Instant {
        Instant::now().into_std()
    }
}

struct Wait(Pin<Box<dyn Future<Output = ()> + Send + Sync>>);

impl Sleep for Wait {}

impl Future for Wait {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // HT-12: a client of HTTP/2 that answers pings is not lost because acpd stood still
    #[tokio::test(start_paused = true)]
    async fn a_wait_of_hyper_begins_anew_behind_a_gap() {
        let pulse = Arc::new(Pulse::new());
        let beat = Arc::clone(&pulse);
        acpd_host::TaskScope::default().spawn("pulse", async move { beat.keep().await });
        let (timer, begun) = (ClientTimer::new(pulse), Instant::now());
        let mut wait = timer.sleep_until(timer.now() + Duration::from_secs(15));
        assert!(futures_util::poll!(wait.as_mut()).is_pending());
        tokio::time::advance(Duration::from_secs(20)).await;
        wait.await;
        assert_eq!(begun.elapsed().as_secs(), 35);
    }
}
