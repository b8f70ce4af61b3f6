//! The README's code compiles: each of its blocks is a part of this file or of an example.

use std::path::Path;

/// Code of the README that no example has.
mod code {
    #![expect(dead_code, unused_variables, reason = "it is compiled, not run")]

    use std::pin::pin;
    use std::time::Duration;

    use futures::TryStreamExt as _;
    use kafila_client::{Client, Code, v1};

    type Result = std::result::Result<(), Box<dyn std::error::Error>>;

    async fn call(client: Client) -> Result {
        let request = v1::GetJobRequest {
            job_id: "web".to_owned(),
            ..Default::default()
        };
        let call = client.jobs().get(request).timeout(Duration::from_secs(5));
        let answer = call.await?;
        Ok(())
    }

    async fn lists(
        client: Client,
        request: v1::ListNodesRequest,
        index: u64,
        wait: Duration,
    ) -> Result {
        // Page by page.
        let mut nodes = pin!(client.nodes().list(request.clone()).items());
        // Now, and after each change.
        let mut changes = pin!(client.nodes().list(request.clone()).watch());
        // Once, after the index of an earlier answer.
        let answer = client.nodes().list(request).blocking(index, wait).await?;
        nodes.try_next().await?;
        changes.try_next().await?;
        Ok(())
    }

    async fn run(client: Client, job: v1::Job) -> Result {
        let run = client.run_job(job, Duration::from_secs(60)).await?;
        Ok(())
    }

    async fn errors(client: Client, request: v1::RegisterJobRequest) -> Result {
        match client.jobs().register(request).await {
            Ok(answer) => println!("evaluation {}", answer.eval_id),
            Err(error) if error.code() == Code::InvalidArgument => {
                for violation in error.violations() {
                    eprintln!("{}: {}", violation.field, violation.message);
                }
            }
            // The write may have taken effect although the call failed.
            Err(error) if error.may_have_happened() => eprintln!("unknown outcome: {error}"),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

/// Returns the lines without indentation, which the README has less of.
fn lines(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    lines.join("\n")
}

#[test]
fn each_block_of_the_readme_is_compiled_code() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut code = lines(include_str!("readme.rs"));
    for entry in package.join("examples").read_dir().unwrap() {
        code += &lines(&std::fs::read_to_string(entry.unwrap().path()).unwrap());
    }
    let readme = std::fs::read_to_string(package.join("README.md")).unwrap();
    let blocks: Vec<_> = readme.split("```rust\n").skip(1).collect();
    assert!(blocks.len() >= 6, "{}", blocks.len());
    for block in blocks {
        let (block, _) = block.split_once("```").unwrap();
        assert!(
            code.contains(lines(block).trim()),
            "no compiled code has:\n{block}"
        );
    }
}
