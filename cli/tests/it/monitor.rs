//! `kafila monitor` and `kafila operator log-level`.

use proto::v1;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::command::{TIMEOUT, UNREACHABLE, kafila};
use crate::gateway::Gateway;
use crate::job_file::File;
use crate::state::FakeState;

/// A job whose evaluation the eval-broker logs at debug.
const JOB: &str = r#"
job "once" {
  type = "batch"
  group "main" {
    task "main" {
      driver = "raw_exec"
      config {
        command = "/bin/true"
      }
    }
  }
}
"#;

fn state() -> FakeState {
    FakeState {
        log_level: v1::LogLevel {
            filter: "info".to_owned(),
            configured: "info".to_owned(),
            expires_after: None,
        },
        ..FakeState::default()
    }
}

/// Returns the first two lines of standard output, and the first of standard error.
async fn first_lines(line: &str, gateway: &Gateway) -> (Vec<String>, String) {
    let mut child = kafila(line).start(&gateway.address);
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut err = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut lines = Vec::new();
    while lines.len() < 2 {
        let next = tokio::time::timeout(TIMEOUT, out.next_line()).await;
        lines.push(next.expect("it prints").unwrap().expect("it goes on"));
    }
    let note = err.next_line().await.unwrap().unwrap_or_default();
    child.kill().await.unwrap();
    (lines, note)
}

#[tokio::test]
async fn a_log_is_followed_at_a_level_of_its_own() {
    let gateway = Gateway::start(state()).await;
    let line = "monitor -log-level=debug -service=plan-applier -recent=7";
    let (lines, note) = first_lines(line, &gateway).await;
    let expected = [
        "2026-11-21T12:00:00.000Z  INFO store::election: read at debug of \"plan-applier\"",
        "2026-11-21T12:00:00.000Z DEBUG store::election: recent 7",
    ];
    assert_eq!(lines, expected);
    assert_eq!(note, "Dropped 3 lines: reading is too slow.");
    let (lines, _) = first_lines("monitor -process=10.0.0.7:4648", &gateway).await;
    assert!(lines[0].ends_with("of \"10.0.0.7:4648\""), "{lines:?}");
    let (lines, _) = first_lines("monitor -log-json", &gateway).await;
    let json: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!(json["message"], "read at info of \"\"");
    assert_eq!(json["target"], "store::election");
    let said = kafila("monitor").at(UNREACHABLE).await;
    said.ended(1)
        .complained(&["Error reading the log: cannot reach"]);
    for two in [
        "-service=a -node-id=4d",
        "-service=a -process=b",
        "-node-id=4d -process=b",
    ] {
        let said = kafila(&format!("monitor {two}")).at(UNREACHABLE);
        said.await.ended(1).complained(&["cannot be used with"]);
    }
}

#[tokio::test]
async fn the_log_level_is_shown_set_for_a_while_and_reset() {
    let gateway = Gateway::start(state()).await;
    let run = async |line: &str| {
        let said = kafila(line).at(&gateway.address).await;
        said.ended(0).stdout.clone()
    };
    let level = "operator log-level";
    assert_eq!(run(level).await, "Log Level  = info\nConfigured = info\n");
    assert_eq!(
        run("operator log-level debug -for=90s").await,
        "Log level changed from info to debug for 1m30s, then info\n"
    );
    assert_eq!(
        run(level).await,
        "Log Level  = debug\nConfigured = info\nExpires In = 1m30s\n"
    );
    let json = kafila("operator log-level -json")
        .at(&gateway.address)
        .await;
    assert_eq!(json.json()["ExpiresIn"], 90_000_000_000_u64);
    assert_eq!(
        run("operator log-level -service=eval-broker trace -until-restart").await,
        "Log level changed from debug to trace until the process ends\n"
    );
    assert_eq!(
        run("operator log-level warn").await,
        "Log level changed from trace to warn for 1h, then info\n"
    );
    assert_eq!(
        run("operator log-level -reset").await,
        "Log level changed from warn to info (the configured level)\n"
    );
    for wrong in [
        "-for=1m",
        "-until-restart",
        "debug -reset",
        "debug -for=1m -until-restart",
    ] {
        let line = format!("operator log-level {wrong}");
        kafila(&line).at(&gateway.address).await.ended(1);
    }
}

