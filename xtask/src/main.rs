//! Repository chores in Rust: `cargo xtask layers`.

mod layers;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        ["layers"] => layers::check(),
        _ => bail!("usage: cargo xtask layers    checks which crate depends on which"),
    }
}
