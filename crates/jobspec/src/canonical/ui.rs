//! The ui block: what web pages show of a job.

use model::job::{Ui, UiLink};

use super::validation::{Path, Validation};

/// Source: Nomad's public limit.
const MAX_DESCRIPTION_CHARS: usize = 1_000;
/// More than a page shows.
const MAX_LINKS: usize = 64;

pub(super) fn ui(check: &mut Validation, spec: Option<&job_fields::Ui>) -> Option<Ui> {
    let spec = spec?;
    let path = Path::root().block("ui");
    let description = spec.description.clone().unwrap_or_default();
    let length = description.chars().count();
    if length > MAX_DESCRIPTION_CHARS {
        let message = format!(
            "has {length} characters, more than {MAX_DESCRIPTION_CHARS}: write a shorter one, with a link to the rest"
        );
        check.error(path.field("description"), message);
    }
    if spec.links.len() > MAX_LINKS {
        let message = format!(
            "has {} blocks, more than {MAX_LINKS}: remove some",
            spec.links.len()
        );
        check.error(path.field("link"), message);
        return None;
    }
    let links = spec.links.iter().enumerate();
    let links = links.map(|(position, spec)| link(check, &path.at("link", position), spec));
    let links = links.collect();
    Some(Ui { description, links })
}

fn link(check: &mut Validation, path: &Path, spec: &job_fields::UiLink) -> UiLink {
    let mut required = |name: &str, value: &Option<String>, example: &str| {
        let text = value.clone().unwrap_or_default();
        if text.is_empty() {
            check.error(
                path.field(name),
                format!("missing {name}: write {name} = {example:?}"),
            );
        }
        text
    };
    UiLink {
        label: required("label", &spec.label, "Runbook"),
        url: required("url", &spec.url, "https://example.com"),
    }
}
