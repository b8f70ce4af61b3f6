//! Jobs through the API: admitted, stored at once with their evaluation, stopped, purged.

use model::EvalId;
use proto::v1;
use state::{Entity, Key};
use tonic::Code;

use crate::support::{Suite, alloc, ask, job, node};

fn register(job: &model::Job) -> v1::RegisterJobRequest {
    v1::RegisterJobRequest {
        job: Some(job.into()),
        ..Default::default()
    }
}

fn eval_key(id: &str) -> Key {
    Key::Eval(id.parse::<EvalId>().unwrap())
}

#[tokio::test]
async fn a_job_its_version_and_its_evaluation_are_written_at_one_revision() {
    let (suite, job) = (Suite::start(1).await, job("web"));
    let answer = suite.register(&job).await;
    assert!(answer.changed);
    assert_eq!(answer.index, answer.job_modify_index);
    for key in [
        Key::Job(job.key()),
        Key::JobVersion(job.key(), 0),
        eval_key(&answer.eval_id),
    ] {
        let stored = suite.get(&key).await.unwrap();
        assert_eq!(stored.create_revision, answer.index, "{key:?}");
    }
}

#[tokio::test]
async fn an_unchanged_job_is_not_written_again_even_when_it_is_echoed_back() {
    let (suite, job) = (Suite::start(1).await, job("web"));
    let first = suite.register(&job).await;
    let request = v1::GetJobRequest {
        job_id: "web".to_owned(),
        ..Default::default()
    };
    let shown = suite
        .jobs(0)
        .get(ask(request))
        .await
        .unwrap()
        .into_inner()
        .job
        .unwrap();
    assert_eq!(shown.job_modify_index, Some(first.job_modify_index));
    let echoed = v1::RegisterJobRequest {
        job: Some(shown),
        ..Default::default()
    };
    let second = suite
        .jobs(0)
        .register(ask(echoed))
        .await
        .unwrap()
        .into_inner();
    assert!(!second.changed);
    assert_eq!(second.job_modify_index, first.job_modify_index);
    assert_ne!(second.eval_id, first.eval_id);
    assert!(suite.get(&eval_key(&second.eval_id)).await.is_some());
    assert_eq!(
        suite.get(&Key::Job(job.key())).await.unwrap().mod_revision,
        first.index
    );
}

#[tokio::test]
async fn a_job_gets_the_cluster_s_region_and_is_refused_by_another_one() {
    let suite = Suite::start_with(1, |config| config.tls.region = "eu".to_owned()).await;
    let mut asked = job("web");
    suite.register(&asked).await;
    let stored = suite.get(&Key::Job(asked.key())).await.unwrap();
    let Entity::Job(stored) = stored.entity else {
        panic!("{stored:?}")
    };
    assert_eq!(stored.region, "eu");
    asked.region = "us".to_owned();
    let mut client = suite.jobs(0);
    let refused = client.register(ask(register(&asked))).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    let named = |text: &str| text.contains("\"us\"") && text.contains("\"eu\"");
    assert!(named(refused.message()), "{refused:?}");
    let validated = client.validate(ask(v1::ValidateJobRequest {
        job: Some((&asked).into()),
    }));
    let violations = validated.await.unwrap().into_inner().violations;
    assert_eq!(violations[0].field, "region");
    let planned = client.plan(ask(v1::PlanJobRequest {
        job: Some((&asked).into()),
        ..Default::default()
    }));
    assert_eq!(planned.await.unwrap_err().code(), Code::InvalidArgument);
}

#[tokio::test]
async fn a_check_index_is_kept_to_and_says_so_in_nomads_words() {
    let (suite, job) = (Suite::start(1).await, job("web"));
    let only_new = v1::RegisterJobRequest {
        check_index: Some(0),
        ..register(&job)
    };
    suite.jobs(0).register(ask(only_new.clone())).await.unwrap();
    let status = suite.jobs(0).register(ask(only_new)).await.unwrap_err();
    assert_eq!(status.code(), Code::Aborted);
    assert_eq!(
        status.message(),
        "Enforcing job modify index 0: job already exists"
    );
}

