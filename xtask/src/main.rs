//! Repository chores in Rust: `cargo xtask layers`.

mod circles;
mod code_map;
mod layers;
mod links;
mod metadata;
mod orphans;
mod rust_file;
mod sizes;
mod test_flags;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        ["layers"] => {
            let metadata = metadata::read()?;
            layers::check(&metadata)?;
            let folder = std::env::var("CARGO_MANIFEST_DIR").context("run it with cargo")?;
            let root = Path::new(&folder).parent();
            let root = root.context("the folder of xtask has no parent")?;
            test_flags::check(&metadata)?;
            let targets = metadata::target_roots(&metadata)?;
            orphans::check(root, &targets)?;
            let packages = metadata::package_folders(&metadata)?;
            let packages: Vec<PathBuf> = packages
                .iter()
                .filter_map(|folder| Some(folder.strip_prefix(root).ok()?.to_owned()))
                .collect();
            code_map::check(root, &packages)?;
            code_map::check_decisions(root)?;
            links::check(root)?;
            sizes::check(root)?;
            circles::check(root, targets)
        }
        _ => bail!(
            "usage: cargo xtask layers    checks which crates and files depend on which, flags of tests, the code map, links of documents, and the sizes of services"
        ),
    }
}
