//! Restarts of the agent, with and without its state: tasks go on and are recovered.

use std::fs;
use std::time::Duration;

use model::{AllocId, ClientStatus};
use proto::internal::v1::AllocationsUpdate;
use test_kit::wait_for;

use crate::gateway::{Cluster, Gateway, LIMIT};
use crate::node::{Place, Process, Running, batch, is_alive, kill, mock, service, start};

/// Prints its pid, then counts.
const COUNTING: &str = "echo pid $$; i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done";

async fn cluster() -> (Cluster, Gateway) {
    let cluster = Cluster::new();
    let gateway = Gateway::start(&cluster).await;
    (cluster, gateway)
}

/// Returns the number of complete lines.
fn count(said: &str) -> usize {
    said.matches('\n').count()
}

async fn counts_on(place: &Place, id: model::AllocId) {
    let before = count(&place.output(id));
    wait_for("the count to go on", LIMIT, async || {
        (count(&place.output(id)) > before + 5).then_some(())
    })
    .await;
    let said = place.output(id);
    // The last line may be in the middle of being written.
    let numbers: Vec<u64> = said
        .split_inclusive('\n')
        .filter_map(|line| line.strip_suffix('\n')?.parse().ok())
        .collect();
    let all: Vec<u64> = (1..=numbers.len() as u64).collect();
    assert_eq!(numbers, all, "no gap and nothing twice");
}

#[tokio::test]
async fn scenario_022_tasks_survive_the_agents_death_with_their_process_and_their_log() {
    let place = Place::new();
    let (cluster, gateway) = cluster().await;
    let agent = Process::start(&place, &gateway.address);
    let id = cluster.assign(1, &service(COUNTING));
    let before = cluster.until(id, ClientStatus::Running).await;
    let pid = place.pid(id).await;
    agent.kill();
    assert!(is_alive(pid));
    counts_on(&place, id).await;
    let streams = cluster.facts().seen.len();
    let agent = Process::start(&place, &gateway.address);
    cluster
        .until_fact("another stream", |facts| facts.seen.get(streams).copied())
        .await;
    counts_on(&place, id).await;
    assert!(is_alive(pid));
    // A change to report, so that the test can read the reported state.
    kill(pid, "TERM");
    let after = cluster
        .until_fact("a restart", |facts| {
            facts
                .reported
                .get(&id)
                .filter(|client| client.task_states["server"].restarts > 0)
                .cloned()
        })
        .await;
    let events = |client: &model::AllocClient| client.task_states["server"].events.clone();
    assert_eq!(
        events(&after)[..3],
        events(&before)[..3],
        "as if nothing had happened"
    );
    assert_eq!(events(&after)[3].event_type, "Terminated");
    cluster.collect(id);
    place.is_empty_but(&agent).await;
}

#[tokio::test]
async fn scenario_023_an_end_while_the_agent_was_dead_is_reported() {
    let place = Place::new();
    let (cluster, gateway) = cluster().await;
    let agent = Process::start(&place, &gateway.address);
    let go = place.path().join("go");
    let script = format!(
        "echo up; while [ ! -e {} ]; do sleep 0.02; done; exit 7",
        go.display()
    );
    let id = cluster.assign(1, &batch(&script));
    cluster.until(id, ClientStatus::Running).await;
    agent.kill();
    fs::write(&go, "").unwrap();
    wait_for("the task to end", LIMIT, async || {
        let tasks = place.path().join("client/tasks");
        let exit = tasks.join(id.to_string()).join("server/1/exit.json");
        exit.exists().then_some(())
    })
    .await;
    let agent = Process::start(&place, &gateway.address);
    let client = cluster.until(id, ClientStatus::Failed).await;
    let events = &client.task_states["server"].events;
    let end = events
        .iter()
        .find(|event| event.event_type == "Terminated")
        .unwrap();
    assert_eq!(end.details["exit_code"], "7");
    assert!(
        !events
            .iter()
            .any(|event| event.event_type == "Failed Restoring Task")
    );
    place.is_empty_but(&agent).await;
}

