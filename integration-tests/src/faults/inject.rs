//! Fault injection into the cluster, and its reversal.

use std::time::Duration;

use anyhow::Result;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use state::Snapshot;

use super::cluster::Cluster;
use super::full_store::FullStore;
use super::hosts;
use super::schedule::{Kind, Planned};
use super::switch::Rules;

/// Delay of packets.
const DELAY: Duration = Duration::from_millis(200);

/// The reversal of a fault.
#[derive(Debug)]
pub enum Undo {
    Start(Vec<String>),
    Resume(String),
    Connect,
    FreeDisk(String),
    FreeStore(Box<FullStore>),
}

/// Two groups of hosts that are cut off from each other.
struct Groups {
    left: Vec<String>,
    right: Vec<String>,
}

/// Injects a fault. Returns its description and its reversal.
///
/// # Errors
/// The process to pause does not run, or a disk cannot be filled.
pub async fn begin(
    cluster: &mut Cluster,
    fault: &Planned,
    snapshot: &Snapshot,
) -> Result<(String, Undo)> {
    let mut rng = StdRng::seed_from_u64(fault.draw);
    Ok(match fault.kind {
        Kind::Kill => {
            let victim = process(cluster, snapshot, &mut rng);
            cluster.kill(&victim.host);
            (victim.text(), Undo::Start(vec![victim.host]))
        }
        Kind::Pause => {
            let victim = process(cluster, snapshot, &mut rng);
            cluster.pause(&victim.host)?;
            (victim.text(), Undo::Resume(victim.host))
        }
        Kind::Partition => {
            let Groups { left, right } = groups(cluster, snapshot, &mut rng).await;
            let mut rules = Rules::default();
            rules.cut(
                &cluster.network.numbers(&left),
                &cluster.network.numbers(&right),
            );
            cluster.network.set(rules);
            (
                format!("{} | {}", describe(&left), describe(&right)),
                Undo::Connect,
            )
        }
        Kind::MemberLost => {
            let victim = member(cluster, &mut rng).await;
            cluster.kill(&victim.host);
            (victim.text(), Undo::Start(vec![victim.host]))
        }
        Kind::MemberPaused => {
            let victim = member(cluster, &mut rng).await;
            cluster.pause(&victim.host)?;
            (victim.text(), Undo::Resume(victim.host))
        }
        Kind::MajorityLost => {
            let mut victims = hosts::members();
            victims.shuffle(&mut rng);
            victims.truncate(hosts::MEMBERS / 2 + 1);
            for victim in &victims {
                cluster.kill(victim);
            }
            (describe(&victims), Undo::Start(victims))
        }
        Kind::DiskFull => {
            let victim = member(cluster, &mut rng).await;
            cluster.fill_disk(&victim.host)?;
            (victim.text(), Undo::FreeDisk(victim.host))
        }
        Kind::StoreFull => {
            let full = FullStore::start(&cluster.stores()).await?;
            ("every member".to_owned(), Undo::FreeStore(Box::new(full)))
        }
        Kind::Delay => {
            let slow = senders(&mut rng);
            let mut rules = Rules::default();
            rules.delay(&cluster.network.numbers(&slow), DELAY);
            cluster.network.set(rules);
            (format!("what {} send", describe(&slow)), Undo::Connect)
        }
    })
}

/// Reverses a fault. Returns an addition to its description, if there is one.
///
/// # Errors
/// A process cannot be started again, or etcd's alarm cannot be disarmed.
pub async fn end(cluster: &mut Cluster, undo: Undo) -> Result<Option<String>> {
    match undo {
        Undo::Start(hosts) => {
            for host in hosts {
                cluster.start(&host)?;
            }
        }
        Undo::Resume(host) => cluster.resume(&host)?,
        Undo::Connect => cluster.network.set(Rules::default()),
        Undo::FreeDisk(member) => {
            cluster.free_disk(&member)?;
            if cluster.is_running(&member) {
                return Ok(Some("etcd went on".to_owned()));
            }
            // etcd ends when it cannot write; an operator restarts it when there is room again.
            cluster.start(&member)?;
            return Ok(Some("etcd had ended".to_owned()));
        }
        Undo::FreeStore(full) => full.end().await?,
    }
    Ok(None)
}

struct Victim {
    host: String,
    leads: bool,
}

impl Victim {
    fn text(&self) -> String {
        let leads = if self.leads { " (the leader)" } else { "" };
        format!("{}{leads}", self.host)
    }
}

