//! Example files, as `node pool init` and `volume init` write them.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

/// Writes a new file and, unless `quiet`, prints its path; `noun` names the object of the example.
pub(super) fn write(
    context: &Context,
    path: &Path,
    (noun, text): (&str, &str),
    quiet: bool,
) -> Result<Exit, Error> {
    write_new(path, text).map_err(|error| {
        let path = path.display();
        Error::text(match error.kind() {
            ErrorKind::AlreadyExists => {
                format!("File \"{path}\" already exists. Choose another name, or remove the file.")
            }
            _ => format!("Error writing \"{path}\": {error}"),
        })
    })?;
    if !quiet {
        let path = path.display();
        let message = format!("Example {noun} specification written to {path}");
        context.printer.out(&message)?;
    }
    Ok(Exit::Success)
}

/// Writes a file that must not exist.
pub(super) fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())
}
