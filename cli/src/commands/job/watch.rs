//! Watches what a command has set off, until it has ended or the user has seen enough.

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::monitor::{Follow, Goal, Options, Screen, Subject};

/// What to watch, and how.
#[derive(Clone, Debug)]
pub(crate) struct Watch<'a> {
    pub(crate) subject: Subject,
    pub(crate) goal: Goal,
    pub(crate) namespace: &'a str,
    pub(crate) verbose: bool,
    /// What each line begins with when other watches print at the same time.
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

/// Watches until everything has ended or the user presses Ctrl-C, and then says that `goes_on`.
///
/// # Errors
/// Standard output is closed or full.
pub(crate) async fn until_ended(
    context: &Context,
    watch: Watch<'_>,
    goes_on: &str,
) -> Result<Exit, Error> {
    interruptible(context, follow(context, watch), goes_on).await
}

/// Runs `watching` until the user presses Ctrl-C, and then says that `goes_on`.
///
/// # Errors
/// Those of `watching`.
pub(crate) async fn interruptible(
    context: &Context,
    watching: impl Future<Output = Result<Exit, Error>>,
    goes_on: &str,
) -> Result<Exit, Error> {
    tokio::select! {
        ended = watching => ended,
        () = interrupted() => {
            // Dropping `watching` left the cursor below what it drew.
            context.printer.err(&format!("\n==> Detached. {goes_on}."));
            Ok(Exit::Interrupted)
        }
    }
}

/// Returns when the user presses Ctrl-C.
async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        // Signals cannot be watched: the system's own way of interrupting stays.
        std::future::pending::<()>().await;
    }
}
