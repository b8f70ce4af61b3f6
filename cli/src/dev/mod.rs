//! `kafila dev`: every service and a node in this process, over a store of its own.
//!
//! In reading order: this file is the process from start to drain; [`words`] is what it says and
//! hears at its terminal; [`suite`] builds and runs the services; [`jobs`] runs the job files that
//! were asked for, with the same command that users have.

mod jobs;
mod suite;
mod words;

use std::process::ExitCode;
use std::time::Duration;

use model::Timestamp;
use service_kit::run::BoxError;
use service_kit::{CancellationToken, Clock, Telemetry, TelemetryConfig};

use crate::args::dev::Dev;
use crate::context;
use crate::exit::Exit;
use crate::output::printer::Printer;
use suite::{Addresses, Suite};
use words::{Left, Place, Words};

/// How often somebody who waits for the end is told what it waits for; the first time is late
/// enough for tasks that end when they are asked to.
const ENDING_REMARK: Duration = Duration::from_secs(3);

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
        // Nobody who types this reads logs.
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
        let telemetry = Telemetry::start("kafila-dev", &config)?;
        let left = Left::default();
        let drain = words::on_signals(printer, left.clone())?;
        let words = Words::new(printer, drain.clone());
        let outcome = live(args, &words, &left, drain).await;
        telemetry.shutdown().await;
        outcome.map(|()| words.exit())
    })
}

async fn live(
    args: Dev,
    words: &Words,
    left: &Left,
    drain: CancellationToken,
) -> Result<(), BoxError> {
    words.say(&format!(
        "==> Starting Kafila: every service and {} in this process",
        nodes(args.nodes)
    ));
    let mut suite = Box::pin(Suite::start(&args)).await?;
    let directory = suite.directory().to_owned();
    left.is(match args.data_dir {
        Some(_) => Place::Kept {
            directory: directory.clone(),
            nodes: args.nodes,
        },
        None => Place::Scratch(directory.clone()),
    });
    if let Some(left_out) = words::nodes_left_out(&directory, args.nodes) {
        words.complain(&left_out);
    }
    let addresses = suite.addresses();
    let outcome = {
        let failure = suite.failure();
        tokio::pin!(failure);
        let used = tokio::select! {
            used = use_it(&addresses, &args, &directory, words) => used,
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
    words.say(&if args.data_dir.is_some() {
        format!(
            "\n==> Ending. {}",
            words::how_to_stop(&directory, args.nodes)
        )
    } else {
        "\n==> Ending; tasks are stopped".to_owned()
    });
    let ending = suite.stop();
    tokio::select! {
        () = ending => {}
        () = remarks(&addresses, words) => {}
    }
    words.say("==> Ended");
    outcome
}

/// Waits until a node can take work, says where everything is, and runs the jobs.
async fn use_it(
    suite: &Addresses,
    args: &Dev,
    directory: &std::path::Path,
    words: &Words,
) -> Result<(), BoxError> {
    suite.ready().await?;
    words.say("==> Ready");
    let everywhere = if args.listen.ip().is_unspecified() {
        " (and at every other address of this machine)"
    } else {
        ""
    };
    words.say(&format!("    Gateway: {}{everywhere}", suite.gateway));
    words.say(&format!(
        "    Store:   {} (etcdctl --endpoints works)",
        suite.store
    ));
    let directory = directory.display();
    words.say(&match args.data_dir {
        Some(_) => format!("    State:   {directory}"),
        None => "    State:   in memory, gone when this ends (-data-dir keeps it)".to_owned(),
    });
    if args.data_dir.is_none() {
        words.say(&format!("    Files:   {directory}, removed when this ends"));
    }
    for file in &args.job {
        words.say(&format!("==> kafila job run {}", file.display()));
        if let Err(error) = jobs::run(&suite.gateway, file).await {
            // The command has said why; the suite stays, so that one can look.
            words.complain(&format!("==> {error}"));
        }
    }
    words.say(&format!(
        "==> Look around from another terminal: {}; Ctrl-C ends it here",
        words::look_around(&suite.gateway)
    ));
    Ok(())
}

/// Says, as long as it is polled, what the end is waiting for.
async fn remarks(suite: &Addresses, words: &Words) {
    loop {
        tokio::time::sleep(ENDING_REMARK).await;
        let tasks = match suite.live_allocations().await {
            Ok(names) if !names.is_empty() => format!(" of {}", names.join(", ")),
            // The gateway has ended before, or knows of none.
            _ => String::new(),
        };
        words.say(&format!(
            "    Waiting for tasks{tasks} to end; another Ctrl-C ends at once and leaves them"
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
