//! The node of this machine, for commands without an ID.

use proto::v1;

use crate::context::Context;
use crate::error::Error;
use crate::resolve;

/// The host name of the machine; the client-node reads the same file.
const HOSTNAME: &str = "/proc/sys/kernel/hostname";

/// The status of a node without heartbeats.
const DOWN: &str = "down";

/// Returns the node of this machine.
///
/// # Errors
/// No node or several nodes have the host name of this machine, or no answer.
pub(super) async fn find(context: &Context) -> Result<v1::Node, Error> {
    let name = std::fs::read_to_string(HOSTNAME).unwrap_or_default();
    let nodes = context.connection.all_nodes().await?;
    choose(name.trim(), nodes)
}

/// Returns the node with this start of its id; without one, the node of this machine.
pub(super) async fn chosen(context: &Context, prefix: Option<&str>) -> Result<v1::Node, Error> {
    match prefix {
        Some(prefix) => resolve::node(&context.connection, prefix, &context.style_err(false)).await,
        None => find(context).await,
    }
}

/// Returns the only node with this host name, or the only one that is not down: a machine that was set up
/// anew leaves its earlier node behind.
fn choose(hostname: &str, mut nodes: Vec<v1::Node>) -> Result<v1::Node, Error> {
    nodes.retain(|node| {
        let name = node.attributes.get("unique.hostname");
        !hostname.is_empty() && name.is_some_and(|name| name == hostname)
    });
    if nodes.len() > 1 && nodes.iter().any(|node| node.status != DOWN) {
        nodes.retain(|node| node.status != DOWN);
    }
    match nodes.len() {
        1 => Ok(nodes.remove(0)),
        0 => Err(Error::text(format!(
            "Error querying the local node: no node has the host name {hostname:?}.\n\
             Pass its ID, which 'kafila node status' lists."
        ))),
        _ => {
            let ids: Vec<&str> = nodes.iter().map(|node| node.id.as_str()).collect();
            Err(Error::text(format!(
                "Error querying the local node: {} nodes have the host name {hostname:?}: {}.\n\
                 Pass the ID of one of them.",
                ids.len(),
                ids.join(", ")
            )))
        }
    }
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
    fn earlier_nodes_of_the_machine_are_down() {
        let down = |id: &str| v1::Node {
            status: DOWN.to_owned(),
            ..node(id, "one")
        };
        let chosen = choose("one", vec![down("a"), node("b", "one"), down("c")]);
        assert_eq!(chosen.unwrap().id, "b");
        assert_eq!(choose("one", vec![down("a")]).unwrap().id, "a");
        let error = choose("one", vec![down("a"), down("b")]).unwrap_err();
        assert!(error.to_string().contains("2 nodes"), "{error}");
    }

    #[test]
    fn the_local_node_has_the_host_name_of_the_machine() {
        let nodes = || vec![node("a", "one"), node("b", "two"), node("c", "two")];
        assert_eq!(choose("one", nodes()).unwrap().id, "a");
        for (name, part) in [("two", "2 nodes"), ("", "no node"), ("three", "no node")] {
            let error = choose(name, nodes()).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
