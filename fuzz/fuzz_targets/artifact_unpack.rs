//! Any bytes as an archive of each kind: unpacked or refused, never a panic, nothing outside of the folder,
//! and no special bit or file in it.
//!
//!   cargo +nightly fuzz run artifact_unpack -- -max_len=65536

#![no_main]

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use artifact::{Archive, Budget, entry};

const KINDS: [&str; 7] = ["tar", "tar.gz", "tar.bz2", "tar.xz", "tar.zst", "zip", "gz"];

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((kind, content)) = bytes.split_first() else {
        return;
    };
    let archive = Archive::named(KINDS[usize::from(*kind) % KINDS.len()]).unwrap();
    let base = tempfile::tempdir().unwrap();
    let blob = base.path().join("blob");
    fs::write(&blob, content).unwrap();
    let tree = base.path().join("tree");
    let budget = Budget::new(100, 1 << 20);
    let blob = File::open(&blob).unwrap();
    let _ = artifact_fetch::helper::unpack(blob, archive, Path::new("x"), &tree, budget);
    check(&tree, Path::new(""));
    assert_eq!(fs::read_dir(base.path()).unwrap().count(), 2);
});

fn check(folder: &Path, below: &Path) {
    for item in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (kind, below) = (item.file_type().unwrap(), below.join(item.file_name()));
        if kind.is_symlink() {
            entry::link(&below, &fs::read_link(item.path()).unwrap()).unwrap();
            continue;
        }
        assert!(kind.is_dir() || kind.is_file());
        assert_eq!(item.metadata().unwrap().permissions().mode() & 0o7022, 0);
        if kind.is_dir() {
            check(&item.path(), &below);
        }
    }
}
