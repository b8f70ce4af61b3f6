//! One process of a plugin at a time: found again or started, followed, and started again with backoff.

use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;

use backoff::Backoff;
use task_drivers::boot_id;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::config::PluginConfig;
use crate::connect::{self, Facts};
use crate::health;
use crate::instance::Instance;
use crate::launch::{self, Process, Program};
use crate::plugin::Plugin;
use crate::records::{PluginRecord, Records};
use crate::settings::Timing;

/// A process that answers.
pub(crate) struct Running {
    pub(crate) facts: Facts,
    process: Process,
    instance: Arc<Instance>,
}

impl Running {
    /// Ends a process that is of no use.
    pub(crate) async fn discard(mut self, limit: std::time::Duration) {
        end(&mut self, limit).await;
    }
}

/// Finds the process of an earlier agent, or starts one.
///
/// # Errors
/// The reason why it is no plugin, or of no use.
pub(crate) async fn open(
    program: &Program,
    config: &PluginConfig,
    timing: Timing,
) -> Result<Running, String> {
    let records = Records::new(program.directory.clone());
    if let Some(record) = records.plugin() {
        match find(program, config, timing, &record).await {
            Ok(Some(running)) => return Ok(running),
            Ok(None) => {}
            Err(problem) => {
                let file = program.file.as_str();
                info!(
                    file,
                    problem, "the plugin's process of an earlier agent is not used"
                );
            }
        }
    }
    start(program, config, timing, &records).await
}

/// Finds the process of an earlier agent; `Ok(None)`: there is none.
async fn find(
    program: &Program,
    config: &PluginConfig,
    timing: Timing,
    record: &PluginRecord,
) -> Result<Option<Running>, String> {
    let Some(id) = record.process.filter(|_| record.boot_id == boot_id()) else {
        return Ok(None);
    };
    let gone = CancellationToken::new();
    let mut process = launch::find(program, id, record.socket.clone(), &gone)?;
    let channel = connect::channel(&process.socket, timing.quick_limit);
    let found = match connect::facts(&channel, timing.quick_limit).await {
        _ if record.origin != origin(program, config) => {
            Err("the program or its settings have changed".to_owned())
        }
        found => found,
    };
    let (facts, schema) = match found {
        Ok(found) => found,
        Err(problem) => {
            // Two processes of a plugin would both think that they own its tasks.
            process.kill().await;
            gone.cancel();
            return Err(problem);
        }
    };
    info!(
        file = program.file,
        pid = id.pid,
        "the plugin's process of an earlier agent is used"
    );
    Ok(Some(running(facts, schema, process, channel, timing, gone)))
}

async fn start(
    program: &Program,
    config: &PluginConfig,
    timing: Timing,
    records: &Records,
) -> Result<Running, String> {
    let gone = CancellationToken::new();
    let mut process = launch::launch(program, timing.start_limit, &gone).await?;
    let channel = connect::channel(&process.socket, timing.quick_limit);
    let set_up = async {
        let (facts, schema) = connect::facts(&channel, timing.quick_limit).await?;
        connect::set_config(&channel, &config.config, timing.quick_limit).await?;
        let record = PluginRecord {
            facts: facts.clone(),
            process: Some(process.id),
            boot_id: boot_id(),
            socket: process.socket.clone(),
            origin: origin(program, config),
        };
        let written = records.put_plugin(&record);
        written.map_err(|error| format!("cannot write its record: {error}"))?;
        Ok((facts, schema))
    };
    let set_up = timeout(timing.start_limit, set_up).await;
    let set_up = set_up.unwrap_or_else(|_| Err("its set-up takes too long".to_owned()));
    match set_up {
        Ok((facts, schema)) => {
            let (file, driver, pid) = (&program.file, &facts.name, process.id.pid);
            info!(
                file,
                driver,
                pid,
                version = facts.version,
                "a plugin is started"
            );
            Ok(running(facts, schema, process, channel, timing, gone))
        }
        Err(problem) => {
            process.kill().await;
            gone.cancel();
            Err(problem)
        }
    }
}

