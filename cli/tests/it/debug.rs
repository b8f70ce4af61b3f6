//! `kafila operator debug`

use std::io::Read as _;

use proto::v1;
use tempfile::TempDir;

use crate::command::{UNREACHABLE, kafila};
use crate::gateway::Gateway;
use crate::state::FakeState;

/// Path below the folder -> content.
fn unpack(path: &std::path::Path) -> std::collections::BTreeMap<String, String> {
    let file = std::fs::File::open(path).unwrap();
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(file));
    let mut files = std::collections::BTreeMap::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().to_str().unwrap().to_owned();
        let (_, name) = name.split_once('/').unwrap();
        let mut content = String::new();
        let name = name.to_owned();
        entry.read_to_string(&mut content).unwrap();
        files.insert(name, content);
    }
    files
}

#[tokio::test]
async fn an_archive_describes_the_cluster_without_secrets() {
    let directory = TempDir::new().unwrap();
    let output = directory.path().join("debug.tar.gz");
    let config = directory.path().join("gateway.toml");
    std::fs::write(&config, "name = \"g1\"\n[etcd]\npassword = \"hunter2\"\n").unwrap();
    let mut state = FakeState::running();
    state.nodes[0]
        .meta
        .insert("password".to_owned(), "hunter2".to_owned());
    state.allocs[0].client_status = "failed".to_owned();
    state.log_secret = "hunter2".to_owned();
    state.processes = ["scheduler-worker", "plan-applier"]
        .into_iter()
        .enumerate()
        .map(|(number, service)| v1::Process {
            service: service.to_owned(),
            address: format!("https://10.0.0.{number}:7101"),
            version: "9.8.7".to_owned(),
            ..v1::Process::default()
        })
        .collect();
    let gateway = Gateway::start(state).await;
    let line = format!(
        "operator debug -output {} -config-file {} -log-file /no/such/file -metrics 127.0.0.1:1",
        output.display(),
        config.display()
    );
    let said = kafila(&line).at(&gateway.address).await;
    said.ended(0).printed(&["Created debug archive: "]);
    assert!(
        said.stderr.contains("Missing: logs/no_such_file"),
        "{said:?}"
    );
    let files = unpack(&output);
    let read = |name: &str| -> serde_json::Value { serde_json::from_str(&files[name]).unwrap() };
    assert_eq!(read("gateway.json")["Version"], "9.8.7");
    for (name, process) in [
        ("scheduler-worker-10.0.0.0_7101", "https://10.0.0.0:7101"),
        ("plan-applier-10.0.0.1_7101", "https://10.0.0.1:7101"),
    ] {
        let log = &files[&format!("logs/{name}.recent.txt")];
        assert!(log.contains(&format!("of {process:?}")), "{log}");
        assert!(log.contains("token=<redacted>"), "{log}");
    }
    let node = files
        .keys()
        .find(|name| name.starts_with("logs/client-node-n1-"));
    assert!(node.is_some(), "{:?}", files.keys());
    assert_eq!(read("processes.json")[0]["Version"], "9.8.7");
    assert_eq!(read("allocations.json")["failed"], 1);
    assert_eq!(read("nodes.json")[0]["Name"], "n1");
    assert_eq!(read("failed-allocations.json").as_array().unwrap().len(), 1);
    let manifest = read("manifest.json");
    let missing = manifest["Missing"].as_object().unwrap();
    assert_eq!(missing.len(), 2, "{manifest}");
    let config = files
        .iter()
        .find(|(name, _)| name.starts_with("config/"))
        .unwrap();
    assert!(config.1.contains("\"g1\""), "{config:?}");
    for (name, content) in &files {
        assert!(!content.contains("hunter2"), "{name}: {content}");
    }
    let again = kafila(&line).at(&gateway.address).await;
    assert!(again.ended(1).stderr.contains("exists"), "{again:?}");
}

#[tokio::test]
async fn an_archive_is_written_while_no_gateway_answers() {
    let directory = TempDir::new().unwrap();
    let output = directory.path().join("debug.tar.gz");
    let line = format!("operator debug -output {}", output.display());
    let said = kafila(&line).at(UNREACHABLE).await;
    said.ended(1)
        .printed(&["Created debug archive: "])
        .complained(&["no gateway answered at http://", "-address"]);
    let manifest: serde_json::Value =
        serde_json::from_str(&unpack(&output)["manifest.json"]).unwrap();
    assert!(
        manifest["Missing"]["leaders.json"].is_string(),
        "{manifest}"
    );
}

#[tokio::test]
async fn captures_are_repeated_for_a_duration() {
    let directory = TempDir::new().unwrap();
    let output = directory.path().join("debug.tar.gz");
    let gateway = Gateway::start(FakeState::running()).await;
    let line = format!(
        "operator debug -duration=900ms -interval=300ms -output {}",
        output.display()
    );
    let began = tokio::time::Instant::now();
    let said = kafila(&line).at(&gateway.address).await;
    said.ended(0)
        .complained(&["Captured 1 of 4", "Captured 4 of 4"]);
    assert!(began.elapsed() >= std::time::Duration::from_millis(900));
    let files = unpack(&output);
    for number in 0..4 {
        for name in ["leaders.json", "nodes.json", "allocations.json"] {
            let name = format!("captures/000{number}/{name}");
            assert!(files.contains_key(&name), "{name}: {:?}", files.keys());
        }
    }
    assert!(!files.contains_key("leaders.json") && !files.contains_key("captures/0004/nodes.json"));
    // Logs hold what happened meanwhile, and are read once.
    assert!(files.contains_key("logs/plan-applier.recent.txt"));
    let manifest: serde_json::Value = serde_json::from_str(&files["manifest.json"]).unwrap();
    assert_eq!(manifest["Captures"].as_array().unwrap().len(), 4);

    let again = kafila(&line).at(&gateway.address).await;
    again.ended(1).complained(&["exists already", "-output"]);
    let line = "operator debug -duration=10s -interval=1m -output no";
    let said = kafila(line).at(&gateway.address).await;
    said.ended(1)
        .complained(&["-interval is longer than -duration"]);
}
