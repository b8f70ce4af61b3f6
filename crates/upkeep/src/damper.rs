//! Holds back when more than half of the nodes fall silent at once.
//!
//! Then the cause is rather ours (a gateway, a switch, this process) than theirs, and to replace
//! half of a cluster's allocations on the other half is the worst answer. So everything is held
//! for one more TTL, which the operator is told; what is silent even then is down.

use std::time::Duration;

use model::Timestamp;

use crate::config::MASS_FAILURE_MIN;

#[derive(Debug, Default)]
pub(crate) struct Damper {
    episode: Option<Episode>,
}

#[derive(Debug)]
struct Episode {
    until: Timestamp,
    /// Held long enough: what is silent goes down. Lasts until the numbers are normal again, so
    /// that one mass failure is held once.
    released: bool,
}

/// What to do with nodes whose time is up.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ruling {
    LetGo,
    /// Begins to hold until then.
    Hold {
        until: Timestamp,
    },
    /// Goes on holding until then.
    Holding {
        until: Timestamp,
    },
}

impl Damper {
    /// Rules on nodes whose time is up, when `late` of `all` nodes are silent for longer than
    /// they promised; `all` counts those that were alive when it began, the late ones among them.
    pub(crate) fn rule(
        &mut self,
        now: Timestamp,
        late: usize,
        all: usize,
        ttl: Duration,
    ) -> Ruling {
        let is_mass = late >= MASS_FAILURE_MIN && late * 2 > all;
        if !is_mass {
            self.episode = None;
            return Ruling::LetGo;
        }
        // A mass failure long after the last is another one.
        let over = |episode: &Episode| now.since(episode.until) > ttl * 2;
        if self.episode.as_ref().is_some_and(over) {
            self.episode = None;
        }
        match &mut self.episode {
            None => {
                let until = now.plus(ttl);
                self.episode = Some(Episode {
                    until,
                    released: false,
                });
                Ruling::Hold { until }
            }
            Some(episode) if !episode.released && now < episode.until => Ruling::Holding {
                until: episode.until,
            },
            Some(episode) => {
                episode.released = true;
                Ruling::LetGo
            }
        }
    }
}
