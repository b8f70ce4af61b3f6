//! Any text as the source of an artifact and as a list of checksums: read or refused, never a panic, and
//! no path that leaves.
//!
//!   cargo +nightly fuzz run artifact_source -- -max_len=4096

#![no_main]

use std::collections::BTreeMap;
use std::path::Component;

use artifact::{Digest, Source};
use model::AllocPath;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let (source, checksum) = text.split_once('\n').unwrap_or((text, ""));
    let options = BTreeMap::from([("checksum".to_owned(), checksum.to_owned())]);
    for options in [&options, &BTreeMap::new()] {
        if let Ok(source) = Source::parse(source, options) {
            let subdir = source.subdir.iter().flat_map(|it| it.components());
            assert!(subdir.into_iter().all(|it| matches!(it, Component::Normal(_))));
            assert!(source.name.is_none_or(|it| !it.contains('/') && it != ".."));
        }
    }
    if let Some(place) = AllocPath::at(source) {
        assert!(place.path().components().all(|it| matches!(it, Component::Normal(_))));
    }
    let _ = Digest::in_list(text, "a");
});
