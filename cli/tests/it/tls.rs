//! `kafila tls …`

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::command::{Kafila, Said, kafila};

const NODE: &str = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";

fn at(folder: &Path, line: &str) -> Kafila {
    kafila(line).current_dir(folder)
}

async fn run(folder: &Path, line: &str) -> Said {
    at(folder, line).run().await
}

/// A folder with a CA.
async fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), "tls ca create").await.ended(0);
    folder
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

fn names(folder: &Path) -> Vec<String> {
    let entries = folder.read_dir().unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn a_ca_is_created_once_and_its_key_is_for_its_owner() {
    let folder = tempfile::tempdir().unwrap();
    let said = run(folder.path(), "tls ca create -common-name=Test").await;
    said.ended(0).printed(&[
        "kafila-ca.pem\n",
        "kafila-ca-key.pem\n",
        "kafila tls cert create -role=gateway",
    ]);
    let key = folder.path().join("kafila-ca-key.pem");
    assert_eq!(mode(&key), 0o600);
    let before = std::fs::read(&key).unwrap();

    let said = run(folder.path(), "tls ca create").await;
    said.ended(1)
        .complained(&["kafila-ca.pem already exists", "-out-dir", "-force"]);
    assert_eq!(std::fs::read(&key).unwrap(), before);
    run(folder.path(), "tls ca create -force").await.ended(0);
    assert_ne!(std::fs::read(&key).unwrap(), before);
    assert_eq!(mode(&key), 0o600);
    // No temporary file is left.
    assert_eq!(names(folder.path()), ["kafila-ca-key.pem", "kafila-ca.pem"]);
}

#[tokio::test]
async fn the_advice_for_the_ca_of_etcd_works() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("etcd")).unwrap();
    let line = "tls ca create -common-name=etcd -out-dir=etcd";
    let said = run(folder.path(), line).await;
    let said = said.ended(0);
    assert!(!said.stdout.contains("-role=gateway"), "{said:?}");
    for role in ["etcd", "etcd-client"] {
        let advice = format!(
            "tls cert create -role={role} -ca=etcd/kafila-ca.pem -key=etcd/kafila-ca-key.pem"
        );
        said.printed(&[&format!("kafila {advice}")]);
        run(folder.path(), &advice).await.ended(0);
    }
}

#[tokio::test]
async fn the_ca_of_nodes_issues_certificates_of_nodes_only() {
    let folder = folder().await;
    let said = run(folder.path(), "tls ca create -node-ca -region=eu").await;
    said.ended(0).printed(&[
        "kafila-node-ca.pem\n",
        "kafila-node-ca-key.pem\n",
        "node_ca_cert_file and node_ca_key_file",
        "kafila node introduction create",
    ]);
    let key = folder.path().join("kafila-node-ca-key.pem");
    assert_eq!(mode(&key), 0o600);
    let said = run(folder.path(), "tls ca info kafila-node-ca.pem").await;
    said.ended(0).printed(&[
        "Subject           = CN=Kafila node CA\n",
        "Permitted Domains = node.eu.kafila\n",
    ]);
    let flags = "-region=eu -ca=kafila-node-ca.pem -key=kafila-node-ca-key.pem";
    let said = run(
        folder.path(),
        &format!("tls cert create -role=gateway {flags}"),
    )
    .await;
    said.ended(1)
        .complained(&["no certificate for \"gateway.eu.kafila\"", "node.eu.kafila"]);
    run(
        folder.path(),
        &format!("tls cert create -role=node {flags}"),
    )
    .await
    .ended(0);
    let said = run(folder.path(), "tls ca create -node-ca -name-constraint").await;
    said.ended(1).complained(&["-name-constraint"]);
    let said = run(folder.path(), "tls ca create -node-ca -region=EU -force").await;
    said.ended(1).complained(&["-region: region \"EU\""]);
}

#[tokio::test]
async fn a_ca_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let line = "tls ca create -days=30 -name-constraint -additional-domain=example.com";
    run(folder.path(), line).await.ended(0);
    let said = run(folder.path(), "tls ca info").await;
    said.ended(0).printed(&[
        "Subject           = CN=Kafila CA\n",
        "Valid Until ",
        // 30 within the second of its creation, then 29.
        " days left)",
        "Permitted Domains = kafila, localhost, example.com\n",
    ]);
    let said = run(folder.path(), "tls ca info kafila-ca-key.pem").await;
    said.ended(1).complained(&["no certificate"]);
    let said = run(folder.path(), "tls ca info missing.pem").await;
    said.ended(1)
        .complained(&["missing.pem", "kafila tls ca create"]);
}

