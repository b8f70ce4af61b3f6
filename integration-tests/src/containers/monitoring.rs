//! The profile `monitoring` at work: Prometheus scrapes every container, every expression of dashboards
//! and alerts returns series, spans and log lines arrive at the collector, Grafana finds its files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::command::{docker, repository};
use super::expressions::{self, Expression};
use super::prometheus::{Prometheus, Target};
use super::stack::{NODES, REPLICATED, Stack};
use super::stand_in;
use crate::api::eventually;
use crate::yaml;

/// Longer than the longest interval of samples, 10 s, and than the minute of which dashboards show rates.
const SAMPLED: Duration = Duration::from_secs(90);

/// Members of etcd.
const MEMBERS: [&str; 3] = ["etcd-1", "etcd-2", "etcd-3"];

/// Checks the stack's monitoring after its first jobs. Returns the number of expressions.
///
/// # Errors
/// The first check that fails.
pub async fn check(stack: &Stack) -> Result<usize> {
    let container = only_container(stack, "prometheus").await?;
    let prometheus = Prometheus {
        address: stack.metrics_address(&container, 9090).await?,
    };
    eventually(SAMPLED, || async {
        all_are_scraped(&prometheus.targets().await?)
    })
    .await?;
    let alerts = eventually(SAMPLED, || loaded_alerts(&prometheus)).await?;
    let chart = check_rules_of_the_chart(stack).await?;
    let dashboards = repository().join("docker/stack/grafana/dashboards");
    let mut all = expressions::of_dashboards(&dashboards)?;
    all.extend(alerts);
    all.extend(chart);
    ensure!(all.len() > 50, "only {} expressions were found", all.len());
    eventually(SAMPLED, || return_series(&prometheus, &all)).await?;

    eventually(SAMPLED, || signals_arrive(&prometheus)).await?;
    check_grafana(stack).await?;
    Ok(all.len())
}

async fn only_container(stack: &Stack, service: &str) -> Result<String> {
    let containers = stack.containers(service).await?;
    let container = containers.into_iter().next();
    container.with_context(|| format!("{service} does not run"))
}

/// Each replica of each service, each node, each member of etcd and the collector is a target and up.
fn all_are_scraped(targets: &[Target]) -> Result<()> {
    let mut expected: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    expected.extend(REPLICATED.map(|(service, replicas)| (("kafila", service), replicas)));
    expected.extend(NODES.map(|node| (("kafila", node), 1)));
    expected.extend(MEMBERS.map(|member| (("etcd", member), 1)));
    expected.insert(("spans", ""), 1);
    let mut found = BTreeMap::new();
    for target in targets {
        ensure!(target.is_up, "{target:?}");
        *found
            .entry((target.job.as_str(), target.service.as_str()))
            .or_default() += 1;
    }
    ensure!(found == expected, "targets are {found:?}, not {expected:?}");
    Ok(())
}

/// Returns the alerts that Prometheus has loaded and evaluated: all of the file.
async fn loaded_alerts(prometheus: &Prometheus) -> Result<Vec<Expression>> {
    let rules = prometheus.rules().await?;
    let file = fs::read_to_string(repository().join("helm/kafila/files/alerts.yaml"))?;
    let written = file.matches("- alert: ").count();
    ensure!(
        rules.len() == written,
        "{} of {written} rules are loaded",
        rules.len()
    );
    for rule in &rules {
        ensure!(rule.health == "ok", "{rule:?}");
    }
    let alerts = rules
        .iter()
        .map(|rule| expressions::of_alert(&rule.name, &rule.expression));
    Ok(alerts.collect())
}

/// Lets `promtool` read the rules of a rendered chart, and returns their expressions.
async fn check_rules_of_the_chart(stack: &Stack) -> Result<Vec<Expression>> {
    let golden = repository().join("helm/tests/golden/everything.yaml");
    let rules = expressions::rules_of_the_chart(&fs::read_to_string(golden)?)?;
    // JSON is YAML.
    let file = tempfile::NamedTempFile::with_suffix(".yaml")?;
    fs::write(file.path(), rules.to_string())?;
    let mount = format!("{}:/rules.yaml:ro", file.path().display());
    let image = stack.prometheus_image();
    docker(&[
        "run",
        "--rm",
        "--network=none",
        // The file belongs to the user of this process.
        "--user=0:0",
        "--volume",
        &mount,
        "--entrypoint=promtool",
        &image,
        "check",
        "rules",
        "/rules.yaml",
    ])
    .await?;
    expressions::of_chart(&rules)
}

