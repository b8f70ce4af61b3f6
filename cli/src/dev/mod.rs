//! `kafila dev`: every service and a node in this process, over a store of its own.
//!
//! In reading order: this file is the process from start to drain; [`suite`] builds and runs the
//! services; [`jobs`] runs the job files that were asked for, with the same command that users
//! have.

mod jobs;
mod suite;

use std::process::ExitCode;

use service_kit::run::BoxError;
use service_kit::{CancellationToken, TelemetryConfig, run_service};

use crate::args::dev::Dev;
use suite::{Addresses, Suite};

/// Runs the suite until a signal, then drains it.
pub(crate) fn run(args: Dev) -> ExitCode {
    let telemetry = TelemetryConfig {
        log: args.log.clone(),
        otlp_endpoint: std::env::var("KAFILA_OTLP_ENDPOINT").ok(),
        ..TelemetryConfig::default()
    };
    run_service("kafila-dev", &telemetry, |drain| live(args, drain))
}

async fn live(args: Dev, drain: CancellationToken) -> Result<(), BoxError> {
    println!(
        "==> Starting Kafila: every service and {} in this process",
        nodes(args.nodes)
    );
    let mut suite = Box::pin(Suite::start(&args)).await?;
    let addresses = suite.addresses();
    let outcome = {
        let failure = suite.failure();
        tokio::pin!(failure);
        let used = tokio::select! {
            used = use_it(&addresses, &args) => used,
            () = drain.cancelled() => Ok(()),
            failure = &mut failure => Err(failure),
        };
        match used {
            Ok(()) => tokio::select! {
                () = drain.cancelled() => Ok(()),
                failure = &mut failure => Err(failure),
            },
            Err(error) => Err(error),
        }
    };
    let tasks = if args.data_dir.is_some() {
        "tasks go on"
    } else {
        "tasks are stopped"
    };
    println!("\n==> Ending; {tasks}");
    suite.stop().await;
    println!("==> Ended");
    outcome
}

/// Waits until a node can take work, says where everything is, and runs the jobs.
async fn use_it(suite: &Addresses, args: &Dev) -> Result<(), BoxError> {
    suite.ready().await?;
    println!("==> Ready");
    println!("    Gateway: {}", suite.gateway);
    println!("    Store:   {} (etcdctl --endpoints works)", suite.store);
    match &args.data_dir {
        Some(directory) => println!("    State:   {}", directory.display()),
        None => println!("    State:   in memory, gone when this ends (-data-dir keeps it)"),
    }
    for file in &args.job {
        if let Err(error) = jobs::run(&suite.gateway, file).await {
            // The command has said why; the suite stays, so that one can look.
            eprintln!("==> {error}");
        }
    }
    println!("==> Look around from another terminal: kafila status; Ctrl-C ends it here");
    Ok(())
}

fn nodes(count: u16) -> String {
    if count == 1 {
        "a node".to_owned()
    } else {
        format!("{count} nodes")
    }
}
