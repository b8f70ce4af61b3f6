//! Signing requests (PKCS#10): the public key of a caller, with the proof that it has the private one.

use rcgen::{
    CertificateParams, CertificateSigningRequestParams, DistinguishedName, KeyPair, PublicKey,
    PublicKeyData as _,
};

use crate::error::Error;

/// Returns a new private key, as PEM.
///
/// # Errors
/// The system has no randomness.
pub fn create_key() -> Result<String, Error> {
    Ok(KeyPair::generate()?.serialize_pem())
}

/// Returns the signing request of a private key (PEM), as DER. It names nothing: the authority decides
/// on the names.
///
/// # Errors
/// The key is not a private key that can sign.
pub fn sign_request(key_pem: &str) -> Result<Vec<u8>, Error> {
    let key = KeyPair::from_pem(key_pem).map_err(Error::Key)?;
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    Ok(params.serialize_request(&key)?.der().to_vec())
}

/// A verified signing request. Only its public key counts.
#[derive(Clone, Debug)]
pub struct SigningRequest {
    pub(crate) public_key: PublicKey,
}

impl SigningRequest {
    /// Reads a request (DER), and verifies that its sender has the private key.
    ///
    /// # Errors
    /// It is malformed, its signature is wrong, or its kind of key is not supported.
    pub fn read(der: &[u8]) -> Result<Self, Error> {
        let request = CertificateSigningRequestParams::from_der(&der.into());
        Ok(Self {
            public_key: request.map_err(Error::SigningRequest)?.public_key,
        })
    }

    /// Returns the public key as it is in a certificate (`SubjectPublicKeyInfo`, DER): the same for every
    /// request of one private key.
    pub fn public_key(&self) -> Vec<u8> {
        self.public_key.subject_public_key_info()
    }
}
