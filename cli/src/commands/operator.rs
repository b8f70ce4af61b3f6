//! `kafila operator …`

pub(super) mod debug;
pub(super) mod root;
pub(super) mod snapshot;

use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use proto::v1;
use tokio::time::{Instant, sleep};

use crate::args::operator::{
    Command, GetConfig, Health, Leaders, LogLevel, Processes, Scheduler, SetConfig,
};
use crate::commands::etcd;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::json;
use crate::output::json::pretty;
use crate::render;

/// Runs a command of operators.
pub(super) async fn run_command(context: &Context, command: Command) -> Result<Exit, Error> {
    match command {
        Command::Leaders(args) => leaders(context, &args).await,
        Command::Processes(args) => processes(context, &args).await,
        Command::Health(args) => health(context, &args).await,
        Command::LogLevel(args) => log_level(context, &args).await,
        Command::Scheduler(command) => scheduler(context, &command).await,
        Command::Etcd(command) => etcd::run(context, &command).await,
        Command::Debug(args) => Box::pin(debug::run(context, &args)).await,
        Command::Snapshot(command) => Box::pin(snapshot::run(context, &command)).await,
        Command::Root(command) => root::run(context, &command).await,
    }
}

pub(super) async fn leaders(context: &Context, args: &Leaders) -> Result<Exit, Error> {
    let mut leaders = context.connection.leaders().await?;
    leaders.sort_by(|a, b| a.service.cmp(&b.service));
    let text = if args.json {
        let leaders: Vec<json::operator::Leader<'_>> = leaders.iter().map(Into::into).collect();
        pretty(&leaders)
    } else {
        render::operator::leaders(&leaders).render()
    };
    context.printer.out(&text)?;
    Ok(Exit::Success)
}

/// Number of processes that are asked at a time.
const ASKED_AT_ONCE: usize = 16;

/// A killed process stays registered until its lease ends, so each is asked for a sign of life.
pub(super) async fn processes(context: &Context, args: &Processes) -> Result<Exit, Error> {
    let processes = context.connection.processes().await?;
    let asked = stream::iter(&processes).map(|it| context.connection.answers(&it.address));
    let answers: Vec<Option<bool>> = asked.buffered(ASKED_AT_ONCE).collect().await;
    let text = if args.json {
        let processes = processes.iter().zip(&answers);
        let processes: Vec<json::operator::Process<'_>> = processes
            .map(|(process, answers)| json::operator::Process::new(process, *answers))
            .collect();
        pretty(&processes)
    } else {
        render::operator::processes(&processes, &answers).render()
    };
    context.finish(&text)
}

/// Interval of checks with `-wait`: a start takes a second or so.
const HEALTH_INTERVAL: Duration = Duration::from_millis(250);

pub(super) async fn health(context: &Context, args: &Health) -> Result<Exit, Error> {
    let deadline = args.wait.map(|wait| Instant::now() + wait);
    loop {
        let found = health_problem(context, args.only_process).await;
        let may_change = match &found {
            Ok(problem) => problem.is_some(),
            Err(error) => error.is_transient(),
        };
        if may_change && deadline.is_some_and(|deadline| Instant::now() < deadline) {
            sleep(HEALTH_INTERVAL).await;
            continue;
        }
        let url = &context.connection.address().url;
        // Of several, the one that answers first is asked.
        let url = match url.contains(',') {
            true => format!("a gateway of {url}"),
            false => url.clone(),
        };
        let Some(problem) = found? else {
            context.printer.out(&format!("{url} is ready"))?;
            if !args.only_process {
                note_gateways(context).await;
            }
            return Ok(Exit::Success);
        };
        return Err(Error::text(format!("{url} is not ready: {problem}")));
    }
}

/// Notes on standard error that only one of several gateways was asked. Only a hint, so an error is left
/// out: a process that is not a gateway knows no others.
async fn note_gateways(context: &Context) {
    let processes = context.connection.processes().await.unwrap_or_default();
    let gateways = processes.iter().filter(|it| it.service == "api-gateway");
    let addresses: Vec<&str> = gateways.map(|it| it.address.as_str()).collect();
    if addresses.len() > 1 {
        context.printer.err(&format!(
            "The cluster has {} gateways; -address asks another: {}",
            addresses.len(),
            addresses.join(", ")
        ));
    }
}

/// Returns the reason why the process at the address is not ready; `None` if it is.
///
/// A process calls itself ready until etcd has been silent for a while, so a gateway is also asked
/// whether etcd answers now, unless `only_process`.
async fn health_problem(
    context: &Context,
    only_process: bool,
) -> Result<Option<&'static str>, Error> {
    let is_ready = context.connection.is_ready().await?;
    let etcd_answers = if only_process {
        None
    } else {
        context.connection.etcd_answers().await
    };
    Ok(match (is_ready, etcd_answers) {
        (_, Some(false)) => Some(
            "etcd does not answer it.\n\
             Writes fail; reads with -stale show the gateway's copy of the state. \
             'kafila operator etcd status' shows the members of etcd.",
        ),
        (true, _) => None,
        (false, Some(true)) => Some(
            "etcd answers it, so it starts, shuts down, the limits of etcd are too low\n\
             (--max-txn-ops and --max-request-bytes), or its keyring_key_file is not that of the other \
             gateways.\n\
             Its log says which.",
        ),
        (false, None) => Some(
            "it starts, shuts down, has no connection to etcd, or the limits of etcd are too low\n\
             (--max-txn-ops and --max-request-bytes). Its log says which.",
        ),
    })
}

