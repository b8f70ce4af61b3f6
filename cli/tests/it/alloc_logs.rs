//! `kafila alloc logs`

use proto::v1::{self, LogStream};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::command::{TIMEOUT, kafila, said};
use crate::fixtures;
use crate::gateway::Gateway;
use crate::state::FakeState;

const OUT: i32 = LogStream::Stdout as i32;
const ERR: i32 = LogStream::Stderr as i32;

fn lines(from: u32, to: u32) -> String {
    (from..=to)
        .map(|number| format!("line {number}\n"))
        .collect()
}

/// A task that has written, and has ended once its logs are followed to their end.
fn talking() -> FakeState {
    let mut state = FakeState::running();
    state.allocs[1]
        .task_states
        .values_mut()
        .for_each(|state| "dead".clone_into(&mut state.state));
    let key = |stream| ("server".to_owned(), stream);
    FakeState {
        logs: [
            (key(OUT), vec![lines(1, 30).into_bytes()]),
            (key(ERR), vec![b"oh no\noh dear\n".to_vec()]),
        ]
        .into(),
        later_logs: [
            (key(OUT), vec![b"later\n".to_vec()]),
            (key(ERR), vec![b"worse\n".to_vec()]),
        ]
        .into(),
        ..state
    }
}

#[tokio::test]
async fn scenario_028_the_output_of_a_task_is_printed_from_either_end() {
    let gateway = Gateway::start(talking()).await;
    let table = [
        ("alloc logs 8a3f2", lines(1, 30)),
        ("alloc logs 8a3f2 server", lines(1, 30)),
        ("logs -task server 8a3f2", lines(1, 30)),
        ("alloc logs -stdout 8a3f2", lines(1, 30)),
        ("alloc logs -tail 8a3f2", lines(21, 30)),
        ("alloc logs -tail -n 2 8a3f2", lines(29, 30)),
        ("alloc logs -n 100 8a3f2", lines(1, 30)),
        ("alloc logs -n 0 8a3f2", String::new()),
        ("alloc logs -c 5 8a3f2", "e 30\n".to_owned()),
        ("alloc logs -stderr 8a3f2", "oh no\noh dear\n".to_owned()),
        (
            "alloc logs -stderr -tail -n 1 8a3f2",
            "oh dear\n".to_owned(),
        ),
    ];
    for (line, expected) in table {
        let said = kafila(line).at(&gateway.address).await;
        assert_eq!(said.ended(0).stdout, expected, "{line}");
        assert_eq!(said.stderr, "", "{line}");
    }
    let both = kafila("alloc logs -stdout -stderr 8a3f2")
        .at(&gateway.address)
        .await;
    assert_eq!(both.ended(0).stdout, lines(1, 30));
    assert_eq!(both.stderr, "oh no\noh dear\n");
}

#[tokio::test]
async fn following_prints_both_streams_and_ends_with_the_task() {
    let gateway = Gateway::start(talking()).await;
    let said = kafila("alloc logs -f 8a3f2").at(&gateway.address).await;
    assert_eq!(said.ended(0).stdout, format!("{}later\n", lines(1, 30)));
    assert_eq!(said.stderr, "oh no\noh dear\nworse\n");
    let said = kafila("alloc logs -f -stderr 8a3f2")
        .at(&gateway.address)
        .await;
    assert_eq!(said.ended(0).stdout, "oh no\noh dear\nworse\n");
    let said = kafila("alloc logs -f -stdout -tail -n 3 8a3f2")
        .at(&gateway.address)
        .await;
    assert_eq!(said.ended(0).stdout, format!("{}later\n", lines(28, 30)));
    let said = kafila("alloc logs -f -stdout -n 0 8a3f2")
        .at(&gateway.address)
        .await;
    assert_eq!(said.ended(0).stdout, "later\n");
}

#[tokio::test]
async fn the_last_lines_are_found_however_long_they_are() {
    let long = format!("{}\n", "x".repeat(40_000));
    let mut state = talking();
    state.logs.insert(
        ("server".to_owned(), OUT),
        vec![long.repeat(20).into_bytes()],
    );
    let gateway = Gateway::start(state).await;
    let said = kafila("alloc logs -n 5 8a3f2").at(&gateway.address).await;
    assert_eq!(said.ended(0).stdout, long.repeat(5));
}

