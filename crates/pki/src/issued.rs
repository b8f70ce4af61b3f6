//! Output of an authority: a certificate and its key.

/// A certificate with its key, both as PEM.
#[derive(Clone)]
pub struct Issued {
    pub certificate_pem: String,
    pub key_pem: String,
    /// In Unix seconds.
    pub not_after: i64,
}

/// A certificate for a key that stays with its owner.
#[derive(Clone, Debug)]
pub struct Certified {
    pub certificate_pem: String,
    /// In Unix seconds.
    pub not_after: i64,
}

impl std::fmt::Debug for Issued {
    /// Leaves out the key.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Issued")
            .field("certificate_pem", &self.certificate_pem)
            .field("not_after", &self.not_after)
            .finish_non_exhaustive()
    }
}
