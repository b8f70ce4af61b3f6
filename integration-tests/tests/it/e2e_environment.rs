//! The environment of a task: that of docs/job-files.md, with the values that Nomad gives to the same job.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use integration_tests::api::eventually;

use crate::e2e_plan::Dev;

const TIMEOUT: Duration = Duration::from_secs(60);

/// The port that the job asks for, and the range it is drawn from: below that of outgoing connections.
const STATIC: &str = "STATIC_PORT";

const JOB: &str = r#"
job "envs" {
  type = "batch"
  meta = {
    level   = "job"
    "a-b.c" = "odd"
  }
  group "grp-one" {
    meta {
      level = "group"
    }
    network {
      port "http" {}
      port "db-x" {
        to = 5432
      }
      port "fixed" {
        static = STATIC_PORT
      }
    }
    task "show-env" {
      driver = "raw_exec"
      leader = true
      meta {
        level = "task"
        own   = "x"
      }
      env {
        PLAIN   = "v"
        REF     = "${NOMAD_PORT_http} ${attr.kernel.name} ${meta.nothing} ${NOMAD_META_level} ${unknown.thing}"
        dash-ed = "d"
      }
      template {
        data        = "FROM_TEMPLATE={{ env \"NOMAD_TASK_NAME\" }}\n# comment\nQUOTED=\"a b\"\n"
        destination = "local/x.env"
        env         = true
      }
      config {
        command = "/bin/sh"
        args    = ["-c", "tr '\\0' '\\n' < /proc/self/environ; echo DIRECTORY=$(pwd); echo FILES=$(ls -A)"]
      }
      resources {
        cpu        = 50
        memory     = 32
        memory_max = 64
      }
    }
    task "side" {
      driver = "raw_exec"
      config {
        command = "/bin/sleep"
        args    = ["60"]
      }
      resources {
        cpu    = 20
        memory = 16
      }
    }
  }
}
"#;

/// What Nomad 2.0 gave to the same job, and a few variables of it that the shell did not print there. `A`: the
/// allocation's directory; `I`: its id; `P`: the port `http`; `D`: the port `db-x`; `F`: the port `fixed`; `H`: the
/// address of the ports.
const RECORDED: &[(&str, &str)] = &[
    ("FROM_TEMPLATE", "show-env"),
    ("NOMAD_ADDR_db_x", "{H}:{D}"),
    ("NOMAD_ADDR_fixed", "{H}:{F}"),
    ("NOMAD_ADDR_http", "{H}:{P}"),
    ("NOMAD_ALLOC_DIR", "{A}/alloc"),
    ("NOMAD_ALLOC_ID", "{I}"),
    ("NOMAD_ALLOC_INDEX", "0"),
    ("NOMAD_ALLOC_NAME", "envs.grp-one[0]"),
    ("NOMAD_ALLOC_PORT_fixed", "{F}"),
    ("NOMAD_ALLOC_PORT_http", "{P}"),
    ("NOMAD_CPU_LIMIT", "50"),
    ("NOMAD_DC", "dc1"),
    ("NOMAD_GROUP_NAME", "grp-one"),
    ("NOMAD_HOST_ADDR_fixed", "{H}:{F}"),
    ("NOMAD_HOST_ADDR_http", "{H}:{P}"),
    ("NOMAD_HOST_IP_fixed", "{H}"),
    ("NOMAD_HOST_IP_http", "{H}"),
    ("NOMAD_HOST_PORT_db_x", "{D}"),
    ("NOMAD_HOST_PORT_fixed", "{F}"),
    ("NOMAD_HOST_PORT_http", "{P}"),
    ("NOMAD_IP_db_x", "{H}"),
    ("NOMAD_IP_fixed", "{H}"),
    ("NOMAD_IP_http", "{H}"),
    ("NOMAD_JOB_ID", "envs"),
    ("NOMAD_JOB_NAME", "envs"),
    ("NOMAD_MEMORY_LIMIT", "32"),
    ("NOMAD_META_LEVEL", "task"),
    ("NOMAD_META_OWN", "x"),
    ("NOMAD_META_level", "task"),
    ("NOMAD_META_own", "x"),
    ("NOMAD_NAMESPACE", "default"),
    ("NOMAD_PORT_db_x", "5432"),
    ("NOMAD_PORT_fixed", "{F}"),
    ("NOMAD_PORT_http", "{P}"),
    ("NOMAD_REGION", "global"),
    ("NOMAD_SECRETS_DIR", "{A}/show-env/secrets"),
    ("NOMAD_SHORT_ALLOC_ID", "{S}"),
    ("NOMAD_TASK_DIR", "{A}/show-env/local"),
    ("NOMAD_TASK_NAME", "show-env"),
    ("PLAIN", "v"),
    ("QUOTED", "a b"),
    ("REF", "{P} linux ${meta.nothing} task ${unknown.thing}"),
    ("DIRECTORY", "{A}/show-env"),
];

