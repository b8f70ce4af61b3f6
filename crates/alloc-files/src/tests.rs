//! Files of hostile tasks, and files that change while they are read.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::*;

struct Alloc {
    base: tempfile::TempDir,
}

impl Alloc {
    fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        fs::create_dir_all(base.path().join("id/alloc/logs")).unwrap();
        fs::create_dir_all(base.path().join("id/web/secrets")).unwrap();
        fs::write(base.path().join("outside"), "of the node").unwrap();
        Self { base }
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.base.path().join("id").join(path)
    }

    fn directory(&self) -> Directory {
        Directory::open(&self.path("")).unwrap()
    }

    fn open(&self, path: &str, origin: Origin) -> Result<Reader, Error> {
        Reader::open(self.directory(), FilePath::parse(path)?, origin)
    }

    fn refusal(&self, path: &str) -> String {
        self.open(path, Origin::Start(0)).unwrap_err().to_string()
    }
}

fn all(reader: &mut Reader) -> String {
    let mut all = Vec::new();
    while let Step::Data(data) = reader.step(u64::MAX, false).unwrap() {
        all.extend(data);
    }
    String::from_utf8(all).unwrap()
}

fn text(step: Step) -> String {
    match step {
        Step::Data(data) => String::from_utf8(data).unwrap(),
        other => format!("{other:?}"),
    }
}

#[test]
fn directories_are_listed_by_name_with_the_facts_of_their_files() {
    let alloc = Alloc::new();
    fs::write(alloc.path("alloc/logs/web.stdout.0"), "hello").unwrap();
    fs::set_permissions(
        alloc.path("alloc/logs/web.stdout.0"),
        fs::Permissions::from_mode(0o640),
    )
    .unwrap();
    symlink("/etc/passwd", alloc.path("alloc/logs/link")).unwrap();
    let list = alloc
        .directory()
        .list(&FilePath::parse("/alloc/logs").unwrap())
        .unwrap();
    assert!(!list.is_truncated);
    let files: Vec<_> = list
        .files
        .iter()
        .map(|file| (file.name.as_str(), file.size, &file.mode[..4]))
        .collect();
    assert_eq!(files, [("link", 0, "lrwx"), ("web.stdout.0", 5, "-rw-")]);
    assert!(list.files[1].modified_at_ns > 1_000_000_000_000_000_000);
    let root = alloc
        .directory()
        .list(&FilePath::parse("").unwrap())
        .unwrap();
    let names: Vec<_> = root.files.iter().map(|it| (&*it.name, it.is_dir)).collect();
    assert_eq!(names, [("alloc", true), ("web", true)]);
    let info = |path: &str| alloc.directory().info(&FilePath::parse(path).unwrap());
    assert_eq!(info("alloc/logs/web.stdout.0").unwrap(), list.files[1]);
    assert_eq!(info("alloc/logs/link").unwrap(), list.files[0]);
    assert_eq!(info("").unwrap().name, "/");
    let missing = info("alloc/nope").unwrap_err().to_string();
    assert!(missing.contains("there is no \"/alloc/nope\""), "{missing}");
    let path = FilePath::parse("alloc/logs/web.stdout.0").unwrap();
    let not_dir = alloc.directory().list(&path).unwrap_err().to_string();
    assert!(not_dir.contains("is no directory"), "{not_dir}");
}

#[test]
fn a_huge_directory_is_cut() {
    let alloc = Alloc::new();
    for number in 0..=ENTRIES_MAX {
        fs::write(alloc.path(&format!("web/{number}")), "").unwrap();
    }
    let list = alloc
        .directory()
        .list(&FilePath::parse("web").unwrap())
        .unwrap();
    assert_eq!((list.files.len(), list.is_truncated), (ENTRIES_MAX, true));
}

#[test]
fn no_link_is_followed() {
    let alloc = Alloc::new();
    symlink(alloc.base.path().join("outside"), alloc.path("web/file")).unwrap();
    symlink(alloc.base.path(), alloc.path("web/up")).unwrap();
    symlink("secrets", alloc.path("web/s")).unwrap();
    fs::write(alloc.path("web/secrets/token"), "t").unwrap();
    for path in ["web/file", "web/up/outside", "web/s/token"] {
        assert!(alloc.refusal(path).contains("symbolic link"), "{path}");
    }
    for path in ["web/up", "web/s"] {
        let listed = alloc.directory().list(&FilePath::parse(path).unwrap());
        assert!(matches!(listed, Err(Error::Link { .. })), "{listed:?}");
    }
    let beyond = alloc
        .directory()
        .info(&FilePath::parse("web/up/outside").unwrap());
    assert!(
        matches!(beyond, Err(Error::Link { .. } | Error::Escapes { .. })),
        "{beyond:?}"
    );
}

