//! `kafila node pool …`

use proto::v1;

use crate::command::{UNREACHABLE, kafila};
use crate::fixtures;
use crate::gateway::Gateway;
use crate::state::FakeState;

#[tokio::test]
async fn node_pools_are_listed_page_by_page() {
    let gateway = Gateway::start(FakeState::running()).await;
    let said = kafila("node pool list").at(&gateway.address).await;
    let expected = "Name     Description\n\
                    default  Default node pool.\n\
                    gpu      Nodes with cards\n";
    assert_eq!(said.ended(0).stdout, expected);
    let said = kafila("node pool list -per-page=1")
        .at(&gateway.address)
        .await;
    said.ended(0)
        .complained(&["kafila node pool list -per-page=1 -page-token=1\n"]);
    let json = kafila("node pool list -json -per-page=1 -page-token=1")
        .at(&gateway.address)
        .await
        .json();
    assert_eq!(json[0]["Name"], "gpu");
    assert_eq!(
        json[0]["SchedulerConfiguration"]["SchedulerAlgorithm"],
        "spread"
    );
}

#[tokio::test]
async fn one_node_pool_is_shown() {
    let gateway = Gateway::start(FakeState::running()).await;
    let said = kafila("node pool info gpu").at(&gateway.address).await;
    let expected = "Name        = gpu\n\
                    Description = Nodes with cards\n\
                    \n\
                    Metadata\n\
                    environment = prod\n\
                    owner       = ml\n\
                    \n\
                    Scheduler Configuration\n\
                    Scheduler Algorithm = spread\n";
    assert_eq!(said.ended(0).stdout, expected);
    let said = kafila("node pool info default").at(&gateway.address).await;
    said.ended(0)
        .printed(&["No metadata\n\nScheduler Configuration\nAs in the rest of the cluster\n"]);
    let said = kafila("node pool info cpu").at(&gateway.address).await;
    said.ended(1)
        .complained(&["retrieving node pool", "node pool \"cpu\" not found"]);
}

#[tokio::test]
async fn the_outputs_of_init_and_info_can_be_applied() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let gateway = Gateway::start(FakeState::running()).await;
    let said = kafila("node pool init")
        .arg(path("p.hcl"))
        .at(UNREACHABLE)
        .await;
    said.ended(0)
        .printed(&["Example node pool specification written to", "p.hcl"]);
    let said = kafila("node pool init")
        .arg(path("p.hcl"))
        .at(UNREACHABLE)
        .await;
    said.ended(1).complained(&["p.hcl\" already exists"]);
    let said = kafila("node pool init -out=json -quiet")
        .arg(path("p.json"))
        .at(UNREACHABLE)
        .await;
    assert_eq!(said.ended(0).stdout, "");
    for words in ["node pool apply", "node pool apply -json"] {
        let file = if words.ends_with("json") {
            "p.json"
        } else {
            "p.hcl"
        };
        let said = kafila(words).arg(path(file)).at(&gateway.address).await;
        let expected = "Successfully applied node pool \"example\"!\n";
        assert_eq!(said.ended(0).stdout, expected);
        let applied = gateway.state().node_pools.pop().unwrap();
        assert_eq!(applied.name, "example");
        let of_pool = applied.scheduler_configuration.unwrap();
        assert_eq!(of_pool.scheduler_algorithm, "spread");
    }
    let shown = kafila("node pool info -json gpu")
        .at(&gateway.address)
        .await;
    std::fs::write(path("gpu.json"), &shown.ended(0).stdout).unwrap();
    kafila("node pool apply -json")
        .arg(path("gpu.json"))
        .at(&gateway.address)
        .await
        .ended(0);
    let applied = gateway.state().node_pools.pop().unwrap();
    let expected = v1::NodePool {
        create_index: 0,
        modify_index: 0,
        ..fixtures::node_pool()
    };
    assert_eq!(applied, expected);
}

#[tokio::test]
async fn a_file_that_is_no_node_pool_is_an_error_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool.hcl");
    let shown = path.display();
    let missing = kafila("node pool apply").arg(path.display().to_string());
    missing
        .at(UNREACHABLE)
        .await
        .ended(1)
        .complained(&[&format!("Error reading node pool file {shown}: ")]);
    std::fs::write(&path, "node_pool \"gpu\" {\n  color = \"red\"\n}\n").unwrap();
    let wrong = kafila("node pool apply").arg(path.display().to_string());
    wrong.at(UNREACHABLE).await.ended(1).complained(&[&format!(
        "Error parsing node pool file {shown}:\n\
         pool.hcl:2,3-8: Unsupported argument; An argument named \"color\" is not expected here."
    )]);
    std::fs::write(&path, "node_pool \"all\" {}\n").unwrap();
    let gateway = Gateway::start(FakeState::running()).await;
    let refused = kafila("node pool apply").arg(path.display().to_string());
    refused
        .at(&gateway.address)
        .await
        .ended(1)
        .complained(&["modifying node pool \"all\" is not allowed"]);
}

#[tokio::test]
async fn a_node_pool_is_deleted() {
    let gateway = Gateway::start(FakeState::running()).await;
    let said = kafila("node pool delete gpu").at(&gateway.address).await;
    let expected = "Successfully deleted node pool \"gpu\"!\n";
    assert_eq!(said.ended(0).stdout, expected);
    let said = kafila("node pool delete gpu").at(&gateway.address).await;
    said.ended(1)
        .complained(&["deleting node pool", "node pool \"gpu\" not found"]);
}

#[tokio::test]
async fn the_nodes_of_a_pool_are_listed() {
    let mut state = FakeState::running();
    state.nodes[0].node_pool = "gpu".to_owned();
    for job in &mut state.jobs {
        job.node_pool = Some("gpu".to_owned());
    }
    let gateway = Gateway::start(state).await;
    let said = kafila("node pool nodes gpu").at(&gateway.address).await;
    said.ended(0).printed(&["ID ", "4d2ba53b  gpu"]);
    let said = kafila("node pool nodes -quiet -verbose gpu")
        .at(&gateway.address)
        .await;
    assert_eq!(said.ended(0).stdout, format!("{}\n", fixtures::NODE));
    let json = kafila("node pool nodes -json gpu")
        .at(&gateway.address)
        .await
        .json();
    assert_eq!(json[0]["ID"], fixtures::NODE);
    let said = kafila("node pool nodes default").at(&gateway.address).await;
    assert_eq!(said.ended(0).stdout, "No nodes\n");

    let said = kafila("node pool jobs gpu").at(&gateway.address).await;
    said.ended(0).printed(&["ID ", "web"]);
    let json = kafila("node pool jobs -json gpu")
        .at(&gateway.address)
        .await
        .json();
    assert_eq!(json[0]["ID"], "web");
    let said = kafila("node pool jobs -namespace=prod gpu")
        .at(&gateway.address)
        .await;
    assert_eq!(said.ended(0).stdout, "No jobs\n");
    for command in ["nodes", "jobs"] {
        let said = kafila(&format!("node pool {command} cpu"))
            .at(&gateway.address)
            .await;
        said.ended(1).complained(&["node pool \"cpu\" not found"]);
    }
}
