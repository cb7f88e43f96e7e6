//! A point in time of a daemon's answer. What is no time is an unknown one, since one member is no reason to show nothing.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;

/// A point in time, if it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Moment(pub(crate) Option<Timestamp>);

impl Moment {
    /// Milliseconds since 1970.
    pub(crate) fn of_ms(ms: i64) -> Self {
        Self(Timestamp::from_millisecond(ms).ok())
    }
}

/// ISO 8601.
impl From<&str> for Moment {
    fn from(text: &str) -> Self {
        Self(text.parse().ok())
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Ok(Self::from(&*text))
    }
}
