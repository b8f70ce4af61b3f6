//! Sweeps of small replicas, carried out on them.

use std::time::Duration;

use model::job::JobType;
use model::{
    AllocClient, AllocId, ClientStatus, Deployment, DeploymentId, DeploymentStatus, DesiredStatus,
    Ended, EvalId, EvalStatus, Job, JobTally, NodeId, NodeStatus, Timestamp,
};
use proptest::prelude::*;
use state::{Change, Entity, Key, Snapshot, State};
use test_kit::builders;

use super::*;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

struct Site {
    state: State,
    revision: u64,
    now: Timestamp,
}

impl Site {
    fn new() -> Self {
        Self {
            state: State::default(),
            revision: 0,
            now: Timestamp::from_millis(1_000_000),
        }
    }

    fn snapshot(&self) -> Snapshot {
        self.state.snapshot()
    }

    fn pass(&mut self, span: Duration) -> &mut Self {
        self.now = self.now.plus(span);
        self
    }

    fn put(&mut self, key: Key, entity: Entity) {
        let snapshot = self.snapshot();
        self.revision += 1;
        let created = match &key {
            Key::Job(key) => snapshot.job(key).map(|job| job.create_index),
            Key::Eval(id) => snapshot.eval(*id).map(|eval| eval.create_index),
            Key::Alloc(id) => snapshot.alloc(*id).map(|view| view.create_index),
            _ => None,
        };
        let change = Change::Put {
            key,
            entity,
            create_index: created.unwrap_or(self.revision),
            modify_index: self.revision,
        };
        self.state.apply(self.revision, [change]);
    }

    fn delete(&mut self, key: Key) {
        self.revision += 1;
        self.state.apply(self.revision, [Change::Delete { key }]);
    }

    fn register(&mut self, job: &Job) {
        let mut job = job.clone();
        job.submit_time = self.now;
        let version = Key::JobVersion(job.key(), job.version);
        self.put(version, Entity::JobVersion(Box::new(job.clone())));
        self.put(Key::Job(job.key()), Entity::Job(Box::new(job)));
    }

    fn eval(&mut self, number: u128, job: &Job, status: EvalStatus) {
        let mut eval = builders::evaluation(number, job);
        eval.status = status;
        eval.modify_time = self.now;
        self.put(Key::Eval(eval.id), Entity::Eval(Box::new(eval)));
    }

    /// An allocation that evaluation `number` placed.
    fn alloc(&mut self, number: u128, job: &Job, edit: impl FnOnce(&mut model::Allocation)) {
        let mut alloc = builders::allocation(number, job, NodeId::from_random(1));
        let stored = self.snapshot();
        alloc.job_create_index = stored.job(&job.key()).map_or(1, |job| job.create_index);
        alloc.create_time = self.now;
        edit(&mut alloc);
        self.put(Key::Alloc(alloc.id), Entity::Alloc(Box::new(alloc)));
    }

    fn report(&mut self, number: u128, status: ClientStatus) {
        let client = AllocClient {
            status,
            modify_time: self.now,
            ..AllocClient::default()
        };
        let key = Key::AllocClient(AllocId::from_random(number));
        self.put(key, Entity::AllocClient(Box::new(client)));
    }

    fn deployment(&mut self, number: u128, job: &Job, status: DeploymentStatus) {
        let job_create_index = self
            .snapshot()
            .job(&job.key())
            .map_or(1, |job| job.create_index);
        let deployment = Deployment {
            id: DeploymentId::from_random(number),
            job: job.key(),
            job_version: job.version,
            job_create_index,
            job_modify_index: 0,
            groups: std::collections::BTreeMap::new(),
            status,
            status_description: String::new(),
            eval_priority: 50,
            create_time: self.now,
            modify_time: self.now,
        };
        let key = Key::Deployment(deployment.id);
        self.put(key, Entity::Deployment(Box::new(deployment)));
    }

