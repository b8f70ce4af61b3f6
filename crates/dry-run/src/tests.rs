//! Dry runs: the simulated state equals the state after a registration.

use admission::jobs::register::propose_dry_run;
use admission::jobs::{
    Decision, DeregisterRequest, JobRefusal, RegisterRequest, RequestContext, deregister, register,
};
use model::job::TaskGroup;
use model::{Affinity, EvalId, EvalStatus, Job, NodeId, Operator, Timestamp};
use state::Snapshot;
use test_kit::{Stored, builders};

use super::{check_outcome, dry_run};

/// Stored objects, and the count of requested evaluations.
#[derive(Default)]
struct Fixture {
    stored: Stored,
    evals: u128,
}

impl Fixture {
    fn snapshot(&self) -> Snapshot {
        self.stored.snapshot()
    }

    fn context(&mut self) -> RequestContext {
        self.evals += 1;
        RequestContext {
            eval_id: EvalId::from_random(1_000 + self.evals),
            now: Timestamp(1_700_000_000_000_000_000),
            trace_parent: "00-trace-parent-01".to_owned(),
        }
    }

    fn commit(&mut self, decision: Decision) {
        let Decision::Commit(proposal) = decision else {
            panic!("nothing to commit: {decision:?}");
        };
        self.stored.commit(&proposal.writes);
    }

    fn register(&mut self, job: &Job) {
        let request = RegisterRequest {
            max_open_evals: 1_000,
            ..RegisterRequest::default()
        };
        let context = self.context();
        let decision = register(&self.snapshot(), job, &request, &context).unwrap();
        self.commit(decision);
    }

    fn deregister(&mut self, job: &Job, purge: bool) {
        let request = DeregisterRequest {
            job: job.key(),
            purge,
            eval_priority: 0,
            no_shutdown_delay: false,
        };
        let context = self.context();
        let decision = deregister(&self.snapshot(), &request, &context).unwrap();
        self.commit(decision);
    }
}

/// Returns a changed job: the `n`th spec of it.
fn changed(job: &Job, n: u32) -> Job {
    edited(job, |group| group.count = 100 + n)
}

/// Two nodes, and a job of which one allocation runs.
fn fixture(job: &Job) -> Fixture {
    let mut fixture = Fixture::default();
    for number in [1, 2] {
        fixture.stored.put_node(&builders::node(number));
    }
    fixture.register(job);
    let mut alloc = builders::allocation(1, job, NodeId::from_random(1));
    alloc.job_create_index = fixture.snapshot().job(&job.key()).unwrap().create_index;
    fixture.stored.put_alloc(&alloc);
    fixture
}

fn edited(job: &Job, edit: impl FnOnce(&mut TaskGroup)) -> Job {
    let mut job = job.clone();
    edit(&mut job.task_groups[0]);
    job
}

/// Asserts that the simulated state is the state after the registration.
fn assert_simulated(fixture: &mut Fixture, job: &Job) {
    let context = fixture.context();
    let snapshot = fixture.snapshot();
    let proposal = propose_dry_run(&snapshot, job, &context).unwrap();
    let simulated = snapshot.after(proposal.writes.clone());
    let revision = fixture.stored.commit(&proposal.writes);
    let registered = fixture.snapshot();
    assert_eq!(simulated.index(), revision);
    let key = job.key();
    assert_eq!(simulated.job(&key), registered.job(&key));
    let versions =
        |snapshot: &Snapshot| -> Vec<_> { snapshot.job_versions(&key).cloned().collect() };
    assert_eq!(versions(&simulated), versions(&registered));
    let eval = registered.eval(context.eval_id).unwrap();
    assert_eq!(simulated.eval(context.eval_id), Some(eval));
    let decided = |snapshot| scheduler::schedule(snapshot, eval, context.now, 7);
    assert_eq!(decided(&simulated), decided(&registered));
    // The copied snapshot is unchanged.
    assert_eq!(snapshot.index() + 1, revision);
    assert_eq!(snapshot.eval(context.eval_id), None);
}

#[test]
fn a_dry_run_predicts_the_placements_of_a_registration() {
    let job = builders::service("web", 2);
    let near = Affinity {
        left: "${node.datacenter}".to_owned(),
        operator: Operator::Equal,
        right: "dc1".to_owned(),
        weight: 50,
    };
    let jobs = [
        builders::service("other", 1),
        job.clone(),
        changed(&job, 1),
        edited(&job, |group| group.count = 0),
        edited(&job, |group| {
            drop(group.tasks[0].env.insert("A".into(), "b".into()))
        }),
        edited(&job, |group| group.affinities = vec![near]),
        edited(&job, |group| group.tasks[0].resources.cpu_mhz = 99_999),
    ];
    for candidate in &jobs {
        assert_simulated(&mut fixture(&job), candidate);
    }
    let mut stopped = fixture(&job);
    stopped.deregister(&job, false);
    assert_simulated(&mut stopped, &job);
    let mut purged = fixture(&job);
    purged.deregister(&job, true);
    assert_simulated(&mut purged, &job);
}

#[test]
fn versions_that_a_registration_prunes_are_gone_in_what_is_foreseen() {
    let job = builders::service("web", 2);
    let mut fixture = fixture(&job);
    for n in 0..8 {
        fixture.register(&changed(&job, n));
    }
    assert_simulated(&mut fixture, &changed(&job, 99));
}

fn try_out(fixture: &Fixture, job: &Job, context: &RequestContext) -> Result<u64, JobRefusal> {
    let snapshot = fixture.snapshot();
    let proposal = propose_dry_run(&snapshot, job, context)?;
    let found = dry_run(&snapshot, job, proposal, context, 7, true)?;
    let group = &found.diff.expect("it was asked for").task_groups[0];
    let updates = &found.updates[&group.name];
    assert_eq!(
        group.updates.get("create"),
        (updates.place > 0).then_some(&updates.place)
    );
    Ok(found.job_modify_index)
}

#[test]
fn the_index_is_that_of_the_job_as_it_is() {
    let job = builders::service("web", 2);
    let mut fixture = fixture(&job);
    let stored = fixture.snapshot().job(&job.key()).unwrap().modify_index;
    let context = fixture.context();
    for same_or_not in [job.clone(), changed(&job, 1)] {
        assert_eq!(try_out(&fixture, &same_or_not, &context), Ok(stored));
    }
    let new = builders::service("new", 1);
    assert_eq!(try_out(&fixture, &new, &context), Ok(0));
}

#[test]
fn a_dry_run_refuses_every_job_that_a_registration_refuses() {
    let job = builders::service("web", 2);
    let mut fixture = fixture(&job);
    let context = fixture.context();
    let other_type = builders::batch("web", 2);
    let refusal = try_out(&fixture, &other_type, &context).unwrap_err();
    assert!(
        refusal
            .to_string()
            .contains("cannot change from service to batch"),
        "{refusal}"
    );
}

#[test]
fn an_evaluation_that_would_fail_is_a_refusal_with_its_reason() {
    let job = builders::service("web", 1);
    let mut outcome = builders::evaluation(1, &job);
    for status in EvalStatus::ALL {
        outcome.status = status;
        outcome.status_description = "no such type".to_owned();
        let refusal = check_outcome(&outcome)
            .err()
            .map(|refusal| refusal.to_string());
        let expected = "the job could be registered, but its evaluation would fail: no such type";
        let expected = (status == EvalStatus::Failed).then(|| expected.to_owned());
        assert_eq!(refusal, expected, "{status:?}");
    }
}
