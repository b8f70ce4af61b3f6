//! Allocations with networks of their own, on a machine that is a network namespace of the test.
//!
//! They need root, nftables, iproute2 and the CNI plugins. Without them they are skipped, unless
//! `KAFILA_REQUIRE_NETWORKS` is set.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use alloc_network::{NetworkConfig, Networks, Settings};
use model::job::{Dns, Network, Port};
use model::{AllocId, AllocatedPort, ClientStatus, Job, NetworkStatus};
use nix::sched::{CloneFlags, setns, unshare};
use test_kit::wait_for;

use crate::containers::{self, Containers, docker, has_engine};
use crate::gateway::{Cluster, Gateway, LIMIT};
use crate::node::{Place, Process, service, stored};

const HOST_PORT: u16 = 20_080;

/// Runs a test on a machine of its own; skips it where that cannot be made.
fn on_a_machine(test: impl Future<Output = ()>) {
    let problem = {
        let directory = tempfile::tempdir().unwrap();
        let networks = Networks::new(Settings {
            config: NetworkConfig::default(),
            state_dir: directory.path().to_owned(),
            boot_id: String::new(),
        });
        networks.offer().modes["bridge"].clone()
    };
    if let Some(problem) = problem {
        let is_required = std::env::var("KAFILA_REQUIRE_NETWORKS").is_ok();
        assert!(!is_required, "{problem}");
        eprintln!("skipped: {problem}");
        return;
    }
    // Threads and processes that start later inherit it.
    unshare(CloneFlags::CLONE_NEWNET).unwrap();
    run("ip", "link set lo up");
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(test);
}

fn run(program: &str, args: &str) -> String {
    let output = Command::new(program)
        .args(args.split(' '))
        .output()
        .unwrap();
    assert!(output.status.success(), "{program} {args}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A node in a process of its own.
fn start_node(place: &Place, gateway: &str) -> Process {
    let run_dir = run_dir(place).display().to_string();
    let settings = [
        ("NETWORK__RUN_DIR", run_dir.as_str()),
        ("HOST_IP", "127.0.0.1"),
    ];
    Process::start_with(place, gateway, &settings)
}

fn run_dir(place: &Place) -> PathBuf {
    place.path().join("run")
}

fn pin(place: &Place, id: AllocId) -> PathBuf {
    run_dir(place).join("netns").join(id.to_string())
}

/// Returns what is left of networks: pins, records, elements of nftables, interfaces, leases.
fn left(place: &Place) -> String {
    let list = |path: &Path| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names
            .filter(|name| !name.starts_with("last_reserved") && name != "lock")
            .collect::<Vec<_>>()
    };
    let mut all = list(&run_dir(place).join("netns"));
    all.extend(list(&run_dir(place).join("leases/kafila")));
    all.extend(list(&place.path().join("client/networks")));
    let rules = run("nft", "list ruleset");
    all.extend(
        rules
            .lines()
            .filter(|line| line.contains("comment"))
            .map(str::to_owned),
    );
    let interfaces = run("ip", "-o link show");
    all.extend(
        interfaces
            .lines()
            .filter(|line| line.contains("veth"))
            .map(str::to_owned),
    );
    all.join("; ")
}

async fn nothing_is_left(place: &Place) {
    let found = tokio::time::timeout(LIMIT, async {
        while !left(place).is_empty() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    assert!(found.await.is_ok(), "{}", left(place));
}

/// Puts the job's group into a bridge, with a port.
fn bridged(mut job: Job) -> Job {
    job.task_groups[0].networks = vec![Network {
        mode: "bridge".to_owned(),
        ports: vec![Port {
            label: "http".to_owned(),
            to: Some(80),
            host_network: "default".to_owned(),
            ..Port::default()
        }],
        hostname: "web-${NOMAD_ALLOC_INDEX}".to_owned(),
        dns: Some(Dns {
            servers: vec!["9.9.9.9".to_owned()],
            ..Dns::default()
        }),
        ..Network::default()
    }];
    stored(job)
}

fn assign(cluster: &Cluster, number: u128, host_port: u16, job: &Job) -> AllocId {
    cluster.assign_as(number, job, |alloc| {
        alloc.resources.ports = vec![AllocatedPort {
            label: "http".to_owned(),
            value: host_port,
            to: 80,
            host_ip: "127.0.0.1".to_owned(),
            ..AllocatedPort::default()
        }];
    })
}

/// Serves at port 80 of the allocation, as a task would.
fn serve(place: &Place, id: AllocId) {
    let file = File::open(pin(place, id)).unwrap();
    let listening = std::thread::spawn(move || {
        setns(file, CloneFlags::CLONE_NEWNET).unwrap();
        let listener = TcpListener::bind("0.0.0.0:80").unwrap();
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let _ = connection.unwrap().write_all(b"served");
            }
        });
    });
    listening.join().unwrap();
}

