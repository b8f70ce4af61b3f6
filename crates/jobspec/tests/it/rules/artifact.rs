//! Artifacts of tasks.

use model::artifact::ArtifactMode;

use super::check;
use crate::support::{admit, file};

/// A task with one artifact.
fn of(lines: &str) -> &'static str {
    Box::leak(format!("artifact {{\n{lines}\n}}").into())
}

/// An artifact of a good source; further lines.
fn with(lines: &str) -> &'static str {
    of(&format!("source = \"https://h.test/a.zip\"\n{lines}"))
}

#[test]
#[rustfmt::skip]
fn the_fields_of_an_artifact_are_checked() {
    check(&[
        ("", "", of(""), "$t.artifact[0].source", "Missing artifact source"),
        ("", "", with("mode = \"folder\""), "$t.artifact[0].mode", "use any, file or dir"),
        ("", "", with("destination = \"../../x\""), "$t.artifact[0].destination", "escapes allocation directory"),
        ("", "", with("destination = \"local/../../other\""), "$t.artifact[0].destination", "escapes allocation directory"),
        ("", "", with("mode = \"file\"\ndestination = \"/\""), "$t.artifact[0].destination", "write the path of the file"),
        ("", "", of("source = \"hg::https://h.test/x\""), "$t.artifact[0].source", "which is not supported: use https, http, git or s3"),
        ("", "", of("source = \"ftp://h.test/x\""), "$t.artifact[0].source", "\"ftp://\""),
        ("", "", of("source = \"https://h.test/x//../y\""), "$t.artifact[0].source", "leaves the archive"),
        ("", "", with("options {\nchecksum = \"sha256:12\"\n}"), "$t.artifact[0].options.checksum", "64 hexadecimal digits"),
        ("", "", with("options {\narchive = \"rar\"\n}"), "$t.artifact[0].options.archive", "is not a kind of archive"),
    ]);
}

#[test]
fn an_artifact_has_the_defaults_of_the_documentation() {
    let task = format!(
        "{}\n{}\n{}",
        with(""),
        with("mode = \"file\""),
        of(
            "source = \"git::https://h.test/${NOMAD_META_repo}\"\ndestination = \"${NOMAD_ALLOC_DIR}/x\"\nchown = true"
        )
    );
    let admitted = admit(&file("", "", &task)).unwrap();
    let artifacts = &admitted.job.task_groups[0].tasks[0].artifacts;
    let found: Vec<_> = artifacts
        .iter()
        .map(|it| (it.destination.as_str(), it.mode, it.chown))
        .collect();
    let want = [
        ("local/", ArtifactMode::Any, false),
        ("local/a.zip", ArtifactMode::File, false),
        ("${NOMAD_ALLOC_DIR}/x", ArtifactMode::Any, true),
    ];
    assert_eq!(found, want);
}

#[test]
fn a_source_without_a_scheme_is_a_warning() {
    let admitted = admit(&file("", "", of("source = \"example.com\""))).unwrap();
    let warned = admitted
        .warnings
        .iter()
        .any(|it| it.contains("its download will fail"));
    assert!(warned, "{:?}", admitted.warnings);
}
