//! The table of rights has the same methods as the protos and `docs/security.md`.

use std::collections::BTreeSet;

use authorization::METHODS;
use prost::Message as _;
use prost_types::FileDescriptorSet;

/// The descriptors of `/proto`, and those of the services that every server has.
const DESCRIPTORS: [&[u8]; 3] = [
    proto::DESCRIPTORS,
    tonic_health::pb::FILE_DESCRIPTOR_SET,
    tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
];

const PAGE: &str = include_str!("../../../../docs/security.md");

fn declared() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for descriptors in DESCRIPTORS {
        for file in FileDescriptorSet::decode(descriptors).unwrap().file {
            for service in &file.service {
                for method in &service.method {
                    let (package, service) = (file.package(), service.name());
                    names.insert(format!("{package}.{service}/{}", method.name()));
                }
            }
        }
    }
    names
}

#[test]
fn every_method_of_the_protos_has_one_row_and_every_row_a_method() {
    let declared = declared();
    assert!(declared.len() > 70, "{} methods", declared.len());
    let rows: BTreeSet<String> = METHODS.iter().map(|row| row.name.to_owned()).collect();
    assert_eq!(rows.len(), METHODS.len(), "no method has two rows");
    let missing: Vec<_> = declared.difference(&rows).collect();
    let superfluous: Vec<_> = rows.difference(&declared).collect();
    assert!(
        missing.is_empty() && superfluous.is_empty(),
        "crates/authorization/src/table.rs lacks {missing:?} and has {superfluous:?}, which no proto declares"
    );
}

#[test]
fn the_documentation_has_the_same_rows() {
    let rows = METHODS
        .iter()
        .map(|row| format!("| `{}` | {} |", row.name, row.access.describe()));
    let missing: Vec<String> = rows.filter(|row| !PAGE.contains(row)).collect();
    assert!(
        missing.is_empty(),
        "docs/security.md lacks:\n{}",
        missing.join("\n")
    );
    let documented = PAGE.matches("| `kafila.").count() + PAGE.matches("| `grpc.").count();
    assert_eq!(documented, METHODS.len(), "rows of docs/security.md");
}