#[tokio::test]
async fn a_retried_request_is_answered_alike_through_any_gateway_and_writes_once() {
    let (suite, job) = (Suite::start(2).await, job("web"));
    let request = v1::RegisterJobRequest {
        request_id: "pipeline-7".to_owned(),
        check_index: Some(0),
        ..register(&job)
    };
    let first = suite
        .jobs(0)
        .register(ask(request.clone()))
        .await
        .unwrap()
        .into_inner();
    for gateway in [0, 1] {
        let again = suite
            .jobs(gateway)
            .register(ask(request.clone()))
            .await
            .unwrap()
            .into_inner();
        assert_eq!(again, first);
    }
    let list = v1::ListJobEvaluationsRequest {
        job_id: "web".to_owned(),
        ..Default::default()
    };
    let evals = suite
        .jobs(0)
        .list_evaluations(ask(list))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(evals.evaluations.len(), 1);
}

#[tokio::test]
async fn concurrent_registrations_of_one_job_make_one_version_each() {
    const CALLERS: u32 = 8;
    let suite = Suite::start(2).await;
    let calls = (0..CALLERS).map(|n| {
        let mut job = job("web");
        job.task_groups[0].count = n + 1;
        let mut jobs = suite.jobs((n % 2) as usize);
        async move { jobs.register(ask(register(&job))).await }
    });
    let mut changed = 0;
    for result in futures::future::join_all(calls).await {
        match result {
            Ok(response) => changed += u64::from(response.into_inner().changed),
            // Eight at once may be faster than one of them eight times in a row.
            Err(status) => assert_eq!(status.code(), Code::Aborted, "{status}"),
        }
    }
    let stored = suite.get(&Key::Job(job("web").key())).await.unwrap();
    let state::Entity::Job(stored) = stored.entity else {
        panic!("{stored:?}")
    };
    assert_eq!(
        stored.version + 1,
        changed,
        "each change is a version of its own"
    );
}

/// More allocations than one transaction marks.
#[tokio::test]
async fn a_stop_without_shutdown_delay_reaches_every_allocation_of_a_large_job() {
    let (suite, mut job, node) = (Suite::start(1).await, job("web"), node(1));
    job.task_groups[0].shutdown_delay = std::time::Duration::from_secs(600);
    let registered = suite.register(&job).await;
    let count = admission::jobs::evaluate::MAX_MARKED as u128 + 20;
    for number in 1..=count {
        suite
            .put_alloc(&alloc(number, &job, &node, registered.index))
            .await;
    }
    let stop = v1::DeregisterJobRequest {
        job_id: "web".to_owned(),
        no_shutdown_delay: true,
        ..Default::default()
    };
    suite.jobs(0).deregister(ask(stop)).await.unwrap();
    for number in 1..=count {
        let id = model::AllocId::from_random(number);
        let stored = suite.get(&Key::Alloc(id)).await.unwrap().entity;
        let Entity::Alloc(alloc) = stored else {
            panic!("{stored:?}");
        };
        assert!(alloc.transition.no_shutdown_delay, "allocation {number}");
    }
}

