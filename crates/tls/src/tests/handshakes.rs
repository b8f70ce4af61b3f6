//! Handshakes: accepted, and refused with a reason.

use std::io;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::authority::{Authority, Directory, Issued, Valid, credentials};
use crate::accept::{HandshakeError, accept};
use crate::connect::{Connector, Expect, ServerCheck};
use crate::credentials::{Clients, Credentials, Verify};
use crate::error::Error;
use crate::problem::Problem;

const GATEWAY: &str = "gateway.global.kafila";
const BROKER: &str = "broker.global.kafila";

async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (client, server) = tokio::join!(TcpStream::connect(address), listener.accept());
    (client.unwrap(), server.unwrap().0)
}

/// Connects; then the server sends a byte, which the client reads.
async fn connect(
    server: &Credentials,
    client: &Credentials,
    expect: Expect,
) -> (
    Result<Option<CertificateDer<'static>>, HandshakeError>,
    io::Result<u8>,
) {
    let (client_end, server_end) = pair().await;
    let serving = async {
        let (mut stream, leaf) = accept(server, server_end).await?;
        stream.write_u8(7).await.map_err(HandshakeError::Failed)?;
        stream.flush().await.map_err(HandshakeError::Failed)?;
        Ok(leaf)
    };
    let calling = async {
        let connector = Connector::new(client.clone(), expect);
        let mut stream = connector.handshake(client_end, "127.0.0.1").await?;
        stream.read_u8().await
    };
    tokio::join!(serving, calling)
}

fn load_with(directory: &Directory, verify: Verify, clients: Clients) -> Credentials {
    Credentials::load_with("services", directory.files(), verify, clients, |_| Ok(())).unwrap()
}

fn named(name: &'static str) -> Expect {
    Expect::Name(ServerName::try_from(name).unwrap())
}

#[tokio::test]
async fn both_sides_are_verified_and_the_server_learns_the_clients_certificate() {
    let authority = Authority::new();
    let server = credentials(&authority, GATEWAY);
    let own = authority.issue(BROKER, Valid::Now);
    let client = Directory::new(&authority.pem(), Some(&own)).load();
    let (leaf, byte) = connect(&server, &client, named(GATEWAY)).await;
    let expected = CertificateDer::from_pem_slice(own.cert.as_bytes()).unwrap();
    assert_eq!(leaf.unwrap(), Some(expected));
    assert_eq!(byte.unwrap(), 7);
}

#[tokio::test]
async fn a_client_without_a_certificate_is_refused() {
    let authority = Authority::new();
    let server = credentials(&authority, GATEWAY);
    let client = Directory::new(&authority.pem(), None).load();
    let (accepted, byte) = connect(&server, &client, named(GATEWAY)).await;
    assert!(matches!(accepted, Err(HandshakeError::Failed(_))));
    let problem = Problem::of(&byte.unwrap_err());
    assert_eq!(problem, Some(Problem::CertificateRequired));
}

#[tokio::test]
async fn a_server_of_any_client_accepts_one_without_a_certificate_and_verifies_the_others() {
    let authority = Authority::new();
    let own = authority.issue(GATEWAY, Valid::Now);
    let files = Directory::new(&authority.pem(), Some(&own));
    let server = load_with(&files, Verify::Servers, Clients::Any);
    let client = Directory::new(&authority.pem(), None).load();
    let (leaf, byte) = connect(&server, &client, named(GATEWAY)).await;
    assert_eq!((leaf.unwrap(), byte.unwrap()), (None, 7));
    let (leaf, _) = connect(&server, &credentials(&authority, BROKER), named(GATEWAY)).await;
    assert!(leaf.unwrap().is_some());
    let foreign = Authority::new().issue(BROKER, Valid::Now);
    let foreign = Directory::new(&authority.pem(), Some(&foreign)).load();
    let (accepted, _) = connect(&server, &foreign, named(GATEWAY)).await;
    assert!(matches!(accepted, Err(HandshakeError::Failed(_))));
}