    /// Sweeps, and deletes as told; every guard and revision must hold.
    fn sweep(&mut self, thresholds: &Thresholds) -> Counts {
        let batches = sweep(&self.snapshot(), self.now, thresholds);
        let mut counts = Counts::default();
        for batch in batches {
            assert!(
                batch.deletes.len() <= batch::OPS_MAX,
                "{}",
                batch.deletes.len()
            );
            match &batch.guard {
                Some(Guard::Unchanged(key, index)) => {
                    assert_eq!(self.snapshot().job(key).unwrap().modify_index, *index);
                }
                Some(Guard::Absent(key)) => assert!(self.snapshot().job(key).is_none()),
                None => {}
            }
            if let Some((key, more)) = batch.tally {
                let stored = self
                    .snapshot()
                    .job_tally(&key)
                    .map(|tally| tally.value.clone());
                let mut tally = stored.unwrap_or_else(|| JobTally {
                    job_create_index: more.job_create_index,
                    ..JobTally::default()
                });
                tally.add(&more);
                self.put(Key::JobTally(key), Entity::JobTally(Box::new(tally)));
            }
            for (key, index) in batch.deletes {
                assert!(index > 0, "{key:?}");
                self.delete(key);
            }
            counts.add(batch.counts);
        }
        counts
    }

    fn collect(&mut self) -> Counts {
        self.sweep(&Thresholds::default())
    }

    fn has_eval(&self, number: u128) -> bool {
        self.snapshot().eval(EvalId::from_random(number)).is_some()
    }

    fn has_alloc(&self, number: u128) -> bool {
        self.snapshot()
            .alloc(AllocId::from_random(number))
            .is_some()
    }
}

/// A service with three evaluations, each of which placed one allocation.
fn three_rounds(job: &Job) -> Site {
    let mut site = Site::new();
    site.register(job);
    for number in 1..=3 {
        site.eval(number, job, EvalStatus::Complete);
        site.alloc(number, job, |_| {});
    }
    site
}

#[test]
fn scenario_080_a_batch_jobs_results_stay_until_the_job_goes() {
    let job = builders::batch("crunch", 3);
    let mut site = three_rounds(&job);
    for number in 1..=3 {
        site.report(number, ClientStatus::Complete);
    }
    site.pass(2 * HOUR);
    assert_eq!(site.collect(), Counts::default(), "two hours old");
    let counts = site.pass(2 * HOUR).collect();
    let want = Counts {
        evals: 3,
        allocs: 3,
        jobs: 1,
        ..Counts::default()
    };
    assert_eq!(counts, want);
    assert!(site.snapshot().job(&job.key()).is_none());
    assert_eq!(site.snapshot().all_job_versions().count(), 0);
}

#[test]
fn scenario_081_a_failed_allocation_that_waits_for_its_replacement_stays() {
    let job = builders::service("web", 3);
    let mut site = three_rounds(&job);
    site.report(1, ClientStatus::Failed);
    site.report(2, ClientStatus::Complete);
    site.pass(2 * HOUR).collect();
    assert!(
        site.has_alloc(1) && site.has_eval(1),
        "it may still be replaced"
    );
    assert!(!site.has_alloc(2) && !site.has_eval(2));
    // Once it was, nobody asks for it any more.
    let next = AllocId::from_random(9);
    site.alloc(1, &job, |alloc| alloc.next_alloc = Some(next));
    site.pass(HOUR + MINUTE).collect();
    assert!(!site.has_alloc(1));
}

#[test]
fn scenario_082_what_was_collected_counts_on() {
    let job = builders::service("web", 3);
    let mut site = three_rounds(&job);
    for number in 4..14 {
        site.alloc(number, &job, |_| {});
        site.report(number, ClientStatus::Complete);
    }
    let complete = |site: &Site| site.snapshot().job_summary(&job.key())["web"].complete;
    assert_eq!(complete(&site), 10);
    assert_eq!(site.pass(2 * HOUR).collect().allocs, 10);
    assert_eq!(complete(&site), 10);
    site.alloc(20, &job, |_| {});
    site.report(20, ClientStatus::Complete);
    assert_eq!(complete(&site), 11);
    assert_eq!(site.pass(2 * HOUR).collect().allocs, 1);
    assert_eq!(complete(&site), 11);
    let ended = site.snapshot().job_tally(&job.key()).unwrap().value.groups["web"];
    assert_eq!(
        ended,
        Ended {
            complete: 11,
            ..Ended::default()
        }
    );
}

