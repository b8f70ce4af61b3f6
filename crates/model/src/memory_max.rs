//! Memory limit of a task with oversubscription.

use serde::{Deserialize, Serialize};

/// Memory limit of a task where the operator enables oversubscription.
///
/// Stored and shown as a number: 0, MiB or −1. Source: Nomad's public job format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "i64", try_from = "i64")]
pub enum MemoryMax {
    /// The task's own reservation is the limit.
    #[default]
    AsAsked,
    Mib(u32),
    /// As much as the node has.
    Unlimited,
}

impl MemoryMax {
    /// Tells whether memory may exceed the reservation.
    pub fn is_more(self) -> bool {
        self != Self::AsAsked
    }
}

impl From<MemoryMax> for i64 {
    fn from(max: MemoryMax) -> Self {
        match max {
            MemoryMax::AsAsked => 0,
            MemoryMax::Mib(mib) => mib.into(),
            MemoryMax::Unlimited => -1,
        }
    }
}

/// An invalid memory limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be between 0 and {max}, or -1 for no limit; got {number}", max = u32::MAX)]
pub struct NoMemoryMax {
    number: i64,
}

impl TryFrom<i64> for MemoryMax {
    type Error = NoMemoryMax;

    fn try_from(number: i64) -> Result<Self, Self::Error> {
        match (number, u32::try_from(number)) {
            (0, _) => Ok(Self::AsAsked),
            (-1, _) => Ok(Self::Unlimited),
            (_, Ok(mib)) => Ok(Self::Mib(mib)),
            (_, Err(_)) => Err(NoMemoryMax { number }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_stored_as_the_number_that_jobs_have() {
        for (number, max) in [
            ("0", MemoryMax::AsAsked),
            ("300", MemoryMax::Mib(300)),
            ("-1", MemoryMax::Unlimited),
        ] {
            assert_eq!(serde_json::from_str::<MemoryMax>(number).unwrap(), max);
            assert_eq!(serde_json::to_string(&max).unwrap(), number);
        }
        let error = serde_json::from_str::<MemoryMax>("-2").unwrap_err();
        assert!(error.to_string().contains("got -2"), "{error}");
    }
}
