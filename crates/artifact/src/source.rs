//! Sources of artifacts, read with their options: getter, subdirectory, checksum, archive, name.
//!
//! Source: Nomad's public documentation of sources, and the URL forms that its job files use.

mod address;
mod forms;
mod problem;
mod query;

use std::collections::BTreeMap;
use std::path::PathBuf;

use self::address::url_of;
use self::forms::Form;
pub use self::problem::Problem;
use self::problem::TEXT_BYTES_MAX;
use self::query::Query;
use crate::archive::Archive;
use crate::checksum::Checksum;
use crate::entry;
use crate::getter::{Getter, Git};

/// A source, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub getter: Getter,
    /// The part of an archive or a repository to keep; `None`: all. Relative and plain.
    pub subdir: Option<PathBuf>,
    pub checksum: Option<Checksum>,
    /// `None`: a file that stays as it is, or a repository.
    pub archive: Option<Archive>,
    /// The name of the downloaded file; `None`: the source names none.
    pub name: Option<String>,
}

impl Source {
    /// Reads a source. Options have the meaning of parameters of its query.
    ///
    /// # Errors
    /// The first problem; its text follows the word "source".
    pub fn parse(source: &str, options: &BTreeMap<String, String>) -> Result<Self, Problem> {
        let source = source.trim();
        if source.is_empty() {
            return Err(Problem::Empty);
        }
        let lengths = options.values().map(String::len).chain([source.len()]);
        if lengths.max() > Some(TEXT_BYTES_MAX) {
            return Err(Problem::Long);
        }
        let (form, rest) = Form::of(source)?;
        let (rest, query) = rest.split_once('?').unwrap_or((&rest, ""));
        let mut query = Query::read(query, options);
        let (rest, subdir) = split_subdir(rest);
        let (rest, subdir) = form.complete(rest, subdir)?;
        let checksum = query.take("checksum");
        let archive = query.take("archive");
        let filename = query.take("filename");
        let getter = match form {
            Form::Http => Getter::Http(url_of(&rest, Some(&query))?),
            Form::Git => Getter::Git(git(&rest, &mut query)?),
            Form::S3 => Getter::S3(forms::object(&rest, &mut query)?),
            Form::File => Getter::File(forms::file(&rest)?),
        };
        let checksum = checksum.map(|text| Checksum::parse(&text)).transpose();
        let checksum = checksum.map_err(|message| Problem::Option("checksum", message))?;
        if checksum.is_some() && matches!(getter, Getter::Git(_)) {
            let message = "does not apply to a git repository: use `ref` with a commit";
            return Err(Problem::Option("checksum", message.to_owned()));
        }
        let own_name = own_name(&getter);
        let archive = kind(&getter, archive.as_deref(), own_name.as_deref())?;
        let name = match filename {
            Some(name) if !is_plain(&name) => {
                let message = "is not a plain name of a file: want one without `/`".to_owned();
                return Err(Problem::Option("filename", message));
            }
            Some(name) => Some(name),
            None => own_name,
        };
        let subdir = subdir.map(|subdir| entry::path(subdir.as_ref()));
        let subdir = subdir.transpose().map_err(|_| Problem::Subdir)?;
        let subdir = subdir.filter(|path| !path.as_os_str().is_empty());
        if subdir.is_some() && archive.is_none() && !matches!(getter, Getter::Git(_)) {
            return Err(Problem::SubdirOfFile);
        }
        Ok(Self {
            getter,
            subdir,
            checksum,
            archive,
            name,
        })
    }
}

/// Splits `…//subdir` off, without the `//` of the scheme.
fn split_subdir(rest: &str) -> (&str, Option<String>) {
    let start = rest.find("://").map_or(0, |position| position + 3);
    let Some(position) = rest[start..].find("//") else {
        return (rest, None);
    };
    let position = start + position;
    let subdir = rest[position + 2..].trim_matches('/');
    let decoded = percent_encoding::percent_decode_str(subdir).decode_utf8_lossy();
    (&rest[..position], Some(decoded.into_owned()))
}

fn git(rest: &str, query: &mut Query) -> Result<Git, Problem> {
    let reference = query.take("ref").filter(|text| !text.is_empty());
    // It would be an option of the command.
    if reference.as_deref().is_some_and(|text| !is_reference(text)) {
        let message = "is not the name of a branch or tag, or a commit".to_owned();
        return Err(Problem::Option("ref", message));
    }
    let depth = query.take("depth").map(|text| text.parse::<u32>());
    let depth = depth.transpose().map_err(|_| {
        let message = "is not a number: want commits, as in 1".to_owned();
        Problem::Option("depth", message)
    })?;
    let ssh_key = query.take("sshkey").filter(|text| !text.is_empty());
    let url = url_of(rest, Some(query))?;
    match url.scheme() {
        "https" | "http" | "ssh" | "git" | "file" => {}
        other => return Err(Problem::Unsupported(format!("git::{other}"))),
    }
    Ok(Git {
        url,
        reference,
        depth: depth.filter(|depth| *depth > 0),
        ssh_key,
    })
}

fn is_reference(text: &str) -> bool {
    let is_character = |it: char| it.is_alphanumeric() || "._-/+@#=".contains(it);
    !text.starts_with('-') && !text.contains("..") && text.chars().all(is_character)
}

/// Returns the kind of archive of a source: the option's, or by the suffix.
fn kind(
    getter: &Getter,
    option: Option<&str>,
    name: Option<&str>,
) -> Result<Option<Archive>, Problem> {
    if matches!(getter, Getter::Git(_)) {
        return Ok(None);
    }
    match option {
        None | Some("") | Some("true") => Ok(name.and_then(Archive::of_name)),
        Some("false" | "0" | "no") => Ok(None),
        Some(other) => Archive::named(other).map(Some).ok_or_else(|| {
            let message = format!(
                "{other:?} is not a kind of archive: want false, or one of {}",
                Archive::names()
            );
            Problem::Option("archive", message)
        }),
    }
}

/// Returns the last part of the source's path.
fn own_name(getter: &Getter) -> Option<String> {
    let path = match getter {
        Getter::Http(url) => url.path().to_owned(),
        Getter::S3(object) => object.key.clone(),
        Getter::File(path) => return Some(path.file_name()?.to_str()?.to_owned()),
        Getter::Git(_) => return None,
    };
    let last = path.rsplit('/').next().unwrap_or_default();
    let decoded = match getter {
        Getter::Http(_) => percent_encoding::percent_decode_str(last)
            .decode_utf8()
            .ok()?
            .into_owned(),
        _ => last.to_owned(),
    };
    is_plain(&decoded).then_some(decoded)
}

/// Returns whether `name` is the name of a file in a directory.
fn is_plain(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\0']) && name.len() <= 255
}
