//! Random clusters and drains: every drain ends, at the allowed pace, with nothing left.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{AllocId, Allocation, ClientStatus, DesiredStatus, Job, JobType};
use proptest::prelude::*;
use state::AllocView;

use super::fixture::{Fixture, SECOND, node_id, of_type, paced};

/// Steps of a second within which every drain has to be over: the longest deadline, the longest
/// work, and each allocation's move one after the other.
const STEPS_MAX: usize = 400;
const NODES: u128 = 6;
/// Nodes from here on are never drained, so there is always somewhere to go.
const SAFE: u128 = 4;

struct Draw(u64);

impl Draw {
    fn below(&mut self, end: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

fn jobs(draw: &mut Draw) -> Vec<Job> {
    let count = 1 + draw.below(5);
    let job = |number: u64, draw: &mut Draw| {
        let id = format!("job-{number}");
        match draw.below(6) {
            0 => of_type(&id, JobType::Batch),
            1 => of_type(&id, JobType::Sysbatch),
            2 => of_type(&id, JobType::System),
            _ => paced(&id, 1 + draw.below(6) as u32, 1 + draw.below(3) as u32),
        }
    };
    (0..count).map(|number| job(number, draw)).collect()
}

/// Returns the number of the group's allocations that are not healthy on a node where they may
/// stay.
fn on_the_move(fixture: &Fixture, job: &Job) -> u32 {
    let snapshot = fixture.snapshot();
    let stands = |view: &&AllocView| {
        let healthy = view.verdict().is_some_and(|verdict| verdict.healthy);
        !view.is_terminal() && !view.alloc.transition.migrate && healthy
    };
    let standing = snapshot.allocs_by_job(&job.key()).filter(stands).count();
    job.task_groups[0].count - u32::try_from(standing).unwrap()
}

/// Nodes start and stop allocations as assigned, after a random delay.
fn live(fixture: &mut Fixture, draw: &mut Draw, ends: &mut BTreeMap<AllocId, usize>) {
    let snapshot = fixture.snapshot();
    let mut views: Vec<AllocView> = snapshot.allocs().cloned().collect();
    views.sort_by_key(|view| view.alloc.id);
    for view in views {
        let id = view.alloc.id;
        if view.is_client_terminal() {
            continue;
        }
        let job = snapshot.job(&view.alloc.job_key()).unwrap();
        let is_service = job.value.job_type == JobType::Service;
        if view.alloc.is_server_terminal() {
            if draw.below(2) == 0 {
                fixture.report_of(id, ClientStatus::Complete, None);
            }
        } else if view.client_status() == ClientStatus::Pending {
            fixture.report_of(id, ClientStatus::Running, None);
        } else if is_service && view.verdict().is_none() {
            match draw.below(4) {
                0 => {
                    // The scheduler replaces it in place.
                    fixture.report_of(id, ClientStatus::Failed, Some(false));
                    let again = Allocation {
                        id: AllocId::from_random(u128::from(draw.below(1 << 40)) << 20),
                        desired_status: DesiredStatus::Run,
                        ..Allocation::clone(&view.alloc)
                    };
                    fixture.write_alloc(again);
                }
                1 => {}
                _ => fixture.report_of(id, ClientStatus::Running, Some(true)),
            }
        } else if job.value.job_type.runs_to_end() {
            let left = ends.entry(id).or_insert_with(|| draw.below(100) as usize);
            if *left == 0 {
                fixture.report_of(id, ClientStatus::Complete, None);
            }
            *left = left.saturating_sub(1);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_drain_ends_at_its_pace(seed in any::<u64>()) {
        let mut draw = Draw(seed);
        let mut fixture = Fixture::new(NODES);
        let jobs = jobs(&mut draw);
        let mut number = 0;
        for job in &jobs {
            fixture.put_job(job);
            for name_index in 0..job.task_groups[0].count {
                number += 1;
                fixture.run(number, job, name_index, 1 + u128::from(draw.below(NODES as u64)));
            }
        }
        let mut ends = BTreeMap::new();
        let mut ignoring = BTreeMap::new();
        let mut earliest = None;
        for node in 1..SAFE {
            let deadline = match draw.below(3) {
                0 => None,
                1 => Some(Duration::from_secs(draw.below(60))),
                _ => Some(Duration::from_secs(3_600)),
            };
            let ignores = draw.below(2) == 0;
            if let Some(deadline) = deadline {
                let at = fixture.now.plus(deadline);
                earliest = Some(earliest.map_or(at, |earlier: model::Timestamp| earlier.min(at)));
            }
            ignoring.insert(node, ignores);
            fixture.drain_with(node, deadline, ignores);
        }
        let mut done = Vec::new();
        for _ in 0..STEPS_MAX {
            let has_time = earliest.is_none_or(|at| fixture.now < at);
            if draw.below(10) == 0 {
                // Another leads.
                let snapshot = fixture.snapshot();
                fixture.draining = Default::default();
                fixture.draining.resync(&snapshot);
            }
            done.extend(fixture.step().1);
            if has_time {
                for job in jobs.iter().filter(|job| job.job_type == JobType::Service) {
                    let group = &job.task_groups[0];
                    let pace = group.migrate.as_ref().unwrap().max_parallel;
                    prop_assert!(on_the_move(&fixture, job) <= pace, "{}", job.id);
                }
            }
            if draw.below(2) == 0 {
                let to = SAFE + u128::from(draw.below((NODES - SAFE + 1) as u64));
                fixture.schedule(to);
            }
            live(&mut fixture, &mut draw, &mut ends);
            fixture.now = fixture.now.plus(SECOND);
            if fixture.draining.is_empty() {
                break;
            }
        }
        done.sort_unstable();
        prop_assert_eq!(done, (1..SAFE).collect::<Vec<_>>(), "every drain ends, once");
        let snapshot = fixture.snapshot();
        for (node, ignores) in ignoring {
            for view in snapshot.allocs_by_node(node_id(node)) {
                let job = snapshot.job(&view.alloc.job_key()).unwrap();
                let stays = ignores && job.value.job_type == JobType::System;
                prop_assert_eq!(view.is_client_terminal(), !stays);
            }
        }
    }
}
