//! The database file: opened, read, written; put aside when it cannot be.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};
use tracing::warn;

use super::Restored;
use super::writer::Pending;

/// Key → JSON.
const TABLE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("state");
/// How long another agent that is just ending may hold the database.
const OPEN_LIMIT: Duration = Duration::from_secs(5);
/// A key that is never there.
const PROBE: &str = "probe/";
const OPEN_PAUSE: Duration = Duration::from_millis(100);

/// Why a database cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unusable {
    #[error(transparent)]
    Error(#[from] redb::Error),
    /// What is in the file contradicts itself, and nobody had expected that.
    #[error("the database panicked: {0}")]
    Panic(String),
    #[error("cannot start the thread that looks at it")]
    Thread(#[source] io::Error),
}

impl Unusable {
    /// Tells whether the file may be whole, and only its disk or the system refuses.
    pub(super) fn may_pass(&self) -> bool {
        use io::ErrorKind::{
            PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull, WouldBlock,
        };
        // Too many open files, of the process or of the machine; they have no kind.
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

/// Opens the database, and reads everything in it once. In a thread of its own, because a damaged
/// file can make redb panic.
pub(super) fn open_and_read(path: &Path) -> Result<(Database, Restored), Unusable> {
    let path = path.to_owned();
    let looking = thread::Builder::new()
        .name("local-state-open".to_owned())
        .spawn(move || {
            // Not dropped by a panic: what panics once may again, and that would be the end.
            let mut database = ManuallyDrop::new(open(&path)?);
            let found = look_through(&mut database);
            let database = ManuallyDrop::into_inner(database);
            Ok((database, found?))
        })
        .map_err(Unusable::Thread)?;
    looking.join().unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(Unusable::Panic(text.unwrap_or_default().to_owned()))
    })
}

/// Checks and reads everything, and tries whether it can be written to.
fn look_through(database: &mut Database) -> Result<Restored, redb::Error> {
    if !database.check_integrity()? {
        warn!("the local state was damaged and has been repaired");
    }
    let restored = read_all(database)?;
    match commit(database, &BTreeMap::from([(PROBE.to_owned(), None)])) {
        // The writer tries again.
        Err(error) if is_of_the_disk(&error) => warn!(%error, "cannot write the local state"),
        written => written?,
    }
    Ok(restored)
}

/// Opens the database, waiting a little for an agent that is just ending.
pub(super) fn open(path: &Path) -> Result<Database, redb::Error> {
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

pub(super) fn read_all(database: &Database) -> Result<Restored, redb::Error> {
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

pub(super) fn put_aside(path: &Path) -> io::Result<PathBuf> {
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

/// Tells whether an error is about the disk, which may pass, and not about what is in the file.
pub(super) fn is_of_the_disk(error: &redb::Error) -> bool {
    match error {
        redb::Error::Io(error) => !matches!(
            error.kind(),
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
        ),
        redb::Error::PreviousIo => true,
        _ => false,
    }
}

pub(super) fn commit(database: &Database, pending: &Pending) -> Result<(), redb::Error> {
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
