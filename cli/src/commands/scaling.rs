//! `kafila scaling …`

use super::page;
use crate::args::scaling::{Command, Info, List, Policy};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::json::scaling::ScalingPolicy;
use crate::output::json::pretty;
use crate::render;

pub(super) async fn run(context: &Context, command: &Command) -> Result<Exit, Error> {
    match command {
        Command::Policy(Policy::List(args)) => list(context, args).await,
        Command::Policy(Policy::Info(args)) => info(context, args).await,
    }
}

async fn list(context: &Context, args: &List) -> Result<Exit, Error> {
    let job_id = args.job.as_deref().unwrap_or_default();
    let of_type = args.of_type.as_deref().unwrap_or_default();
    let connection = &context.connection;
    let options = page::options(context, connection.namespace(), &args.page);
    let policies = connection
        .scaling_policies(options, job_id, of_type)
        .await?;
    page::show::<_, ScalingPolicy<'_>>(context, &policies, args.json, |policies| {
        if policies.is_empty() {
            "No policies found".to_owned()
        } else {
            render::scaling::table(policies, &context.style(args.verbose)).render()
        }
    })
}

async fn info(context: &Context, args: &Info) -> Result<Exit, Error> {
    let policy = context.connection.scaling_policy(&args.id).await?;
    context.finish(&if args.json {
        pretty(&ScalingPolicy::from(&policy))
    } else {
        render::scaling::info(&policy, &context.style(args.verbose))
    })
}
