//! Prints the output of a task: `cargo run -p kafila-client --example logs -- ALLOCATION TASK`

use std::io::Write as _;
use std::pin::pin;

use futures::TryStreamExt as _;
use kafila_client::{Client, FollowLogs};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(alloc_id), Some(task)) = (words.next(), words.next()) else {
        return Err("usage: logs ALLOCATION TASK".into());
    };
    let client = Client::from_env()?;
    let what = FollowLogs {
        alloc_id,
        task,
        ..Default::default()
    };
    let mut logs = pin!(client.follow_logs(what));
    while let Some(chunk) = logs.try_next().await? {
        std::io::stdout().write_all(&chunk)?;
    }
    Ok(())
}
