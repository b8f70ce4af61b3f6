//! Reloads of changed and of broken files.

use std::time::Duration;

use prometheus_client::registry::Registry;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::authority::{Authority, Directory, Issued, Valid, credentials};
use crate::accept::{ServerStream, accept};
use crate::connect::{ClientStream, Connector, Expect};
use crate::credentials::{Credentials, Reload};
use crate::metrics::Metrics;

const GATEWAY: &str = "gateway.global.kafila";

async fn connect(server: &Credentials, client: &Credentials) -> (ServerStream, ClientStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = async {
        let (stream, _) = listener.accept().await.unwrap();
        accept(server, stream).await.unwrap().0
    };
    let calling = async {
        let stream = TcpStream::connect(address).await.unwrap();
        let expect = Expect::Name(ServerName::try_from(GATEWAY).unwrap());
        let connector = Connector::new(client.clone(), expect);
        connector.handshake(stream, "127.0.0.1").await.unwrap()
    };
    tokio::join!(serving, calling)
}

fn presented(stream: &ClientStream) -> Vec<u8> {
    stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

fn der(issued: &Issued) -> Vec<u8> {
    use rustls_pki_types::pem::PemObject as _;
    rustls_pki_types::CertificateDer::from_pem_slice(issued.cert.as_bytes())
        .unwrap()
        .to_vec()
}

#[tokio::test]
async fn open_connections_go_on_and_new_ones_get_the_new_certificate() {
    let authority = Authority::new();
    let (first, second) = (
        authority.issue(GATEWAY, Valid::Now),
        authority.issue(GATEWAY, Valid::Now),
    );
    let files = Directory::new(&authority.pem(), Some(&first));
    let (server, client) = (files.load(), credentials(&authority, GATEWAY));
    let (mut old_server, mut old_client) = connect(&server, &client).await;
    assert_eq!(presented(&old_client), der(&first));

    assert_eq!(server.reload().unwrap(), Reload::Unchanged);
    files.replace(&second);
    assert_eq!(server.reload().unwrap(), Reload::Loaded);
    assert_eq!(server.reload().unwrap(), Reload::Unchanged);

    let (_new_server, new_client) = connect(&server, &client).await;
    assert_eq!(presented(&new_client), der(&second));
    old_server.write_u8(7).await.unwrap();
    old_server.flush().await.unwrap();
    assert_eq!(old_client.read_u8().await.unwrap(), 7);
}

#[tokio::test]
async fn a_new_authority_is_trusted_after_a_reload() {
    let (old, new) = (Authority::new(), Authority::new());
    let own = old.issue(GATEWAY, Valid::Now);
    let files = Directory::new(&old.pem(), Some(&own));
    let server = files.load();
    files.write("ca.pem", &format!("{}{}", old.pem(), new.pem()));
    server.reload().unwrap();
    let client = new.issue("broker.global.kafila", Valid::Now);
    let client = Directory::new(&old.pem(), Some(&client)).load();
    connect(&server, &client).await;
}

#[tokio::test(start_paused = true)]
async fn a_broken_file_keeps_the_old_certificate_and_is_counted() {
    let authority = Authority::new();
    let first = authority.issue(GATEWAY, Valid::Now);
    let files = Directory::new(&authority.pem(), Some(&first));
    let (server, client) = (files.load(), credentials(&authority, GATEWAY));
    let mut registry = Registry::default();
    let metrics = Metrics::default();
    metrics.register(&mut registry);
    let text = || {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        text
    };
    let wait_for = async |part: &str| {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
        while !text().contains(part) {
            assert!(tokio::time::Instant::now() < deadline, "{}", text());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let stop = CancellationToken::new();
    let fresh = tokio::spawn(server.clone().keep_fresh(metrics, stop.clone()));

    files.write("cert.pem", "no certificate");
    wait_for(r#"tls_reloads_total{usage="services",outcome="failed"} 1"#).await;
    let (_stream, connected) = connect(&server, &client).await;
    assert_eq!(presented(&connected), der(&first));
    // One error per change, not one per look.
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(text().contains(r#"outcome="failed"} 1"#), "{}", text());

    let second = authority.issue(GATEWAY, Valid::Now);
    files.replace(&second);
    wait_for(r#"outcome="loaded"} 1"#).await;
    let (_stream, connected) = connect(&server, &client).await;
    assert_eq!(presented(&connected), der(&second));
    let expiry = text();
    let line = expiry
        .lines()
        .find(|line| line.contains(r#"kind="certificate""#))
        .unwrap();
    let seconds: i64 = line.rsplit(' ').next().unwrap().parse().unwrap();
    assert!((80_000..=86_400).contains(&seconds), "{line}");
    stop.cancel();
    fresh.await.unwrap();
}
