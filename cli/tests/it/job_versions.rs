//! `kafila job revert`, `history` and `tag`.

use proto::v1;
use proto::v1::revert_job_request::Target;
use tonic::Status;

use crate::command::kafila;
use crate::fixtures;
use crate::gateway::Gateway;
use crate::state::FakeState;

fn with_differences() -> FakeState {
    let diff = v1::JobDiff {
        r#type: v1::DiffType::Edited.into(),
        id: "web".to_owned(),
        fields: vec![v1::FieldDiff {
            r#type: v1::DiffType::Edited.into(),
            name: "Priority".to_owned(),
            old: "40".to_owned(),
            new: "50".to_owned(),
            annotations: Vec::new(),
        }],
        ..v1::JobDiff::default()
    };
    let mut state = FakeState::running();
    state.diffs = vec![diff];
    state.jobs[0].version_tag = Some(v1::VersionTag {
        name: "gold".to_owned(),
        description: "the one that works".to_owned(),
        tagged_time_ns: fixtures::NOW,
    });
    state
}

#[tokio::test]
async fn scenario_032_a_job_is_reverted_to_a_number_or_a_name_and_followed() {
    for (to, expected) in [
        ("3", Target::Version(3)),
        ("v3", Target::Tag("v3".to_owned())),
    ] {
        let gateway = Gateway::start(FakeState::running()).await;
        let said = kafila(&format!("job revert web {to}"))
            .at(&gateway.address)
            .await;
        said.ended(0).printed(&[
            "Monitoring evaluation \"1a2b3c4d\"",
            "✓ Deployment \"5e6f7a8b\" successful\n",
        ]);
        let state = gateway.state();
        let request = &state.revert_requests[0];
        assert_eq!(request.job_id, "web");
        assert_eq!(request.target, Some(expected));
        assert!(!request.request_id.is_empty());
    }
}

/// Only the children of a periodic or parameterized job have evaluations.
#[tokio::test]
async fn a_revert_without_an_evaluation_is_not_followed() {
    for line in ["job revert nightly 3", "job revert -detach nightly 3"] {
        let mut state = FakeState::running();
        state.stubs[0].id = "nightly".to_owned();
        state.stubs[0].periodic = true;
        state.registered = [Ok(v1::RegisterJobResponse::default())].into();
        let gateway = Gateway::start(state).await;
        let said = kafila(line).at(&gateway.address).await;
        assert_eq!(said.ended(0).stdout, "Job revert successful\n", "{line}");
        assert_eq!(gateway.state().calls("GetEvaluation"), 0);
    }
}

#[tokio::test]
async fn a_revert_is_detached_from_or_refused() {
    let gateway = Gateway::start(FakeState::running()).await;
    let said = kafila("job revert -detach web 3")
        .at(&gateway.address)
        .await;
    assert_eq!(
        said.ended(0).stdout,
        format!("Evaluation ID: {}\n", fixtures::EVAL)
    );
    let state = FakeState {
        registered: [Err(Status::failed_precondition(
            "can't revert to current version",
        ))]
        .into(),
        ..FakeState::running()
    };
    let gateway = Gateway::start(state).await;
    let said = kafila("job revert web 3").at(&gateway.address).await;
    said.ended(1)
        .complained(&["reverting job", "can't revert to current version"]);
}

#[tokio::test]
async fn versions_are_shown_newest_first_with_their_diffs() {
    let gateway = Gateway::start(with_differences()).await;
    let said = kafila("job history web").at(&gateway.address).await;
    said.ended(0).printed(&[
        "Version     = 1\n",
        "Stable ",
        "\n\nVersion         = 0\n",
        "Tag Name        = gold\n",
        "Tag Description = the one that works\n",
    ]);
    assert!(!said.stdout.contains("Diff"), "{}", said.stdout);
    let said = kafila("job history -p web").at(&gateway.address).await;
    said.ended(0).printed(&[
        "Version     = 1\n",
        "\nDiff\n",
        "+/- Job: \"web\"",
        "Priority: \"40\" => \"50\"",
        "Version         = 0\n",
    ]);
    let said = kafila("job history -version=0 -full web")
        .at(&gateway.address)
        .await;
    said.ended(0)
        .printed(&["Version         = 0\n", "\nFull\n", "\"ID\": \"web\""]);
    assert!(!said.stdout.contains("= 1\n"), "{}", said.stdout);
    let said = kafila("job history -version=9 web")
        .at(&gateway.address)
        .await;
    said.ended(1)
        .complained(&["Job \"web\" has no version 9. It has 1, 0"]);
}

#[tokio::test]
async fn versions_are_compared_with_one_of_them() {
    let gateway = Gateway::start(with_differences()).await;
    for line in ["-p -diff-version=0", "-p -diff-tag=gold"] {
        let line = format!("job history {line} web");
        kafila(&line).at(&gateway.address).await.ended(0);
    }
    {
        let state = gateway.state();
        let requests = &state.versions_requests;
        assert_eq!(requests[0].diff_version, Some(0));
        assert_eq!(requests[1].diff_tag, "gold");
    }
    let said = kafila("job history -diff-version=0 web")
        .at(&gateway.address)
        .await;
    said.ended(1).complained(&["-p"]);
}

#[tokio::test]
async fn versions_are_json_for_programs() {
    let gateway = Gateway::start(with_differences()).await;
    let json = kafila("job history -json web")
        .at(&gateway.address)
        .await
        .json();
    assert_eq!(json[0]["Version"], 1);
    assert_eq!(json[0]["VersionTag"], serde_json::Value::Null);
    assert_eq!(json[1]["VersionTag"]["Name"], "gold");
    let json = kafila("job history -p -json web")
        .at(&gateway.address)
        .await
        .json();
    assert_eq!(json["Versions"][0]["Version"], 1);
    assert_eq!(json["Diffs"][0]["Fields"][0]["New"], "50");
}

#[tokio::test]
async fn versions_get_names_and_lose_them() {
    let gateway = Gateway::start(FakeState::running()).await;
    let said = kafila("job tag apply -name=gold -version=3 -description=works web")
        .at(&gateway.address)
        .await;
    assert_eq!(
        said.ended(0).stdout,
        "Job version 3 tagged with name \"gold\"\n"
    );
    let said = kafila("job tag apply -name gold web")
        .at(&gateway.address)
        .await;
    assert_eq!(
        said.ended(0).stdout,
        "Job version 7 tagged with name \"gold\"\n"
    );
    {
        let state = gateway.state();
        let request = &state.tag_requests[0];
        assert_eq!((&*request.description, request.version), ("works", Some(3)));
        assert_eq!(state.tag_requests[1].version, None);
    }
    let said = kafila("job tag unset -name=gold web")
        .at(&gateway.address)
        .await;
    assert_eq!(
        said.ended(0).stdout,
        "Tag \"gold\" removed from job \"web\"\n"
    );
    let said = kafila("job tag unset -name=lead web")
        .at(&gateway.address)
        .await;
    said.ended(1)
        .complained(&["tag \"lead\" not found: there is gold"]);
    let said = kafila("job tag apply web").at(&gateway.address).await;
    said.ended(1).complained(&["-name"]);
}
