//! The quick start of README.md in containers, by its own commands: images, secrets, the stack, and a job through
//! scripts/compose-kafila.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::command::{self, repository};
use super::stack::Stack;
use crate::documents::shell_block;

/// The command that the finished binary takes the place of, unless the sources are compiled.
const BUILD: &str = "scripts/build-images";

/// Timeout of the whole block: Docker compiles everything, perhaps on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(7200);

/// Runs the block on a stack of its own, and removes the stack. `binary`: the program for the images; `None`: they
/// are compiled in Docker, as the README says.
///
/// # Errors
/// A command fails, or the job does not run.
pub async fn run(stack: &Stack, binary: Option<&Path>) -> Result<()> {
    let result = play(stack, binary).await;
    if result.is_err() {
        eprintln!("{}", stack.log_tails().await);
    }
    let removed = stack.remove().await;
    result.and(removed)
}

async fn play(stack: &Stack, binary: Option<&Path>) -> Result<()> {
    let readme = repository().join("README.md");
    let block = shell_block(&readme, BUILD)?;
    let commands = block.lines().filter(|line| !line.is_empty()).count();
    ensure!(commands <= 5, "the quick start has {commands} commands");
    let build = match binary {
        // Machines without a registry make the base images and etcd's, too.
        Some(binary) => format!("{BUILD} --local-base --etcd --binary {}", binary.display()),
        None => format!("{BUILD} --local-base --etcd"),
    };
    let start = block.replacen(BUILD, &build, 1);
    let compose = command::compose().await.context("Compose is missing")?;
    // Aliases as in a terminal; `docker compose` where only docker-compose is installed.
    let script = format!(
        "shopt -s expand_aliases\n\
         docker() {{ if [[ $1 == compose ]]; then shift; command {} \"$@\"; else command docker \"$@\"; fi; }}\n\
         {start}\nkafila job status web\nkafila job stop -purge web\n",
        compose.join(" ")
    );
    let said = stack.bash(TIMEOUT, &script).await?;
    for part in ["successful", "running"] {
        ensure!(said.contains(part), "{part:?} is missing: {said}");
    }
    Ok(())
}
