//! What jobs may leave on the run's machine.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::jobs::MARK;
use super::{groups, machine};

/// Directories of a run in which jobs leave traces.
#[derive(Clone, Debug)]
pub struct Places {
    /// The node's `data_dir`.
    pub node: PathBuf,
    /// The node's `network.run_dir`.
    pub run_dir: PathBuf,
    /// Parents of control groups, below each hierarchy: of the node's tasks, and of the engine's containers.
    pub node_group: String,
    pub engine_group: String,
}

/// Lists traces of jobs on the machine, apart from containers and the engine's own: processes, mounts, interfaces, rules, leases, control
/// groups, records of drivers.
///
/// # Errors
/// A program cannot be started.
pub fn traces(places: &Places) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let all = machine::processes();
    let of_jobs = all
        .iter()
        .filter(|it| it.command.contains(MARK) || it.command.starts_with("sleep "));
    let pauses = all.iter().filter(|it| it.command.starts_with("/pause "));
    let of_jobs = of_jobs.chain(machine::supervisors(&all)).chain(pauses);
    let own = std::process::id().cast_signed();
    let of_jobs = of_jobs.filter(|it| it.pid != own && !it.command.contains("kill-rounds --"));
    found.extend(of_jobs.map(|it| format!("process {} {}", it.pid, it.command)));
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    let below = |point: &&str| {
        let point = Path::new(point);
        point.starts_with(&places.node) || point.starts_with(&places.run_dir)
    };
    found.extend(points.filter(below).map(|point| format!("mount {point}")));
    let interfaces = run("ip", &["-o", "link", "show"])?;
    let pairs = interfaces.lines().filter(|line| line.contains("veth"));
    found.extend(pairs.map(|line| format!("interface {line}")));
    let rules = run("nft", &["list", "ruleset"])?;
    let mapped = rules.lines().filter(|line| line.contains("comment"));
    found.extend(mapped.map(|line| format!("rule {}", line.trim())));
    for (what, directory) in [
        ("namespace", places.run_dir.join("netns")),
        ("lease", places.run_dir.join("leases/kafila")),
        ("network", places.node.join("client/networks")),
        ("record", places.node.join("client/tasks")),
        ("record", places.node.join("client/exec")),
        ("record", places.node.join("client/containers")),
    ] {
        let names = names(&directory).into_iter();
        let names = names.filter(|name| !is_kept(name));
        found.extend(names.map(|name| format!("{what} {name} in {}", directory.display())));
    }
    let groups = groups::below(&places.node_group).into_iter();
    let of_engine = groups::below(&places.engine_group).into_iter();
    let groups = groups.chain(of_engine.filter(|group| groups::has_process(group)));
    found.extend(groups.map(|it| format!("cgroup {}", it.display())));
    Ok(found)
}

/// Returns the numbers of shims and of empty control groups. Docker leaves them behind where a container was being
/// made or removed when its engine or containerd was killed; the node does not see them.
pub fn left_by_engine(places: &Places) -> (usize, usize) {
    let groups = groups::below(&places.engine_group);
    let names: BTreeSet<_> = groups.iter().filter_map(|it| it.file_name()).collect();
    let shims = machine::shims(&machine::processes()).len();
    (shims, names.len())
}

/// Files that are not of an allocation.
fn is_kept(name: &str) -> bool {
    name.starts_with("last_reserved") || name == "lock" || name == "images.json"
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.collect()
}

fn run(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.with_context(|| format!("cannot start {program}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
