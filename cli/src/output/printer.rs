//! Standard output for results, standard error for messages.

use std::io::{self, IsTerminal as _, Write};

use super::colour::{Colour, Preference};
use crate::error::Error;

/// The output streams of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Printer {
    pub(crate) colour: Colour,
    pub(crate) colour_err: Colour,
    /// Standard output is a terminal, so lines can be redrawn.
    pub(crate) is_terminal: bool,
}

impl Printer {
    pub(crate) fn new(preference: Preference) -> Self {
        let is_terminal = io::stdout().is_terminal();
        Self {
            colour: Colour::choose(preference, is_terminal),
            colour_err: Colour::choose(preference, io::stderr().is_terminal()),
            is_terminal,
        }
    }

    /// Writes a result, with a final newline.
    ///
    /// # Errors
    /// Standard output is closed or full.
    pub(crate) fn out(&self, text: &str) -> Result<(), Error> {
        write(&mut io::stdout().lock(), text).map_err(Error::Output)
    }

    /// Writes bytes as they are.
    ///
    /// # Errors
    /// Standard output is closed or full.
    pub(crate) fn out_bytes(&self, bytes: &[u8]) -> Result<(), Error> {
        let mut stdout = io::stdout().lock();
        stdout
            .write_all(bytes)
            .and_then(|()| stdout.flush())
            .map_err(Error::Output)
    }

    /// Writes bytes to standard error as they are.
    pub(crate) fn err_bytes(&self, bytes: &[u8]) {
        // There is no other channel for this error.
        let _ = io::stderr().lock().write_all(bytes);
    }

    /// Writes an error, warning or hint.
    pub(crate) fn err(&self, text: &str) {
        // There is no other channel for this error.
        let _ = write(&mut io::stderr().lock(), text);
    }
}

fn write(to: &mut impl Write, text: &str) -> io::Result<()> {
    to.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        to.write_all(b"\n")?;
    }
    to.flush()
}
