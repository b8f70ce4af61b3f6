//! Files, if the caller enables file access: `abspath basename dirname file filebase64 fileexists
//! fileset pathexpand`.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use globset::GlobBuilder;

use super::call::Call;
use super::function::Function;
use super::text::text;
use crate::inputs::Files;
use crate::language::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "abspath",
        parameters: "path",
        call: abspath,
    },
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
    Function {
        name: "fileset",
        parameters: "directory, pattern",
        call: fileset,
    },
    Function {
        name: "pathexpand",
        parameters: "path",
        call: pathexpand,
    },
];

/// Maximum number of files that `fileset` looks at.
const MAX_LISTED: usize = 10_000;

const DISABLED: &str = "filesystem function disabled: files can be read only where the job file \
                        is; pass the content as a variable";

fn files<'a>(call: &'a Call<'_>) -> Result<&'a Arc<dyn Files>, String> {
    call.host.files.as_ref().ok_or_else(|| DISABLED.to_owned())
}

fn path(call: &Call<'_>) -> Result<String, String> {
    files(call)?;
    call.text(0)
}

fn read(call: &Call<'_>) -> Result<Vec<u8>, String> {
    let path = call.text(0)?;
    let bytes = files(call)?.read(Path::new(&path)).map_err(|error| {
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
    text(&BASE64_STANDARD.encode(read(call)?))
}

fn fileexists(call: &Call<'_>) -> Result<Value, String> {
    let path = path(call)?;
    match files(call)?.read(Path::new(&path)) {
        Ok(_) => Ok(Value::Bool(true)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Value::Bool(false)),
        Err(error) => Err(format!("cannot look at {path:?}: {error}")),
    }
}

/// The files below a directory whose path matches, in order. `*` and `?` match within a name, `**`
/// any number of directories, `{a,b}` one of the two.
fn fileset(call: &Call<'_>) -> Result<Value, String> {
    let (directory, pattern) = (path(call)?, call.text(1)?);
    let glob = GlobBuilder::new(&pattern)
        .literal_separator(true)
        .build()
        .map_err(|error| {
            format!(
                "{pattern:?} is not a valid pattern of paths: {}",
                error.kind()
            )
        })?
        .compile_matcher();
    let listed = files(call)?
        .list(Path::new(&directory), MAX_LISTED)
        .map_err(|error| format!("cannot list {directory:?}: {error}"))?;
    let mut names = Vec::new();
    for file in listed.iter().filter(|file| glob.is_match(file)) {
        let name = file
            .to_str()
            .ok_or_else(|| format!("the name of the file {file:?} is not UTF-8"))?;
        call.pay(name.len())?;
        names.push(name.to_owned());
    }
    names.sort_unstable();
    Ok(names.into())
}

/// The path from the root, without `.` and `..`, as Go's `filepath.Abs`.
fn abspath(call: &Call<'_>) -> Result<Value, String> {
    let path = path(call)?;
    let start = files(call)?
        .working_directory()
        .map_err(|error| format!("there is no working directory: {error}"))?;
    let mut clean = PathBuf::new();
    for component in start.join(&path).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    text(&clean.to_string_lossy())
}

/// The path with the user's home directory for a leading `~`.
fn pathexpand(call: &Call<'_>) -> Result<Value, String> {
    let path = path(call)?;
    let Some(rest) = path.strip_prefix('~') else {
        return text(&path);
    };
    if !rest.is_empty() && !rest.starts_with('/') {
        return Err(format!(
            "the home directory of another user, as in {path:?}, is not known: write the whole path"
        ));
    }
    let home = files(call)?
        .home()
        .ok_or_else(|| format!("there is no home directory for {path:?}: set HOME"))?;
    text(&format!("{}{rest}", home.to_string_lossy()))
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
