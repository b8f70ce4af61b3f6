//! `kafila namespace …`

use proto::v1;

use crate::command::{UNREACHABLE, kafila};
use crate::fixtures;
use crate::gateway::Gateway;
use crate::state::FakeState;

#[tokio::test]
async fn namespaces_are_listed_page_by_page() {
    let gateway = Gateway::start(FakeState::running()).await;
    let said = kafila("namespace list").at(&gateway.address).await;
    let expected = "Name     Description\n\
                    default  Default shared namespace\n\
                    dev      For trying out\n";
    assert_eq!(said.ended(0).stdout, expected);
    let said = kafila("namespace list -per-page=1")
        .at(&gateway.address)
        .await;
    said.ended(0)
        .complained(&["kafila namespace list -per-page=1 -page-token=1\n"]);
    let json = kafila("namespace list -json -per-page=1 -page-token=1")
        .at(&gateway.address)
        .await
        .json();
    assert_eq!(json[0]["Name"], "dev");
    assert_eq!(json[0]["NodePoolConfiguration"]["Allowed"][1], "gpu-*");
}

#[tokio::test]
async fn one_namespace_is_shown() {
    let gateway = Gateway::start(FakeState::running()).await;
    let said = kafila("namespace status dev").at(&gateway.address).await;
    let expected = "Name             = dev\n\
                    Description      = For trying out\n\
                    Enabled Drivers  = raw_exec, mock_driver\n\
                    Disabled Drivers = mock_driver\n\
                    \n\
                    Metadata\n\
                    owner = sre\n\
                    \n\
                    Node Pool Configuration\n\
                    Default = batch\n\
                    Allowed = batch, gpu-*\n";
    assert_eq!(said.ended(0).stdout, expected);
    let said = kafila("namespace status default")
        .at(&gateway.address)
        .await;
    let expected = "Name             = default\n\
                    Description      = Default shared namespace\n\
                    Enabled Drivers  = *\n\
                    Disabled Drivers = <none>\n";
    assert_eq!(said.ended(0).stdout, expected);
    let said = kafila("namespace status prod").at(&gateway.address).await;
    said.ended(1)
        .complained(&["retrieving namespace", "namespace \"prod\" not found"]);
}

#[tokio::test]
async fn the_output_of_inspect_can_be_applied() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dev.json").display().to_string();
    let gateway = Gateway::start(FakeState::running()).await;
    let said = kafila("namespace inspect dev").at(&gateway.address).await;
    std::fs::write(&path, &said.ended(0).stdout).unwrap();
    let said = kafila("namespace apply -json")
        .arg(&path)
        .at(&gateway.address)
        .await;
    let expected = "Successfully applied namespace \"dev\"!\n";
    assert_eq!(said.ended(0).stdout, expected);
    let applied = gateway.state().namespaces.pop().unwrap();
    let expected = v1::Namespace {
        create_index: 0,
        modify_index: 0,
        ..fixtures::namespace()
    };
    assert_eq!(applied, expected);
}

#[tokio::test]
async fn a_flag_wins_over_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dev.hcl").display().to_string();
    std::fs::write(&path, "name = \"dev\"\ndescription = \"x\"\n").unwrap();
    let gateway = Gateway::start(FakeState::running()).await;
    let said = kafila("namespace apply -description=y")
        .arg(&path)
        .at(&gateway.address)
        .await;
    said.ended(0);
    let applied = gateway.state().namespaces.pop().unwrap();
    assert_eq!(applied.description, "y");
    // Fields that the file leaves out are reset.
    assert_eq!(applied.capabilities, None);
}

#[tokio::test]
async fn by_name_a_namespace_is_created_or_keeps_fields_without_a_flag() {
    let gateway = Gateway::start(FakeState::running()).await;
    let said = kafila("namespace apply prod").at(&gateway.address).await;
    let expected = "Successfully applied namespace \"prod\"!\n";
    assert_eq!(said.ended(0).stdout, expected);
    assert_eq!(gateway.state().namespaces.pop().unwrap().name, "prod");
    let said = kafila("namespace apply -description=y dev")
        .at(&gateway.address)
        .await;
    said.ended(0);
    let applied = gateway.state().namespaces.pop().unwrap();
    let expected = v1::Namespace {
        description: "y".to_owned(),
        ..fixtures::namespace()
    };
    assert_eq!(applied, expected);
}

#[tokio::test]
async fn by_name_concurrent_changes_of_a_namespace_are_kept() {
    let mut state = FakeState::running();
    let other = v1::Namespace {
        meta: [("owner".to_owned(), "ml".to_owned())].into(),
        modify_index: 40,
        ..fixtures::namespace()
    };
    state.other_namespaces = [other.clone()].into();
    let gateway = Gateway::start(state).await;
    let said = kafila("namespace apply -description=y dev")
        .at(&gateway.address)
        .await;
    said.ended(0);
    let applied = gateway.state().namespaces.pop().unwrap();
    let expected = v1::Namespace {
        description: "y".to_owned(),
        ..other
    };
    assert_eq!(applied, expected);
    assert_eq!(gateway.state().calls("UpsertNamespace"), 2);
}

#[tokio::test]
async fn an_argument_that_is_neither_file_nor_name_is_an_error() {
    let said = kafila("namespace apply dev.hcl").at(UNREACHABLE).await;
    said.ended(1)
        .complained(&["There is no file \"dev.hcl\"", "is not a namespace's name"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dev.hcl").display().to_string();
    std::fs::write(&path, "name = \"dev\"\nquota = \"x\"\n").unwrap();
    let said = kafila("namespace apply").arg(&path).at(UNREACHABLE).await;
    said.ended(1).complained(&[
        &format!("Error parsing namespace file {path}:\n"),
        "dev.hcl:2,1-6: Not supported; argument \"quota\"",
    ]);
}

#[tokio::test]
async fn a_namespace_is_deleted() {
    let gateway = Gateway::start(FakeState::running()).await;
    let said = kafila("namespace delete dev").at(&gateway.address).await;
    let expected = "Successfully deleted namespace \"dev\"!\n";
    assert_eq!(said.ended(0).stdout, expected);
    let said = kafila("namespace delete dev").at(&gateway.address).await;
    said.ended(1)
        .complained(&["deleting namespace", "namespace \"dev\" not found"]);
}
