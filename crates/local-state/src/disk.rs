//! The database file: open, read, write, and set aside a broken one.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};
use tracing::warn;

use crate::queue::Pending;
use crate::records::Restored;

/// Key → JSON.
const TABLE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("state");
/// Timeout for another, just ending agent to release the database.
const OPEN_LIMIT: Duration = Duration::from_secs(5);
/// A key that never exists.
const PROBE: &str = "probe/";
const OPEN_PAUSE: Duration = Duration::from_millis(100);

/// An unusable database.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unusable {
    #[error(transparent)]
    Error(#[from] redb::Error),
    /// The content of the file is inconsistent in a way that the library does not handle.
    #[error("the database panicked: {0}")]
    Panic(String),
    #[error("cannot start the thread that checks it")]
    Thread(#[source] io::Error),
}

impl Unusable {
    /// Returns whether the file may be intact and the error is the disk's or the system's.
    pub(crate) fn is_transient(&self) -> bool {
        use io::ErrorKind::{
            PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull, WouldBlock,
        };
        // Too many open files, of the process or of the machine; these have no `ErrorKind`.
        const EMFILE: i32 = nix::errno::Errno::EMFILE as i32;
        const ENFILE: i32 = nix::errno::Errno::ENFILE as i32;
        let is_out_of_files =
            |error: &io::Error| matches!(error.raw_os_error(), Some(EMFILE | ENFILE));
        match self {
            Self::Error(redb::Error::Io(error)) => {
                let kinds = [
                    PermissionDenied,
                    QuotaExceeded,
                    ReadOnlyFilesystem,
                    StorageFull,
                    WouldBlock,
                ];
                kinds.contains(&error.kind()) || is_out_of_files(error)
            }
            Self::Error(_) | Self::Panic(_) => false,
            Self::Thread(_) => true,
        }
    }
}

/// Opens the database and reads every record, in a thread of its own, because a damaged file can
/// make redb panic.
pub(crate) fn open_and_read(path: &Path) -> Result<(Database, Restored), Unusable> {
    let path = path.to_owned();
    let opening = thread::Builder::new()
        .name("local-state-open".to_owned())
        .spawn(move || {
            // Not dropped by a panic: dropping may panic again and abort the process.
            let mut database = ManuallyDrop::new(open(&path)?);
            let found = check_and_read(&mut database);
            let database = ManuallyDrop::into_inner(database);
            Ok((database, found?))
        })
        .map_err(Unusable::Thread)?;
    opening.join().unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(Unusable::Panic(text.unwrap_or_default().to_owned()))
    })
}

/// Checks the integrity, reads every record, and probes a write.
fn check_and_read(database: &mut Database) -> Result<Restored, redb::Error> {
    if !database.check_integrity()? {
        warn!("the local state was damaged and has been repaired");
    }
    let restored = read_all(database)?;
    match commit(database, &BTreeMap::from([(PROBE.to_owned(), None)])) {
        // The writer retries.
        Err(error) if is_disk_error(&error) => warn!(%error, "cannot write the local state"),
        written => written?,
    }
    Ok(restored)
}

/// Opens the database; waits briefly for an agent that is just ending.
pub(crate) fn open(path: &Path) -> Result<Database, redb::Error> {
    let mut waited = Duration::ZERO;
    loop {
        match Database::create(path) {
            Err(DatabaseError::DatabaseAlreadyOpen) if waited < OPEN_LIMIT => {
                thread::sleep(OPEN_PAUSE);
                waited += OPEN_PAUSE;
            }
            opened => return Ok(opened?),
        }
    }
}

pub(crate) fn read_all(database: &Database) -> Result<Restored, redb::Error> {
    let mut restored = Restored::default();
    let reading = database.begin_read()?;
    let table = match reading.open_table(TABLE) {
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(restored),
        table => table?,
    };
    for row in table.iter()? {
        let (key, value) = row?;
        restored.add(key.value(), value.value());
    }
    Ok(restored)
}

pub(crate) fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let mut number = 0;
    loop {
        let aside = path.with_extension(format!("broken-{number}"));
        if !aside.exists() {
            fs::rename(path, &aside)?;
            return Ok(aside);
        }
        number += 1;
    }
}

/// Returns whether an error is the disk's, and so possibly temporary, not the content's.
pub(crate) fn is_disk_error(error: &redb::Error) -> bool {
    match error {
        redb::Error::Io(error) => !matches!(
            error.kind(),
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
        ),
        redb::Error::PreviousIo => true,
        _ => false,
    }
}

pub(crate) fn commit(database: &Database, pending: &Pending) -> Result<(), redb::Error> {
    if pending.is_empty() {
        return Ok(());
    }
    let writing = database.begin_write()?;
    {
        let mut table = writing.open_table(TABLE)?;
        for (key, value) in pending {
            match value {
                Some(value) => drop(table.insert(key.as_str(), value.as_slice())?),
                None => drop(table.remove(key.as_str())?),
            }
        }
    }
    writing.commit()?;
    Ok(())
}
