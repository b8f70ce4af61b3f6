//! `kafila alloc stop`

use crate::args::alloc::Stop;
use crate::commands::job::watch;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::resolve;

pub(crate) async fn run(context: &Context, args: &Stop) -> Result<Exit, Error> {
    let style = context.style_err(args.verbose);
    let alloc = resolve::allocation(&context.connection, &args.id, &style).await?;
    let connection = &context.connection;
    let answer = connection
        .stop_allocation(&alloc.id, args.no_shutdown_delay)
        .await?;
    if args.detach {
        return context.finish(&format!("Evaluation ID: {}", answer.eval_id));
    }
    let job = (alloc.namespace.as_str(), alloc.job_id.as_str());
    watch::job(context, job, answer.eval_id, args.verbose).await
}
