//! A stand-in for protoc: writes the descriptor set of the given .proto files.
//!
//! Takes the arguments that prost-build passes and no others; protox does the work. Outside the
//! workspace, because it is built while the workspace is.

use std::path::PathBuf;
use std::process::ExitCode;
use std::{env, fs};

use protox::Compiler;

fn main() -> ExitCode {
    match run(env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("protoc stand-in: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut arguments: impl Iterator<Item = String>) -> Result<(), Box<dyn std::error::Error>> {
    let (mut includes, mut files, mut output) = (Vec::new(), Vec::new(), None);
    let (mut imports, mut source_info) = (false, false);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--include_imports" => imports = true,
            "--include_source_info" => source_info = true,
            "-I" => includes.push(PathBuf::from(arguments.next().ok_or("-I needs a folder")?)),
            "-o" => output = Some(arguments.next().ok_or("-o needs a file")?),
            "--version" => {
                println!("libprotoc 25.0");
                return Ok(());
            }
            option if option.starts_with('-') => {
                return Err(format!("option {option} is unknown; set PROTOC to a protoc").into());
            }
            file => files.push(PathBuf::from(file)),
        }
    }
    let output = output.ok_or("-o is missing")?;
    let mut compiler = Compiler::new(includes)?;
    compiler.include_imports(imports);
    compiler.include_source_info(source_info);
    compiler.open_files(files)?;
    fs::write(output, compiler.encode_file_descriptor_set())?;
    Ok(())
}
