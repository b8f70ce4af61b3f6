//! The artifact blocks of a task.

use artifact::{Problem, Source};
use model::AllocPath;
use model::artifact::{Artifact, ArtifactMode};

use super::validation::{Path, Validation};

const DEFAULT_DESTINATION: &str = "local/";

pub(super) fn artifacts(
    check: &mut Validation,
    path: &Path,
    specs: &[job_fields::Artifact],
) -> Vec<Artifact> {
    let read = |(position, spec)| artifact(check, &path.at("artifact", position), spec);
    specs.iter().enumerate().map(read).collect()
}

fn artifact(check: &mut Validation, path: &Path, spec: &job_fields::Artifact) -> Artifact {
    let source = spec.source.clone().unwrap_or_default();
    if source.is_empty() {
        let message =
            "Missing artifact source: write an address such as \"https://example.com/app.tar.gz\"";
        check.error(path.field("source"), message);
    }
    let modes = ArtifactMode::ALL.map(|mode| (mode.as_str(), mode));
    let mode = spec.mode.as_deref().filter(|mode| !mode.is_empty());
    let mode = check.choice(
        path.field("mode"),
        mode,
        &modes,
        ArtifactMode::Any,
        |mode| format!("Invalid artifact mode {mode:?}: use any, file or dir"),
    );
    // The node reads a source with a reference, whose value it knows.
    let has_reference = |text: &String| text.contains("${");
    let has_reference = spec.options.values().any(has_reference) || source.contains("${");
    if !source.is_empty() && !has_reference {
        check_source(check, path, &source, spec);
    }
    let destination = spec.destination.clone().filter(|path| !path.is_empty());
    let destination = destination.unwrap_or_else(|| default_destination(mode, &source));
    if !destination.contains("${") {
        check_destination(check, path, &destination, mode);
    }
    Artifact {
        source,
        options: spec.options.clone(),
        headers: spec.headers.clone(),
        mode,
        insecure: spec.insecure.unwrap_or(false),
        destination,
        chown: spec.chown.unwrap_or(false),
    }
}

/// Refuses a source that no node can download. A source without a scheme is accepted, as by Nomad, and
/// fails on the node.
fn check_source(check: &mut Validation, path: &Path, source: &str, spec: &job_fields::Artifact) {
    match Source::parse(source, &spec.options) {
        Ok(_) => {}
        Err(Problem::NoScheme) => check.warn(format!(
            "Artifact source {source:?} {}: its download will fail",
            Problem::NoScheme
        )),
        Err(problem @ Problem::Option(name, _)) => {
            let field = format!("{}.{name}", path.field("options"));
            check.error(field, format!("Invalid artifact source: {problem}"));
        }
        Err(problem) => {
            let message = format!("Invalid artifact source: it {problem}");
            check.error(path.field("source"), message);
        }
    }
}

fn check_destination(check: &mut Validation, path: &Path, destination: &str, mode: ArtifactMode) {
    match AllocPath::at(destination) {
        None => {
            let message = format!(
                "destination escapes allocation directory: {destination:?} is not below the task's directory or \
                 ../alloc, write a path such as \"local/\""
            );
            check.error(path.field("destination"), message);
        }
        Some(place) if mode == ArtifactMode::File && place.path().as_os_str().is_empty() => {
            let message = format!(
                "destination {destination:?} is a directory: with mode = \"file\" write the path of the file, \
                 as in \"local/app\""
            );
            check.error(path.field("destination"), message);
        }
        Some(_) => {}
    }
}

/// Source: Nomad's public documentation. A file is its own destination.
fn default_destination(mode: ArtifactMode, source: &str) -> String {
    let path = source.split('?').next().unwrap_or_default();
    let name = path.trim_end_matches('/').rsplit('/').next();
    match (mode, name.unwrap_or_default()) {
        (ArtifactMode::File, name) if !name.is_empty() => format!("{DEFAULT_DESTINATION}{name}"),
        _ => DEFAULT_DESTINATION.to_owned(),
    }
}
