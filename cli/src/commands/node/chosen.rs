//! The node that a command is about.

use proto::v1;

use crate::commands::local_node;
use crate::context::Context;
use crate::error::Error;
use crate::resolve;

/// Returns the node with this start of its id; without one, the node of this machine.
pub(super) async fn chosen(context: &Context, prefix: Option<&str>) -> Result<v1::Node, Error> {
    match prefix {
        Some(prefix) => resolve::node(&context.connection, prefix, &context.style_err(false)).await,
        None => local_node::find(context).await,
    }
}
