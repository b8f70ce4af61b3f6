//! Java programs, with a stand-in for the virtual machine, and with a real one where the machine has it.

use std::ffi::OsString;
use std::fs;
use std::process::Command;
use std::time::Duration;

use model::Timestamp;
use task_drivers::{Driver, Java, JavaConfig, Recovery, StartError};

use crate::programs::Programs;

/// Says its version, or its arguments until it is signalled.
const STAND_IN: &str = r#"
if [ "$1" = -version ]; then
    echo 'openjdk version "99.1" 2030-01-01' >&2
    echo 'Some Runtime (build 1)' >&2
    echo 'Some VM (build 2)' >&2
    exit 0
fi
trap 'echo bye; exit 130' INT
echo "$(id -un) $0 $*"
while :; do sleep 0.1; done
"#;

fn driver(programs: &Programs, search: OsString) -> Java {
    Java::new(
        JavaConfig::default(),
        programs.settings(),
        programs.state_dir(),
        &programs.bench.driver,
        search,
    )
}

#[tokio::test]
async fn the_version_of_the_machine_is_in_the_fingerprint() {
    let programs = Programs::new(&[("java", STAND_IN)]);
    let driver = driver(&programs, programs.search());
    let before = driver.fingerprint();
    assert_eq!(
        (before.detected, before.description.as_str()),
        (false, "not probed yet")
    );
    if !programs.is_available(&driver).await {
        return;
    }
    let found = driver.fingerprint();
    assert!(found.healthy, "{found:?}");
    let want = [
        ("driver.java", "1"),
        ("driver.java.runtime", "Some Runtime (build 1)"),
        ("driver.java.version", "99.1"),
        ("driver.java.vm", "Some VM (build 2)"),
    ];
    let want = want.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(found.attributes, want.into());
}

#[tokio::test]
async fn a_node_without_a_machine_says_why_it_has_no_driver() {
    let broken = Programs::new(&[("java", "echo no heap >&2; exit 1")]);
    let mute = Programs::new(&[("java", "echo hello")]);
    let none = Programs::new(&[]);
    for (programs, reason) in [
        (&broken, "java -version: exit status: 1: no heap"),
        (&mute, "java -version names no version: \"hello\\n\""),
        (&none, "no program java in the agent's PATH"),
    ] {
        let driver = driver(programs, programs.search());
        driver.refresh().await;
        let found = driver.fingerprint();
        assert!(!found.detected && found.attributes.is_empty(), "{found:?}");
        assert!(found.description.contains(reason), "{found:?}");
        let config = programs
            .bench
            .config(serde_json::json!({"jar_path": "a.jar"}));
        let refused = driver.start(config).await.unwrap_err();
        let StartError::Failed {
            message,
            recoverable,
        } = refused
        else {
            panic!("{refused:?}");
        };
        assert!(message.contains(reason) && !recoverable, "{message}");
    }
    // A machine that the isolation hides from tasks.
    let programs = Programs::new(&[("java", STAND_IN)]);
    let hidden = Java::new(
        JavaConfig::default(),
        task_drivers::ExecConfig::default(),
        programs.state_dir(),
        &programs.bench.driver,
        programs.search(),
    );
    hidden.refresh().await;
    let found = hidden.fingerprint();
    assert!(
        found.description.contains("drivers.exec.chroot_env"),
        "{found:?}"
    );
    let off = Java::new(
        JavaConfig { enabled: false },
        programs.settings(),
        programs.state_dir(),
        &programs.bench.driver,
        programs.search(),
    );
    off.refresh().await;
    assert_eq!(off.fingerprint().description, "disabled");
}

#[tokio::test]
async fn scenario_022_a_task_runs_isolated_and_a_restarted_agent_finds_it() {
    let programs = Programs::new(&[("java", STAND_IN)]);
    let first = driver(&programs, programs.search());
    if !programs.is_available(&first).await {
        return;
    }
    let config = programs.bench.config(serde_json::json!({
        "jar_path": "local/a.jar", "jvm_options": ["-Xmx8m"], "args": ["x y"],
    }));
    first.start(config.clone()).await.unwrap();
    let said = programs.bench.said("local/a.jar").await;
    assert_eq!(
        said,
        "nobody /opt/stand-ins/java -Xmx8m -jar local/a.jar x y\n"
    );

    let second = driver(&programs, programs.search());
    assert_eq!(second.leftovers(), [programs.bench.id(1)]);
    let found = second
        .recover(config, Timestamp::NEVER, Timestamp::NEVER)
        .await;
    assert_eq!(found, Recovery::Running { note: None });
    programs.stop(&second, "", Duration::from_secs(10)).await;
    assert_eq!(programs.wait(&second).await.code, 130);
    assert!(programs.bench.stdout().ends_with("bye\n"));
    programs.finish(&second).await;
}

#[tokio::test]
async fn a_real_machine_runs_a_class_and_reports_its_exit() {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has = |program: &str| Command::new(program).arg("-version").output().is_ok();
    if !has("java") || !has("javac") {
        eprintln!("SKIPPED: no java and javac on this machine");
        return;
    }
    let programs = Programs::new(&[]);
    let driver = Java::new(
        JavaConfig::default(),
        task_drivers::ExecConfig {
            without_limits: true,
            ..task_drivers::ExecConfig::default()
        },
        programs.state_dir(),
        &programs.bench.driver,
        path,
    );
    driver.refresh().await;
    let found = driver.fingerprint();
    if !found.detected {
        // A machine outside of /usr is of no use to tasks.
        eprintln!("SKIPPED: {}", found.description);
        return;
    }
    let local = programs.bench.dirs().local;
    let source = local.join("Main.java");
    fs::write(
        &source,
        "public class Main { public static void main(String[] a) throws Exception {
             System.out.println(a[0] + \" \" + System.getProperty(\"user.name\") + \" \" + System.getProperty(\"p\"));
             System.exit(7);
         } }",
    )
    .unwrap();
    let compiled = Command::new("javac")
        .args(["--release", "11", "-d"])
        .arg(&local)
        .arg(&source)
        .output();
    assert!(compiled.unwrap().status.success());
    let config = programs.bench.config(serde_json::json!({
        "class": "Main", "class_path": "/local", "jvm_options": ["-Xmx32m", "-Dp=q"], "args": ["hello"],
    }));
    driver.start(config).await.unwrap();
    assert_eq!(
        programs.wait(&driver).await.code,
        7,
        "{}",
        programs.bench.stdout()
    );
    assert_eq!(programs.bench.stdout(), "hello nobody q\n");
    programs.finish(&driver).await;
}
