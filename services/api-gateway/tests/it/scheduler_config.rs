//! The scheduler's configuration through the API: read, replaced by compare, obeyed.

use proto::v1;
use proto::v1::ErrorDetail;
use state::Key;
use tonic::{Code, Status};

use crate::support::{Suite, ask, job};

fn spread() -> v1::SchedulerConfiguration {
    v1::SchedulerConfiguration {
        scheduler_algorithm: "spread".to_owned(),
        preemption_config: Some(v1::PreemptionConfig {
            system_scheduler_enabled: true,
            ..Default::default()
        }),
        ..Default::default()
    }
}

async fn get(suite: &Suite, gateway: usize) -> v1::SchedulerConfiguration {
    let request = v1::GetSchedulerConfigurationRequest::default();
    let answer = suite
        .operator(gateway)
        .get_scheduler_configuration(ask(request))
        .await;
    answer.unwrap().into_inner().scheduler_config.unwrap()
}

async fn set(
    suite: &Suite,
    gateway: usize,
    config: v1::SchedulerConfiguration,
    check_index: Option<u64>,
) -> Result<u64, Status> {
    let request = v1::SetSchedulerConfigurationRequest {
        scheduler_config: Some(config),
        check_index,
    };
    let answer = suite
        .operator(gateway)
        .set_scheduler_configuration(ask(request))
        .await?;
    Ok(answer.into_inner().modify_index)
}

#[tokio::test]
async fn the_defaults_apply_until_a_configuration_is_set() {
    let suite = Suite::start(2).await;
    let expected = v1::SchedulerConfiguration {
        scheduler_algorithm: "binpack".to_owned(),
        ..spread()
    };
    assert_eq!(get(&suite, 0).await, expected);
    let first = set(&suite, 0, spread(), None).await.unwrap();
    let expected = v1::SchedulerConfiguration {
        create_index: first,
        modify_index: first,
        ..spread()
    };
    assert_eq!(get(&suite, 1).await, expected);
    let stored = suite.get(&Key::SchedulerConfig).await.unwrap();
    assert_eq!(stored.mod_revision, first);
    // The same again is no change, through whichever gateway.
    assert_eq!(set(&suite, 1, spread(), None).await.unwrap(), first);
    let paused = v1::SchedulerConfiguration {
        pause_eval_broker: true,
        // Empty: the default.
        scheduler_algorithm: String::new(),
        ..spread()
    };
    let second = set(&suite, 1, paused, Some(first)).await.unwrap();
    assert!(second > first);
    let shown = get(&suite, 0).await;
    assert!(shown.pause_eval_broker);
    assert_eq!(shown.scheduler_algorithm, "binpack");
    assert_eq!((shown.create_index, shown.modify_index), (first, second));
}

#[tokio::test]
async fn a_check_index_that_is_past_changes_nothing() {
    let suite = Suite::start(1).await;
    let status = set(&suite, 0, spread(), Some(3)).await.unwrap_err();
    assert_eq!(status.code(), Code::Aborted);
    let text = "has modify index 0, not 3";
    assert!(status.message().contains(text), "{}", status.message());
    let first = set(&suite, 0, spread(), Some(0)).await.unwrap();
    for past in [0, first - 1, first + 1] {
        let status = set(&suite, 0, spread(), Some(past)).await.unwrap_err();
        assert_eq!(status.code(), Code::Aborted, "{past}");
        assert!(status.message().contains("retry"), "{}", status.message());
    }
    assert_eq!(get(&suite, 0).await.modify_index, first);
}

#[tokio::test]
async fn of_two_writers_with_the_same_check_index_one_wins() {
    let suite = Suite::start(2).await;
    let mut index = set(&suite, 0, spread(), None).await.unwrap();
    for round in 0..10 {
        let config = |gateway: usize| v1::SchedulerConfiguration {
            reject_job_registration: gateway == 0,
            memory_oversubscription_enabled: round % 2 == 0,
            ..spread()
        };
        let (a, b) = tokio::join!(
            set(&suite, 0, config(0), Some(index)),
            set(&suite, 1, config(1), Some(index)),
        );
        let (winner, won, lost) = match (a, b) {
            (Ok(won), Err(lost)) => (0, won, lost),
            (Err(lost), Ok(won)) => (1, won, lost),
            other => panic!("round {round}: {other:?}"),
        };
        assert_eq!(lost.code(), Code::Aborted);
        assert!(won > index);
        let shown = get(&suite, 0).await;
        assert_eq!(shown.modify_index, won);
        assert_eq!(shown.reject_job_registration, winner == 0);
        index = won;
    }
}

#[tokio::test]
async fn an_error_of_the_configuration_names_its_field() {
    let suite = Suite::start(1).await;
    let fields = |status: &Status| -> Vec<String> {
        assert_eq!(status.code(), Code::InvalidArgument);
        let detail = ErrorDetail::from_status(status).unwrap();
        let violations = detail.violations.into_iter();
        violations.map(|it| it.field).collect()
    };
    let random = v1::SchedulerConfiguration {
        scheduler_algorithm: "random".to_owned(),
        ..spread()
    };
    let status = set(&suite, 0, random, None).await.unwrap_err();
    assert_eq!(fields(&status), ["scheduler_config.scheduler_algorithm"]);
    assert!(status.message().contains("binpack, spread"), "{status}");
    let silent = v1::SchedulerConfiguration {
        preemption_config: None,
        ..spread()
    };
    let status = set(&suite, 0, silent, None).await.unwrap_err();
    assert_eq!(fields(&status), ["scheduler_config.preemption_config"]);
    let request = v1::SetSchedulerConfigurationRequest::default();
    let answer = suite
        .operator(0)
        .set_scheduler_configuration(ask(request))
        .await;
    assert_eq!(fields(&answer.unwrap_err()), ["scheduler_config"]);
    assert_eq!(suite.get(&Key::SchedulerConfig).await, None);
}

#[tokio::test]
async fn no_gateway_registers_a_job_once_registrations_are_off() {
    let suite = Suite::start(2).await;
    let request = |id: &str| v1::RegisterJobRequest {
        job: Some((&job(id)).into()),
        ..Default::default()
    };
    suite.register(&job("before")).await;
    let closed = v1::SchedulerConfiguration {
        reject_job_registration: true,
        ..spread()
    };
    for round in 0..10 {
        set(&suite, 0, closed.clone(), None).await.unwrap();
        // At once, through a gateway that may not have heard of it.
        let id = format!("web-{round}");
        let answer = suite.jobs(1).register(ask(request(&id))).await;
        let status = answer.unwrap_err();
        assert_eq!(status.code(), Code::PermissionDenied);
        let text = "Job registration, dispatch, and scale are disabled";
        assert!(status.message().starts_with(text), "{}", status.message());
        set(&suite, 0, spread(), None).await.unwrap();
        suite.jobs(1).register(ask(request(&id))).await.unwrap();
    }
}