fn call(port: u16) -> String {
    let address = format!("127.0.0.1:{port}").parse().unwrap();
    let connected = TcpStream::connect_timeout(&address, Duration::from_secs(3));
    let mut text = String::new();
    connected.unwrap().read_to_string(&mut text).unwrap();
    text
}

async fn status(cluster: &Cluster, id: AllocId) -> NetworkStatus {
    let client = cluster.until(id, ClientStatus::Running).await;
    *client.network.unwrap()
}

#[test]
fn a_group_in_a_bridge_has_its_own_network_which_outlives_the_agent() {
    on_a_machine(async {
        let place = Place::new();
        let cluster = Cluster::new();
        let gateway = Gateway::start(&cluster).await;
        let node = start_node(&place, &gateway.address);
        let record = cluster
            .until_fact("a registration", |facts| {
                facts.registrations.last().cloned()
            })
            .await;
        assert_eq!(record.attributes["network.bridge"], "true");
        let script = "echo port $NOMAD_PORT_http at $NOMAD_ADDR_http and $NOMAD_ALLOC_ADDR_http; \
                      cat /etc/hosts /etc/resolv.conf; ip -4 -o addr show eth0; echo end; sleep 600";
        let id = assign(&cluster, 1, HOST_PORT, &bridged(service(script)));
        let network = status(&cluster, id).await;
        let said = place.said(id, "end").await;
        let address = &network.address;
        for want in [
            format!("port 80 at 127.0.0.1:{HOST_PORT} and {address}:80"),
            format!("{address}\tweb-0"),
            "nameserver 9.9.9.9".to_owned(),
            format!("inet {address}/20"),
        ] {
            assert!(said.contains(&want), "{want}: {said}");
        }
        serve(&place, id);
        assert_eq!(call(HOST_PORT), "served");

        node.kill();
        assert_eq!(call(HOST_PORT), "served", "without an agent");
        let streams = cluster.facts().seen.len();
        let node = start_node(&place, &gateway.address);
        cluster
            .until_fact("another stream", |facts| facts.seen.get(streams).copied())
            .await;
        assert_eq!(status(&cluster, id).await, network);
        assert_eq!(call(HOST_PORT), "served");
        let client = cluster.until(id, ClientStatus::Running).await;
        assert_eq!(client.task_states["server"].restarts, 0);

        cluster.stop(id);
        cluster.until(id, ClientStatus::Complete).await;
        nothing_is_left(&place).await;
        drop(node);
    });
}

/// The network is gone with the machine's memory, but the data directory is as before.
#[test]
fn scenario_034_a_reboot_leads_to_a_new_network() {
    on_a_machine(async {
        let place = Place::new();
        let cluster = Cluster::new();
        let gateway = Gateway::start(&cluster).await;
        let node = start_node(&place, &gateway.address);
        cluster
            .until_fact("a registration", |facts| {
                facts.registrations.last().map(|_| ())
            })
            .await;
        let id = assign(
            &cluster,
            1,
            HOST_PORT,
            &bridged(service("echo begun; sleep 600")),
        );
        status(&cluster, id).await;
        node.kill();
        // The namespace, the bridge, the rules and the leases.
        nix::mount::umount2(&pin(&place, id), nix::mount::MntFlags::MNT_DETACH).unwrap();
        std::fs::remove_dir_all(run_dir(&place)).unwrap();
        run("nft", "flush ruleset");
        run("ip", "link del kafila");
        for pid in place.processes() {
            crate::node::kill(pid, "KILL");
        }
        let node = start_node(&place, &gateway.address);
        wait_for("the network to be set up", LIMIT, async || {
            pin(&place, id).exists().then_some(())
        })
        .await;
        wait_for("the port to be mapped", LIMIT, async || {
            let rules = run("nft", "list ruleset");
            (rules.matches(&format!("tcp . {HOST_PORT}")).count() == 1).then_some(())
        })
        .await;
        serve(&place, id);
        assert_eq!(call(HOST_PORT), "served");
        cluster.stop(id);
        nothing_is_left(&place).await;
        drop(node);
    });
}

