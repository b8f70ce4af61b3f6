//! The files of docker-compose.yml and of its profile `monitoring` fit together. Container tests start
//! all but Grafana, which no package of Debian has; these checks need no container.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context as _, Result, ensure};
use integration_tests::containers::command::repository;
use integration_tests::yaml;
use serde_json::Value;

/// What operators look for, and the beginning of a metric that has to be shown there.
const WANTED: [(&str, &str); 9] = [
    ("Evaluations in queues", "kafila_eval_broker_total_"),
    ("Plan latency", "kafila_plan_applier_submit_seconds"),
    ("Rejections", "kafila_plan_applier_nodes_rejected"),
    ("Failovers", "kafila_plan_applier_terms"),
    ("Placements", "kafila_plan_applier_placements"),
    ("Nodes", "kafila_cluster_controller_heartbeat_active_nodes"),
    (
        "Lost nodes",
        "kafila_cluster_controller_heartbeat_invalidate",
    ),
    ("Failed heartbeats", "kafila_client_node_heartbeat_failures"),
    ("Database size", "etcd_mvcc_db_total_size_in_bytes"),
];

/// Alerts on the symptoms of runbooks: name, label `service`, and a metric of its expression.
const WANTED_ALERTS: [(&str, &str, &str); 5] = [
    (
        "KafilaLeaderFlaps",
        "eval-broker",
        "kafila_eval_broker_terms_total",
    ),
    (
        "KafilaLeaderFlaps",
        "plan-applier",
        "kafila_plan_applier_terms_total",
    ),
    (
        "KafilaLeaderFlaps",
        "deployment-watcher",
        "kafila_deployment_watcher_terms_total",
    ),
    (
        "KafilaLeaderFlaps",
        "cluster-controller",
        "kafila_cluster_controller_terms_total",
    ),
    (
        "KafilaEvaluationsBlocked",
        "",
        "kafila_eval_broker_total_blocked",
    ),
];

fn read(path: &str) -> Result<String> {
    let file = repository().join(path);
    fs::read_to_string(&file).with_context(|| file.display().to_string())
}

fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    let found = value.pointer(pointer).and_then(Value::as_array);
    found.map(Vec::as_slice).unwrap_or_default()
}

fn dashboards() -> Result<BTreeMap<String, Value>> {
    let folder = repository().join("docker/stack/grafana/dashboards");
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().context("no name")?.display().to_string();
        found.insert(name, serde_json::from_str(&fs::read_to_string(&path)?)?);
    }
    ensure!(found.len() >= 3, "dashboards are {:?}", found.keys());
    Ok(found)
}

/// Returns the bind mounts of a service in docker-compose.yml: source and target.
fn mounts(service: &str) -> Result<BTreeMap<String, String>> {
    let compose = yaml::document(&read("docker-compose.yml")?)?;
    let volumes = list(&compose, &format!("/services/{service}/volumes"));
    let binds = volumes.iter().filter_map(Value::as_str);
    let parts = binds.filter_map(|volume| volume.strip_suffix(":ro")?.split_once(':'));
    Ok(parts
        .map(|(source, target)| (source.to_owned(), target.to_owned()))
        .collect())
}

#[test]
fn panels_ask_the_data_source_that_grafana_has() -> Result<()> {
    let sources = "docker/stack/grafana/provisioning/datasources/prometheus.yaml";
    let sources = yaml::document(&read(sources)?)?;
    let source = &sources["datasources"][0];
    let compose = yaml::document(&read("docker-compose.yml")?)?;
    let host = source["url"].as_str().context("no address")?;
    let host = host.trim_start_matches("http://").trim_end_matches(":9090");
    assert!(compose["services"][host].is_object(), "no service {host}");
    for (name, dashboard) in dashboards()? {
        for panel in list(&dashboard, "/panels") {
            let asked = &panel["datasource"];
            assert_eq!(asked["uid"], source["uid"], "{name}: {}", panel["title"]);
            assert_eq!(asked["type"], source["type"], "{name}: {}", panel["title"]);
            for target in list(panel, "/targets") {
                assert!(target["datasource"].is_null(), "{name}: {target}");
            }
        }
    }
    Ok(())
}

#[test]
fn grafana_looks_for_its_files_where_they_are_mounted() -> Result<()> {
    let mounts = mounts("grafana")?;
    // Grafana's default folder.
    let provisioning = "./docker/stack/grafana/provisioning";
    assert_eq!(mounts[provisioning], "/etc/grafana/provisioning");
    let providers = "docker/stack/grafana/provisioning/dashboards/kafila.yaml";
    let providers = yaml::document(&read(providers)?)?;
    let folder = &providers["providers"][0]["options"]["path"];
    assert_eq!(
        mounts["./docker/stack/grafana/dashboards"],
        folder.as_str().unwrap_or_default()
    );
    Ok(())
}

