//! The job files that newcomers start from.

use std::path::{Path, PathBuf};

use jobspec::{Inputs, canonicalise, parse};

use crate::support::{NOW, parsed};

pub(crate) fn files() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "hcl"));
    let read = |path: PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read_to_string(&path).unwrap())
    };
    paths.into_iter().map(read).collect()
}

#[test]
fn every_example_is_admitted_without_a_warning() {
    let files = files();
    assert!(files.len() >= 7, "{} examples", files.len());
    for (name, text) in files {
        let parsed = parse(&name, &text, &Inputs::default()).unwrap_or_else(|e| panic!("{e}"));
        let admitted = canonicalise(&parsed.job, NOW)
            .unwrap_or_else(|errors| panic!("{}", parsed.places.locate(&errors)));
        assert_eq!(parsed.warnings, [""; 0], "{name}");
        assert_eq!(admitted.warnings, [""; 0], "{name}");
        assert_eq!(
            format!("{}.hcl", admitted.job.id),
            name,
            "a job is named like its file"
        );
        for task in admitted
            .job
            .task_groups
            .iter()
            .flat_map(|group| &group.tasks)
        {
            assert!(
                task.resources.cpu_mhz <= 50 && task.resources.memory_mib <= 32,
                "{name}"
            );
        }
    }
}

#[test]
fn an_example_survives_the_way_through_json() {
    for (name, text) in files() {
        let parsed = parsed(&text, &Inputs::default());
        let json = serde_json::to_string_pretty(&parsed.job).unwrap();
        let again = jobspec::parse_api_json(&name, &json).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(again.job, parsed.job, "{name}");
        assert_eq!(again.warnings, [""; 0], "{name}");
        let job = canonicalise(&parsed.job, NOW).unwrap().job;
        assert_eq!(
            canonicalise(&job_fields::Job::from(&job), NOW).unwrap().job,
            job,
            "{name}"
        );
    }
}

#[test]
fn the_web_example_leaves_what_the_machine_knows_to_the_machine() {
    let (_, text) = files()
        .into_iter()
        .find(|(name, _)| name == "web.hcl")
        .unwrap();
    let job = canonicalise(&parsed(&text, &Inputs::default()).job, NOW)
        .unwrap()
        .job;
    let task = &job.task_groups[0].tasks[0];
    let script = task.config["args"][1].as_str().unwrap();
    for kept in [
        "\"${NOMAD_PORT_http}\"",
        "${NOMAD_TASK_DIR}",
        "$ENV{NOMAD_PORT_http}",
        "\\r\\n",
    ] {
        assert!(script.contains(kept), "{kept} in\n{script}");
    }
    assert!(
        script.starts_with("cd "),
        "the heredoc has lost its indentation:\n{script}"
    );
    assert_eq!(job.task_groups[0].networks[0].ports[0].label, "http");
}
