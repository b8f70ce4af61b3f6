//! Consul over a real etcd, with a stand-in for Consul: services with checks, a canary, the death of a node's agent,
//! an outage, templates that follow a key, and tokens of tasks.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use consul_test_kit::Consul;
use integration_tests::api::{Api, eventually};
use integration_tests::suite::{Options, Suite};
use proto::v1;
use serde_json::Value;

const TIMEOUT: Duration = Duration::from_secs(90);

/// `VERSION` and `RELEASE` change between its versions: a tag in place, and the task.
const SHOP: &str = r#"
job "shop" {
  update {
    canary           = 1
    min_healthy_time = "1s"
  }
  group "web" {
    network {
      port "http" {}
    }
    service {
      provider    = "consul"
      name        = "shop-web"
      port        = "http"
      tags        = ["VERSION", "alloc-${NOMAD_ALLOC_INDEX}"]
      canary_tags = ["canary"]
      check {
        name     = "alive"
        type     = "http"
        path     = "/health"
        interval = "1s"
        timeout  = "1s"
      }
    }
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "exec sleep RELEASE"]
      }
      service {
        provider = "consul"
        name     = "shop-task"
        check {
          type     = "script"
          command  = "/bin/sh"
          args     = ["-c", "echo of $NOMAD_TASK_NAME"]
          interval = "1s"
          timeout  = "2s"
        }
      }
      resources {
        cpu    = 20
        memory = 20
      }
    }
  }
}
"#;

fn shop(version: &str, release: u32) -> String {
    SHOP.replace("VERSION", version)
        .replace("RELEASE", &release.to_string())
}

/// Prints its configuration and its token at each start.
const READER: &str = r#"
job "reader" {
  group "app" {
    consul {}
    task "server" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "stat -c 'mode %a' secrets/consul_token; test \"$(cat secrets/consul_token)\" = \"$CONSUL_HTTP_TOKEN\" && echo same token; echo \"read $(cat local/app.conf)\"; exec sleep 600"]
      }
      template {
        data        = "{{ key \"app/name\" }}{{ range service \"db\" }} {{ .Address }}:{{ .Port }}{{ end }}"
        destination = "local/app.conf"
        splay       = "0s"
      }
      resources {
        cpu    = 20
        memory = 20
      }
    }
  }
}
"#;

