//! Job files: where they come from, what they may look at, and what is wrong with them.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jobspec::{Inputs, MAX_TEXT_BYTES, Parsed};
use model::{FieldErrors, Timestamp};
use proto::v1;

use crate::args::job::JobFile;
use crate::diagnostic;
use crate::error::Error;
use crate::output::colour::Colour;

/// The path that means standard input.
pub(crate) const STDIN: &str = "-";

/// What lists take for all namespaces.
const EVERY_NAMESPACE: &str = "*";

/// What job files may see of the environment.
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

/// Checks a job by the gateway's own rules, as far as they need no cluster; returns the warnings.
///
/// # Errors
/// Everything that is wrong, each with its place.
pub(crate) fn check(parsed: &Parsed, now: Timestamp, colour: Colour) -> Result<Vec<String>, Error> {
    match jobspec::canonicalise(&parsed.job, now) {
        Ok(admitted) => Ok(admitted.warnings),
        Err(errors) => Err(invalid(parsed, &errors, colour)),
    }
}

/// Returns what is wrong with the job of a file, each with its place.
pub(crate) fn invalid(parsed: &Parsed, errors: &FieldErrors, colour: Colour) -> Error {
    let places = parsed.places.locate(errors);
    Error::text(format!(
        "Job validation errors:\n{}\n{}",
        diagnostic::counted(errors),
        diagnostic::errors(&places, colour)
    ))
}

/// Returns a job as it is sent: every span in nanoseconds.
///
/// # Errors
/// Spans that are none and integers that the wire cannot hold, each with the path of its field.
pub(crate) fn to_wire(parsed: &Parsed, colour: Colour) -> Result<v1::Job, Error> {
    let nanoseconds = |text: &str| {
        let span = jobspec::parse_duration(text).map_err(|error| error.to_string())?;
        i64::try_from(span.as_nanos()).map_err(|_| format!("{text:?} is too long"))
    };
    v1::Job::from_spec(&parsed.job, &nanoseconds).map_err(|errors| {
        let places = diagnostic::errors(&parsed.places.locate(&errors), colour);
        Error::text(format!("Error getting job struct:\n{places}"))
    })
}

/// Returns the namespace to send `job` to: the flag's and the file's, which must not differ, else
/// `default`, which the environment may have named.
///
/// # Errors
/// The flag and the file name two, or what is named is every namespace.
pub(crate) fn namespace(job: &v1::Job, flag: Option<&str>, default: &str) -> Result<String, Error> {
    let own = Some(job.namespace()).filter(|name| !name.is_empty());
    if let (Some(flag), Some(own)) = (flag, own)
        && flag != own
    {
        return Err(Error::text(format!(
            "Error getting job struct: -namespace={flag} was given, and the job file says \
             namespace = {own:?}.\nLeave out the flag, or change the file."
        )));
    }
    let name = own.or(flag).unwrap_or(default);
    if name == EVERY_NAMESPACE {
        return Err(Error::text(
            "Error getting job struct: namespace \"*\" means all of them, and a job is in one.\n\
             Name it with -namespace=NAME, or with namespace in the job file.",
        ));
    }
    Ok(name.to_owned())
}

/// Returns what messages call a file: its last part, as Nomad does.
pub(crate) fn name_of(path: &Path) -> String {
    if path.as_os_str() == STDIN {
        return "stdin".to_owned();
    }
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
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
            // A job file is text; what is not cannot be meant for it.
            Some((name.into_string().ok()?, value.into_string().ok()?))
        })),
        allow_undeclared: !arguments.hcl2_strict,
        read_file: Some(Arc::new(|path: &Path| std::fs::read(path))),
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

/// Tells JSON from HCL, in which nothing begins with a brace.
pub(crate) fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// Reads a file or standard input, of which no more than a little beyond the longest job file:
/// the parser says that it is too long, and `/dev/zero` does not eat the machine.
pub(crate) fn text_of(path: &Path) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(MAX_TEXT_BYTES)
        .unwrap_or(u64::MAX)
        .saturating_add(1);
    if path.as_os_str() == STDIN {
        std::io::stdin()
            .lock()
            .take(limit)
            .read_to_end(&mut bytes)?;
    } else {
        std::fs::File::open(path)?
            .take(limit)
            .read_to_end(&mut bytes)?;
    }
    String::from_utf8(bytes).map_err(|error| {
        let line = error.as_bytes()[..error.utf8_error().valid_up_to()]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count();
        let message = format!("line {} is not UTF-8: save the file as UTF-8", line + 1);
        std::io::Error::new(std::io::ErrorKind::InvalidData, message)
    })
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
    fn only_variables_meant_for_job_files_leave_the_environment() {
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
    fn a_flag_and_a_file_that_name_two_namespaces_are_refused_and_so_is_every_one() {
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
            assert!(message.contains("a job is in one"), "{message}");
        }
    }

    #[test]
    fn json_is_told_from_hcl_by_its_brace() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for text in [crate::poolfile::EXAMPLE_JSON, crate::poolfile::EXAMPLE_HCL] {
            std::fs::write(file.path(), text).unwrap();
            let pool = crate::poolfile::read(file.path(), false).unwrap();
            assert_eq!(pool.name, "example");
        }
        assert!(is_json(" \n{}") && !is_json("job \"a\" {}"));
    }

    #[test]
    fn files_are_called_by_their_last_part() {
        assert_eq!(name_of(Path::new("jobs/web.hcl")), "web.hcl");
        assert_eq!(name_of(Path::new("-")), "stdin");
    }

    #[test]
    fn a_file_that_is_no_text_says_where() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"job \"a\" {\n  x = \"\xff\"\n}\n").unwrap();
        let error = text_of(file.path()).unwrap_err().to_string();
        assert!(error.contains("line 2 is not UTF-8"), "{error}");
    }
}