#[tokio::test]
async fn certificates_of_a_further_authority_are_accepted_on_both_sides() {
    let (authority, further) = (Authority::new(), Authority::new());
    let own = authority.issue(GATEWAY, Valid::Now);
    let files = Directory::new(&authority.pem(), Some(&own));
    let node = further.issue("node.global.kafila", Valid::Now);
    let node = Directory::new(&authority.pem(), Some(&node)).load();
    let (accepted, _) = connect(&files.load(), &node, named(GATEWAY)).await;
    assert!(matches!(accepted, Err(HandshakeError::Failed(_))));
    files.write("further.pem", &further.pem());
    let (leaf, byte) = connect(&files.load(), &node, named(GATEWAY)).await;
    assert!(leaf.unwrap().is_some() && byte.is_ok());
    let (_, byte) = connect(&node, &files.load(), named("node.global.kafila")).await;
    assert_eq!(byte.unwrap(), 7);
}

#[tokio::test]
async fn a_client_of_another_authority_is_refused() {
    let authority = Authority::new();
    let server = credentials(&authority, GATEWAY);
    let own = Authority::new().issue(BROKER, Valid::Now);
    let client = Directory::new(&authority.pem(), Some(&own)).load();
    let (accepted, byte) = connect(&server, &client, named(GATEWAY)).await;
    assert!(matches!(accepted, Err(HandshakeError::Failed(_))));
    let problem = Problem::of(&byte.unwrap_err());
    assert!(
        matches!(problem, Some(Problem::CertificateRefused { .. })),
        "{problem:?}"
    );
}

#[tokio::test]
async fn a_server_of_another_authority_is_refused() {
    let authority = Authority::new();
    let server = credentials(&authority, GATEWAY);
    let client = credentials(&Authority::new(), BROKER);
    let (_, byte) = connect(&server, &client, named(GATEWAY)).await;
    let problem = Problem::of(&byte.unwrap_err());
    assert_eq!(problem, Some(Problem::UnknownAuthority));
}

#[tokio::test]
async fn a_server_of_another_role_is_refused() {
    let authority = Authority::new();
    let server = credentials(&authority, BROKER);
    let client = credentials(&authority, BROKER);
    let (_, byte) = connect(&server, &client, named(GATEWAY)).await;
    let problem = Problem::of(&byte.unwrap_err()).unwrap();
    let Problem::WrongName {
        expected,
        presented,
    } = problem
    else {
        panic!("{problem:?}");
    };
    assert_eq!(expected, GATEWAY);
    assert_eq!(presented, [BROKER]);
    // The host of the address is another name.
    let (_, byte) = connect(&server, &client, Expect::Host).await;
    let problem = Problem::of(&byte.unwrap_err());
    assert!(matches!(problem, Some(Problem::WrongName { .. })));
}

#[tokio::test]
async fn a_host_is_verified_by_its_address() {
    let authority = Authority::new();
    let server = credentials(&authority, "127.0.0.1");
    let client = credentials(&authority, BROKER);
    let (accepted, byte) = connect(&server, &client, Expect::Host).await;
    assert!(accepted.is_ok() && byte.is_ok());
}

#[tokio::test]
async fn a_server_that_does_not_meet_the_check_gets_no_request() {
    let authority = Authority::new();
    let server = credentials(&authority, GATEWAY);
    let client = credentials(&authority, BROKER);
    for (check, expected) in [
        ((|_| Ok(())) as ServerCheck, None),
        (
            |_| Err("that of a node".to_owned()),
            Some(Problem::WrongServer("that of a node".to_owned())),
        ),
    ] {
        let (client_end, server_end) = pair().await;
        let connector = Connector::new(client.clone(), named(GATEWAY)).checking(check);
        let (_, connected) = tokio::join!(
            accept(&server, server_end),
            connector.handshake(client_end, "127.0.0.1")
        );
        assert_eq!(
            connected.err().and_then(|error| Problem::of(&error)),
            expected
        );
    }
}

