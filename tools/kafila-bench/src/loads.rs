//! The loads, one file each.

mod churn;
mod fleet;
mod idle;
mod storm;
mod stream;

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::args::{Cli, Load};
use crate::bench::Bench;
use crate::report::Report;

/// Runs a load and prints its report. Returns whether there was no violation.
///
/// # Errors
/// The cluster cannot be used, or the load does not get on.
pub(crate) async fn run(cli: &Cli) -> Result<bool> {
    let bench = Bench::start(&cli.common).await?;
    let outcome = match &cli.load {
        Load::Fleet(fleet) => fleet::run(&bench, fleet).await,
        Load::Idle(idle) => Ok(idle::run(&bench, idle).await),
        Load::Stream(stream) => stream::run(&bench, stream).await,
        Load::Churn(churn) => churn::run(&bench, churn).await,
        Load::Storm(storm) => storm::run(&bench, storm).await,
    };
    let failure = outcome.as_ref().err().map(|error| format!("{error:#}"));
    let report = Report::of(cli, &bench, outcome.ok()).await;
    println!("{}", report.text);
    if let Some(directory) = &cli.common.out {
        write(directory, &report)?;
    }
    if let Some(failure) = failure {
        for violation in &report.violations {
            eprintln!("Violation: {violation}");
        }
        anyhow::bail!(failure);
    }
    Ok(report.violations.is_empty())
}

fn write(directory: &Path, report: &Report) -> Result<()> {
    let put = |name: &str, text: &str| {
        let path = directory.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    std::fs::create_dir_all(directory)
        .with_context(|| format!("cannot create {}", directory.display()))?;
    let mut text = report.text.clone();
    text.push_str("\n## Plots\n\n");
    for (name, svg) in &report.plots {
        text.push_str(&format!("![{name}]({name}.svg)\n"));
        put(&format!("{name}.svg"), svg)?;
    }
    put("report.md", &text)
}
