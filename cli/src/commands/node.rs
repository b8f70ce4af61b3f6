//! `kafila node …`

use std::collections::HashMap;

use proto::v1;

use crate::args::node::{Eligibility, Status};
use crate::commands::page::next_page;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::json;
use crate::output::json::pretty;
use crate::render;
use crate::resolve;

pub(super) async fn status(context: &Context, args: &Status) -> Result<Exit, Error> {
    match &args.id {
        Some(prefix) => {
            let style = context.style_err(args.verbose);
            let node = resolve::node(&context.connection, prefix, &style).await?;
            show(context, &node, args.verbose, args.short, args.json).await
        }
        None => list(context, args).await,
    }
}

async fn list(context: &Context, args: &Status) -> Result<Exit, Error> {
    let options = v1::QueryOptions {
        per_page: args.per_page.unwrap_or_default(),
        next_token: args.page_token.clone().unwrap_or_default(),
        ..context.connection.options("")
    };
    let (nodes, next_token) = context.connection.nodes(options).await?;
    let text = if args.json {
        let nodes: Vec<json::node::Node<'_>> = nodes.iter().map(Into::into).collect();
        pretty(&nodes)
    } else if nodes.is_empty() {
        "No nodes registered".to_owned()
    } else if args.quiet {
        let style = context.style(args.verbose);
        let ids: Vec<String> = nodes.iter().map(|node| style.id(&node.id)).collect();
        ids.join("\n")
    } else {
        let running = if args.allocs {
            Some(running(context).await?)
        } else {
            None
        };
        let columns = render::node::Columns {
            os: args.os,
            running: running.as_ref(),
        };
        render::node::table(&nodes, columns, &context.style(args.verbose)).render()
    };
    context.printer.out(&text)?;
    if !next_token.is_empty() {
        context.printer.err(&next_page(&context.words, &next_token));
    }
    Ok(Exit::Success)
}

/// Counts the running allocations of each node, with one question for all nodes.
async fn running(context: &Context) -> Result<HashMap<String, usize>, Error> {
    let mut counts = HashMap::new();
    for alloc in context.connection.all_allocations().await? {
        if alloc.client_status == "running" {
            *counts.entry(alloc.node_id).or_default() += 1;
        }
    }
    Ok(counts)
}

/// Shows one node.
pub(super) async fn show(
    context: &Context,
    node: &v1::Node,
    verbose: bool,
    short: bool,
    json: bool,
) -> Result<Exit, Error> {
    if json {
        context
            .printer
            .out(&pretty(&json::node::Node::from(node)))?;
        return Ok(Exit::Success);
    }
    let allocs = context.connection.node_allocations(&node.id).await?;
    let status = render::node::Status {
        node,
        allocs: &allocs,
        short,
    };
    context
        .printer
        .out(&status.render(&context.style(verbose)))?;
    Ok(Exit::Success)
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
    let said = format!(
        "Node {:?} scheduling eligibility set: {wanted} for scheduling",
        node.id
    );
    context.printer.out(&said)?;
    Ok(Exit::Success)
}
