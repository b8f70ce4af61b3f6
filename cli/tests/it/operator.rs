//! `kafila operator …`, `kafila version` and `kafila completions`.

use proto::v1;

use crate::command::{UNREACHABLE, kafila};
use crate::gateway::Gateway;
use crate::state::FakeState;

#[tokio::test]
async fn leaders_are_listed_or_there_are_none() {
    let gateway = Gateway::start(FakeState::running()).await;
    let said = kafila("operator leaders").at(&gateway.address).await;
    let expected = "Service             Address                Replica  Term\n\
                    cluster-controller  <none>                 <none>   <none>\n\
                    deployment-watcher  <none>                 <none>   <none>\n\
                    eval-broker         <none>                 <none>   <none>\n\
                    plan-applier        http://127.0.0.1:7102  dev      3\n";
    assert_eq!(said.ended(0).stdout, expected);
    let json = kafila("operator leaders -json")
        .at(&gateway.address)
        .await
        .json();
    assert_eq!(json[0]["Term"], 3);
    let gateway = Gateway::start(FakeState::default()).await;
    let said = kafila("operator leaders").at(&gateway.address).await;
    assert_eq!(said.ended(0).stdout.matches("<none>").count(), 4 * 3);
    let json = kafila("operator leaders -json").at(&gateway.address).await;
    assert_eq!(json.ended(0).stdout, "[]\n");
}

#[tokio::test]
async fn health_is_that_of_the_process_at_the_address() {
    let mut state = FakeState::default();
    state.etcd.revision = 7;
    let gateway = Gateway::start(state).await;
    let said = kafila("operator health").at(&gateway.address).await;
    let expected = format!("{} is ready\n", gateway.address);
    assert_eq!(said.ended(0).stdout, expected);
    // The gateway does not know yet that etcd is away.
    gateway.state().etcd.revision = 0;
    let said = kafila("operator health").at(&gateway.address).await;
    said.ended(1)
        .complained(&["is not ready: etcd does not answer", "-stale"]);
    let said = kafila("operator health -only-process")
        .at(&gateway.address)
        .await;
    assert_eq!(said.ended(0).stdout, expected);
    gateway.state().etcd.revision = 7;
    gateway.set_ready(false);
    let said = kafila("operator health").at(&gateway.address).await;
    said.ended(1).complained(&[
        "etcd answers it",
        "limits of etcd",
        "--max-txn-ops",
        "keyring_key_file",
    ]);
    let said = kafila("operator health").at(&gateway.address).await;
    said.ended(1)
        .complained(&[&gateway.address, "is not ready", "etcd"]);
    let said = kafila("operator health -wait=300ms")
        .at(&gateway.address)
        .await;
    said.ended(1).complained(&["is not ready"]);
    let said = kafila("operator health").at(UNREACHABLE).await;
    said.ended(1)
        .complained(&["Error checking health: cannot reach"]);
}

#[tokio::test]
async fn health_of_one_of_several_gateways_names_the_others() {
    let process = |service: &str, address: &str| v1::Process {
        service: service.to_owned(),
        address: address.to_owned(),
        ..v1::Process::default()
    };
    let mut state = FakeState {
        processes: vec![
            process("api-gateway", "http://10.0.0.1:4646"),
            process("api-gateway", "http://10.0.0.2:4646"),
            process("eval-broker", "http://10.0.0.1:7102"),
        ],
        ..FakeState::default()
    };
    state.etcd.revision = 7;
    let gateway = Gateway::start(state).await;
    let said = kafila("operator health").at(&gateway.address).await;
    let note = "The cluster has 2 gateways; -address asks another: \
                http://10.0.0.1:4646, http://10.0.0.2:4646\n";
    assert_eq!(said.ended(0).stderr, note);
    gateway.state().processes.remove(0);
    for line in ["operator health", "operator health -only-process"] {
        let said = kafila(line).at(&gateway.address).await;
        assert_eq!(said.ended(0).stderr, "", "{line}");
    }
}