#[test]
fn only_regular_files_are_read_and_a_pipe_does_not_block() {
    let alloc = Alloc::new();
    mkfifo(&alloc.path("web/pipe"), Mode::S_IRWXU).unwrap();
    let _socket = UnixListener::bind(alloc.path("web/socket")).unwrap();
    for (path, why) in [
        ("web/pipe", "a named pipe"),
        ("web/socket", "a socket"),
        ("web", "is a directory"),
        ("web/none", "there is no"),
        ("web/none/x", "there is no"),
    ] {
        assert!(alloc.refusal(path).contains(why), "{path}");
    }
    // Needs root.
    let device = alloc.path("web/null");
    let made = nix::sys::stat::mknod(
        &device,
        nix::sys::stat::SFlag::S_IFCHR,
        Mode::S_IRWXU,
        nix::sys::stat::makedev(1, 3),
    );
    if made.is_ok() {
        assert!(alloc.refusal("web/null").contains("a device"));
    }
}

#[test]
fn another_name_of_a_file_that_not_everyone_may_read_is_refused() {
    let alloc = Alloc::new();
    let outside = alloc.base.path().join("outside");
    fs::hard_link(&outside, alloc.path("web/stolen")).unwrap();
    let set = |mode| fs::set_permissions(&outside, fs::Permissions::from_mode(mode)).unwrap();
    set(0o600);
    assert!(alloc.refusal("web/stolen").contains("several names"));
    set(0o644);
    assert!(alloc.open("web/stolen", Origin::Start(0)).is_ok());
}

#[test]
fn a_huge_sparse_file_is_read_in_parts_from_any_place() {
    let alloc = Alloc::new();
    let file = fs::File::create(alloc.path("web/huge")).unwrap();
    let end = 1 << 40;
    file.write_all_at(b"end", end).unwrap();
    assert!(file.metadata().unwrap().blocks() < 1000);
    let mut reader = alloc.open("web/huge", Origin::End(3)).unwrap();
    assert_eq!(all(&mut reader), "end");
    assert_eq!(reader.position(), end + 3);
    let mut reader = alloc.open("web/huge", Origin::Start(0)).unwrap();
    let Step::Data(data) = reader.step(u64::MAX, false).unwrap() else {
        panic!("no data");
    };
    assert_eq!(data.len(), CHUNK_BYTES);
    assert_eq!(text(reader.step(2, false).unwrap()), "\0\0");
}

#[test]
fn reading_starts_at_any_offset_and_stops_at_the_limit() {
    let alloc = Alloc::new();
    fs::write(alloc.path("web/f"), "abcdef").unwrap();
    for (origin, want) in [
        (Origin::Start(0), "abcdef"),
        (Origin::Start(4), "ef"),
        (Origin::Start(9), ""),
        (Origin::End(0), ""),
        (Origin::End(2), "ef"),
        (Origin::End(9), "abcdef"),
    ] {
        assert_eq!(all(&mut alloc.open("web/f", origin).unwrap()), want);
    }
    let mut reader = alloc.open("web/f", Origin::Start(1)).unwrap();
    assert_eq!(text(reader.step(2, false).unwrap()), "bc");
}

#[test]
fn a_followed_file_grows_shrinks_is_rotated_and_goes() {
    let alloc = Alloc::new();
    let path = alloc.path("web/app.log");
    let append = |path: &Path, text: &str| {
        let mut file = fs::File::options().append(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    };
    fs::write(&path, "one").unwrap();
    let mut reader = alloc.open("web/app.log", Origin::Start(0)).unwrap();
    let mut step = || text(reader.step(u64::MAX, true).unwrap());
    assert_eq!((step(), step()), ("one".to_owned(), "AtEnd".to_owned()));
    append(&path, "two");
    assert_eq!(step(), "two");
    // Truncated in place, as by `copytruncate`.
    fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(0)
        .unwrap();
    assert_eq!(step(), "Truncated");
    append(&path, "new");
    assert_eq!(step(), "new");
    // Rotated: the last lines of the old file come first.
    let rotated = alloc.path("web/app.log.1");
    fs::rename(&path, &rotated).unwrap();
    append(&rotated, "last");
    assert_eq!((step(), step()), ("last".to_owned(), "Missing".to_owned()));
    fs::write(&path, "next").unwrap();
    assert_eq!((step(), step()), ("Replaced".to_owned(), "next".to_owned()));
    // A link in its place is not followed.
    fs::remove_file(&path).unwrap();
    assert_eq!(step(), "Missing");
    symlink(&rotated, &path).unwrap();
    let refused = reader.step(u64::MAX, true).unwrap_err();
    assert!(matches!(refused, Error::Link { .. }), "{refused}");
}

#[test]
fn a_removed_allocation_is_gone() {
    let alloc = Alloc::new();
    fs::write(alloc.path("web/f"), "x").unwrap();
    let mut reader = alloc.open("web/f", Origin::End(0)).unwrap();
    fs::remove_dir_all(alloc.path("")).unwrap();
    assert_eq!(reader.step(u64::MAX, true).unwrap(), Step::Missing);
    assert!(Directory::open(&alloc.path("")).is_err());
}
