//! A limit on requests in progress that a gateway refuses beyond, rather than let them wait.
//!
//! A request that waits costs memory and, each time that it is woken, time of the runtime that also serves
//! heartbeats: a gateway that takes every request gets slower for all of them, until heartbeats are late.

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::error::Error;

/// Requests that may be in progress at a time.
#[derive(Debug)]
pub struct WorkSlots {
    free: Semaphore,
    max: usize,
}

impl WorkSlots {
    pub fn new(max: usize) -> Self {
        Self {
            free: Semaphore::new(max),
            max,
        }
    }

    /// Takes a slot, which is free again once the permit is dropped.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED`, with a retry delay: all are taken.
    pub fn take(&self) -> Result<SemaphorePermit<'_>, Error> {
        let max = self.max;
        self.free.try_acquire().map_err(|_| {
            Error::busy(format!(
                "this gateway works on {max} requests about jobs, its limit: try again in a second, or ask \
                 another gateway"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    #[test]
    fn requests_beyond_the_limit_are_refused_until_one_ends() {
        let slots = WorkSlots::new(2);
        let first = slots.take().unwrap();
        let _second = slots.take().unwrap();
        let refused = slots.take().unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted);
        assert!(refused.is_overload(), "clients have to try again");
        drop(first);
        assert!(slots.take().is_ok());
    }
}