#[test]
fn prometheus_and_the_collector_read_files_that_are_mounted() -> Result<()> {
    let compose = yaml::document(&read("docker-compose.yml")?)?;
    for service in ["prometheus", "otel-collector", "grafana"] {
        for source in mounts(service)?.keys() {
            assert!(repository().join(source).exists(), "{source}");
        }
    }
    for (service, flag) in [
        ("prometheus", "--config.file="),
        ("otel-collector", "--config="),
    ] {
        let words = list(&compose, &format!("/services/{service}/command"));
        let mut words = words.iter().filter_map(Value::as_str);
        let file = words.find_map(|word| word.strip_prefix(flag));
        let file = file.with_context(|| format!("{service} has no {flag}"))?;
        let mounts = mounts(service)?;
        assert!(mounts.values().any(|target| target == file), "{file}");
    }
    let prometheus = yaml::document(&read("docker/stack/prometheus.yaml")?)?;
    let mounts = mounts("prometheus")?;
    for file in list(&prometheus, "/rule_files") {
        let file = file.as_str().context("a file is no text")?;
        assert!(mounts.values().any(|target| target == file));
    }
    // The chart makes its alerts of the same file.
    assert_eq!(
        mounts["./helm/kafila/files/alerts.yaml"],
        "/etc/prometheus/alerts.yaml"
    );
    Ok(())
}

#[test]
fn ids_of_dashboards_and_panels_are_unique_and_panels_do_not_overlap() -> Result<()> {
    let mut dashboard_ids = BTreeSet::new();
    for (name, dashboard) in dashboards()? {
        let uid = dashboard["uid"].as_str().context("no uid")?.to_owned();
        assert!(dashboard_ids.insert(uid), "{name}");
        let mut panel_ids = BTreeSet::new();
        let mut cells = BTreeSet::new();
        for panel in list(&dashboard, "/panels") {
            let id = panel["id"].as_u64().context("no id")?;
            assert!(panel_ids.insert(id), "{name}: {id}");
            let side = |key: &str| panel["gridPos"][key].as_u64().context("no position");
            assert!(side("x")? + side("w")? <= 24, "{name}: {id} is too wide");
            for x in side("x")?..side("x")? + side("w")? {
                for y in side("y")?..side("y")? + side("h")? {
                    assert!(cells.insert((x, y)), "{name}: {id} covers another");
                }
            }
            let targets = list(panel, "/targets");
            let names: BTreeSet<_> = targets.iter().map(|one| one["refId"].as_str()).collect();
            assert_eq!(names.len(), targets.len(), "{name}: {id}");
        }
    }
    Ok(())
}

#[test]
fn dashboards_show_what_operators_look_for() -> Result<()> {
    let dashboards = dashboards()?;
    let panels: Vec<&Value> = dashboards
        .values()
        .flat_map(|dashboard| list(dashboard, "/panels"))
        .collect();
    for (title, metric) in WANTED {
        let panel = panels.iter().find(|panel| panel["title"] == title);
        let panel = panel.with_context(|| format!("no panel {title:?}"))?;
        assert!(
            list(panel, "/targets")
                .iter()
                .filter_map(|target| target["expr"].as_str())
                .any(|expression| expression.contains(metric)),
            "{title} does not show {metric}"
        );
    }
    Ok(())
}

fn alerts() -> Result<Vec<Value>> {
    let file = yaml::document(&read("helm/kafila/files/alerts.yaml")?)?;
    let groups = list(&file, "/groups").iter();
    let rules: Vec<Value> = groups
        .flat_map(|group| list(group, "/rules").to_vec())
        .collect();
    ensure!(rules.len() > 20, "{} alerts", rules.len());
    Ok(rules)
}

/// Two runbooks have no alert: the list of them, and the restore, which operators decide on.
#[test]
fn every_alert_names_a_runbook_and_every_runbook_has_an_alert() -> Result<()> {
    let mut named = BTreeSet::from(["README.md".to_owned(), "restore.md".to_owned()]);
    for alert in alerts()? {
        let url = alert["annotations"]["runbook_url"].as_str();
        let url = url.with_context(|| format!("{} names no runbook", alert["alert"]))?;
        let file = url
            .strip_prefix("https://github.com/kafila/kafila/blob/main/docs/runbooks/")
            .with_context(|| format!("{}: {url}", alert["alert"]))?;
        named.insert(file.to_owned());
    }
    let mut files = BTreeSet::new();
    for entry in fs::read_dir(repository().join("docs/runbooks"))? {
        files.insert(entry?.file_name().to_string_lossy().into_owned());
    }
    assert_eq!(named, files);
    Ok(())
}

