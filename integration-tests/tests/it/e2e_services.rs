//! Service registrations over a real etcd: addresses of running allocations, gone with their job and
//! with their node.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::{RData, Record, RecordType};
use integration_tests::api::eventually;
use integration_tests::suite::{Options, Suite};

const TIMEOUT: Duration = Duration::from_secs(90);

/// Two allocations with a service each, on two nodes.
const JOB: &str = r#"
job "web" {
  group "app" {
    count = 2
    constraint {
      operator = "distinct_hosts"
      value    = "true"
    }
    network {
      port "http" {}
    }
    service {
      name        = "web-api"
      provider    = "nomad"
      port        = "http"
      tags        = ["v1", "index=${NOMAD_ALLOC_INDEX}"]
    }
    task "server" {
      driver = "raw_exec"
      config {
        command = "/bin/sleep"
        args    = ["600"]
      }
      resources {
        cpu    = 20
        memory = 20
      }
      service {
        name     = "metrics"
        provider = "nomad"
        port     = "9100"
      }
    }
  }
}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn registrations_end_with_their_allocation_and_with_their_node() -> Result<()> {
    if !test_kit::etcd::available() {
        return Ok(());
    }
    let mut suite = Suite::start(Options {
        nodes: 2,
        node_config: Some("[dns]\nenabled = true\n".to_owned()),
        ..Options::default()
    })
    .await?;
    let result = play(&mut suite).await;
    result.with_context(|| suite.log_tails())?;
    suite.stop().await
}

async fn play(suite: &mut Suite) -> Result<()> {
    suite.run_job(JOB).await?;

    let found = eventually(TIMEOUT, || registrations(suite, "web-api", 2)).await?;
    let metrics = eventually(TIMEOUT, || registrations(suite, "metrics", 2)).await?;
    let list = suite.kafila(&["service", "list"]).await?.ok()?.stdout;
    ensure!(list.contains("[index=0,index=1,v1]"), "{list}");
    ensure!(list.contains("metrics"), "{list}");
    let info = suite
        .kafila(&["service", "info", "web-api"])
        .await?
        .ok()?
        .stdout;
    let allocations = suite.api()?.allocations("web").await?;
    for registration in &found {
        let alloc = allocations
            .iter()
            .find(|it| registration["AllocID"] == it.id.as_str());
        let alloc = alloc.context("a registration of no allocation")?;
        let port = &alloc.resources.as_ref().context("no resources")?.ports[0];
        ensure!(
            registration["Port"] == port.value,
            "{registration} {port:?}"
        );
        ensure!(
            registration["Address"] == port.host_ip.as_str(),
            "{registration} {port:?}"
        );
        let address = format!("{}:{}", port.host_ip, port.value);
        ensure!(info.contains(&address), "{address} {info}");
        ensure!(info.contains(&alloc.id[..8]), "{info}");
    }
    ensure!(metrics[0]["Port"] == 9100, "{metrics:?}");

    // Both nodes answer the names, their own instance first.
    let mut ports: Vec<String> = found.iter().map(|it| it["Port"].to_string()).collect();
    ports.sort();
    for node in ["client-node-0", "client-node-1"] {
        let own = found.iter().find(|it| {
            let alloc = allocations
                .iter()
                .find(|alloc| it["AllocID"] == alloc.id.as_str());
            alloc.is_some_and(|alloc| alloc.node_name == node)
        });
        let own = own.context("a node without an instance")?;
        let answers = eventually(TIMEOUT, || {
            srv(suite, node, "_web-api._tcp.service.kafila.")
        })
        .await?;
        ensure!(
            answers.first() == Some(&own["Port"].to_string()),
            "{answers:?} {own}"
        );
        let mut answered = answers.clone();
        answered.sort();
        ensure!(answered == ports, "{answers:?} {ports:?}");
        let tagged = srv(suite, node, "_web-api._v1.service.kafila.").await?;
        ensure!(tagged.len() == 2, "{tagged:?}");
    }

    // A deletion hides one registration; its node keeps the other.
    let id = metrics[0]["ID"].as_str().context("no id")?;
    suite
        .kafila(&["service", "delete", "metrics", id])
        .await?
        .ok()?;
    registrations(suite, "metrics", 1).await?;
    let again = suite.kafila(&["service", "delete", "metrics", id]).await?;
    ensure!(again.code == 1, "{again:?}");
    ensure!(
        again.stderr.contains("service registration not found"),
        "{again:?}"
    );

    // A node that is gone takes its services with it; the other's stay.
    suite.kill("client-node-1");
    eventually(TIMEOUT, || registrations(suite, "web-api", 1)).await?;
    let left = async || {
        let answers = srv(suite, "client-node-0", "web-api.service.kafila.").await?;
        ensure!(answers.len() == 1, "{answers:?}");
        Ok(())
    };
    eventually(TIMEOUT, left).await?;

    suite
        .kafila(&["job", "stop", "-detach", "web"])
        .await?
        .ok()?;
    eventually(TIMEOUT, || registrations(suite, "web-api", 0)).await?;
    let none = suite.kafila(&["service", "list"]).await?.ok()?.stdout;
    ensure!(none.trim() == "No service registrations found", "{none}");
    suite.start_process("client-node-1")?;
    let api = suite.api()?;
    eventually(TIMEOUT, || async {
        let nodes = api.nodes().await?;
        ensure!(nodes.iter().all(|node| node.status == "ready"), "{nodes:?}");
        Ok(())
    })
    .await
}

