//! Wrong usage, help, colours, and a reader that goes away.

use crate::command::{NOBODY, PATIENCE, kafila};
use crate::gateway::Gateway;
use crate::world::World;

#[tokio::test]
async fn an_unknown_command_ends_with_127_and_a_suggestion() {
    for (line, part) in [("jobb status", "'job'"), ("job sttaus", "'status'")] {
        let said = kafila(line).run().await;
        said.ended(127)
            .complained(&["unrecognized subcommand", part, "For additional help try"]);
    }
}

#[tokio::test]
async fn wrong_usage_ends_with_1_and_names_the_commands_help() {
    let table = [
        ("job run", "<FILE>", "'kafila job run -help'"),
        ("job run -detahc f", "'--detach'", "'kafila job run -help'"),
        (
            "job run -check-index=x f",
            "invalid value 'x'",
            "'kafila job run -help'",
        ),
        (
            "job run -check-index",
            "a value is required",
            "'kafila job run -help'",
        ),
        (
            "job run -eval-priority 101 f",
            "101",
            "'kafila job run -help'",
        ),
        (
            "job status a b",
            "unexpected argument 'b'",
            "'kafila job status -help'",
        ),
        (
            "node status -timeout=never",
            "invalid value 'never'",
            "'kafila node status -help'",
        ),
    ];
    for (line, part, help) in table {
        let said = kafila(line).run().await;
        said.ended(1).complained(&[part, help]);
        assert_eq!(said.stdout, "", "{line}");
    }
    kafila("")
        .run()
        .await
        .ended(1)
        .complained(&["Usage: kafila"]);
    kafila("job")
        .run()
        .await
        .ended(1)
        .complained(&["Usage: kafila job"]);
}

#[tokio::test]
async fn help_is_a_result_and_has_examples() {
    for line in ["-help", "--help", "-h", "help"] {
        kafila(line)
            .run()
            .await
            .ended(0)
            .printed(&["Usage: kafila", "Examples:"]);
    }
    for line in ["job run -help", "job run -h", "help job run"] {
        let said = kafila(line).run().await;
        said.ended(0)
            .printed(&["Usage: kafila job run", "Exit codes: 0 placed"]);
    }
    let said = kafila("-version").run().await;
    said.ended(0)
        .printed(&[concat!("kafila ", env!("CARGO_PKG_VERSION"))]);
}

#[tokio::test]
async fn scenario_044_a_pipe_sees_no_colours_unless_it_is_made_to() {
    let gateway = Gateway::start(World::running()).await;
    let plain = kafila("job status web").at(&gateway.address).await;
    assert!(!plain.ended(0).stdout.contains('\x1b'));
    let forced = kafila("job status -force-color web")
        .at(&gateway.address)
        .await;
    forced.ended(0).printed(&["\x1b[1mSummary\x1b[0m"]);
    let by_variable = kafila("job status web").env("NOMAD_CLI_FORCE_COLOR", "1");
    by_variable
        .at(&gateway.address)
        .await
        .printed(&["\x1b[1mSummary"]);
    let neither = kafila("job status web")
        .env("KAFILA_CLI_FORCE_COLOR", "1")
        .env("NO_COLOR", "1");
    assert!(!neither.at(&gateway.address).await.stdout.contains('\x1b'));
    let json = kafila("job status -force-color -json web")
        .at(&gateway.address)
        .await;
    assert!(!json.stdout.contains('\x1b'));
    kafila("job status -force-color -no-color web")
        .at(NOBODY)
        .await
        .ended(1);
}

#[tokio::test]
async fn a_reader_that_goes_away_is_no_crash() {
    let gateway = Gateway::start(World::running()).await;
    let mut child = kafila("job inspect web").start(&gateway.address);
    // Nobody reads; the pipe is closed before anything is written.
    drop(child.stdout.take());
    let output = tokio::time::timeout(PATIENCE, child.wait_with_output())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(output.status.code(), Some(141));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}