/// Every expression returns a series, with the labels of its legend. The error lists all others.
async fn return_series(prometheus: &Prometheus, all: &[Expression]) -> Result<()> {
    let mut wrong = Vec::new();
    for expression in all {
        let Expression {
            place,
            text,
            labels,
        } = expression;
        let series = prometheus.query(text).await;
        let series = series.with_context(|| format!("{place}: {text}"))?;
        if series.is_empty() {
            wrong.push(format!("{place}: no series of {text}"));
        }
        for label in labels {
            if series.iter().any(|series| !series.contains_key(label)) {
                wrong.push(format!("{place}: no label {label} in {text}"));
            }
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// The collector has spans and log lines of every service and of the nodes.
async fn signals_arrive(prometheus: &Prometheus) -> Result<()> {
    let services = REPLICATED.map(|(service, _)| service);
    for metric in [stand_in::SPANS, stand_in::LINES] {
        let series = prometheus.query(&format!("{metric} > 0")).await?;
        let heard: BTreeSet<&str> = series
            .iter()
            .filter_map(|labels| labels.get("service_name"))
            .map(String::as_str)
            .collect();
        for service in services.iter().chain(&["client-node"]) {
            ensure!(
                heard.contains(service),
                "{metric} has {heard:?}, not {service}"
            );
        }
    }
    Ok(())
}

/// In Grafana's container, as Grafana's user: the files can be read, and the data source's address
/// accepts connections.
async fn check_grafana(stack: &Stack) -> Result<()> {
    let container = only_container(stack, "grafana").await?;
    let shell = async |script: &str| docker(&["exec", &container, "bash", "-c", script]).await;
    let password = shell("cat \"$GF_SECURITY_ADMIN_PASSWORD__FILE\"").await?;
    ensure!(password.len() >= 16, "the password is short");
    let rights = shell("stat -Lc '%a %g' \"$GF_SECURITY_ADMIN_PASSWORD__FILE\"; id -g").await?;
    ensure!(
        rights == "440 0\n0",
        "mode and group of the password, and Grafana's group: {rights:?}"
    );

    let provisioning = "/etc/grafana/provisioning";
    let sources = shell(&format!("cat {provisioning}/datasources/*.yaml")).await?;
    let sources = yaml::document(&sources)?;
    let url = sources.pointer("/datasources/0/url");
    let url = url.and_then(serde_json::Value::as_str).unwrap_or_default();
    let address = url.strip_prefix("http://").context("no data source")?;
    let (host, port) = address.split_once(':').context("no port")?;
    shell(&format!("exec 3<>/dev/tcp/{host}/{port}")).await?;

    let providers = shell(&format!("cat {provisioning}/dashboards/*.yaml")).await?;
    let providers = yaml::document(&providers)?;
    let folder = providers.pointer("/providers/0/options/path");
    let folder = folder.and_then(serde_json::Value::as_str);
    let folder = folder.context("no folder of dashboards")?;
    let mounted = shell(&format!("cat {folder}/*.json | grep -c '^  \"uid\"'")).await?;
    let dashboards = fs::read_dir(repository().join("docker/stack/grafana/dashboards"))?;
    let expected = dashboards.count().to_string();
    ensure!(mounted == expected, "{mounted} dashboards in {folder}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_replica_and_one_that_is_down_are_found() {
        let target = |job: &str, service: &str| Target {
            job: job.to_owned(),
            service: service.to_owned(),
            is_up: true,
            error: String::new(),
        };
        let mut targets = vec![target("spans", "")];
        for (service, replicas) in REPLICATED {
            targets.extend((0..replicas).map(|_| target("kafila", service)));
        }
        targets.extend(NODES.map(|node| target("kafila", node)));
        targets.extend(MEMBERS.map(|member| target("etcd", member)));
        all_are_scraped(&targets).unwrap();

        targets[3].is_up = false;
        assert!(all_are_scraped(&targets).is_err());
        targets.remove(3);
        assert!(all_are_scraped(&targets).is_err());
    }
}
