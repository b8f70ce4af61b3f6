//! Start, run and end of plain processes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use model::Timestamp;
use task_drivers::log_files::{self, LogStream};
use task_drivers::{Driver, DriverError, RawExec, Recovery, StartError};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::bench::{Bench, wait_for};

#[tokio::test]
async fn the_exit_code_and_output_of_a_process_are_recorded() {
    let bench = Bench::new();
    bench
        .start("echo to out; echo to err >&2; exit 7")
        .await
        .unwrap();
    let exit = bench.wait().await;
    assert_eq!((exit.code, exit.signal, exit.message.as_str()), (7, 0, ""));
    assert_eq!(bench.stdout(), "to out\n");
    assert_eq!(bench.output(LogStream::Stderr), "to err\n");
    assert_eq!(
        bench.wait().await.code,
        7,
        "for as long as it is not forgotten"
    );
    bench.finish().await;
}

#[tokio::test]
async fn an_end_by_signal_is_128_and_the_signal() {
    let bench = Bench::new();
    bench.start("kill -USR1 $$").await.unwrap();
    let exit = bench.wait().await;
    assert_eq!((exit.code, exit.signal), (128 + 10, 10));
    bench.finish().await;
}

#[tokio::test]
async fn a_task_sees_its_variables_its_directory_and_nothing_of_the_agents_secrets() {
    let bench = Bench::with(|settings| settings.env_denylist.push("CARGO_*".to_owned()));
    bench.start("pwd; env").await.unwrap();
    assert_eq!(bench.wait().await.code, 0);
    let said = bench.stdout();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(
        lines[0],
        bench.dirs().root.canonicalize().unwrap().to_str().unwrap()
    );
    assert!(lines.contains(&"NOMAD_TASK_NAME=web"));
    assert!(
        lines.iter().any(|line| line.starts_with("PATH=")),
        "the host's, where it is allowed"
    );
    assert!(
        !lines.iter().any(|line| line.starts_with("CARGO_")),
        "{said}"
    );
    bench.finish().await;
}

/// True with a control group and with the affinity of the kernel's scheduler.
#[tokio::test]
async fn a_task_runs_on_its_own_cores_and_no_others() {
    let allowed = fs::read_to_string("/proc/self/status").unwrap();
    let allowed = allowed
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .unwrap();
    let last = allowed.trim().rsplit([',', '-']).next().unwrap();
    let bench = Bench::new();
    let mut config = bench.shell("sh -c 'grep Cpus_allowed_list /proc/self/status'");
    config.resources.cores = vec![last.parse().unwrap()];
    bench.driver.start(config).await.unwrap();
    assert_eq!(bench.wait().await.code, 0);
    assert_eq!(bench.stdout(), format!("Cpus_allowed_list:\t{last}\n"));
    bench.finish().await;
}

/// On other cores it would take cpu from other tasks.
#[tokio::test]
async fn a_task_whose_cores_do_not_exist_does_not_start() {
    let bench = Bench::new();
    let mut config = bench.shell("true");
    config.resources.cores = vec![1_000];
    let error = bench.driver.start(config).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("cannot run on its dedicated cores, 1000"),
        "{error}"
    );
}

#[tokio::test]
async fn a_missing_program_is_not_recoverable() {
    let bench = Bench::new();
    for config in [
        serde_json::json!({"command": "/no/such/program"}),
        serde_json::json!({"command": "no-such-program"}),
        serde_json::json!({"command": "/etc/passwd"}),
    ] {
        let command = config["command"].as_str().unwrap().to_owned();
        let error = bench.driver.start(bench.config(config)).await.unwrap_err();
        let StartError::Failed {
            message,
            recoverable,
        } = error
        else {
            panic!("{error}")
        };
        assert!(!recoverable, "{message}");
        assert!(message.contains(&command), "{message}");
        bench.driver.forget(&bench.id(1)).await.unwrap();
    }
    let error = bench
        .driver
        .start(bench.config(serde_json::json!({"comand": "x"})))
        .await;
    assert!(matches!(error, Err(StartError::Config(_))));
    let bench_off = Bench::with(|settings| settings.enabled = false);
    assert!(!bench_off.driver.fingerprint().detected);
    assert!(matches!(
        bench_off.start("true").await,
        Err(StartError::Config(_))
    ));
}

