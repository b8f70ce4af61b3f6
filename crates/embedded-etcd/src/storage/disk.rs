//! The store in one `redb` file.
//!
//! Tables: `records` (main, sub) → [`codec::encode_record`]; `leases` id → [`codec::encode_lease`];
//! `meta` name → number. One batch of changes is one redb transaction, so a crash leaves all or
//! nothing of it. Everything is read once, when the file is opened.

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use redb::{
    Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction,
};

use super::{
    change::{Change, Contents},
    codec,
};
use crate::{
    config::Durability,
    error::{Corruption, Error},
    mvcc::NEVER_COMPACTED,
    record::Revision,
};

const RECORDS: TableDefinition<'_, (i64, i64), &[u8]> = TableDefinition::new("records");
const LEASES: TableDefinition<'_, i64, &[u8]> = TableDefinition::new("leases");
const META: TableDefinition<'_, &str, i64> = TableDefinition::new("meta");

const META_FORMAT: &str = "format";
const META_OPENED: &str = "opened";
const META_COMPACT_REVISION: &str = "compact_revision";

/// The version of the tables' format; a changed format gets a new number.
const FORMAT: i64 = 1;

/// Memory redb may use for pages. Values are read from it only at open, so it needs room for the
/// inner pages of the trees only: 1 % of a file of 3 GiB.
const CACHE_BYTES: usize = 32 * 1024 * 1024;

/// An open file.
#[derive(Debug)]
pub struct Disk {
    database: Database,
    path: PathBuf,
    durability: Durability,
    /// True if commits since the last sync could be lost.
    unflushed: AtomicBool,
}

impl Disk {
    /// Opens or creates the file at `path`, and reads its contents.
    ///
    /// # Errors
    /// [`Error::Storage`] if it cannot be opened or is in use, [`Error::Corrupt`] if its contents
    /// cannot be decoded.
    pub fn open(path: &Path, durability: Durability) -> Result<(Self, Contents), Error> {
        let database = Database::builder()
            .set_cache_size(CACHE_BYTES)
            .create(path)
            .map_err(|error| match error {
                DatabaseError::DatabaseAlreadyOpen => Error::InUse {
                    path: path.to_path_buf(),
                },
                error => storage_error("open", path, error),
            })?;
        let disk = Self {
            database,
            path: path.to_path_buf(),
            durability,
            unflushed: AtomicBool::new(false),
        };
        let opened = disk
            .count_opening()
            .map_err(|error| storage_error("write", path, error))??;
        let contents = disk
            .read(opened)
            .map_err(|error| storage_error("read", path, error))??;
        Ok((disk, contents))
    }

    /// Stores `changes` in one transaction.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub fn commit(&self, changes: &[Change]) -> Result<(), Error> {
        self.try_commit(changes)
            .map_err(|error| storage_error("write", &self.path, error))
    }

    /// Syncs commits that were made without a sync.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub fn flush(&self) -> Result<(), Error> {
        if !self.unflushed.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let sync = || -> Result<(), redb::Error> {
            // An empty commit syncs those before it.
            let mut transaction = self.database.begin_write()?;
            transaction.set_durability(redb::Durability::Immediate)?;
            transaction.commit()?;
            Ok(())
        };
        sync().map_err(|error| storage_error("sync", &self.path, error))
    }

    #[must_use]
    pub fn needs_flush(&self) -> bool {
        self.unflushed.load(Ordering::Acquire)
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        std::fs::metadata(&self.path)
            .ok()
            .map(|metadata| metadata.len())
    }

    fn try_commit(&self, changes: &[Change]) -> Result<(), redb::Error> {
        let mut transaction = self.database.begin_write()?;
        if self.durability == Durability::None {
            transaction.set_durability(redb::Durability::None)?;
        }
        write_changes(&transaction, changes)?;
        transaction.commit()?;
        if self.durability == Durability::None {
            self.unflushed.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Checks the format and notes that the file was opened once more.
    fn count_opening(&self) -> Result<Result<u64, Error>, redb::Error> {
        let transaction = self.database.begin_write()?;
        let opened = {
            let mut meta = transaction.open_table(META)?;
            let format = meta.get(META_FORMAT)?.map(|found| found.value());
            match format {
                None => {
                    meta.insert(META_FORMAT, FORMAT)?;
                }
                Some(FORMAT) => {}
                Some(found) => {
                    return Ok(Err(self.corrupt(Corruption::Version {
                        found,
                        expected: FORMAT,
                    })));
                }
            }
            let before = meta.get(META_OPENED)?.map_or(0, |found| found.value());
            let Ok(opened) = u64::try_from(before.saturating_add(1)) else {
                return Ok(Err(self.corrupt(Corruption::Meta {
                    key: META_OPENED,
                    fault: "is negative",
                })));
            };
            meta.insert(META_OPENED, before.saturating_add(1))?;
            // So that reading finds them in a new file.
            transaction.open_table(RECORDS)?;
            transaction.open_table(LEASES)?;
            opened
        };
        transaction.commit()?;
        Ok(Ok(opened))
    }

    fn read(&self, opened: u64) -> Result<Result<Contents, Error>, redb::Error> {
        let transaction = self.database.begin_read()?;
        let mut contents = Contents {
            records: Vec::new(),
            leases: Vec::new(),
            compact_revision: NEVER_COMPACTED,
            opened,
        };
        for entry in transaction.open_table(RECORDS)?.iter()? {
            let (key, value) = entry?;
            let (main, sub) = key.value();
            match codec::decode_record(Revision { main, sub }, value.value()) {
                Ok(record) => contents.records.push(record),
                Err(what) => return Ok(Err(self.corrupt(what))),
            }
        }
        for entry in transaction.open_table(LEASES)?.iter()? {
            let (id, value) = entry?;
            match codec::decode_lease(id.value(), value.value()) {
                Ok(ttl) => contents.leases.push((id.value(), ttl)),
                Err(what) => return Ok(Err(self.corrupt(what))),
            }
        }
        let meta = transaction.open_table(META)?;
        if let Some(found) = meta.get(META_COMPACT_REVISION)? {
            match codec::decode_compact_revision(found.value()) {
                Ok(revision) => contents.compact_revision = revision,
                Err(what) => return Ok(Err(self.corrupt(what))),
            }
        }
        Ok(Ok(contents))
    }

    /// Names the file that `what` was found in.
    #[must_use]
    pub fn corrupt(&self, what: Corruption) -> Error {
        Error::Corrupt {
            path: self.path.clone(),
            what,
        }
    }
}

fn write_changes(transaction: &WriteTransaction, changes: &[Change]) -> Result<(), redb::Error> {
    let mut records = transaction.open_table(RECORDS)?;
    let mut leases = transaction.open_table(LEASES)?;
    for change in changes {
        match change {
            Change::Write(record) => {
                let key = (record.revision.main, record.revision.sub);
                records.insert(key, codec::encode_record(record).as_slice())?;
            }
            Change::Drop(revision) => {
                records.remove((revision.main, revision.sub))?;
            }
            Change::Compact { revision } => {
                let mut meta = transaction.open_table(META)?;
                meta.insert(META_COMPACT_REVISION, *revision)?;
            }
            Change::Grant { id, ttl } => {
                leases.insert(id, codec::encode_lease(*ttl).as_slice())?;
            }
            Change::Revoke { id } => {
                leases.remove(id)?;
            }
        }
    }
    Ok(())
}

fn storage_error(action: &'static str, path: &Path, error: impl Into<redb::Error>) -> Error {
    Error::Storage {
        action,
        path: path.to_path_buf(),
        source: Box::new(error.into()),
    }
}
