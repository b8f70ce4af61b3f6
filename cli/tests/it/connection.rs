//! A gateway that is not there, says no, or says nothing.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tonic::Status;

use crate::command::{UNREACHABLE, kafila};
use crate::gateway::Gateway;
use crate::job_file::File;
use crate::state::FakeState;

/// Every command that asks the gateway.
const COMMANDS: [&str; 14] = [
    "job status",
    "job status web",
    "job stop web",
    "job inspect web",
    "alloc status 8a3f",
    "alloc logs 8a3f",
    "node status",
    "node status 4d2b",
    "eval list",
    "eval status 1a2b",
    "deployment list",
    "deployment status 5e6f",
    "operator leaders",
    "status 8a3f",
];

#[tokio::test]
async fn a_gateway_that_is_not_there_is_named_with_the_way_to_another() {
    for line in COMMANDS {
        let said = kafila(line).at(UNREACHABLE).await;
        said.ended(1).complained(&[
            "Error querying ",
            "cannot reach the gateway at http://127.0.0.1:1: connection refused.",
            "from KAFILA_ADDR",
            "-address",
            "kafila dev",
        ]);
        assert_eq!(said.stdout, "", "{line}");
    }
    let file = File::web();
    let said = kafila("job run")
        .arg(&file.path)
        .arg("-address=127.0.0.1:1")
        .run()
        .await;
    said.ended(1)
        .complained(&["Error submitting job: cannot reach", "from -address"]);
}

#[tokio::test]
async fn the_address_comes_from_the_flag_before_the_environment() {
    let gateway = Gateway::start(FakeState::running()).await;
    let port = gateway.address.trim_start_matches("http://");
    let said = kafila("job status -address")
        .arg(port)
        .at(UNREACHABLE)
        .await;
    said.ended(0).printed(&["web"]);
    let said = kafila("job status")
        .env("KAFILA_ADDR", "")
        .env("NOMAD_ADDR", &gateway.address);
    said.run().await.ended(0).printed(&["web"]);
}

#[tokio::test]
async fn a_gateway_that_says_nothing_is_given_up_in_time() {
    let gateway = Gateway::start(FakeState {
        mute: true,
        ..FakeState::running()
    })
    .await;
    let said = kafila("job status -timeout=300ms")
        .at(&gateway.address)
        .await;
    said.ended(1).complained(&[
        "no answer from the gateway",
        "within 300ms",
        "-timeout=1200ms",
    ]);
}

#[tokio::test]
async fn the_gateways_own_words_are_shown() {
    let table = [
        (
            Status::permission_denied(""),
            "Error querying jobs: Permission denied\n",
        ),
        (
            Status::internal("the store is on fire"),
            "Error querying jobs: the store is on fire\n",
        ),
        (Status::unimplemented(""), "older than this command"),
        (
            Status::unavailable("etcd has no leader"),
            "etcd has no leader",
        ),
        (
            Status::unavailable("cannot answer with fresh state: try again"),
            "Reads with -stale show the gateway's copy",
        ),
    ];
    for (status, part) in table {
        let broken = Some(status);
        let gateway = Gateway::start(FakeState {
            broken,
            ..FakeState::running()
        })
        .await;
        kafila("job status")
            .at(&gateway.address)
            .await
            .ended(1)
            .complained(&[part]);
    }
}

#[tokio::test]
async fn a_server_that_is_no_gateway_is_reported_as_such() {
    // Something that speaks, but not gRPC.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let answer = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
                let mut asked = [0; 1024];
                let mut bytes = 0;
                // The greeting of HTTP/2 is shorter, with a request it is longer: an answer before
                // the request would be a connection that was lost, to be made again.
                while bytes < 150 {
                    match stream.read(&mut asked).await {
                        Ok(more @ 1..) => bytes += more,
                        _ => return,
                    }
                }
                let _ = stream.write_all(answer).await;
                // Until the other side has understood.
                while stream.read(&mut asked).await.is_ok_and(|bytes| bytes > 0) {}
            });
        }
    });
    let named = format!("the server at {address} is no Kafila gateway: it does not speak gRPC");
    let said = kafila("job status -timeout=10s").at(&address).await;
    said.ended(1).complained(&[
        "Error querying jobs: ",
        &named,
        "from KAFILA_ADDR",
        "-address",
    ]);
    let file = File::web();
    let said = kafila("job run").arg(&file.path).at(&address).await;
    said.ended(1)
        .complained(&["Error submitting job: ", &named]);
    assert!(
        !said.stderr.contains("may have been stored"),
        "{}",
        said.stderr
    );
    let said = kafila("job validate").arg(&file.path).at(&address).await;
    said.ended(0).complained(&["Checked without the cluster"]);
    server.abort();

    // gRPC, but of something else: what etcd answers.
    let broken = Some(Status::unimplemented("unknown service kafila.v1.Jobs"));
    let gateway = Gateway::start(FakeState {
        broken,
        ..FakeState::running()
    })
    .await;
    let said = kafila("job status").at(&gateway.address).await;
    said.ended(1)
        .complained(&[&gateway.address, "no Kafila gateway", "from KAFILA_ADDR"]);
}

#[tokio::test]
async fn a_stale_read_asks_for_no_fresh_state() {
    let reads = COMMANDS.into_iter().filter(|line| *line != "job stop web");
    for line in reads {
        let gateway = Gateway::start(FakeState::running()).await;
        kafila(line).arg("-stale").at(&gateway.address).await;
        let is_fresh = |seen: &crate::state::Seen| {
            seen.options.consistency != i32::from(proto::v1::Consistency::Stale)
        };
        let state = gateway.state();
        let fresh = state.seen.iter().find(|seen| is_fresh(seen));
        // Logs are read on the node.
        let fresh = fresh.filter(|seen| !seen.method.contains("Logs"));
        assert!(fresh.is_none(), "{line}: {fresh:?}");
    }
    let gateway = Gateway::start(FakeState::running()).await;
    kafila("job status").at(&gateway.address).await.ended(0);
    assert_eq!(gateway.state().seen[0].options.consistency, 0);
}

#[tokio::test]
async fn a_slow_answer_is_explained_while_it_is_awaited() {
    let mut state = FakeState::running();
    state.mute = true;
    let gateway = Gateway::start(state).await;
    let said = kafila("job status -timeout=5s").at(&gateway.address).await;
    let stderr = &said.ended(1).stderr;
    let note = stderr.find("Waiting for the gateway").unwrap();
    assert!(note < stderr.find("no answer").unwrap(), "{stderr}");
    assert_eq!(stderr.matches("Waiting for").count(), 1, "{stderr}");
}