#[tokio::test]
async fn the_task_has_to_be_named_when_there_are_several() {
    let mut state = talking();
    state.allocs[1]
        .task_states
        .insert("proxy".to_owned(), v1::TaskState::default());
    let gateway = Gateway::start(state).await;
    let said = kafila("alloc logs 8a3f2").at(&gateway.address).await;
    said.ended(1).complained(&[
        "is running the following tasks:\n  * server\n  * proxy\n",
        "kafila alloc logs 8a3f2c1e server",
    ]);
    let said = kafila("alloc logs 8a3f2 nothing")
        .at(&gateway.address)
        .await;
    said.ended(1)
        .complained(&["No task \"nothing\"", "server, proxy"]);
    let said = kafila("alloc logs 8a3f2 proxy").at(&gateway.address).await;
    said.ended(1)
        .complained(&["task \"proxy\" not started yet"]);
    kafila("alloc logs 8a3f2 server")
        .at(&gateway.address)
        .await
        .ended(0);
}

#[tokio::test]
async fn a_job_leads_to_its_newest_running_allocation() {
    let newest = v1::Allocation {
        id: "bbbb0000-0000-4000-8000-00000000000b".to_owned(),
        client_status: "pending".to_owned(),
        create_index: 99,
        ..fixtures::alloc()
    };
    let mut state = talking();
    state.allocs.push(newest);
    let gateway = Gateway::start(state).await;
    let said = kafila("alloc logs -n 1 -job web")
        .at(&gateway.address)
        .await;
    assert_eq!(said.ended(0).stdout, "line 30\n");
    said.complained(&["Allocation 8a3f2c1e (web.app[0], running, placed "]);
    kafila("alloc logs -n 1 -job web server")
        .at(&gateway.address)
        .await
        .ended(0);
    kafila("alloc logs -n 1 -job web -group app")
        .at(&gateway.address)
        .await
        .ended(0);
    let said = kafila("alloc logs -job web -group db")
        .at(&gateway.address)
        .await;
    said.ended(1)
        .complained(&["No allocations of group \"db\" placed for job \"web\""]);
    let said = kafila("alloc logs -job web 8a3f2 server")
        .at(&gateway.address)
        .await;
    said.ended(1)
        .complained(&["With -job there is no allocation to name"]);
}

#[tokio::test]
async fn wrong_arguments_are_explained() {
    let gateway = Gateway::start(talking()).await;
    let said = kafila("alloc logs").at(&gateway.address).await;
    said.ended(1)
        .complained(&["required arguments", "kafila alloc logs -help"]);
    let said = kafila("alloc logs -n 1 -c 1 8a3f2")
        .at(&gateway.address)
        .await;
    said.ended(1).complained(&["cannot be used with"]);
    let said = kafila("alloc logs -n -5 8a3f2").at(&gateway.address).await;
    said.ended(1).complained(&["invalid value '-5'"]);
    let said = kafila("alloc logs ffff").at(&gateway.address).await;
    said.ended(1)
        .complained(&["No allocation(s) with prefix or id \"ffff\" found"]);
    let said = kafila("alloc logs web").at(&gateway.address).await;
    said.ended(1).complained(&["kafila logs -job web"]);
}

#[tokio::test]
async fn a_stream_that_ends_before_its_task_is_followed_again() {
    let mut state = talking();
    for state in state.allocs[1].task_states.values_mut() {
        "running".clone_into(&mut state.state);
    }
    let gateway = Gateway::start(state).await;
    let child = kafila("alloc logs -f -stdout -n 0 8a3f2").start(&gateway.address);
    gateway
        .wait_for("it follows again", |state| state.logs_requests.len() == 3)
        .await;
    gateway.state().allocs[1].client_status = "complete".to_owned();
    let output = tokio::time::timeout(TIMEOUT, child.wait_with_output())
        .await
        .unwrap()
        .unwrap();
    let said = said(output);
    assert_eq!(said.ended(0).stdout, "later\nlater\n");
    said.complained(&["The logs broke off (the gateway ended the stream)"]);
}

