//! `kafila operator snapshot save|inspect|restore|agent`

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use s3_test_kit::S3;
use tempfile::TempDir;
use test_kit::etcd::Etcd;

use crate::command::{TIMEOUT, kafila};
use crate::gateway::Gateway;
use crate::state::FakeState;

/// A gateway of the binary over a real etcd; dropping it kills it.
struct Real {
    process: Child,
    address: String,
}

impl Drop for Real {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Real {
    async fn start(etcd: &Etcd) -> Self {
        // Of a loopback host that only this process uses.
        let [.., high, low] = std::process::id().to_be_bytes();
        let host = format!("127.{}.{low}.3", 64 | (high & 0x3f));
        let address = format!("http://{host}:4646");
        let process = Command::new(env!("CARGO_BIN_EXE_kafila"))
            .arg("api-gateway")
            .env("KAFILA_API_GATEWAY__ETCD__ENDPOINTS", etcd.endpoint())
            .env("KAFILA_API_GATEWAY__TLS__INSECURE", "true")
            .env("KAFILA_API_GATEWAY__LISTEN__GRPC", format!("{host}:4646"))
            .env(
                "KAFILA_API_GATEWAY__LISTEN__METRICS",
                format!("{host}:4647"),
            )
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let real = Self { process, address };
        let ready = kafila("operator health -wait 60s").at(&real.address).await;
        ready.ended(0);
        real
    }

    /// Registers a job without running it, and returns its modify index.
    async fn register(&self, id: &str) -> u64 {
        let file = format!(
            r#"{{"ID": "{id}", "TaskGroups": [{{"Name": "g", "Tasks": [{{"Name": "t",
                "Driver": "mock_driver"}}]}}]}}"#
        );
        let run = kafila("job run -detach -json -").stdin(&file);
        run.at(&self.address).await.ended(0);
        self.modify_index(id).await.unwrap()
    }

    async fn modify_index(&self, id: &str) -> Option<u64> {
        let line = format!("job status -json {id}");
        let said = kafila(&line).at(&self.address).await;
        let job: serde_json::Value = serde_json::from_str(&said.stdout).ok()?;
        job["JobModifyIndex"].as_u64()
    }
}

fn path(directory: &TempDir, name: &str) -> (PathBuf, String) {
    let path = directory.path().join(name);
    let text = path.to_str().unwrap().to_owned();
    (path, text)
}

#[tokio::test]
async fn a_saved_snapshot_is_restored_and_no_index_goes_back() {
    if !test_kit::etcd::available() {
        return;
    }
    let directory = TempDir::new().unwrap();
    let (_, first_data) = path(&directory, "first");
    let (file, file_text) = path(&directory, "saved.db");
    let (restored, restored_text) = path(&directory, "restored");
    let etcd = Etcd::start_with(&["--data-dir", &first_data])
        .await
        .unwrap();
    let gateway = Real::start(&etcd).await;
    let saved_index = gateway.register("saved").await;
    let line = format!("operator snapshot save {file_text}");
    let said = kafila(&line).at(&gateway.address).await;
    said.ended(0).printed(&["Saved revision "]);
    let again = kafila(&line).at(&gateway.address).await;
    let stderr = &again.ended(1).stderr;
    assert!(stderr.contains("the file exists"), "{stderr}");

    let line = format!("operator snapshot inspect -json {file_text}");
    let said = kafila(&line).run().await;
    let shown: serde_json::Value = serde_json::from_str(&said.ended(0).stdout).unwrap();
    assert!(
        shown["Revision"].as_u64().unwrap() >= saved_index,
        "{shown}"
    );
    let tables = shown["Tables"].as_array().unwrap().iter();
    let keys = |name: &str| {
        let mut tables = tables.clone();
        let table = tables.find(|table| table["Name"] == name);
        table.map(|table| table["Keys"].as_u64().unwrap())
    };
    // One job with one version and one evaluation.
    let found = ["job", "job-version", "eval"].map(keys);
    assert_eq!(found, [Some(1); 3], "{shown}");

    let lost_index = gateway.register("lost").await;
    drop(gateway);
    drop(etcd);
    let line =
        format!("operator snapshot restore -data-dir {restored_text} -name test {file_text}");
    kafila_with_path(&line)
        .await
        .ended(0)
        .printed(&["continues from"]);
    let again = kafila_with_path(&line).await;
    again
        .ended(1)
        .complained(&[&format!("{restored_text} exists already"), "-data-dir"]);

    let etcd = Etcd::start_with(&["--data-dir", &restored_text])
        .await
        .unwrap();
    let gateway = Real::start(&etcd).await;
    assert_eq!(gateway.modify_index("saved").await, Some(saved_index));
    assert_eq!(gateway.modify_index("lost").await, None);
    let later = gateway.register("later").await;
    assert!(later > lost_index, "{later} after {lost_index}");
    // A watch that had seen the lost write is not continued as if nothing had happened.
    let history = Command::new("etcdctl")
        .args([
            "--endpoints",
            &etcd.endpoint(),
            "get",
            "--prefix",
            "/kafila",
        ])
        .args(["--rev", &lost_index.to_string()])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&history.stderr);
    assert!(stderr.contains("compacted"), "{stderr}");
    drop(gateway);
    assert!(restored.exists() && file.exists());
}

