//! `kafila alloc restart`

use proto::v1;

use crate::args::alloc::Restart;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::render::task::named;
use crate::resolve;

pub(crate) async fn run(context: &Context, args: &Restart) -> Result<Exit, Error> {
    let style = context.style_err(args.verbose);
    let alloc = resolve::allocation(&context.connection, &args.id, &style).await?;
    let task = args.task.as_ref().or(args.task_flag.as_ref());
    let request = v1::RestartAllocationRequest {
        alloc_id: alloc.id.clone(),
        task: task.cloned().unwrap_or_default(),
        all_tasks: args.all_tasks,
    };
    let answer = context.connection.restart_allocation(request).await?;
    let id = context.style(args.verbose).id(&alloc.id);
    context.finish(&format!(
        "Restarted {} of allocation {id}",
        named(&answer.tasks)
    ))
}
