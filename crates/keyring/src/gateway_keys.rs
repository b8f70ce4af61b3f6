//! The state that signatures, requests of operators, variables and the maintenance of keys share.

use std::sync::Arc;

use gateway_core::{Core, Error};
use tokio::sync::watch;
use workload_identity::{Discovery, Jwks, KeyEncryptionKeys};

use crate::metrics::Metrics;
use crate::signer::{KeyringFile, Signer};

/// The keys of one gateway.
#[derive(Debug)]
pub struct Keyring {
    pub(crate) core: Arc<Core>,
    pub signer: Signer,
    pub(crate) metrics: Metrics,
    /// See [`Self::opened`].
    pub(crate) opened: watch::Sender<bool>,
}

impl Keyring {
    /// Returns the keys of `file`; `None`: this gateway neither signs nor opens anything.
    pub fn new(core: Arc<Core>, file: Option<KeyringFile>, metrics: Metrics) -> Self {
        let signer = Signer::new(file);
        let opened = watch::Sender::new(!signer.has_file());
        Self {
            core,
            signer,
            metrics,
            opened,
        }
    }

    /// Returns whether this gateway's file had the key of the cluster once, or there is no file: the
    /// condition of its readiness. A file that falls behind later, while keys are replaced, leaves it.
    pub fn opened(&self) -> watch::Receiver<bool> {
        self.opened.subscribe()
    }

    /// Returns the keys for a seal. Keys that lack the cluster's are read again, as they may be older than
    /// the file.
    pub(crate) async fn sealing_keys(&self) -> Result<Arc<KeyEncryptionKeys>, Error> {
        let keys = self.signer.keys().await?;
        let (snapshot, now) = (self.core.snapshot(true).await?, self.core.now());
        if self.signer.check(&snapshot, &keys, now).is_ok() {
            return Ok(keys);
        }
        let keys = self.signer.read_file().await?;
        self.signer.check(&snapshot, &keys, now)?;
        Ok(keys)
    }

    /// Serves the public keys of identity tokens, and the OpenID document of `issuer`, at the HTTP address
    /// of `registry`.
    pub fn serve_documents(&self, issuer: Option<&str>, registry: &service_kit::Metrics) {
        let core = Arc::clone(&self.core);
        registry.serve_json(workload_identity::JWKS_PATH, move || {
            let snapshot = core.replica.snapshot();
            Some(Jwks::of(&snapshot.keyring()?.value).to_json())
        });
        if let Some(issuer) = issuer {
            let document = Discovery::new(issuer).to_json();
            registry.serve_json(workload_identity::DISCOVERY_PATH, move || {
                Some(document.clone())
            });
        }
    }
}
