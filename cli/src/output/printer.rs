//! Standard output and standard error: results go to one, everything about them to the other.

use std::io::{self, IsTerminal as _, Write};

use super::colour::{Colour, Wishes};
use crate::error::Error;

/// Where a command writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Printer {
    pub(crate) colour: Colour,
    pub(crate) colour_err: Colour,
    /// Standard output is a terminal, so lines may be drawn over.
    pub(crate) is_terminal: bool,
}

impl Printer {
    pub(crate) fn new(wishes: Wishes) -> Self {
        let is_terminal = io::stdout().is_terminal();
        Self {
            colour: Colour::choose(wishes, is_terminal),
            colour_err: Colour::choose(wishes, io::stderr().is_terminal()),
            is_terminal,
        }
    }

    /// Writes a result, with a newline where it has none.
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
        // Nobody is left to tell.
        let _ = io::stderr().lock().write_all(bytes);
    }

    /// Writes an error, a warning or a remark.
    pub(crate) fn err(&self, text: &str) {
        // Nobody is left to tell.
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
