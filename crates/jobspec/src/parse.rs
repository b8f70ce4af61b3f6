//! Parsing: from the text of a job file to a spec.

use hcl::collector::Collector;
use hcl::json;
use hcl::source::Fault;
use hcl::{Inputs, ParseErrors, file};
use job_fields::Job;
use serde_json::{Map, Value};

use crate::api_json;
use crate::places::Places;
use crate::schema::JOB;

/// The longest job file. A job is written twice, as itself and as its version, in one transaction
/// of the store, which holds 1 MiB.
pub const MAX_TEXT_BYTES: usize = 512 << 10;

/// A job file that could be read.
#[derive(Clone, Debug)]
pub struct Parsed {
    pub job: Job,
    /// Legal but probably unintended, a sentence each.
    pub warnings: Vec<String>,
    /// Positions of the fields, to point errors of [`crate::canonicalise`] at lines.
    pub places: Places,
}

/// Reads a job file: HCL2, or JSON when the first byte that is not blank is `{`.
///
/// JSON is the HTTP API's (`{"Job": {…}}` or the job alone) unless its top level has the blocks of
/// a job file (`job`, `variable`, `variables`, `locals`): then it is HCL's JSON syntax.
/// `name` is the name of the file in messages. Nothing is checked beyond what the file itself says; that is
/// [`crate::canonicalise`]'s part.
///
/// # Errors
/// Everything wrong with the text, each with its place; of a syntax error only the first.
pub fn parse(name: &str, text: &str, inputs: &Inputs) -> Result<Parsed, ParseErrors> {
    let mut out = Collector::open(name, text, MAX_TEXT_BYTES)?;
    let map = if text.trim_start().starts_with('{') {
        read_json(text, inputs, &mut out)
    } else {
        file::read_hcl(&JOB, inputs, &mut out)
    };
    finish(map, out)
}

/// Reads a job in the JSON of the HTTP API, and nothing else.
///
/// # Errors
/// As for [`parse`].
pub fn parse_api_json(name: &str, text: &str) -> Result<Parsed, ParseErrors> {
    let mut out = Collector::open(name, text, MAX_TEXT_BYTES)?;
    let map = match json::read(text) {
        Ok(json) => api_json::job(&json, &mut out),
        Err(fault) => failed(fault, &mut out),
    };
    finish(map, out)
}

fn read_json(text: &str, inputs: &Inputs, out: &mut Collector) -> Map<String, Value> {
    match json::read(text) {
        Ok(json) if file::is_hcl_json(&json, &JOB) => file::read_json(&json, &JOB, inputs, out),
        Ok(json) => api_json::job(&json, out),
        Err(fault) => failed(fault, out),
    }
}

fn failed(fault: Fault, out: &mut Collector) -> Map<String, Value> {
    out.fault(fault);
    Map::new()
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
                places: Places::new(places),
            })
        }
        Err(error) => {
            // The schema has converted every value; left are integers beyond a double's and the like.
            out.fault(Fault::new(0..1, "Failed to parse job", error.to_string()));
            Err(out.into_errors())
        }
    }
}
