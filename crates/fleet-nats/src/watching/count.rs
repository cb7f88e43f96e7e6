//! Which of a consumer's messages have come, by their numbers: whether one is missing, and whether all is told that was there when
//! the watch began. Pure.

/// What has come of one consumer.
#[derive(Debug)]
pub(super) struct Count {
    /// The number of the last message.
    last: u64,
    /// Its server has no more for now.
    is_idle: bool,
    /// How far the stream has come, and how far its leader was when the watch began.
    reached: u64,
    until: u64,
    /// Heartbeats for which its server was idle, and behind the leader.
    late: u32,
}

/// So many of them are borne: a server that was down is catching up. The last message can also have left by its age, which a new
/// watch finds out.
const LATE: u32 = 5;

/// Something was missed, or may have been.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lost(pub(super) &'static str);

impl Count {
    /// Nothing has come. `is_idle`: its server has nothing; the leader's last message has the number `until`.
    pub(super) fn new(is_idle: bool, until: u64) -> Self {
        Self { last: 0, is_idle, reached: 0, until, late: 0 }
    }

    /// Whether all that was there has been told.
    pub(super) fn is_told(&self) -> bool {
        self.is_idle && self.reached >= self.until
    }

    /// An entry came with this number, which has that one in the stream, and so many are behind it.
    pub(super) fn entry(&mut self, number: u64, behind: u64, in_stream: u64) -> Result<(), Lost> {
        if number != self.last + 1 {
            return Err(Lost("messages are missing"));
        }
        self.last = number;
        self.reached = in_stream;
        self.is_idle |= behind == 0;
        Ok(())
    }

    /// The server says that it is there, what its last number was if it says that, and whether it waits until messages were taken.
    pub(super) fn heartbeat(&mut self, last: Option<u64>, is_stalled: bool) -> Result<(), Lost> {
        if last.is_some_and(|last| last != self.last) {
            return Err(Lost("the last messages are missing"));
        }
        // Silent though it need not wait: there is nothing more to tell, also where what there was has left by its age.
        self.is_idle |= last.is_some() && !is_stalled;
        if self.is_idle && !self.is_told() {
            self.late += 1;
        }
        match self.late > LATE {
            true => Err(Lost("the server that tells it stays behind the leader")),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // design fleet: what was missed is seen, by the next message or by the heartbeat behind the last one
    #[test]
    fn numbers_have_no_holes() {
        let mut count = Count::new(true, 0);
        assert!(count.is_told());
        for number in [1, 2] {
            assert_eq!(count.entry(number, 0, number), Ok(()));
            assert_eq!(count.heartbeat(Some(number), false), Ok(()));
        }
        for missing in [2, 4, 1, 0] {
            assert!(count.entry(missing, 0, missing).is_err(), "{missing}");
        }
        assert!(count.heartbeat(Some(3), false).is_err());
        assert_eq!(count.heartbeat(None, false), Ok(()), "what only asks for an answer has no number");
        assert_eq!(count.entry(3, 0, 3), Ok(()));
    }

    #[test]
    fn all_is_told_when_nothing_is_behind() {
        let mut count = Count::new(false, 3);
        assert_eq!(count.entry(1, 2, 1), Ok(()));
        assert_eq!(count.heartbeat(Some(1), true), Ok(()));
        assert_eq!(count.heartbeat(None, false), Ok(()));
        assert!(!count.is_told(), "it waits for us");
        let mut left = Count::new(false, 1);
        assert_eq!(left.entry(1, 1, 1), Ok(()));
        assert_eq!(left.heartbeat(Some(1), false), Ok(()));
        assert!(left.is_told(), "the second one has left by its age");
        assert_eq!((count.entry(2, 1, 2), count.is_told()), (Ok(()), false));
        assert_eq!((count.entry(3, 0, 3), count.is_told()), (Ok(()), true));
        assert_eq!((count.entry(4, 5, 4), count.is_told()), (Ok(()), true), "for good");
    }

    // design fleet: a server that was down has less than the leader when it is there again, and that is not all
    #[test]
    fn a_server_that_is_behind_has_not_told_all() {
        let mut count = Count::new(true, 8);
        assert!(!count.is_told(), "it had nothing yet");
        assert_eq!((count.entry(1, 0, 6), count.is_told()), (Ok(()), false));
        assert_eq!((count.heartbeat(Some(1), false), count.is_told()), (Ok(()), false));
        assert_eq!((count.entry(2, 0, 9), count.is_told()), (Ok(()), true), "the eighth was replaced");
        let mut stays = Count::new(true, 8);
        let heartbeats = (0..=LATE).map(|_| stays.heartbeat(Some(0), false)).collect::<Vec<_>>();
        let (last, before) = heartbeats.split_last().expect("some");
        assert!(last.is_err() && before.iter().all(Result::is_ok), "it is not waited for without end");
    }
}
