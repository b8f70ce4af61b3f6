//! Asserts that dependencies point one way: cli → services → libraries → deciders → state → model.
//!
//! The [`table`] is the whole rule; a crate that is not in it fails the check, so that a new one has to say
//! where it belongs.

mod table;

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use self::table::{ALLOWED, ANYTHING, IMPURE, PURE};
use crate::metadata::array;

/// # Errors
/// Every dependency that the table does not allow, by name.
pub(crate) fn check(metadata: &Value) -> Result<()> {
    let graph = Graph::read(metadata)?;
    let allowed: BTreeMap<_, _> = ALLOWED.iter().copied().collect();
    let mut wrong = Vec::new();
    for (name, dependencies) in &graph.members {
        let Some(may) = allowed.get(name.as_str()) else {
            wrong.push(format!(
                "{name}: not in xtask/src/layers/table.rs; say there what it may use"
            ));
            continue;
        };
        for dependency in dependencies {
            let ours = graph.members.contains_key(dependency);
            if ours && !may.contains(&dependency.as_str()) && *may != ANYTHING {
                wrong.push(format!("{name} must not depend on {dependency}"));
            }
        }
        if PURE.contains(&name.as_str()) {
            for impure in IMPURE.iter().filter(|impure| graph.reaches(name, impure)) {
                wrong.push(format!("{name} decides, so it must not pull in {impure}"));
            }
        }
    }
    if !wrong.is_empty() {
        bail!(
            "dependencies point the wrong way:\n  {}",
            wrong.join("\n  ")
        );
    }
    println!(
        "layers: {} crates, every dependency points down",
        graph.members.len()
    );
    Ok(())
}

/// The dependencies of every package, without dev- and build-dependencies.
struct Graph {
    /// Workspace crate → the crates it names, by name.
    members: BTreeMap<String, Vec<String>>,
    /// Package id → name, and the package ids it depends on.
    packages: BTreeMap<String, (String, Vec<String>)>,
}

impl Graph {
    fn read(metadata: &Value) -> Result<Self> {
        let names: BTreeMap<&str, &str> = array(metadata, "packages")?
            .iter()
            .filter_map(|package| Some((package["id"].as_str()?, package["name"].as_str()?)))
            .collect();
        let mut packages = BTreeMap::new();
        for node in array(&metadata["resolve"], "nodes")? {
            let id = node["id"].as_str().context("a node without an id")?;
            let name = names.get(id).context("a node that is not a package")?;
            let dependencies: Vec<String> = array(node, "deps")?
                .iter()
                .filter(|dependency| is_normal(dependency))
                .filter_map(|dependency| dependency["pkg"].as_str().map(str::to_owned))
                .collect();
            packages.insert(id.to_owned(), ((*name).to_owned(), dependencies));
        }
        let mut members = BTreeMap::new();
        for id in array(metadata, "workspace_members")? {
            let id = id.as_str().context("a member without an id")?;
            let (name, dependencies) =
                packages.get(id).context("a member that is not a package")?;
            let named: Vec<String> = dependencies
                .iter()
                .filter_map(|dependency| names.get(dependency.as_str()))
                .map(|dependency| (*dependency).to_owned())
                .collect();
            members.insert(name.clone(), named);
        }
        Ok(Self { members, packages })
    }

    fn reaches(&self, member: &str, target: &str) -> bool {
        let mut open: Vec<&String> = self
            .packages
            .iter()
            .filter(|(_, (name, _))| name == member)
            .map(|(id, _)| id)
            .collect();
        let mut seen = std::collections::BTreeSet::new();
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            let Some((name, dependencies)) = self.packages.get(id) else {
                continue;
            };
            if name == target {
                return true;
            }
            open.extend(dependencies);
        }
        false
    }
}

fn is_normal(dependency: &Value) -> bool {
    dependency["dep_kinds"]
        .as_array()
        .is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
}
