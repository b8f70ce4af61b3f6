//! Answers to users' changes: committed, repeated and needless ones.

use model::{DeploymentGroup, DeploymentStatus, Job};

use super::fixture::{Fixture, group, job};
use crate::requests::DeploymentRefusal;
use crate::update::{UpdateAnswer, UpdateDecision, UpdateRequest, Verb, update};

/// A deployment of version 3, whose job was stable at version 2.
fn deploying() -> Fixture {
    let first = job(1);
    let mut fixture = Fixture::new(&first);
    for version in 1..=3 {
        let mut later = Job {
            version,
            ..first.clone()
        };
        later.meta.insert("release".to_owned(), version.to_string());
        fixture.put_job(&later);
    }
    fixture.mark_stable(2);
    fixture.put_deployment(DeploymentGroup {
        auto_revert: true,
        ..group(1)
    });
    fixture
}

fn decide(
    fixture: &Fixture,
    verb: Verb<'_>,
    eval_id: model::EvalId,
    fits: bool,
) -> Result<UpdateDecision, DeploymentRefusal> {
    let request = UpdateRequest {
        verb,
        eval_id,
        now: fixture.now,
        trace_parent: "00-1-2-01",
    };
    let deployment = fixture.stored_deployment();
    update(&fixture.snapshot(), &deployment, &request, |_| fits)
}

#[test]
fn a_repeated_request_gets_the_answer_of_the_first_time() {
    let mut fixture = deploying();
    let eval_id = fixture.next_eval_id();
    let decision = decide(&fixture, Verb::Fail, eval_id, true).unwrap();
    let UpdateDecision::Commit(proposal) = decision else {
        panic!("{decision:?}");
    };
    let revision = fixture.commit(&proposal.writes);
    let answer = proposal.answer(revision);
    assert_eq!(
        answer,
        UpdateAnswer {
            eval_id: Some(eval_id),
            eval_create_index: revision,
            deployment_modify_index: revision,
            reverted_job_version: Some(2),
            index: revision,
        }
    );
    let again = decide(&fixture, Verb::Fail, eval_id, true).unwrap();
    assert_eq!(again, UpdateDecision::Done(answer));
    // Another request of the same kind is not the same request.
    let other = fixture.next_eval_id();
    let refused = decide(&fixture, Verb::Fail, other, true).unwrap_err();
    assert!(
        matches!(refused, DeploymentRefusal::Terminal { .. }),
        "{refused}"
    );
}

#[test]
fn a_failure_whose_revert_is_too_large_is_written_without_it() {
    for fits in [true, false] {
        let mut fixture = deploying();
        let eval_id = fixture.next_eval_id();
        let decision = decide(&fixture, Verb::Fail, eval_id, fits).unwrap();
        let UpdateDecision::Commit(proposal) = decision else {
            panic!("{decision:?}");
        };
        let revision = fixture.commit(&proposal.writes);
        let reverted = proposal.answer(revision).reverted_job_version;
        assert_eq!(reverted, fits.then_some(2));
        assert_eq!(fixture.deployment().status, DeploymentStatus::Failed);
    }
}

#[test]
fn a_paused_deployment_is_not_paused_again() {
    let mut fixture = deploying();
    let eval_id = fixture.next_eval_id();
    let decision = decide(&fixture, Verb::Pause, eval_id, true).unwrap();
    let UpdateDecision::Commit(proposal) = decision else {
        panic!("{decision:?}");
    };
    let revision = fixture.commit(&proposal.writes);
    let answer = proposal.answer(revision);
    assert_eq!((answer.eval_id, answer.eval_create_index), (None, 0));
    let decision = decide(&fixture, Verb::Pause, eval_id, true).unwrap();
    let unchanged = UpdateAnswer {
        deployment_modify_index: revision,
        index: revision,
        ..UpdateAnswer::default()
    };
    assert_eq!(decision, UpdateDecision::Unchanged(unchanged));
}
