//! Wrong usage, help, colours, and a reader that goes away.

use crate::command::{TIMEOUT, UNREACHABLE, kafila};
use crate::gateway::Gateway;
use crate::state::FakeState;

#[tokio::test]
async fn an_unknown_command_ends_with_127_and_a_suggestion() {
    for (line, part) in [("jobb status", "'job'"), ("job sttaus", "'status'")] {
        let said = kafila(line).run().await;
        said.ended(127)
            .complained(&["unrecognized subcommand", part, "For additional help try"]);
    }
}

#[tokio::test]
async fn an_empty_value_may_be_an_unset_variable() {
    for (line, argument) in [("dev -data-dir", "--data-dir <DIR>"), ("job run", "<FILE>")] {
        let said = kafila(line).arg("").run().await;
        said.ended(1).complained(&[
            argument,
            "the value is empty; is a variable of the shell unset?",
            "-help",
        ]);
        assert!(!said.stderr.contains("none was supplied"), "{said:?}");
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
async fn unsupported_commands_and_flags_of_nomad_name_an_alternative() {
    let table = [
        ("job start web", 127, "'job start'", "kafila job run"),
        ("alloc pause 8a3f", 127, "'alloc pause'", "Nomad Enterprise"),
        ("acl token list", 127, "'acl'", "no users"),
        (
            "system reconcile summaries",
            127,
            "'system reconcile'",
            "nothing to reconcile",
        ),
        (
            "node status -filter=x",
            1,
            "'-filter' of 'node status'",
            "use -json and jq",
        ),
        (
            "job status -token=x web",
            1,
            "'-token' of 'job status'",
            "no users",
        ),
        ("-region eu job status", 1, "'-region'", "one region"),
    ];
    for (line, code, what, instead) in table {
        let said = kafila(line).run().await;
        said.ended(code).complained(&[
            "Nomad's ",
            what,
            "not supported by this version",
            instead,
            "For additional help",
        ]);
        assert!(!said.stderr.contains("similar"), "{line}: {}", said.stderr);
    }
    // Unknown in Nomad, too: no advice to pass it as an argument.
    let said = kafila("node status -frobnicate").run().await;
    said.ended(1)
        .complained(&["unexpected argument '--frobnicate'"]);
    assert!(!said.stderr.contains("'-- --"), "{}", said.stderr);
}

#[tokio::test]
async fn services_refuse_global_flags() {
    for (line, flag) in [
        ("dev -address=http://a:1", "-address"),
        ("-namespace x api-gateway", "-namespace"),
        ("client-node -no-color", "-no-color"),
    ] {
        let said = kafila(line).run().await;
        said.ended(1).complained(&[flag, "has no effect on"]);
    }
    let said = kafila("api-gateway -help").run().await;
    said.ended(0)
        .printed(&["kafila api-gateway -config", "KAFILA_API_GATEWAY__ETCD"]);
    assert!(!said.stdout.contains("--address"), "{}", said.stdout);
}

#[tokio::test]
async fn a_timeout_below_a_millisecond_is_refused() {
    let said = kafila("job status -timeout=1ns").run().await;
    said.ended(1)
        .complained(&["the duration must be 1ms or more"]);
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
    let said = kafila("-help").run().await;
    assert!(!said.stdout.contains("container"), "{}", said.stdout);
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
    let gateway = Gateway::start(FakeState::running()).await;
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
        .at(UNREACHABLE)
        .await
        .ended(1);
}

#[tokio::test]
async fn a_closed_pipe_is_no_crash() {
    let gateway = Gateway::start(FakeState::running()).await;
    let mut child = kafila("job inspect web").start(&gateway.address);
    // The pipe is closed before the first write.
    drop(child.stdout.take());
    let output = tokio::time::timeout(TIMEOUT, child.wait_with_output())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(output.status.code(), Some(141));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[tokio::test]
async fn a_command_with_swapped_letters_is_recognised() {
    for (line, meant) in [("jbo", "job"), ("job pormote web", "promote")] {
        let said = kafila(line).at(UNREACHABLE).await;
        said.ended(127).complained(&[&format!("'{meant}'")]);
    }
}

#[tokio::test]
async fn a_flag_without_a_value_says_so() {
    let said = kafila("job run -detach=maybe web.hcl").run().await;
    let stderr = &said.ended(1).stderr;
    assert!(stderr.contains("-detach takes no value"), "{stderr}");
    let said = kafila("dev -nodes x").run().await;
    let stderr = &said.ended(1).stderr;
    assert!(stderr.contains("from 1 to 100"), "{stderr}");
}
