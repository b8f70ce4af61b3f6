//! Files that describe one object: a node pool, a namespace or a volume.
//!
//! The schema turns HCL into the object of the HTTP API, so both forms meet in one serde type.

use std::path::Path;
use std::sync::Arc;

use hcl::schema::Schema;
use hcl::settings::Layout;
use jobspec::MAX_TEXT_BYTES;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::diagnostic;
use super::local::LocalFiles;
use super::text::{is_json, name_of, shown, text_of};
use crate::error::Error;
use crate::output::colour::Colour;

/// An object of the HTTP API that a file describes.
pub(super) trait Described: DeserializeOwned {
    /// The message of the RPC.
    type Message;

    /// The object's name in messages.
    const NOUN: &'static str;
    const SCHEMA: &'static Schema;
    const LAYOUT: Layout;

    /// # Errors
    /// A field has a value that this version does not support.
    fn into_message(self) -> Result<Self::Message, String>;
}

/// Reads the file at `path`, `-` for standard input; `json` refuses HCL.
///
/// # Errors
/// The file cannot be read, or its text is wrong; an HCL text is shown with the place.
pub(super) fn read<T: Described>(
    path: &Path,
    json: bool,
    colour: Colour,
) -> Result<T::Message, Error> {
    let text = text_of(path).map_err(|error| {
        let (noun, path) = (T::NOUN, shown(path));
        Error::text(format!("Error reading {noun} file {path}: {error}"))
    })?;
    read_text::<T>(path, &text, json, colour)
}

/// Reads `text`, the content of the file at `path`; `json` refuses HCL.
///
/// # Errors
/// The text is wrong; an HCL text is shown with the place.
pub(super) fn read_text<T: Described>(
    path: &Path,
    text: &str,
    json: bool,
    colour: Colour,
) -> Result<T::Message, Error> {
    let parsed = if json || is_json(text) {
        from_json::<T>(text)
    } else {
        from_hcl::<T>(&name_of(path), text, colour)
    };
    parsed.map_err(|problem| {
        let (noun, path) = (T::NOUN, shown(path));
        Error::text(format!("Error parsing {noun} file {path}:{problem}"))
    })
}

fn from_json<T: Described>(text: &str) -> Result<T::Message, String> {
    let object: serde_json::Result<T> = serde_json::from_str(text);
    let object = object.map_err(|error| error.to_string());
    object
        .and_then(T::into_message)
        .map_err(|problem| format!(" {problem}"))
}

fn from_hcl<T: Described>(name: &str, text: &str, colour: Colour) -> Result<T::Message, String> {
    let root = (T::SCHEMA, T::LAYOUT);
    let settings = hcl::settings::read(
        (name, text),
        MAX_TEXT_BYTES,
        root,
        Some(Arc::new(LocalFiles)),
    )
    .map_err(|errors| format!("\n{}", diagnostic::errors(&errors, colour)))?;
    // The schema has converted every value, so an error here is a fault of the schema.
    serde_json::from_value(Value::Object(settings.object))
        .map_err(|error| error.to_string())
        .and_then(T::into_message)
        .map_err(|problem| format!(" {problem}"))
}

/// Parses a text of either form.
#[cfg(test)]
pub(super) fn parse<T: Described>(text: &str) -> Result<T::Message, String> {
    if is_json(text) {
        from_json::<T>(text)
    } else {
        from_hcl::<T>("f.hcl", text, Colour::Off)
    }
}