/// Runs a command that starts another program.
async fn kafila_with_path(line: &str) -> crate::command::Said {
    let path = std::env::var("PATH").unwrap();
    kafila(line).env("PATH", &path).run().await
}

#[tokio::test]
async fn a_damaged_stream_leaves_no_file() {
    let directory = TempDir::new().unwrap();
    let (_, text) = path(&directory, "saved.db");
    let mut state = FakeState::running();
    state.snapshot = vec![7; 100_000];
    let gateway = Gateway::start(state).await;
    let line = format!("operator snapshot save {text}");
    let said = kafila(&line).at(&gateway.address).await;
    let stderr = &said.ended(1).stderr;
    assert!(stderr.contains("has no checksum"), "{stderr}");
    assert_eq!(files(directory.path()), Vec::<String>::new());
}

#[tokio::test]
async fn a_missing_directory_is_named() {
    let directory = TempDir::new().unwrap();
    let (missing, text) = path(&directory, "missing");
    let gateway = Gateway::start(FakeState::running()).await;
    let line = format!("operator snapshot save {text}/saved.db");
    let said = kafila(&line).at(&gateway.address).await;
    let stderr = &said.ended(1).stderr;
    assert!(
        stderr.contains(&format!("there is no directory {text}.")),
        "{stderr}"
    );
    assert!(!stderr.contains(&format!("{text}/.tmp")), "{stderr}");
    assert!(!missing.exists(), "{stderr}");
}

#[tokio::test]
async fn a_restore_replaces_no_data() {
    let directory = TempDir::new().unwrap();
    let (_, file) = path(&directory, "saved.db");
    let (existing, data) = path(&directory, "existing");
    std::fs::create_dir_all(existing.join("member")).unwrap();
    let line = format!("operator snapshot restore -data-dir {data} {file}");
    let said = kafila(&line).run().await;
    said.ended(1)
        .complained(&[&format!("{data} exists already"), "-data-dir"]);
}

#[tokio::test]
async fn a_damaged_file_is_neither_inspected_nor_restored() {
    let directory = TempDir::new().unwrap();
    let (file, text) = path(&directory, "saved.db");
    std::fs::write(&file, vec![7; 512 * 4 + 32]).unwrap();
    let (restored, restored_text) = path(&directory, "restored");
    for line in [
        format!("operator snapshot inspect {text}"),
        format!("operator snapshot restore -data-dir {restored_text} {text}"),
    ] {
        let said = kafila(&line).run().await;
        let stderr = &said.ended(1).stderr;
        assert!(stderr.contains("checksum"), "{line}: {stderr}");
    }
    assert!(!restored.exists());
    let line =
        format!("operator snapshot restore -bump-revision 0 -data-dir {restored_text} {text}");
    let said = kafila(&line).run().await;
    assert!(said.ended(1).stderr.contains("more than 0"), "{said:?}");
}

#[tokio::test]
async fn the_agent_keeps_the_newest_snapshots_and_no_others_files() {
    if !test_kit::etcd::available() {
        return;
    }
    let directory = TempDir::new().unwrap();
    // Older than the interval, so a snapshot is due.
    for name in [
        "kafila-20200101T000000Z.db",
        "kafila-20200102T000000Z.db",
        "notes.txt",
    ] {
        std::fs::write(directory.path().join(name), "old").unwrap();
    }
    let (_, saved) = path(&directory, "source.db");
    let etcd = Etcd::start().await.unwrap();
    let status = Command::new("etcdctl")
        .args(["--endpoints", &etcd.endpoint(), "snapshot", "save", &saved])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let mut state = FakeState::running();
    state.snapshot = std::fs::read(&saved).unwrap();
    std::fs::remove_file(&saved).unwrap();
    let gateway = Gateway::start(state).await;
    let dir = directory.path().to_str().unwrap();
    let line = format!("operator snapshot agent -retain 2 -dir {dir}");
    let mut agent = kafila(&line).start(&gateway.address);
    let done = async {
        while files(directory.path()).contains(&"kafila-20200101T000000Z.db".to_owned()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, done).await.unwrap();
    let found = files(directory.path());
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[0] == "kafila-20200102T000000Z.db" && found[2] == "notes.txt");
    let pid = agent.id().unwrap().to_string();
    Command::new("kill").arg(pid).status().unwrap();
    let ended = tokio::time::timeout(TIMEOUT, agent.wait()).await.unwrap();
    assert_eq!(ended.unwrap().code(), Some(0));
}

/// Returns a file of `etcdctl snapshot save`.
async fn snapshot_of_etcd() -> Vec<u8> {
    let directory = TempDir::new().unwrap();
    let (_, saved) = path(&directory, "source.db");
    let etcd = Etcd::start().await.unwrap();
    let status = Command::new("etcdctl")
        .args(["--endpoints", &etcd.endpoint(), "snapshot", "save", &saved])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    std::fs::read(&saved).unwrap()
}

