//! `kafila job status`

use proto::v1;

use crate::command::kafila;
use crate::fixtures;
use crate::gateway::Gateway;
use crate::state::FakeState;

fn named(id: &str, namespace: &str) -> v1::JobStub {
    v1::JobStub {
        id: id.to_owned(),
        namespace: namespace.to_owned(),
        ..fixtures::stub()
    }
}

#[tokio::test]
async fn jobs_are_listed_or_there_are_none() {
    let gateway = Gateway::start(FakeState::running()).await;
    let said = kafila("job status").at(&gateway.address).await;
    let expected = "ID   Type     Priority  Status   Submit Date\n\
                    web  service  50        running  2026-11-21T11:58:30Z\n";
    assert_eq!(said.ended(0).stdout, expected);
    let json = kafila("job status -json").at(&gateway.address).await.json();
    assert_eq!(json[0]["JobSummary"]["Summary"]["app"]["Running"], 2);

    let gateway = Gateway::start(FakeState::default()).await;
    let said = kafila("job status").at(&gateway.address).await;
    assert_eq!(said.ended(0).stdout, "No running jobs\n");
    assert_eq!(
        kafila("job status -json").at(&gateway.address).await.stdout,
        "[]\n"
    );
}

#[tokio::test]
async fn a_long_list_has_pages() {
    let state = FakeState {
        stubs: vec![named("api", "default"), named("web", "default")],
        ..FakeState::running()
    };
    let gateway = Gateway::start(state).await;
    let said = kafila("job status -per-page 1").at(&gateway.address).await;
    let stdout = &said.ended(0).stdout;
    assert!(
        stdout.contains("api") && !stdout.contains("web"),
        "{stdout}"
    );
    assert!(said.stderr.contains("-page-token="), "{}", said.stderr);
    let token = said.stderr.rsplit('=').next().unwrap().trim();
    let line = format!("job status -per-page 1 -page-token={token}");
    let said = kafila(&line).at(&gateway.address).await;
    assert!(said.ended(0).stdout.contains("web"), "{said:?}");
}

#[tokio::test]
async fn scenario_041_a_list_of_all_namespaces_tells_them_apart() {
    let state = FakeState {
        stubs: vec![named("web", "default"), named("web", "ops")],
        ..FakeState::default()
    };
    let gateway = Gateway::start(state).await;
    let said = kafila("job status -namespace=*").at(&gateway.address).await;
    said.ended(0)
        .printed(&["ID   Namespace", "web  default", "web  ops"]);
    let said = kafila("job status")
        .env("NOMAD_NAMESPACE", "ops")
        .at(&gateway.address)
        .await;
    assert_eq!(said.ended(0).stdout.lines().count(), 2);
    assert_eq!(
        gateway.state().seen.last().unwrap().options.namespace,
        "ops"
    );
}

#[tokio::test]
async fn one_job_is_shown_with_everything_around_it() {
    let gateway = Gateway::start(FakeState::running()).await;
    for line in ["job status web", "job status we", "status web"] {
        let said = kafila(line).at(&gateway.address).await;
        said.ended(0).printed(&[
            "ID            = web\n",
            "Datacenters   = dc1,dc2\n",
            "\nSummary\n",
            "app         0       0         2        0       1         0     0\n",
            "\nLatest Deployment\n",
            "Status      = successful\n",
            "\nDeployed\n",
            "\nAllocations\n",
            "8a3f2c1e  4d2ba53b  app         1        run      running",
            "8a3f9999  4d2ba53b  app         0        stop     failed",
        ]);
        assert!(!said.stdout.contains("Evaluations"), "{}", said.stdout);
    }
}

