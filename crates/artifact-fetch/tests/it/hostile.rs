//! Hostile archives: refused by the entry's name, nothing written outside, nothing left.

use std::path::Path;

use artifact_fetch::Form;

use crate::archives::{gzip, tar, zip};
use crate::place::{Place, message, wanted};
use crate::server::Server;

/// A tar archive with one entry whose name and link are written as they are.
fn raw(kind: tar::EntryType, name: &str, link: &str) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(kind);
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
    let content: &[u8] = if kind == tar::EntryType::Regular { b"evil" } else { b"" };
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    header.set_cksum();
    archive.append(&header, content).unwrap();
    archive.into_inner().unwrap()
}

/// Archives without the end of the first one.
fn joined(archives: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for archive in archives {
        bytes.extend_from_slice(&archive[..archive.len() - 1024]);
    }
    bytes.extend_from_slice(&[0; 1024]);
    bytes
}

async fn refused(name: &str, archive: Vec<u8>) -> String {
    let (place, server) = (Place::new(), Server::start());
    server.put(name, archive, None);
    let artifacts = place.open_with(|config| {
        config.unpacked_bytes_max = 1 << 20;
    });
    let destination = place.at("local", Form::Any);
    let error = message(artifacts.put(&wanted(&server.url(name)), &destination).await);
    assert!(place.listed().is_empty(), "{:?}", place.listed());
    drop(artifacts);
    // The removal runs on a thread.
    for _ in 0..100 {
        if place.has_no_work() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert!(place.has_no_work());
    error
}

#[tokio::test]
async fn scenario_062_entries_that_leave_are_refused_by_name() {
    use tar::EntryType as Kind;
    let outside = "/tmp/kafila-artifact-evil";
    for (kind, name, link, want) in [
        (Kind::Regular, "../../etc/x", "", "leaves the destination"),
        (Kind::Regular, outside, "", "is absolute"),
        (Kind::Directory, "../d", "", "leaves the destination"),
        (Kind::Symlink, "link", "/etc", "leads out"),
        (Kind::Symlink, "link", "../../x", "leads out"),
        (Kind::Symlink, "a/link", "b/../../../x", "`..` after a name"),
        (Kind::Link, "hard", "/etc/passwd", "leads out"),
        (Kind::Link, "hard", "../../etc/passwd", "leads out"),
        (Kind::Link, "hard", "missing", "leads to no file"),
        (Kind::Fifo, "pipe", "", "special file"),
        (Kind::Char, "null", "", "special file"),
        (Kind::Block, "sda", "", "special file"),
    ] {
        let error = refused("x.tar", raw(kind, name, link)).await;
        let entry = format!("archive entry {name:?}: ");
        assert!(error.contains(&entry) && error.contains(want), "{name} -> {link}: {error}");
    }
    assert!(!Path::new(outside).exists());
}

#[tokio::test]
async fn scenario_062_nothing_is_written_through_a_link_of_the_archive() {
    use tar::EntryType as Kind;
    let link = raw(Kind::Symlink, "d", "elsewhere");
    let through = raw(Kind::Regular, "d/x", "");
    let error = refused("x.tar", joined(&[link, through])).await;
    assert!(error.contains("\"d/x\": a link or a file is in the place"), "{error}");
    let link = raw(Kind::Symlink, "s", "target");
    let hard = raw(Kind::Link, "h", "s");
    let error = refused("x.tar", joined(&[link, hard])).await;
    assert!(error.contains("\"h\": its hard link leads to no file"), "{error}");
}

#[tokio::test]
async fn scenario_062_zip_archives_have_the_same_rules() {
    for (name, want) in [
        ("../../etc/x", "leaves the destination"),
        ("/etc/kafila-evil", "is absolute"),
        ("..\\..\\x", "leaves the destination"),
    ] {
        let error = refused("x.zip", zip(&[(name, "evil", 0o644)])).await;
        assert!(error.contains("archive entry") && error.contains(want), "{name}: {error}");
    }
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    archive.add_symlink("link", "/etc/passwd", options).unwrap();
    let error = refused("x.zip", archive.finish().unwrap().into_inner()).await;
    assert!(error.contains("\"link\": its link leads out"), "{error}");
}

#[tokio::test]
async fn scenario_064_bombs_are_refused_at_the_limits() {
    let names: Vec<String> = (0..5000).map(|number| format!("f{number}")).collect();
    let entries: Vec<(&str, &str, u32)> = names.iter().map(|it| (it.as_str(), "", 0o644)).collect();
    for (name, archive) in [("x.zip", zip(&entries)), ("x.tar.gz", gzip(&tar(&entries)))] {
        let error = refused(name, archive).await;
        // The first entry is f0, so the 4,097th is f4096.
        assert!(error.contains("\"f4096\"") && error.contains("more than 4096 entries"), "{error}");
    }
    let large = "0".repeat(2 << 20);
    for (name, archive) in [
        ("x.zip", zip(&[("bomb", &large, 0o644)])),
        ("x.tar.gz", gzip(&tar(&[("bomb", &large, 0o644)]))),
        ("bomb.gz", gzip(large.as_bytes())),
    ] {
        let error = refused(name, archive).await;
        assert!(error.contains("bomb") && error.contains("more than 1048576 bytes"), "{error}");
    }
}

#[tokio::test]
async fn broken_archives_are_errors_of_the_archive() {
    let whole = gzip(&tar(&[("a", &"x".repeat(10_000), 0o644)]));
    for (name, archive) in [
        ("x.tar.gz", whole[..whole.len() / 2].to_vec()),
        ("x.zip", b"no archive".to_vec()),
        ("x.tar.xz", b"no archive".to_vec()),
        ("x.tar.zst", b"no archive".to_vec()),
        ("x.tar.bz2", b"BZh9no archive".to_vec()),
        ("x.tar.bz2", include_bytes!("../fixtures/two-streams.tar.bz2")[..150].to_vec()),
    ] {
        let error = refused(name, archive).await;
        assert!(error.contains("cannot be read"), "{name}: {error}");
    }
}
