//! The way from the text of a job file to a spec.

mod file;

use std::sync::Arc;

use model::spec::Job;
use serde_json::{Map, Value};

use crate::api_json;
use crate::collector::Collector;
use crate::document::Content;
use crate::document::json::{self, Json, Node};
use crate::inputs::Inputs;
use crate::language::syntax;
use crate::places::Places;
use crate::report::ParseErrors;
use crate::source::{Fault, Source};

/// The longest job file. A job is written twice, as itself and as its version, in one transaction
/// of the store, which holds 1 MiB.
pub const MAX_TEXT_BYTES: usize = 512 << 10;

/// A job file that could be read.
#[derive(Clone, Debug)]
pub struct Parsed {
    pub job: Job,
    /// What is legal but probably not meant, a sentence each.
    pub warnings: Vec<String>,
    /// Where each field stands, to point errors of [`crate::canonicalise`] at lines.
    pub places: Places,
}

/// Reads a job file: HCL2, or JSON when the first byte that is not blank is `{`.
///
/// JSON is the HTTP API's (`{"Job": {…}}` or the job alone) unless its top level has the blocks of
/// a job file (`job`, `variable`, `variables`, `locals`): then it is HCL's JSON syntax.
/// `file` is for messages only. Nothing is checked beyond what the file itself says; that is
/// [`crate::canonicalise`]'s part.
///
/// # Errors
/// Everything wrong with the text, each with its place; of a syntax error only the first.
pub fn parse(file: &str, text: &str, inputs: &Inputs) -> Result<Parsed, ParseErrors> {
    let mut out = start(file, text)?;
    let map = if text.trim_start().starts_with('{') {
        read_json(text, inputs, &mut out)
    } else {
        read_hcl(text, inputs, &mut out)
    };
    finish(map, out)
}

/// Reads a job in the JSON of the HTTP API, and nothing else.
///
/// # Errors
/// As for [`parse`].
pub fn parse_api_json(file: &str, text: &str) -> Result<Parsed, ParseErrors> {
    let mut out = start(file, text)?;
    let map = match json::read(text) {
        Ok(json) => api_json::job(&json, &mut out),
        Err(fault) => failed(fault, &mut out),
    };
    finish(map, out)
}

fn start(file: &str, text: &str) -> Result<Collector, ParseErrors> {
    if text.len() > MAX_TEXT_BYTES {
        let head = Source::new(file, text.lines().next().unwrap_or_default());
        let detail = format!(
            "the file has {} bytes, more than {MAX_TEXT_BYTES}: keep data out of the job file",
            text.len(),
        );
        return Err(ParseErrors(vec![head.error(Fault::new(
            0..1,
            "File too large",
            detail,
        ))]));
    }
    Ok(Collector::new(Arc::new(Source::new(file, text))))
}

fn read_hcl(text: &str, inputs: &Inputs, out: &mut Collector) -> Map<String, Value> {
    match syntax::body(text) {
        Ok(body) => file::job(Content::Hcl(&body), inputs, out),
        Err(fault) => failed(fault, out),
    }
}

fn read_json(text: &str, inputs: &Inputs, out: &mut Collector) -> Map<String, Value> {
    match json::read(text) {
        Ok(json) if is_job_file(&json) => file::job(Content::Json(&json), inputs, out),
        Ok(json) => api_json::job(&json, out),
        Err(fault) => failed(fault, out),
    }
}

fn failed(fault: Fault, out: &mut Collector) -> Map<String, Value> {
    out.fault(fault);
    Map::new()
}

/// Tells HCL's JSON syntax from the API's JSON, whose keys begin with capitals.
fn is_job_file(json: &Json) -> bool {
    match &json.node {
        Node::Object(entries) => entries
            .iter()
            .any(|(key, _)| file::BLOCKS.contains(&key.name.as_str())),
        _ => false,
    }
}

/// Makes the spec of an object with the API's keys, unless something was wrong with it.
fn finish(job: Map<String, Value>, mut out: Collector) -> Result<Parsed, ParseErrors> {
    if out.has_errors() {
        return Err(out.into_errors());
    }
    match serde_json::from_value::<Job>(Value::Object(job)) {
        Ok(job) => {
            let (warnings, places) = out.into_places();
            Ok(Parsed {
                job,
                warnings,
                places,
            })
        }
        Err(error) => {
            // The schema has converted every value, so this says that the schema is wrong.
            out.fault(Fault::new(0..1, "Failed to parse job", error.to_string()));
            Err(out.into_errors())
        }
    }
}