#[test]
fn kills_of_the_agent_at_any_moment_leave_nothing() {
    on_a_machine(async {
        let place = Place::new();
        let cluster = Cluster::new();
        let gateway = Gateway::start(&cluster).await;
        let mut node = start_node(&place, &gateway.address);
        cluster
            .until_fact("a registration", |facts| {
                facts.registrations.last().map(|_| ())
            })
            .await;
        let job = bridged(service("sleep 600"));
        let mut ids = Vec::new();
        for round in 0..8_u16 {
            ids.push(assign(&cluster, round.into(), HOST_PORT + round, &job));
            if round % 2 == 1 {
                cluster.stop(ids[usize::from(round) - 1]);
            }
            // A set-up takes some hundred milliseconds.
            tokio::time::sleep(Duration::from_millis(u64::from(round) * 60)).await;
            node.kill();
            node = start_node(&place, &gateway.address);
        }
        for id in ids.iter().skip(1).step_by(2) {
            status(&cluster, *id).await;
        }
        for id in ids {
            cluster.stop(id);
        }
        nothing_is_left(&place).await;
        drop(node);
        place.is_empty().await;
    });
}

#[test]
fn containers_and_processes_of_a_group_share_its_network() {
    if !has_engine() {
        return;
    }
    containers::import_image();
    on_a_machine(async {
        let place = Place::new();
        let cluster = Cluster::new();
        let gateway = Gateway::start(&cluster).await;
        let node = start_node(&place, &gateway.address);
        let record = cluster
            .until_fact("a registration", |facts| {
                facts.registrations.last().cloned()
            })
            .await;
        let made = Containers(record.id.to_string());
        let show = "while read line; do echo $line; done < $file;";
        let script = format!(
            "for file in /etc/hosts /etc/resolv.conf /proc/net/dev /etc/hostname; do {show} done; echo at \
             $NOMAD_ALLOC_ADDR_http; echo end; sleep 600"
        );
        let mut job = containers::container(&script);
        let mut beside = service("ip -4 -o addr show eth0; echo end; sleep 600");
        let mut process = beside.task_groups[0].tasks.remove(0);
        process.name = "beside".to_owned();
        job.task_groups[0].tasks.push(process);
        let task = &mut job.task_groups[0].tasks[0];
        task.config
            .insert("extra_hosts".to_owned(), serde_json::json!(["db:10.0.0.5"]));
        task.kill_timeout = Duration::from_secs(1);
        let id = assign(&cluster, 1, HOST_PORT, &bridged(job));
        let network = status(&cluster, id).await;
        let said = place.said(id, "end").await;
        let address = &network.address;
        for want in [
            format!("{address} web-0"),
            "10.0.0.5 db".to_owned(),
            "nameserver 9.9.9.9".to_owned(),
            "eth0:".to_owned(),
            "\nweb-0\n".to_owned(),
            format!("at {address}:80"),
        ] {
            assert!(said.contains(&want), "{want}: {said}");
        }
        let output = place
            .path()
            .join(format!("alloc/{id}/alloc/logs/beside.stdout.0"));
        let beside = wait_for("the process", LIMIT, async || {
            let text = std::fs::read_to_string(&output).unwrap_or_default();
            text.contains("end").then_some(text)
        })
        .await;
        assert!(beside.contains(&format!("inet {address}/20")), "{beside}");
        serve(&place, id);
        assert_eq!(call(HOST_PORT), "served");
        let pause = format!("kafila_init_{id}");
        assert!(made.names().contains(&pause), "{}", made.names());

        node.kill();
        let streams = cluster.facts().seen.len();
        let node = start_node(&place, &gateway.address);
        cluster
            .until_fact("another stream", |facts| facts.seen.get(streams).copied())
            .await;
        assert_eq!(status(&cluster, id).await, network);
        assert_eq!(call(HOST_PORT), "served");

        // Without the pause container the allocation's next start makes another.
        docker(&["kill", &pause]);
        docker(&["kill", &format!("server-{id}")]);
        let restarted = wait_for("a restart", LIMIT, async || {
            let client = cluster.reported(id);
            (client.task_states["server"].restarts == 1
                && client.status == ClientStatus::Running
                && made.names().contains(&format!("server-{id}")))
            .then_some(client)
        })
        .await;
        assert!(restarted.network.is_some());

        cluster.stop(id);
        cluster.until(id, ClientStatus::Complete).await;
        nothing_is_left(&place).await;
        wait_for("no container", LIMIT, async || {
            made.names().is_empty().then_some(())
        })
        .await;
        drop(node);
    });
}
