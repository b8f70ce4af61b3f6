//! A real etcd over TLS with client certificates and user authentication.

use std::path::PathBuf;

use etcd_client::{Permission, PermissionType};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair as RcgenKey};
use store::{Client, ClientOptions, Error, User};
use tempfile::TempDir;
use test_kit::etcd::{Etcd, TlsFiles, available};
use test_kit::wait_for;
use tls::{Credentials, Files, KeyPair};

use crate::support::{WAIT_LIMIT, connect, replica};

const PASSWORD: &str = "a secret";

struct Secured {
    etcd: Etcd,
    directory: TempDir,
    issuer: CertifiedIssuer<'static, RcgenKey>,
}

impl Secured {
    /// Starts an etcd with the user `kafila`, who may use the default prefix only.
    async fn start() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = RcgenKey::generate().unwrap();
        let mut secured = Self {
            etcd: Etcd::start().await.unwrap(),
            directory: tempfile::tempdir().unwrap(),
            issuer: CertifiedIssuer::self_signed(params, key).unwrap(),
        };
        secured.write("ca.pem", &secured.issuer.pem());
        secured.write("password", &format!("{PASSWORD}\n"));
        let mut admin = etcd_client::Client::connect(secured.etcd.endpoints(), None)
            .await
            .unwrap();
        let everything = Permission::new(PermissionType::Readwrite, "/kafila/v1/").with_prefix();
        admin.role_add("root").await.unwrap();
        admin.role_add("kafila").await.unwrap();
        admin
            .role_grant_permission("kafila", everything)
            .await
            .unwrap();
        for (user, role) in [("root", "root"), ("kafila", "kafila")] {
            admin.user_add(user, PASSWORD, None).await.unwrap();
            admin.user_grant_role(user, role).await.unwrap();
        }
        admin.auth_enable().await.unwrap();
        let (cert, key) = secured.issue("127.0.0.1", &secured.etcd.address().ip().to_string());
        let ca = secured.path("ca.pem");
        secured.etcd.set_tls(TlsFiles { ca, cert, key });
        secured.etcd.restart().await.unwrap();
        secured
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    fn issue(&self, name: &str, address: &str) -> (PathBuf, PathBuf) {
        let names = vec![name.to_owned(), address.to_owned()];
        let key = RcgenKey::generate().unwrap();
        let params = CertificateParams::new(names).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (
            self.write(&format!("{name}.pem"), &certificate.pem()),
            self.write(&format!("{name}.key"), &key.serialize_pem()),
        )
    }

    fn options(&self) -> ClientOptions {
        let (cert, key) = self.issue("a.client", "127.0.0.1");
        ClientOptions {
            tls: Some(self.credentials(Some(KeyPair { cert, key }))),
            user: Some(User {
                name: "kafila".to_owned(),
                password_file: self.path("password"),
            }),
            ..ClientOptions::default()
        }
    }

    fn credentials(&self, own: Option<KeyPair>) -> Credentials {
        let ca = Some(self.path("ca.pem"));
        Credentials::load(
            "etcd",
            Files {
                ca,
                own,
                ..Files::default()
            },
        )
        .unwrap()
    }

    async fn client(&self, options: ClientOptions) -> Client {
        connect(&self.etcd.endpoint(), options).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_logs_in_again_after_its_token_is_lost() {
    if !available() {
        return;
    }
    let mut secured = Secured::start().await;
    let client = secured.client(secured.options()).await;
    let replica = replica(&client).await;
    let before = client.current_revision().await.unwrap();
    // Its tokens are in memory only.
    secured.etcd.restart().await.unwrap();
    wait_for("an answer", WAIT_LIMIT, async || {
        client
            .current_revision()
            .await
            .ok()
            .filter(|it| *it >= before)
    })
    .await;
    let mut admin = secured.options();
    admin.prefix = "/kafila/v1/other/".to_owned();
    secured
        .client(admin)
        .await
        .current_revision()
        .await
        .unwrap();
    // The watches came back, too: progress arrives.
    wait_for("the replica", WAIT_LIMIT, async || {
        let age = replica.last_contact()?;
        (age < std::time::Duration::from_millis(500)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_endpoints_are_secured_as_one_is() {
    if !available() {
        return;
    }
    let secured = Secured::start().await;
    let endpoint = secured.etcd.endpoint();
    let endpoints = [endpoint.clone(), endpoint];
    let client = Client::connect(&endpoints, secured.options())
        .await
        .unwrap();
    client.current_revision().await.unwrap();
    replica(&client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_without_rights_is_refused() {
    if !available() {
        return;
    }
    let secured = Secured::start().await;
    let refusal = async |options: ClientOptions| {
        let client = secured.client(options).await;
        client.current_revision().await.unwrap_err()
    };
    let mut options = secured.options();
    options.prefix = "/another/".to_owned();
    let error = refusal(options).await;
    assert!(matches!(error, Error::Refused { .. }), "{error:?}");

    let mut options = secured.options();
    let user = options.user.as_mut().unwrap();
    user.password_file = secured.write("wrong", "another secret");
    let error = refusal(options).await;
    assert!(matches!(error, Error::Refused { .. }), "{error:?}");

    let mut options = secured.options();
    options.tls = Some(secured.credentials(None));
    let error = refusal(options).await;
    assert!(error.is_retriable(), "{error:?}");
}