#[test]
fn the_newest_evaluation_of_a_job_stays() {
    let job = builders::service("web", 1);
    let mut site = three_rounds(&job);
    for number in 1..=3 {
        site.report(number, ClientStatus::Lost);
    }
    let before = site.snapshot().job_status(&job.key());
    let counts = site.pass(3 * HOUR).collect();
    assert_eq!((counts.evals, counts.allocs), (2, 3));
    assert!(site.has_eval(3));
    assert_eq!(site.snapshot().job_status(&job.key()), before);
    assert_eq!(site.pass(24 * HOUR).collect(), Counts::default());
}

#[test]
fn what_is_young_or_open_or_running_stays() {
    let job = builders::service("web", 3);
    let mut site = three_rounds(&job);
    site.eval(4, &job, EvalStatus::Blocked);
    site.eval(5, &job, EvalStatus::Pending);
    // Told to stop, and its node has not said that it has.
    site.alloc(2, &job, |alloc| alloc.desired_status = DesiredStatus::Stop);
    site.report(2, ClientStatus::Running);
    site.pass(50 * HOUR);
    site.report(3, ClientStatus::Complete);
    site.pass(59 * MINUTE).collect();
    for number in 1..=3 {
        assert!(site.has_alloc(number), "{number}");
    }
    assert!(site.has_eval(4) && site.has_eval(5));
    site.pass(MINUTE).collect();
    assert!(!site.has_alloc(3), "an hour after it was reported");
}

#[test]
fn a_stopped_job_goes_with_all_that_belongs_to_it() {
    let mut job = builders::service("web", 3);
    let mut site = three_rounds(&job);
    site.deployment(1, &job, DeploymentStatus::Successful);
    let stable = Key::JobStable(job.key(), 0);
    site.put(stable, Entity::JobStable);
    let tags = Entity::JobTags(Box::default());
    site.put(Key::JobTags(job.key()), tags);
    job.stop = true;
    job.version = 1;
    site.register(&job);
    for number in 1..=3 {
        site.alloc(number, &job, |alloc| {
            alloc.desired_status = DesiredStatus::Stop
        });
        site.report(number, ClientStatus::Complete);
    }
    assert_eq!(
        site.pass(3 * HOUR).collect().jobs,
        0,
        "registered three hours ago"
    );
    let counts = site.pass(HOUR).collect();
    assert_eq!(counts.jobs, 1);
    let left = site.snapshot();
    assert_eq!(left.evals().count() + left.allocs().count(), 0);
    assert_eq!(left.deployments().count(), 0);
    assert_eq!(left.all_job_versions().count(), 0);
    assert_eq!(left.all_stable_versions().count(), 0);
    assert_eq!(left.all_job_tags().count(), 0);
    assert_eq!(left.job_tallies().count(), 0);
    assert_eq!(left.stray_clients().count(), 0);
}

#[test]
fn a_claim_goes_with_its_job_or_its_volume_and_not_before() {
    use model::{Volume, VolumeClaim, VolumeId};
    let volume = |number: u128| Volume {
        namespace: "default".into(),
        name: "data".into(),
        node_id: NodeId::from_random(number),
        id: VolumeId::from_random(number),
        host_path: "/srv/data".into(),
        capabilities: Vec::new(),
        deleting: false,
        create_time: Timestamp(1),
        modify_time: Timestamp(1),
    };
    let claim = |job: &str, volume: &Volume| VolumeClaim {
        namespace: "default".into(),
        job_id: job.into(),
        task_group: "web".into(),
        alloc_id: AllocId::from_random(1),
        volume_id: volume.id,
        volume_name: "data".into(),
        node_id: volume.node_id,
    };
    let mut site = Site::new();
    site.register(&builders::service("web", 1));
    let there = volume(1);
    // Registered anew on the same node: another volume.
    let other = Volume {
        id: VolumeId::from_random(9),
        ..volume(2)
    };
    for volume in [&there, &other] {
        let entity = Entity::Volume(Box::new(volume.clone()));
        site.put(Key::Volume(volume.key()), entity);
    }
    let kept = claim("web", &there);
    for claim in [
        kept.clone(),
        claim("gone", &there),
        claim("web", &volume(2)),
        claim("web", &volume(3)),
    ] {
        let entity = Entity::VolumeClaim(Box::new(claim.clone()));
        site.put(Key::VolumeClaim(claim.id()), entity);
    }
    let orphan = Key::VolumeClaim(claim("gone", &there).id());
    let mut batches = sweep(&site.snapshot(), site.now, &Thresholds::default()).into_iter();
    let batch = batches.find(|batch| batch.deletes.iter().any(|(key, _)| *key == orphan));
    let gone = model::JobKey::new("default", "gone");
    // Whoever registers the job meanwhile finds the claim.
    assert_eq!(batch.unwrap().guard, Some(Guard::Absent(gone)));
    site.collect();
    let left = site.snapshot();
    let left: Vec<_> = left.volume_claims().map(|claim| &claim.value).collect();
    assert_eq!(left, [&kept]);
}

