//! Circles of files inside one crate: asserts that no two source files need each other.
//!
//! A file depends on another when it names an item that is defined there, in a `use` or in a path.
//! Module declarations and re-exports (`mod`, `pub use`) are no dependency, and a path through a
//! re-export leads to the file with the definition. A file that uses a name which it re-exports
//! depends on it. Unit tests are left out; integration tests, benchmarks and examples are not.
//!
//! A type whose `impl` blocks stand in several files makes them depend on each other by its methods: a call
//! `self.name(…)` or `Self::name` needs the file with that method. A file and those in its own folder, `a.rs`
//! and `a/part.rs`, may call each other's methods: the blocks of a type may be split over them. Calls on other
//! values than `self` name no type, so they are no dependency.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::rust_file::{Child, Impl, Reference, RustFile};

/// # Errors
/// Every group of files that need each other, by crate.
pub(crate) fn check(root: &Path, targets: Vec<PathBuf>) -> Result<()> {
    let mut circles = Vec::new();
    let mut files = 0;
    for target in targets {
        let modules = Modules::read(&target)?;
        files += modules.files.len();
        let dependencies = modules.dependencies();
        for circle in strongly_connected(&dependencies) {
            let lines: Vec<String> = circle
                .iter()
                .map(|module| modules.describe(root, module, &dependencies[module], &circle))
                .collect();
            circles.push(lines.join("\n    "));
        }
    }
    if !circles.is_empty() {
        bail!(
            "{} circles of files, each of which needs the others:\n  {}",
            circles.len(),
            circles.join("\n  ")
        );
    }
    println!("layers: {files} files, no circles");
    Ok(())
}

/// Path of a module below its crate, outermost first; empty for the crate's root.
type ModulePath = Vec<String>;

/// Module that defines a type, and its name → method → the modules that have it.
type Methods<'a> = BTreeMap<(&'a ModulePath, &'a str), BTreeMap<&'a str, BTreeSet<&'a ModulePath>>>;

struct Modules {
    files: BTreeMap<ModulePath, (PathBuf, RustFile)>,
}

impl Modules {
    fn read(root: &Path) -> Result<Self> {
        let mut files = BTreeMap::new();
        let mut open = vec![(Vec::new(), root.to_owned())];
        while let Some((module, file)) = open.pop() {
            let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            let parsed = RustFile::parse(&text)
                .with_context(|| format!("cannot read {} as Rust", file.display()))?;
            for child in &parsed.children {
                let mut path: ModulePath = module.clone();
                path.push(child.name.clone());
                let found = child_file(&file, module.is_empty(), child).with_context(|| {
                    format!("no file of module {} of {}", child.name, file.display())
                })?;
                open.push((path, found));
            }
            files.insert(module, (file, parsed));
        }
        Ok(Self { files })
    }

    /// Returns a module's file and the modules of its circle that it needs, as in `src/a.rs needs
    /// crate::b`.
    fn describe(
        &self,
        root: &Path,
        module: &ModulePath,
        needs: &BTreeSet<&ModulePath>,
        circle: &[&ModulePath],
    ) -> String {
        let file = &self.files[module].0;
        let file = file.strip_prefix(root).unwrap_or(file).display();
        let needs: Vec<String> = needs
            .iter()
            .filter(|other| circle.contains(other))
            .map(|other| format!("crate::{}", other.join("::")))
            .collect();
        format!("{file} needs {}", needs.join(", "))
    }

    /// Returns for each module the modules that define the items it names and the methods it calls.
    fn dependencies(&self) -> BTreeMap<&ModulePath, BTreeSet<&ModulePath>> {
        let methods = self.methods();
        let edges = self.files.iter().map(|(module, (_, file))| {
            let named = file.references.iter();
            let named = named.filter_map(|reference| self.target(module, reference));
            let targets = named
                .chain(self.used_exports(module, file))
                .chain(self.called(module, file, &methods))
                .filter(|target| *target != module)
                .collect();
            (module, targets)
        });
        edges.collect()
    }