#[tokio::test]
async fn output_is_rotated() {
    let bench = Bench::new();
    let mut config =
        bench.shell("i=0; while [ $i -lt 70000 ]; do echo line $i of the output; i=$((i+1)); done");
    config.logs.max_files = 1;
    config.logs.max_file_size_mib = 1;
    bench.driver.start(config).await.unwrap();
    assert_eq!(bench.wait().await.code, 0);
    let numbers = log_files::numbers(&bench.dirs().logs, "web", LogStream::Stdout).unwrap();
    assert_eq!(
        numbers,
        [1],
        "70,000 lines are 1.6 MB, and one file is kept"
    );
    let said = bench.stdout();
    assert!(said.ends_with("line 69999 of the output\n"));
    assert!(said.starts_with("line "), "no line is cut");
    bench.finish().await;
}

#[tokio::test]
async fn output_can_go_nowhere() {
    let bench = Bench::new();
    let mut config = bench.shell("echo unheard");
    config.logs.disabled = true;
    bench.driver.start(config).await.unwrap();
    assert_eq!(bench.wait().await.code, 0);
    assert_eq!(bench.stdout(), "");
    bench.finish().await;
}

#[tokio::test]
async fn a_stream_without_output_has_a_file() {
    let bench = Bench::new();
    bench.start("echo out").await.unwrap();
    bench.wait().await;
    let errors = log_files::path(&bench.dirs().logs, "web", LogStream::Stderr, 0);
    assert_eq!(fs::read_to_string(errors).unwrap(), "");
    bench.finish().await;
}

#[tokio::test]
async fn scenario_056_a_task_outlives_the_loss_of_its_log_directory() {
    let bench = Bench::new();
    let go = bench.dirs().local.join("go");
    let script = format!(
        "while [ ! -e {} ]; do sleep 0.01; done; echo lost; sleep 600",
        go.display()
    );
    bench.start(&script).await.unwrap();
    fs::remove_dir_all(bench.dirs().logs).unwrap();
    fs::write(&go, "").unwrap();
    let (sender, mut messages) = tokio::sync::mpsc::channel(10);
    let id = bench.id(1);
    let message = tokio::select! {
        _ = bench.driver.wait(&id, &sender) => panic!("the task ended"),
        message = messages.recv() => message.unwrap(),
    };
    assert!(
        message.contains("output to stdout is being dropped"),
        "{message}"
    );
    bench.stop("SIGKILL", 1000).await;
    bench.finish().await;
}

#[tokio::test]
async fn a_task_can_run_as_another_user() {
    let user = if nix::unistd::getuid().is_root() {
        "nobody"
    } else {
        ""
    };
    let bench = Bench::new();
    let mut config = bench.shell("id -u; echo again > /dev/stdout; echo \"$USER\"");
    config.user = user.to_owned();
    // Temporary directories are readable by their owner only.
    config.config.insert("work_dir".to_owned(), "/".into());
    bench.driver.start(config).await.unwrap();
    let exit = bench.wait().await;
    assert_eq!(exit.code, 0, "{}", bench.output(LogStream::Stderr));
    let said = bench.stdout();
    if user == "nobody" {
        assert_eq!(said, "65534\nagain\nnobody\n");
    } else {
        assert!(said.contains("again"), "{said}");
    }
    bench.finish().await;
}

#[tokio::test]
async fn the_secrets_of_a_task_belong_to_its_user() {
    let bench = Bench::new();
    let dirs = bench.dirs();
    fs::set_permissions(&dirs.secrets, fs::Permissions::from_mode(0o700)).unwrap();
    let script = "echo key > $NOMAD_SECRETS_DIR/token && cat $NOMAD_SECRETS_DIR/token";
    let mut config = bench.shell(script);
    let secrets = dirs.secrets.display().to_string();
    config.env.insert("NOMAD_SECRETS_DIR".to_owned(), secrets);
    if nix::unistd::getuid().is_root() {
        config.user = "nobody".to_owned();
        // Temporary directories are readable by their owner only.
        let mut above = dirs.root.as_path();
        while let Some(parent) = above.parent().filter(|it| *it != std::env::temp_dir()) {
            fs::set_permissions(parent, fs::Permissions::from_mode(0o755)).unwrap();
            above = parent;
        }
    }
    bench.driver.start(config).await.unwrap();
    let exit = bench.wait().await;
    assert_eq!(exit.code, 0, "{}", bench.output(LogStream::Stderr));
    assert_eq!(bench.stdout(), "key\n");
    let mode = fs::metadata(&dirs.secrets).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "no other user reads them");
    bench.finish().await;
}

