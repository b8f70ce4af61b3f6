//! `kafila node drain`

use std::collections::HashMap;

use proto::v1;

use super::job::stop::{Answer, asked};
use super::job::watch;
use crate::args::drain::Drain;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::monitor::{DrainFollow, Screen};
use crate::resolve;

/// Where Linux tells the machine's name, as the client-node reads it.
const HOSTNAME: &str = "/proc/sys/kernel/hostname";

pub(super) async fn run(context: &Context, args: &Drain) -> Result<Exit, Error> {
    let meta = meta(args)?;
    let node = find(context, args).await?;
    if args.monitor {
        return monitor(context, args, &node).await;
    }
    let is_abbreviated = args.id.as_ref().is_some_and(|id| *id != node.id);
    if is_abbreviated && !args.yes {
        let (doing, id) = (if args.enable { "enable" } else { "disable" }, &node.id);
        let question = format!(
            "Are you sure you want to {doing} drain mode for node {id:?} ({})? [y/N] ",
            node.name
        );
        match asked(context, &question)? {
            Answer::Yes => {}
            Answer::No => {
                context.printer.out("Canceling drain toggle")?;
                return Ok(Exit::Success);
            }
            Answer::None => {
                return Err(Error::text(format!(
                    "Error updating drain specification: nobody is there to say whether {id:?} is \
                     meant.\nName the whole id, or add -yes."
                )));
            }
            Answer::Other => {
                let problem = "For confirmation, an exact 'y' is required.";
                context.printer.err(problem);
                return Ok(Exit::Failure);
            }
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
    let said = format!("Node {:?} drain strategy {done}", node.id);
    context.printer.out(&said)?;
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
    let goes_on = format!("The drain goes on: see 'kafila node drain -monitor {id}'");
    watch::interruptible(context, follow.run(&node.id), &goes_on).await
}

async fn find(context: &Context, args: &Drain) -> Result<v1::Node, Error> {
    let style = context.style_err(args.verbose);
    if let Some(id) = &args.id {
        return resolve::node(&context.connection, id, &style).await;
    }
    let name = std::fs::read_to_string(HOSTNAME).unwrap_or_default();
    let nodes = context.connection.all_nodes().await?;
    this_machines(name.trim(), nodes)
}

/// Returns the one node that runs on the machine called `hostname`.
fn this_machines(hostname: &str, mut nodes: Vec<v1::Node>) -> Result<v1::Node, Error> {
    nodes.retain(|node| {
        let theirs = node.attributes.get("unique.hostname");
        !hostname.is_empty() && theirs.is_some_and(|theirs| theirs == hostname)
    });
    match nodes.len() {
        1 => Ok(nodes.remove(0)),
        0 => Err(Error::text(format!(
            "Error querying the local node: no node has the host name {hostname:?}.\n\
             Name it: 'kafila node status' lists all."
        ))),
        _ => {
            let ids: Vec<&str> = nodes.iter().map(|node| node.id.as_str()).collect();
            Err(Error::text(format!(
                "Error querying the local node: {} nodes have the host name {hostname:?}: {}.\n\
                 Name one of them.",
                ids.len(),
                ids.join(", ")
            )))
        }
    }
}

/// Returns what is kept with the drain.
fn meta(args: &Drain) -> Result<HashMap<String, String>, Error> {
    let mut meta = HashMap::new();
    for word in &args.meta {
        let Some((key, value)) = word.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return Err(Error::text(format!(
                "Error reading -meta: {word:?} has no key: want KEY=VALUE, as in ticket=4711."
            )));
        };
        meta.insert(key.to_owned(), value.to_owned());
    }
    if let Some(message) = &args.message {
        meta.insert("message".to_owned(), message.clone());
    }
    Ok(meta)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: &str, hostname: &str) -> v1::Node {
        v1::Node {
            id: id.to_owned(),
            attributes: [("unique.hostname".to_owned(), hostname.to_owned())].into(),
            ..v1::Node::default()
        }
    }

    #[test]
    fn the_own_node_is_the_one_with_the_machines_name() {
        let nodes = || vec![node("a", "one"), node("b", "two"), node("c", "two")];
        assert_eq!(this_machines("one", nodes()).unwrap().id, "a");
        for (name, part) in [("two", "2 nodes"), ("", "no node"), ("three", "no node")] {
            let error = this_machines(name, nodes()).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
