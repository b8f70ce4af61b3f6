//! `kafila node …`

pub(crate) mod control;
pub(crate) mod drain;
pub(crate) mod introduction;
pub(crate) mod meta;

use std::collections::HashMap;

use proto::v1;

use crate::args::node::{Command, Eligibility, Status};
use crate::commands::{local_node, node_pool, page};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::json;
use crate::output::json::pretty;
use crate::render;
use crate::resolve;

/// Runs a command of nodes.
pub(super) async fn run_command(context: &Context, command: Command) -> Result<Exit, Error> {
    match command {
        Command::Status(args) => status(context, &args).await,
        Command::Eligibility(args) => eligibility(context, &args).await,
        Command::Drain(args) => drain::run(context, &args).await,
        Command::Introduction(command) => introduction::run(context, &command).await,
        Command::Meta(command) => meta::run(context, &command).await,
        Command::Stats(args) => control::stats(context, &args).await,
        Command::Refresh(args) => control::refresh(context, &args).await,
        Command::Pool(command) => node_pool::run(context, &command).await,
    }
}

pub(super) async fn status(context: &Context, args: &Status) -> Result<Exit, Error> {
    let shown = Shown {
        verbose: args.verbose,
        short: args.short,
        json: args.json,
        stats: args.stats,
    };
    if args.this {
        let node = local_node::find(context).await?;
        return show(context, &node, shown).await;
    }
    match &args.id {
        Some(prefix) => {
            let style = context.style_err(args.verbose);
            let node = resolve::node(&context.connection, prefix, &style).await?;
            show(context, &node, shown).await
        }
        None => list(context, args).await,
    }
}

async fn list(context: &Context, args: &Status) -> Result<Exit, Error> {
    let options = page::options(context, "", &args.page);
    let nodes = context.connection.nodes(options).await?;
    let counts_allocs = args.allocs && !args.json && !args.quiet && !nodes.0.is_empty();
    let running = if counts_allocs {
        Some(running(context).await?)
    } else {
        None
    };
    let style = context.style(args.verbose);
    page::show::<_, json::node::Node<'_>>(context, &nodes, args.json, |nodes| {
        if nodes.is_empty() {
            return "No nodes registered".to_owned();
        }
        if args.quiet {
            return render::node::ids(nodes, &style);
        }
        let columns = render::node::Columns {
            os: args.os,
            running: running.as_ref(),
        };
        render::node::table(nodes, columns, &style).render()
    })
}

/// Counts the running allocations of each node with one request.
async fn running(context: &Context) -> Result<HashMap<String, usize>, Error> {
    let mut counts = HashMap::new();
    for alloc in context.connection.all_allocations().await? {
        if alloc.client_status == "running" {
            *counts.entry(alloc.node_id).or_default() += 1;
        }
    }
    Ok(counts)
}

/// The form in which a node is shown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shown {
    pub(super) verbose: bool,
    pub(super) short: bool,
    pub(super) json: bool,
    pub(super) stats: bool,
}

/// Shows one node.
pub(super) async fn show(context: &Context, node: &v1::Node, shown: Shown) -> Result<Exit, Error> {
    if shown.json {
        return context.finish(&pretty(&json::node::Node::from(node)));
    }
    let allocs = context.connection.node_allocations(&node.id).await?;
    let status = render::node::Status {
        node,
        allocs: &allocs,
        short: shown.short,
    };
    let style = context.style(shown.verbose);
    let mut text = status.render(&style);
    if shown.stats {
        // The known facts are shown, whether or not the node answers.
        let body = match context.connection.node_stats(&node.id).await {
            Ok(usage) => render::usage::host(&usage, &style),
            Err(error) => format!("{error}\n"),
        };
        text.push_str(&style.section("Host Resource Utilization", &body));
    }
    context.finish(&text)
}

pub(super) async fn eligibility(context: &Context, args: &Eligibility) -> Result<Exit, Error> {
    let connection = &context.connection;
    let node = resolve::node(connection, &args.id, &context.style_err(false)).await?;
    let wanted = if args.enable {
        "eligible"
    } else {
        "ineligible"
    };
    connection.set_eligibility(&node.id, wanted).await?;
    context.finish(&format!(
        "Node {:?} scheduling eligibility set: {wanted} for scheduling",
        node.id
    ))
}
