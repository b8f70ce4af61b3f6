//! A real etcd over TLS with client certificates and user authentication.

use std::error::Error as _;
use std::path::PathBuf;
use std::time::Duration;

use etcd_client::{Permission, PermissionType};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair as RcgenKey};
use store::{Client, ClientOptions, Error, User};
use tempfile::TempDir;
use test_kit::etcd::{Etcd, TlsFiles, available};
use test_kit::proxy::Proxy;
use test_kit::wait_for;
use tls::{Credentials, Files, KeyPair};

use crate::support::{WAIT_LIMIT, connect, replica};

type Issuer = CertifiedIssuer<'static, RcgenKey>;

const PASSWORD: &str = "a secret";

struct Secured {
    etcd: Etcd,
    directory: TempDir,
    issuer: Issuer,
}

fn authority() -> Issuer {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, RcgenKey::generate().unwrap()).unwrap()
}

impl Secured {
    /// Starts an etcd with the user `kafila`, who may use the default prefix only.
    async fn start() -> Self {
        let mut secured = Self {
            etcd: Etcd::start().await.unwrap(),
            directory: tempfile::tempdir().unwrap(),
            issuer: authority(),
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
        let pair = self.issue_by(&self.issuer, name, address);
        (pair.cert, pair.key)
    }

    fn issue_by(&self, issuer: &Issuer, name: &str, address: &str) -> KeyPair {
        self.write_pair(Self::params(name, address), issuer, name)
    }

    fn params(name: &str, address: &str) -> CertificateParams {
        CertificateParams::new(vec![name.to_owned(), address.to_owned()]).unwrap()
    }

    fn write_pair(&self, params: CertificateParams, issuer: &Issuer, name: &str) -> KeyPair {
        let key = RcgenKey::generate().unwrap();
        let certificate = params.signed_by(&key, issuer).unwrap();
        KeyPair {
            cert: self.write(&format!("{name}.pem"), &certificate.pem()),
            key: self.write(&format!("{name}.key"), &key.serialize_pem()),
        }
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
        (age < Duration::from_millis(500)).then_some(())
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

/// Each message names the reason and the setting to change, instead of a closed connection.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_tls_refuses_names_the_reason_and_the_remedy() {
    if !available() {
        return;
    }
    let secured = Secured::start().await;
    let plain = Etcd::start().await.unwrap();
    let proxy = Proxy::start(secured.etcd.address()).await.unwrap();
    let (address, foreign) = (secured.etcd.address(), authority());
    let foreign_ca = secured.write("foreign.pem", &foreign.pem());
    let with_ca = |ca: PathBuf, own: Option<KeyPair>| {
        let ca = Some(ca);
        let files = Files {
            ca,
            own,
            ..Files::default()
        };
        ClientOptions {
            tls: Some(Credentials::load("etcd", files).unwrap()),
            ..secured.options()
        }
    };
    let ca = secured.path("ca.pem");
    let foreign_own = secured.issue_by(&foreign, "foreign.client", "127.0.0.1");
    let table = [
        (
            format!("http://{address}"),
            ClientOptions::default(),
            &["https:// in `etcd.endpoints`", "`etcd.ca_file`"][..],
        ),
        (
            format!("https://{}", plain.address()),
            secured.options(),
            &["speaks no TLS", "http://"],
        ),
        (
            format!("https://{address}"),
            with_ca(foreign_ca, None),
            &["no known authority", "`etcd.ca_file`"],
        ),
        (
            format!("https://localhost:{}", proxy.address().port()),
            secured.options(),
            &["not for localhost", "`etcd.endpoints`"],
        ),
        (
            format!("https://{address}"),
            with_ca(ca.clone(), None),
            &["requires a client certificate", "`etcd.cert_file`"],
        ),
        (
            format!("https://{address}"),
            with_ca(ca, Some(foreign_own)),
            &["an unknown authority issued it", "--trusted-ca-file"],
        ),
    ];
    for (endpoint, options, parts) in table {
        // The one of several members has another channel.
        for count in [1, 2] {
            let endpoints = vec![endpoint.clone(); count];
            let client = Client::connect(&endpoints, options.clone()).await.unwrap();
            let error = client.current_revision().await.unwrap_err();
            assert!(error.is_retriable(), "{error:?}");
            let text = error.source().unwrap().to_string();
            for part in parts {
                assert!(text.contains(part), "{endpoint}: {part}: {text}");
            }
        }
    }
}

/// etcd loads an expired certificate.
#[tokio::test(flavor = "multi_thread")]
async fn an_expired_certificate_of_etcd_is_named() {
    if !available() {
        return;
    }
    let mut secured = Secured::start().await;
    let options = secured.options();
    let mut params = Secured::params("127.0.0.1", &secured.etcd.address().ip().to_string());
    params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    params.not_before = rcgen::date_time_ymd(2019, 1, 1);
    secured.write_pair(params, &secured.issuer, "127.0.0.1");
    // Its readiness is not waited for, because its own client refuses the certificate as well.
    let _ = tokio::time::timeout(Duration::from_secs(2), secured.etcd.restart()).await;
    let client = secured.client(options).await;
    let text = wait_for("the refusal", WAIT_LIMIT, async || {
        let error = client.current_revision().await.err()?;
        let text = error.source()?.to_string();
        text.contains("expired").then_some(text)
    })
    .await;
    assert!(text.contains("replace the certificate"), "{text}");
}
