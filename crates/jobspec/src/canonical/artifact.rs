//! The artifact blocks of a task.

use model::artifact::{Artifact, ArtifactMode};
use model::template::TemplateFile;

use super::check::{Check, Path};

const DEFAULT_DESTINATION: &str = "local/";

pub(super) fn artifacts(check: &mut Check, path: &Path, specs: &[spec::Artifact]) -> Vec<Artifact> {
    let read = |(position, spec)| artifact(check, &path.at("artifact", position), spec);
    specs.iter().enumerate().map(read).collect()
}

fn artifact(check: &mut Check, path: &Path, spec: &spec::Artifact) -> Artifact {
    check.error(path, "artifacts are not supported by this version of Kafila: put the file on the nodes beforehand");
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
    let destination = spec.destination.as_deref().filter(|path| !path.is_empty());
    let destination = destination.unwrap_or(DEFAULT_DESTINATION);
    // A path with a reference is checked on the node, which knows its value. The last component may be
    // the directory itself.
    let is_inside =
        || TemplateFile::at(&format!("{}/x", destination.trim_end_matches('/'))).is_some();
    if !destination.contains("${") && !is_inside() {
        let message = format!(
            "destination escapes allocation directory: {destination:?} is not below the task's directory or \
             ../alloc, write a path such as \"local/\""
        );
        check.error(path.field("destination"), message);
    }
    Artifact {
        source,
        options: spec.options.clone(),
        headers: spec.headers.clone(),
        mode,
        insecure: spec.insecure.unwrap_or(false),
        destination: destination.to_owned(),
        chown: spec.chown.unwrap_or(false),
    }
}
