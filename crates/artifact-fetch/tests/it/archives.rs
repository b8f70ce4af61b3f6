//! Archives of every kind, and what becomes of them in each mode.

use std::io::Write as _;

use artifact_fetch::Form;

use crate::place::{Place, message, wanted, wanted_with};
use crate::server::Server;

pub(crate) fn tar(entries: &[(&str, &str, u32)]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, content, mode) in entries {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(*mode);
        archive.append_data(&mut header, name, content.as_bytes()).unwrap();
    }
    archive.into_inner().unwrap()
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn zip(entries: &[(&str, &str, u32)]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content, mode) in entries {
        let options = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Deflated)
            .unix_permissions(*mode);
        archive.start_file(*name, options).unwrap();
        archive.write_all(content.as_bytes()).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

#[tokio::test]
async fn every_kind_of_archive_is_unpacked() {
    let (place, server) = (Place::new(), Server::start());
    let artifacts = place.open();
    let hello = "hello\n".repeat(50_000);
    let plain = tar(&[("dir/hello.txt", &hello, 0o644)]);
    let two = [gzip(&plain[..1000]), gzip(&plain[1000..])].concat();
    let fixtures: [(&str, Vec<u8>); 6] = [
        ("a.tar", plain.clone()),
        ("a.tar.gz", two),
        ("a.tar.bz2", include_bytes!("../fixtures/two-streams.tar.bz2").to_vec()),
        ("a.tar.xz", include_bytes!("../fixtures/two-streams.tar.xz").to_vec()),
        ("a.tar.zst", include_bytes!("../fixtures/two-streams.tar.zst").to_vec()),
        ("a.zip", zip(&[("dir/hello.txt", &hello, 0o644)])),
    ];
    for (name, bytes) in fixtures {
        server.put(name, bytes, None);
        let at = format!("out-{name}");
        artifacts.put(&wanted(&server.url(name)), &place.at(&at, Form::Any)).await.unwrap();
        assert!(place.read(&format!("{at}/dir/hello.txt")) == hello, "{name}");
    }
    assert!(place.has_no_work());
}

#[tokio::test]
async fn a_compressed_file_loses_its_suffix() {
    let (place, server) = (Place::new(), Server::start());
    server.put("dump.sql.gz", gzip(b"select 1"), None);
    let artifacts = place.open();
    let url = wanted(&server.url("dump.sql.gz"));
    artifacts.put(&url, &place.at("local", Form::Any)).await.unwrap();
    artifacts.put(&url, &place.at("local/x", Form::File)).await.unwrap();
    assert_eq!(place.listed(), ["local/", "local/dump.sql", "local/x"]);
    assert_eq!(place.read("local/x"), "select 1");
}

#[tokio::test]
async fn options_decide_about_the_archive() {
    let (place, server) = (Place::new(), Server::start());
    let artifacts = place.open();
    server.put("a.zip", zip(&[("x", "1", 0o644)]), None);
    server.put("latest", gzip(&tar(&[("y", "2", 0o644)])), None);
    let url = server.url("a.zip");
    artifacts.put(&wanted_with(&url, &[("archive", "false")]), &place.at("", Form::Any)).await.unwrap();
    let url = server.url("latest");
    artifacts.put(&wanted_with(&url, &[("archive", "tar.gz")]), &place.at("", Form::Dir)).await.unwrap();
    assert_eq!(place.listed(), ["a.zip", "y"]);
    let wrong = wanted_with(&server.url("latest"), &[("archive", "zip")]);
    let error = message(artifacts.put(&wrong, &place.at("", Form::Any)).await);
    assert!(error.contains("the archive cannot be read"), "{error}");
}

#[tokio::test]
async fn a_part_of_an_archive_and_one_file_of_it() {
    use std::os::unix::fs::MetadataExt as _;
    let (place, server) = (Place::new(), Server::start());
    let artifacts = place.open();
    let archive = tar(&[("app-1.0/bin/app", "run", 0o4755), ("app-1.0/README", "read", 0o600)]);
    server.put("app.tar", archive, None);
    let part = format!("{}//app-1.0/bin", server.url("app.tar"));
    artifacts.put(&wanted(&part), &place.at("local", Form::Any)).await.unwrap();
    artifacts.put(&wanted(&part), &place.at("the-app", Form::File)).await.unwrap();
    assert_eq!(place.listed(), ["local/", "local/app", "the-app"]);
    // Special bits do not come out of archives.
    let mode = std::fs::metadata(place.task().join("local/app")).unwrap().mode();
    assert_eq!(mode & 0o7777, 0o755);
    let missing = format!("{}//app-2.0", server.url("app.tar"));
    let error = message(artifacts.put(&wanted(&missing), &place.at("", Form::Any)).await);
    assert!(error.contains("no directory \"app-2.0\""), "{error}");
    let all = wanted(&server.url("app.tar"));
    let error = message(artifacts.put(&all, &place.at("x", Form::File)).await);
    assert!(error.contains("must have one file, and it has 2"), "{error}");
}