#[test]
fn a_purged_jobs_versions_go_with_its_last_allocation() {
    let job = builders::service("web", 1);
    let mut site = three_rounds(&job);
    site.delete(Key::Job(job.key()));
    for number in 1..=2 {
        site.alloc(number, &job, |alloc| {
            alloc.desired_status = DesiredStatus::Stop
        });
        site.report(number, ClientStatus::Complete);
    }
    site.pass(2 * HOUR).collect();
    assert_eq!(
        site.snapshot().all_job_versions().count(),
        1,
        "one allocation runs"
    );
    assert!(site.has_alloc(3) && !site.has_alloc(1));
    site.alloc(3, &job, |alloc| alloc.desired_status = DesiredStatus::Stop);
    site.report(3, ClientStatus::Complete);
    site.pass(2 * HOUR).collect();
    let left = site.snapshot();
    assert_eq!(left.all_job_versions().count() + left.evals().count(), 0);
}

#[test]
fn results_of_a_batch_job_stay_when_it_is_registered_anew() {
    let mut job = builders::batch("crunch", 2);
    let mut site = three_rounds(&job);
    for number in 1..=3 {
        site.report(number, ClientStatus::Complete);
    }
    job.version = 1;
    site.pass(25 * HOUR);
    site.register(&job);
    site.eval(9, &job, EvalStatus::Complete);
    site.alloc(9, &job, |_| {});
    assert_eq!(
        site.collect(),
        Counts::default(),
        "what is done is done for the next version, too"
    );
    assert_eq!(
        site.sweep(&Thresholds::forced()),
        Counts::default(),
        "one still runs"
    );
    // Purged and registered anew, it is another job.
    site.delete(Key::Job(job.key()));
    site.register(&job);
    site.eval(10, &job, EvalStatus::Complete);
    let counts = site.pass(25 * HOUR).collect();
    assert_eq!((counts.allocs, counts.evals), (3, 3));
}

#[test]
fn what_others_go_by_stays() {
    let job = builders::service("web", 6);
    let mut site = Site::new();
    site.register(&job);
    for number in 1..=6 {
        site.eval(number, &job, EvalStatus::Complete);
        site.alloc(number, &job, |_| {});
    }
    site.deployment(1, &job, DeploymentStatus::Paused);
    let lost = |alloc: &mut model::Allocation| alloc.desired_status = DesiredStatus::Stop;
    // Of a deployment that is under way.
    site.alloc(1, &job, |alloc| {
        lost(alloc);
        alloc.deployment_id = Some(DeploymentId::from_random(1));
    });
    // Its node may still run it, and an evaluation waits for that to be over.
    site.eval(7, &job, EvalStatus::Pending);
    site.alloc(2, &job, |alloc| {
        lost(alloc);
        alloc.followup_eval_id = Some(EvalId::from_random(7));
    });
    // Two that stood in for one out of reach, one after the other.
    site.report(3, ClientStatus::Unknown);
    site.alloc(4, &job, |alloc| {
        lost(alloc);
        alloc.previous_alloc = Some(AllocId::from_random(3));
        alloc.next_alloc = Some(AllocId::from_random(5));
    });
    site.alloc(5, &job, |alloc| {
        lost(alloc);
        alloc.previous_alloc = Some(AllocId::from_random(4));
    });
    // Nothing of the kind.
    site.alloc(6, &job, lost);
    for number in [1, 2, 4, 5, 6] {
        site.report(number, ClientStatus::Lost);
    }
    site.pass(50 * HOUR).collect();
    site.sweep(&Thresholds::forced());
    let left: Vec<_> = (1..=6).filter(|number| site.has_alloc(*number)).collect();
    assert_eq!(left, [1, 2, 3, 4, 5]);
}