#[tokio::test]
async fn a_stopped_job_stays_and_a_purged_one_goes_while_its_allocations_run_on() {
    let (suite, job, node) = (Suite::start(1).await, job("web"), node(1));
    let registered = suite.register(&job).await;
    let alloc = alloc(1, &job, &node, registered.index);
    suite.put_alloc(&alloc).await;
    let stop = v1::DeregisterJobRequest {
        job_id: "web".to_owned(),
        ..Default::default()
    };
    let stopped = suite
        .jobs(0)
        .deregister(ask(stop.clone()))
        .await
        .unwrap()
        .into_inner();
    let get = v1::GetJobRequest {
        job_id: "web".to_owned(),
        ..Default::default()
    };
    let shown = suite
        .jobs(0)
        .get(ask(get.clone()))
        .await
        .unwrap()
        .into_inner()
        .job
        .unwrap();
    assert_eq!((shown.stop, shown.version), (Some(true), Some(1)));
    assert_eq!(shown.modify_index, Some(stopped.job_modify_index));

    let purge = v1::DeregisterJobRequest {
        purge: true,
        ..stop
    };
    let purged = suite
        .jobs(0)
        .deregister(ask(purge.clone()))
        .await
        .unwrap()
        .into_inner();
    let status = suite.jobs(0).get(ask(get)).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    let versions = [0, 1].map(|version| Key::JobVersion(job.key(), version));
    assert!(
        suite.get(&versions[0]).await.is_some(),
        "it is run, so its node must know it"
    );
    assert_eq!(suite.get(&versions[1]).await, None);
    assert!(suite.get(&Key::Alloc(alloc.id)).await.is_some());
    assert!(suite.get(&eval_key(&purged.eval_id)).await.is_some());

    let again = suite
        .jobs(0)
        .deregister(ask(purge))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        again.eval_id, "",
        "there is no such job, which is what was wanted"
    );
}

/// The answer to a stop was lost, and the job was registered again meanwhile.
#[tokio::test]
async fn a_stop_that_is_tried_again_leaves_a_newer_registration_alone() {
    let (suite, job) = (Suite::start(2).await, job("web"));
    for purge in [false, true] {
        suite.register(&job).await;
        let stop = v1::DeregisterJobRequest {
            job_id: "web".to_owned(),
            purge,
            request_id: "r1".to_owned(),
            ..Default::default()
        };
        let first = suite.jobs(0).deregister(ask(stop.clone())).await.unwrap();
        let first = first.into_inner();
        suite.register(&job).await;
        let before = suite.get(&Key::Job(job.key())).await;
        // Through the other gateway, whose replica may be behind.
        let again = suite.jobs(1).deregister(ask(stop.clone())).await.unwrap();
        assert_eq!(again.into_inner(), first, "purge: {purge}");
        assert_eq!(suite.get(&Key::Job(job.key())).await, before);
        let other = v1::DeregisterJobRequest {
            request_id: "r2".to_owned(),
            ..stop
        };
        let other = suite.jobs(1).deregister(ask(other)).await.unwrap();
        assert_ne!(other.into_inner().eval_id, first.eval_id);
        assert_ne!(suite.get(&Key::Job(job.key())).await, before);
    }
}

#[tokio::test]
async fn too_many_open_evaluations_refuse_jobs_and_say_when_to_come_back() {
    let suite = Suite::start_with(1, |config| config.max_open_evals = 1).await;
    suite.register(&job("web")).await;
    // The bound is on what the gateway sees: a linearizable read makes it see the first.
    let list = v1::ListJobsRequest::default();
    suite.jobs(0).list(ask(list)).await.unwrap();
    let status = suite
        .jobs(0)
        .register(ask(register(&job("late"))))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    let detail = v1::ErrorDetail::from_status(&status).unwrap();
    assert!(detail.retry_after().is_some());
    let stop = v1::DeregisterJobRequest {
        job_id: "web".to_owned(),
        ..Default::default()
    };
    suite.jobs(0).deregister(ask(stop)).await.unwrap();
}

