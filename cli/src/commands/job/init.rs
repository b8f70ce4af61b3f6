//! `kafila job init`: writes an example job file. Calls no gateway.

use std::io::ErrorKind;
use std::path::Path;

use crate::args::job::Init;
use crate::commands::example;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

/// Source: Nomad's default.
const DEFAULT_PATH: &str = "example.nomad.hcl";

const LONG: &str = include_str!("../../examples/job.hcl");
const SHORT: &str = include_str!("../../examples/job-short.hcl");

pub(crate) fn run(context: &Context, args: &Init) -> Result<Exit, Error> {
    let path = args.path.as_deref().unwrap_or(Path::new(DEFAULT_PATH));
    let text = if args.short { SHORT } else { LONG };
    let shown = path.display();
    example::write_new(path, text).map_err(|error| {
        Error::text(match error.kind() {
            // The first sentence is Nomad's.
            ErrorKind::AlreadyExists => format!(
                "Job '{shown}' already exists. Name another file, as in 'kafila job init web.hcl', or \
                 remove it."
            ),
            _ => format!("Failed to write '{shown}': {error}"),
        })
    })?;
    context.finish(&format!("Example job file written to {shown}"))
}
