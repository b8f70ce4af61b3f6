//! Runs a job until its deployment is successful, and stops it: `cargo run -p kafila-client --example run_job`

use std::time::Duration;

use kafila_client::{Client, object, v1};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::from_env()?;
    let run = client.run_job(job()?, Duration::from_secs(60)).await?;
    if let Some(evaluation) = &run.evaluation {
        println!("evaluation {}: {}", evaluation.id, evaluation.status);
    }
    match &run.deployment {
        Some(deployment) => println!("deployment {}: {}", deployment.id, deployment.status),
        None => println!("no deployment"),
    }
    client.stop_job("hello-rust", true).await?;
    Ok(())
}

fn job() -> Result<v1::Job, Box<dyn std::error::Error>> {
    let options = serde_json::json!({"command": "sleep", "args": ["600"]});
    let task = v1::Task {
        name: Some("sleep".to_owned()),
        driver: Some("raw_exec".to_owned()),
        config: Some(
            object(options.as_object().ok_or("an object")?).map_err(|error| error.to_string())?,
        ),
        ..Default::default()
    };
    Ok(v1::Job {
        id: Some("hello-rust".to_owned()),
        r#type: Some("service".to_owned()),
        task_groups: vec![v1::TaskGroup {
            name: Some("main".to_owned()),
            count: Some(1),
            tasks: vec![task],
            ..Default::default()
        }],
        ..Default::default()
    })
}
