//! Files, signals, measurements, actions and metadata.

use crate::command::kafila;
use crate::fixtures;
use crate::gateway::Gateway;
use crate::state::FakeState;

fn with_files() -> FakeState {
    let lines: Vec<String> = (1..=20).map(|number| format!("line {number}\n")).collect();
    FakeState {
        files: [
            ("web/local/app.log".to_owned(), lines.concat()),
            ("web/local/b".to_owned(), "x".repeat(2048)),
            ("many/a".to_owned(), String::new()),
        ]
        .into(),
        ..FakeState::running()
    }
}

#[tokio::test]
async fn directories_are_listed_and_files_are_printed() {
    let gateway = Gateway::start(with_files()).await;
    let id = &fixtures::alloc().id[..8];
    let said = kafila(&format!("alloc fs {id} web/local"))
        .at(&gateway.address)
        .await;
    let text = said.ended(0).stdout.clone();
    let lines: Vec<_> = text.lines().collect();
    assert!(
        lines[0].starts_with("Mode        Size   Modified Time"),
        "{text}"
    );
    assert!(
        lines[1].contains("-rw-r--r--") && lines[1].ends_with("app.log"),
        "{text}"
    );
    assert!(
        lines[2].contains("2 KiB") && lines[2].ends_with('b'),
        "{text}"
    );
    let said = kafila(&format!("fs -H {id} web/local"))
        .at(&gateway.address)
        .await;
    let text = &said.ended(0).stdout;
    assert!(text.contains("2048  2023-11-14T22:13:20Z"), "{text}");
    let said = kafila(&format!("alloc fs -stat {id} web/local/b"))
        .at(&gateway.address)
        .await;
    assert_eq!(said.ended(0).stdout.lines().count(), 2);
    let said = kafila(&format!("alloc fs {id} many"))
        .at(&gateway.address)
        .await;
    assert!(said.ended(0).stderr.contains("more files than one answer"));
    let said = kafila(&format!("alloc fs {id} web/local/app.log"))
        .at(&gateway.address)
        .await;
    assert_eq!(said.ended(0).stdout.lines().count(), 20);
    let said = kafila(&format!("alloc fs -tail {id} web/local/app.log"))
        .at(&gateway.address)
        .await;
    assert_eq!(said.ended(0).stdout.lines().next(), Some("line 11"));
    let said = kafila(&format!("alloc fs -n 2 {id} web/local/app.log"))
        .at(&gateway.address)
        .await;
    assert_eq!(said.ended(0).stdout, "line 19\nline 20\n");
    let said = kafila(&format!("alloc fs -c 3 {id} web/local/app.log"))
        .at(&gateway.address)
        .await;
    assert_eq!(said.ended(0).stdout, "20\n");
    for (line, why) in [
        (format!("alloc fs {id} nope"), "there is no"),
        (format!("alloc fs -tail {id} web/local"), "is a directory"),
        ("alloc fs -job web a b".to_owned(), "one argument, the path"),
    ] {
        let said = kafila(&line).at(&gateway.address).await;
        let stderr = &said.ended(1).stderr;
        assert!(stderr.contains(why), "{line}: {stderr}");
    }
}

#[tokio::test]
async fn a_followed_file_goes_on_where_it_broke_off() {
    let gateway = Gateway::start(with_files()).await;
    let id = &fixtures::alloc().id[..8];
    let said = kafila(&format!("alloc fs -f -n 1 {id} web/local/app.log"))
        .at(&gateway.address)
        .await;
    let said = said.ended(0);
    assert_eq!(said.stdout, "line 20\n+*");
    for part in ["reading on", "was truncated", "is gone"] {
        assert!(said.stderr.contains(part), "{}", said.stderr);
    }
    let requests = gateway.state().read_requests.clone();
    let length: u64 = requests[1].offset;
    assert!(requests[1].follow && !requests[1].from_end);
    assert_eq!(requests[2].offset, length + 1, "behind what was printed");
}

#[tokio::test]
async fn signals_and_measurements_name_the_tasks() {
    let gateway = Gateway::start(FakeState::running()).await;
    let id = fixtures::alloc().id;
    let said = kafila(&format!("alloc signal -s HUP {} server", &id[..8]))
        .at(&gateway.address)
        .await;
    let text = format!(
        "Sent SIGHUP to tasks \"a\", \"b\" of allocation {}\n",
        &id[..8]
    );
    assert_eq!(said.ended(0).stdout, text);
    let said = kafila(&format!("alloc signal -task=server {id}"))
        .at(&gateway.address)
        .await;
    said.ended(0);
    let sent = gateway.state().signal_requests.clone();
    let sent: Vec<_> = sent.iter().map(|it| (&*it.task, &*it.signal)).collect();
    assert_eq!(sent, [("server", "HUP"), ("server", "SIGKILL")]);

    let said = kafila(&format!("alloc stats {id}"))
        .at(&gateway.address)
        .await;
    let text = &said.ended(0).stdout;
    assert!(
        text.contains("server  247 MHz  12.3%      0.0s       3 MiB"),
        "{text}"
    );
    let said = kafila(&format!("alloc stats -json {id}"))
        .at(&gateway.address)
        .await;
    let json: serde_json::Value = serde_json::from_str(&said.ended(0).stdout).unwrap();
    assert_eq!(json["ResourceUsage"]["MemoryStats"]["Usage"], 3 << 20);
    let said = kafila(&format!("alloc status -stats {id}"))
        .at(&gateway.address)
        .await;
    let text = &said.ended(0).stdout;
    assert!(text.contains("\nResource Utilization\nTask "), "{text}");
}

