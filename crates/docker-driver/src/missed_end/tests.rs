//! A stand-in for an engine that has missed the end of a container.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use model::AllocId;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};

use super::*;
use crate::records::Record;
use crate::settings::Settings;

/// In the control group of every process, as the id of a container in that of its own.
const CONTAINER: &str = ":";

/// Serves a container with this process. It runs until the engine is asked to kill it. Returns the kills.
fn serve(socket: &Path, id: TaskId, pid: u32) -> Arc<Mutex<u32>> {
    let listener = UnixListener::bind(socket).unwrap();
    let kills = Arc::new(Mutex::new(0));
    let seen = Arc::clone(&kills);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, id.clone(), pid, Arc::clone(&seen)));
        }
    });
    kills
}

async fn answer(mut stream: UnixStream, id: TaskId, pid: u32, kills: Arc<Mutex<u32>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else {
            return;
        };
        head.push(byte);
    }
    let head = String::from_utf8(head).unwrap();
    let path = head.split(' ').nth(1).unwrap();
    if path.contains("/wait") {
        std::future::pending::<()>().await;
    }
    if path.contains("/kill") {
        *kills.lock().unwrap() += 1;
    }
    let state = match *kills.lock().unwrap() {
        0 => serde_json::json!({"Status": "running", "Running": true, "Pid": pid}),
        _ => serde_json::json!({"Status": "exited", "ExitCode": 3}),
    };
    let labels = serde_json::json!({
        "com.hashicorp.nomad.alloc_id": id.alloc_id.to_string(), "io.kafila.task": id.task,
        "io.kafila.attempt": id.attempt.to_string(),
    });
    let body = match path.contains("/json") {
        true => serde_json::json!({"Id": CONTAINER, "State": state, "Config": {"Labels": labels}}),
        false => serde_json::json!({"ApiVersion": "1.41"}),
    };
    let body = body.to_string();
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await.unwrap();
}

fn process() -> Child {
    let mut command = Command::new("sleep");
    command.arg("600").stdin(Stdio::null()).spawn().unwrap()
}

fn end(mut process: Child) {
    process.kill().unwrap();
    process.wait().unwrap();
}

/// A driver at the socket `engine.sock` of the directory, with a record of the attempt.
fn driver(directory: &Path, id: &TaskId) -> Docker {
    let mut settings = Settings::new(directory.join("state"), "node-1".to_owned());
    settings.config.socket = directory.join("engine.sock");
    let driver = Docker::new(settings);
    let record = Record {
        name: "web".to_owned(),
        boot_id: String::new(),
        logs: None,
    };
    driver.records.put(id, &record).unwrap();
    driver
}

fn id() -> TaskId {
    TaskId {
        alloc_id: AllocId::from_random(1),
        task: "web".to_owned(),
        attempt: 1,
    }
}

#[tokio::test(start_paused = true)]
async fn a_missed_end_is_noticed_also_by_the_next_run_of_the_agent() {
    for agent_restarts in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let (task, process) = (id(), process());
        let kills = serve(
            &folder.path().join("engine.sock"),
            task.clone(),
            process.id(),
        );
        let first = driver(folder.path(), &task);
        let messages = tokio::sync::mpsc::channel(1).0;
        let waiting = first.wait_task(&task, &messages);
        tokio::pin!(waiting);
        let early = tokio::time::timeout(Duration::from_secs(60), &mut waiting).await;
        assert!(
            early.is_err() && *kills.lock().unwrap() == 0,
            "its process lives"
        );
        end(process);
        let exit = match agent_restarts {
            false => waiting.await,
            true => {
                driver(folder.path(), &task)
                    .wait_task(&task, &messages)
                    .await
            }
        };
        assert_eq!(exit.unwrap().code, 3);
        assert_eq!(*kills.lock().unwrap(), 1);
    }
}

/// An agent that moved into a container sees no process of the engine any more, and kills none.
#[tokio::test(start_paused = true)]
async fn a_process_that_was_not_seen_from_here_is_of_another_machine_or_namespace() {
    for seen_from in [None, Some("pid:[1]")] {
        let folder = tempfile::tempdir().unwrap();
        let (task, process) = (id(), process());
        let pid = i32::try_from(process.id()).unwrap();
        let kills = serve(
            &folder.path().join("engine.sock"),
            task.clone(),
            process.id(),
        );
        end(process);
        let driver = driver(folder.path(), &task);
        if let Some(namespace) = seen_from {
            let seen = SeenProcess {
                pid,
                pid_namespace: namespace.into(),
            };
            driver.records.put_process(&task, &seen).unwrap();
        }
        let messages = tokio::sync::mpsc::channel(1).0;
        let waiting = driver.wait_task(&task, &messages);
        let ended = tokio::time::timeout(Duration::from_secs(600), waiting).await;
        assert!(ended.is_err(), "{seen_from:?}");
        assert_eq!(*kills.lock().unwrap(), 0, "{seen_from:?}");
    }
}
