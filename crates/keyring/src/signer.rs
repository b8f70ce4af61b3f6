//! The keys that sign identity tokens: the file of key-encryption keys, and the active key in memory.
//!
//! Private keys leave this file in no form.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gateway_core::Error;
use model::Timestamp;
use model::refusal::{Kind, Refusal};
use ring::rand::{SecureRandom, SystemRandom};
use state::Snapshot;
use tonic::Code;
use workload_identity::keyring;
use workload_identity::{KeyEncryptionKeys, KeyError, SigningPair};

/// Bytes of a key file: eight keys with comments.
const FILE_MAX: u64 = 16 * 1024;

/// The file of key-encryption keys.
#[derive(Clone, Debug)]
pub struct KeyringFile(pub PathBuf);

/// The file of key-encryption keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyringFileError {
    #[error("cannot read {path}, which `keyring_key_file` names")]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("`keyring_key_file` names {path}, which cannot be used")]
    Unusable {
        path: PathBuf,
        #[source]
        source: KeyError,
    },
}

impl KeyringFile {
    /// Reads the keys. Blocks.
    ///
    /// # Errors
    /// The file cannot be read, or has no keys.
    pub fn read(&self) -> Result<KeyEncryptionKeys, KeyringFileError> {
        let path = || self.0.clone();
        let unreadable = |source| KeyringFileError::Read {
            path: path(),
            source,
        };
        let length = std::fs::metadata(&self.0).map_err(unreadable)?.len();
        if length > FILE_MAX {
            let problem = format!("it has {length} bytes: want at most {FILE_MAX}");
            return Err(unreadable(io::Error::other(problem)));
        }
        let text = std::fs::read_to_string(&self.0).map_err(unreadable)?;
        KeyEncryptionKeys::parse(&text).map_err(|source| KeyringFileError::Unusable {
            path: path(),
            source,
        })
    }
}

/// The reason why a gateway signs nothing.
#[derive(Debug, thiserror::Error)]
enum CannotSign {
    #[error(
        "this gateway has no key: it neither signs identity tokens nor opens variables; set \
         `keyring_key_file` of the api-gateways, as docs/identities.md says"
    )]
    NoFile,
    #[error("the keys that sign identity tokens are being made: try again")]
    NoKeys,
    #[error("the key that signs identity tokens cannot be used")]
    Key(#[source] KeyError),
}

impl Refusal for CannotSign {
    fn kind(&self) -> Kind {
        Kind::Unavailable
    }
}

/// The key-encryption keys and the active key of one gateway.
#[derive(Debug)]
pub struct Signer {
    file: Option<KeyringFile>,
    random: SystemRandom,
    /// As read last; `None`: not read yet.
    keys: Mutex<Option<Arc<KeyEncryptionKeys>>>,
    /// The key that signed last, so that it is not opened for each token.
    active: Mutex<Option<Arc<SigningPair>>>,
}

impl Signer {
    pub(crate) fn new(file: Option<KeyringFile>) -> Self {
        Self {
            file,
            random: SystemRandom::new(),
            keys: Mutex::default(),
            active: Mutex::default(),
        }
    }

    /// Returns the source of randomness of signatures and seals.
    pub fn random(&self) -> &dyn SecureRandom {
        &self.random
    }

    pub(crate) fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Reads the file again, and returns its keys.
    pub(crate) async fn read_file(&self) -> Result<Arc<KeyEncryptionKeys>, Error> {
        let file = self.file.clone();
        let file = file.ok_or_else(|| Error::refused(CannotSign::NoFile))?;
        let read = tokio::task::spawn_blocking(move || file.read()).await;
        let keys = read
            .map_err(|error| Error::new(Code::Internal, error))?
            .map_err(|error| Error::new(Code::Unavailable, error))?;
        let keys = Arc::new(keys);
        *lock(&self.keys) = Some(Arc::clone(&keys));
        Ok(keys)
    }

    /// Returns the keys as they were read last, and reads the file if it was not read yet.
    ///
    /// # Errors
    /// This gateway has no file, or it cannot be used.
    pub(crate) async fn keys(&self) -> Result<Arc<KeyEncryptionKeys>, Error> {
        let known = lock(&self.keys).clone();
        match known {
            Some(keys) => Ok(keys),
            None => self.read_file().await,
        }
    }

    /// Refuses key-encryption keys that are not the cluster's. A store without signing keys accepts any.
    pub(crate) fn check(
        &self,
        snapshot: &Snapshot,
        keys: &KeyEncryptionKeys,
        now: Timestamp,
    ) -> Result<(), Error> {
        let ring = snapshot.keyring();
        let checked = ring.map_or(Ok(()), |ring| keyring::check(&ring.value, keys, now));
        checked.map_err(|source| {
            let path = self.file.as_ref().map(|file| file.0.clone());
            let path = path.unwrap_or_default();
            Error::new(
                Code::Unavailable,
                KeyringFileError::Unusable { path, source },
            )
        })
    }

    /// Returns the name of the key that seals; empty without a usable file.
    pub async fn sealing_key(&self) -> String {
        let keys = self.keys().await;
        keys.map(|keys| keys.current().to_owned())
            .unwrap_or_default()
    }

    /// Returns the key that signs at `now`.
    ///
    /// # Errors
    /// This gateway has no file, or there is no key that it can open.
    pub fn active(&self, snapshot: &Snapshot, now: Timestamp) -> Result<Arc<SigningPair>, Error> {
        if self.file.is_none() {
            return Err(Error::refused(CannotSign::NoFile));
        }
        let key = snapshot.keyring();
        let key = key.and_then(|ring| keyring::active(&ring.value, now));
        let key = key.ok_or_else(|| Error::refused(CannotSign::NoKeys))?;
        if let Some(known) = lock(&self.active).as_ref().filter(|it| it.id() == key.id) {
            return Ok(Arc::clone(known));
        }
        let keys = lock(&self.keys).clone();
        let keys = keys.ok_or_else(|| Error::refused(CannotSign::NoKeys))?;
        let opened = keyring::open(key, &keys, &self.random)
            .map_err(|error| Error::refused(CannotSign::Key(error)))?;
        let opened = Arc::new(opened);
        *lock(&self.active) = Some(Arc::clone(&opened));
        Ok(opened)
    }
}

/// No critical section leaves a half-done value.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