#[test]
fn alerts_tell_of_the_symptoms_of_runbooks() -> Result<()> {
    let alerts = alerts()?;
    for (name, service, metric) in WANTED_ALERTS {
        let is_it = |alert: &&Value| {
            let labelled = alert["labels"]["service"].as_str().unwrap_or_default();
            alert["alert"] == name && labelled == service
        };
        let alert = alerts.iter().find(is_it);
        let alert = alert.with_context(|| format!("no alert {name} of {service:?}"))?;
        let expression = alert["expr"].as_str().unwrap_or_default();
        ensure!(expression.contains(metric), "{name}: {expression}");
    }
    Ok(())
}

#[test]
fn every_variable_of_the_stack_is_in_the_example() -> Result<()> {
    let example = read(".env.example")?;
    let compose = read("docker-compose.yml")?;
    let variables: BTreeSet<&str> = compose
        .split("${")
        .skip(1)
        .filter_map(|rest| rest.split([':', '-', '}']).next())
        .collect();
    assert!(variables.len() > 10, "{variables:?}");
    for variable in variables {
        let line = format!("#{variable}=");
        assert!(
            example.lines().any(|known| known.starts_with(&line)),
            "{line}"
        );
    }
    for line in compose.lines().filter(|line| line.contains(" image: ")) {
        assert!(line.contains("_IMAGE:-"), "{line}");
    }
    Ok(())
}

/// docs/artifacts.md, docs/networking.md and the examples say that nodes have these programs.
#[test]
fn the_image_of_nodes_has_the_programs_that_agents_and_tasks_call() -> Result<()> {
    let dockerfile = read("Dockerfile")?;
    let stages: Vec<&str> = dockerfile.split("\nFROM ").collect();
    let stage = stages.iter().find(|it| it.contains(" AS client-node-base"));
    let stage = stage.context("no stage client-node-base")?;
    let installed: BTreeSet<&str> = stage.split_whitespace().collect();
    for package in [
        "ca-certificates",
        "containernetworking-plugins",
        "curl",
        "git",
        "iproute2",
        "iptables",
        "nftables",
        "openssh-client",
        "procps",
    ] {
        ensure!(installed.contains(package), "{package} is not installed");
    }
    Ok(())
}

/// The image is compiled from a context without documentation, by a stage that keeps manifests only: a
/// crate that either leaves out fails the build on machines with a registry, where no other test runs.
#[test]
fn the_image_is_built_from_the_folder_of_every_crate() -> Result<()> {
    let manifest = read("Cargo.toml")?;
    let members = manifest.lines().find_map(|line| {
        line.strip_prefix("members = [")
            .and_then(|rest| rest.strip_suffix(']'))
    });
    let members: Vec<&str> = members
        .context("no members in Cargo.toml")?
        .split(',')
        .map(|member| member.trim().trim_matches('"').trim_end_matches("/*"))
        .collect();
    ensure!(members.contains(&"sdk/rust"), "members are {members:?}");
    let (dockerfile, ignored) = (read("Dockerfile")?, read(".dockerignore")?);
    let emptied = dockerfile
        .lines()
        .find(|line| line.contains(" ! -name Cargo.toml"));
    let emptied: BTreeSet<&str> = emptied
        .context("the Dockerfile has no stage of manifests")?
        .split_whitespace()
        .collect();
    for member in members {
        let parts = member.split('/').scan(String::new(), |path, part| {
            if !path.is_empty() {
                path.push('/');
            }
            path.push_str(part);
            Some(path.clone())
        });
        let paths: Vec<String> = parts.collect();
        let is_ignored = |path: &String| ignored.lines().any(|line| line == path);
        ensure!(
            !paths.iter().any(is_ignored),
            ".dockerignore leaves out {member}"
        );
        let kept = format!("! -name {} ", paths[0]);
        ensure!(
            dockerfile.contains(&kept),
            "the stage of manifests removes {member}"
        );
        let is_emptied = |path: &String| emptied.contains(path.as_str());
        ensure!(
            paths.iter().any(is_emptied),
            "the stage of manifests keeps the sources of {member}, so each change of them compiles all dependencies"
        );
    }
    Ok(())
}
