//! Codes by which the owner of a daemon lets a browser in: good once, and for a minute (`acpd open`).
//!
//! Only their hashes are kept. Not here: what a browser is given for one, see [`Tokens::admit`](super::tokens::Tokens::admit).

use super::secret::secret;
use super::tokens::{TokenHash, hash_token};
use parking_lot::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// How long a code is good.
pub(super) const GOOD_FOR: Duration = Duration::from_secs(60);
/// Codes that are good at a time; with another one the oldest is good no more.
const MOST: usize = 16;

/// The codes that are good, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Codes(Mutex<Vec<(TokenHash, Instant)>>);

impl Codes {
    /// A new code.
    pub(super) fn issue(&self) -> String {
        let code = secret::<32>();
        let mut codes = self.0.lock();
        if codes.len() == MOST {
            codes.remove(0);
        }
        codes.push((hash_token(&code), Instant::now()));
        code
    }

    /// Takes a code back; false if it is not good, or was taken already.
    pub(super) fn take(&self, code: &str) -> bool {
        let (given, now) = (hash_token(code), Instant::now());
        let mut codes = self.0.lock();
        codes.retain(|(_, issued)| now.duration_since(*issued) < GOOD_FOR);
        let place = codes.iter().position(|(hash, _)| *hash == given);
        place.map(|place| codes.remove(place)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // inspector: acpd open: a single-use code, for 60 s
    #[tokio::test(start_paused = true)]
    async fn a_code_is_good_once_and_for_a_minute() {
        let codes = Codes::default();
        let (first, second) = (codes.issue(), codes.issue());
        assert_ne!(first, second);
        assert!(!codes.take("") && !codes.take(&first[1..]));
        assert!(codes.take(&first) && !codes.take(&first));
        tokio::time::advance(GOOD_FOR - Duration::from_millis(1)).await;
        let third = codes.issue();
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!codes.take(&second) && codes.take(&third));
        let oldest = codes.issue();
        let others: Vec<String> = (0..MOST).map(|_| codes.issue()).collect();
        assert!(!codes.take(&oldest));
        assert!(others.iter().all(|code| codes.take(code)));
    }
}
