//! Which ended sessions are removed. Pure: sessions and the time come in.

use std::time::Duration;

/// How long ended sessions are kept, and how much of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Those that have not changed for longer are removed. None: however old they are.
    pub older_than: Option<Duration>,
    /// The oldest ones are removed while all sessions together take more, in bytes of their stored blocks. None: however
    /// much they take.
    pub bytes: Option<u64>,
}

impl Keep {
    /// Whether all of them are kept.
    pub fn is_all(self) -> bool {
        self == Self::default()
    }
}

/// What counts of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    /// When it last changed, in milliseconds since 1970.
    pub(super) updated_ms: i64,
    /// It has ended, and no host has it.
    pub(super) is_removable: bool,
    /// What it takes.
    pub(super) bytes: u64,
}

/// The time before which a session is too old, in milliseconds since 1970; None when none is.
pub(super) fn too_old_before(keep: Keep, now_ms: i64) -> Option<i64> {
    let millis = i64::try_from(keep.older_than?.as_millis()).unwrap_or(i64::MAX);
    Some(now_ms.saturating_sub(millis))
}

/// The places of those that are removed, in a list in which the one that changed longest ago comes first. What is left
/// counts all of them, those that are not removed too: live ones make room for none.
pub(super) fn choose(sessions: &[Size], keep: Keep, now_ms: i64) -> Vec<usize> {
    let too_old_before = too_old_before(keep, now_ms).unwrap_or(i64::MIN);
    let mut left: u64 = sessions.iter().map(|session| session.bytes).sum();
    let mut chosen = Vec::new();
    for (place, session) in sessions.iter().enumerate().filter(|(_, session)| session.is_removable) {
        if session.updated_ms >= too_old_before && keep.bytes.is_none_or(|most| left <= most) {
            break;
        }
        left -= session.bytes;
        chosen.push(place);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 24 * 3600 * 1000;
    const NOW: i64 = 100 * DAY;

    fn keep(days: Option<u64>, bytes: Option<u64>) -> Keep {
        Keep { older_than: days.map(|days| Duration::from_secs(days * 24 * 3600)), bytes }
    }

    // contract 7.2, contract 7.3: those unchanged for longer, and the oldest while all take more; never one that has not ended
    #[test]
    fn the_oldest_ended_ones_go() {
        let session =
            |days: i64, is_removable, bytes| Size { updated_ms: NOW - days * DAY, is_removable, bytes };
        // 100 bytes, oldest first; the oldest and the youngest are live.
        let sessions = [
            session(50, false, 10),
            session(40, true, 20),
            session(30, true, 30),
            session(10, false, 5),
            session(5, true, 15),
            session(0, true, 0),
            session(0, false, 20),
        ];
        for (days, bytes, chosen) in [
            (None, None, &[][..]),
            (Some(60), None, &[]),
            // Not older than 40 days, and a moment more.
            (Some(40), None, &[]),
            (Some(39), None, &[1]),
            (Some(29), None, &[1, 2]),
            (Some(1), None, &[1, 2, 4]),
            (None, Some(100), &[]),
            (None, Some(99), &[1]),
            (None, Some(80), &[1]),
            (None, Some(79), &[1, 2]),
            (None, Some(50), &[1, 2]),
            (None, Some(35), &[1, 2, 4]),
            // The live ones alone take more.
            (None, Some(0), &[1, 2, 4, 5]),
            (Some(39), Some(50), &[1, 2]),
            (Some(29), Some(80), &[1, 2]),
        ] {
            assert_eq!(choose(&sessions, keep(days, bytes), NOW), chosen, "{days:?} days, {bytes:?} bytes");
        }
        let ancient = Keep { older_than: Some(Duration::MAX), bytes: None };
        assert!(
            choose(&sessions, ancient, NOW).is_empty() && choose(&[], keep(Some(0), Some(0)), NOW).is_empty()
        );
    }
}
