//! `kafila node stats` and `kafila node refresh`

use crate::args::node::control::{Refresh, Stats};
use crate::commands::local_node::chosen;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::json::pretty;
use crate::{json, render};

pub(crate) async fn stats(context: &Context, args: &Stats) -> Result<Exit, Error> {
    let node = chosen(context, args.id.as_deref()).await?;
    let usage = context.connection.node_stats(&node.id).await?;
    context.finish(&if args.json {
        pretty(&json::usage::HostUsage::from(&usage))
    } else {
        render::usage::host(&usage, &context.style(args.verbose))
    })
}

pub(crate) async fn refresh(context: &Context, args: &Refresh) -> Result<Exit, Error> {
    let node = chosen(context, args.id.as_deref()).await?;
    let changed = context.connection.refresh_node(&node.id).await?;
    let id = context.style(false).id(&node.id);
    context.finish(&if changed.is_empty() {
        format!("Node {id} ({}) has not changed", node.name)
    } else {
        format!("Node {id} ({}) has new {}", node.name, changed.join(", "))
    })
}