#[test]
fn what_a_node_has_not_ended_stays_while_the_node_can_be_asked() {
    let mut job = builders::service("web", 1);
    let mut site = three_rounds(&job);
    let mut node = builders::node(1);
    node.status_updated_at = site.now;
    site.put(Key::Node(node.id), Entity::Node(Box::new(node.clone())));
    job.stop = true;
    site.register(&job);
    for number in 1..=3 {
        site.alloc(number, &job, |alloc| {
            alloc.desired_status = DesiredStatus::Stop
        });
    }
    site.report(2, ClientStatus::Running);
    site.sweep(&Thresholds::forced());
    assert!(site.has_alloc(1) && site.has_alloc(2) && site.snapshot().job(&job.key()).is_some());
    node.status = NodeStatus::Down;
    site.put(Key::Node(node.id), Entity::Node(Box::new(node)));
    site.sweep(&Thresholds::forced());
    assert!(
        !site.has_alloc(1) && site.has_alloc(2),
        "one runs, as far as anybody knows"
    );
}

#[test]
fn a_deployment_stays_as_long_as_anything_names_it() {
    let job = builders::service("web", 1);
    let mut site = three_rounds(&job);
    site.deployment(1, &job, DeploymentStatus::Successful);
    site.deployment(2, &job, DeploymentStatus::Successful);
    site.alloc(1, &job, |alloc| {
        alloc.deployment_id = Some(DeploymentId::from_random(1))
    });
    site.report(1, ClientStatus::Failed);
    assert_eq!(site.pass(2 * HOUR).collect().deployments, 0);
    site.alloc(1, &job, |alloc| {
        alloc.deployment_id = Some(DeploymentId::from_random(1));
        alloc.desired_status = DesiredStatus::Stop;
    });
    assert_eq!(site.pass(2 * HOUR).collect().deployments, 1);
}

#[test]
fn whoever_asks_need_not_wait() {
    let batch = builders::batch("crunch", 1);
    let mut site = three_rounds(&batch);
    for number in 1..=3 {
        site.report(number, ClientStatus::Complete);
    }
    let mut node = builders::node(1);
    node.status = NodeStatus::Down;
    node.status_updated_at = site.now;
    site.put(Key::Node(node.id), Entity::Node(Box::new(node)));
    let counts = site.sweep(&Thresholds::forced());
    let want = Counts {
        evals: 3,
        allocs: 3,
        jobs: 1,
        nodes: 1,
        deployments: 0,
    };
    assert_eq!(counts, want);
    assert_eq!(counts.total(), 8);
}

#[test]
fn a_node_goes_when_it_has_long_been_down_and_nothing_is_left_on_it() {
    let mut site = Site::new();
    let job = builders::service("web", 1);
    let put = |site: &mut Site, number: u128, status: NodeStatus| {
        let mut node = builders::node(number);
        node.status = status;
        node.status_updated_at = site.now;
        site.put(Key::Node(node.id), Entity::Node(Box::new(node)));
    };
    site.register(&job);
    put(&mut site, 1, NodeStatus::Down);
    put(&mut site, 2, NodeStatus::Down);
    put(&mut site, 3, NodeStatus::Disconnected);
    put(&mut site, 4, NodeStatus::Ready);
    site.alloc(1, &job, |_| {});
    assert_eq!(site.pass(23 * HOUR).collect().nodes, 0);
    assert_eq!(site.pass(HOUR).collect().nodes, 1);
    let left: Vec<_> = site
        .snapshot()
        .nodes()
        .map(|node| node.value.name.clone())
        .collect();
    assert_eq!(left.len(), 3);
    assert!(!left.contains(&"n2".to_owned()), "{left:?}");
}

