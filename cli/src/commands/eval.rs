//! `kafila eval …`

use proto::v1;

use super::page::next_page;
use crate::args::eval::{Delete, Explain, List, Status};
use crate::commands::job::watch::{self, Watch};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::json;
use crate::monitor::{Goal, Subject};
use crate::output::json::pretty;
use crate::render;
use crate::resolve;

/// How many characters an id has.
const FULL_ID: usize = 36;

pub(super) async fn list(context: &Context, args: &List) -> Result<Exit, Error> {
    let connection = &context.connection;
    let options = v1::QueryOptions {
        per_page: args.per_page.unwrap_or_default(),
        next_token: args.page_token.clone().unwrap_or_default(),
        reverse: true,
        ..connection.options(connection.namespace())
    };
    let status = args.status.as_deref().unwrap_or_default();
    let job_id = args.job.as_deref().unwrap_or_default();
    let (mut evals, next_token) = connection.evaluations(options, status, job_id).await?;
    // A gateway of an earlier version has them oldest first, and what is on another page cannot be
    // known.
    if args.per_page.is_none() && args.page_token.is_none() {
        evals.sort_by_key(|eval| std::cmp::Reverse(eval.create_index));
    }
    let text = if args.json {
        let evals: Vec<json::eval::Evaluation<'_>> = evals.iter().map(Into::into).collect();
        pretty(&evals)
    } else if evals.is_empty() {
        "No evals found".to_owned()
    } else {
        render::eval::table(&evals, &context.style(args.verbose)).render()
    };
    context.printer.out(&text)?;
    if !next_token.is_empty() {
        context.printer.err(&next_page(&context.words, &next_token));
    }
    Ok(Exit::Success)
}

pub(super) async fn delete(context: &Context, args: &Delete) -> Result<Exit, Error> {
    let style = context.style_err(false);
    let mut ids = Vec::new();
    for id in &args.ids {
        // Whole ids, of which there may be hundreds, are left to the gateway.
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
    let said = format!("Successfully deleted {count} evaluation{plural}");
    context.printer.out(&said)?;
    Ok(Exit::Success)
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
    let goes_on = format!("The evaluation \"{id}\" of job {job_id:?} goes on");
    watch::until_ended(context, watch, &goes_on).await
}

/// Shows one evaluation.
pub(super) async fn show(
    context: &Context,
    eval: &v1::Evaluation,
    verbose: bool,
    json: bool,
) -> Result<Exit, Error> {
    if json {
        context
            .printer
            .out(&pretty(&json::eval::Evaluation::from(eval)))?;
        return Ok(Exit::Success);
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
    context
        .printer
        .out(&status.render(&context.style(verbose)))?;
    Ok(Exit::Success)
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
    let text = if args.json {
        pretty(&json::explain::Explanation::new(&eval, &explanation))
    } else {
        render::explain::render(&eval, &explanation, &context.style(args.verbose))
    };
    context.printer.out(&text)?;
    Ok(Exit::Success)
}
