//! Prints every change of a job: `cargo run -p kafila-client --example follow_events -- web`

use std::pin::pin;

use futures::TryStreamExt as _;
use kafila_client::{Client, FollowEvents, v1};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let job_id = std::env::args().nth(1).ok_or("usage: follow_events JOB")?;
    let client = Client::from_env()?;
    let filters = vec![v1::EventFilter {
        topic: "Job".to_owned(),
        key: job_id,
    }];
    let what = FollowEvents {
        filters,
        ..Default::default()
    };
    let mut events = pin!(client.follow_events(what));
    while let Some(batch) = events.try_next().await? {
        for event in batch.events {
            println!("{} {} {}", event.index, event.r#type, event.key);
        }
    }
    Ok(())
}
