//! Pseudo terminals of commands.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::unix::AsyncFd;

use crate::command::TerminalSize;

/// The character that ends the input of a program that reads lines: Ctrl-D.
const END_OF_INPUT: [u8; 1] = [4];

/// The agent's end of a pseudo terminal.
#[derive(Debug)]
pub(crate) struct Terminal {
    master: AsyncFd<OwnedFd>,
}

impl Terminal {
    /// Opens a terminal; returns the command's end as well.
    pub(crate) fn open(size: TerminalSize) -> io::Result<(Self, File)> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let name = ptsname(&master, Vec::new())?;
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(name.as_bytes()));
        let slave = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(OFlags::NOCTTY.bits().cast_signed())
            .open(path)?;
        fcntl_setfl(&master, fcntl_getfl(&master)? | OFlags::NONBLOCK)?;
        #[expect(
            unsafe_code,
            reason = "registering a descriptor is unsafe for dishonest types' sake"
        )]
        // SAFETY: an `OwnedFd` names the same open descriptor for as long as it lives.
        let master = unsafe { AsyncFd::register(master) }?;
        let terminal = Self { master };
        terminal.resize(size)?;
        Ok((terminal, slave))
    }

    pub(crate) fn resize(&self, size: TerminalSize) -> io::Result<()> {
        let size = Winsize {
            ws_row: size.rows,
            ws_col: size.columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        Ok(tcsetwinsize(&self.master, size)?)
    }

    /// Reads output; 0: no process has the terminal open any more.
    pub(crate) async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut ready = self.master.readable().await?;
            let read = ready.try_io(|master| Ok(rustix::io::read(master, &mut *buffer)?));
            match read {
                Ok(Err(error)) if is_hang_up(&error) => return Ok(0),
                Ok(read) => return read,
                Err(_would_block) => {}
            }
        }
    }

    pub(crate) async fn write_all(&self, mut data: &[u8]) -> io::Result<()> {
        while !data.is_empty() {
            let mut ready = self.master.writable().await?;
            if let Ok(written) = ready.try_io(|master| Ok(rustix::io::write(master, data)?)) {
                data = &data[written?..];
            }
        }
        Ok(())
    }

    pub(crate) async fn end_input(&self) -> io::Result<()> {
        self.write_all(&END_OF_INPUT).await
    }
}

/// Returns whether the error is that of a terminal which no process has open.
fn is_hang_up(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error())
}
