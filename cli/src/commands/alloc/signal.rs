//! `kafila alloc signal`

use proto::v1;

use crate::args::alloc::signal::Signal;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::render::task::named;
use crate::resolve;

pub(crate) async fn run(context: &Context, args: &Signal) -> Result<Exit, Error> {
    let style = context.style_err(args.verbose);
    let alloc = resolve::allocation(&context.connection, &args.id, &style).await?;
    let task = args.task.as_ref().or(args.task_flag.as_ref());
    let request = v1::SignalAllocationRequest {
        alloc_id: alloc.id.clone(),
        task: task.cloned().unwrap_or_default(),
        signal: args.signal.clone(),
    };
    let sent = context.connection.signal(request).await?;
    let id = context.style(args.verbose).id(&alloc.id);
    context.finish(&format!(
        "Sent {} to {} of allocation {id}",
        sent.signal,
        named(&sent.tasks)
    ))
}
