//! The user's terminal in a session with a command: without line editing and signals of its own.

use std::io;

use proto::v1;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// The terminal in raw mode; dropping it restores its mode.
pub(super) struct RawMode {
    before: Termios,
}

impl RawMode {
    pub(super) fn enter() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        Ok(Self { before })
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // A terminal that is gone has no mode.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// Returns the size of the user's terminal; zeros if standard output is none.
pub(super) fn size() -> v1::TerminalSize {
    let found = tcgetwinsize(io::stdout()).ok();
    found.map_or_else(v1::TerminalSize::default, |size| v1::TerminalSize {
        rows: u32::from(size.ws_row),
        columns: u32::from(size.ws_col),
    })
}
