//! Sweeps of small replicas, and their effect.

use std::time::Duration;

use model::job::JobType;
use model::{
    AllocClient, AllocId, ClientStatus, Deployment, DeploymentId, DeploymentStatus, DesiredStatus,
    Ended, EvalId, EvalStatus, Job, JobTally, NodeId, NodeStatus, Timestamp,
};
use proptest::prelude::*;
use state::{Change, Entity, JobStatus, Key, Snapshot, State, Write};
use test_kit::builders;

use super::*;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

/// Returns the keys that a batch deletes.
fn deletions(batch: &Batch) -> impl Iterator<Item = &Key> {
    batch.writes.iter().filter_map(|write| match write {
        Write::Delete { key, .. } => Some(key),
        _ => None,
    })
}

/// Returns a batch's requirements for a key that it does not delete.
fn guards(batch: &Batch) -> Vec<&Write> {
    let is_guard = |write: &&Write| !matches!(write, Write::Delete { .. });
    batch.writes.iter().filter(is_guard).collect()
}

struct Fixture {
    state: State,
    revision: u64,
    now: Timestamp,
}

impl Fixture {
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

    fn pass(&mut self, duration: Duration) -> &mut Self {
        self.now = self.now.plus(duration);
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

    /// Sweeps and performs the writes; every compare must hold.
    fn sweep(&mut self, thresholds: &Thresholds) -> Counts {
        let batches = sweep(&self.snapshot(), self.now, thresholds);
        let mut counts = Counts::default();
        for batch in batches {
            let deleted = deletions(&batch).count();
            assert!(deleted <= batch::DELETIONS_MAX, "{deleted}");
            if let Some((key, more)) = &batch.tally {
                let snapshot = self.snapshot();
                let stored = snapshot.job_tally(key);
                let stored = stored.map(|row| (&row.value, row.modify_index));
                let (write, _) = tally::add(key, more, stored);
                self.put(write.key().clone(), write.entity().unwrap().clone());
            }
            for write in batch.writes {
                match write {
                    Write::Delete { key, modify_index } => {
                        assert!(modify_index > 0, "{key:?}");
                        self.delete(key);
                    }
                    Write::RequireUnchanged {
                        key: Key::Job(key),
                        modify_index,
                    } => {
                        let job = self.snapshot().job(&key).cloned();
                        assert_eq!(job.unwrap().modify_index, modify_index);
                    }
                    Write::RequireAbsent { key: Key::Job(key) } => {
                        assert!(self.snapshot().job(&key).is_none());
                    }
                    other => panic!("a sweep writes {other:?}"),
                }
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
fn three_rounds(job: &Job) -> Fixture {
    let mut fixture = Fixture::new();
    fixture.register(job);
    for number in 1..=3 {
        fixture.eval(number, job, EvalStatus::Complete);
        fixture.alloc(number, job, |_| {});
    }
    fixture
}

#[test]
fn scenario_080_a_batch_jobs_results_stay_until_the_job_goes() {
    let job = builders::batch("crunch", 3);
    let mut fixture = three_rounds(&job);
    for number in 1..=3 {
        fixture.report(number, ClientStatus::Complete);
    }
    fixture.pass(2 * HOUR);
    assert_eq!(fixture.collect(), Counts::default(), "two hours old");
    let counts = fixture.pass(2 * HOUR).collect();
    let want = Counts {
        evals: 3,
        allocs: 3,
        jobs: 1,
        ..Counts::default()
    };
    assert_eq!(counts, want);
    assert!(fixture.snapshot().job(&job.key()).is_none());
    assert_eq!(fixture.snapshot().all_job_versions().count(), 0);
}

#[test]
fn scenario_081_a_failed_allocation_that_waits_for_its_replacement_stays() {
    let job = builders::service("web", 3);
    let mut fixture = three_rounds(&job);
    fixture.report(1, ClientStatus::Failed);
    fixture.report(2, ClientStatus::Complete);
    fixture.pass(2 * HOUR).collect();
    assert!(
        fixture.has_alloc(1) && fixture.has_eval(1),
        "it may still be replaced"
    );
    assert!(!fixture.has_alloc(2) && !fixture.has_eval(2));
    // Once it was replaced, it may go.
    let next = AllocId::from_random(9);
    fixture.alloc(1, &job, |alloc| alloc.next_alloc = Some(next));
    fixture.pass(HOUR + MINUTE).collect();
    assert!(!fixture.has_alloc(1));
}

#[test]
fn scenario_082_collected_allocations_stay_in_the_summary() {
    let job = builders::service("web", 3);
    let mut fixture = three_rounds(&job);
    for number in 4..14 {
        fixture.alloc(number, &job, |_| {});
        fixture.report(number, ClientStatus::Complete);
    }
    let complete = |fixture: &Fixture| fixture.snapshot().job_summary(&job.key())["web"].complete;
    assert_eq!(complete(&fixture), 10);
    assert_eq!(fixture.pass(2 * HOUR).collect().allocs, 10);
    assert_eq!(complete(&fixture), 10);
    fixture.alloc(20, &job, |_| {});
    fixture.report(20, ClientStatus::Complete);
    assert_eq!(complete(&fixture), 11);
    assert_eq!(fixture.pass(2 * HOUR).collect().allocs, 1);
    assert_eq!(complete(&fixture), 11);
    let ended = fixture
        .snapshot()
        .job_tally(&job.key())
        .unwrap()
        .value
        .groups["web"];
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
    let mut fixture = three_rounds(&job);
    for number in 1..=3 {
        fixture.report(number, ClientStatus::Lost);
    }
    let before = fixture.snapshot().job_status(&job.key());
    let counts = fixture.pass(3 * HOUR).collect();
    assert_eq!((counts.evals, counts.allocs), (2, 3));
    assert!(fixture.has_eval(3));
    assert_eq!(fixture.snapshot().job_status(&job.key()), before);
    assert_eq!(fixture.pass(24 * HOUR).collect(), Counts::default());
}

#[test]
fn young_open_and_running_objects_stay() {
    let job = builders::service("web", 3);
    let mut fixture = three_rounds(&job);
    fixture.eval(4, &job, EvalStatus::Blocked);
    fixture.eval(5, &job, EvalStatus::Pending);
    // Told to stop, and its node has not said that it has.
    fixture.alloc(2, &job, |alloc| alloc.desired_status = DesiredStatus::Stop);
    fixture.report(2, ClientStatus::Running);
    fixture.pass(50 * HOUR);
    fixture.report(3, ClientStatus::Complete);
    fixture.pass(59 * MINUTE).collect();
    for number in 1..=3 {
        assert!(fixture.has_alloc(number), "{number}");
    }
    assert!(fixture.has_eval(4) && fixture.has_eval(5));
    fixture.pass(MINUTE).collect();
    assert!(!fixture.has_alloc(3), "an hour after it was reported");
}

#[test]
fn a_stopped_job_goes_with_all_that_belongs_to_it() {
    let mut job = builders::service("web", 3);
    let mut fixture = three_rounds(&job);
    fixture.deployment(1, &job, DeploymentStatus::Successful);
    let stable = Key::JobStable(job.key(), 0);
    fixture.put(stable, Entity::JobStable);
    let tags = Entity::JobTags(Box::default());
    fixture.put(Key::JobTags(job.key()), tags);
    job.stop = true;
    job.version = 1;
    fixture.register(&job);
    for number in 1..=3 {
        fixture.alloc(number, &job, |alloc| {
            alloc.desired_status = DesiredStatus::Stop
        });
        fixture.report(number, ClientStatus::Complete);
    }
    assert_eq!(
        fixture.pass(3 * HOUR).collect().jobs,
        0,
        "registered three hours ago"
    );
    let counts = fixture.pass(HOUR).collect();
    assert_eq!(counts.jobs, 1);
    let left = fixture.snapshot();
    assert_eq!(left.evals().count() + left.allocs().count(), 0);
    assert_eq!(left.deployments().count(), 0);
    assert_eq!(left.all_job_versions().count(), 0);
    assert_eq!(left.all_stable_versions().count(), 0);
    assert_eq!(left.all_job_tags().count(), 0);
    assert_eq!(left.job_tallies().count(), 0);
    assert_eq!(left.clients_without_alloc().count(), 0);
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
    let mut fixture = Fixture::new();
    fixture.register(&builders::service("web", 1));
    let there = volume(1);
    // Registered anew on the same node: another volume.
    let other = Volume {
        id: VolumeId::from_random(9),
        ..volume(2)
    };
    for volume in [&there, &other] {
        let entity = Entity::Volume(Box::new(volume.clone()));
        fixture.put(Key::Volume(volume.key()), entity);
    }
    let kept = claim("web", &there);
    for claim in [
        kept.clone(),
        claim("gone", &there),
        claim("web", &volume(2)),
        claim("web", &volume(3)),
    ] {
        let entity = Entity::VolumeClaim(Box::new(claim.clone()));
        fixture.put(Key::VolumeClaim(claim.id()), entity);
    }
    let orphan = Key::VolumeClaim(claim("gone", &there).id());
    let mut batches = sweep(&fixture.snapshot(), fixture.now, &Thresholds::default()).into_iter();
    let batch = batches.find(|batch| deletions(batch).any(|key| *key == orphan));
    let gone = model::JobKey::new("default", "gone");
    // A job that is registered meanwhile keeps its claim.
    let absent = Write::RequireAbsent {
        key: Key::Job(gone),
    };
    assert_eq!(guards(&batch.unwrap()), [&absent]);
    fixture.collect();
    let left = fixture.snapshot();
    let left: Vec<_> = left.volume_claims().map(|claim| &claim.value).collect();
    assert_eq!(left, [&kept]);
}

#[test]
fn a_purged_jobs_versions_go_with_its_last_allocation() {
    let job = builders::service("web", 1);
    let mut fixture = three_rounds(&job);
    fixture.delete(Key::Job(job.key()));
    for number in 1..=2 {
        fixture.alloc(number, &job, |alloc| {
            alloc.desired_status = DesiredStatus::Stop
        });
        fixture.report(number, ClientStatus::Complete);
    }
    fixture.pass(2 * HOUR).collect();
    assert_eq!(
        fixture.snapshot().all_job_versions().count(),
        1,
        "one allocation runs"
    );
    assert!(fixture.has_alloc(3) && !fixture.has_alloc(1));
    fixture.alloc(3, &job, |alloc| alloc.desired_status = DesiredStatus::Stop);
    fixture.report(3, ClientStatus::Complete);
    fixture.pass(2 * HOUR).collect();
    let left = fixture.snapshot();
    assert_eq!(left.all_job_versions().count() + left.evals().count(), 0);
}

#[test]
fn results_of_a_batch_job_stay_when_it_is_registered_anew() {
    let mut job = builders::batch("crunch", 2);
    let mut fixture = three_rounds(&job);
    for number in 1..=3 {
        fixture.report(number, ClientStatus::Complete);
    }
    job.version = 1;
    fixture.pass(25 * HOUR);
    fixture.register(&job);
    fixture.eval(9, &job, EvalStatus::Complete);
    fixture.alloc(9, &job, |_| {});
    assert_eq!(
        fixture.collect(),
        Counts::default(),
        "what is done is done for the next version, too"
    );
    assert_eq!(
        fixture.sweep(&Thresholds::forced()),
        Counts::default(),
        "one still runs"
    );
    // Purged and registered anew, it is another job.
    fixture.delete(Key::Job(job.key()));
    fixture.register(&job);
    fixture.eval(10, &job, EvalStatus::Complete);
    let counts = fixture.pass(25 * HOUR).collect();
    assert_eq!((counts.allocs, counts.evals), (3, 3));
}

#[test]
fn objects_that_others_refer_to_stay() {
    let job = builders::service("web", 6);
    let mut fixture = Fixture::new();
    fixture.register(&job);
    for number in 1..=6 {
        fixture.eval(number, &job, EvalStatus::Complete);
        fixture.alloc(number, &job, |_| {});
    }
    fixture.deployment(1, &job, DeploymentStatus::Paused);
    let lost = |alloc: &mut model::Allocation| alloc.desired_status = DesiredStatus::Stop;
    // Of a deployment that is under way.
    fixture.alloc(1, &job, |alloc| {
        lost(alloc);
        alloc.deployment_id = Some(DeploymentId::from_random(1));
    });
    // Its node may still run it, and an evaluation waits for that to be over.
    fixture.eval(7, &job, EvalStatus::Pending);
    fixture.alloc(2, &job, |alloc| {
        lost(alloc);
        alloc.followup_eval_id = Some(EvalId::from_random(7));
    });
    // Two that stood in for one out of reach, one after the other.
    fixture.report(3, ClientStatus::Unknown);
    fixture.alloc(4, &job, |alloc| {
        lost(alloc);
        alloc.previous_alloc = Some(AllocId::from_random(3));
        alloc.next_alloc = Some(AllocId::from_random(5));
    });
    fixture.alloc(5, &job, |alloc| {
        lost(alloc);
        alloc.previous_alloc = Some(AllocId::from_random(4));
    });
    // Nothing of the kind.
    fixture.alloc(6, &job, lost);
    for number in [1, 2, 4, 5, 6] {
        fixture.report(number, ClientStatus::Lost);
    }
    fixture.pass(50 * HOUR).collect();
    fixture.sweep(&Thresholds::forced());
    let left: Vec<_> = (1..=6)
        .filter(|number| fixture.has_alloc(*number))
        .collect();
    assert_eq!(left, [1, 2, 3, 4, 5]);
}

#[test]
fn allocations_that_their_node_may_still_run_stay() {
    let mut job = builders::service("web", 1);
    let mut fixture = three_rounds(&job);
    let mut node = builders::node(1);
    node.status_updated_at = fixture.now;
    fixture.put(Key::Node(node.id), Entity::Node(Box::new(node.clone())));
    job.stop = true;
    fixture.register(&job);
    for number in 1..=3 {
        fixture.alloc(number, &job, |alloc| {
            alloc.desired_status = DesiredStatus::Stop
        });
    }
    fixture.report(2, ClientStatus::Running);
    fixture.sweep(&Thresholds::forced());
    assert!(
        fixture.has_alloc(1)
            && fixture.has_alloc(2)
            && fixture.snapshot().job(&job.key()).is_some()
    );
    node.status = NodeStatus::Down;
    fixture.put(Key::Node(node.id), Entity::Node(Box::new(node)));
    fixture.sweep(&Thresholds::forced());
    assert!(
        !fixture.has_alloc(1) && fixture.has_alloc(2),
        "one may still run"
    );
}

#[test]
fn a_deployment_stays_as_long_as_anything_names_it() {
    let job = builders::service("web", 1);
    let mut fixture = three_rounds(&job);
    fixture.deployment(1, &job, DeploymentStatus::Successful);
    fixture.deployment(2, &job, DeploymentStatus::Successful);
    fixture.alloc(1, &job, |alloc| {
        alloc.deployment_id = Some(DeploymentId::from_random(1))
    });
    fixture.report(1, ClientStatus::Failed);
    assert_eq!(fixture.pass(2 * HOUR).collect().deployments, 0);
    fixture.alloc(1, &job, |alloc| {
        alloc.deployment_id = Some(DeploymentId::from_random(1));
        alloc.desired_status = DesiredStatus::Stop;
    });
    assert_eq!(fixture.pass(2 * HOUR).collect().deployments, 1);
}

#[test]
fn a_forced_collection_ignores_the_thresholds() {
    let batch = builders::batch("crunch", 1);
    let mut fixture = three_rounds(&batch);
    for number in 1..=3 {
        fixture.report(number, ClientStatus::Complete);
    }
    let mut node = builders::node(1);
    node.status = NodeStatus::Down;
    node.status_updated_at = fixture.now;
    fixture.put(Key::Node(node.id), Entity::Node(Box::new(node)));
    let counts = fixture.sweep(&Thresholds::forced());
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
    let mut fixture = Fixture::new();
    let job = builders::service("web", 1);
    let put = |fixture: &mut Fixture, number: u128, status: NodeStatus| {
        let mut node = builders::node(number);
        node.status = status;
        node.status_updated_at = fixture.now;
        fixture.put(Key::Node(node.id), Entity::Node(Box::new(node)));
    };
    fixture.register(&job);
    put(&mut fixture, 1, NodeStatus::Down);
    put(&mut fixture, 2, NodeStatus::Down);
    put(&mut fixture, 3, NodeStatus::Disconnected);
    put(&mut fixture, 4, NodeStatus::Ready);
    fixture.alloc(1, &job, |_| {});
    assert_eq!(fixture.pass(23 * HOUR).collect().nodes, 0);
    assert_eq!(fixture.pass(HOUR).collect().nodes, 1);
    let left: Vec<_> = fixture
        .snapshot()
        .nodes()
        .map(|node| node.value.name.clone())
        .collect();
    assert_eq!(left.len(), 3);
    assert!(!left.contains(&"n2".to_owned()), "{left:?}");
}

#[test]
fn the_newest_deployment_of_a_job_stays() {
    let job = builders::service("web", 1);
    let mut fixture = three_rounds(&job);
    fixture.deployment(1, &job, DeploymentStatus::Successful);
    fixture.deployment(2, &job, DeploymentStatus::Failed);
    assert_eq!(fixture.pass(2 * HOUR).collect().deployments, 1);
    let left: Vec<_> = fixture
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
    let mut fixture = three_rounds(&job);
    fixture.report(1, ClientStatus::Failed);
    fixture.pass(50 * HOUR).collect();
    assert!(
        fixture.has_alloc(1),
        "forgotten, it would be missing, and placed anew"
    );
    job.stop = true;
    fixture.register(&job);
    fixture.pass(2 * HOUR).collect();
    assert!(!fixture.has_alloc(1));
}

#[test]
fn a_large_job_is_deleted_first_and_then_its_objects_in_batches() {
    let mut job = builders::service("web", 1);
    let mut fixture = Fixture::new();
    job.stop = true;
    fixture.register(&job);
    for number in 0..2_000 {
        fixture.alloc(number, &job, |alloc| {
            alloc.desired_status = DesiredStatus::Stop
        });
        fixture.report(number, ClientStatus::Complete);
    }
    fixture.eval(1, &job, EvalStatus::Complete);
    fixture.pass(5 * HOUR);
    let batches = sweep(&fixture.snapshot(), fixture.now, &Thresholds::default());
    assert!(batches.len() >= 4);
    let job_key = Key::Job(job.key());
    let (first, rest) = batches.split_first().unwrap();
    assert!(deletions(first).all(|key| *key == job_key));
    assert_eq!(first.deleted_job, Some(job.key()));
    assert!(guards(first).is_empty(), "its deletion compares it");
    let absent = Write::RequireAbsent { key: job_key };
    for batch in rest {
        assert_eq!(batch.deleted_job, None);
        assert_eq!(guards(batch), [&absent]);
        // Both sides of an allocation go together.
        let sides = |is: fn(&Key) -> bool| deletions(batch).filter(|key| is(key)).count();
        let desired = sides(|key| matches!(key, Key::Alloc(_)));
        assert_eq!(desired, sides(|key| matches!(key, Key::AllocClient(_))));
    }
    assert_eq!(fixture.collect().allocs, 2_000);
    assert_eq!(fixture.snapshot().allocs().count(), 0);
}

proptest! {
    /// No sweep changes the job's status or the summary's counts, or deletes live objects. Sweeps
    /// end: past the job's own threshold, nothing is left to delete.
    #[test]
    fn a_sweep_keeps_status_summary_and_live_objects(
        is_batch in any::<bool>(),
        is_stopped in any::<bool>(),
        allocs in prop::collection::vec((0_u8..6, any::<bool>(), 0_u64..30), 0..12),
        evals in prop::collection::vec((0_u8..4, 0_u64..30), 1..8),
        hours in 0_u64..48,
    ) {
        let mut job = if is_batch { builders::batch("j", 3) } else { builders::service("j", 3) };
        job.stop = is_stopped;
        let mut fixture = Fixture::new();
        let start = fixture.now;
        fixture.register(&job);
        for (number, (status, at)) in (1..).zip(&evals) {
            fixture.now = start.plus(Duration::from_secs(at * 3_600));
            let status = [EvalStatus::Complete, EvalStatus::Failed, EvalStatus::Canceled, EvalStatus::Blocked]
                [usize::from(*status)];
            fixture.eval(number, &job, status);
        }
        for (number, (status, is_wanted, at)) in (1..).zip(&allocs) {
            fixture.now = start.plus(Duration::from_secs(at * 3_600));
            fixture.alloc(number, &job, |alloc| {
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
            fixture.report(number, status);
        }
        fixture.now = start.plus(Duration::from_secs((30 + hours) * 3_600));
        let before = fixture.snapshot();
        fixture.collect();
        let after = fixture.snapshot();
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
        fixture.collect();
        prop_assert_eq!(fixture.collect(), Counts::default());
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
    let mut fixture = Fixture::new();
    fixture.register(&parent());
    let record = model::PeriodicLaunch {
        launched: fixture.now,
    };
    fixture.put(
        Key::PeriodicLaunch(parent().key()),
        Entity::PeriodicLaunch(record),
    );
    assert_eq!(fixture.pass(100 * HOUR).collect(), Counts::default());
    let stopped = Job {
        stop: true,
        version: 1,
        ..parent()
    };
    fixture.register(&stopped);
    assert_eq!(fixture.pass(5 * HOUR).collect().jobs, 1);
    assert!(
        fixture
            .snapshot()
            .periodic_launch(&parent().key())
            .is_none()
    );
}

#[test]
fn a_collected_child_is_removed_with_its_dispatch_token_and_counts_as_dead() {
    let mut fixture = Fixture::new();
    fixture.register(&parent());
    let payload = model::Payload::default();
    let id = "p/dispatch-1-a".to_owned();
    let child = parent().dispatched_child(id, &Default::default(), payload, "t1", fixture.now);
    fixture.register(&child);
    fixture.eval(1, &child, EvalStatus::Complete);
    let token = model::DispatchToken {
        child_id: child.id.clone(),
    };
    fixture.put(
        Key::DispatchToken(parent().key(), "t1".to_owned()),
        Entity::DispatchToken(token),
    );
    let dead = |fixture: &Fixture| {
        fixture
            .snapshot()
            .children_summary(&parent().key())
            .unwrap()
            .dead
    };
    assert_eq!(dead(&fixture), 1);
    assert_eq!(fixture.pass(25 * HOUR).collect().jobs, 1);
    assert!(fixture.snapshot().job(&child.key()).is_none());
    assert!(
        fixture
            .snapshot()
            .dispatch_token(&parent().key(), "t1")
            .is_none()
    );
    assert_eq!(dead(&fixture), 1);
    assert!(fixture.snapshot().job(&parent().key()).is_some());
}

#[test]
fn the_records_of_a_purged_job_go() {
    let mut fixture = Fixture::new();
    fixture.register(&parent());
    let record = model::PeriodicLaunch {
        launched: fixture.now,
    };
    fixture.put(
        Key::PeriodicLaunch(parent().key()),
        Entity::PeriodicLaunch(record),
    );
    let events = Entity::ScalingEvents(Box::default());
    fixture.put(Key::ScalingEvents(parent().key(), "web".to_owned()), events);
    let token = model::DispatchToken {
        child_id: "p/dispatch-1-a".to_owned(),
    };
    fixture.put(
        Key::DispatchToken(parent().key(), "t".to_owned()),
        Entity::DispatchToken(token),
    );
    fixture.delete(Key::Job(parent().key()));
    fixture.collect();
    let snapshot = fixture.snapshot();
    assert_eq!(snapshot.periodic_launches().count(), 0);
    assert_eq!(snapshot.all_scaling_events().count(), 0);
    assert_eq!(snapshot.dispatch_tokens().count(), 0);
}

#[test]
fn a_job_with_a_new_evaluation_is_not_deleted() {
    let mut job = builders::batch("crunch", 1);
    job.stop = true;
    let mut fixture = Fixture::new();
    fixture.register(&job);
    fixture.eval(1, &job, EvalStatus::Complete);
    let check = |fixture: &Fixture| check_before_deletion(&fixture.snapshot(), &job.key());
    let version = Key::JobVersion(job.key(), job.version);
    let compare = check(&fixture).unwrap().unwrap();
    assert_eq!((compare.key(), compare.entity()), (&version, None));
    assert_eq!(
        compare.expected_index(),
        1,
        "a later registration rewrites it"
    );
    fixture.eval(2, &job, EvalStatus::Pending);
    assert_eq!(check(&fixture), Err(InUse));
}

#[test]
fn a_tally_adds_up_for_one_incarnation_of_a_job() {
    let key = model::JobKey::new("default", "web");
    let tally = |job_create_index, children| JobTally {
        job_create_index,
        children,
        ..JobTally::default()
    };
    let more = tally(7, 1);
    let (write, sum) = tally::add(&key, &more, None);
    assert!(matches!(write, Write::Create { .. }));
    assert_eq!(sum, more);
    let (write, sum) = tally::add(&key, &more, Some((&tally(7, 2), 9)));
    assert_eq!((write.expected_index(), sum.children), (9, 3));
    let (write, sum) = tally::add(&key, &more, Some((&tally(3, 2), 9)));
    assert_eq!(
        (write.expected_index(), sum),
        (9, more),
        "of an earlier job"
    );
}

#[test]
fn an_expired_introduction_token_goes_after_an_hour() {
    let mut fixture = Fixture::new();
    let token = model::IntroductionToken {
        id: model::IntroductionTokenId::from_random(1),
        expires_at: fixture.now.plus(HOUR),
        ..model::IntroductionToken::default()
    };
    let key = Key::IntroductionToken(token.id);
    fixture.put(key, Entity::IntroductionToken(Box::new(token)));
    let count = |fixture: &Fixture| fixture.snapshot().introduction_tokens().count();
    fixture.pass(HOUR).collect();
    assert_eq!(
        count(&fixture),
        1,
        "a late node is told that it has expired"
    );
    fixture.pass(HOUR).collect();
    assert_eq!(count(&fixture), 0);
}

#[test]
fn the_introduction_of_a_node_lasts_as_long_as_its_certificate_and_record() {
    let mut fixture = Fixture::new();
    let node = builders::node(1);
    let introduction = model::NodeIntroduction {
        certified_until: fixture.now.plus(HOUR),
        ..model::NodeIntroduction::default()
    };
    let key = Key::NodeIntroduction(node.id);
    fixture.put(key, Entity::NodeIntroduction(Box::new(introduction)));
    let is_kept = |fixture: &Fixture| fixture.snapshot().node_introduction(node.id).is_some();
    fixture.collect();
    assert!(
        is_kept(&fixture),
        "it has a certificate, and is not registered"
    );
    fixture.put(Key::Node(node.id), Entity::Node(Box::new(node.clone())));
    fixture.pass(2 * HOUR).collect();
    assert!(is_kept(&fixture), "it is registered");
    fixture.delete(Key::Node(node.id));
    fixture.collect();
    assert!(!is_kept(&fixture));
}
