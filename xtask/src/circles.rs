//! Circles of files inside one crate: asserts that no two source files need each other.
//!
//! A file depends on another when it names an item that is defined there, in a `use` or in a path.
//! Module declarations and re-exports (`mod`, `pub use`) are no dependency, and a path through a
//! re-export leads to the file with the definition. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::rust_file::{Reference, RustFile};

/// # Errors
/// Every group of files that need each other, by crate.
pub(crate) fn check(root: &Path) -> Result<()> {
    let mut circles = Vec::new();
    let mut files = 0;
    for source in crate_roots(root)? {
        let modules = Modules::read(&source)?;
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

/// Returns the root file of every crate of the workspace: libraries, and binaries without one.
fn crate_roots(root: &Path) -> Result<Vec<PathBuf>> {
    let mut roots = Vec::new();
    let single = ["cli", "xtask", "integration-tests", "integration-tests/sim"];
    let mut folders: Vec<PathBuf> = single.iter().map(|name| root.join(name)).collect();
    for group in ["crates", "services"] {
        let folder = root.join(group);
        let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
        for entry in entries {
            folders.push(entry?.path());
        }
    }
    folders.sort();
    for folder in folders {
        let found = ["src/lib.rs", "src/main.rs"].map(|name| folder.join(name));
        roots.extend(found.into_iter().find(|file| file.is_file()));
    }
    Ok(roots)
}

/// Path of a module below its crate, outermost first; empty for the crate's root.
type ModulePath = Vec<String>;

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
                path.push(child.clone());
                let found = child_file(&file, child)
                    .with_context(|| format!("no file of module {child} of {}", file.display()))?;
                open.push((path, found));
            }
            files.insert(module, (file, parsed));
        }
        Ok(Self { files })
    }

    /// Returns a module's file and what it needs of its circle, as in `src/a.rs needs crate::b`.
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

    /// Returns for each module the modules that define what it names.
    fn dependencies(&self) -> BTreeMap<&ModulePath, BTreeSet<&ModulePath>> {
        let edges = self.files.iter().map(|(module, (_, file))| {
            let targets = file
                .references
                .iter()
                .filter_map(|reference| self.target(module, reference))
                .filter(|target| *target != module)
                .collect();
            (module, targets)
        });
        edges.collect()
    }

    /// Returns the module that defines what `reference`, in `module`, leads to; `None` for another
    /// crate's item.
    fn target(&self, module: &ModulePath, reference: &Reference) -> Option<&ModulePath> {
        let start = reference.start(module)?;
        self.walk(start, &reference.path, 0)
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

fn child_file(parent: &Path, child: &str) -> Option<PathBuf> {
    let folder = parent.parent()?;
    let stem = parent.file_stem()?.to_str()?;
    let folder = match stem {
        "lib" | "main" | "mod" => folder.to_owned(),
        _ => folder.join(stem),
    };
    let found = [
        folder.join(format!("{child}.rs")),
        folder.join(child).join("mod.rs"),
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
mod tests {
    use super::*;

    fn modules(files: &[(&str, &str)]) -> Modules {
        let files = files.iter().map(|(path, text)| {
            let module: ModulePath = path
                .split("::")
                .filter(|part| !part.is_empty())
                .map(str::to_owned)
                .collect();
            (
                module,
                (PathBuf::from(path), RustFile::parse(text).unwrap()),
            )
        });
        Modules {
            files: files.collect(),
        }
    }

    fn circles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let modules = modules(files);
        strongly_connected(&modules.dependencies())
            .into_iter()
            .map(|group| group.into_iter().map(|path| path.join("::")).collect())
            .collect()
    }

    #[test]
    fn two_files_that_import_each_other_are_a_circle() {
        let found = circles(&[
            ("", "mod a; mod b;"),
            ("a", "use crate::b::B; pub struct A;"),
            ("b", "fn f() -> crate::a::A { todo() } pub struct B;"),
        ]);
        assert_eq!(found, [["a", "b"]]);
    }

    #[test]
    fn a_root_that_only_declares_and_re_exports_is_in_no_circle() {
        let found = circles(&[
            ("", "mod a; mod b; pub use a::A; pub use b::B;"),
            ("a", "pub struct A;"),
            ("b", "use crate::A; pub struct B;"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn a_path_through_a_re_export_leads_to_the_definition() {
        let found = circles(&[
            ("", "mod a; mod b; pub use a::*; pub use b::B as C;"),
            ("a", "use crate::C; pub struct A;"),
            ("b", "use crate::A; pub struct B;"),
        ]);
        assert_eq!(found, [["a", "b"]]);
    }

    #[test]
    fn a_parent_and_a_child_that_need_each_other_are_a_circle() {
        let found = circles(&[
            ("", "mod a;"),
            ("a", "mod part; pub struct A(part::Part);"),
            ("a::part", "use super::A; pub struct Part; impl A {}"),
        ]);
        assert_eq!(found, [["a", "a::part"]]);
    }

    #[test]
    fn a_trailing_comma_names_nothing() {
        let found = circles(&[
            ("", "mod a;"),
            ("a", "mod part; mod other; pub struct A; use part::Part;"),
            ("a::part", "use super::{other,}; pub struct Part;"),
            ("a::other", ""),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn tests_are_left_out() {
        let found = circles(&[
            ("", "mod a; mod b;"),
            (
                "a",
                "pub struct A; #[cfg(test)] mod tests { use crate::b::B; }",
            ),
            ("b", "use crate::a::A; pub struct B;"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn groups_of_three_are_found_and_others_are_not() {
        let found = circles(&[
            ("", "mod a; mod b; mod c; mod d;"),
            ("a", "use super::b::{self, B}; pub struct A;"),
            ("b", "use super::{c::C, d}; pub struct B;"),
            ("c", "use super::a; fn f() { a::f() } pub struct C;"),
            ("d", "pub struct D;"),
        ]);
        assert_eq!(found, [["a", "b", "c"]]);
    }
}