fn chain(own: &Issued) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let chain = CertificateDer::from_pem_slice(own.cert.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap();
    (vec![chain], key)
}

#[tokio::test]
async fn an_expired_server_is_refused() {
    let authority = Authority::new();
    let (certs, key) = chain(&authority.issue(GATEWAY, Valid::Expired));
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certs, key)
        .unwrap();
    let (client_end, server_end) = pair().await;
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let connector = Connector::new(credentials(&authority, BROKER), named(GATEWAY));
    let (_, connected) = tokio::join!(
        acceptor.accept(server_end),
        connector.handshake(client_end, "127.0.0.1")
    );
    let problem = Problem::of(&connected.unwrap_err());
    assert_eq!(problem, Some(Problem::Expired));
}

#[tokio::test]
async fn an_expired_client_is_refused() {
    let authority = Authority::new();
    let server = credentials(&authority, GATEWAY);
    let (certs, key) = chain(&authority.issue(BROKER, Valid::Expired));
    let root = CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(root).unwrap();
    let config = rustls::ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(certs, key)
        .unwrap();
    let (client_end, server_end) = pair().await;
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let calling = async {
        let name = ServerName::try_from(GATEWAY).unwrap();
        connector.connect(name, client_end).await?.read_u8().await
    };
    let (accepted, byte) = tokio::join!(accept(&server, server_end), calling);
    assert!(matches!(accepted, Err(HandshakeError::Failed(_))));
    let reason = "it has expired".to_owned();
    let problem = Problem::of(&byte.unwrap_err());
    assert_eq!(problem, Some(Problem::CertificateRefused { reason }));
}

#[tokio::test]
async fn without_verification_every_server_is_accepted() {
    let authority = Authority::new();
    let server = credentials(&authority, BROKER);
    let own = authority.issue(BROKER, Valid::Now);
    let files = Directory::new(&Authority::new().pem(), Some(&own));
    let client = load_with(&files, Verify::Nothing, Clients::Certified);
    let (accepted, byte) = connect(&server, &client, Expect::Host).await;
    assert!(accepted.is_ok() && byte.is_ok());
}

/// Sends each part of a greeting, and waits for bytes of the server after the first.
async fn refused(parts: &[&[u8]]) -> String {
    let authority = Authority::new();
    let server = credentials(&authority, GATEWAY);
    let (mut client, server_end) = pair().await;
    // Owns the client: the server waits until it has closed.
    let calling = async move {
        let mut bytes = Vec::new();
        for part in parts {
            client.write_all(part).await.unwrap();
            if parts.len() > 1 && bytes.is_empty() {
                client.read_buf(&mut bytes).await.unwrap();
            }
        }
        client.read_to_end(&mut bytes).await.unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let (accepted, text) = tokio::join!(accept(&server, server_end), calling);
    assert!(matches!(accepted, Err(HandshakeError::Plaintext)));
    text
}

#[tokio::test]
async fn a_plaintext_client_gets_an_answer_in_its_protocol() {
    for request in ["GET /v1/jobs HTTP/1.1\r\n\r\n", "PUT / HTTP/1.0\r\n\r\n"] {
        let text = refused(&[request.as_bytes()]).await;
        assert!(text.starts_with("HTTP/1.1 400"), "{text:?}");
        assert!(text.contains("use https://"), "{text:?}");
    }
}

#[tokio::test]
async fn a_plaintext_request_over_http2_is_answered_on_its_stream() {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
    const HEADERS: &[u8] = &[0, 0, 1, 1, 4, 0, 0, 0, 5, 0x82];
    let greeting = [PREFACE, SETTINGS].concat();
    let at_once = [&greeting, HEADERS].concat();
    // Some clients wait for the server's settings before their first request.
    for parts in [&[&at_once[..]][..], &[&greeting, HEADERS]] {
        let text = refused(parts).await;
        let (before, rest) = text
            .split_once("grpc-status")
            .unwrap_or_else(|| panic!("{text:?}"));
        assert!(before.contains("application/grpc"), "{text:?}");
        // HEADERS with END_STREAM and END_HEADERS, on the request's stream.
        assert!(before.contains("\u{1}\u{5}\0\0\0\u{5}"), "{text:?}");
        // In the answer, and in GOAWAY.
        assert_eq!(rest.matches("use https://").count(), 2, "{text:?}");
    }
    // A client that sends no request.
    let text = refused(&[&greeting]).await;
    assert!(!text.contains("grpc-status"), "{text:?}");
    assert_eq!(text.matches("use https://").count(), 1, "{text:?}");
}

#[tokio::test]
async fn a_server_without_tls_is_recognised() {
    let authority = Authority::new();
    let client = credentials(&authority, BROKER);
    let (client_end, mut server_end) = pair().await;
    // The first frame of an HTTP/2 server: empty SETTINGS.
    let serving = async {
        server_end
            .write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0])
            .await
            .unwrap();
        server_end
    };
    let connector = Connector::new(client, named(GATEWAY));
    let (_server_end, connected) =
        tokio::join!(serving, connector.handshake(client_end, "127.0.0.1"));
    let problem = Problem::of(&connected.unwrap_err());
    assert_eq!(problem, Some(Problem::NotTls));
}