/// Starts a command line with the stand-in's endpoint, region and credentials.
fn kafila_s3(store: &S3, line: &str) -> crate::command::Kafila {
    kafila(line)
        .env("AWS_ENDPOINT_URL_S3", &store.endpoint())
        .env("AWS_REGION", s3_test_kit::REGION)
        .env("AWS_ACCESS_KEY_ID", s3_test_kit::ACCESS_KEY)
        .env("AWS_SECRET_ACCESS_KEY", "secret")
}

#[tokio::test]
async fn a_snapshot_is_saved_into_a_bucket_once() {
    if !test_kit::etcd::available() {
        return;
    }
    let mut state = FakeState::running();
    state.snapshot = snapshot_of_etcd().await;
    let content = state.snapshot.clone();
    let gateway = Gateway::start(state).await;
    let store = S3::start(1000);
    let line = "operator snapshot save s3://backups/kafila/one.db";
    let said = kafila_s3(&store, line).at(&gateway.address).await;
    said.ended(0)
        .printed(&["into s3://backups/kafila/one.db ("]);
    assert!(store.objects()["kafila/one.db"] == content);
    let again = kafila_s3(&store, line).at(&gateway.address).await;
    again.ended(1).complained(&["the object exists"]);
    let line = "operator snapshot save s3://backups/named/";
    let said = kafila_s3(&store, line).at(&gateway.address).await;
    said.ended(0).printed(&["into s3://backups/named/kafila-2"]);

    let none = kafila("operator snapshot save s3://backups/x").run().await;
    none.ended(1).complained(&["AWS_ACCESS_KEY_ID"]);
    let line = "operator snapshot save -s3-endpoint http://s3.example s3://backups/x";
    let plain = kafila_s3(&store, line).run().await;
    plain.ended(1).complained(&["is plaintext"]);
}

#[tokio::test]
async fn a_damaged_stream_reaches_no_bucket() {
    let mut state = FakeState::running();
    state.snapshot = vec![7; 100_000];
    let gateway = Gateway::start(state).await;
    let store = S3::start(1000);
    let line = "operator snapshot save s3://backups/x.db";
    let said = kafila_s3(&store, line).at(&gateway.address).await;
    said.ended(1).complained(&["has no checksum"]);
    assert!(store.objects().is_empty());
}

#[tokio::test]
async fn the_agent_keeps_the_newest_objects_of_a_bucket() {
    if !test_kit::etcd::available() {
        return;
    }
    let mut state = FakeState::running();
    state.snapshot = snapshot_of_etcd().await;
    let gateway = Gateway::start(state).await;
    // Lists have several pages.
    let store = S3::start(2);
    for key in [
        "p/kafila-20200101T000000Z.db",
        "p/kafila-20200102T000000Z.db",
        "p/kafila-20200103T000000Z.db",
        "p/old/kafila-20200101T000000Z.db",
        "p/notes.txt",
        "kafila-20200101T000000Z.db",
    ] {
        store.put(key, b"old");
    }
    // The first upload fails, and the agent tries again by itself.
    store.fail(
        "PUT /backups/p/",
        s3_test_kit::Fault::Refuse(503, "SlowDown"),
    );
    let line = "operator snapshot agent -retain 2 -s3 s3://backups/p";
    let mut agent = kafila_s3(&store, line).start(&gateway.address);
    let done = async {
        while store.objects().contains_key("p/kafila-20200102T000000Z.db") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, done).await.unwrap();
    let objects = store.objects();
    let keys: Vec<&str> = objects.keys().map(String::as_str).collect();
    assert_eq!(keys.len(), 5, "{keys:?}");
    assert_eq!(keys[0], "kafila-20200101T000000Z.db");
    assert_eq!(keys[1], "p/kafila-20200103T000000Z.db");
    assert_eq!(
        keys[3..],
        ["p/notes.txt", "p/old/kafila-20200101T000000Z.db"]
    );
    let pid = agent.id().unwrap().to_string();
    Command::new("kill").arg(pid).status().unwrap();
    let ended = tokio::time::timeout(TIMEOUT, agent.wait()).await.unwrap();
    assert_eq!(ended.unwrap().code(), Some(0));
}

#[tokio::test]
async fn an_agent_without_access_to_its_bucket_ends() {
    let store = S3::start(1000);
    store.fail("GET", s3_test_kit::Fault::Refuse(403, "AccessDenied"));
    let line = "operator snapshot agent -s3 s3://backups/p";
    let said = kafila_s3(&store, line).run().await;
    said.ended(1).complained(&["AccessDenied", "s3:ListBucket"]);
    let said = kafila("operator snapshot agent").run().await;
    assert_ne!(said.code, 0);
    said.complained(&["-dir"]);
}

/// Returns the names in a directory, sorted.
fn files(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}
