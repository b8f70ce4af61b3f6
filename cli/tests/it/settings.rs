//! Settings of the connection that cannot be used: only commands that call a gateway mind.

use crate::command::{Kafila, kafila};
use crate::job_file::File;

const MISSING: &str = "/no/such/file.pem";

/// Settings of the connection that name missing files.
fn with_missing_files(command: Kafila) -> Kafila {
    command
        .env("KAFILA_ADDR", "https://127.0.0.1:1")
        .env("KAFILA_CACERT", MISSING)
        .env("KAFILA_CLIENT_CERT", MISSING)
        .env("KAFILA_CLIENT_KEY", MISSING)
}

#[tokio::test]
async fn commands_without_a_connection_ignore_missing_files_of_tls() {
    let folder = tempfile::tempdir().unwrap();
    for line in [
        "version",
        "help",
        "job run -help",
        "completions bash",
        "job init",
        "tls ca create",
        "tls cert create -role=gateway",
        "tls cert info global-gateway.pem",
        "node pool init",
        "volume init",
    ] {
        let said = with_missing_files(kafila(line).current_dir(folder.path()));
        let said = said.run().await;
        assert_eq!(said.code, 0, "{line}: {}", said.stderr);
    }
    let line = "operator snapshot inspect none.snap";
    let said = with_missing_files(kafila(line).current_dir(folder.path()));
    said.run().await.ended(1).complained(&["none.snap"]);
}

#[tokio::test]
async fn a_file_is_validated_without_the_cluster() {
    let file = File::web();
    let said = with_missing_files(kafila("job validate").arg(&file.path));
    let said = said.run().await;
    said.ended(0)
        .complained(&["Checked without the cluster", MISSING]);
    assert_eq!(said.stdout, "Job validation successful\n");
}

#[tokio::test]
async fn the_first_call_names_the_file_and_its_settings() {
    let said = with_missing_files(kafila("job status")).run().await;
    said.ended(1).complained(&[
        "https://127.0.0.1:1",
        MISSING,
        "-ca-cert, -client-cert and -client-key",
        "KAFILA_CACERT",
    ]);
    let said = with_missing_files(kafila("version -gateway")).run().await;
    said.ended(1).printed(&["Kafila v"]).complained(&[MISSING]);
    let said = kafila("job status").env("KAFILA_ADDR", "ftp://a").run();
    said.await
        .ended(1)
        .complained(&["\"ftp://a\"", "KAFILA_ADDR"]);
    let said = kafila("version").env("KAFILA_ADDR", "ftp://a").run();
    said.await.ended(0).printed(&["Kafila v"]);
}