/// It may be one without TLS, such as etcd's.
#[tokio::test]
async fn a_server_that_closes_during_the_handshake_is_described_in_words() {
    let client = credentials(&Authority::new(), BROKER);
    let (client_end, mut server_end) = pair().await;
    let serving = async {
        // Reads the whole greeting: closing with unread input would reset the connection.
        let _ = server_end.read(&mut [0; 16_384]).await;
        drop(server_end);
    };
    let connector = Connector::new(client, named(GATEWAY));
    let ((), connected) = tokio::join!(serving, connector.handshake(client_end, "127.0.0.1"));
    let error = connected.unwrap_err().to_string();
    assert!(error.contains("speaks no TLS, use http://"), "{error}");
}

#[tokio::test]
async fn opening_waits_for_the_refusal_of_the_clients_certificate() {
    let authority = Authority::new();
    let server = credentials(&authority, GATEWAY);
    let client = Directory::new(&authority.pem(), None).load();
    let (client_end, server_end) = pair().await;
    let connector = Connector::new(client, named(GATEWAY));
    let (_, opened) = tokio::join!(
        accept(&server, server_end),
        connector.open(client_end, "127.0.0.1")
    );
    let problem = Problem::of(&opened.unwrap_err());
    assert_eq!(problem, Some(Problem::CertificateRequired));
}

#[test]
fn unusable_files_are_named() {
    let authority = Authority::new();
    let own = authority.issue(GATEWAY, Valid::Now);
    let other = authority.issue(GATEWAY, Valid::Now);
    let error = |change: &dyn Fn(&Directory)| {
        let directory = Directory::new(&authority.pem(), Some(&own));
        let files = directory.files();
        change(&directory);
        Credentials::load("services", files).unwrap_err()
    };
    let wrong_key = error(&|it| it.write("key.pem", &other.key));
    assert!(matches!(wrong_key, Error::KeyPair { .. }), "{wrong_key}");
    let no_key = error(&|it| it.write("key.pem", &own.cert));
    assert!(matches!(no_key, Error::Empty { .. }), "{no_key}");
    let expired = error(&|it| it.replace(&authority.issue(GATEWAY, Valid::Expired)));
    assert!(matches!(expired, Error::Expired { .. }), "{expired}");
    let empty = error(&|it| it.write("ca.pem", ""));
    assert!(matches!(empty, Error::Empty { .. }), "{empty}");
    for (error, file) in [
        (wrong_key, "key.pem"),
        (no_key, "key.pem"),
        (expired, "cert.pem"),
        (empty, "ca.pem"),
    ] {
        assert!(error.to_string().contains(file), "{error}");
    }
}