#[tokio::test]
async fn a_gateway_that_restarts_breaks_off_the_logs_but_not_the_command() {
    let mut state = talking();
    // The follower never hears the end of it: the first piece comes, the later one after the cut.
    state
        .later_logs
        .insert(("server".to_owned(), OUT), vec![b"first\n".to_vec()]);
    let gateway = Gateway::start(state).await;
    let mut child = kafila("alloc logs -f -stdout -n 1 8a3f2").start(&gateway.address);
    let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = tokio::time::timeout(TIMEOUT, stdout.next_line())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(line.as_deref(), Some("line 30"));
    let noted = async {
        let line = tokio::time::timeout(TIMEOUT, stderr.next_line())
            .await
            .unwrap()
            .unwrap();
        let line = line.unwrap_or_default();
        assert!(line.contains("The logs broke off"), "{line}");
    };
    let gateway = gateway.restart(noted).await;
    let ended = tokio::time::timeout(TIMEOUT, child.wait())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(ended.code(), Some(0));
    let line = stdout.next_line().await.unwrap();
    assert_eq!(
        line.as_deref(),
        Some("first"),
        "followed again, from the end"
    );
    let state = gateway.state();
    let again = state.logs_requests.last().unwrap();
    assert_eq!(
        (again.offset, again.from_end, again.follow),
        (0, true, true)
    );
}

#[tokio::test]
async fn nothing_from_a_task_that_never_ran_is_explained() {
    let mut state = FakeState::running();
    state.allocs[1] = fixtures::never_started();
    let key = ("server".to_owned(), OUT);
    state.logs.insert(key.clone(), Vec::new());
    let gateway = Gateway::start(state).await;
    let why = [
        "the task does not run (task \"server\": Driver Failure: no such command)",
        "'kafila alloc status 8a3f2c1e'",
    ];
    let said = kafila("alloc logs 8a3f2").at(&gateway.address).await;
    assert_eq!(said.ended(0).stdout, "");
    said.complained(&why);
    // Where not even a log was begun.
    gateway.state().logs.remove(&key);
    let said = kafila("alloc logs 8a3f2").at(&gateway.address).await;
    said.ended(1).complained(&[
        "No logs available",
        "The task does not run (task \"server\": Driver Failure: no such command)",
        "'kafila alloc status 8a3f2c1e' shows its events.",
    ]);
    // The node has removed both streams of a collected allocation.
    for wrong in ["The log is empty", "-stderr"] {
        assert!(!said.stderr.contains(wrong), "{}", said.stderr);
    }
    // One that runs may be silent.
    gateway.state().allocs[1] = fixtures::alloc();
    gateway.state().logs.insert(key, Vec::new());
    let said = kafila("alloc logs 8a3f2").at(&gateway.address).await;
    assert_eq!(
        (said.ended(0).stdout.as_str(), said.stderr.as_str()),
        ("", "")
    );
}

#[tokio::test]
async fn an_empty_log_is_explained_by_its_own_task() {
    let mut state = FakeState::running();
    let mut alloc = fixtures::never_started();
    let received = v1::TaskEvent {
        r#type: "Received".to_owned(),
        ..v1::TaskEvent::default()
    };
    let pending = v1::TaskState {
        state: "pending".to_owned(),
        events: vec![received],
        ..v1::TaskState::default()
    };
    alloc.task_states.insert("sidecar".to_owned(), pending);
    alloc
        .task_states
        .insert("late".to_owned(), v1::TaskState::default());
    state.allocs[1] = alloc;
    let gateway = Gateway::start(state).await;
    for task in ["sidecar", "late"] {
        let line = format!("alloc logs -task {task} 8a3f2");
        let said = kafila(&line).at(&gateway.address).await;
        let why = format!("task \"{task}\" has not started yet: 'kafila alloc status 8a3f2c1e'");
        said.ended(1).complained(&["No logs available", &why]);
        assert!(!said.stderr.contains("no such command"), "{}", said.stderr);
    }
}
