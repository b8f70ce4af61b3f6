//! Credentials: certificates and keys from files, ready for handshakes.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, DigitallySignedStruct, ServerConfig, SignatureScheme};

use crate::error::Error;
use crate::files::{Contents, Expiry, Files, Material};

/// gRPC needs HTTP/2. Source: RFC 7301.
const ALPN_HTTP2: &[u8] = b"h2";

/// The verification of servers' certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    Servers,
    /// Any certificate is accepted: anybody on the path can read and change the traffic.
    Nothing,
}

/// The clients that a server accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clients {
    /// Those with a certificate of a known authority.
    Certified,
    /// Also those without a certificate. A certificate that is shown is verified all the same.
    Any,
}

/// A further condition on the process's own certificate (DER). The error names the problem.
pub(crate) type Condition = Box<dyn Fn(&[u8]) -> Result<(), String> + Send + Sync>;

/// Certificates and keys of a process, kept up to date by [`Credentials::keep_fresh`]. Cheap to clone.
#[derive(Clone)]
pub struct Credentials {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    /// Their use, in logs and metrics: `services` or `etcd`.
    pub(crate) usage: &'static str,
    pub(crate) files: Files,
    verify: Verify,
    pub(crate) clients: Clients,
    condition: Condition,
    loaded: ArcSwap<Loaded>,
    /// The contents at the last load or attempt.
    seen: Mutex<Contents>,
}

/// The configurations of new connections.
struct Loaded {
    client: Arc<ClientConfig>,
    /// `None` without an own certificate.
    server: Option<Arc<ServerConfig>>,
    expiry: Expiry,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("usage", &self.shared.usage)
            .field("files", &self.shared.files)
            .finish_non_exhaustive()
    }
}

/// The result of a look at the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reload {
    Unchanged,
    Loaded,
}

impl Credentials {
    /// Loads `files`. `usage` names their use in logs and metrics, as in `services`.
    ///
    /// # Errors
    /// A file cannot be used; the message names it.
    pub fn load(usage: &'static str, files: Files) -> Result<Self, Error> {
        Self::load_with(
            usage,
            files,
            Verify::Servers,
            Clients::Certified,
            |_| Ok(()),
        )
    }

    /// As [`Self::load`]; `condition` is checked for the process's own certificate (DER), also at
    /// each reload.
    ///
    /// # Errors
    /// A file cannot be used, or the condition is not met.
    pub fn load_with(
        usage: &'static str,
        files: Files,
        verify: Verify,
        clients: Clients,
        condition: impl Fn(&[u8]) -> Result<(), String> + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let contents = files.read()?;
        let condition: Condition = Box::new(condition);
        let loaded = Loaded::new(&files, &contents, verify, clients, &condition)?;
        let shared = Shared {
            usage,
            files,
            verify,
            clients,
            condition,
            loaded: ArcSwap::from_pointee(loaded),
            seen: Mutex::new(contents),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Returns the configuration of the next connection as a client.
    pub(crate) fn client(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.shared.loaded.load().client)
    }

    /// Returns the configuration of the next connection as a server; `None` without a certificate.
    pub(crate) fn server(&self) -> Option<Arc<ServerConfig>> {
        self.shared.loaded.load().server.clone()
    }

    pub(crate) fn expiry(&self) -> Expiry {
        self.shared.loaded.load().expiry
    }

    /// Reads the files, and uses them for new connections if they changed. The old ones stay in use
    /// after an error, which is returned once per change.
    pub(crate) fn reload(&self) -> Result<Reload, Error> {
        let shared = &self.shared;
        let contents = shared.files.read()?;
        {
            let mut seen = shared.seen.lock().unwrap_or_else(PoisonError::into_inner);
            if *seen == contents {
                return Ok(Reload::Unchanged);
            }
            *seen = contents.clone();
        }
        let loaded = Loaded::new(
            &shared.files,
            &contents,
            shared.verify,
            shared.clients,
            &shared.condition,
        )?;
        shared.loaded.store(Arc::new(loaded));
        Ok(Reload::Loaded)
    }
}

impl Loaded {
    fn new(
        files: &Files,
        contents: &Contents,
        verify: Verify,
        clients: Clients,
        condition: &Condition,
    ) -> Result<Self, Error> {
        let material = files.parse(contents)?;
        if let (Some(pair), Some((chain, _))) = (&files.own, &material.own) {
            condition(&chain[0]).map_err(|problem| Error::Certificate {
                path: pair.cert.clone(),
                problem,
            })?;
        }
        let Material { roots, own, expiry } = material;
        let roots = Arc::new(roots);
        let provider = Arc::new(ring::default_provider());
        let key_pair_error = |source| match &files.own {
            Some(pair) => Error::KeyPair {
                cert: pair.cert.clone(),
                key: pair.key.clone(),
                source,
            },
            None => Error::Setup(source),
        };
        let server = match &own {
            Some((chain, key)) => {
                let verifier = WebPkiClientVerifier::builder_with_provider(
                    Arc::clone(&roots),
                    Arc::clone(&provider),
                );
                let verifier = match clients {
                    Clients::Certified => verifier,
                    Clients::Any => verifier.allow_unauthenticated(),
                };
                let verifier = verifier
                    .build()
                    .map_err(|error| Error::Setup(rustls::Error::General(error.to_string())))?;
                let mut config = ServerConfig::builder_with_provider(Arc::clone(&provider))
                    .with_safe_default_protocol_versions()
                    .map_err(Error::Setup)?
                    .with_client_cert_verifier(verifier)
                    .with_single_cert(chain.clone(), key.clone_key())
                    .map_err(key_pair_error)?;
                config.alpn_protocols = vec![ALPN_HTTP2.to_vec()];
                Some(Arc::new(config))
            }
            None => None,
        };
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(Error::Setup)?;
        let config = match verify {
            Verify::Servers => config.with_root_certificates(roots),
            Verify::Nothing => config
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AcceptAny(provider))),
        };
        let mut client = match own {
            Some((chain, key)) => config
                .with_client_auth_cert(chain, key)
                .map_err(key_pair_error)?,
            None => config.with_no_client_auth(),
        };
        client.alpn_protocols = vec![ALPN_HTTP2.to_vec()];
        Ok(Self {
            client: Arc::new(client),
            server,
            expiry,
        })
    }
}

/// Accepts every certificate of a server.
#[derive(Debug)]
struct AcceptAny(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
