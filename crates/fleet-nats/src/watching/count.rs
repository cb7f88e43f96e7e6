//! Which of a consumer's messages have come, by their numbers: whether one is missing, and whether all is told that was there when
//! the watch began. Pure.

/// What has come of one consumer.
#[derive(Debug)]
pub(super) struct Count {
    /// The number of the last message.
    last: u64,
    is_told: bool,
}

/// Something was missed, or may have been.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lost(pub(super) &'static str);

impl Count {
    /// Nothing has come. `is_told`: nothing is there.
    pub(super) fn new(is_told: bool) -> Self {
        Self { last: 0, is_told }
    }

    /// Whether all that was there has been told.
    pub(super) fn is_told(&self) -> bool {
        self.is_told
    }

    /// An entry came with this number, and so many are behind it.
    pub(super) fn entry(&mut self, number: u64, behind: u64) -> Result<(), Lost> {
        if number != self.last + 1 {
            return Err(Lost("messages are missing"));
        }
        self.last = number;
        self.is_told |= behind == 0;
        Ok(())
    }

    /// The server says that it is there, what its last number was if it says that, and whether it waits until messages were taken.
    pub(super) fn heartbeat(&mut self, last: Option<u64>, is_stalled: bool) -> Result<(), Lost> {
        if last.is_some_and(|last| last != self.last) {
            return Err(Lost("the last messages are missing"));
        }
        // Silent though it need not wait: there is nothing more to tell, also where what there was has left by its age.
        self.is_told |= last.is_some() && !is_stalled;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // design fleet: what was missed is seen, by the next message or by the heartbeat behind the last one
    #[test]
    fn numbers_have_no_holes() {
        let mut count = Count::new(true);
        assert!(count.is_told());
        for number in [1, 2] {
            assert_eq!(count.entry(number, 0), Ok(()));
            assert_eq!(count.heartbeat(Some(number), false), Ok(()));
        }
        for missing in [2, 4, 1, 0] {
            assert!(count.entry(missing, 0).is_err(), "{missing}");
        }
        assert!(count.heartbeat(Some(3), false).is_err());
        assert_eq!(count.heartbeat(None, false), Ok(()), "what only asks for an answer has no number");
        assert_eq!(count.entry(3, 0), Ok(()));
    }

    #[test]
    fn all_is_told_when_nothing_is_behind() {
        let mut count = Count::new(false);
        assert_eq!(count.entry(1, 2), Ok(()));
        assert_eq!(count.heartbeat(Some(1), true), Ok(()));
        assert_eq!(count.heartbeat(None, false), Ok(()));
        assert!(!count.is_told(), "it waits for us");
        let mut left = Count::new(false);
        assert_eq!(left.entry(1, 1), Ok(()));
        assert_eq!(left.heartbeat(Some(1), false), Ok(()));
        assert!(left.is_told(), "the second one has left by its age");
        assert_eq!((count.entry(2, 1), count.is_told()), (Ok(()), false));
        assert_eq!((count.entry(3, 0), count.is_told()), (Ok(()), true));
        assert_eq!((count.entry(4, 5), count.is_told()), (Ok(()), true), "for good");
    }
}