/// Returns the registrations of a service, which must be `count`.
async fn registrations(suite: &Suite, name: &str, count: usize) -> Result<Vec<serde_json::Value>> {
    let said = suite
        .kafila(&["service", "info", "-json", name])
        .await?
        .ok()?;
    let found = said.json()?;
    let found = found.as_array().context("no list")?.clone();
    ensure!(found.len() == count, "{name}: {found:?}");
    Ok(found)
}

/// Returns the ports of a name's SRV records, in their order, as a resolver gets them from a node.
async fn srv(suite: &Suite, node: &str, name: &str) -> Result<Vec<String>> {
    let address = suite.dns_address(node);
    let mut connection = ConnectionConfig::udp();
    connection.port = address.port();
    let server = NameServerConfig::new(address.ip(), true, vec![connection]);
    let config = ResolverConfig::from_parts(None, vec![], vec![server]);
    let resolver = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    let found = resolver.build()?.lookup(name, RecordType::SRV).await?;
    let port = |record: &Record| match &record.data {
        RData::SRV(srv) => Some(srv.port.to_string()),
        _ => None,
    };
    Ok(found.answers().iter().filter_map(port).collect())
}

/// An HTTP server that answers 200 while the file `up` exists in its allocation's directory.
const CHECKED: &str = r#"
job "checked" {
  update {
    min_healthy_time = "1s"
    healthy_deadline = "40s"
    progress_deadline = "50s"
  }
  group "app" {
    network {
      port "http" {}
    }
    restart {
      attempts = 3
      delay    = "1s"
      interval = "10m"
      mode     = "fail"
    }
    service {
      name     = "checked"
      provider = "nomad"
      port     = "http"
      check {
        type     = "http"
        path     = "/up"
        interval = "1s"
        timeout  = "1s"
        check_restart {
          limit = 3
          grace = "3s"
        }
      }
      check {
        type     = "tcp"
        name     = "port"
        interval = "1s"
        timeout  = "1s"
      }
    }
    task "server" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args = ["-c", "cd $NOMAD_ALLOC_DIR/data && touch up && exec python3 -m http.server $NOMAD_PORT_http"]
      }
      resources {
        cpu    = 20
        memory = 60
      }
    }
  }
}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn checks_make_a_deployment_wait_and_restart_a_task() -> Result<()> {
    if !test_kit::etcd::available() {
        return Ok(());
    }
    let suite = Suite::start(Options::default()).await?;
    let result = check(&suite).await;
    result.with_context(|| suite.log_tails())?;
    suite.stop().await
}

async fn check(suite: &Suite) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("checked.hcl");
    std::fs::write(&file, CHECKED)?;
    let file = file.to_str().context("its name is text")?;
    // Waits until the deployment is successful.
    suite.kafila(&["job", "run", file]).await?.ok()?;
    let api = suite.api()?;
    let alloc_id = api.allocations("checked").await?.remove(0).id;
    let states = || async {
        let said = suite
            .kafila(&["alloc", "checks", "-json", &alloc_id])
            .await?
            .ok()?;
        let checks = said.json()?;
        let checks = checks.as_object().context("no object")?;
        let mut states: Vec<(String, String)> = checks
            .values()
            .map(|it| (it["Check"].to_string(), it["Status"].to_string()))
            .collect();
        states.sort();
        Ok::<_, anyhow::Error>(states)
    };
    let want = |http: &str| {
        let http = (
            "\"service: \\\"checked\\\" check\"".to_owned(),
            format!("{http:?}"),
        );
        vec![("\"port\"".to_owned(), "\"success\"".to_owned()), http]
    };
    let found = states().await?;
    ensure!(found == want("success"), "{found:?}");

    // The server answers 404 from now on, and is restarted after three failures.
    let data = suite.data_dir("client-node-0");
    std::fs::remove_file(find(&data, "up").context("no page")?)?;
    eventually(TIMEOUT, || async {
        let alloc = api.allocation(&alloc_id).await?;
        let state = alloc.task_states.get("server").context("no state")?;
        let is_signaled = state
            .events
            .iter()
            .any(|it| it.r#type == "Restart Signaled");
        ensure!(is_signaled && state.restarts >= 1, "{state:?}");
        Ok(())
    })
    .await
}

/// Finds a file below a directory.
fn find(directory: &std::path::Path, name: &str) -> Option<std::path::PathBuf> {
    for entry in std::fs::read_dir(directory).ok()?.flatten() {
        let path = entry.path();
        let found = if path.is_dir() {
            find(&path, name)
        } else {
            None
        };
        let is_it = path.file_name().is_some_and(|it| it == name);
        if let Some(found) = found.or(is_it.then_some(path)) {
            return Some(found);
        }
    }
    None
}