#[test]
fn what_the_newest_deployment_came_to_stays_known() {
    let job = builders::service("web", 1);
    let mut site = three_rounds(&job);
    site.deployment(1, &job, DeploymentStatus::Successful);
    site.deployment(2, &job, DeploymentStatus::Failed);
    assert_eq!(site.pass(2 * HOUR).collect().deployments, 1);
    let left: Vec<_> = site
        .snapshot()
        .deployments()
        .map(|left| left.value.status)
        .collect();
    assert_eq!(left, [DeploymentStatus::Failed]);
}

#[test]
fn a_failed_allocation_without_attempts_left_holds_its_place() {
    let mut job = builders::batch("crunch", 2);
    job.job_type = JobType::Service;
    let mut site = three_rounds(&job);
    site.report(1, ClientStatus::Failed);
    site.pass(50 * HOUR).collect();
    assert!(
        site.has_alloc(1),
        "forgotten, it would be missing, and placed anew"
    );
    job.stop = true;
    site.register(&job);
    site.pass(2 * HOUR).collect();
    assert!(!site.has_alloc(1));
}

#[test]
fn a_large_job_goes_first_and_then_what_it_leaves_in_pieces() {
    let mut job = builders::service("web", 1);
    let mut site = Site::new();
    job.stop = true;
    site.register(&job);
    for number in 0..2_000 {
        site.alloc(number, &job, |alloc| {
            alloc.desired_status = DesiredStatus::Stop
        });
        site.report(number, ClientStatus::Complete);
    }
    site.eval(1, &job, EvalStatus::Complete);
    site.pass(5 * HOUR);
    let batches = sweep(&site.snapshot(), site.now, &Thresholds::default());
    assert!(batches.len() >= 4);
    let job_key = Key::Job(job.key());
    let (first, rest) = batches.split_first().unwrap();
    assert!(first.deletes.iter().all(|(key, _)| *key == job_key));
    for batch in rest {
        assert_eq!(batch.guard, Some(Guard::Absent(job.key())));
        // Both sides of an allocation go together.
        let sides = |is: fn(&Key) -> bool| batch.deletes.iter().filter(|(key, _)| is(key)).count();
        let desired = sides(|key| matches!(key, Key::Alloc(_)));
        assert_eq!(desired, sides(|key| matches!(key, Key::AllocClient(_))));
    }
    assert_eq!(site.collect().allocs, 2_000);
    assert_eq!(site.snapshot().allocs().count(), 0);
}

proptest! {
    /// Whatever is swept, job status and the summary's counts stay, nothing live goes, and sweeps
    /// come to an end: after what the job's own age allows, there is nothing more.
    #[test]
    fn a_sweep_changes_nothing_that_anybody_can_tell(
        is_batch in any::<bool>(),
        is_stopped in any::<bool>(),
        allocs in prop::collection::vec((0_u8..6, any::<bool>(), 0_u64..30), 0..12),
        evals in prop::collection::vec((0_u8..4, 0_u64..30), 1..8),
        hours in 0_u64..48,
    ) {
        let mut job = if is_batch { builders::batch("j", 3) } else { builders::service("j", 3) };
        job.stop = is_stopped;
        let mut site = Site::new();
        let start = site.now;
        site.register(&job);
        for (number, (status, at)) in (1..).zip(&evals) {
            site.now = start.plus(Duration::from_secs(at * 3_600));
            let status = [EvalStatus::Complete, EvalStatus::Failed, EvalStatus::Canceled, EvalStatus::Blocked]
                [usize::from(*status)];
            site.eval(number, &job, status);
        }
        for (number, (status, is_wanted, at)) in (1..).zip(&allocs) {
            site.now = start.plus(Duration::from_secs(at * 3_600));
            site.alloc(number, &job, |alloc| {
                if !is_wanted {
                    alloc.desired_status = DesiredStatus::Stop;
                }
            });
            let status = [
                ClientStatus::Pending,
                ClientStatus::Running,
                ClientStatus::Complete,
                ClientStatus::Failed,
                ClientStatus::Lost,
                ClientStatus::Unknown,
            ][usize::from(*status)];
            site.report(number, status);
        }
        site.now = start.plus(Duration::from_secs((30 + hours) * 3_600));
        let before = site.snapshot();
        site.collect();
        let after = site.snapshot();
        for view in before.allocs().filter(|view| !view.is_terminal()) {
            prop_assert!(after.alloc(view.alloc.id).is_some());
        }
        for eval in before.open_evals() {
            prop_assert!(after.eval(eval.value.id).is_some());
        }
        if after.job(&job.key()).is_some() {
            prop_assert_eq!(before.job_status(&job.key()), after.job_status(&job.key()));
            // One that was told to stop out of reach is forgotten without having ended.
            let counts = |snapshot: &Snapshot| {
                let mut groups = snapshot.job_summary(&job.key());
                groups.values_mut().for_each(|group| group.unknown = 0);
                groups
            };
            prop_assert_eq!(counts(&before), counts(&after));
        } else {
            prop_assert_eq!(before.job_status(&job.key()), Some(JobStatus::Dead));
        }
        site.collect();
        prop_assert_eq!(site.collect(), Counts::default());
    }
}

