//! `kafila eval …`

use proto::v1;

use super::page;
use crate::args::eval::{Command, Delete, Explain, List, Status};
use crate::commands::job::watch::{self, Watch};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::json;
use crate::monitor::{Goal, Subject};
use crate::output::json::pretty;
use crate::render;
use crate::resolve;

/// Length of a full ID, with its hyphens.
const FULL_ID: usize = 36;

/// Runs a command of evaluations.
pub(super) async fn run_command(context: &Context, command: Command) -> Result<Exit, Error> {
    match command {
        Command::List(args) => list(context, &args).await,
        Command::Status(args) => status(context, &args).await,
        Command::Explain(args) => explain(context, &args).await,
        Command::Delete(args) => delete(context, &args).await,
    }
}

pub(super) async fn list(context: &Context, args: &List) -> Result<Exit, Error> {
    let connection = &context.connection;
    let options = v1::QueryOptions {
        reverse: true,
        ..page::options(context, connection.namespace(), &args.page)
    };
    let status = args.status.as_deref().unwrap_or_default();
    let job_id = args.job.as_deref().unwrap_or_default();
    let mut evals = connection.evaluations(options, status, job_id).await?;
    // Gateways of earlier versions list the oldest first. A single page cannot be sorted.
    if args.page.per_page.is_none() && args.page.page_token.is_none() {
        evals
            .0
            .sort_by_key(|eval| std::cmp::Reverse(eval.create_index));
    }
    if evals.0.is_empty() {
        match &args.job {
            // A purged job may have left evaluations; it is unknown only without any.
            Some(job_id) => context.note_unknown_job(job_id).await,
            None => context.note_unknown_namespace().await,
        }
    }
    page::show::<_, json::eval::Evaluation<'_>>(context, &evals, args.json, |evals| {
        if evals.is_empty() {
            "No evals found".to_owned()
        } else {
            render::eval::table(evals, &context.style(args.verbose)).render()
        }
    })
}

pub(super) async fn delete(context: &Context, args: &Delete) -> Result<Exit, Error> {
    let style = context.style_err(false);
    let mut ids = Vec::new();
    for id in &args.ids {
        // Full IDs, possibly hundreds, need no lookup.
        ids.push(if id.len() == FULL_ID {
            id.clone()
        } else {
            resolve::evaluation(&context.connection, id, &style)
                .await?
                .id
        });
    }
    let count = context.connection.delete_evaluations(ids).await?;
    let plural = if count == 1 { "" } else { "s" };
    context.finish(&format!("Successfully deleted {count} evaluation{plural}"))
}

pub(super) async fn status(context: &Context, args: &Status) -> Result<Exit, Error> {
    let style = context.style_err(args.verbose);
    let eval = resolve::evaluation(&context.connection, &args.id, &style).await?;
    if !args.monitor {
        return show(context, &eval, args.verbose, args.json).await;
    }
    let watch = Watch {
        subject: Subject::Evaluation(eval.id.clone()),
        goal: Goal::Start,
        namespace: &eval.namespace,
        verbose: args.verbose,
        label: None,
    };
    let (id, job_id) = (style.id(&eval.id), &eval.job_id);
    let detached = format!("The evaluation \"{id}\" of job {job_id:?} continues");
    watch::until_ended(context, watch, &detached).await
}

/// Shows one evaluation.
pub(super) async fn show(
    context: &Context,
    eval: &v1::Evaluation,
    verbose: bool,
    json: bool,
) -> Result<Exit, Error> {
    if json {
        return context.finish(&pretty(&json::eval::Evaluation::from(eval)));
    }
    let connection = &context.connection;
    let (of_job, allocs) = futures::try_join!(
        connection.job_evaluations(&eval.namespace, &eval.job_id),
        connection.evaluation_allocations(&eval.namespace, &eval.id),
    )?;
    let status = render::eval::Status {
        eval,
        of_job: &of_job,
        allocs: &allocs,
    };
    context.finish(&status.render(&context.style(verbose)))
}

pub(super) async fn explain(context: &Context, args: &Explain) -> Result<Exit, Error> {
    let connection = &context.connection;
    let style = context.style_err(args.verbose);
    let eval = resolve::evaluation(connection, &args.id, &style).await?;
    let node_id = match &args.node {
        Some(prefix) => resolve::node(connection, prefix, &style).await?.id,
        None => String::new(),
    };
    let (eval, explanation) = connection
        .explain_evaluation(&eval.namespace, &eval.id, &node_id)
        .await?;
    context.finish(&if args.json {
        pretty(&json::explain::Explanation::new(&eval, &explanation))
    } else {
        render::explain::render(&eval, &explanation, &context.style(args.verbose))
    })
}