/// Variables of the document that this job does not get: children, reserved cores, oversubscription, ports of
/// `resources`, volumes and users.
const CONDITIONAL: &[&str] = &[
    "NOMAD_JOB_PARENT_ID",
    "NOMAD_CPU_CORES",
    "NOMAD_MEMORY_MAX_LIMIT",
    "NOMAD_PORT_<task>_<label>",
    "NOMAD_IP_<task>_<label>",
    "NOMAD_ADDR_<task>_<label>",
    "KAFILA_VOLUME_<name>",
    "CUDA_VISIBLE_DEVICES",
    "USER",
    "LOGNAME",
    "HOME",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_task_has_the_variables_of_the_document_with_the_values_of_nomad() -> Result<()> {
    let dev = Dev::start().await?;
    let port = 20_000 + rand::random::<u16>() % 10_000;
    let job = JOB.replace(STATIC, &port.to_string());
    dev.say(&["job", "run", "-detach"], &job).await?.ok()?;
    let api = dev.api()?;
    let (id, text) = eventually(TIMEOUT, || async {
        let allocations = api.allocations("envs").await?;
        let alloc = allocations.first().context("no allocation")?;
        ensure!(alloc.client_status == "complete", "{alloc:?}");
        Ok((alloc.id.clone(), api.logs(&alloc.id, "show-env").await?))
    })
    .await?;
    let seen: BTreeMap<&str, &str> = text
        .lines()
        .filter_map(|line| line.split_once('='))
        .collect();

    let value = |name: &str| seen.get(name).copied().unwrap_or_default();
    let directory = value("NOMAD_ALLOC_DIR").trim_end_matches("/alloc");
    ensure!(directory.ends_with(&id), "{directory}");
    let fixed = port.to_string();
    let places = [
        ("{A}", directory),
        ("{I}", &id),
        ("{S}", &id[..8]),
        ("{P}", value("NOMAD_PORT_http")),
        ("{D}", value("NOMAD_HOST_PORT_db_x")),
        ("{F}", &fixed),
        ("{H}", value("NOMAD_IP_http")),
    ];
    for (name, pattern) in RECORDED {
        let expected = places
            .iter()
            .fold((*pattern).to_owned(), |text, (place, value)| {
                text.replace(place, value)
            });
        ensure!(
            seen.get(name) == Some(&expected.as_str()),
            "{name} is {:?}, not {expected:?}",
            seen.get(name)
        );
    }
    for name in ["local", "secrets", "tmp"] {
        let is_there = value("FILES").split(' ').any(|file| file == name);
        ensure!(is_there, "no {name} in {:?}", value("FILES"));
    }
    compare_with_document(&seen)
}

/// Each variable of ours is in the table of the document, and each of the table is there, or conditional.
fn compare_with_document(seen: &BTreeMap<&str, &str>) -> Result<()> {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/job-files.md");
    let text = std::fs::read_to_string(document)?;
    let (_, section) = text
        .split_once("### Environment of a task")
        .context("the document has no such section")?;
    let names: Vec<&str> = section
        .lines()
        .skip_while(|line| !line.starts_with("|---"))
        .skip(1)
        .take_while(|line| line.starts_with('|'))
        .filter_map(|line| line.split('|').nth(1))
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect();
    ensure!(names.len() > 30, "the table has {names:?}");
    for name in &names {
        // A task of raw_exec inherits the agent's variables, such as HOME, which are not those of the table.
        let is_seen = seen
            .iter()
            .any(|(it, value)| fits(it, name) && std::env::var(it).as_deref() != Ok(*value));
        ensure!(
            is_seen != CONDITIONAL.contains(name),
            "{name} of the document: {}",
            if is_seen {
                "seen, although conditional"
            } else {
                "not seen"
            }
        );
    }
    for name in seen.keys() {
        let is_ours = name.starts_with("NOMAD_") || name.starts_with("KAFILA_");
        let is_known = names.iter().any(|pattern| fits(name, pattern));
        ensure!(!is_ours || is_known, "{name} is not in the document");
    }
    Ok(())
}

/// Returns whether a variable has a name of the document, which may end with `<label>` or the like.
fn fits(name: &str, pattern: &str) -> bool {
    match pattern.split_once('<') {
        None => name == pattern,
        // The pattern of one placeholder is that of ports and keys; two are of other tasks' ports.
        Some((start, rest)) if !rest.contains('<') => {
            name.starts_with(start) && name.len() > start.len()
        }
        Some(_) => false,
    }
}
