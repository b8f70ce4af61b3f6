//! `kafila operator debug`: an archive for bug reports.
//!
//! [`cluster`] describes the cluster from the gateway's answers, [`logs`] reads the last lines of processes and
//! nodes, [`local`] reads files and metrics, [`redact`] removes secrets, [`schedule`] counts repeated captures,
//! [`archive`] writes the result. A part that fails is named in the manifest.

mod archive;
mod cluster;
mod local;
mod logs;
mod part;
mod redact;
mod schedule;

use std::path::PathBuf;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use serde_json::{Value, json};
use tokio::signal::ctrl_c;
use tokio::time::{Instant, sleep_until};

use self::cluster::Cluster;
use self::part::Part;
use self::schedule::Schedule;
use crate::args::operator::debug::Debug;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::json::pretty;

pub(crate) async fn run(context: &Context, args: &Debug) -> Result<Exit, Error> {
    let schedule = schedule::captures(args.duration, args.interval).map_err(Error::text)?;
    let time = now(context);
    let folder = format!("kafila-debug-{}", time.strftime("%Y%m%dT%H%M%SZ"));
    let path = match &args.output {
        Some(path) => path.clone(),
        None => PathBuf::from(format!("{folder}.tar.gz")),
    };
    // Found now, and not after minutes of captures.
    if path.exists() {
        let problem = "it exists already: name another file with -output";
        return Err(Error::text(format!(
            "Error writing {}: {problem}",
            path.display()
        )));
    }
    let mut captured = match schedule {
        None => capture(context, args, "").await,
        Some(schedule) => captures(context, args, schedule).await,
    };
    let gateway_answered = captured.parts.iter().any(is_of_gateway);
    let mut parts = captured.parts;
    parts.extend(logs::read(&context.connection, &captured.cluster, args.max_nodes).await);
    parts.extend(args.log_files.iter().map(|file| local::log(file)));
    parts.extend(args.config_files.iter().map(|file| local::config(file)));
    let mut manifest = manifest(&parts, &time.to_string(), &context.connection.address().url);
    if schedule.is_some() {
        manifest["Captures"] = std::mem::take(&mut captured.times).into();
    }
    parts.push(Part::new(
        "manifest.json",
        Ok(pretty(&manifest).into_bytes()),
    ));
    archive::write(&path, &folder, &parts)
        .map_err(|error| Error::text(format!("Error writing {}: {error}", path.display())))?;
    for part in &parts {
        if let Err(problem) = &part.content {
            let line = problem.lines().next().unwrap_or_default();
            context
                .printer
                .err(&format!("Missing: {} ({line})", part.name));
        }
    }
    context
        .printer
        .out(&format!("Created debug archive: {}", path.display()))?;
    if gateway_answered {
        return Ok(Exit::Success);
    }
    Err(Error::text(format!(
        "Error describing the cluster: no gateway answered at {url}, so the archive has only the metrics and files \
         of the flags.\nSet another gateway with -address or KAFILA_ADDR.",
        url = context.connection.address().url
    )))
}

/// Tells whether the part exists and is a gateway's answer.
fn is_of_gateway(part: &Part) -> bool {
    part.content.is_ok() && !part.name.contains("metrics/")
}

/// The parts that change with time.
#[derive(Default)]
struct Captured {
    parts: Vec<Part>,
    /// That of the last capture, whose parts are moved out.
    cluster: Cluster,
    times: Vec<String>,
}

/// Captures the state of the cluster and the metrics, with names below `folder`.
async fn capture(context: &Context, args: &Debug, folder: &str) -> Captured {
    let times = vec![now(context).to_string()];
    let mut cluster = cluster::state(&context.connection).await;
    let mut parts = std::mem::take(&mut cluster.parts);
    for address in &args.metrics {
        parts.push(local::metrics(address).await);
    }
    for part in &mut parts {
        part.name.insert_str(0, folder);
    }
    Captured {
        parts,
        cluster,
        times,
    }
}

/// Captures as often as scheduled, or until the user presses Ctrl-C.
async fn captures(context: &Context, args: &Debug, schedule: Schedule) -> Captured {
    let Schedule { count, interval } = schedule;
    let started = Instant::now();
    let mut all = Captured::default();
    for number in 0..count {
        let begins = started + interval * number;
        tokio::select! {
            () = sleep_until(begins) => {}
            _ = ctrl_c() => {
                context.printer.err("Interrupted: writing the captures so far");
                break;
            }
        }
        let one = capture(context, args, &format!("captures/{number:04}/")).await;
        context
            .printer
            .err(&format!("Captured {} of {count}", number + 1));
        all.parts.extend(one.parts);
        all.times.extend(one.times);
        all.cluster = one.cluster;
    }
    all
}

fn now(context: &Context) -> Zoned {
    let time = Timestamp::from_nanosecond(i128::from(context.clock.now()));
    time.unwrap_or(Timestamp::MAX).to_zoned(TimeZone::UTC)
}

fn manifest(parts: &[Part], time: &str, gateway: &str) -> Value {
    let missing = parts.iter().filter_map(|part| {
        let problem = part.content.as_ref().err()?;
        Some((part.name.clone(), Value::from(problem.as_str())))
    });
    let files = parts.iter().filter(|part| part.content.is_ok());
    json!({
        "CommandVersion": env!("CARGO_PKG_VERSION"),
        "Time": time,
        "Gateway": gateway,
        "Files": files.map(|part| part.name.as_str()).collect::<Vec<_>>(),
        "Missing": missing.collect::<serde_json::Map<_, _>>(),
    })
}
