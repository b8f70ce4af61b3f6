//! `kafila job status`

use proto::v1;

use super::inspect::to_json;
use crate::args::job::Status;
use crate::commands::page;
use crate::connection::Blocking;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::json;
use crate::output::json::pretty;
use crate::render;
use crate::resolve;

pub(crate) async fn run(context: &Context, args: &Status) -> Result<Exit, Error> {
    match &args.id {
        Some(prefix) => {
            let style = context.style_err(args.verbose);
            let stub = resolve::job(&context.connection, prefix, &style).await?;
            show(context, args, &stub).await
        }
        None => list(context, args).await,
    }
}

async fn list(context: &Context, args: &Status) -> Result<Exit, Error> {
    let connection = &context.connection;
    let namespace = connection.namespace();
    let options = page::options(context, namespace, &args.page);
    let jobs = connection.job_page(options).await?;
    if jobs.0.is_empty() {
        context.note_unknown_namespace().await;
    }
    page::show::<_, json::job::JobStub<'_>>(context, &jobs, args.json, |jobs| {
        if jobs.is_empty() {
            "No running jobs".to_owned()
        } else {
            let style = context.style(args.verbose);
            render::job::table(jobs, namespace == "*", &style).render()
        }
    })
}

/// Shows one job.
pub(crate) async fn show(
    context: &Context,
    args: &Status,
    stub: &v1::JobStub,
) -> Result<Exit, Error> {
    let connection = &context.connection;
    let (namespace, job_id) = (stub.namespace.as_str(), stub.id.as_str());
    let found = connection.job(namespace, job_id, None).await?;
    let (job, summary) = (found.job, found.summary);
    let style = context.style(args.verbose);
    let text = if args.json {
        pretty(&to_json(job)?)
    } else if args.short {
        render::job::fields(&job, found.next_launch_ns, &style).render()
    } else if stub.periodic || stub.parameterized {
        let infix = if stub.parameterized {
            "dispatch"
        } else {
            "periodic"
        };
        let prefix = format!("{job_id}/{infix}-");
        let mut children = connection.jobs(namespace, &prefix, 0).await?;
        children.retain(|child| child.parent_id == job_id);
        let mut text = render::job::fields(&job, found.next_launch_ns, &style).render();
        text.push_str(&render::children::parent(&job, &summary, &children, &style));
        text
    } else {
        let (allocs, evals, (deployments, _)) = futures::try_join!(
            connection.job_allocations(namespace, job_id, args.all_allocs),
            connection.job_evaluations(namespace, job_id),
            connection.job_deployments(namespace, job_id, Blocking::default()),
        )?;
        let of_this_job =
            |deployment: &&v1::Deployment| deployment.job_create_index == job.create_index();
        let latest = deployments
            .iter()
            .filter(of_this_job)
            .max_by_key(|it| it.create_index);
        let status = render::job::Status {
            job: &job,
            summary: &summary,
            evals: &evals,
            latest_deployment: latest,
            allocs: &allocs,
            show_evals: args.evals || args.verbose,
        };
        status.render(&style)
    };
    context.printer.out(&text)?;
    Ok(Exit::Success)
}
