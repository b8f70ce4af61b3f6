//! Generated jobs: every type, with random variations.

use std::time::Duration;

use model::job::{Network, Port, UpdateStrategy};
use model::{Job, JobType, Parameterized, PayloadRule, Periodic};
use rand::RngExt as _;
use rand::rngs::StdRng;
use test_kit::builders;

use crate::checker::REQUEST;

/// One of the few job ids that all users change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) id: &'static str,
    pub(super) kind: Kind,
    /// Far enough apart for preemption.
    priority: u8,
    /// Relative frequency.
    weight: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Service,
    Batch,
    System,
    Sysbatch,
    /// A batch job with a launch every few seconds.
    Periodic,
    /// A batch job for dispatches.
    Parameterized,
}

impl Kind {
    fn job_type(self) -> JobType {
        match self {
            Self::Service => JobType::Service,
            Self::Batch | Self::Periodic | Self::Parameterized => JobType::Batch,
            Self::System => JobType::System,
            Self::Sysbatch => JobType::Sysbatch,
        }
    }
}

/// The periodic job.
pub(super) const PERIODIC: &str = "tick";
/// The parameterized job.
pub(super) const PARAMETERIZED: &str = "call";

const fn known(id: &'static str, kind: Kind, priority: u8, weight: u32) -> Known {
    Known {
        id,
        kind,
        priority,
        weight,
    }
}

pub(super) const KNOWN: [Known; 9] = [
    known("web-a", Kind::Service, 50, 6),
    known("web-b", Kind::Service, 50, 6),
    known("web-c", Kind::Service, 80, 3),
    known("work-a", Kind::Batch, 30, 3),
    known("work-b", Kind::Batch, 50, 3),
    known("each", Kind::System, 60, 3),
    known("once", Kind::Sysbatch, 40, 2),
    known(PERIODIC, Kind::Periodic, 30, 1),
    known(PARAMETERIZED, Kind::Parameterized, 50, 1),
];

/// Draws a job.
pub(super) fn draw(rng: &mut StdRng) -> Known {
    let all: u32 = KNOWN.iter().map(|known| known.weight).sum();
    let mut drawn = rng.random_range(0..all);
    for known in KNOWN {
        if drawn < known.weight {
            return known;
        }
        drawn -= known.weight;
    }
    KNOWN[0]
}

/// Returns the job that `request` registers.
pub(super) fn job(rng: &mut StdRng, known: Known, request: &str) -> Job {
    let job_type = known.kind.job_type();
    let count = match job_type {
        JobType::System | JobType::Sysbatch => 1,
        JobType::Service | JobType::Batch => rng.random_range(1..6),
    };
    let mut job = match job_type {
        JobType::Service | JobType::System => builders::service(known.id, count),
        JobType::Batch | JobType::Sysbatch => builders::batch(known.id, count),
    };
    job.job_type = job_type;
    job.priority = known.priority;
    job.meta.insert(REQUEST.to_owned(), request.to_owned());
    let is_everywhere = job_type.is_per_node();
    let runs_on = !job_type.runs_to_end();
    let is_replaced = rng.random_bool(0.7);
    let outcome = outcome(rng, runs_on);
    let group = &mut job.task_groups[0];
    group.restart.delay = Duration::from_secs(1);
    group.restart.attempts = 1;
    if let Some(reschedule) = &mut group.reschedule {
        reschedule.delay = Duration::from_secs(5);
        reschedule.max_delay = Duration::from_secs(10);
    }
    if is_everywhere {
        group.reschedule = None;
        group.migrate = None;
    }
    if runs_on {
        group.update = Some(update(rng, job_type));
    }
    if job_type == JobType::Service && rng.random_bool(0.25) {
        group.networks = vec![network(rng)];
    }
    if job_type == JobType::System {
        group.networks = vec![network_of(vec![any_port()])];
    }
    let task = &mut group.tasks[0];
    task.restart = group.restart;
    task.resources.cpu_mhz = rng.random_range(3..=12) * 100;
    task.kill_timeout = Duration::from_secs(1);
    for (name, value) in outcome {
        task.config.insert(name.to_owned(), value);
    }
    if is_replaced {
        task.env.insert("REQUEST".to_owned(), request.to_owned());
    }
    match known.kind {
        Kind::Periodic => job.periodic = Some(periodic(rng)),
        Kind::Parameterized => {
            job.parameterized = Some(Parameterized {
                payload: PayloadRule::Optional,
                meta_required: Vec::new(),
                meta_optional: Vec::new(),
            });
        }
        _ => {}
    }
    job
}

/// Returns the outcome of the task: mostly success.
fn outcome(rng: &mut StdRng, runs_on: bool) -> Vec<(&'static str, serde_json::Value)> {
    let drawn = rng.random_range(0..20_u32);
    match (runs_on, drawn) {
        // Never becomes healthy, and fails.
        (true, 0 | 1) => vec![("run_for", "200ms".into()), ("exit_code", 1.into())],
        (true, _) => vec![("run_for", "1000h".into())],
        (false, 0) => vec![("run_for", "1s".into()), ("exit_code", 1.into())],
        (false, 1..=4) => vec![
            ("run_for", "1s".into()),
            ("exit_code", 1.into()),
            ("fail_attempts", 1.into()),
        ],
        (false, _) => vec![("run_for", "2s".into())],
    }
}

fn update(rng: &mut StdRng, job_type: JobType) -> UpdateStrategy {
    let mut update = builders::rolling_update(rng.random_range(1..=2));
    update.min_healthy_time = Duration::from_secs(1);
    update.healthy_deadline = Duration::from_secs(10);
    update.progress_deadline = Duration::from_secs(30);
    if rng.random_bool(0.3) {
        // A system job's canaries are a percentage of its nodes.
        update.canary = match job_type {
            JobType::System => 50,
            _ => rng.random_range(1..=2),
        };
        update.auto_promote = rng.random_bool(0.5);
    }
    update.auto_revert = rng.random_bool(0.4);
    update
}

fn network(rng: &mut StdRng) -> Network {
    let fixed = Port {
        label: "fixed".to_owned(),
        static_port: Some(rng.random_range(8_080..=8_081)),
        ..Port::default()
    };
    network_of(vec![fixed, any_port()])
}

fn any_port() -> Port {
    Port {
        label: "any".to_owned(),
        ..Port::default()
    }
}

fn network_of(ports: Vec<Port>) -> Network {
    Network {
        mode: "host".to_owned(),
        ports,
        ..Network::default()
    }
}

fn periodic(rng: &mut StdRng) -> Periodic {
    Periodic {
        enabled: true,
        crons: vec!["*/3 * * * * * *".to_owned()],
        is_list: false,
        prohibit_overlap: rng.random_bool(0.5),
        time_zone: "UTC".to_owned(),
    }
}