#[tokio::test]
async fn a_certificate_is_created_and_shown() {
    let folder = folder().await;
    let line = "tls cert create -role=gateway -additional-dnsname=gw.example.com \
                -additional-ipaddress=10.0.0.1";
    run(folder.path(), line)
        .await
        .ended(0)
        .printed(&["global-gateway.pem\n", "global-gateway-key.pem\n"]);
    assert_eq!(mode(&folder.path().join("global-gateway-key.pem")), 0o600);
    let said = run(folder.path(), "tls cert info global-gateway.pem").await;
    said.ended(0).printed(&[
        "Role          = gateway\n",
        "Region        = global\n",
        "Issuer        = CN=Kafila CA\n",
        "Usages        = server, client\n",
        "DNS Names     = gateway.global.kafila, ",
        "gw.example.com\n",
        "10.0.0.1",
        "URIs          = spiffe://global.kafila/gateway/gateway\n",
    ]);
    // The CA has no role.
    let said = run(folder.path(), "tls cert info kafila-ca.pem").await;
    said.ended(0).printed(&["Role          = none: "]);
}

#[tokio::test]
async fn the_flags_of_nomad_stand_for_roles() {
    let folder = folder().await;
    run(folder.path(), "tls cert create -server -region=eu")
        .await
        .ended(0);
    let line = format!("tls cert create -client -node={NODE}");
    run(folder.path(), &line).await.ended(0);
    run(folder.path(), "tls cert create -cli -name=alice")
        .await
        .ended(0);
    let found = names(folder.path());
    let node = format!("global-node-{NODE}.pem");
    let expected = [
        "eu-applier.pem",
        "eu-broker.pem",
        "eu-controller.pem",
        "eu-gateway.pem",
        "eu-watcher.pem",
        "eu-worker.pem",
        &node,
        "global-operator-alice.pem",
    ];
    let certificates: Vec<&String> = found
        .iter()
        .filter(|name| !name.ends_with("-key.pem") && *name != "kafila-ca.pem")
        .collect();
    assert_eq!(certificates, expected);
    assert_eq!(found.len(), 2 * (expected.len() + 1));
    let said = run(folder.path(), &format!("tls cert info {node}")).await;
    said.ended(0)
        .printed(&["Role          = node\n", "Name          = ", NODE]);
}

#[tokio::test]
async fn nothing_is_written_if_one_of_several_files_exists() {
    let folder = folder().await;
    std::fs::write(folder.path().join("global-worker-key.pem"), "mine").unwrap();
    let said = run(folder.path(), "tls cert create -server").await;
    said.ended(1)
        .complained(&["global-worker-key.pem already exists"]);
    assert_eq!(
        names(folder.path()),
        [
            "global-worker-key.pem",
            "kafila-ca-key.pem",
            "kafila-ca.pem"
        ]
    );
}

#[tokio::test]
async fn an_error_names_the_flag_and_the_fix() {
    let folder = folder().await;
    let table = [
        ("", &["-role", "gateway", "-server", "-client", "-cli"][..]),
        ("-role=root", &["-role", "unknown role \"root\"", "gateway"]),
        ("-role=node -node=n1", &["-node", "client-id"]),
        (
            "-role=gateway -node=n1",
            &["-node is for role node", "gateway"],
        ),
        (
            "-role=gateway -region=E.U",
            &["-region", "E.U", "DNS label"],
        ),
        ("-role=gateway -name=a/b", &["-name", "a/b"]),
        ("-role=gateway -days=0", &["-days", "1 to"]),
        (
            "-role=gateway -days=9999",
            &["-days", "longer than its CA", "fewer"],
        ),
        (
            "-role=node -node=NODE -additional-dnsname=gateway.global.kafila",
            &[
                "-additional-dnsname",
                "gateway.global.kafila",
                "Leave it out",
            ],
        ),
        (
            "-role=gateway -additional-dnsname=10.0.0.1",
            &["-additional-dnsname", "-additional-ipaddress"],
        ),
        (
            "-role=gateway -additional-ipaddress=x",
            &["-additional-ipaddress", "for example 10.0.0.1"],
        ),
        ("-role=gateway -days=x", &["-days", "for example 365"]),
        (
            "-role=gateway -ca=none.pem",
            &["-ca=none.pem", "kafila tls ca create"],
        ),
        (
            "-role=gateway -key=kafila-ca.pem",
            &["-key=kafila-ca.pem", "kafila tls ca create"],
        ),
        (
            "-role=gateway -out-dir=none",
            &["no such directory", "-out-dir"],
        ),
    ];
    for (flags, parts) in table {
        let flags = flags.replace("NODE", NODE);
        let said = run(folder.path(), &format!("tls cert create {flags}")).await;
        said.ended(1);
        for part in parts {
            assert!(
                said.stderr.contains(part),
                "{flags}: {part}: {}",
                said.stderr
            );
        }
    }
    assert_eq!(names(folder.path()), ["kafila-ca-key.pem", "kafila-ca.pem"]);
    let said = run(folder.path(), "tls ca create -additional-domain=a.b").await;
    said.ended(1).complained(&["-name-constraint"]);
}
