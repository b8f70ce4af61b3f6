//! Prints all nodes, then each change: `cargo run -p kafila-client --example watch_nodes`

use std::pin::pin;

use futures::TryStreamExt as _;
use kafila_client::{Client, v1};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::from_env()?;
    let request = v1::ListNodesRequest::default();
    let mut nodes = pin!(client.nodes().list(request.clone()).items());
    while let Some(node) = nodes.try_next().await? {
        println!("{} {} {}", node.id, node.name, node.status);
    }
    let mut changes = pin!(client.nodes().list(request).watch());
    while let Some(answer) = changes.try_next().await? {
        let ready = answer.nodes.iter().filter(|node| node.status == "ready");
        println!(
            "{} of {} nodes are ready",
            ready.count(),
            answer.nodes.len()
        );
    }
    Ok(())
}
