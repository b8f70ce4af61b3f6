//! Files, if the caller enables file access: `basename dirname file filebase64 fileexists`.

use std::path::Path;

use super::call::Call;
use super::encoding::to_base64;
use super::function::Function;
use super::text::text;
use crate::language::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "basename",
        parameters: "path",
        call: basename,
    },
    Function {
        name: "dirname",
        parameters: "path",
        call: dirname,
    },
    Function {
        name: "file",
        parameters: "path",
        call: file,
    },
    Function {
        name: "filebase64",
        parameters: "path",
        call: filebase64,
    },
    Function {
        name: "fileexists",
        parameters: "path",
        call: fileexists,
    },
];

const DISABLED: &str = "filesystem function disabled: files can be read only where the job file \
                        is; pass the content as a variable";

fn path(call: &Call<'_>) -> Result<String, String> {
    if call.host.read_file.is_none() {
        return Err(DISABLED.to_owned());
    }
    call.text(0)
}

fn read(call: &Call<'_>) -> Result<Vec<u8>, String> {
    let path = path(call)?;
    let read_file = call
        .host
        .read_file
        .as_ref()
        .ok_or_else(|| DISABLED.to_owned())?;
    let bytes = read_file(Path::new(&path)).map_err(|error| {
        format!("cannot read {path:?}: {error}; paths are relative to the working directory")
    })?;
    call.pay(bytes.len())?;
    Ok(bytes)
}

fn file(call: &Call<'_>) -> Result<Value, String> {
    let content = String::from_utf8(read(call)?)
        .map_err(|_| "the content is not UTF-8: use filebase64".to_owned())?;
    Ok(Value::String(content))
}

fn filebase64(call: &Call<'_>) -> Result<Value, String> {
    text(&to_base64(&read(call)?))
}

fn fileexists(call: &Call<'_>) -> Result<Value, String> {
    let path = path(call)?;
    let read_file = call
        .host
        .read_file
        .as_ref()
        .ok_or_else(|| DISABLED.to_owned())?;
    match read_file(Path::new(&path)) {
        Ok(_) => Ok(Value::Bool(true)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Value::Bool(false)),
        Err(error) => Err(format!("cannot look at {path:?}: {error}")),
    }
}

/// The last part of a path, as Go's `filepath.Base`.
fn basename(call: &Call<'_>) -> Result<Value, String> {
    let path = path(call)?;
    let trimmed = path.trim_end_matches('/');
    match (path.as_str(), trimmed) {
        ("", _) => text("."),
        (_, "") => text("/"),
        _ => text(trimmed.rsplit('/').next().unwrap_or(trimmed)),
    }
}

/// All but the last part of a path, as Go's `filepath.Dir` for paths without dots.
fn dirname(call: &Call<'_>) -> Result<Value, String> {
    let path = path(call)?;
    match path.rsplit_once('/') {
        None => text("."),
        Some((directory, _)) => {
            let directory = directory.trim_end_matches('/');
            text(if directory.is_empty() { "/" } else { directory })
        }
    }
}
