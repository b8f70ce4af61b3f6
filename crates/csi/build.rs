//! Compiles the specification's proto with protox, which needs no protoc.

use std::env;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("proto");
    println!("cargo:rerun-if-changed={}", root.display());
    let descriptors = protox::compile(["csi/v1/csi.proto"], [&root])?;
    tonic_prost_build::configure()
        // The specification's comments hold lists that are no doc tests.
        .disable_comments(["."])
        .compile_fds(descriptors)?;
    Ok(())
}
