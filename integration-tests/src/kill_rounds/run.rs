//! A run: its engine, its suite of services with one node, its rounds.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context, Result};

use super::engine::Engine;
use super::jobs::{STARTS, TWICE};
use super::own_machine;
use super::report::Report;
use super::rounds::{AGENT, Run};
use super::schedule::Victim;
use super::traces::Places;
use crate::suite::{self, Suite};

/// Settings of a run.
#[derive(Clone, Debug)]
pub struct Options {
    pub seed: u64,
    pub rounds: usize,
    /// Empty: all.
    pub only: Vec<Victim>,
    /// The engine's containers outlive its process.
    pub is_live_restore: bool,
}

/// Makes a run in a directory of its own, and prints its figures.
///
/// # Errors
/// What a check found, and the round.
pub async fn run(directory: &Path, options: &Options) -> Result<()> {
    let groups = own_machine::groups_of(directory);
    let (node_group, engine_group) = (&groups[0], &groups[1]);
    let engine_dir = directory.join("engine");
    let engine = Engine::start(&engine_dir, engine_group, options.is_live_restore).await?;
    let locks = directory.join("locks");
    fs::create_dir(&locks)?;
    // Tasks are of several users.
    fs::set_permissions(&locks, fs::Permissions::from_mode(0o777))?;
    for name in [TWICE, STARTS] {
        fs::write(locks.join(name), "")?;
        fs::set_permissions(locks.join(name), fs::Permissions::from_mode(0o666))?;
    }
    let run_dir = directory.join("run");
    let node_config = node_config(&engine, &locks, node_group, &run_dir);
    let suite = Suite::start(suite::Options {
        node_config: Some(node_config),
        ..suite::Options::default()
    });
    let suite = suite.await?;
    let places = Places {
        node: suite.data_dir(AGENT),
        run_dir,
        node_group: node_group.clone(),
        engine_group: engine_group.clone(),
    };
    let mut run = Run {
        api: suite.api()?,
        suite,
        engine,
        locks,
        places,
        report: Report::new(options.seed),
    };
    let played = run.play(options.seed, options.rounds, &options.only).await;
    println!("\n{}", run.report);
    let logs = || format!("seed {}\n{}", options.seed, run.suite.log_tails());
    played.with_context(logs)?;
    run.suite.stop().await?;
    run.engine.stop().await
}

fn node_config(engine: &Engine, locks: &Path, node_group: &str, run_dir: &Path) -> String {
    format!(
        r#"host_ip = "127.0.0.1"
fingerprint_interval = "2s"
cpu_total_compute = 8000
memory_total_mb = 4000
disk_total_mb = 20000

[drivers]
cgroup_parent = "{node_group}"

[drivers.exec]
without_limits = true

[drivers.docker]
socket = "{}"
dangling_grace = "10s"

[drivers.podman]
enabled = false

[host_volumes.locks]
path = "{}"

[network]
run_dir = "{}"
"#,
        engine.socket().display(),
        locks.display(),
        run_dir.display()
    )
}