async fn start(consul: &Consul, more: &str) -> Result<Suite> {
    let address = consul.address();
    let config = format!("[consul]\nenabled = true\naddress = {address:?}\n{more}");
    Suite::start(Options {
        node_config: Some(config),
        ..Options::default()
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn services_are_registered_in_consul_and_its_checks_count() -> Result<()> {
    if !test_kit::etcd::available() {
        return Ok(());
    }
    let mut consul = Consul::start().await;
    let mut suite = start(&consul, "tags = \"node-tag\"\n").await?;
    let result = play_services(&mut suite, &mut consul).await;
    result.with_context(|| suite.log_tails())?;
    suite.stop().await
}

async fn play_services(suite: &mut Suite, consul: &mut Consul) -> Result<()> {
    let api = suite.api()?;
    suite.run_job(&shop("v1", 600)).await?;
    eventually(TIMEOUT, || tags_are(consul, &["v1 alloc-0 node-tag"])).await?;
    // A script runs at the node, which sends its results.
    eventually(TIMEOUT, || async {
        let checks = consul.checks();
        let mut scripts = checks
            .values()
            .filter(|it| it["ServiceName"] == "shop-task");
        let script = scripts.next().context("no script")?;
        ensure!(script["Status"] == "passing", "{script}");
        ensure!(script["Output"] == "of t\n", "{script}");
        Ok(())
    })
    .await?;
    // The other check is Consul's, and has not passed.
    tokio::time::sleep(Duration::from_secs(3)).await;
    ensure!(latest(&api).await?.status == "running");
    consul.set_check("alive", "passing");
    eventually(TIMEOUT, || has_ended(&api, 0)).await?;
    let alloc = only_running(&api).await?;
    let checks = suite.kafila(&["alloc", "checks", &alloc]).await?.ok()?;
    ensure!(checks.stdout.contains("success"), "{checks:?}");

    // In place.
    suite.run_job(&shop("v2", 600)).await?;
    eventually(TIMEOUT, || tags_are(consul, &["v2 alloc-0 node-tag"])).await?;
    ensure!(
        only_running(&api).await? == alloc,
        "the allocation was replaced"
    );

    // A canary has its own tags until its promotion.
    suite.run_job(&shop("v3", 601)).await?;
    let both = ["canary node-tag", "v2 alloc-0 node-tag"];
    eventually(TIMEOUT, || tags_are(consul, &both)).await?;
    consul.set_check("alive", "passing");
    eventually(TIMEOUT, || async {
        let deployment = latest(&api).await?;
        let group = deployment.task_groups.get("web").context("no group")?;
        ensure!(
            deployment.job_version == 2 && group.healthy_allocs == 1,
            "{deployment:?}"
        );
        Ok(())
    })
    .await?;
    let id = latest(&api).await?.id;
    suite
        .kafila(&["deployment", "promote", "-detach", &id])
        .await?
        .ok()?;
    eventually(TIMEOUT, || tags_are(consul, &["v3 alloc-0 node-tag"])).await?;
    // The services of the old one end before its task.
    let alloc = eventually(TIMEOUT, || only_running(&api)).await?;

    // An outage ends nothing, and what was lost meanwhile comes back.
    consul.stop();
    tokio::time::sleep(Duration::from_secs(3)).await;
    consul.forget_services();
    consul.serve().await;
    eventually(TIMEOUT, || tags_are(consul, &["v3 alloc-0 node-tag"])).await?;
    ensure!(
        only_running(&api).await? == alloc,
        "the outage ended the task"
    );

    // The services outlive the agent, and end with the job.
    suite.kill("client-node-0");
    tokio::time::sleep(Duration::from_secs(1)).await;
    tags_are(consul, &["v3 alloc-0 node-tag"]).await?;
    suite.start_process("client-node-0")?;
    eventually(TIMEOUT, || async {
        let node = api.nodes().await?.into_iter().next().context("no node")?;
        ensure!(node.status == "ready", "{node:?}");
        Ok(())
    })
    .await?;
    consul.set_check("alive", "critical");
    eventually(TIMEOUT, || async {
        let checks = suite.kafila(&["alloc", "checks", &alloc]).await?.ok()?;
        ensure!(checks.stdout.contains("failure"), "{checks:?}");
        Ok(())
    })
    .await?;
    tags_are(consul, &["v3 alloc-0 node-tag"]).await?;
    suite.kafila(&["job", "stop", "-yes", "shop"]).await?.ok()?;
    eventually(TIMEOUT, || async {
        let (services, checks) = (consul.services(), consul.checks());
        ensure!(
            services.is_empty() && checks.is_empty(),
            "{services:?} {checks:?}"
        );
        Ok(())
    })
    .await?;
    suite.check_history().await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_follows_consul_with_the_tasks_own_token() -> Result<()> {
    if !test_kit::etcd::available() {
        return Ok(());
    }
    let mut consul = Consul::start().await;
    consul.require_token("management");
    consul.put_auth_method("nomad-workloads", "consul.io", Duration::ZERO);
    let suite = start(&consul, "task_auth_method = \"nomad-workloads\"\n").await?;
    let result = play_templates(&suite, &mut consul).await;
    result.with_context(|| suite.log_tails())?;
    suite.stop().await
}

async fn play_templates(suite: &Suite, consul: &mut Consul) -> Result<()> {
    // The node itself has no token, so it has no attributes yet, which this job does not need.
    suite.run_job(READER).await?;
    let api = suite.api()?;
    eventually(TIMEOUT, || async {
        let alloc = first(&api).await?;
        let state = alloc.task_states.get("server").context("no task")?;
        let events: Vec<&str> = state
            .events
            .iter()
            .map(|it| it.display_message.as_str())
            .collect();
        let waits = |event: &&str| event.contains("consul.key(app/name)");
        ensure!(events.iter().any(waits), "{events:?}");
        Ok(())
    })
    .await?;
    consul.put_key("app/name", "one");
    let log = eventually(TIMEOUT, || printed(&api, "read one")).await?;
    ensure!(
        log.contains("mode 600") && log.contains("same token"),
        "{log}"
    );
    let tokens = consul.tokens();
    ensure!(tokens.len() == 1, "{} tokens", tokens.len());

    consul.stop();
    tokio::time::sleep(Duration::from_secs(4)).await;
    let state = first(&api).await?.task_states["server"].clone();
    ensure!(state.restarts == 0 && state.state == "running", "{state:?}");
    consul.put_key("app/name", "two");
    consul.put_instance(serde_json::json!({
        "Node": {"Node": "n1", "Address": "10.0.0.1", "Datacenter": "dc1"},
        "Service": {"ID": "db-1", "Service": "db", "Port": 5432, "Address": "10.0.0.9", "Tags": null},
        "Checks": [],
    }));
    consul.serve().await;
    eventually(TIMEOUT, || printed(&api, "read two 10.0.0.9:5432")).await?;
    ensure!(consul.tokens() == tokens, "the restart took another token");

    suite
        .kafila(&["job", "stop", "-yes", "reader"])
        .await?
        .ok()?;
    eventually(TIMEOUT, || async {
        ensure!(consul.tokens().is_empty(), "the token is not ended");
        Ok(())
    })
    .await?;
    suite.search_secrets(&[&tokens[0]]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn without_consul_the_job_waits_and_says_what_is_missing() -> Result<()> {
    if !test_kit::etcd::available() {
        return Ok(());
    }
    let suite = Suite::start(Options::default()).await?;
    let result = play_missing(&suite).await;
    result.with_context(|| suite.log_tails())?;
    suite.stop().await
}

async fn play_missing(suite: &Suite) -> Result<()> {
    suite.run_job(&shop("v1", 600)).await?;
    eventually(TIMEOUT, || async {
        let status = suite.kafila(&["job", "status", "shop"]).await?.ok()?.stdout;
        ensure!(
            status.contains("${attr.consul.version} semver >= 1.8.0"),
            "{status}"
        );
        ensure!(status.contains("Give a node a Consul"), "{status}");
        Ok(())
    })
    .await
}

/// Checks the tags of all instances of the group's service, sorted.
async fn tags_are(consul: &Consul, want: &[&str]) -> Result<()> {
    let services = consul.services();
    let web = services.values().filter(|it| it["Service"] == "shop-web");
    let mut tags: Vec<String> = web
        .map(|it| {
            let tags = it["Tags"].as_array().into_iter().flatten();
            let tags: Vec<&str> = tags.filter_map(Value::as_str).collect();
            tags.join(" ")
        })
        .collect();
    tags.sort();
    ensure!(tags == want, "{tags:?}");
    Ok(())
}

async fn latest(api: &Api) -> Result<v1::Deployment> {
    let deployments = api.deployments().await?;
    let latest = deployments.into_iter().max_by_key(|it| it.create_index);
    latest.context("no deployment")
}

async fn has_ended(api: &Api, version: u64) -> Result<()> {
    let deployment = latest(api).await?;
    ensure!(
        deployment.job_version == version && deployment.status == "successful",
        "{deployment:?}"
    );
    Ok(())
}

/// Returns the id of the only allocation of the shop that runs.
async fn only_running(api: &Api) -> Result<String> {
    let all = api.allocations("shop").await?;
    let mut running = all.iter().filter(|alloc| alloc.client_status == "running");
    let alloc = running.next().context("nothing runs")?;
    ensure!(running.next().is_none(), "{all:?}");
    Ok(alloc.id.clone())
}

async fn first(api: &Api) -> Result<v1::Allocation> {
    let allocations = api.allocations("reader").await?;
    allocations.into_iter().next().context("no allocation")
}

async fn printed(api: &Api, line: &str) -> Result<String> {
    let alloc = first(api).await?;
    let log = api.logs(&alloc.id, "server").await?;
    ensure!(log.lines().any(|read| read == line), "{log}");
    Ok(log)
}
