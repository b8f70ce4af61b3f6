//! A node that no gateway can dial: its own connections carry all calls, through the gateway that has its stream and
//! through the other one.

use std::net::TcpListener;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use integration_tests::api::{Api, eventually};
use integration_tests::binary;
use integration_tests::load::shell_job;
use integration_tests::suite::{Options, SECOND_GATEWAY, Suite};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

const TIMEOUT: Duration = Duration::from_secs(60);
const FIRST_GATEWAY: &str = "api-gateway";

/// From the documentation range (RFC 5737): nothing answers there.
const NOWHERE: &str = "http://192.0.2.7:4647";

#[tokio::test(flavor = "multi_thread")]
async fn a_node_behind_a_firewall_answers_through_every_gateway() -> Result<()> {
    if !test_kit::etcd::available() {
        return Ok(());
    }
    let mut suite = Suite::start(Options {
        node_config: Some(config(NOWHERE, false)),
        has_second_gateway: true,
        ..Options::default()
    })
    .await?;
    let result = play(&mut suite).await;
    result.with_context(|| suite.log_tails())?;
    suite.stop().await
}

fn config(advertised: &str, dial_out: bool) -> String {
    format!("dial_out = {dial_out}\n[listen]\nadvertise = \"{advertised}\"\n")
}

async fn play(suite: &mut Suite) -> Result<()> {
    let api = suite.api()?;
    let script = "echo up; while true; do echo tick; sleep 0.2; done";
    let job = shell_job("web", script);
    api.register_surely(&job, "once", TIMEOUT).await?;
    let id = eventually(TIMEOUT, || running(&api)).await?;
    let addresses = suite.addresses();
    let at = eventually(TIMEOUT, || gateway_with_stream(suite)).await?;
    for address in &addresses {
        use_the_node(address, &id)
            .await
            .with_context(|| format!("through {address}; the node's stream is at {at}"))?;
    }
    // Output that goes on while the node's gateway dies.
    let (other_name, other) = match at {
        FIRST_GATEWAY => (SECOND_GATEWAY, &addresses[1]),
        _ => (FIRST_GATEWAY, &addresses[0]),
    };
    let (_follower, mut lines) = follow(other, &id)?;
    for _ in 0..3 {
        next_line(&mut lines).await?;
    }
    suite.kill(at);
    eventually(TIMEOUT, || async {
        ensure!(
            awaiting(suite, other_name).await? == 1,
            "no stream at {other_name}"
        );
        Ok(())
    })
    .await?;
    use_the_node(other, &id).await?;
    suite.start_process(at)?;

    // The node says that it must not be dialed: an address that a listener has is not used.
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let dialed = format!("http://{}", listener.local_addr()?);
    suite.kill("client-node-0");
    suite.set_node_config(&config(&dialed, true));
    suite.start_process("client-node-0")?;
    for address in &addresses {
        eventually(TIMEOUT, || async {
            let shown = binary::run(address, &["alloc", "logs", &id]).await?;
            shown.ok().map(drop)
        })
        .await?;
        use_the_node(address, &id).await?;
    }
    listener.set_nonblocking(true)?;
    ensure!(listener.accept().is_err(), "the node was dialed");
    Ok(())
}

async fn running(api: &Api) -> Result<String> {
    let allocations = api.allocations("web").await?;
    let running = allocations.iter().find(|it| it.client_status == "running");
    Ok(running.context("not running")?.id.clone())
}

/// Returns the number of nodes that await connections at a gateway.
async fn awaiting(suite: &Suite, gateway: &str) -> Result<u64> {
    let metrics = suite.metrics(gateway).await?;
    let name = "kafila_api_gateway_awaiting_nodes ";
    let line = metrics.lines().find_map(|line| line.strip_prefix(name));
    Ok(line.context("no such metric")?.parse()?)
}

async fn gateway_with_stream(suite: &Suite) -> Result<&'static str> {
    for gateway in [FIRST_GATEWAY, SECOND_GATEWAY] {
        if awaiting(suite, gateway).await? == 1 {
            return Ok(gateway);
        }
    }
    anyhow::bail!("no gateway has the node's stream")
}

/// Makes every kind of call: streams in both directions, and single answers.
async fn use_the_node(address: &str, id: &str) -> Result<()> {
    let run = async |words: &[&str]| binary::run(address, words).await?.ok();
    let logs = run(&["alloc", "logs", id]).await?.stdout;
    ensure!(logs.contains("up\n"), "{logs}");
    let listed = run(&["alloc", "fs", id, "alloc/logs"]).await?.stdout;
    ensure!(listed.contains("task.stdout.0"), "{listed}");
    let file = run(&["alloc", "fs", id, "alloc/logs/task.stdout.0"]).await?;
    ensure!(file.stdout.contains("up\n"), "{file:?}");
    let sent = vec![b'x'; 1 << 20];
    ensure!(echo(address, id, &sent).await? == sent, "another echo");
    let (_follower, mut lines) = follow(address, id)?;
    for _ in 0..3 {
        next_line(&mut lines).await?;
    }
    let before = started_at(address, id).await?;
    run(&["alloc", "restart", id]).await?;
    eventually(TIMEOUT, || async {
        let now = started_at(address, id).await?;
        ensure!(now > before, "the task has not started again");
        Ok(())
    })
    .await?;
    run(&["alloc", "signal", "-s", "SIGCONT", id]).await?;
    run(&["alloc", "status", "-stats", id]).await?;
    Ok(())
}

/// Sends the input through a command beside the task; returns its output.
async fn echo(address: &str, id: &str, input: &[u8]) -> Result<Vec<u8>> {
    let mut child = command(address, &["alloc", "exec", id, "cat"]).spawn()?;
    let mut stdin = child.stdin.take().context("no pipe")?;
    let input = input.to_vec();
    let writing = tokio::spawn(async move { stdin.write_all(&input).await });
    let output = tokio::time::timeout(TIMEOUT, child.wait_with_output()).await??;
    ensure!(output.status.success(), "{:?}", output.status);
    writing.await??;
    Ok(output.stdout)
}

fn follow(address: &str, id: &str) -> Result<(Child, Lines<BufReader<ChildStdout>>)> {
    let mut child = command(address, &["alloc", "logs", "-f", id]).spawn()?;
    let stdout = child.stdout.take().context("no pipe")?;
    Ok((child, BufReader::new(stdout).lines()))
}

async fn next_line(lines: &mut Lines<BufReader<ChildStdout>>) -> Result<String> {
    let line = tokio::time::timeout(TIMEOUT, lines.next_line()).await??;
    line.context("the output has ended")
}

fn command(address: &str, words: &[&str]) -> Command {
    let mut command = Command::new(binary::kafila());
    command
        .args(words)
        .env("KAFILA_ADDR", address)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Returns the start of the running task.
async fn started_at(address: &str, id: &str) -> Result<u64> {
    let alloc = Api::new(address)?.allocation(id).await?;
    let state = alloc.task_states.get("task").context("no task")?;
    ensure!(state.state == "running", "{state:?}");
    Ok(state.started_at_ns)
}