#[tokio::test]
async fn flags_show_more_or_less() {
    let gateway = Gateway::start(FakeState::running()).await;
    let short = kafila("job status -short web").at(&gateway.address).await;
    assert!(
        !short.ended(0).stdout.contains("Summary"),
        "{}",
        short.stdout
    );
    let evals = kafila("job status -evals web").at(&gateway.address).await;
    evals
        .ended(0)
        .printed(&["\nEvaluations\n", "1a2b3c4d  50        job-register"]);
    let verbose = kafila("job status -verbose web").at(&gateway.address).await;
    verbose.ended(0).printed(&[
        fixtures::EVAL,
        fixtures::ALLOC,
        "n1",
        "2026-11-21T11:58:41Z",
    ]);
    let json = kafila("job status -json web")
        .at(&gateway.address)
        .await
        .json();
    assert_eq!(
        (&json["ID"], &json["Status"]),
        (&"web".into(), &"running".into())
    );
    assert_eq!(json["JobModifyIndex"], 17);
}

#[tokio::test]
async fn allocations_of_a_former_job_are_shown_when_asked_for() {
    let former = v1::Allocation {
        id: "00000000-0000-4000-8000-00000000000a".to_owned(),
        job_create_index: 2,
        ..fixtures::alloc()
    };
    let mut state = FakeState::running();
    state.allocs.push(former);
    let gateway = Gateway::start(state).await;
    let without = kafila("job status web").at(&gateway.address).await;
    assert!(
        !without.ended(0).stdout.contains("00000000"),
        "{}",
        without.stdout
    );
    kafila("job status -all-allocs web")
        .at(&gateway.address)
        .await
        .printed(&["\n00000000  "]);
}

#[tokio::test]
async fn scenario_027_a_prefix_of_two_jobs_lists_them() {
    let state = FakeState {
        stubs: vec![named("web-1", "default"), named("web-2", "default")],
        ..FakeState::running()
    };
    let gateway = Gateway::start(state).await;
    let said = kafila("job status web").at(&gateway.address).await;
    said.ended(1).complained(&[
        "Prefix \"web\" matched multiple jobs\n\nID     Namespace  Type",
        "web-1  default    service",
        "web-2",
    ]);
}

#[tokio::test]
async fn scenario_031_a_job_that_is_not_there_is_named() {
    let gateway = Gateway::start(FakeState::running()).await;
    let said = kafila("job status api").at(&gateway.address).await;
    said.ended(1).complained(&[
        "No job(s) with prefix or ID \"api\" found\n",
        "-namespace='*'",
    ]);
    assert_eq!(said.stdout, "");
}

#[tokio::test]
async fn a_job_of_another_namespace_is_hinted_at() {
    let mut state = FakeState::running();
    state.stubs.push(named("api", "prod"));
    state.stubs.push(named("api-2", "test"));
    let gateway = Gateway::start(state).await;
    for line in ["job status api", "status api", "job stop api"] {
        let said = kafila(line).at(&gateway.address).await;
        let hint = "A job of this name is in namespace \"prod\": -namespace=prod\n";
        said.ended(1).complained(&["\"api\" found\n", hint]);
    }
    gateway.state().stubs.push(named("api", "test"));
    let said = kafila("job status api").at(&gateway.address).await;
    let hint = "in the namespaces prod, test: -namespace=prod\n";
    said.ended(1).complained(&[hint]);
    // Of a prefix there is no hint.
    let said = kafila("job status ap").at(&gateway.address).await;
    assert!(!said.ended(1).stderr.contains("of this name"), "{said:?}");
}

#[tokio::test]
async fn a_list_shows_which_jobs_are_launched_or_dispatched() {
    let mut state = FakeState::running();
    let parent = |id: &str, periodic, parameterized| v1::JobStub {
        id: id.to_owned(),
        r#type: "batch".to_owned(),
        periodic,
        parameterized,
        ..fixtures::stub()
    };
    state.stubs.push(parent("nightly", true, false));
    state.stubs.push(parent("encode", false, true));
    let gateway = Gateway::start(state).await;
    let said = kafila("job status").at(&gateway.address).await;
    for part in ["batch/periodic ", "batch/parameterized ", "service "] {
        said.ended(0).printed(&[part]);
    }
}