#[tokio::test]
async fn a_stop_that_came_while_the_agent_was_dead_is_carried_out() {
    let place = Place::new();
    let (cluster, gateway) = cluster().await;
    let agent = Process::start(&place, &gateway.address);
    let id = cluster.assign(1, &service(COUNTING));
    cluster.until(id, ClientStatus::Running).await;
    let pid = place.pid(id).await;
    agent.kill();
    cluster.stop(id);
    let agent = Process::start(&place, &gateway.address);
    cluster.until(id, ClientStatus::Complete).await;
    assert!(!is_alive(pid));
    place.is_empty_but(&agent).await;
}

#[tokio::test]
async fn an_agent_killed_again_and_again_never_runs_two_copies() {
    let place = Place::new();
    let (cluster, gateway) = cluster().await;
    // Each run records itself in a file of the allocation, and detects a second one.
    let script = "exec 9> $NOMAD_ALLOC_DIR/data/lock; flock -n 9 || echo twice; \
                  echo pid $$; while :; do sleep 0.01; done";
    let ids: Vec<_> = (1..=5)
        .map(|number| cluster.assign(number, &service(script)))
        .collect();
    for round in 0..12_u64 {
        let agent = Process::start(&place, &gateway.address);
        // At any moment of its start, from before the first process to after the last.
        tokio::time::sleep(std::time::Duration::from_millis(round * 37 % 200)).await;
        agent.kill();
    }
    let agent = Process::start(&place, &gateway.address);
    for id in &ids {
        cluster.until(*id, ClientStatus::Running).await;
        let said = place.said(*id, "pid ").await;
        assert!(!said.contains("twice"), "{said}");
        cluster.stop(*id);
        cluster.until(*id, ClientStatus::Complete).await;
    }
    place.is_empty_but(&agent).await;
}

