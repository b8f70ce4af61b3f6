//! `kafila alloc stats`

use crate::args::alloc::stats::Stats;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::json::pretty;
use crate::{json, render, resolve};

pub(crate) async fn run(context: &Context, args: &Stats) -> Result<Exit, Error> {
    let style = context.style_err(args.verbose);
    let alloc = resolve::allocation(&context.connection, &args.id, &style).await?;
    let task = args.task.as_deref().unwrap_or_default();
    let stats = context.connection.allocation_stats(&alloc.id, task).await?;
    context.finish(&if args.json {
        pretty(&json::usage::AllocUsage::from(&stats))
    } else {
        render::usage::tasks(&stats)
    })
}
