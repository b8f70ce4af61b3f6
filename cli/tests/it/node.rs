//! `kafila node status`

use proto::v1;

use crate::command::kafila;
use crate::fixtures;
use crate::gateway::Gateway;
use crate::state::FakeState;

#[tokio::test]
async fn scenario_036_nodes_are_listed_or_there_are_none() {
    let gateway = Gateway::start(FakeState::running()).await;
    let said = kafila("node status").at(&gateway.address).await;
    let expected = "ID        Node Pool  DC   Name  Class   Drain  Eligibility  Status\n\
                    4d2ba53b  default    dc1  n1    <none>  false  eligible     ready\n";
    assert_eq!(said.ended(0).stdout, expected);
    let said = kafila("node status -allocs -os").at(&gateway.address).await;
    said.ended(0)
        .printed(&["OS", "Running Allocs\n", "debian", "ready   1\n"]);
    let said = kafila("node status -quiet -verbose")
        .at(&gateway.address)
        .await;
    assert_eq!(said.ended(0).stdout, format!("{}\n", fixtures::NODE));
    let json = kafila("node status -json")
        .at(&gateway.address)
        .await
        .json();
    assert_eq!(json[0]["ID"], fixtures::NODE);

    let gateway = Gateway::start(FakeState::default()).await;
    let said = kafila("node status").at(&gateway.address).await;
    assert_eq!(said.ended(0).stdout, "No nodes registered\n");
}

#[tokio::test]
async fn a_page_says_how_to_get_the_next() {
    let mut state = FakeState::running();
    state.nodes.push(v1::Node {
        id: "5e000000-0000-4000-8000-000000000009".to_owned(),
        ..fixtures::node()
    });
    let gateway = Gateway::start(state).await;
    let said = kafila("node status -quiet -per-page 1")
        .at(&gateway.address)
        .await;
    assert_eq!(said.ended(0).stdout, "4d2ba53b\n");
    said.complained(&[
        "paginated",
        "kafila node status -quiet -per-page=1 -page-token=1\n",
    ]);
    let said = kafila("node status -quiet -per-page 1 -page-token 1")
        .at(&gateway.address)
        .await;
    assert_eq!(said.ended(0).stdout, "5e000000\n");
    assert_eq!(said.stderr, "");
}

#[tokio::test]
async fn one_node_is_shown_with_its_allocations() {
    let gateway = Gateway::start(FakeState::running()).await;
    for line in ["node status 4d2b", "node-status 4d2b", "status 4d2b"] {
        let said = kafila(line).at(&gateway.address).await;
        said.ended(0).printed(&[
            &format!("ID            = {}\n", fixtures::NODE),
            "Driver Status = docker (unhealthy),raw_exec\n",
            "500/4000 MHz  256 MiB/7.8 GiB  300 MiB/20 GiB\n",
            "\nAllocations\n",
            "8a3f2c1e",
        ]);
    }
    let said = kafila("node status -verbose 4d2b")
        .at(&gateway.address)
        .await;
    said.ended(0)
        .printed(&["\nAttributes\n", "kernel.name    = linux\n"]);
    let said = kafila("node status -short 4d2b").at(&gateway.address).await;
    assert!(!said.ended(0).stdout.contains("Allocated Resources"));
    let json = kafila("node status -json 4d2b")
        .at(&gateway.address)
        .await
        .json();
    assert_eq!(json["NodeResources"]["Memory"]["MemoryMB"], 7_965);
}

#[tokio::test]
async fn wrong_ids_are_explained() {
    let mut state = FakeState::running();
    state.nodes.push(v1::Node {
        id: "4d200000-0000-4000-8000-000000000009".to_owned(),
        ..fixtures::node()
    });
    let gateway = Gateway::start(state).await;
    let said = kafila("node status 4d2").at(&gateway.address).await;
    said.ended(1)
        .complained(&["Prefix matched multiple nodes\n\nID", "4d200000-0000"]);
    let said = kafila("node status ffff").at(&gateway.address).await;
    said.ended(1).complained(&[
        "No node(s) with prefix or id \"ffff\" found",
        "kafila node status",
    ]);
    let said = kafila("node status 4").at(&gateway.address).await;
    said.ended(1)
        .complained(&["Identifier must contain at least two characters."]);
}

#[tokio::test]
async fn a_node_is_made_ineligible_and_eligible_again() {
    let gateway = Gateway::start(FakeState::running()).await;
    for (flag, word) in [("-disable", "ineligible"), ("-enable", "eligible")] {
        let line = format!("node eligibility {flag} 4d2b");
        let said = kafila(&line).at(&gateway.address).await;
        let expected = format!(
            "Node \"{}\" scheduling eligibility set: {word} for scheduling\n",
            fixtures::NODE
        );
        assert_eq!(said.ended(0).stdout, expected);
        assert_eq!(gateway.state().nodes[0].eligibility, word);
    }
    let table = [
        ("4d2b", "-enable"),
        ("-enable -disable 4d2b", "cannot be used with"),
        ("-enable", "<ID>"),
        ("-enable ffff", "ffff"),
    ];
    for (words, part) in table {
        let line = format!("node eligibility {words}");
        let said = kafila(&line).at(&gateway.address).await;
        said.ended(1).complained(&[part]);
    }
}

#[tokio::test]
async fn the_node_of_this_machine_is_found_by_its_host_name() {
    let mut state = FakeState::running();
    let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    state.nodes[0]
        .attributes
        .insert("unique.hostname".to_owned(), hostname.trim().to_owned());
    let gateway = Gateway::start(state).await;
    let said = kafila("node status -self").at(&gateway.address).await;
    said.ended(0).printed(&["ID", "4d2ba53b"]);
    gateway.state().nodes[0].attributes.clear();
    let said = kafila("node status -self").at(&gateway.address).await;
    said.ended(1).complained(&["no node has the host name"]);
}

#[tokio::test]
async fn a_name_instead_of_an_id_names_the_id() {
    let gateway = Gateway::start(FakeState::running()).await;
    let node = fixtures::node();
    let line = format!("node status {}", node.name);
    let said = kafila(&line).at(&gateway.address).await;
    let stderr = &said.ended(1).stderr;
    assert!(
        stderr.contains(&format!("has the ID {}", node.id)),
        "{stderr}"
    );
}
