//! Watches the effects of a command, until they end or the user presses Ctrl-C.

use proto::v1;

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::monitor::{Follow, Goal, Options, Screen, Subject};

/// A watched object, and the parameters of the watch.
#[derive(Clone, Debug)]
pub(crate) struct Watch<'a> {
    pub(crate) subject: Subject,
    pub(crate) goal: Goal,
    pub(crate) namespace: &'a str,
    pub(crate) verbose: bool,
    /// Prefix of each line, to distinguish concurrent watches.
    pub(crate) label: Option<&'a str>,
}

/// Watches until everything has ended.
///
/// # Errors
/// Standard output is closed or full.
pub(crate) async fn follow(context: &Context, watch: Watch<'_>) -> Result<Exit, Error> {
    let follow = Follow {
        connection: &context.connection,
        clock: &context.clock,
        style: context.style(watch.verbose),
        screen: Screen::new(context.printer, watch.label),
        options: Options {
            goal: watch.goal,
            gateway: context.connection.address().url.clone(),
            namespace: watch.namespace.to_owned(),
        },
    };
    follow.run(&watch.subject).await
}

/// Watches until everything has ended, or prints `detached` when the user presses Ctrl-C.
///
/// # Errors
/// Standard output is closed or full.
pub(crate) async fn until_ended(
    context: &Context,
    watch: Watch<'_>,
    detached: &str,
) -> Result<Exit, Error> {
    interruptible(context, follow(context, watch), detached).await
}

/// Watches the evaluation of a job, given by namespace and ID.
///
/// # Errors
/// Standard output is closed or full.
pub(crate) async fn job(
    context: &Context,
    (namespace, job_id): (&str, &str),
    eval_id: String,
    verbose: bool,
) -> Result<Exit, Error> {
    let watch = Watch {
        subject: Subject::Evaluation(eval_id),
        goal: Goal::Start,
        namespace,
        verbose,
        label: None,
    };
    let detached = format!("The job {job_id:?} continues: see 'kafila job status {job_id}'");
    until_ended(context, watch, &detached).await
}

/// Warns that a job is stopped, because its evaluation completes without placements.
pub(crate) fn warn_if_stopped(context: &Context, job: &v1::JobStub) {
    if job.stop {
        context.printer.err(&format!(
            "Warning: job {:?} is stopped. Start it with 'kafila job run FILE'",
            job.id
        ));
    }
}

/// Runs `watching`, or prints `detached` when the user presses Ctrl-C.
///
/// # Errors
/// Those of `watching`.
pub(crate) async fn interruptible(
    context: &Context,
    watching: impl Future<Output = Result<Exit, Error>>,
    detached: &str,
) -> Result<Exit, Error> {
    tokio::select! {
        ended = watching => ended,
        () = interrupted() => {
            // Dropping `watching` left the cursor below what it drew.
            context.printer.err(&format!("\n==> Detached. {detached}."));
            Ok(Exit::Interrupted)
        }
    }
}

/// Returns when the user presses Ctrl-C.
async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        // Without a signal handler, Ctrl-C ends the process.
        std::future::pending::<()>().await;
    }
}
