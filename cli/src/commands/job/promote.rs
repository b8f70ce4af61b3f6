//! `kafila job promote`

use crate::args::job::versions::Promote;
use crate::commands::deployment::update::promote_groups;
use crate::connection::Blocking;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::resolve;

/// Promotes the job's latest deployment.
pub(crate) async fn run(context: &Context, args: &Promote) -> Result<Exit, Error> {
    let connection = &context.connection;
    let style = context.style_err(args.verbose);
    let stub = resolve::job(connection, &args.id, &style).await?;
    let deployments = connection.job_deployments(&stub.namespace, &stub.id, Blocking::default());
    let (deployments, _) = deployments.await?;
    let of_this_job = deployments
        .iter()
        .filter(|deployment| deployment.job_create_index == stub.create_index);
    let Some(latest) = of_this_job.max_by_key(|deployment| deployment.create_index) else {
        return Err(Error::text(format!(
            "Job {:?} has no deployment to promote",
            stub.id
        )));
    };
    promote_groups(context, latest, &args.groups, args.detach, args.verbose).await
}
