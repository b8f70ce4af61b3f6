//! Control groups of a run, in every hierarchy of the machine.

use std::fs;
use std::path::{Path, PathBuf};

/// Groups of the agent, which stay: of tasks without cores of their own, and of supervisors.
const OWN_GROUPS: [&str; 2] = ["shared.slice", "supervisors.scope"];

/// Returns the roots of the hierarchies of control groups.
fn hierarchies() -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let groups = mounts.lines().filter(|line| line.contains(" - cgroup"));
    let points = groups.filter_map(|line| line.split(' ').nth(4));
    points.map(PathBuf::from).collect()
}

/// Returns the groups below every group of this name, in all hierarchies, apart from idle ones of the agent.
pub fn below(parent: &str) -> Vec<PathBuf> {
    let roots = hierarchies().into_iter();
    roots.flat_map(|root| groups_below(&root, parent)).collect()
}

fn groups_below(root: &Path, parent: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if entry.file_name().to_string_lossy() == parent {
            let inner = fs::read_dir(entry.path()).into_iter().flatten().flatten();
            let inner = inner.filter(|it| it.file_type().is_ok_and(|kind| kind.is_dir()));
            let inner = inner.map(|it| it.path()).filter(|path| !is_idle(path));
            found.extend(inner);
        } else {
            found.extend(groups_below(&entry.path(), parent));
        }
    }
    found
}

/// Tells whether a group or one below it has a process.
pub fn has_process(group: &Path) -> bool {
    let processes = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let mut inner = fs::read_dir(group).into_iter().flatten().flatten();
    let inner_has = |it: fs::DirEntry| {
        it.file_type().is_ok_and(|kind| kind.is_dir()) && has_process(&it.path())
    };
    !processes.is_empty() || inner.any(inner_has)
}

/// Tells whether a group is one of the agent's own, and nothing is in it.
fn is_idle(group: &Path) -> bool {
    let is_own = OWN_GROUPS.iter().any(|name| group.ends_with(name));
    let processes = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let mut inner = fs::read_dir(group).into_iter().flatten().flatten();
    let has_inner = inner.any(|it| it.file_type().is_ok_and(|kind| kind.is_dir()));
    is_own && processes.is_empty() && !has_inner
}

/// Removes the groups of these names, with all below them, in every hierarchy.
pub fn remove(names: &[String]) {
    for hierarchy in hierarchies() {
        remove_below(&hierarchy, names, false);
    }
}

fn remove_below(directory: &Path, names: &[String], all: bool) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_meant = all || names.contains(&name);
        remove_below(&entry.path(), names, is_meant);
        if is_meant {
            // One that has processes stays.
            let _ = fs::remove_dir(entry.path());
        }
    }
}
