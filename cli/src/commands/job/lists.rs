//! `kafila job allocs` and `kafila job deployments`

use crate::args::job::operations::{Allocs, Deployments};
use crate::commands::{deployment, page};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::{json, render, resolve};

pub(crate) async fn allocs(context: &Context, args: &Allocs) -> Result<Exit, Error> {
    let style = context.style_err(args.verbose);
    let connection = &context.connection;
    let job = resolve::job(connection, &args.id, &style).await?;
    let options = page::options(context, &job.namespace, &args.page);
    let allocs = connection
        .job_allocations_page(options, &job.id, args.all)
        .await?;
    page::show::<_, json::alloc::Allocation<'_>>(context, &allocs, args.json, |allocs| {
        render::alloc::section(allocs, &context.style(args.verbose))
    })
}

pub(crate) async fn deployments(context: &Context, args: &Deployments) -> Result<Exit, Error> {
    let style = context.style_err(args.verbose);
    let connection = &context.connection;
    let stub = resolve::job(connection, &args.id, &style).await?;
    let mut deployments = connection
        .deployments_of_id(&stub.namespace, &stub.id, args.all)
        .await?;
    if !args.all {
        deployments.retain(|deployment| deployment.job_create_index == stub.create_index);
    }
    deployments.sort_by_key(|deployment| std::cmp::Reverse(deployment.create_index));
    let latest = deployments.first().filter(|_| args.latest);
    if let Some(latest) = latest {
        return deployment::show(context, latest, args.verbose, args.json).await;
    }
    let deployments = (deployments, String::new());
    deployment::show_list(context, &deployments, args.verbose, args.json)
}
