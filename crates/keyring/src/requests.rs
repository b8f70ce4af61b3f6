//! Requests of operators about the keys that sign identity tokens.

use admission::cluster::keyring as decision;
use gateway_core::{Error, Step};
use listing::find;
use model::SigningKeyId;
use proto::v1;
use state::Snapshot;
use tonic::Code;
use tracing::info;
use workload_identity::keyring::{self, KeyState};

use crate::gateway_keys::Keyring;

impl Keyring {
    /// Makes a key that signs from now on.
    ///
    /// # Errors
    /// This gateway has no key file, there are too many keys, or the store does not accept the write.
    pub async fn rotate_signing_key(&self) -> Result<v1::RotateSigningKeyResponse, Error> {
        self.signer.read_file().await?;
        let keys = self.sealing_keys().await?;
        let now = self.core.now();
        let id = SigningKeyId::from_random(self.core.ids.next_u128());
        let key = keyring::generate(id, now, now, &keys, self.signer.random())
            .map_err(|error| Error::new(Code::Internal, error))?;
        let decide = |snapshot: &Snapshot| {
            let shown = api_view::signing_key(&key, KeyState::Active);
            Ok(Step::Commit {
                writes: vec![decision::rotate(snapshot, &key)?],
                answer: Box::new(move |index| v1::RotateSigningKeyResponse {
                    index,
                    signing_key: Some(shown),
                }),
            })
        };
        let what = || "the signing keys".to_owned();
        let response = self.core.execute(what, decide).await?;
        info!(key_id = %id, "signing key rotated by an operator");
        Ok(response)
    }

    /// Removes a key that does not sign; `text` is its id or the start of it.
    ///
    /// # Errors
    /// There is no such key, or it is the active one.
    pub async fn remove_signing_key(
        &self,
        text: &str,
    ) -> Result<v1::RemoveSigningKeyResponse, Error> {
        let now = self.core.now();
        let decide = |snapshot: &Snapshot| {
            let id = find::signing_key(snapshot, text)?;
            let write = decision::remove(snapshot, id, now)?;
            Ok(Step::Commit {
                writes: vec![write],
                answer: Box::new(move |index| v1::RemoveSigningKeyResponse {
                    index,
                    key_id: id.to_string(),
                }),
            })
        };
        let what = || format!("signing key {text}");
        let response = self.core.execute(what, decide).await?;
        info!(
            key_id = response.key_id,
            "signing key removed by an operator"
        );
        Ok(response)
    }
}