/// Returns the hosts of the leaders in `snapshot`.
fn leaders(cluster: &Cluster, snapshot: &Snapshot) -> Vec<String> {
    let addresses = snapshot.leaders().map(|(_, leader)| &leader.value.address);
    let hosts = addresses.filter_map(|address| cluster.network.host_at(address));
    hosts.map(ToOwned::to_owned).collect()
}

/// Draws a process other than etcd's: half of the time a leader.
fn process(cluster: &Cluster, snapshot: &Snapshot, rng: &mut StdRng) -> Victim {
    let leaders = leaders(cluster, snapshot);
    let mut any = hosts::services();
    any.extend(hosts::nodes());
    let among = if rng.random() && !leaders.is_empty() {
        &leaders
    } else {
        &any
    };
    let host = among.choose(rng).cloned().unwrap_or_default();
    let leads = leaders.contains(&host);
    Victim { host, leads }
}

/// Draws a member of etcd: half of the time the leader.
async fn member(cluster: &Cluster, rng: &mut StdRng) -> Victim {
    let leader = cluster.etcd_leader().await;
    let any = hosts::members().choose(rng).cloned().unwrap_or_default();
    let host = leader.clone().filter(|_| rng.random()).unwrap_or(any);
    let leads = leader.as_ref() == Some(&host);
    Victim { host, leads }
}

/// Draws two groups.
async fn groups(cluster: &Cluster, snapshot: &Snapshot, rng: &mut StdRng) -> Groups {
    let everybody = || -> Vec<String> {
        let all = hosts::all().into_iter();
        all.filter(|host| host != hosts::USER).collect()
    };
    let without = |all: Vec<String>, some: &[String]| -> Vec<String> {
        all.into_iter()
            .filter(|host| !some.contains(host))
            .collect()
    };
    let one = |victim: &str| vec![victim.to_owned()];
    match rng.random_range(0..8) {
        // One of etcd's members alone, with or without the services.
        0 => {
            let left = one(&member(cluster, rng).await.host);
            let right = without(everybody(), &left);
            Groups { left, right }
        }
        1 => {
            let left = one(&member(cluster, rng).await.host);
            let right = without(hosts::members(), &left);
            Groups { left, right }
        }
        2 => {
            let left = one(&member(cluster, rng).await.host);
            let right = hosts::services();
            Groups { left, right }
        }
        // A service's process alone, or without etcd.
        3 => {
            let left = one(&process(cluster, snapshot, rng).host);
            let right = without(everybody(), &left);
            Groups { left, right }
        }
        4 => {
            let leaders = leaders(cluster, snapshot);
            let any = hosts::services();
            let among = if leaders.is_empty() { &any } else { &leaders };
            let left = one(among.choose(rng).map_or("", String::as_str));
            let right = hosts::members();
            Groups { left, right }
        }
        // Two services from each other.
        5 => {
            let mut kinds = crate::suite::SERVICES;
            kinds.shuffle(rng);
            let (left, right) = (hosts::twins(kinds[0]), hosts::twins(kinds[1]));
            Groups { left, right }
        }
        // A gateway and the nodes.
        6 => {
            let twins = hosts::twins("api-gateway");
            let left = one(twins.choose(rng).map_or("", String::as_str));
            let right = hosts::nodes();
            Groups { left, right }
        }
        // Two halves, each with one of every service, so that one half can make progress.
        _ => {
            let mut left = hosts::members();
            left.extend(hosts::nodes());
            left.shuffle(rng);
            let mut right = left.split_off(left.len() / 2);
            for service in crate::suite::SERVICES {
                let mut twins = hosts::twins(service);
                twins.shuffle(rng);
                right.extend(twins.pop());
                left.extend(twins);
            }
            Groups { left, right }
        }
    }
}

/// Draws the hosts whose packets are delayed.
fn senders(rng: &mut StdRng) -> Vec<String> {
    match rng.random_range(0..4) {
        0 => hosts::members(),
        1 => hosts::members().choose(rng).cloned().into_iter().collect(),
        2 => hosts::services(),
        _ => hosts::all()
            .into_iter()
            .filter(|host| host != hosts::USER)
            .collect(),
    }
}

/// Describes hosts by name, or by numbers if they are many.
fn describe(hosts: &[String]) -> String {
    if hosts.len() <= 4 {
        return hosts.join(", ");
    }
    let all = hosts::all().len() - 1;
    let count = |wanted: &[String]| hosts.iter().filter(|host| wanted.contains(host)).count();
    let (members, nodes) = (count(&hosts::members()), count(&hosts::nodes()));
    match hosts.len() {
        length if length == all => "all hosts".to_owned(),
        length if length + 1 == all => "all other hosts".to_owned(),
        length => format!(
            "{members} etcd members, {} services, {nodes} nodes",
            length - members - nodes
        ),
    }
}