fn running(
    facts: Facts,
    schema: Option<crate::wire::hclspec::Spec>,
    process: Process,
    channel: tonic::transport::Channel,
    timing: Timing,
    gone: CancellationToken,
) -> Running {
    let instance = Instance {
        id: process.id,
        channel,
        timing,
        schema,
        known: Default::default(),
        gone,
    };
    Running {
        facts,
        process,
        instance: Arc::new(instance),
    }
}

/// Returns the identity of a program and its settings: a process that was started with others is replaced.
fn origin(program: &Program, config: &PluginConfig) -> String {
    let file = std::fs::metadata(&program.path);
    let file = file.map(|it| (it.dev(), it.ino(), it.size(), it.mtime(), it.mtime_nsec()));
    let settings = serde_json::to_string(config).unwrap_or_default();
    // Settings may hold secrets, and the record is as private as they are.
    format!("{:?} {settings}", file.ok())
}

/// Keeps a process running until `closing`. Then a process with running tasks stays, and another is ended.
pub(crate) async fn run(plugin: Arc<Plugin>, first: Option<Running>, closing: CancellationToken) {
    let timing = plugin.settings.timing;
    let mut backoff = Backoff::new(timing.backoff.0, timing.backoff.1);
    let mut first = first;
    loop {
        let opened = match first.take() {
            Some(running) => Ok(running),
            None => tokio::select! {
                opened = open(&plugin.program, &plugin.config, timing) => opened,
                () = closing.cancelled() => return,
            },
        };
        let began = Instant::now();
        let reason = match opened {
            Ok(running) if running.facts.name != plugin.name => {
                let name = running.facts.name.clone();
                running.discard(timing.end_limit).await;
                format!("its driver is now called {name:?}: restart the agent to use it")
            }
            Ok(running) => match follow(&plugin, running, &closing).await {
                Some(reason) => reason,
                None => return,
            },
            Err(problem) => problem,
        };
        if began.elapsed() > timing.backoff.1 {
            backoff.reset();
        }
        let pause = backoff.next(&mut rand::rng());
        let (file, seconds) = (&plugin.program.file, pause.as_secs_f32());
        warn!(
            file,
            reason, seconds, "the plugin is started again after a pause"
        );
        plugin.set_unhealthy(&format!("the plugin does not run: {reason}"));
        tokio::select! {
            () = sleep(pause) => {}
            () = closing.cancelled() => return,
        }
    }
}

/// Follows a process, and returns the reason why it is to be replaced; `None`: the agent ends.
async fn follow(
    plugin: &Arc<Plugin>,
    mut running: Running,
    closing: &CancellationToken,
) -> Option<String> {
    let instance = Arc::clone(&running.instance);
    plugin.set_facts(running.facts.clone());
    plugin.instance.send_replace(Some(Arc::clone(&instance)));
    let ended = tokio::select! {
        () = closing.cancelled() => None,
        reason = running.process.ended() => Some((reason, false)),
        reason = health::follow(plugin, &instance) => Some((reason, true)),
    };
    plugin.instance.send_replace(None);
    let Some((reason, has_to_be_killed)) = ended else {
        leave_or_end(plugin, running).await;
        return None;
    };
    if has_to_be_killed {
        running.process.kill().await;
    }
    instance.gone.cancel();
    Some(reason)
}

/// At the agent's end: tasks need their plugin to be recovered with what it knows of them.
async fn leave_or_end(plugin: &Plugin, mut running: Running) {
    let file = plugin.program.file.as_str();
    if plugin.records.has_running() {
        info!(
            file,
            pid = running.instance.id.pid,
            "the plugin stays for its tasks"
        );
        running.instance.gone.cancel();
        return;
    }
    end(&mut running, plugin.settings.timing.end_limit).await;
    if let Some(record) = plugin.records.plugin() {
        let record = PluginRecord {
            process: None,
            ..record
        };
        if let Err(error) = plugin.records.put_plugin(&record) {
            warn!(file, %error, "cannot write the record of a plugin");
        }
    }
}

async fn end(running: &mut Running, limit: std::time::Duration) {
    running.instance.shut_down(limit).await;
    if timeout(limit, running.process.ended()).await.is_err() {
        running.process.kill().await;
    }
    running.instance.gone.cancel();
}