/// A parameterized job without an evaluation of its own.
fn parent() -> Job {
    let mut job = builders::batch("p", 1);
    job.parameterized = Some(model::Parameterized {
        payload: model::PayloadRule::Optional,
        meta_required: Vec::new(),
        meta_optional: Vec::new(),
    });
    job
}

#[test]
fn a_parent_goes_only_once_it_was_stopped() {
    let mut site = Site::new();
    site.register(&parent());
    let record = model::PeriodicLaunch { launched: site.now };
    site.put(
        Key::PeriodicLaunch(parent().key()),
        Entity::PeriodicLaunch(record),
    );
    assert_eq!(site.pass(100 * HOUR).collect(), Counts::default());
    let stopped = Job {
        stop: true,
        version: 1,
        ..parent()
    };
    site.register(&stopped);
    assert_eq!(site.pass(5 * HOUR).collect().jobs, 1);
    assert!(site.snapshot().periodic_launch(&parent().key()).is_none());
}

#[test]
fn a_child_that_goes_takes_its_token_along_and_counts_on_as_a_dead_one() {
    let mut site = Site::new();
    site.register(&parent());
    let payload = model::Payload::default();
    let id = "p/dispatch-1-a".to_owned();
    let child = parent().dispatched_child(id, &Default::default(), payload, "t1", site.now);
    site.register(&child);
    site.eval(1, &child, EvalStatus::Complete);
    let token = model::DispatchToken {
        child_id: child.id.clone(),
    };
    site.put(
        Key::DispatchToken(parent().key(), "t1".to_owned()),
        Entity::DispatchToken(token),
    );
    let dead = |site: &Site| {
        site.snapshot()
            .children_summary(&parent().key())
            .unwrap()
            .dead
    };
    assert_eq!(dead(&site), 1);
    assert_eq!(site.pass(25 * HOUR).collect().jobs, 1);
    assert!(site.snapshot().job(&child.key()).is_none());
    assert!(
        site.snapshot()
            .dispatch_token(&parent().key(), "t1")
            .is_none()
    );
    assert_eq!(dead(&site), 1);
    assert!(site.snapshot().job(&parent().key()).is_some());
}

#[test]
fn what_stood_beside_a_purged_job_goes() {
    let mut site = Site::new();
    site.register(&parent());
    let record = model::PeriodicLaunch { launched: site.now };
    site.put(
        Key::PeriodicLaunch(parent().key()),
        Entity::PeriodicLaunch(record),
    );
    let events = Entity::ScalingEvents(Box::default());
    site.put(Key::ScalingEvents(parent().key(), "web".to_owned()), events);
    let token = model::DispatchToken {
        child_id: "p/dispatch-1-a".to_owned(),
    };
    site.put(
        Key::DispatchToken(parent().key(), "t".to_owned()),
        Entity::DispatchToken(token),
    );
    site.delete(Key::Job(parent().key()));
    site.collect();
    let snapshot = site.snapshot();
    assert_eq!(snapshot.periodic_launches().count(), 0);
    assert_eq!(snapshot.all_scaling_events().count(), 0);
    assert_eq!(snapshot.dispatch_tokens().count(), 0);
}
