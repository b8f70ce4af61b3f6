//! `kafila eval …`

use crate::command::kafila;
use crate::fixtures;
use crate::gateway::Gateway;
use crate::state::FakeState;

fn blocked() -> FakeState {
    FakeState {
        evals: vec![fixtures::failed_eval(), fixtures::blocked_eval()],
        allocs: vec![],
        ..FakeState::running()
    }
}

#[tokio::test]
async fn an_empty_list_says_that_its_job_or_namespace_does_not_exist() {
    let gateway = Gateway::start(FakeState::default()).await;
    for (line, part) in [
        ("eval list -job nope", "has no job \"nope\""),
        (
            "eval list -namespace nope",
            "Namespace \"nope\" does not exist",
        ),
        (
            "job status -namespace nope",
            "Namespace \"nope\" does not exist",
        ),
    ] {
        let said = kafila(line).at(&gateway.address).await;
        said.ended(0).complained(&[part]);
    }
    let said = kafila("eval list -namespace *").at(&gateway.address).await;
    assert_eq!(said.ended(0).stderr, "");
}

#[tokio::test]
async fn evaluations_are_listed_and_filtered() {
    let gateway = Gateway::start(blocked()).await;
    let said = kafila("eval list").at(&gateway.address).await;
    said.ended(0).printed(&[
        "ID        Priority  Triggered By   Job ID  Namespace  Node ID  Status    Placement Failures\n",
        "2b3c4d5e  50        queued-allocs  web     default    <none>   blocked   N/A - In Progress\n",
        "1a2b3c4d  50        job-register   web     default    <none>   complete  true\n",
    ]);
    let said = kafila("eval list -status blocked -job web")
        .at(&gateway.address)
        .await;
    assert_eq!(said.ended(0).stdout.lines().count(), 2);
    let said = kafila("eval list -job nothing").at(&gateway.address).await;
    assert_eq!(said.ended(0).stdout, "No evals found\n");
    let said = kafila("eval list -per-page 1").at(&gateway.address).await;
    said.ended(0)
        .printed(&["2b3c4d5e"])
        .complained(&["kafila eval list -per-page=1 -page-token=1\n"]);
    let said = kafila("eval list -status cancelled")
        .at(&gateway.address)
        .await;
    said.ended(1)
        .complained(&["invalid value 'cancelled'", "canceled"]);
    let json = kafila("eval list -json").at(&gateway.address).await.json();
    assert_eq!(json[0]["ClassEligibility"]["v1:123"], false);
}

#[tokio::test]
async fn scenario_037_an_evaluation_names_its_failed_placements() {
    let gateway = Gateway::start(blocked()).await;
    for line in ["eval status 1a2b", "eval-status 1a2b", "status 1a2b"] {
        let said = kafila(line).at(&gateway.address).await;
        said.ended(0).printed(&[
            "ID                 = 1a2b3c4d\n",
            "Placement Failures = true\n",
            "Blocked Eval       = 2b3c4d5e\n",
            "\nRelated Evaluations\n",
            "2b3c4d5e",
            "\nFailed Placements\n",
            "* Class \"small\": 1 node excluded by filter\n",
            "* Class \"big\" exhausted on 2 nodes\n",
            "* Dimension \"memory\" exhausted on 2 nodes\n",
            "Run 'kafila eval explain 1a2b3c4d' for what each node says",
        ]);
    }
    let json = kafila("eval status -json 1a2b")
        .at(&gateway.address)
        .await
        .json();
    assert_eq!(json["FailedTGAllocs"]["app"]["CoalescedFailures"], 1);
}