#[tokio::test]
async fn a_deep_state_directory_works() {
    let bench = Bench::with(|settings| {
        settings.state_dir = settings
            .state_dir
            .join("x".repeat(100))
            .join("y".repeat(100));
    });
    bench.start("sleep 600").await.unwrap();
    bench.stop("SIGTERM", 1000).await;
    assert_eq!(bench.wait().await.signal, 15);
    bench.finish().await;
}

#[tokio::test]
async fn a_running_task_is_not_forgotten() {
    let bench = Bench::new();
    bench.start("sleep 600").await.unwrap();
    let error = bench.driver.forget(&bench.id(1)).await.unwrap_err();
    assert!(matches!(error, DriverError::StillRuns { .. }), "{error}");
    assert_eq!(bench.driver.leftovers(), [bench.id(1)]);
    bench.stop("SIGKILL", 1000).await;
    bench.finish().await;
}

#[tokio::test]
async fn a_task_takes_signals() {
    let bench = Bench::new();
    bench
        .start("trap 'echo heard' USR1; echo ready; while :; do sleep 0.01; done")
        .await
        .unwrap();
    bench.said("ready").await;
    bench.driver.signal(&bench.id(1), "SIGUSR1").await.unwrap();
    bench.said("heard").await;
    bench.stop("SIGKILL", 1000).await;
    let error = bench
        .driver
        .signal(&bench.id(1), "SIGUSR1")
        .await
        .unwrap_err();
    assert!(matches!(error, DriverError::Signal { .. }), "{error}");
    bench.finish().await;
}

#[tokio::test]
async fn a_supervisor_is_small() {
    let bench = Bench::new();
    bench.start("sleep 600").await.unwrap();
    let status = fs::read_to_string(format!("/proc/{}/status", bench.pid("supervisor"))).unwrap();
    let anonymous: u64 = status
        .lines()
        .find_map(|line| {
            line.strip_prefix("RssAnon:")?
                .trim()
                .strip_suffix(" kB")?
                .parse()
                .ok()
        })
        .unwrap();
    println!("anonymous memory of a supervisor: {anonymous} KiB");
    assert!(anonymous < 3 * 1024, "{anonymous} KiB");
    bench.stop("SIGKILL", 1000).await;
    bench.finish().await;
}

#[tokio::test]
async fn scenario_024_two_hundred_tasks_run_side_by_side_and_are_all_found_again() {
    let bench = Bench::new();
    let config = |attempt| {
        let mut config = bench.shell("exec sleep 600");
        config.id = bench.id(attempt);
        config
    };
    let driver = Arc::new(RawExec::new(bench.settings.clone()));
    let began = Instant::now();
    let mut starts = JoinSet::new();
    for attempt in 1..=200 {
        let (driver, config) = (Arc::clone(&driver), config(attempt));
        starts.spawn(async move { driver.start(config).await });
    }
    assert!(
        starts
            .join_all()
            .await
            .into_iter()
            .all(|started| started.is_ok())
    );
    println!("200 starts took {:?}", began.elapsed());
    assert_eq!(bench.processes().len(), 200);

    let driver = Arc::new(RawExec::new(bench.settings.clone()));
    let began = Instant::now();
    let mut finds = JoinSet::new();
    for attempt in 1..=200 {
        let (driver, config) = (Arc::clone(&driver), config(attempt));
        let never = Timestamp::NEVER;
        finds.spawn(async move { driver.recover(config, never, never).await });
    }
    let running = Recovery::Running { note: None };
    assert!(
        finds
            .join_all()
            .await
            .into_iter()
            .all(|found| found == running)
    );
    println!("finding 200 again took {:?}", began.elapsed());
    assert!(began.elapsed() < Duration::from_secs(5));

    let began = Instant::now();
    let mut stops = JoinSet::new();
    for id in driver.leftovers() {
        let driver = Arc::clone(&driver);
        stops.spawn(async move {
            driver
                .stop(&id, "SIGKILL", Duration::from_secs(5))
                .await
                .unwrap();
            driver.forget(&id).await.unwrap();
        });
    }
    assert_eq!(stops.join_all().await.len(), 200);
    println!("stopping 200 took {:?}", began.elapsed());
    assert_eq!(bench.processes(), Vec::<i32>::new());
    wait_for("supervisors to be gone", || {
        bench.supervisors().is_empty().then_some(())
    })
    .await;
}