#[tokio::test]
async fn an_agent_killed_again_and_again_while_tasks_end_leaves_nothing_of_them() {
    let place = Place::new();
    let (cluster, gateway) = cluster().await;
    let mut ids = Vec::new();
    let rounds = std::env::var("KAFILA_KILL_ROUNDS").ok();
    let rounds: u64 = rounds.and_then(|rounds| rounds.parse().ok()).unwrap_or(16);
    for round in 0..rounds {
        let agent = Process::start(&place, &gateway.address);
        cluster
            .until_fact("the node to register", |facts| {
                facts.registrations.last().map(|_| ())
            })
            .await;
        for number in 0..6 {
            let script = format!("sleep 0.0{}", (round + number) % 7);
            ids.push(cluster.assign(u128::from(round * 6 + number), &batch(&script)));
        }
        // Around the ends of some of them, at any load of the machine.
        let ended = || {
            let reported = cluster.facts().reported.clone();
            let ended = reported
                .values()
                .filter(|client| client.status.is_terminal());
            ended.count()
        };
        let before = ended();
        wait_for("something to end", LIMIT, async || {
            (ended() > before).then_some(())
        })
        .await;
        tokio::time::sleep(Duration::from_millis(round * 37 % 60)).await;
        agent.kill();
    }
    // Some ended allocations are collected, and the ends of some are unknown.
    for id in ids.iter().step_by(5) {
        cluster.collect(*id);
    }
    let agent = Process::start(&place, &gateway.address);
    for id in ids.iter().enumerate().filter(|(number, _)| number % 5 != 0) {
        cluster.until(*id.1, ClientStatus::Complete).await;
    }
    place.is_empty_but(&agent).await;
    wait_for("nothing to be kept of tasks", LIMIT, async || {
        place.kept_of_tasks().is_empty().then_some(())
    })
    .await;
    wait_for("directories to be those of known ones", LIMIT, async || {
        (place.alloc_dirs().len() <= ids.len() - ids.len().div_ceil(5)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn records_of_an_ended_task_are_removed_by_the_next_run() {
    let place = Place::new();
    let (cluster, gateway, node) = start(&place).await;
    let go = place.path().join("go");
    let script = format!("while [ ! -e {} ]; do sleep 0.02; done", go.display());
    let id = cluster.assign(1, &batch(&script));
    cluster.until(id, ClientStatus::Running).await;
    let kept = place.kept_of_tasks();
    assert_eq!(kept.len(), 1);
    // As if the agent died after it had stored the end, and before it had removed this.
    let saved: Vec<_> = ["intent.json", "state.json"]
        .into_iter()
        .map(|name| (name, fs::read(kept[0].join(name)).unwrap()))
        .collect();
    fs::write(&go, "").unwrap();
    cluster.until(id, ClientStatus::Complete).await;
    wait_for("nothing to be kept", LIMIT, async || {
        place.kept_of_tasks().is_empty().then_some(())
    })
    .await;
    node.stop().await;
    fs::create_dir_all(&kept[0]).unwrap();
    for (name, bytes) in saved {
        fs::write(kept[0].join(name), bytes).unwrap();
    }
    // And one without an attempt.
    let halfway = place
        .path()
        .join(format!("client/tasks/{}/web", cluster.alloc_id(9)));
    fs::create_dir_all(&halfway).unwrap();
    let node = Running::start(place.config(&[&gateway.address])).await;
    wait_for("nothing to be kept", LIMIT, async || {
        (fs::read_dir(place.path().join("client/tasks"))
            .unwrap()
            .count()
            == 0)
            .then_some(())
    })
    .await;
    assert!(place.path().join(format!("alloc/{id}")).exists());
    node.stop().await;
}

#[tokio::test]
async fn the_directory_of_an_unknown_allocation_is_removed_after_a_full_list() {
    let place = Place::new();
    let (cluster, gateway, node) = start(&place).await;
    let wanted = cluster.assign(1, &service(COUNTING));
    let unwanted = cluster.assign(2, &service(COUNTING));
    for id in [wanted, unwanted] {
        cluster.until(id, ClientStatus::Running).await;
    }
    node.stop().await;
    fs::remove_file(place.path().join("client/state.redb")).unwrap();
    cluster.collect(unwanted);
    // Not the directory of an allocation, so it stays.
    fs::create_dir(place.path().join("alloc/lost+found")).unwrap();
    let node = Running::start(place.config(&[&gateway.address])).await;
    let root = |id: AllocId| place.path().join(format!("alloc/{id}"));
    wait_for("the directory to go", LIMIT, async || {
        (!root(unwanted).exists()).then_some(())
    })
    .await;
    assert!(root(wanted).exists());
    assert!(place.path().join("alloc/lost+found").exists());
    counts_on(&place, wanted).await;
    cluster.stop(wanted);
    cluster.until(wanted, ClientStatus::Complete).await;
    place.is_empty().await;
    node.stop().await;
}

#[tokio::test]
async fn an_ending_agent_leaves_its_tasks_running() {
    let place = Place::new();
    let (cluster, gateway) = cluster().await;
    for signal in ["TERM", "INT"] {
        let agent = Process::start(&place, &gateway.address);
        let id = cluster.assign(u128::from(signal == "INT"), &service(COUNTING));
        cluster.until(id, ClientStatus::Running).await;
        let pid = place.pid(id).await;
        agent.signal(signal);
        assert_eq!(agent.ended().await, 0);
        assert!(is_alive(pid));
        counts_on(&place, id).await;
    }
    let agent = Process::start(&place, &gateway.address);
    for id in [0, 1].map(|number| cluster.alloc_id(number)) {
        cluster.stop(id);
        cluster.until(id, ClientStatus::Complete).await;
    }
    place.is_empty_but(&agent).await;
}

#[tokio::test]
async fn scenario_078_a_suspended_agent_goes_on_with_its_tasks() {
    let place = Place::new();
    let (cluster, gateway) = cluster().await;
    let agent = Process::start(&place, &gateway.address);
    let id = cluster.assign(1, &service(COUNTING));
    let before = cluster.until(id, ClientStatus::Running).await;
    let pid = place.pid(id).await;
    agent.signal("STOP");
    counts_on(&place, id).await;
    let beats = cluster.facts().heartbeats;
    // Longer than the pause between two heartbeats: none comes.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(cluster.facts().heartbeats <= beats + 1);
    agent.signal("CONT");
    cluster
        .until_fact("a heartbeat", |facts| {
            (facts.heartbeats > beats + 1).then_some(())
        })
        .await;
    assert!(is_alive(pid));
    counts_on(&place, id).await;
    assert_eq!(cluster.reported(id), before);
    cluster.stop(id);
    cluster.until(id, ClientStatus::Complete).await;
    place.is_empty_but(&agent).await;
}

#[tokio::test]
async fn an_agent_that_lost_its_state_recovers_running_tasks() {
    let place = Place::new();
    let (cluster, gateway, node) = start(&place).await;
    let id = cluster.assign(1, &service(COUNTING));
    cluster.until(id, ClientStatus::Running).await;
    let pid = place.pid(id).await;
    node.stop().await;
    fs::write(place.path().join("client/state.redb"), "broken").unwrap();
    cluster.facts().reported.clear();
    let node = Running::start(place.config(&[&gateway.address])).await;
    cluster.until(id, ClientStatus::Running).await;
    assert!(is_alive(pid));
    let said = place.output(id);
    assert_eq!(
        said.lines().filter(|line| line.starts_with("pid ")).count(),
        1,
        "{said}"
    );
    cluster.stop(id);
    cluster.until(id, ClientStatus::Complete).await;
    place.is_empty().await;
    node.stop().await;
}

/// Reports after the loss of the local state must not look late.
#[tokio::test]
async fn report_numbers_continue_with_and_without_the_local_state() {
    for (remembers, hides_numbers) in [(true, true), (false, false), (false, true)] {
        let place = Place::new();
        let (cluster, gateway, node) = start(&place).await;
        cluster.facts().hides_numbers = hides_numbers;
        let id = cluster.assign(1, &service(COUNTING));
        cluster.until(id, ClientStatus::Running).await;
        node.stop().await;
        let before = cluster.reported(id).report;
        assert!(before > 0);
        if !remembers {
            fs::write(place.path().join("client/state.redb"), "broken").unwrap();
        }
        let node = Running::start(place.config(&[&gateway.address])).await;
        cluster.stop(id);
        cluster.until(id, ClientStatus::Complete).await;
        assert!(cluster.reported(id).report > before);
        place.is_empty().await;
        node.stop().await;
    }
}

#[tokio::test]
async fn scenario_076_unwanted_tasks_are_removed_after_a_full_list() {
    let place = Place::new();
    let (cluster, gateway, node) = start(&place).await;
    let id = cluster.assign(1, &service(COUNTING));
    cluster.until(id, ClientStatus::Running).await;
    let pid = place.pid(id).await;
    node.stop().await;
    fs::remove_file(place.path().join("client/state.redb")).unwrap();
    cluster.collect(id);
    let address = gateway.socket_address();
    drop(gateway);
    let url = format!("http://{address}");
    let node = Running::start(place.config(&[&url])).await;
    counts_on(&place, id).await;
    assert!(is_alive(pid), "no server has said that it is not wanted");
    let _gateway = wait_for("the port to be free", LIMIT, async || {
        tokio::net::TcpListener::bind(address).await.ok()?;
        Some(Gateway::start_at(&cluster, address).await)
    })
    .await;
    place.is_empty().await;
    node.stop().await;
}

#[tokio::test]
async fn scenario_037_a_second_agent_in_the_same_directory_is_refused() {
    let place = Place::new();
    let (_cluster, gateway, node) = start(&place).await;
    let second = client_node::App::build(place.config(&[&gateway.address])).await;
    let error = second.err().unwrap().to_string();
    assert!(error.contains("another agent uses"), "{error}");
    node.stop().await;
}

#[tokio::test]
async fn scenario_038_a_directory_that_has_vanished_fails_the_allocation() {
    let place = Place::new();
    let (cluster, gateway, node) = start(&place).await;
    let id = cluster.assign(1, &service(COUNTING));
    cluster.until(id, ClientStatus::Running).await;
    let pid = place.pid(id).await;
    node.stop().await;
    fs::remove_dir_all(place.path().join(format!("alloc/{id}"))).unwrap();
    let node = Running::start(place.config(&[&gateway.address])).await;
    let client = cluster.until(id, ClientStatus::Failed).await;
    assert!(
        client.description.contains("vanished"),
        "{}",
        client.description
    );
    wait_for("the process to go", LIMIT, async || {
        (!is_alive(pid)).then_some(())
    })
    .await;
    place.is_empty().await;
    node.stop().await;
}

#[tokio::test]
async fn a_restart_of_the_agent_does_not_reset_the_restart_policy() {
    let place = Place::new();
    let (cluster, gateway, node) = start(&place).await;
    let mut job = service("echo run; read line < $NOMAD_ALLOC_DIR/data/go; exit 1");
    let restart = &mut job.task_groups[0].tasks[0].restart;
    restart.attempts = 1;
    let id = cluster.assign(1, &job);
    place.said(id, "run").await;
    // It fails once, without the file.
    cluster
        .until_fact("a restart", |facts| {
            let state = facts.reported.get(&id)?.task_states.get("server")?;
            (state.restarts == 1).then_some(())
        })
        .await;
    node.stop().await;
    let node = Running::start(place.config(&[&gateway.address])).await;
    let client = cluster.until(id, ClientStatus::Failed).await;
    assert_eq!(client.task_states["server"].restarts, 1);
    place.is_empty().await;
    node.stop().await;
}

#[tokio::test]
async fn the_seen_revision_survives_a_restart() {
    for is_killed in [false, true] {
        let place = Place::new();
        let (cluster, gateway) = cluster().await;
        let agent = Process::start(&place, &gateway.address);
        let id = cluster.assign(1, &service(COUNTING));
        cluster.until(id, ClientStatus::Running).await;
        let pid = place.pid(id).await;
        // The list is newer than the allocation, and older than what the node acts on next.
        let behind = AllocationsUpdate {
            revision: cluster.facts().revision + 1,
            full: true,
            ..AllocationsUpdate::default()
        };
        let mut later = Vec::new();
        for number in 2..4 {
            later.push(cluster.assign(number, &mock(serde_json::json!({"run_for": "1h"}))));
        }
        for other in &later {
            cluster.until(*other, ClientStatus::Running).await;
        }
        let seen = cluster.facts().revision;
        if is_killed {
            agent.kill();
        } else {
            agent.signal("TERM");
            assert_eq!(agent.ended().await, 0);
        }
        cluster.fall_behind(behind);
        let streams = cluster.facts().seen.len();
        let agent = Process::start(&place, &gateway.address);
        let told = cluster
            .until_fact("another stream", |facts| facts.seen.get(streams).copied())
            .await;
        assert_eq!(told, seen, "the gateway can wait until it knows as much");
        counts_on(&place, id).await;
        assert!(is_alive(pid), "{:#?}", cluster.reported(id));
        // The next update follows the old list, in the same stream.
        cluster.catch_up();
        let next = cluster.assign(5, &mock(serde_json::json!({"run_for": "1h"})));
        cluster.until(next, ClientStatus::Running).await;
        counts_on(&place, id).await;
        assert!(is_alive(pid), "{:#?}", cluster.reported(id));
        for other in later {
            assert_eq!(cluster.status(other), Some(ClientStatus::Running));
        }
        cluster.stop(id);
        let client = cluster.until(id, ClientStatus::Complete).await;
        assert_eq!(
            event_types(&client),
            [
                "Received",
                "Task Setup",
                "Started",
                "Killing",
                "Terminated",
                "Killed"
            ],
            "one run, and no stop was requested before"
        );
        place.is_empty_but(&agent).await;
    }
}

fn event_types(client: &model::AllocClient) -> Vec<String> {
    let events = &client.task_states["server"].events;
    events
        .iter()
        .map(|event| event.event_type.clone())
        .collect()
}

/// Replaces an allocation whose task ends slowly; data written meanwhile must move over. Returns the
/// replacement.
async fn replace(place: &Place, cluster: &Cluster, wait: impl AsyncFnOnce(AllocId)) -> AllocId {
    let go = place.path().join("go");
    let mut job = service(&format!(
        "trap 'while [ ! -e {} ]; do sleep 0.02; done; \
         echo shared > $NOMAD_ALLOC_DIR/data/words; echo own > $NOMAD_TASK_DIR/words; exit 0' INT; \
         echo up; while :; do sleep 0.02; done",
        go.display()
    ));
    job.task_groups[0].tasks[0].kill_timeout = Duration::from_secs(30);
    job.task_groups[0].ephemeral_disk.sticky = true;
    let old = cluster.assign(1, &job);
    place.said(old, "up\n").await;
    cluster.until(old, ClientStatus::Running).await;
    let mut job = service(
        "echo found $(cat $NOMAD_ALLOC_DIR/data/words $NOMAD_TASK_DIR/words); \
         echo ready; exec sleep 600",
    );
    job.version = 1;
    job.task_groups[0].ephemeral_disk.sticky = true;
    cluster.stop(old);
    let new = cluster.assign_as(2, &job, |alloc| alloc.previous_alloc = Some(old));
    cluster.until(new, ClientStatus::Pending).await;
    wait(new).await;
    assert_eq!(cluster.status(new), Some(ClientStatus::Pending));
    assert_eq!(cluster.status(old), Some(ClientStatus::Running));
    fs::write(&go, "").unwrap();
    cluster.until(old, ClientStatus::Complete).await;
    cluster.until(new, ClientStatus::Running).await;
    let said = place.said(new, "ready\n").await;
    assert_eq!(said, "found shared own\nready\n");
    new
}

#[tokio::test]
async fn a_replacement_waits_for_its_predecessor_and_takes_its_data() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let new = replace(&place, &cluster, async |_| {
        // A later assignment has started meanwhile.
        let marker = cluster.assign(3, &service("echo up; exec sleep 600"));
        cluster.until(marker, ClientStatus::Running).await;
        cluster.stop(marker);
        cluster.until(marker, ClientStatus::Complete).await;
    })
    .await;
    cluster.stop(new);
    cluster.until(new, ClientStatus::Complete).await;
    place.is_empty().await;
    node.stop().await;
}

#[tokio::test]
async fn a_waiting_replacement_keeps_waiting_after_a_restart() {
    let place = Place::new();
    let (cluster, gateway) = cluster().await;
    let agent = Process::start(&place, &gateway.address);
    let mut next_agent = None;
    let new = replace(&place, &cluster, async |_| {
        agent.kill();
        next_agent = Some(Process::start(&place, &gateway.address));
        let marker = cluster.assign(3, &service("echo up; exec sleep 600"));
        cluster.until(marker, ClientStatus::Running).await;
        cluster.stop(marker);
        cluster.until(marker, ClientStatus::Complete).await;
    })
    .await;
    cluster.stop(new);
    cluster.until(new, ClientStatus::Complete).await;
    place.is_empty_but(&next_agent.unwrap()).await;
}

#[tokio::test]
async fn a_stored_end_is_reported_after_a_restart() {
    let place = Place::new();
    let (cluster, gateway) = cluster().await;
    let agent = Process::start(&place, &gateway.address);
    let go = place.path().join("go");
    let script = format!(
        "while [ ! -e {} ]; do sleep 0.02; done; exit 7",
        go.display()
    );
    let id = cluster.assign(1, &batch(&script));
    cluster.until(id, ClientStatus::Running).await;
    cluster.facts().failing_reports = usize::MAX;
    fs::write(&go, "").unwrap();
    // An attempt is forgotten only once its end is durable.
    let kept = place.path().join(format!("client/tasks/{id}"));
    wait_for("the end to be kept", LIMIT, async || {
        (!kept.exists()).then_some(())
    })
    .await;
    agent.kill();
    assert_eq!(cluster.status(id), Some(ClientStatus::Running));
    cluster.facts().failing_reports = 0;
    let agent = Process::start(&place, &gateway.address);
    let client = cluster.until(id, ClientStatus::Failed).await;
    assert!(event_types(&client).contains(&"Terminated".to_owned()));
    place.is_empty_but(&agent).await;
}

#[tokio::test]
async fn a_node_takes_work_after_the_store_was_restored_from_a_backup() {
    for is_restarted in [false, true] {
        let place = Place::new();
        let (cluster, gateway) = cluster().await;
        cluster.facts().store_id = "one".to_owned();
        let agent = Process::start(&place, &gateway.address);
        let kept = cluster.assign(1, &service(COUNTING));
        cluster.until(kept, ClientStatus::Running).await;
        let backup = cluster.facts().revision;
        for _ in 0..20 {
            cluster.edit(kept, |_| {});
        }
        let forgotten = cluster.assign(2, &service(COUNTING));
        cluster.until(forgotten, ClientStatus::Running).await;
        let pids = [place.pid(kept).await, place.pid(forgotten).await];
        let mut agent = Some(agent);
        if is_restarted {
            agent.take().unwrap().kill();
        }
        cluster.go_back(backup, "two", forgotten);
        let agent = agent.unwrap_or_else(|| Process::start(&place, &gateway.address));
        let new = cluster.assign(3, &service(COUNTING));
        cluster.until(new, ClientStatus::Running).await;
        // They have lost that as well.
        cluster.until(kept, ClientStatus::Running).await;
        assert!(is_alive(pids[0]));
        wait_for("unwanted tasks to be removed", LIMIT, async || {
            (!is_alive(pids[1])).then_some(())
        })
        .await;
        counts_on(&place, kept).await;
        for id in [kept, new] {
            cluster.stop(id);
            cluster.until(id, ClientStatus::Complete).await;
        }
        place.is_empty_but(&agent).await;
    }
}

#[tokio::test]
async fn a_change_in_another_store_requests_a_full_list() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    cluster.facts().store_id = "one".to_owned();
    let id = cluster.assign(1, &mock(serde_json::json!({"run_for": "1h"})));
    cluster.until(id, ClientStatus::Running).await;
    let streams = cluster.facts().seen.len();
    cluster.facts().store_id = "two".to_owned();
    cluster.send(AllocationsUpdate {
        revision: 1,
        store_id: "two".to_owned(),
        removed_alloc_ids: vec![id.to_string()],
        ..AllocationsUpdate::default()
    });
    cluster
        .until_fact("another stream", |facts| facts.seen.get(streams).copied())
        .await;
    assert_eq!(cluster.status(id), Some(ClientStatus::Running));
    node.stop().await;
}

#[tokio::test]
async fn a_stop_is_carried_out_after_a_restart_even_if_the_job_was_purged() {
    let place = Place::new();
    let (cluster, gateway, node) = start(&place).await;
    let id = cluster.assign(1, &service(COUNTING));
    cluster.until(id, ClientStatus::Running).await;
    let pid = place.pid(id).await;
    node.stop().await;
    cluster.purge_jobs();
    cluster.stop(id);
    let node = Running::start(place.config(&[&gateway.address])).await;
    cluster.until(id, ClientStatus::Complete).await;
    assert!(!is_alive(pid));
    place.is_empty().await;
    node.stop().await;
}
