//! Virtual machines, with a stand-in for the emulator.

use std::fs;
use std::path::Path;
use std::time::Duration;

use task_drivers::{Driver, Qemu, QemuConfig, Recovery, StartError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixListener;
use tokio::time::Instant;

use crate::bench::LIMIT;
use crate::programs::Programs;

/// Says its version, or its arguments until its power is off.
const STAND_IN: &str = r#"
if [ "$1" = --version ]; then
    echo 'QEMU emulator version 8.0.1 (Debian 1)'
    exit 0
fi
trap 'echo quit; exit 0' INT TERM
echo "$(id -u) $0 $*"
while [ ! -e /tmp/off ]; do sleep 0.05; done
echo off
exit 3
"#;
const EMULATOR: &str = "qemu-system-x86_64";
const GRACE: Duration = Duration::from_secs(10);

fn driver(programs: &Programs, config: QemuConfig) -> Qemu {
    Qemu::new(
        config,
        programs.settings(),
        programs.state_dir(),
        &programs.bench.driver,
        programs.search(),
    )
}

/// Returns a bench whose task has an image, or `None` where isolation cannot be tested.
async fn bench() -> Option<(Programs, Qemu)> {
    let programs = Programs::new(&[(EMULATOR, STAND_IN)]);
    let driver = driver(&programs, QemuConfig::default());
    if !programs.is_available(&driver).await {
        return None;
    }
    fs::write(programs.bench.dirs().local.join("vm.img"), "").unwrap();
    Some((programs, driver))
}

fn config(programs: &Programs, more: serde_json::Value) -> task_drivers::TaskConfig {
    let mut config = programs
        .bench
        .config(serde_json::json!({"image_path": "local/vm.img"}));
    config.config.extend(more.as_object().unwrap().clone());
    config
}

/// Stands in for the emulator's monitor: it takes one command, and turns the power off if it `obeys`.
async fn monitor(listener: UnixListener, tmp: &Path, obeys: bool) -> String {
    let (mut stream, _) = listener.accept().await.unwrap();
    stream
        .write_all(b"QEMU 8.0.1 monitor\r\n(qemu) ")
        .await
        .unwrap();
    let mut command = Vec::new();
    while !command.ends_with(b"\n") {
        stream.read_buf(&mut command).await.unwrap();
    }
    if obeys {
        fs::write(tmp.join("off"), "").unwrap();
    }
    stream.write_all(b"\r\n(qemu) ").await.unwrap();
    String::from_utf8(command).unwrap()
}

#[tokio::test]
async fn the_version_of_the_emulator_is_in_the_fingerprint() {
    let Some((_, driver)) = bench().await else {
        return;
    };
    let want = [("driver.qemu", "1"), ("driver.qemu.version", "8.0.1")];
    let want = want.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(driver.fingerprint().attributes, want.into());

    let none = Programs::new(&[]);
    let driver = self::driver(&none, QemuConfig::default());
    driver.refresh().await;
    let found = driver.fingerprint();
    assert!(!found.detected);
    assert_eq!(
        found.description,
        "no program qemu-system-x86_64 in the agent's PATH"
    );
}

#[tokio::test]
async fn a_machine_runs_isolated_and_a_signal_ends_it() {
    let Some((programs, driver)) = bench().await else {
        return;
    };
    driver
        .start(config(
            &programs,
            serde_json::json!({"args": ["-snapshot"]}),
        ))
        .await
        .unwrap();
    let said = programs.bench.said("-snapshot").await;
    let name = format!("web-{}", programs.bench.alloc_id);
    assert_eq!(
        said,
        format!(
            "0 /opt/stand-ins/{EMULATOR} -machine type=pc,accel=tcg -name {name} -m 300M \
             -drive file=/local/vm.img,if=ide -nographic -snapshot\n"
        )
    );
    programs.stop(&driver, "", GRACE).await;
    assert_eq!(programs.wait(&driver).await.code, 0);
    assert!(programs.bench.stdout().ends_with("quit\n"));
    programs.finish(&driver).await;
}

#[tokio::test]
async fn a_stop_asks_the_machine_to_shut_down_also_after_an_agents_restart() {
    let Some((programs, first)) = bench().await else {
        return;
    };
    let asks = config(&programs, serde_json::json!({"graceful_shutdown": true}));
    first.start(asks.clone()).await.unwrap();
    programs.bench.said("-monitor unix:/tmp/").await;
    let second = driver(&programs, QemuConfig::default());
    second.refresh().await;
    let now = model::Timestamp::NEVER;
    let found = second.recover(asks, now, now).await;
    assert_eq!(found, Recovery::Running { note: None });

    let tmp = programs.bench.dirs().tmp;
    let listener = UnixListener::bind(tmp.join("qemu-monitor.sock")).unwrap();
    let stopping = programs.stop(&second, "", GRACE);
    let ((), command) = tokio::join!(stopping, monitor(listener, &tmp, true));
    assert_eq!(command, "system_powerdown\n");
    assert_eq!(programs.wait(&second).await.code, 3);
    assert!(
        programs.bench.stdout().ends_with("off\n"),
        "no signal came first"
    );
    programs.finish(&second).await;
}

#[tokio::test]
async fn a_machine_that_does_not_shut_down_is_killed_after_the_grace() {
    let Some((programs, driver)) = bench().await else {
        return;
    };
    let asks = config(&programs, serde_json::json!({"graceful_shutdown": true}));
    driver.start(asks).await.unwrap();
    programs.bench.said("-monitor").await;
    let tmp = programs.bench.dirs().tmp;
    let listener = UnixListener::bind(tmp.join("qemu-monitor.sock")).unwrap();
    let began = Instant::now();
    let grace = Duration::from_millis(500);
    let stopping = programs.stop(&driver, "", grace);
    tokio::join!(stopping, monitor(listener, &tmp, false));
    assert!(began.elapsed() >= grace && began.elapsed() < LIMIT);
    assert_eq!(programs.wait(&driver).await.code, 137);
    programs.finish(&driver).await;
}

#[tokio::test]
async fn a_machine_without_a_monitor_is_signalled() {
    let Some((programs, driver)) = bench().await else {
        return;
    };
    let asks = config(&programs, serde_json::json!({"graceful_shutdown": true}));
    driver.start(asks).await.unwrap();
    programs.bench.said("-monitor").await;
    programs.stop(&driver, "", GRACE).await;
    assert_eq!(programs.wait(&driver).await.code, 0);
    assert!(programs.bench.stdout().ends_with("quit\n"));
    programs.finish(&driver).await;
}

#[tokio::test]
async fn images_of_allowed_directories_are_writable_and_others_are_refused() {
    if bench().await.is_none() {
        return;
    }
    let images = tempfile::tempdir().unwrap();
    fs::write(images.path().join("base.img"), "base").unwrap();
    let path = images.path().join("base.img").display().to_string();
    let named = serde_json::json!({"image_path": path, "emulator": "qemu-system-test"});
    let more = Programs::new(&[
        (EMULATOR, STAND_IN),
        (
            "qemu-system-test",
            &format!("ls -d {path}; echo changed > {path}"),
        ),
    ]);
    let refusing = driver(&more, QemuConfig::default());
    assert!(more.is_available(&refusing).await);
    let refused = refusing
        .start(config(&more, named.clone()))
        .await
        .unwrap_err();
    assert!(matches!(&refused, StartError::Config(_)), "{refused:?}");
    assert!(
        refused.to_string().contains("drivers.qemu.image_paths"),
        "{refused}"
    );

    let allowing = driver(
        &more,
        QemuConfig {
            image_paths: vec![images.path().to_owned()],
            ..QemuConfig::default()
        },
    );
    assert!(more.is_available(&allowing).await);
    allowing.start(config(&more, named)).await.unwrap();
    assert_eq!(
        more.wait(&allowing).await.code,
        0,
        "{}",
        more.bench.stdout()
    );
    assert_eq!(more.bench.stdout(), format!("{path}\n"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "changed\n");
    more.finish(&allowing).await;
}

#[tokio::test]
async fn a_start_that_the_node_does_not_allow_says_what_to_do() {
    let Some((programs, _)) = bench().await else {
        return;
    };
    let strict = driver(
        &programs,
        QemuConfig {
            args_allowlist: vec!["-smp".to_owned()],
            ..QemuConfig::default()
        },
    );
    assert!(programs.is_available(&strict).await);
    for (more, problem) in [
        (
            serde_json::json!({"args": ["-device", "x"]}),
            "drivers.qemu.args_allowlist",
        ),
        (
            serde_json::json!({"emulator": "qemu-system-none"}),
            "no program qemu-system-none",
        ),
        (
            serde_json::json!({"port_map": [{"ssh": 22}]}),
            "no port \"ssh\"",
        ),
        (serde_json::json!({"image": "x"}), "unknown field `image`"),
    ] {
        let refused = strict.start(config(&programs, more)).await.unwrap_err();
        assert!(matches!(&refused, StartError::Config(_)), "{refused:?}");
        assert!(refused.to_string().contains(problem), "{refused}");
    }
    assert!(strict.leftovers().is_empty());
}

/// The firmware of a machine without a system prints to the serial port, and ignores the power button.
#[tokio::test]
async fn a_real_emulator_runs_its_firmware_and_takes_commands_of_the_monitor() {
    let programs = Programs::new(&[]);
    let config = task_drivers::ExecConfig {
        without_limits: true,
        ..task_drivers::ExecConfig::default()
    };
    let driver = Qemu::new(
        QemuConfig::default(),
        config,
        programs.state_dir(),
        &programs.bench.driver,
        std::env::var_os("PATH").unwrap_or_default(),
    );
    driver.refresh().await;
    let found = driver.fingerprint();
    if !found.detected {
        eprintln!("SKIPPED: {}", found.description);
        return;
    }
    fs::write(programs.bench.dirs().local.join("vm.img"), vec![0; 1 << 20]).unwrap();
    let more = serde_json::json!({"graceful_shutdown": true, "guest_agent": true});
    driver.start(self::config(&programs, more)).await.unwrap();
    programs.bench.said("SeaBIOS").await;
    assert!(programs.bench.dirs().root.join("qa.sock").exists());
    let began = Instant::now();
    let grace = Duration::from_secs(2);
    programs.stop(&driver, "", grace).await;
    assert!(began.elapsed() >= grace, "the monitor took no command");
    assert_eq!(programs.wait(&driver).await.code, 137);
    programs.finish(&driver).await;
}
