//! TLS: an authority of its own, the server's name, the client's certificate.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::crypto::ring;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::PrivateKeyDer;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use vault::{Client, VaultConfig};
use vault_test_kit::Vault;

use crate::support::config;

/// Files of an authority and of a client's certificate, and a server that wants one.
struct Setup {
    folder: tempfile::TempDir,
    address: SocketAddr,
    _vault: Vault,
}

impl Setup {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn config(&self) -> VaultConfig {
        VaultConfig {
            ca_file: Some(self.path("ca.pem")),
            cert_file: Some(self.path("client.pem")),
            key_file: Some(self.path("client.key")),
            tls_server_name: "vault.test".to_owned(),
            ..config(format!("https://{}", self.address))
        }
    }
}

fn write(folder: &Path, name: &str, text: String) {
    std::fs::write(folder.join(name), text).unwrap();
}

async fn setup() -> Setup {
    let folder = tempfile::tempdir().unwrap();
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_cert = ca.self_signed(&ca_key).unwrap();
    write(folder.path(), "ca.pem", ca_cert.pem());
    let issuer = Issuer::new(ca, ca_key);
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["client.test".to_owned()]).unwrap();
    write(folder.path(), "client.pem", params.signed_by(&key, &issuer).unwrap().pem());
    write(folder.path(), "client.key", key.serialize_pem());
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["vault.test".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(ca_cert.der().clone()).unwrap();
    let provider = Arc::new(ring::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    let vault = Vault::start().await;
    let behind = vault.port();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // A client that refuses the certificate, or has none, ends the handshake.
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut plain = TcpStream::connect(("127.0.0.1", behind)).await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut stream, &mut plain).await;
        }
    });
    Setup { folder, address, _vault: vault }
}

#[tokio::test]
async fn both_sides_show_certificates_of_the_authority() {
    let setup = setup().await;
    let client = Client::open(&setup.config()).unwrap();
    assert_eq!(client.health().await.unwrap().version, "1.15.2");
}

#[tokio::test]
async fn a_wrong_name_or_a_missing_certificate_is_refused() {
    let setup = setup().await;
    let mut wrong_name = setup.config();
    wrong_name.tls_server_name = String::new();
    let failure = Client::open(&wrong_name).unwrap().health().await.unwrap_err();
    assert!(failure.is_transient() && failure.to_string().contains("certificate"), "{failure}");
    let mut nameless = setup.config();
    (nameless.cert_file, nameless.key_file) = (None, None);
    assert!(Client::open(&nameless).unwrap().health().await.is_err());
    let mut stranger = setup.config();
    stranger.ca_file = None;
    stranger.tls_skip_verify = true;
    assert!(Client::open(&stranger).unwrap().health().await.is_ok());
}

#[tokio::test]
async fn a_setting_that_cannot_be_used_is_named() {
    let setup = setup().await;
    let mut missing = setup.config();
    missing.ca_file = Some(setup.path("none.pem"));
    let (field, problem) = Client::open(&missing).unwrap_err();
    assert_eq!(field, "ca_file");
    assert!(problem.contains("none.pem"), "{problem}");
    let mut name = setup.config();
    name.tls_server_name = "a b".to_owned();
    assert_eq!(Client::open(&name).unwrap_err().0, "tls_server_name");
}
