//! Job files: read, parsed with their inputs, and checked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jobspec::{Inputs, Parsed};
use model::{FieldErrors, Timestamp};
use proto::v1;

use super::diagnostic;
use super::local::LocalFiles;
use super::text::{name_of, text_of};
use crate::args::job::JobFile;
use crate::error::Error;
use crate::output::colour::Colour;

/// The namespace argument of lists that means all.
const EVERY_NAMESPACE: &str = "*";

/// Prefixes of environment variables that job files can read.
const VARIABLE_PREFIXES: [&str; 2] = ["KAFILA_VAR_", "NOMAD_VAR_"];

/// Reads and parses the job file that `arguments` name.
///
/// # Errors
/// A file that cannot be read, a malformed `-var`, and everything wrong with the job file, each
/// with its place.
pub(crate) fn read(arguments: &JobFile, colour: Colour) -> Result<Parsed, Error> {
    let path = &arguments.path;
    let has_variables = !arguments.variables.is_empty() || !arguments.variable_files.is_empty();
    if arguments.json && has_variables {
        return Err(Error::text(
            "Error getting job struct: cannot use variables with JSON files.\n\
             Leave out -var and -var-file, or use an HCL file.",
        ));
    }
    let inputs = inputs(arguments)?;
    let text = text_of(path).map_err(|source| Error::ReadJobFile {
        path: path.clone(),
        source,
    })?;
    let name = name_of(path);
    let parsed = if arguments.json {
        jobspec::parse_api_json(&name, &text)
    } else {
        jobspec::parse(&name, &text, &inputs)
    };
    parsed.map_err(|errors| {
        let places = diagnostic::errors(&errors, colour);
        Error::text(format!(
            "Error getting job struct: Error parsing job file from {}:\n{places}",
            path.display()
        ))
    })
}

/// Validates a job by the rules that need no cluster; returns the warnings.
///
/// # Errors
/// All errors, each with its place.
pub(crate) fn check(parsed: &Parsed, now: Timestamp, colour: Colour) -> Result<Vec<String>, Error> {
    match jobspec::canonicalise(&parsed.job, now) {
        Ok(admitted) => Ok(admitted.warnings),
        Err(errors) => Err(invalid(parsed, &errors, colour)),
    }
}

/// Returns the errors of a job with their places in the file.
pub(crate) fn invalid(parsed: &Parsed, errors: &FieldErrors, colour: Colour) -> Error {
    let places = parsed.places.locate(errors);
    Error::text(format!(
        "Job validation errors:\n{}\n{}",
        diagnostic::counted(errors),
        diagnostic::errors(&places, colour)
    ))
}

/// Returns the namespace of `job`: from the flag or the file, which must not differ, else `default`.
///
/// # Errors
/// The flag and the file differ, or the namespace is `*`.
pub(crate) fn namespace(job: &v1::Job, flag: Option<&str>, default: &str) -> Result<String, Error> {
    let own = Some(job.namespace()).filter(|name| !name.is_empty());
    if let (Some(flag), Some(own)) = (flag, own)
        && flag != own
    {
        return Err(Error::text(format!(
            "Error getting job struct: -namespace={flag} differs from the job file's namespace = \
             {own:?}.\nLeave out the flag, or change the file."
        )));
    }
    let name = own.or(flag).unwrap_or(default);
    if name == EVERY_NAMESPACE {
        return Err(Error::text(
            "Error getting job struct: namespace \"*\" means all namespaces, but a job has one.\n\
             Set it with -namespace=NAME, or with namespace in the job file.",
        ));
    }
    Ok(name.to_owned())
}

fn inputs(arguments: &JobFile) -> Result<Inputs, Error> {
    let variables = arguments.variables.iter().map(|text| variable(text));
    let files = arguments
        .variable_files
        .iter()
        .map(PathBuf::as_path)
        .map(variable_file);
    Ok(Inputs {
        variables: variables.collect::<Result<_, _>>()?,
        variable_files: files.collect::<Result<_, _>>()?,
        environment: environment(std::env::vars_os().filter_map(|(name, value)| {
            // Job files are UTF-8, so other variables are of no use to them.
            Some((name.into_string().ok()?, value.into_string().ok()?))
        })),
        allow_undeclared: !arguments.hcl2_strict,
        files: Some(Arc::new(LocalFiles)),
    })
}

fn variable(text: &str) -> Result<(String, String), Error> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.to_owned()))
        }
        _ => Err(Error::text(format!(
            "Error getting job struct: Invalid -var option {text:?}; The given -var option is not \
             correctly specified. Must be a variable name and value separated by an equals sign, \
             like -var=\"key=value\"."
        ))),
    }
}

fn variable_file(path: &Path) -> Result<(String, String), Error> {
    let text = text_of(path).map_err(|source| Error::ReadVariableFile {
        path: path.to_owned(),
        source,
    })?;
    Ok((name_of(path), text))
}

fn environment(all: impl Iterator<Item = (String, String)>) -> BTreeMap<String, String> {
    let is_input = |(name, _): &(String, String)| {
        VARIABLE_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
    };
    all.filter(is_input).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_a_name_and_a_value() {
        let table = [
            ("image=web:2", "image", "web:2"),
            ("n=[1,2]", "n", "[1,2]"),
            ("empty=", "empty", ""),
            ("equation=a=b", "equation", "a=b"),
            (" spaced =x", "spaced", "x"),
        ];
        for (text, name, value) in table {
            assert_eq!(variable(text).unwrap(), (name.to_owned(), value.to_owned()));
        }
        for text in ["image", "=x", ""] {
            let message = variable(text).unwrap_err().to_string();
            assert!(message.contains("Invalid -var option"), "{text}: {message}");
            assert!(message.contains("-var=\"key=value\""), "{text}: {message}");
        }
    }

    #[test]
    fn only_prefixed_environment_variables_reach_job_files() {
        let all = [
            ("NOMAD_VAR_a", "1"),
            ("KAFILA_VAR_b", "2"),
            ("SECRET", "3"),
            ("NOMAD_ADDR", "4"),
        ];
        let all = all
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let names: Vec<String> = environment(all).into_keys().collect();
        assert_eq!(names, ["KAFILA_VAR_b", "NOMAD_VAR_a"]);
    }

    #[test]
    fn differing_namespaces_and_the_wildcard_are_refused() {
        let job = |namespace: &str| v1::Job {
            namespace: Some(namespace.to_owned()),
            ..v1::Job::default()
        };
        let chosen = |file, flag, default| namespace(&job(file), flag, default);
        assert_eq!(chosen("", None, "env").unwrap(), "env");
        assert_eq!(chosen("prod", None, "env").unwrap(), "prod");
        assert_eq!(chosen("prod", None, "*").unwrap(), "prod");
        assert_eq!(chosen("", Some("dev"), "dev").unwrap(), "dev");
        assert_eq!(chosen("dev", Some("dev"), "dev").unwrap(), "dev");
        let message = chosen("prod", Some("dev"), "dev").unwrap_err().to_string();
        for part in [
            "-namespace=dev",
            "namespace = \"prod\"",
            "Leave out the flag",
        ] {
            assert!(message.contains(part), "{part}: {message}");
        }
        for (file, flag, default) in [("*", None, "env"), ("", Some("*"), "*"), ("", None, "*")] {
            let message = chosen(file, flag, default).unwrap_err().to_string();
            assert!(message.contains("a job has one"), "{message}");
        }
    }
}
