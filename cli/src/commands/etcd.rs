//! `kafila operator etcd …`

use std::time::Duration;

use proto::v1;
use tokio::time::{Instant, sleep};

use crate::args::operator::{Etcd, EtcdCompact, EtcdDefrag};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::render;

/// The time limit for a member's answer after its defragmentation: it reads its database again.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(60);
const HEALTH_INTERVAL: Duration = Duration::from_millis(500);

pub(super) async fn run(context: &Context, command: &Etcd) -> Result<Exit, Error> {
    match command {
        Etcd::Status => status(context).await,
        Etcd::Compact(args) => compact(context, args).await,
        Etcd::Defrag(args) => defrag(context, args).await,
        Etcd::Disarm => disarm(context).await,
    }
}

async fn status(context: &Context) -> Result<Exit, Error> {
    let status = context.connection.etcd_status().await?;
    context.printer.out(&render::etcd::status(&status))?;
    let is_well = status.revision > 0 && status.refusal.is_empty() && is_healthy(&status);
    Ok(if is_well {
        Exit::Success
    } else {
        Exit::Failure
    })
}

fn is_healthy(status: &v1::GetEtcdStatusResponse) -> bool {
    status.members.iter().all(|member| member.error.is_empty())
}

async fn compact(context: &Context, args: &EtcdCompact) -> Result<Exit, Error> {
    let revision = args.revision.unwrap_or(0);
    let answer = context.connection.compact_etcd(revision).await?;
    let text = if answer.already_compacted {
        format!(
            "The history before revision {} had been dropped already.",
            answer.revision
        )
    } else {
        format!(
            "The history before revision {} is dropped.",
            answer.revision
        )
    };
    context.printer.out(&text)?;
    Ok(Exit::Success)
}

async fn defrag(context: &Context, args: &EtcdDefrag) -> Result<Exit, Error> {
    let status = context.connection.etcd_status().await?;
    let mut members: Vec<_> = status.members.iter().collect();
    if let Some(endpoint) = &args.member {
        members.retain(|member| member.endpoint == *endpoint);
        if members.is_empty() {
            return Err(Error::text(format!(
                "Error defragmenting etcd: {endpoint} is not a member.\n\
                 'kafila operator etcd status' shows the members."
            )));
        }
    }
    members.sort_by_key(|member| (member.is_leader, &member.endpoint));
    for member in members {
        let endpoint = &member.endpoint;
        wait_until_healthy(context, endpoint).await?;
        let done = context.connection.defragment_etcd(endpoint).await?;
        context
            .printer
            .out(&render::etcd::defragmented(endpoint, &done))?;
    }
    Ok(Exit::Success)
}

/// Waits until every member answers: another one that is away would cost the quorum.
async fn wait_until_healthy(context: &Context, next: &str) -> Result<(), Error> {
    let deadline = Instant::now() + HEALTH_TIMEOUT;
    loop {
        let status = context.connection.etcd_status().await;
        match status {
            Ok(status) if is_healthy(&status) => return Ok(()),
            Err(error) if !error.is_transient() => return Err(error),
            _ if Instant::now() < deadline => sleep(HEALTH_INTERVAL).await,
            _ => {
                return Err(Error::text(format!(
                    "Error defragmenting etcd: a member does not answer, so {next} is not begun.\n\
                     'kafila operator etcd status' shows which; try again when it is back."
                )));
            }
        }
    }
}

async fn disarm(context: &Context) -> Result<Exit, Error> {
    let members = context.connection.disarm_etcd().await?;
    let text = match members {
        0 => "No NOSPACE alarm is raised.".to_owned(),
        1 => "The alarm NOSPACE of 1 member is disarmed.".to_owned(),
        members => format!("The alarm NOSPACE of {members} members is disarmed."),
    };
    context.printer.out(&text)?;
    Ok(Exit::Success)
}