#[tokio::test]
async fn health_with_wait_outlasts_a_restart() {
    let mut state = FakeState::default();
    state.etcd.revision = 7;
    let gateway = Gateway::start(state).await;
    let address = gateway.address.clone();
    let mut asking = None;
    let restarted = gateway.restart(async {
        asking = Some(tokio::spawn(async move {
            kafila("operator health -wait=60s").at(&address).await
        }));
        tokio::time::sleep(std::time::Duration::from_millis(600)).await;
    });
    let _gateway = restarted.await;
    asking.unwrap().await.unwrap().ended(0);
}

#[tokio::test]
async fn scenario_042_garbage_is_collected_without_a_word_unless_asked_for() {
    let mut state = FakeState::default();
    state.garbage.jobs = 2;
    state.garbage.allocations = 7;
    let gateway = Gateway::start(state).await;
    let said = kafila("system gc").at(&gateway.address).await;
    assert_eq!(said.ended(0).stdout, "");
    let said = kafila("system gc -verbose").at(&gateway.address).await;
    let expected = "Jobs        = 2\n\
                    Evaluations = 0\n\
                    Allocations = 7\n\
                    Deployments = 0\n\
                    Nodes       = 0\n";
    assert_eq!(said.ended(0).stdout, expected);
    let said = kafila("system gc").at(UNREACHABLE).await;
    said.ended(1)
        .complained(&["Error collecting garbage: cannot reach"]);
}

#[tokio::test]
async fn the_version_needs_no_gateway_unless_it_is_asked_for() {
    let own = concat!("Kafila v", env!("CARGO_PKG_VERSION"), "\n");
    let said = kafila("version").at(UNREACHABLE).await;
    assert_eq!(said.ended(0).stdout, own);
    let gateway = Gateway::start(FakeState::default()).await;
    let said = kafila("version -gateway").at(&gateway.address).await;
    let expected = format!("{own}Gateway v9.8.7 at {}\n", gateway.address);
    assert_eq!(said.ended(0).stdout, expected);
    kafila("version -gateway")
        .at(UNREACHABLE)
        .await
        .ended(1)
        .complained(&["cannot reach the gateway"]);
}

#[tokio::test]
async fn completions_are_written_for_each_shell() {
    for (shell, part) in [
        ("bash", "_kafila()"),
        ("zsh", "#compdef kafila"),
        ("fish", "complete -c kafila"),
    ] {
        let said = kafila("completions").arg(shell).at(UNREACHABLE).await;
        said.ended(0).printed(&[part]);
    }
    let said = kafila("completions cmd").at(UNREACHABLE).await;
    said.ended(1).complained(&["invalid value 'cmd'", "bash"]);
}

#[tokio::test]
async fn ids_are_candidates_where_a_command_takes_one() {
    let gateway = Gateway::start(FakeState::running()).await;
    let ask = async |words: &[&str]| {
        let command = words
            .iter()
            .fold(kafila("complete --"), |it, word| it.arg(word));
        command.at(&gateway.address).await.ended(0).stdout.clone()
    };
    assert_eq!(ask(&["job", "status", ""]).await, "web\n");
    assert_eq!(ask(&["job", "status", "w"]).await, "web\n");
    assert_eq!(ask(&["job", "status", "x"]).await, "");
    assert_eq!(ask(&["job", "run", ""]).await, "");
    let nodes = ask(&["node", "drain", "-enable", ""]).await;
    assert!(
        nodes.lines().all(|id| id.len() == 36) && !nodes.is_empty(),
        "{nodes}"
    );
    assert_eq!(ask(&["alloc", "logs", "-job", "w"]).await, "web\n");
    // A flag of all commands.
    assert_eq!(ask(&["alloc", "logs", "-namespace", "x"]).await, "");
    assert_eq!(ask(&["job", "run", "-det"]).await, "-detach\n");
    // Without a gateway there are none, and no error either.
    let said = kafila("complete -- job status")
        .arg("")
        .at(UNREACHABLE)
        .await;
    assert_eq!(
        (said.ended(0).stdout.as_str(), said.stderr.as_str()),
        ("", "")
    );
}

