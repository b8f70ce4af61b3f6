//! Job files and job specs to canonical, validated jobs.
//!
//! Two steps, each a pure function:
//!
//! 1. [`parse()`] turns a job file (HCL2, HCL's JSON syntax, or the JSON of the HTTP API) into a
//!    [`job_fields::Job`], in which everything is optional. Its errors point at a line and column.
//! 2. [`canonicalise`] turns a spec, wherever it comes from, into a [`model::Job`]: defaults filled
//!    in, everything checked, all errors at once. Its errors name fields, and
//!    [`Places::locate`] points them at lines again when the spec came from a file.
//!
//! In reading order: `parse` is the way through the crate; `schema` says which blocks and
//! attributes there are, and the crate [`hcl`] reads a file by it; `api_json` reads the JSON of the
//! HTTP API by the same tables; `canonical` fills in defaults and checks.
//!
//! Nothing here reads files, the environment or the clock: [`Inputs`] carries what a job file may
//! look at. What needs the cluster's state is left to the gateway.

mod api_json;
mod canonical;
mod parse;
mod places;
mod schema;

pub use canonical::{CanonicalJob, MAX_TOTAL_COUNT, canonicalise};
pub use hcl::{Colour, Files, Inputs, ParseError, ParseErrors};
pub use parse::{MAX_TEXT_BYTES, Parsed, parse, parse_api_json};
pub use places::Places;