pub(super) async fn log_level(context: &Context, args: &LogLevel) -> Result<Exit, Error> {
    let target = args.target.to_wire();
    let connection = &context.connection;
    let filter = match (&args.level, args.reset) {
        (Some(level), _) => level.trim(),
        (None, true) => "",
        (None, false) => {
            let level = connection.log_level(target).await?;
            let text = if args.json {
                pretty(&json::log::level(&level))
            } else {
                render::operator::log_level(&level).render()
            };
            return context.finish(&text);
        }
    };
    let expires_after = (!args.reset && !args.until_restart).then_some(args.duration);
    let (previous, level) = connection
        .set_log_level(target, filter, expires_after)
        .await?;
    let text = if args.json {
        pretty(&json::log::level(&level))
    } else {
        render::operator::log_level_change(&previous, &level)
    };
    context.finish(&text)
}

pub(super) async fn scheduler(context: &Context, command: &Scheduler) -> Result<Exit, Error> {
    match command {
        Scheduler::GetConfig(args) => get_config(context, args).await,
        Scheduler::SetConfig(args) => set_config(context, args).await,
    }
}

async fn get_config(context: &Context, args: &GetConfig) -> Result<Exit, Error> {
    let config = context.connection.scheduler_config().await?;
    let text = if args.json {
        pretty(&json::operator::SchedulerConfig::from(&config))
    } else {
        render::operator::scheduler_config(&config).render()
    };
    context.printer.out(&text)?;
    Ok(Exit::Success)
}

/// Retries after lost conditional writes.
const MAX_ATTEMPTS: usize = 8;

async fn set_config(context: &Context, args: &SetConfig) -> Result<Exit, Error> {
    if args.is_empty() {
        return Err(Error::text(
            "Error setting scheduler configuration: no setting is given.\n\
             Pass at least one, for example -scheduler-algorithm=spread.",
        ));
    }
    let connection = &context.connection;
    let mut asked: Option<v1::SchedulerConfiguration> = None;
    for _ in 0..MAX_ATTEMPTS {
        let current = connection.scheduler_config().await?;
        // An earlier attempt may have been executed without an answer.
        let is_done = asked
            .as_ref()
            .is_some_and(|asked| *asked == settings(&current));
        if !is_done {
            let index = current.modify_index;
            if let Some(want) = args.check_index.filter(|want| *want != index) {
                return Err(conflict(want, index));
            }
            let wanted = changed(settings(&current), args);
            match connection.set_scheduler_config(&wanted, index).await {
                Ok(_) => {}
                Err(error) if error.is_aborted() => {
                    asked = Some(wanted);
                    continue;
                }
                Err(error) => return Err(error),
            }
        }
        context.printer.out("Scheduler configuration updated!")?;
        return Ok(Exit::Success);
    }
    Err(Error::text(
        "Error setting scheduler configuration: too many concurrent changes. Try again.",
    ))
}

fn conflict(want: u64, found: u64) -> Error {
    if found == 0 {
        return Error::text(format!(
            "Error setting scheduler configuration: its ModifyIndex is 0, not {want}: it was \
             never set.\n\
             Retry with -check-index=0."
        ));
    }
    Error::text(format!(
        "Error setting scheduler configuration: its ModifyIndex is {found}, not {want}: it has \
         changed.\n\
         Review it with 'kafila operator scheduler get-config', then retry with \
         -check-index={found}."
    ))
}

/// Returns the settings without the indexes.
fn settings(config: &v1::SchedulerConfiguration) -> v1::SchedulerConfiguration {
    v1::SchedulerConfiguration {
        create_index: 0,
        modify_index: 0,
        ..config.clone()
    }
}

/// Applies the given settings and keeps the others.
fn changed(mut config: v1::SchedulerConfiguration, args: &SetConfig) -> v1::SchedulerConfiguration {
    if let Some(algorithm) = args.scheduler_algorithm {
        config.scheduler_algorithm = algorithm.as_str().to_owned();
    }
    let mut preemption = config.preemption_config.unwrap_or_default();
    for (setting, given) in [
        (
            &mut config.memory_oversubscription_enabled,
            args.memory_oversubscription,
        ),
        (
            &mut config.reject_job_registration,
            args.reject_job_registration,
        ),
        (&mut config.pause_eval_broker, args.pause_eval_broker),
        (
            &mut preemption.system_scheduler_enabled,
            args.preempt_system_scheduler,
        ),
        (
            &mut preemption.sysbatch_scheduler_enabled,
            args.preempt_sysbatch_scheduler,
        ),
        (
            &mut preemption.batch_scheduler_enabled,
            args.preempt_batch_scheduler,
        ),
        (
            &mut preemption.service_scheduler_enabled,
            args.preempt_service_scheduler,
        ),
    ] {
        if let Some(value) = given {
            *setting = value;
        }
    }
    config.preemption_config = Some(preemption);
    config
}