    /// Returns the modules with the methods of each type.
    fn methods(&self) -> Methods<'_> {
        let mut methods = Methods::new();
        for (module, (_, file)) in &self.files {
            for block in &file.impls {
                let Some(key) = self.type_of(module, file, block) else {
                    continue;
                };
                let of_type = methods.entry(key).or_default();
                for method in &block.methods {
                    of_type.entry(method).or_default().insert(module);
                }
            }
        }
        methods
    }

    /// Returns the modules with the methods that the `impl` blocks of `file` call on their own type.
    fn called<'a>(
        &'a self,
        module: &ModulePath,
        file: &'a RustFile,
        methods: &Methods<'a>,
    ) -> BTreeSet<&'a ModulePath> {
        let mut targets = BTreeSet::new();
        for block in &file.impls {
            let key = self.type_of(module, file, block);
            let Some(of_type) = key.and_then(|key| methods.get(&key)) else {
                continue;
            };
            let called = block.calls.iter();
            let homes = called.filter_map(|name| of_type.get(name.as_str()));
            // Of several methods with one name, of traits, it is not known which one is called.
            let homes = homes.filter(|homes| homes.len() == 1).flatten();
            targets.extend(homes.filter(|home| !is_in_own_folder(module, home)));
        }
        targets
    }

    /// Returns the type of an `impl` block: the module that defines it, and its name there.
    fn type_of<'a>(
        &'a self,
        module: &ModulePath,
        file: &'a RustFile,
        block: &'a Impl,
    ) -> Option<(&'a ModulePath, &'a str)> {
        let name = block.type_name.as_str();
        if let Some(path) = &block.type_path {
            let own_name = path.path.last().map_or(name, String::as_str);
            return Some((self.target(module, path)?, own_name));
        }
        if file.definitions.contains(name) {
            return Some((self.files.get_key_value(module)?.0, name));
        }
        let mut globs = file.globs.iter();
        globs.find_map(|glob| {
            let defining = self.target(module, glob)?;
            let is_here = self.files[defining].1.definitions.contains(name);
            is_here.then_some((defining, name))
        })
    }

    /// Returns the module that defines the item to which `reference`, in `module`, leads; `None`
    /// for another crate's item.
    fn target(&self, module: &ModulePath, reference: &Reference) -> Option<&ModulePath> {
        let start = reference.start(module)?;
        self.walk(start, &reference.path, 0)
    }

    /// Returns the modules that define the items `file` re-exports and also uses.
    fn used_exports(&self, module: &ModulePath, file: &RustFile) -> Vec<&ModulePath> {
        let mut found = Vec::new();
        for export in &file.exports {
            for word in file.words.difference(&file.definitions) {
                let target = export.leads_to(word).and_then(|path| {
                    let start = export.reference.start(module)?;
                    self.defining(start, &path, 0, export.is_glob())
                });
                found.extend(target);
            }
        }
        found
    }

    fn walk(&self, start: ModulePath, path: &[String], depth: usize) -> Option<&ModulePath> {
        // Re-exports of re-exports end; a circle of them must not.
        const DEPTH_MAX: usize = 8;
        let mut module = start;
        let mut rest = path;
        while let [first, more @ ..] = rest {
            let mut child = module.clone();
            child.push(first.clone());
            if !self.files.contains_key(&child) {
                break;
            }
            (module, rest) = (child, more);
        }
        let (key, (_, file)) = self.files.get_key_value(&module)?;
        let Some(name) = rest.first() else {
            return Some(key);
        };
        if depth < DEPTH_MAX && !file.definitions.contains(name) {
            for export in &file.exports {
                let Some(beyond) = export.leads_to(name) else {
                    continue;
                };
                let Some(start) = export.reference.start(&module) else {
                    continue;
                };
                let whole: Vec<String> = beyond.iter().chain(&rest[1..]).cloned().collect();
                if let Some(found) = self.defining(start, &whole, depth, export.is_glob()) {
                    return Some(found);
                }
            }
        }
        Some(key)
    }

    /// Follows a re-export; a glob only counts where the name is found behind it.
    fn defining(
        &self,
        start: ModulePath,
        path: &[String],
        depth: usize,
        glob: bool,
    ) -> Option<&ModulePath> {
        let found = self.walk(start, path, depth + 1)?;
        let name = path.last()?;
        let defines = self.files[found].1.definitions.contains(name);
        (!glob || defines).then_some(found)
    }
}

/// Tells whether one of two modules is declared in the other's file, which is no crate's root.
fn is_in_own_folder(one: &ModulePath, other: &ModulePath) -> bool {
    let is_parent_of = |parent: &ModulePath, child: &ModulePath| {
        !parent.is_empty()
            && child
                .split_last()
                .is_some_and(|(_, folder)| folder == parent)
    };
    is_parent_of(one, other) || is_parent_of(other, one)
}

/// Returns the file of a module that `parent` declares; a crate's root keeps its modules beside it,
/// whatever its own name.
fn child_file(parent: &Path, is_root: bool, child: &Child) -> Option<PathBuf> {
    let folder = parent.parent()?;
    if let Some(path) = &child.path {
        let file = folder.join(path);
        return file.is_file().then_some(file);
    }
    let stem = parent.file_stem()?.to_str()?;
    let folder = match stem {
        _ if is_root => folder.to_owned(),
        "mod" => folder.to_owned(),
        _ => folder.join(stem),
    };
    let found = [
        folder.join(format!("{}.rs", child.name)),
        folder.join(&child.name).join("mod.rs"),
    ];
    found.into_iter().find(|file| file.is_file())
}

/// Returns the groups of more than one node that all reach each other (Tarjan), smallest first.
fn strongly_connected<'a>(
    edges: &BTreeMap<&'a ModulePath, BTreeSet<&'a ModulePath>>,
) -> Vec<Vec<&'a ModulePath>> {
    let reach: BTreeMap<_, _> = edges
        .keys()
        .map(|node| (*node, reached(edges, node)))
        .collect();
    let mut seen = BTreeSet::new();
    let mut groups = Vec::new();
    for (node, targets) in &reach {
        if !seen.insert(*node) {
            continue;
        }
        let mut group: Vec<_> = targets
            .iter()
            .copied()
            .filter(|other| other != node && reach[other].contains(node))
            .collect();
        if group.is_empty() {
            continue;
        }
        group.insert(0, *node);
        seen.extend(group.iter().copied());
        groups.push(group);
    }
    groups.sort_by_key(Vec::len);
    groups
}

fn reached<'a>(
    edges: &BTreeMap<&'a ModulePath, BTreeSet<&'a ModulePath>>,
    from: &'a ModulePath,
) -> BTreeSet<&'a ModulePath> {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(node) = open.pop() {
        let targets = edges.get(node).into_iter().flatten();
        open.extend(targets.copied().filter(|target| seen.insert(*target)));
    }
    seen
}

#[cfg(test)]
mod tests;
