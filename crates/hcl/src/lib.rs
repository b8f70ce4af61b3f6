//! HCL files: the language, its values, and blocks read by a schema, with errors at their place.
//!
//! In reading order: `source` is a text with line positions, and `report` an error in it. `document`
//! presents a file as blocks and attributes, in HCL or in HCL's JSON syntax; `language` evaluates
//! expressions; `variables` has inputs and locals. `schema` declares blocks and attributes, and
//! `expand` reads blocks by it. `file` reads files with variables, such as job files; `settings`
//! reads files without.
//!
//! Pure: [`Inputs`] carries variables, environment and file access. The crate `jobspec` has the
//! schema of job files.

pub mod collector;
mod document;
mod expand;
pub mod file;
mod inputs;
mod language;
mod places;
pub mod regexp;
mod report;
pub mod schema;
pub mod settings;
pub mod source;
mod variables;

pub use document::json;
pub use inputs::{Files, Inputs};
pub use language::functions::names as function_names;
pub use places::Places;
pub use report::{Colour, ParseError, ParseErrors};
