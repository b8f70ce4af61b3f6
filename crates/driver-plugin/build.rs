//! Compiles the protocol's protos with protox, which needs no protoc.

use std::env;
use std::path::PathBuf;

const FILES: [&str; 6] = [
    "attribute.proto",
    "base.proto",
    "driver.proto",
    "go_plugin.proto",
    "hclspec.proto",
    "recoverable_error.proto",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("proto");
    println!("cargo:rerun-if-changed={}", root.display());
    let descriptors = protox::compile(FILES, [&root])?;
    tonic_prost_build::configure()
        .include_file("wire.rs")
        // Of two problems the same one is always first.
        .btree_map(".")
        .compile_fds(descriptors)?;
    Ok(())
}