#[tokio::test]
async fn an_evaluation_is_explained() {
    let gateway = Gateway::start(blocked()).await;
    let said = kafila("eval explain 1a2b").at(&gateway.address).await;
    said.ended(0).printed(&[
        "Evaluation   = 1a2b3c4d\n",
        "Explained At = revision 131\n",
        "\nTask Group \"app\"\n",
        "Nearest miss: node n1 (4d2ba53b, class big), exhausted",
    ]);
    let said = kafila("eval explain -verbose -node 4d2b 1a2b")
        .at(&gateway.address)
        .await;
    said.ended(0).printed(&[fixtures::EVAL, fixtures::NODE]);
    let asked: Vec<_> = gateway.state().explain_requests.clone();
    let asked: Vec<_> = asked
        .iter()
        .map(|request| (request.eval_id.as_str(), request.node_id.as_str()))
        .collect();
    assert_eq!(
        asked,
        [(fixtures::EVAL, ""), (fixtures::EVAL, fixtures::NODE)]
    );
    let json = kafila("eval explain -json 1a2b")
        .at(&gateway.address)
        .await
        .json();
    assert_eq!(
        json["TaskGroups"][0]["NearestMiss"]["NodeID"],
        fixtures::NODE
    );
    let said = kafila("eval explain ffff").at(&gateway.address).await;
    said.ended(1)
        .complained(&["No evaluation(s) with prefix or id \"ffff\" found"]);
    let said = kafila("eval explain -node ffff 1a2b")
        .at(&gateway.address)
        .await;
    said.ended(1).complained(&["ffff"]);
}

#[tokio::test]
async fn an_evaluation_is_watched_like_a_run() {
    let gateway = Gateway::start(blocked()).await;
    let said = kafila("eval status -monitor 1a2b")
        .at(&gateway.address)
        .await;
    said.ended(2).printed(&[
        "Monitoring evaluation \"1a2b3c4d\"",
        "waiting for additional capacity",
    ]);
    let gateway = Gateway::start(FakeState::running()).await;
    let said = kafila("eval status -monitor 1a2b")
        .at(&gateway.address)
        .await;
    said.ended(0).printed(&[
        "Allocation \"8a3f2c1e\" created",
        "Deployment \"5e6f7a8b\" successful",
    ]);
}

#[tokio::test]
async fn wrong_ids_are_explained() {
    let mut state = blocked();
    state.evals[1].id = fixtures::EVAL.replace("0001", "0002");
    let gateway = Gateway::start(state).await;
    let said = kafila("eval status 1a2b").at(&gateway.address).await;
    said.ended(1)
        .complained(&["Prefix matched multiple evaluations\n\nID", fixtures::EVAL]);
    let said = kafila("eval status ffff").at(&gateway.address).await;
    said.ended(1).complained(&[
        "No evaluation(s) with prefix or id \"ffff\" found",
        "kafila eval list",
    ]);
}

#[tokio::test]
async fn the_next_page_keeps_the_flags_of_the_first() {
    let gateway = Gateway::start(blocked()).await;
    let said = kafila("eval list -job web -per-page 1")
        .at(&gateway.address)
        .await;
    let next = "kafila eval list -job=web -per-page=1 -page-token=1";
    said.ended(0).printed(&["2b3c4d5e"]).complained(&[next]);
    // Nothing but that line is needed, and it does not name itself again.
    let said = kafila(next.trim_start_matches("kafila "))
        .at(&gateway.address)
        .await;
    said.ended(0).printed(&["1a2b3c4d"]);
    assert_eq!(said.stderr, "");
    let jobs: Vec<String> = gateway.state().asked_jobs.clone();
    assert_eq!(jobs, ["web", "web"]);
}

#[tokio::test]
async fn evaluations_are_deleted_by_whole_ids_or_their_starts() {
    let gateway = Gateway::start(blocked()).await;
    let said = kafila("eval delete -yes 1a2b")
        .arg(fixtures::BLOCKED_EVAL)
        .at(&gateway.address)
        .await;
    let expected = "Successfully deleted 2 evaluations\n";
    assert_eq!(said.ended(0).stdout, expected);
    let expected = [fixtures::EVAL, fixtures::BLOCKED_EVAL];
    assert_eq!(gateway.state().deleted_evals, expected);
    let said = kafila("eval delete 1a2b").at(&gateway.address).await;
    said.ended(1)
        .complained(&["No evaluation(s) with prefix or id \"1a2b\" found"]);
    assert_eq!(gateway.state().calls("DeleteEvaluations"), 1);
}
