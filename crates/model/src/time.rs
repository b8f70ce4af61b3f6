//! Points in time and durations as they are stored and sent.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A point in time: Unix nanoseconds, as in `CreateTime` and `ModifyTime`. Zero means "never".
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    pub const NEVER: Self = Self(0);

    pub fn from_millis(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }

    pub fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    pub fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000_000_000))
    }

    /// Returns the whole seconds since 1970.
    pub fn as_secs(self) -> u64 {
        self.0 / 1_000_000_000
    }

    pub fn is_never(&self) -> bool {
        self.0 == 0
    }

    /// Returns this point `duration` later, at most the end of time.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration_ns::nanos(duration)))
    }

    /// Returns how long after `earlier` this is; zero when it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Serialises a [`Duration`] as integer nanoseconds, the form that Nomad's JSON has.
pub mod duration_ns {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Returns the whole nanoseconds of `duration`, at most `u64::MAX`.
    pub fn nanos(duration: Duration) -> u64 {
        u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
    }

    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        nanos(*duration).serialize(serializer)
    }

    /// # Errors
    /// A value that is not a whole number of nanoseconds.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_nanos)
    }

    /// The same for an optional duration.
    pub mod option {
        use std::time::Duration;

        use serde::{Deserialize, Deserializer, Serialize, Serializer};

        /// # Errors
        /// Those of the serializer.
        pub fn serialize<S: Serializer>(
            duration: &Option<Duration>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            duration.map(super::nanos).serialize(serializer)
        }

        /// # Errors
        /// A value that is neither null nor a whole number of nanoseconds.
        pub fn deserialize<'de, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Option<Duration>, D::Error> {
            Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_nanos))
        }
    }
}
