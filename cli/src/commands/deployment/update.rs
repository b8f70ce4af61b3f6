//! `kafila deployment promote`, `pause`, `resume`, `fail` and `unblock`.

use proto::v1;

use crate::args::deployment::update::{Fail, Pause, Promote, Resume, Unblock};
use crate::commands::job::watch::{self, Watch};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::monitor::{Goal, Subject};
use crate::resolve;

/// The effects of a change, and the parameters of their watch.
pub(crate) struct Follow<'a> {
    pub(crate) deployment: &'a v1::Deployment,
    pub(crate) eval_id: String,
    pub(crate) goal: Goal,
    pub(crate) detach: bool,
    pub(crate) verbose: bool,
}

pub(crate) async fn promote(context: &Context, args: &Promote) -> Result<Exit, Error> {
    let deployment = find(context, &args.id, args.verbose).await?;
    promote_groups(
        context,
        &deployment,
        &args.groups,
        args.detach,
        args.verbose,
    )
    .await
}

/// Promotes groups of a deployment; an empty `groups` promotes all.
pub(crate) async fn promote_groups(
    context: &Context,
    deployment: &v1::Deployment,
    groups: &[String],
    detach: bool,
    verbose: bool,
) -> Result<Exit, Error> {
    let answer = context.connection.promote(&deployment.id, groups).await?;
    say(context, deployment, verbose, "promoted")?;
    let follow = Follow {
        deployment,
        eval_id: answer.eval_id,
        goal: Goal::Start,
        detach,
        verbose,
    };
    follow.run(context).await
}

pub(crate) async fn pause(context: &Context, args: &Pause) -> Result<Exit, Error> {
    let deployment = find(context, &args.id, args.verbose).await?;
    context.connection.pause(&deployment.id, true).await?;
    say(context, &deployment, args.verbose, "paused")?;
    Ok(Exit::Success)
}

pub(crate) async fn resume(context: &Context, args: &Resume) -> Result<Exit, Error> {
    let deployment = find(context, &args.id, args.verbose).await?;
    let answer = context.connection.pause(&deployment.id, false).await?;
    say(context, &deployment, args.verbose, "resumed")?;
    let follow = Follow {
        deployment: &deployment,
        eval_id: answer.eval_id,
        goal: Goal::Start,
        detach: args.detach,
        verbose: args.verbose,
    };
    follow.run(context).await
}

pub(crate) async fn fail(context: &Context, args: &Fail) -> Result<Exit, Error> {
    let deployment = find(context, &args.id, args.verbose).await?;
    let answer = context.connection.fail(&deployment.id).await?;
    let (how, goal) = match answer.reverted_job_version {
        Some(version) => (
            format!("failed. Auto-reverted to job version {version}."),
            Goal::Revert,
        ),
        // The failed deployment is the requested result.
        None => ("failed".to_owned(), Goal::Stop),
    };
    say(context, &deployment, args.verbose, &how)?;
    let follow = Follow {
        deployment: &deployment,
        eval_id: answer.eval_id,
        goal,
        detach: args.detach,
        verbose: args.verbose,
    };
    follow.run(context).await
}

pub(crate) async fn unblock(context: &Context, args: &Unblock) -> Result<Exit, Error> {
    let deployment = find(context, &args.id, args.verbose).await?;
    let answer = context.connection.unblock(&deployment.id).await?;
    say(context, &deployment, args.verbose, "unblocked")?;
    let follow = Follow {
        deployment: &deployment,
        eval_id: answer.eval_id,
        goal: Goal::Start,
        detach: args.detach,
        verbose: args.verbose,
    };
    follow.run(context).await
}

async fn find(context: &Context, id: &str, verbose: bool) -> Result<v1::Deployment, Error> {
    resolve::deployment(&context.connection, id, &context.style_err(verbose)).await
}

fn say(
    context: &Context,
    deployment: &v1::Deployment,
    verbose: bool,
    how: &str,
) -> Result<(), Error> {
    let id = context.style(verbose).id(&deployment.id);
    // IDs are looked up in all namespaces.
    let place = match deployment.namespace.as_str() {
        name if name == context.connection.namespace() => String::new(),
        name => format!(" in namespace {name:?}"),
    };
    context
        .printer
        .out(&format!("Deployment \"{id}\"{place} {how}"))
}

impl Follow<'_> {
    /// Watches the effects until they end, unless the user wants to detach.
    pub(crate) async fn run(self, context: &Context) -> Result<Exit, Error> {
        let deployment = self.deployment;
        if self.detach {
            if !self.eval_id.is_empty() {
                let line = format!("Evaluation ID: {}", self.eval_id);
                context.printer.out(&line)?;
            }
            return Ok(Exit::Success);
        }
        let subject = if self.eval_id.is_empty() {
            // The deployment was already in this state.
            Subject::Deployment(deployment.id.clone())
        } else {
            Subject::Evaluation(self.eval_id)
        };
        let watch = Watch {
            subject,
            goal: self.goal,
            namespace: &deployment.namespace,
            verbose: self.verbose,
            label: None,
        };
        let id = context.style_err(self.verbose).id(&deployment.id);
        let detached = format!(
            "The deployment \"{id}\" of job {:?} continues",
            deployment.job_id
        );
        watch::until_ended(context, watch, &detached).await
    }
}
