//! Traces of arriving and departing jobs, deterministic by seed.

use model::{Job, JobKey, Node};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::workload::{Jobs, Kind, capacity, demand, share};

/// An event of a trace.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Arrive(Box<Job>),
    Depart(JobKey),
}

/// Demand rises until this share of a trace,
const RISES_UNTIL: f64 = 0.35;
/// stays while jobs come and go until this,
pub(crate) const STAYS_UNTIL: f64 = 0.7;
/// and falls to this part of its peak.
const FALLS_TO: f64 = 0.5;

/// Returns the events: jobs arrive while demand is below its target, and one departs when it is
/// above. At the peak, `peak` of the cluster's cpu or memory is asked for.
pub(crate) fn trace(kind: Kind, nodes: &[Node], events: usize, peak: f64, seed: u64) -> Vec<Event> {
    let capacity = capacity(nodes);
    let mut jobs = Jobs::new(kind, seed);
    let mut rng = StdRng::seed_from_u64(seed ^ 0x7ace);
    let mut live: Vec<Job> = Vec::new();
    let mut trace = Vec::with_capacity(events);
    for number in 0..events {
        #[expect(clippy::cast_precision_loss, reason = "a few thousand events")]
        let moment = number as f64 / events as f64;
        let wanted = peak * wanted(moment);
        if live.is_empty() || share(demand(&live), capacity) < wanted {
            let job = jobs.next();
            live.push(job.clone());
            trace.push(Event::Arrive(Box::new(job)));
        } else {
            let job = live.swap_remove(rng.random_range(0..live.len()));
            trace.push(Event::Depart(job.key()));
        }
    }
    trace
}

/// Returns the target as a share of the peak.
fn wanted(moment: f64) -> f64 {
    if moment < RISES_UNTIL {
        moment / RISES_UNTIL
    } else if moment < STAYS_UNTIL {
        1.0
    } else {
        1.0 - (1.0 - FALLS_TO) * (moment - STAYS_UNTIL) / (1.0 - STAYS_UNTIL)
    }
}
