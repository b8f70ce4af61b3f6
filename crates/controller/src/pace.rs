//! Pace of the transitions of nodes: a limit on concurrent writes, and on the nodes that return per
//! second.
//!
//! A transition that does not fit is decided again when there is room, on the state of that time: a
//! node that sent a heartbeat while its turn had not come is not marked down.

use std::time::Duration;

use model::Timestamp;

/// Concurrent writes: a rack that reconnects is written within a second, and a whole cluster does not
/// flood the store.
const WRITES_IN_FLIGHT: usize = 32;
/// The interval between two nodes that return from *down*: 5,000 of them take 10 s. Each has its
/// jobs evaluated, and the schedulers and the other services need their share of the store.
const RETURN_INTERVAL: Duration = Duration::from_millis(2);
/// The nodes that return at once: 200 ms of the interval, a few racks.
const RETURN_BURST: Duration = Duration::from_millis(200);

#[derive(Debug, Default)]
pub(crate) struct Pace {
    in_flight: usize,
    /// The time of the next return, without a burst.
    next_return: Timestamp,
}

impl Pace {
    /// Tells whether another write may begin.
    pub(crate) fn has_room(&self) -> bool {
        self.in_flight < WRITES_IN_FLIGHT
    }

    pub(crate) fn begin(&mut self) {
        self.in_flight += 1;
    }

    pub(crate) fn end(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Takes the turn of a node that returns; `false`: it has to wait.
    pub(crate) fn take_return(&mut self, now: Timestamp) -> bool {
        if self.may_return_at() > now {
            return false;
        }
        self.next_return = self.next_return.max(now).plus(RETURN_INTERVAL);
        true
    }

    /// Returns the time of the next turn.
    pub(crate) fn may_return_at(&self) -> Timestamp {
        let nanos = u64::try_from(RETURN_BURST.as_nanos()).unwrap_or(u64::MAX);
        Timestamp(self.next_return.0.saturating_sub(nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_returns_at_once_and_the_rest_by_the_interval() {
        let (mut pace, began) = (Pace::default(), Timestamp::from_millis(1_000_000));
        let returned = |pace: &mut Pace, ms: u64| {
            let now = began.plus(Duration::from_millis(ms));
            (0..10_000).take_while(|_| pace.take_return(now)).count()
        };
        assert_eq!(returned(&mut pace, 0), 101);
        assert_eq!(returned(&mut pace, 1), 0);
        assert_eq!(pace.may_return_at(), began.plus(Duration::from_millis(2)));
        assert_eq!(returned(&mut pace, 2), 1);
        assert_eq!(returned(&mut pace, 100), 49);
        assert_eq!(
            returned(&mut pace, 60_000),
            101,
            "idle time is not saved up"
        );
    }

    #[test]
    fn writes_in_flight_are_limited() {
        let mut pace = Pace::default();
        while pace.has_room() {
            pace.begin();
        }
        assert_eq!(pace.in_flight, WRITES_IN_FLIGHT);
        pace.end();
        assert!(pace.has_room());
    }
}
