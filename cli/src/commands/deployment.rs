//! `kafila deployment …`

pub(crate) mod update;

use proto::v1;

use crate::args::deployment::{Command, List, Status};
use crate::args::page::Page;
use crate::commands::job::watch::{self, Watch};
use crate::commands::page;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::json;
use crate::monitor::{Goal, Subject, of_deployment};
use crate::output::json::pretty;
use crate::render;
use crate::resolve;

/// Runs a command of deployments.
pub(super) async fn run_command(context: &Context, command: Command) -> Result<Exit, Error> {
    match command {
        Command::List(args) => list(context, &args).await,
        Command::Status(args) => status(context, &args).await,
        Command::Promote(args) => update::promote(context, &args).await,
        Command::Pause(args) => update::pause(context, &args).await,
        Command::Resume(args) => update::resume(context, &args).await,
        Command::Fail(args) => update::fail(context, &args).await,
        Command::Unblock(args) => update::unblock(context, &args).await,
    }
}

pub(super) async fn list(context: &Context, args: &List) -> Result<Exit, Error> {
    list_page(context, &args.page, args.verbose, args.json).await
}

async fn list_page(
    context: &Context,
    page: &Page,
    verbose: bool,
    json: bool,
) -> Result<Exit, Error> {
    let connection = &context.connection;
    let newest_first = v1::QueryOptions {
        reverse: true,
        ..page::options(context, connection.namespace(), page)
    };
    let deployments = connection.deployments_page(newest_first).await?;
    show_list(context, &deployments, verbose, json)
}

pub(super) async fn status(context: &Context, args: &Status) -> Result<Exit, Error> {
    let Some(id) = &args.id else {
        return list_page(context, &Page::default(), args.verbose, args.json).await;
    };
    let style = context.style_err(args.verbose);
    let deployment = resolve::deployment(&context.connection, id, &style).await?;
    if !args.monitor {
        return show(context, &deployment, args.verbose, args.json).await;
    }
    let watch = Watch {
        subject: Subject::Deployment(deployment.id.clone()),
        goal: Goal::Start,
        namespace: &deployment.namespace,
        verbose: args.verbose,
        label: None,
    };
    let (id, job_id) = (style.id(&deployment.id), &deployment.job_id);
    let detached = format!("The deployment \"{id}\" of job {job_id:?} continues");
    watch::until_ended(context, watch, &detached).await
}

/// Prints a page of deployments, with the token of the next one.
pub(super) fn show_list(
    context: &Context,
    deployments: &(Vec<v1::Deployment>, String),
    verbose: bool,
    json: bool,
) -> Result<Exit, Error> {
    if deployments.0.is_empty() && !json {
        context.printer.err(
            "Only service and system jobs have deployments, one for each version whose groups have an \
             update block with max_parallel above 0.",
        );
    }
    page::show::<_, json::deployment::Deployment<'_>>(context, deployments, json, |deployments| {
        if deployments.is_empty() {
            "No deployments found".to_owned()
        } else {
            render::deployment::table(deployments, &context.style(verbose)).render()
        }
    })
}

/// Shows one deployment.
pub(super) async fn show(
    context: &Context,
    deployment: &v1::Deployment,
    verbose: bool,
    json: bool,
) -> Result<Exit, Error> {
    if json {
        return context.finish(&pretty(&json::deployment::Deployment::from(deployment)));
    }
    let style = context.style(verbose);
    let mut text = render::deployment::body(deployment, &style);
    if verbose {
        let allocs = of_deployment(&context.connection, deployment).await?;
        let section = render::alloc::section(&allocs, &style);
        text.push_str(&style.section("Allocations", &section));
    }
    context.finish(&text)
}
