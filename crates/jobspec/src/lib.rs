//! Job files and job specs to canonical, validated jobs.
//!
//! Two steps, each a pure function:
//!
//! 1. [`parse()`] turns a job file (HCL2, HCL's JSON syntax, or the JSON of the HTTP API) into a
//!    [`model::spec::Job`], in which everything is optional. Its errors point at a line and column.
//! 2. [`canonicalise`] turns a spec, wherever it comes from, into a [`model::Job`]: defaults filled
//!    in, everything checked, all errors at once. Its errors name fields, and
//!    [`Places::locate`] points them at lines again when the spec came from a file.
//!
//! In reading order: `parse` is the way through the crate; `document` is a file as blocks and
//! attributes, `language` gives expressions their values, `variables` are inputs and locals;
//! `schema` says which blocks and attributes there are, `expand` reads a file by it;
//! `canonical` fills in defaults and checks; `report` shows what is wrong.
//!
//! Nothing here reads files, the environment or the clock: [`Inputs`] carries what a job file may
//! look at. What needs the cluster's state is left to the gateway.

mod api_json;
mod canonical;
mod collector;
mod document;
mod expand;
mod inputs;
mod language;
mod parse;
mod places;
mod report;
mod schema;
mod source;
mod suggest;
mod variables;

pub use canonical::{Admitted, MAX_TOTAL_COUNT, canonicalise};
pub use inputs::{Inputs, ReadFile};
pub use model::duration::{InvalidDuration, parse_duration};
pub use parse::{MAX_TEXT_BYTES, Parsed, parse, parse_api_json};
pub use places::Places;
pub use report::{Colour, ParseError, ParseErrors};
