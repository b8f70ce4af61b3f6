//! `kafila node drain`

use std::collections::HashMap;

use proto::v1;

use crate::args::node::drain::Drain;
use crate::commands::confirm::{self, Answer};
use crate::commands::job::watch;
use crate::commands::{key_value, local_node};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::monitor::{DrainFollow, Screen};
use crate::resolve;

pub(crate) async fn run(context: &Context, args: &Drain) -> Result<Exit, Error> {
    let meta = meta(args)?;
    let node = find(context, args).await?;
    if args.monitor {
        return monitor(context, args, &node).await;
    }
    let is_abbreviated = args.id.as_ref().is_some_and(|id| *id != node.id);
    if is_abbreviated && !args.yes {
        let (doing, id) = (if args.enable { "enable" } else { "disable" }, &node.id);
        let question = format!(
            "Are you sure you want to {doing} drain mode for node {id:?} ({})?",
            node.name
        );
        let unanswered = format!("Error updating drain specification: {id:?} needs a confirmation");
        match confirm::ask(context, &question, &unanswered)? {
            Answer::Yes => {}
            Answer::No => return context.finish("Canceling drain toggle"),
            Answer::Unclear => return Ok(Exit::Failure),
        }
    }
    let drain_spec = args.enable.then(|| v1::DrainSpec {
        deadline_ns: args.deadline_ns(),
        ignore_system_jobs: args.ignore_system,
    });
    let request = v1::UpdateNodeDrainRequest {
        node_id: node.id.clone(),
        drain_spec,
        mark_eligible: args.disable && !args.keep_ineligible,
        meta,
    };
    context.connection.set_drain(request).await?;
    let done = if args.enable { "set" } else { "unset" };
    let line = format!("Node {:?} drain strategy {done}", node.id);
    context.printer.out(&line)?;
    if args.detach || args.disable {
        return Ok(Exit::Success);
    }
    monitor(context, args, &node).await
}

async fn monitor(context: &Context, args: &Drain, node: &v1::Node) -> Result<Exit, Error> {
    let follow = DrainFollow {
        connection: &context.connection,
        clock: &context.clock,
        style: context.style(args.verbose),
        screen: Screen::new(context.printer, None),
    };
    let id = context.style_err(args.verbose).id(&node.id);
    let detached = format!("The drain continues: see 'kafila node drain -monitor {id}'");
    watch::interruptible(context, follow.run(&node.id), &detached).await
}

async fn find(context: &Context, args: &Drain) -> Result<v1::Node, Error> {
    let style = context.style_err(args.verbose);
    if let Some(id) = &args.id {
        return resolve::node(&context.connection, id, &style).await;
    }
    local_node::find(context).await
}

/// Returns the metadata of the drain.
fn meta(args: &Drain) -> Result<HashMap<String, String>, Error> {
    let mut meta = key_value::parse(&args.meta)?;
    if let Some(message) = &args.message {
        meta.insert("message".to_owned(), message.clone());
    }
    Ok(meta)
}