#[tokio::test]
async fn an_action_is_run_by_its_name() {
    let gateway = Gateway::start(FakeState::running()).await;
    let id = fixtures::alloc().id;
    let line = format!("action -alloc {} -task server flush", &id[..8]);
    let said = kafila(&line).stdin("typed\n").at(&gateway.address).await;
    assert_eq!(said.ended(3).stdout, "typed\n");
    let job = fixtures::alloc().job_id;
    let line = format!("job action -i=false -job {job} flush");
    kafila(&line).at(&gateway.address).await.ended(3);
    let starts = gateway.state().exec_starts.clone();
    let asked: Vec<_> = starts
        .iter()
        .map(|it| (&*it.alloc_id, &*it.task, &*it.action, it.command.len()))
        .collect();
    assert_eq!(
        asked,
        [(&*id, "server", "flush", 0), (&*id, "", "flush", 0)]
    );
    let line = format!("action -job other -alloc {id} flush");
    let said = kafila(&line).at(&gateway.address).await;
    assert!(said.ended(1).stderr.contains("leave out -job"));
}

#[tokio::test]
async fn nodes_are_measured_refreshed_and_get_metadata() {
    let text = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let state = FakeState {
        nodes: vec![fixtures::node()],
        node_meta: proto::v1::NodeMeta {
            merged: [text("disk", "ssd"), text("rack", "r1")].into(),
            r#static: [text("rack", "r1"), text("zone", "a")].into(),
            dynamic: [text("disk", "ssd")].into(),
            removed: vec!["zone".to_owned()],
        },
        node_changes: vec!["drivers".to_owned(), "resources".to_owned()],
        ..FakeState::default()
    };
    let gateway = Gateway::start(state).await;
    let id = fixtures::node().id;
    let said = kafila(&format!("node stats -verbose {}", &id[..8]))
        .at(&gateway.address)
        .await;
    let text = &said.ended(0).stdout;
    for part in [
        "1h1m",
        "1 GiB of 4 GiB used",
        "0.2 of 1",
        "cpu0  20.0%",
        "/data        /dev/sda1  100 GiB  40 GiB (40%)",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let said = kafila(&format!("node status -stats {id}"))
        .at(&gateway.address)
        .await;
    assert!(said.ended(0).stdout.contains("Host Resource Utilization"));
    let said = kafila(&format!("node stats -json {id}"))
        .at(&gateway.address)
        .await;
    let json: serde_json::Value = serde_json::from_str(&said.ended(0).stdout).unwrap();
    assert_eq!(json["AllocDirStats"]["Mountpoint"], "/data");

    let said = kafila(&format!("node meta read -node-id {id}"))
        .at(&gateway.address)
        .await;
    let expected = "All Meta\ndisk = ssd\nrack = r1\n\nDynamic Meta\ndisk = ssd\nzone = <unset>\n\n\
                    Static Meta\nrack = r1\nzone = a\n";
    assert_eq!(said.ended(0).stdout, expected);
    let said = kafila(&format!("node meta read -json -node-id={id}"))
        .at(&gateway.address)
        .await;
    let json: serde_json::Value = serde_json::from_str(&said.ended(0).stdout).unwrap();
    assert_eq!(
        json["Dynamic"],
        serde_json::json!({"disk": "ssd", "zone": null})
    );
    let line = format!("node meta apply -node-id {id} -unset a,b rack=r=2 empty=");
    kafila(&line).at(&gateway.address).await.ended(0);
    let request = gateway.state().meta_requests[0].clone();
    assert_eq!(request.unset, ["a", "b"]);
    assert_eq!((&*request.set["rack"], &*request.set["empty"]), ("r=2", ""));
    let line = format!("node meta apply -node-id {id} rack");
    let said = kafila(&line).at(&gateway.address).await;
    assert!(said.ended(1).stderr.contains("NAME=VALUE"));

    let line = format!("node refresh {id}");
    let said = kafila(&line).at(&gateway.address).await;
    assert!(said.ended(0).stdout.contains("has new drivers, resources"));
    let said = kafila(&line).at(&gateway.address).await;
    assert!(said.ended(0).stdout.contains("has not changed"));
}
