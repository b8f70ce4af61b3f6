//! Compiles /proto with protox, which needs no protoc, and keeps the descriptors for reflection.

use std::path::{Path, PathBuf};
use std::{env, fs};

use prost::Message as _;

/// The messages of this file are the types of the crate `job-fields`.
const JOB_SPEC: &str = "kafila/v1/job_spec.proto";

const FILES: [&str; 28] = [
    "kafila/v1/agent.proto",
    "kafila/v1/alloc_file.proto",
    "kafila/v1/allocation.proto",
    "kafila/v1/common.proto",
    "kafila/v1/csi.proto",
    "kafila/v1/deployment.proto",
    "kafila/v1/evaluation.proto",
    "kafila/v1/event.proto",
    "kafila/v1/job.proto",
    "kafila/v1/job_operations.proto",
    JOB_SPEC,
    "kafila/v1/namespace.proto",
    "kafila/v1/node.proto",
    "kafila/v1/node_control.proto",
    "kafila/v1/node_pool.proto",
    "kafila/v1/operator.proto",
    "kafila/v1/scaling_policy.proto",
    "kafila/v1/service.proto",
    "kafila/v1/usage.proto",
    "kafila/v1/variable.proto",
    "kafila/v1/volume.proto",
    "kafila/internal/v1/broker.proto",
    "kafila/internal/v1/introduction.proto",
    "kafila/internal/v1/liveness.proto",
    "kafila/internal/v1/maintenance.proto",
    "kafila/internal/v1/node.proto",
    "kafila/internal/v1/node_connections.proto",
    "kafila/internal/v1/plan.proto",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../proto");
    println!("cargo:rerun-if-changed={}", root.display());
    let descriptors = protox::compile(FILES, [&root])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    // Reflection needs no comments, which are most of the bytes.
    let mut reflected = descriptors.clone();
    for file in &mut reflected.file {
        file.source_code_info = None;
    }
    fs::write(out.join("kafila.bin"), reflected.encode_to_vec())?;
    let mut builder = tonic_prost_build::configure();
    let files = descriptors.file.iter();
    for file in files.filter(|file| file.name() == JOB_SPEC) {
        for message in &file.message_type {
            let name = message.name();
            builder = builder.extern_path(
                format!(".kafila.v1.{name}"),
                format!("::job_fields::{name}"),
            );
        }
    }
    builder.out_dir(&out).compile_fds(descriptors)?;
    for package in ["kafila.v1", "kafila.internal.v1"] {
        share_calls(&out.join(format!("{package}.rs")))?;
    }
    Ok(())
}

/// Generated clients and services use `crate::rpc` in place of tonic's types.
fn share_calls(file: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut text = fs::read_to_string(file)?;
    for (tonic, shared, what) in [
        (
            "tonic::client::Grpc<",
            "crate::rpc::client::Grpc<",
            "clients",
        ),
        (
            "tonic::client::Grpc::",
            "crate::rpc::client::Grpc::",
            "clients",
        ),
        (
            "tonic::server::Grpc::",
            "crate::rpc::server::Grpc::",
            "services",
        ),
    ] {
        if !text.contains(tonic) {
            return Err(format!("{}: no {what} with {tonic}", file.display()).into());
        }
        text = text.replace(tonic, shared);
    }
    fs::write(file, text)?;
    Ok(())
}
