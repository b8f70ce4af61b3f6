//! Offers of a node: host networks, reserved ports and host volumes.

use client_node::config::{HostNetworkConfig, HostVolumeConfig};
use client_node::{App, Config};
use model::ClientStatus;
use model::job::{VolumeMount, VolumeRequest, VolumeType};

use crate::gateway::{Cluster, Gateway};
use crate::node::{Place, Running, batch};

/// Returns a batch job whose group has a volume.
fn with_volume(script: &str) -> model::Job {
    let mut job = batch(script);
    let request = VolumeRequest {
        volume_type: VolumeType::Host,
        source: "disk".to_owned(),
        read_only: false,
        sticky: false,
        per_alloc: false,
        access_mode: None,
        attachment_mode: None,
        mount_options: Default::default(),
    };
    let group = &mut job.task_groups[0];
    group.volumes.insert("data".to_owned(), request);
    job
}

fn mount() -> VolumeMount {
    VolumeMount {
        volume: "data".to_owned(),
        destination: "/data".to_owned(),
        read_only: false,
    }
}

fn offering(mut config: Config, place: &Place) -> Config {
    let path = place.path().join("disk");
    std::fs::create_dir_all(&path).unwrap();
    let volume = HostVolumeConfig {
        path,
        read_only: false,
    };
    config.host_volumes.insert("disk".to_owned(), volume);
    config
}

#[tokio::test]
async fn a_node_registers_what_its_operator_offers() {
    let place = Place::new();
    let cluster = Cluster::new();
    let gateway = Gateway::start(&cluster).await;
    let mut config = offering(place.config(&[&gateway.address]), &place);
    let network = HostNetworkConfig {
        interface: Some("lo".to_owned()),
        reserved_ports: "8000-8001".to_owned(),
        ..HostNetworkConfig::default()
    };
    config.host_networks.insert("inside".to_owned(), network);
    config.reserved.reserved_ports = "22".to_owned();
    let node = Running::start(config).await;
    let told = cluster
        .until_fact("a registration", |facts| {
            facts.registrations.first().cloned()
        })
        .await;
    assert_eq!(told.reserved_ports, [22]);
    let inside = &told.host_networks["inside"];
    assert!(inside.addresses.contains(&"127.0.0.1".to_owned()));
    assert_eq!(inside.reserved_ports, [8_000, 8_001]);
    let path = place.path().join("disk");
    assert_eq!(told.host_volumes["disk"].path, path.display().to_string());
    node.stop().await;
}

#[tokio::test]
async fn a_task_finds_its_volume_and_raw_exec_mounts_none() {
    let place = Place::new();
    let cluster = Cluster::new();
    let gateway = Gateway::start(&cluster).await;
    let node = Running::start(offering(place.config(&[&gateway.address]), &place)).await;
    let writes = with_volume("echo done > $KAFILA_VOLUME_data/file");
    let id = cluster.assign(1, &writes);
    cluster.until(id, ClientStatus::Complete).await;
    let file = place.path().join("disk/file");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "done\n");
    // Only drivers with mounts can mount.
    let mut mounts = with_volume("true");
    mounts.task_groups[0].tasks[0].volume_mounts.push(mount());
    let told = message(&cluster, 2, &mounts).await;
    let want = "task driver \"raw_exec\" does not support mounts of volumes";
    assert!(
        told.contains(want) && told.contains("KAFILA_VOLUME_"),
        "{told}"
    );
    let mut simulated = mounts.clone();
    let task = &mut simulated.task_groups[0].tasks[0];
    (task.driver, task.config) = ("mock_driver".to_owned(), Default::default());
    let id = cluster.assign(3, &simulated);
    cluster.until(id, ClientStatus::Complete).await;
    // The node's configuration may have changed since the job was placed.
    let group = &mut simulated.task_groups[0];
    group.volumes.get_mut("data").unwrap().source = "gone".to_owned();
    let told = message(&cluster, 4, &simulated).await;
    assert!(
        told.contains("this node has no host volume \"gone\""),
        "{told}"
    );
    place.is_empty().await;
    node.stop().await;
}

/// Returns the event messages of a failing allocation.
async fn message(cluster: &Cluster, number: u128, job: &model::Job) -> String {
    let id = cluster.assign(number, job);
    let client = cluster.until(id, ClientStatus::Failed).await;
    let events = &client.task_states["server"].events;
    let said = events.iter().map(|event| event.message.clone());
    said.collect::<Vec<_>>().join("; ")
}

#[tokio::test]
async fn a_missing_volume_keeps_the_agent_from_starting() {
    let place = Place::new();
    let mut config = place.config(&["http://127.0.0.1:9"]);
    let volume = HostVolumeConfig {
        path: place.path().join("nothing"),
        read_only: false,
    };
    config.host_volumes.insert("disk".to_owned(), volume);
    let Err(error) = App::build(config).await else {
        panic!("it starts without its volume")
    };
    let told = error.to_string();
    assert!(told.starts_with("`host_volumes.disk.path`: "), "{told}");
}
