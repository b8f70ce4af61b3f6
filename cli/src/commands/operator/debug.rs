//! `kafila operator debug`: an archive for bug reports.
//!
//! [`cluster`] describes the cluster from the gateway's answers, [`local`] reads files and metrics,
//! [`redact`] removes secrets, [`archive`] writes the result. A part that fails is named in the manifest.

mod archive;
mod cluster;
mod local;
mod part;
mod redact;

use std::path::PathBuf;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use self::part::Part;
use crate::args::operator::debug::Debug;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::json::pretty;

pub(crate) async fn run(context: &Context, args: &Debug) -> Result<Exit, Error> {
    let time = Timestamp::from_nanosecond(i128::from(context.clock.now()));
    let time = time.unwrap_or(Timestamp::MAX).to_zoned(TimeZone::UTC);
    let folder = format!("kafila-debug-{}", time.strftime("%Y%m%dT%H%M%SZ"));
    let path = match &args.output {
        Some(path) => path.clone(),
        None => PathBuf::from(format!("{folder}.tar.gz")),
    };
    let mut parts = cluster::parts(&context.connection).await;
    for address in &args.metrics {
        parts.push(local::metrics(address).await);
    }
    parts.extend(args.log_files.iter().map(|file| local::log(file)));
    parts.extend(args.config_files.iter().map(|file| local::config(file)));
    let manifest = manifest(&parts, &time.to_string(), &context.connection.address().url);
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
    context.finish(&format!("Created debug archive: {}", path.display()))
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
