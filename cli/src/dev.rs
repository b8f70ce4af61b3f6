//! `kafila dev`: all services, a store and nodes in one process.
//!
//! In reading order: this file is the process from start to drain; [`terminal`] is its output and its
//! signals; [`leftover`] finds what killed runs left behind; [`suite`] builds and runs the services; [`nodes`]
//! has the settings of the nodes; [`jobs`] runs the job files of the command line with `kafila job run`.

mod jobs;
mod keyring;
mod leftover;
mod nodes;
mod suite;
mod terminal;

use std::process::ExitCode;
use std::time::Duration;

use model::Timestamp;
use service_kit::run::BoxError;
use service_kit::{CancellationToken, Clock, Telemetry, TelemetryConfig, TelemetryError};

use crate::args::dev::Dev;
use crate::context;
use crate::exit::Exit;
use crate::output::printer::Printer;
use suite::{Addresses, Suite};
use terminal::{DataDirectory, Leftovers, Terminal};

/// Interval of progress messages during shutdown. Most tasks stop within the first interval.
const SHUTDOWN_MESSAGE_INTERVAL: Duration = Duration::from_secs(3);

/// Runs the suite until a signal, then drains it.
pub(crate) fn run(args: Dev) -> ExitCode {
    let printer = context::printer(false, false);
    let now = Timestamp(Clock::real().now());
    if let Err(error) = jobs::check(&args.job, now, printer.colour_err) {
        printer.err(&error.to_string());
        return Exit::Failure.into();
    }
    match start(args, printer) {
        Ok(exit) => exit.into(),
        // Printed, because logs are mostly off here.
        Err(error) => {
            let chain = service_kit::run::chain(error.as_ref());
            printer.err(&format!("Error running kafila dev: {chain}"));
            Exit::Failure.into()
        }
    }
}

fn start(args: Dev, printer: Printer) -> Result<Exit, BoxError> {
    let config = TelemetryConfig {
        log: args.log.clone(),
        otlp_endpoint: std::env::var("KAFILA_OTLP_ENDPOINT").ok(),
        ..TelemetryConfig::default()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let telemetry = Telemetry::start("kafila-dev", &config).map_err(|error| match error {
            // Its own words name the setting of a configuration file.
            TelemetryError::BadFilter(filter) => {
                format!("-log: {}", service_kit::run::chain(&filter)).into()
            }
            error => BoxError::from(error),
        })?;
        let leftovers = Leftovers::default();
        let drain = terminal::on_signals(printer, leftovers.clone())?;
        let terminal = Terminal::new(printer, drain.clone());
        let outcome = live(args, &terminal, &leftovers, drain).await;
        telemetry.shutdown().await;
        outcome.map(|()| terminal.exit())
    })
}

async fn live(
    args: Dev,
    terminal: &Terminal,
    leftovers: &Leftovers,
    drain: CancellationToken,
) -> Result<(), BoxError> {
    terminal.print(&format!(
        "==> Starting Kafila: all services and {} in this process",
        nodes(args.nodes)
    ));
    for directory in leftover::find(&std::env::temp_dir()) {
        terminal.warn(&terminal::left_over(&directory));
    }
    let mut suite = Box::pin(Suite::start(&args)).await?;
    let directory = suite.directory().to_owned();
    leftovers.set(match args.data_dir {
        Some(_) => DataDirectory::Kept {
            directory: directory.clone(),
            nodes: args.nodes,
        },
        None => DataDirectory::Scratch(directory.clone()),
    });
    if let Some(left_out) = terminal::nodes_left_out(&directory, args.nodes) {
        terminal.warn(&left_out);
    }
    let addresses = suite.addresses();
    let outcome = {
        let failure = suite.failure();
        tokio::pin!(failure);
        let used = tokio::select! {
            used = announce(&addresses, &args, &directory, terminal) => used,
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
    terminal.print(&if args.data_dir.is_some() {
        format!(
            "\n==> Stopping. {}",
            terminal::remaining_tasks(&directory, args.nodes)
        )
    } else {
        "\n==> Stopping; tasks are stopped".to_owned()
    });
    let ending = suite.stop();
    tokio::select! {
        () = ending => {}
        () = report_shutdown(&addresses, terminal) => {}
    }
    terminal.print("==> Stopped");
    outcome
}

/// Waits until the nodes are ready, prints the addresses, and runs the jobs.
async fn announce(
    suite: &Addresses,
    args: &Dev,
    directory: &std::path::Path,
    terminal: &Terminal,
) -> Result<(), BoxError> {
    suite.ready().await?;
    terminal.print("==> Ready");
    let everywhere = if args.listen.ip().is_unspecified() {
        " (and all other addresses of this machine)"
    } else {
        ""
    };
    terminal.print(&format!("    Gateway: {}{everywhere}", suite.gateway));
    terminal.print(&format!(
        "    Store:   {} (etcdctl --endpoints works)",
        suite.store
    ));
    let directory = directory.display();
    terminal.print(&match args.data_dir {
        Some(_) => format!("    State:   {directory}"),
        None => "    State:   in memory, lost on exit (-data-dir keeps it)".to_owned(),
    });
    if args.data_dir.is_none() {
        terminal.print(&format!("    Files:   {directory}, removed on exit"));
    }
    for file in &args.job {
        terminal.print(&format!("==> kafila job run {}", file.display()));
        if let Err(error) = jobs::run(&suite.gateway, file).await {
            // The command has printed the reason; the cluster keeps running for inspection.
            terminal.warn(&format!("==> {error}"));
        }
    }
    terminal.print(&format!(
        "==> Try in another terminal: {}. Ctrl-C stops the cluster",
        terminal::status_command(&suite.gateway)
    ));
    Ok(())
}

/// Prints periodically which tasks delay the shutdown.
async fn report_shutdown(suite: &Addresses, terminal: &Terminal) {
    loop {
        tokio::time::sleep(SHUTDOWN_MESSAGE_INTERVAL).await;
        let tasks = match suite.live_allocations().await {
            Ok(names) if !names.is_empty() => format!(" of {}", names.join(", ")),
            // The gateway has stopped already, or no allocation is live.
            _ => String::new(),
        };
        terminal.print(&format!(
            "    Waiting for tasks{tasks} to stop; another Ctrl-C exits immediately and leaves them running"
        ));
    }
}

fn nodes(count: u16) -> String {
    if count == 1 {
        "a node".to_owned()
    } else {
        format!("{count} nodes")
    }
}
