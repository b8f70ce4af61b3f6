//! `kafila operator scheduler get-config` and `set-config`.

use proto::v1;

use crate::command::{UNREACHABLE, kafila};
use crate::fixtures;
use crate::gateway::Gateway;
use crate::state::FakeState;

fn settings(config: v1::SchedulerConfiguration) -> v1::SchedulerConfiguration {
    v1::SchedulerConfiguration {
        create_index: 0,
        modify_index: 0,
        ..config
    }
}

#[tokio::test]
async fn the_configuration_is_shown() {
    let gateway = Gateway::start(FakeState::running()).await;
    let said = kafila("operator scheduler get-config")
        .at(&gateway.address)
        .await;
    let expected = "Scheduler Algorithm           = binpack\n\
                    Memory Oversubscription       = true\n\
                    Reject Job Registration       = false\n\
                    Pause Eval Broker             = false\n\
                    Preemption System Scheduler   = true\n\
                    Preemption Service Scheduler  = false\n\
                    Preemption Batch Scheduler    = false\n\
                    Preemption SysBatch Scheduler = false\n\
                    Modify Index                  = 12\n";
    assert_eq!(said.ended(0).stdout, expected);
    let json = kafila("operator scheduler get-config -json")
        .at(&gateway.address)
        .await
        .json();
    let config = &json["SchedulerConfig"];
    assert_eq!(
        config["PreemptionConfig"]["SysBatchSchedulerEnabled"],
        false
    );
    assert_eq!(config["ModifyIndex"], 12);
    let said = kafila("operator scheduler get-config")
        .at(UNREACHABLE)
        .await;
    said.ended(1)
        .complained(&["querying scheduler configuration"]);
}

/// The change that flags make to the configuration.
type Change<'a> = &'a dyn Fn(&mut v1::SchedulerConfiguration);

#[tokio::test]
async fn only_given_settings_are_changed() {
    let table: [(&str, Change<'_>); 6] = [
        ("-scheduler-algorithm=spread", &|config| {
            config.scheduler_algorithm = "spread".to_owned();
        }),
        ("-memory-oversubscription false", &|config| {
            config.memory_oversubscription_enabled = false;
        }),
        ("-reject-job-registration=true", &|config| {
            config.reject_job_registration = true;
        }),
        ("-pause-eval-broker=true", &|config| {
            config.pause_eval_broker = true;
        }),
        (
            "-preempt-system-scheduler=false -preempt-service-scheduler=true",
            &|config| {
                let preemption = config.preemption_config.as_mut().unwrap();
                preemption.system_scheduler_enabled = false;
                preemption.service_scheduler_enabled = true;
            },
        ),
        (
            "-preempt-batch-scheduler=true -preempt-sysbatch-scheduler=true",
            &|config| {
                let preemption = config.preemption_config.as_mut().unwrap();
                preemption.batch_scheduler_enabled = true;
                preemption.sysbatch_scheduler_enabled = true;
            },
        ),
    ];
    for (flags, change) in table {
        let gateway = Gateway::start(FakeState::running()).await;
        let line = format!("operator scheduler set-config {flags}");
        let said = kafila(&line).at(&gateway.address).await;
        assert_eq!(said.ended(0).stdout, "Scheduler configuration updated!\n");
        let mut expected = settings(fixtures::scheduler_config());
        change(&mut expected);
        let request = v1::SetSchedulerConfigurationRequest {
            scheduler_config: Some(expected),
            check_index: Some(12),
        };
        assert_eq!(gateway.state().set_config_requests, [request], "{flags}");
    }
}

#[tokio::test]
async fn a_concurrent_change_of_another_setting_stays() {
    let mut state = FakeState::running();
    for algorithm in ["spread", "binpack", "spread"] {
        state.other_configs.push_back(v1::SchedulerConfiguration {
            scheduler_algorithm: algorithm.to_owned(),
            ..fixtures::scheduler_config()
        });
    }
    let gateway = Gateway::start(state).await;
    let said = kafila("operator scheduler set-config -pause-eval-broker=true")
        .at(&gateway.address)
        .await;
    said.ended(0);
    assert_eq!(gateway.state().set_config_requests.len(), 4);
    let config = gateway.state().scheduler_config.clone();
    assert_eq!(config.scheduler_algorithm, "spread");
    assert!(config.pause_eval_broker);
}

#[tokio::test]
async fn a_check_index_is_kept_to() {
    let gateway = Gateway::start(FakeState::running()).await;
    let line = "operator scheduler set-config -scheduler-algorithm=spread -check-index";
    let said = kafila(&format!("{line}=11")).at(&gateway.address).await;
    said.ended(1).complained(&[
        "its ModifyIndex is 12, not 11",
        "get-config",
        "retry with -check-index=12",
    ]);
    assert_eq!(gateway.state().set_config_requests, []);
    let said = kafila(&format!("{line}=12")).at(&gateway.address).await;
    said.ended(0);

    let mut state = FakeState::running();
    state.scheduler_config.modify_index = 0;
    let gateway = Gateway::start(state).await;
    let said = kafila(&format!("{line}=5")).at(&gateway.address).await;
    said.ended(1).complained(&["is 0, not 5: it was never set"]);
    let said = kafila(&format!("{line}=99999999999999999999"))
        .at(&gateway.address)
        .await;
    said.ended(1).complained(&["the number is too large"]);

    // A concurrent change wins.
    let mut state = FakeState::running();
    state.other_configs.push_back(fixtures::scheduler_config());
    let gateway = Gateway::start(state).await;
    let said = kafila(&format!("{line}=12")).at(&gateway.address).await;
    said.ended(1).complained(&["its ModifyIndex is 13, not 12"]);
    assert_eq!(
        gateway.state().scheduler_config.scheduler_algorithm,
        "binpack"
    );
}

#[tokio::test]
async fn an_attempt_that_was_carried_out_unseen_is_no_conflict() {
    // The gateway has done it, and its answer got lost: the second attempt finds the index moved.
    let mut state = FakeState::running();
    state.other_configs.push_back(v1::SchedulerConfiguration {
        scheduler_algorithm: "spread".to_owned(),
        ..fixtures::scheduler_config()
    });
    let gateway = Gateway::start(state).await;
    let line = "operator scheduler set-config -scheduler-algorithm=spread -check-index=12";
    kafila(line).at(&gateway.address).await.ended(0);
    assert_eq!(gateway.state().set_config_requests.len(), 1);
    assert_eq!(gateway.state().scheduler_config.modify_index, 13);
}

#[tokio::test]
async fn an_invalid_setting_is_an_error_of_usage() {
    let table = [
        ("", "no setting is given"),
        ("-check-index=3", "no setting is given"),
        (
            "-scheduler-algorithm=random",
            "possible values: binpack, spread",
        ),
        ("-pause-eval-broker=maybe", "invalid value 'maybe'"),
        ("-pause-eval-broker", "a value is required"),
    ];
    for (flags, part) in table {
        let line = format!("operator scheduler set-config {flags}");
        let said = kafila(line.trim()).at(UNREACHABLE).await;
        said.ended(1).complained(&[part]);
    }
}
