//! `kafila dev`, as far as it needs no jobs.

use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::command::{TIMEOUT, kafila, said};
use crate::job_file::{File, WEB};

#[tokio::test]
async fn a_job_file_that_is_not_there_stops_it_before_anything_starts() {
    let said = kafila("dev -listen 127.0.0.1:0 -job nothing.hcl")
        .run()
        .await;
    said.ended(1)
        .complained(&["Error getting jobfile from \"nothing.hcl\""]);
    assert_eq!(said.stdout, "");
}

#[tokio::test]
async fn a_job_file_that_breaks_a_rule_stops_it_before_anything_starts() {
    let broken = WEB.replace("count = 2", "count = -1");
    let file = File::new("web.hcl", &broken);
    let said = kafila("dev -listen 127.0.0.1:0 -job")
        .arg(&file.path)
        .run()
        .await;
    said.ended(1).complained(&[
        "Error in ",
        "Job validation errors:\n1 error occurred:\n",
        "web.hcl:",
        "group[\"app\"].count",
    ]);
    assert_eq!(said.stdout, "");
}

#[tokio::test]
async fn errors_of_dev_name_the_cause_and_the_fix() {
    // Reserved for documents: no machine has it.
    let line = "dev -dangerously-expose-plaintext -listen 192.0.2.1:4646";
    let said = kafila(line).run().await;
    said.ended(1)
        .complained(&["Error running kafila dev: ", "-listen chooses another"]);
    for part in ["ERROR", "is another"] {
        assert!(!said.stderr.contains(part), "{}", said.stderr);
    }
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let said = kafila("dev -listen").arg(&address).run().await;
    said.ended(1).complained(&[
        "Error running kafila dev: ",
        "is another `kafila dev` running?",
    ]);
}

#[tokio::test]
async fn an_address_beyond_loopback_needs_a_flag() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:4646"] {
        let said = kafila("dev -listen").arg(address).run().await;
        said.ended(1)
            .complained(&[address, "127.0.0.1:4646", "-dangerously-expose-plaintext"]);
    }
}

#[tokio::test]
async fn a_log_filter_that_is_none_is_named_by_its_flag() {
    let said = kafila("dev -listen 127.0.0.1:0 -log foo=bar=baz")
        .run()
        .await;
    said.ended(1)
        .complained(&["-log: \"foo=bar=baz\" names no level"]);
    assert!(!said.stderr.contains("telemetry"), "{}", said.stderr);
}

#[tokio::test]
async fn a_reader_that_goes_away_ends_it_in_order() {
    let mut child = kafila("dev -listen 127.0.0.1:0").start("");
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = lines.next_line().await.unwrap();
    assert!(first.unwrap().contains("Starting Kafila"));
    drop(lines);
    let output = tokio::time::timeout(TIMEOUT, child.wait_with_output()).await;
    let said = said(output.expect("it ends").unwrap());
    said.ended(141);
    assert!(!said.stderr.contains("panicked"), "{}", said.stderr);
}

#[tokio::test]
async fn it_says_how_it_is_asked_and_may_answer_at_every_address() {
    let line = "dev -dangerously-expose-plaintext -listen 0.0.0.0:0";
    let mut child = kafila(line).start("");
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut gateway = None;
    let advice = loop {
        let next = tokio::time::timeout(TIMEOUT, lines.next_line()).await;
        let line = next.expect("it says more").unwrap().expect("it goes on");
        if let Some((_, rest)) = line.split_once("Gateway: ") {
            gateway = rest.split(' ').next().map(str::to_owned);
        }
        if line.contains("Try in another terminal") {
            break line;
        }
    };
    let gateway = gateway.unwrap();
    assert!(gateway.starts_with("http://127.0.0.1:"), "{gateway}");
    let typed = format!("KAFILA_ADDR={gateway} kafila status.");
    assert!(advice.contains(&typed), "{advice}");
    kafila("status")
        .at(&gateway)
        .await
        .ended(0)
        .printed(&["No running jobs"]);
    drop(lines);
    let process = child.id().unwrap().to_string();
    let killed = std::process::Command::new("kill")
        .args(["-INT", &process])
        .status();
    assert!(killed.unwrap().success());
    let output = tokio::time::timeout(TIMEOUT, child.wait_with_output()).await;
    // Closes the pipe before the last output.
    said(output.expect("it ends").unwrap()).ended(141);
}

#[tokio::test]
async fn the_next_run_names_what_a_killed_one_left_behind() {
    let parent = tempfile::tempdir().unwrap();
    let parent = parent.path().to_str().unwrap();
    let line = "dev -listen 127.0.0.1:0";
    let mut killed = kafila(line).env("TMPDIR", parent).start("");
    wait_for_line(&mut killed, "==> Ready").await;
    killed.kill().await.unwrap();
    let entries = std::fs::read_dir(parent).unwrap();
    let left: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left.len(), 1, "{left:?}");

    let mut next = kafila(line).env("TMPDIR", parent).start("");
    let mut errors = BufReader::new(next.stderr.take().unwrap()).lines();
    let said = tokio::time::timeout(TIMEOUT, errors.next_line()).await;
    let said = said.expect("it says so").unwrap().unwrap();
    let directory = left[0].to_str().unwrap();
    assert!(
        said.contains("was killed") && said.contains(directory),
        "{said}"
    );
    // Its own directory is in use, and not named by a third run.
    wait_for_line(&mut next, "==> Ready").await;
    let mut third = kafila(line).env("TMPDIR", parent).start("");
    let mut errors = BufReader::new(third.stderr.take().unwrap()).lines();
    wait_for_line(&mut third, "==> Ready").await;
    let mut named = 0;
    third.kill().await.unwrap();
    while let Some(line) = errors.next_line().await.unwrap() {
        named += usize::from(line.contains("was killed"));
    }
    assert_eq!(named, 1);
}

async fn wait_for_line(child: &mut tokio::process::Child, part: &str) {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let found = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains(part) {
                // Read on, so that the command may print.
                tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
                return;
            }
        }
        panic!("it ended without {part:?}");
    };
    tokio::time::timeout(TIMEOUT, found).await.unwrap();
}

#[tokio::test]
async fn the_nodes_have_the_settings_of_a_file() {
    let file = File::new("node.toml", "node_class = \"large\"\n");
    let command = kafila("dev -listen 127.0.0.1:0 -node-config").arg(&file.path);
    let mut child = command.start("");
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let gateway = loop {
        let next = tokio::time::timeout(TIMEOUT, lines.next_line()).await;
        let line = next.expect("it says more").unwrap().expect("it goes on");
        if let Some((_, gateway)) = line.split_once("Gateway: ") {
            break gateway.trim().to_owned();
        }
    };
    let nodes = kafila("node status -json").at(&gateway).await.json();
    assert_eq!(nodes[0]["NodeClass"], "large", "{nodes}");
    let process = child.id().unwrap().to_string();
    let killed = std::process::Command::new("kill")
        .args(["-INT", &process])
        .status();
    assert!(killed.unwrap().success());
    drop(lines);
    let output = tokio::time::timeout(TIMEOUT, child.wait_with_output()).await;
    output.expect("it ends").unwrap();
}

#[tokio::test]
async fn a_file_with_a_setting_of_dev_itself_is_refused() {
    let file = File::new("node.toml", "data_dir = \"/srv\"\n");
    let command = kafila("dev -listen 127.0.0.1:0 -node-config").arg(&file.path);
    let said = command.run().await;
    said.ended(1).complained(&[
        "Error running kafila dev: -node-config: ",
        "data_dir (-data-dir chooses the directory)",
    ]);
}