#[tokio::test]
async fn requests_about_jobs_beyond_the_limit_are_refused_and_say_when_to_come_back() {
    let suite = Suite::start_with(1, |config| config.max_job_requests = 1).await;
    let registering = (0..16).map(|number| {
        let mut jobs = suite.jobs(0);
        async move {
            let job = job(&format!("web-{number}"));
            jobs.register(ask(register(&job))).await
        }
    });
    let answers = futures::future::join_all(registering).await;
    let (answered, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    assert!(!answered.is_empty(), "the first one is never refused");
    assert!(
        !refused.is_empty(),
        "they came in while the first was being committed"
    );
    for status in refused.into_iter().map(Result::unwrap_err) {
        assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
        let detail = v1::ErrorDetail::from_status(&status).unwrap();
        assert_eq!(
            detail.retry_after(),
            Some(std::time::Duration::from_secs(1))
        );
    }
    // The slot is free again.
    suite.register(&job("later")).await;
}

#[tokio::test]
async fn validation_says_what_registration_would_and_writes_nothing() {
    let suite = Suite::start(1).await;
    let mut bad = v1::Job::from(&job("web"));
    bad.priority = Some(101);
    bad.task_groups[0].update = Some(v1::UpdateStrategy {
        auto_promote: Some(true),
        ..Default::default()
    });
    let request = v1::ValidateJobRequest {
        job: Some(bad.clone()),
    };
    let answer = suite
        .jobs(0)
        .validate(ask(request))
        .await
        .unwrap()
        .into_inner();
    let fields: Vec<_> = answer
        .violations
        .iter()
        .map(|one| one.field.as_str())
        .collect();
    assert!(
        fields.contains(&"priority") && fields.contains(&"group[\"web\"].update.auto_promote"),
        "{fields:?}"
    );
    let request = v1::RegisterJobRequest {
        job: Some(bad),
        ..Default::default()
    };
    let status = suite.jobs(0).register(ask(request)).await.unwrap_err();
    let detail = v1::ErrorDetail::from_status(&status).unwrap();
    assert_eq!(detail.violations, answer.violations);
    let request = v1::ValidateJobRequest {
        job: Some((&job("web")).into()),
    };
    let answer = suite
        .jobs(0)
        .validate(ask(request))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(answer.violations, []);
    let mut large = job("web");
    large.meta.insert("blob".to_owned(), "x".repeat(700_000));
    let request = v1::ValidateJobRequest {
        job: Some((&large).into()),
    };
    let answer = suite
        .jobs(0)
        .validate(ask(request))
        .await
        .unwrap()
        .into_inner();
    let request = v1::RegisterJobRequest {
        job: Some((&large).into()),
        ..Default::default()
    };
    let status = suite.jobs(0).register(ask(request)).await.unwrap_err();
    let detail = v1::ErrorDetail::from_status(&status).unwrap();
    assert_eq!(detail.violations, answer.violations);
    assert!(answer.violations[0].message.contains("too large"));
    let list = suite
        .jobs(0)
        .list(ask(v1::ListJobsRequest::default()))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(list.jobs, []);
}

#[tokio::test]
async fn hundreds_of_errors_still_fit_into_an_answer() {
    let suite = Suite::start(1).await;
    let mut bad = v1::Job::from(&job("web"));
    let group = bad.task_groups[0].clone();
    bad.task_groups = (0..500)
        .map(|n| v1::TaskGroup {
            name: Some(format!("group {n}/ü")),
            count: Some(-1),
            ..group.clone()
        })
        .collect();
    let request = v1::RegisterJobRequest {
        job: Some(bad),
        ..Default::default()
    };
    let status = suite.jobs(0).register(ask(request)).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    assert!(status.message().contains("more"), "{}", status.message());
    assert!(
        v1::ErrorDetail::from_status(&status)
            .unwrap()
            .violations
            .len()
            > 10
    );
}

#[tokio::test]
async fn a_job_too_large_for_a_transaction_is_refused_as_such() {
    let suite = Suite::start(1).await;
    let mut large = job("web");
    large.meta.insert("blob".to_owned(), "x".repeat(700_000));
    let status = suite
        .jobs(0)
        .register(ask(register(&large)))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(
        status.message().contains("too large"),
        "{}",
        status.message()
    );
}
