//! The database file: opened, read, written; put aside when it cannot be.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use model::AllocId;
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};
use tracing::warn;

use super::writer::Pending;
use super::{Restored, decode};

/// Key → JSON.
const TABLE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("state");
/// How long another agent that is just ending may hold the database.
const OPEN_LIMIT: Duration = Duration::from_secs(5);
const OPEN_PAUSE: Duration = Duration::from_millis(100);

pub(super) fn open_and_read(path: &Path) -> Result<(Database, Restored), redb::Error> {
    let database = open(path)?;
    let restored = read_all(&database)?;
    Ok((database, restored))
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
        let (key, value) = (key.value(), value.value());
        let Some((kind, id)) = key.split_once('/') else {
            restored.node = decode(key, value).unwrap_or_default();
            continue;
        };
        let Ok(id) = id.parse::<AllocId>() else {
            warn!(key, "the local state has a key that names no allocation");
            continue;
        };
        let stored = restored.allocs.entry(id).or_default();
        match kind {
            "alloc" => stored.alloc = Some(value.to_vec()),
            "runner" => stored.runner = Some(value.to_vec()),
            "acked" => stored.acked = decode(key, value),
            _ => warn!(key, "the local state has a key of another version"),
        }
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
