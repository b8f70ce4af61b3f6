//! Failover times: how long a service is without a leader after a crash.

use std::collections::BTreeMap;

/// In simulated milliseconds.
#[derive(Clone, Debug, Default)]
pub struct Failovers {
    open: BTreeMap<&'static str, Open>,
    /// From a crash to the next election, of another or of the same leader.
    pub elected: Vec<u64>,
    /// From a crash to the first write of the next leader.
    pub wrote: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    since: u64,
    /// The term that ended with the crash.
    term: u64,
}

impl Failovers {
    /// Records the crash of the leader of `term`.
    pub(crate) fn lost(&mut self, service: &'static str, term: u64, now: u64) {
        // A term without a write does not end the failover that was open before.
        self.open
            .entry(service)
            .and_modify(|open| open.term = term)
            .or_insert(Open { since: now, term });
    }

    /// Records a write in `term`; the election is a write.
    pub(crate) fn wrote(&mut self, service: &'static str, term: u64, is_election: bool, now: u64) {
        let Some(open) = self.open.get(service).filter(|open| open.term < term) else {
            return;
        };
        let took = now.saturating_sub(open.since);
        if is_election {
            self.elected.push(took);
        } else {
            self.wrote.push(took);
            self.open.remove(service);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failover_lasts_until_a_later_term_writes() {
        let mut failovers = Failovers::default();
        failovers.wrote("broker", 5, false, 90);
        failovers.lost("broker", 5, 100);
        failovers.wrote("broker", 5, false, 150);
        failovers.wrote("applier", 9, false, 160);
        failovers.wrote("broker", 8, true, 3_100);
        // The successor crashes before its first write.
        failovers.lost("broker", 8, 3_200);
        failovers.wrote("broker", 12, true, 6_100);
        failovers.wrote("broker", 12, false, 6_150);
        failovers.wrote("broker", 12, false, 6_200);
        assert_eq!(failovers.elected, [3_000, 6_000]);
        assert_eq!(failovers.wrote, [6_050]);
    }
}