#[tokio::test]
async fn each_process_of_a_cluster_serves_its_log_and_level() {
    let mut dev = kafila("dev -listen 127.0.0.1:0 -log info").start("");
    let mut lines = BufReader::new(dev.stdout.take().unwrap()).lines();
    // Its own log is not read here, and must not fill the pipe.
    let mut printed = BufReader::new(dev.stderr.take().unwrap()).lines();
    let printed = tokio::spawn(async move {
        let mut all = String::new();
        while let Ok(Some(line)) = printed.next_line().await {
            all.push_str(&line);
            all.push('\n');
        }
        all
    });
    let gateway = loop {
        let next = tokio::time::timeout(TIMEOUT, lines.next_line()).await;
        let line = next.expect("it says more").unwrap().expect("it goes on");
        if let Some((_, address)) = line.split_once("Gateway: ") {
            break address.trim().to_owned();
        }
    };
    let at = async |line: &str| kafila(line).at(&gateway).await;
    let nodes = at("node status -json").await.json();
    let node = nodes[0]["ID"].as_str().unwrap().to_owned();
    let processes = test_kit::wait_for("all processes", TIMEOUT, async || {
        let processes = at("operator processes -json").await.json();
        let services: Vec<String> = processes
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["Service"].as_str().unwrap().to_owned())
            .collect();
        let all = [
            "api-gateway",
            "cluster-controller",
            "deployment-watcher",
            "eval-broker",
            "plan-applier",
            "scheduler-worker",
        ];
        (services == all).then_some(processes)
    })
    .await;
    let worker = processes[5]["Address"].as_str().unwrap().to_owned();
    let job = File::new("once.hcl", JOB);
    // All services of `kafila dev` are one process with one log; each answers at its own address.
    for target in [
        "",
        "-service=plan-applier",
        &format!("-node-id={node}"),
        &format!("-process={worker}"),
    ] {
        let said = at(&format!("operator log-level {target}")).await;
        said.ended(0).printed(&["Log Level  = info"]);
        let mut child =
            kafila(&format!("monitor -recent=1000 -log-level=debug {target}")).start(&gateway);
        let mut monitored = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut next = async || {
            let line = tokio::time::timeout(TIMEOUT, monitored.next_line()).await;
            line.expect("a line").unwrap().expect("it goes on")
        };
        // A recent line: from now on the lines of its level are kept for this monitor.
        next().await;
        let run = kafila("job run -force -detach").arg(&job.path);
        run.at(&gateway).await.ended(0);
        loop {
            let line = next().await;
            if line.contains("DEBUG") && line.contains("evaluation answered") {
                break;
            }
        }
        child.kill().await.unwrap();
    }
    let said = at("operator log-level -service=scheduler-worker").await;
    said.ended(1)
        .complained(&["no leader", "kafila operator processes"]);
    let said = at("operator log-level -service=cluster-controller loud").await;
    said.ended(1).complained(&["\"loud\" names no level"]);
    let said = at("operator log-level -service=cluster-controller debug -for=1m").await;
    said.ended(0)
        .printed(&["Log level changed from info to debug for 1m, then info"]);
    let run = kafila("job run -force").arg(&job.path);
    run.at(&gateway).await.ended(0);
    let id = dev.id().unwrap().to_string();
    let killed = std::process::Command::new("kill")
        .args(["-INT", &id])
        .status();
    assert!(killed.unwrap().success());
    tokio::time::timeout(TIMEOUT, dev.wait())
        .await
        .expect("it ends")
        .unwrap();
    let printed = printed.await.unwrap();
    let (before, after) = printed.split_once("log level set").expect("it is noted");
    assert!(!before.contains("DEBUG"), "{before}");
    assert!(after.contains("DEBUG"), "{after}");
}
