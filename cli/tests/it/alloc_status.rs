//! `kafila alloc status`

use crate::command::kafila;
use crate::fixtures;
use crate::gateway::Gateway;
use crate::state::FakeState;

#[tokio::test]
async fn an_allocation_is_found_by_its_id_or_the_start_of_it() {
    let gateway = Gateway::start(FakeState::running()).await;
    for id in [
        fixtures::ALLOC,
        "8a3f2c1e",
        "8A3F2",
        "8a3f2",
        "8a3f2c1e00004000",
    ] {
        let said = kafila("alloc status").arg(id).at(&gateway.address).await;
        said.ended(0).printed(&[
            "ID                  = 8a3f2c1e\n",
            "Client Status       = running\n",
            "*http  yes      10.0.0.7:23456 -> 80\n",
            "Task \"server\" is \"running\"\n",
            "500 MHz  256 MiB  300 MiB\n",
            "Recent Events:\n",
            "Started     Task started by client\n",
        ]);
    }
    let said = kafila("alloc-status 8a3f2").at(&gateway.address).await;
    said.ended(0).printed(&["8a3f2c1e"]);
}

#[tokio::test]
async fn cores_and_devices_are_listed_with_their_task() {
    let mut state = FakeState::running();
    let resources = state.allocs[1].resources.as_mut().unwrap();
    resources.cores = vec![proto::v1::AllocatedCores {
        task: "server".to_owned(),
        ids: vec![0, 3],
    }];
    resources.devices = vec![proto::v1::AllocatedDevice {
        task: "server".to_owned(),
        vendor: "nvidia".to_owned(),
        r#type: "gpu".to_owned(),
        name: "t4".to_owned(),
        instance_ids: vec!["GPU-1".to_owned(), "GPU-2".to_owned()],
    }];
    let gateway = Gateway::start(state).await;
    let said = kafila("alloc status 8a3f2").at(&gateway.address).await;
    said.ended(0).printed(&[
        "Reserved Cores      = server: 0, 3\n",
        "Devices             = server: nvidia/gpu/t4 GPU-1, GPU-2\n",
    ]);
}

#[tokio::test]
async fn flags_show_more_or_less() {
    let gateway = Gateway::start(FakeState::running()).await;
    let verbose = kafila("alloc status -verbose 8a3f2")
        .at(&gateway.address)
        .await;
    verbose.ended(0).printed(&[
        fixtures::ALLOC,
        "Placement Metrics\n",
        "Score           = 0.731\n",
    ]);
    let short = kafila("alloc status -short 8a3f2")
        .at(&gateway.address)
        .await;
    short
        .ended(0)
        .printed(&["\nTasks\n", "server  running  Started"]);
    let json = kafila("alloc status -json 8a3f2")
        .at(&gateway.address)
        .await
        .json();
    assert_eq!(json["ID"], fixtures::ALLOC);
    assert_eq!(json["TaskStates"]["server"]["State"], "running");
    assert_eq!(json["Job"]["ID"], "web");
    assert_eq!(json["TaskResources"]["server"]["CPU"], 500);
    let server = &json["AllocatedResources"]["Tasks"]["server"];
    assert_eq!(server["Memory"]["MemoryMB"], 256);
}

#[tokio::test]
async fn wrong_ids_are_explained() {
    let gateway = Gateway::start(FakeState::running()).await;
    let said = kafila("alloc status 8a3f").at(&gateway.address).await;
    said.ended(1).complained(&[
        "Prefix matched multiple allocations\n\nID",
        fixtures::ALLOC,
        fixtures::OLD_ALLOC,
    ]);
    let said = kafila("alloc status ffff").at(&gateway.address).await;
    said.ended(1)
        .complained(&["No allocation(s) with prefix or id \"ffff\" found\n"]);
    let said = kafila("alloc status 8").at(&gateway.address).await;
    said.ended(1)
        .complained(&["Alloc ID must contain at least two characters."]);
}

#[tokio::test]
async fn an_allocation_whose_job_is_gone_is_still_shown() {
    let mut state = FakeState::running();
    state.jobs.clear();
    let gateway = Gateway::start(state).await;
    let said = kafila("alloc status 8a3f2").at(&gateway.address).await;
    said.ended(0)
        .printed(&["Task \"server\" is \"running\"\n", "Recent Events:\n"]);
    let said = kafila("alloc status -json 8a3f2")
        .at(&gateway.address)
        .await;
    let json = said.ended(0).json();
    assert_eq!(json.get("Job"), None);
    assert_eq!(json["AllocatedResources"]["Shared"]["DiskMB"], 300);
}