fn member(number: u8, is_leader: bool) -> proto::v1::EtcdMember {
    proto::v1::EtcdMember {
        endpoint: format!("http://10.0.0.{number}:2379"),
        version: "3.5.30".to_owned(),
        is_leader,
        db_bytes: 3 << 20,
        in_use_bytes: 1 << 20,
        quota_bytes: 4 << 20,
        ..Default::default()
    }
}

#[tokio::test]
async fn etcd_is_defragmented_member_after_member_with_the_leader_last() {
    let state = FakeState {
        etcd: proto::v1::GetEtcdStatusResponse {
            members: vec![member(1, true), member(2, false), member(3, false)],
            revision: 70,
            refusal: String::new(),
        },
        ..FakeState::default()
    };
    let gateway = Gateway::start(state).await;
    let run = async |arguments: &str| kafila(arguments).at(&gateway.address).await;
    let status = run("operator etcd status").await;
    for text in [
        "Revision = 70",
        "3.0 MiB (75 %)",
        "1.0 MiB (25 %)",
        "leader",
    ] {
        assert!(status.ended(0).stdout.contains(text), "{}", status.stdout);
    }
    let compacted = run("operator etcd compact").await;
    assert!(compacted.ended(0).stdout.contains("revision 70"));
    let one = run("operator etcd defrag -member=http://10.0.0.3:2379").await;
    assert!(
        one.ended(0)
            .stdout
            .contains("3.0 MiB before, 1.0 MiB after")
    );
    run("operator etcd defrag -member=nowhere")
        .await
        .ended(1)
        .complained(&["nowhere is not a member"]);
    run("operator etcd defrag").await.ended(0);
    let order = gateway.state().defragmented.clone();
    let hosts: Vec<&str> = order.iter().map(|endpoint| &endpoint[7..15]).collect();
    assert_eq!(hosts, ["10.0.0.3", "10.0.0.2", "10.0.0.3", "10.0.0.1"]);
    let disarmed = run("operator etcd disarm").await;
    assert!(disarmed.ended(0).stdout.contains("2 members"));
    gateway.state().etcd.refusal = "etcd is full".to_owned();
    let status = run("operator etcd status").await;
    assert!(status.ended(1).stdout.contains("etcd is full"));
}

#[tokio::test]
async fn processes_are_listed_with_the_role_of_replicas() {
    let mut state = FakeState::default();
    let process = |service: &str, address: &str, is_leader| v1::Process {
        service: service.to_owned(),
        address: address.to_owned(),
        version: "0.1.0".to_owned(),
        is_leader,
    };
    state.processes = vec![
        process("eval-broker", "http://10.0.0.7:4648", true),
        process("eval-broker", "http://10.0.0.8:4648", false),
        process("scheduler-worker", "http://10.0.0.9:4648", false),
    ];
    // The second was killed, and the caller may not ask the third.
    state.silent_processes = [
        (
            "http://10.0.0.8:4648".to_owned(),
            tonic::Status::unavailable("it cannot be reached"),
        ),
        (
            "http://10.0.0.9:4648".to_owned(),
            tonic::Status::permission_denied("no"),
        ),
    ]
    .into();
    let gateway = Gateway::start(state).await;
    let said = kafila("operator processes").at(&gateway.address).await;
    let expected = "Service           Address               Version  Leader  Answers\n\
                    eval-broker       http://10.0.0.7:4648  0.1.0    true    yes\n\
                    eval-broker       http://10.0.0.8:4648  0.1.0    false   no\n\
                    scheduler-worker  http://10.0.0.9:4648  0.1.0    <none>  <none>\n";
    assert_eq!(said.ended(0).stdout, expected);
    let json = kafila("operator processes -json");
    let json = json.at(&gateway.address).await.json();
    let answers: Vec<_> = [0, 1, 2].map(|at| json[at].get("Answers").cloned()).into();
    assert_eq!(answers, [Some(true.into()), Some(false.into()), None]);
    assert_eq!(
        (&json[0]["Leader"], &json[2]["Leader"]),
        (&true.into(), &false.into())
    );
}
