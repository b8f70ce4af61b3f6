//! `kafila job inspect`

use crate::command::kafila;
use crate::gateway::Gateway;
use crate::state::FakeState;

#[tokio::test]
async fn a_job_is_printed_with_the_keys_of_the_http_api() {
    let gateway = Gateway::start(FakeState::running()).await;
    for line in ["job inspect web", "inspect web", "job inspect -json web"] {
        let json = kafila(line).at(&gateway.address).await.json();
        let job = &json["Job"];
        assert_eq!(job["ID"], "web");
        assert_eq!(job["Version"], 1);
        assert_eq!(
            job["TaskGroups"][0]["Tasks"][0]["Resources"]["MemoryMB"],
            256
        );
        assert_eq!(job["JobModifyIndex"], 17);
    }
}

#[tokio::test]
async fn a_former_version_is_printed_when_it_is_kept() {
    let gateway = Gateway::start(FakeState::running()).await;
    let json = kafila("job inspect -version 0 web")
        .at(&gateway.address)
        .await
        .json();
    assert_eq!(json["Job"]["Priority"], 40);
    let said = kafila("job inspect -version=9 web")
        .at(&gateway.address)
        .await;
    said.ended(1)
        .complained(&["Error querying job \"web\": ", "version Some(9)"]);
}

#[tokio::test]
async fn the_output_of_inspect_runs_again() {
    let gateway = Gateway::start(FakeState::running()).await;
    let printed = kafila("job inspect web").at(&gateway.address).await.stdout;
    let line = "job run -json -detach -";
    kafila(line)
        .stdin(&printed)
        .at(&gateway.address)
        .await
        .ended(0);
    let state = gateway.state();
    let job = state.register_requests[0].job.clone().unwrap();
    assert_eq!(job.task_groups, crate::fixtures::job().task_groups);
}
