//! The state that signatures, requests of operators, variables and the maintenance of keys share.

use std::sync::Arc;

use gateway_core::Core;
use workload_identity::Discovery;

use crate::keys;
use crate::metrics::Metrics;
use crate::signer::{KeyringFile, Signer};

/// The keys of one gateway.
#[derive(Debug)]
pub struct Keyring {
    pub(crate) core: Arc<Core>,
    pub signer: Signer,
    pub(crate) metrics: Metrics,
}

impl Keyring {
    /// Returns the keys of `file`; `None`: this gateway neither signs nor opens anything.
    pub fn new(core: Arc<Core>, file: Option<KeyringFile>, metrics: Metrics) -> Self {
        let signer = Signer::new(file);
        Self {
            core,
            signer,
            metrics,
        }
    }

    /// Serves the public keys of identity tokens, and the OpenID document of `issuer`, at the HTTP address
    /// of `registry`.
    pub fn serve_documents(&self, issuer: Option<&str>, registry: &service_kit::Metrics) {
        let core = Arc::clone(&self.core);
        registry.serve_json(workload_identity::JWKS_PATH, move || {
            keys::published(&core.replica.snapshot())
        });
        if let Some(issuer) = issuer {
            let document = Discovery::new(issuer).to_json();
            registry.serve_json(workload_identity::DISCOVERY_PATH, move || {
                Some(document.clone())
            });
        }
    }
}
