//! Isolated tasks. They need root; where the machine cannot make namespaces, the tests are skipped,
//! unless `KAFILA_REQUIRE_NETWORKS` is set.
//!
//! Most run without limits, so that a machine without cgroup version 2 tests the isolation.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use model::{ExitResult, MemoryMax, Timestamp};
use task_drivers::{
    AllocDirs, Driver, Exec, ExecCommand, ExecConfig, Recovery, StartError, TaskConfig, TaskMount,
    TaskNetwork, TerminalSize, alloc_dirs,
};
use tokio::sync::mpsc;

use crate::bench::{Bench, LIMIT, is_alive, kill, wait_for};
use crate::commands::{ends, run_in, shell};

struct ExecBench {
    bench: Bench,
    config: ExecConfig,
    driver: Exec,
}

/// Returns a bench, or `None` where isolation cannot be tested.
fn bench(edit: impl FnOnce(&mut ExecConfig)) -> Option<ExecBench> {
    isolated(Bench::new(), edit)
}

fn isolated(bench: Bench, edit: impl FnOnce(&mut ExecConfig)) -> Option<ExecBench> {
    let dirs = AllocDirs {
        root: bench.dirs().root.parent().unwrap().to_owned(),
    };
    alloc_dirs::build(&dirs, ["web"].into_iter(), None).unwrap();
    let mut config = ExecConfig {
        without_limits: true,
        ..ExecConfig::default()
    };
    edit(&mut config);
    let driver = Exec::new(config.clone(), state_dir(&bench), &bench.driver);
    let found = driver.fingerprint();
    if !found.detected {
        assert!(
            std::env::var_os("KAFILA_REQUIRE_NETWORKS").is_none() || !config.without_limits,
            "{}",
            found.description
        );
        eprintln!("SKIPPED: {}", found.description);
        return None;
    }
    Some(ExecBench {
        bench,
        config,
        driver,
    })
}

/// Inside the bench's own, so that the bench finds the supervisors.
fn state_dir(bench: &Bench) -> PathBuf {
    bench.settings.state_dir.join("exec")
}

impl ExecBench {
    /// Runs a script to its end. Returns the end and what it has printed.
    async fn run(self, config: TaskConfig) -> (ExitResult, String) {
        self.driver.start(config).await.unwrap();
        let exit = self.wait().await;
        let said = self.bench.stdout();
        self.finish().await;
        (exit, said)
    }

    async fn script(self, script: &str) -> String {
        let script = format!("exec 2>&1; {script}");
        let config = self.bench.shell(&script);
        self.run(config).await.1
    }

    async fn wait(&self) -> ExitResult {
        let id = self.bench.id(1);
        let (sender, _receiver) = mpsc::channel(10);
        let waited = tokio::time::timeout(LIMIT, self.driver.wait(&id, &sender)).await;
        waited.expect("the task ends").unwrap()
    }

    /// Starts a task that waits, runs a command in it, and ends both.
    async fn command(self, config: TaskConfig, command: ExecCommand) -> (i32, String, String) {
        self.driver.start(config).await.unwrap();
        self.bench.said("up").await;
        let id = self.bench.id(1);
        let ended = run_in((&self.driver, &id), command, "typed\n").await;
        self.driver
            .stop(&id, "SIGKILL", Duration::ZERO)
            .await
            .unwrap();
        self.wait().await;
        self.finish().await;
        ended
    }

    /// Returns the pid in `state.json` of `role`: `task` or `supervisor`.
    fn pid(&self, role: &str) -> i32 {
        let alloc = state_dir(&self.bench).join(self.bench.alloc_id.to_string());
        let text = fs::read(alloc.join("web/1/state.json")).unwrap();
        let state: serde_json::Value = serde_json::from_slice(&text).unwrap();
        i32::try_from(state[role]["pid"].as_i64().unwrap()).unwrap()
    }

    async fn finish(self) {
        self.driver.forget(&self.bench.id(1)).await.unwrap();
        assert!(self.driver.leftovers().is_empty());
        assert_eq!(self.bench.processes(), Vec::<i32>::new());
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let root = self.bench.dirs().root.display().to_string();
        assert!(!mounts.contains(&root), "{mounts}");
        // Nothing is mounted in the directories any more, so they can be removed.
        fs::remove_dir_all(self.bench.dirs().root).unwrap();
        wait_for("supervisors to be gone", || {
            self.bench.supervisors().is_empty().then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_task_sees_its_own_processes_alone() {
    let Some(bench) = bench(|_| {}) else { return };
    let said = bench
        .script("echo self $$; ls /proc | grep -c '^[0-9]'; kill -9 -1; echo survived")
        .await;
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "self 1");
    // The shell, ls and grep.
    assert!(lines[1].parse::<u32>().unwrap() <= 4, "{said}");
    assert_eq!(lines.last(), Some(&"survived"));
}

#[tokio::test]
async fn with_pid_mode_host_a_task_sees_the_nodes_processes() {
    let Some(bench) = bench(|_| {}) else { return };
    let own = std::process::id();
    let config = serde_json::json!({
        "command": "sh", "args": ["-c", format!("test -d /proc/{own} && echo sees")],
        "pid_mode": "host", "ipc_mode": "host",
    });
    let config = bench.bench.config(config);
    assert_eq!(bench.run(config).await.1, "sees\n");
}

#[tokio::test]
async fn the_nodes_files_are_read_only_and_its_secrets_unreadable() {
    let Some(bench) = bench(|_| {}) else { return };
    let said = bench
        .script(
            "id -un; cat /etc/shadow; touch /usr/x; touch /etc/x; \
             cat /etc/passwd > /dev/null && echo passwd; ls /home; ls /var; ls /proc/1/root/",
        )
        .await;
    assert!(said.starts_with("nobody\n"), "{said}");
    assert!(said.contains("/etc/shadow: Permission denied"), "{said}");
    assert!(said.contains("passwd\n"), "{said}");
    for hidden in ["/home", "/var"] {
        assert!(
            said.contains(&format!("'{hidden}': No such file or directory")),
            "{said}"
        );
    }
    let root = said.lines().rev().take_while(|line| !line.contains("ls:"));
    let mut root: Vec<&str> = root.collect();
    root.sort_unstable();
    for own in [
        "alloc", "dev", "etc", "local", "proc", "secrets", "sys", "tmp", "usr",
    ] {
        assert!(root.contains(&own), "{own}: {said}");
    }
    assert!(!root.contains(&"var"), "{said}");
}

/// Root's capabilities do not help against mounts.
#[tokio::test]
async fn root_in_a_task_cannot_write_to_the_node() {
    let Some(bench) = bench(|_| {}) else { return };
    let script = "exec 2>&1; id -u; touch /usr/x; touch /etc/x; mount -o remount,rw /usr; \
                  echo x > /proc/sys/kernel/domainname; echo x > /sys/kernel/uevent_seqnum; \
                  mknod /tmp/disk b 254 0; head -c 1 /tmp/disk; mknod /dev/disk c 1 3; \
                  head -c 1 /dev/disk; unshare -r true; grep -E 'CapBnd|NoNewPrivs|Seccomp:' /proc/self/status";
    let mut config = bench.bench.shell(script);
    config.user = "root".to_owned();
    let said = bench.run(config).await.1;
    assert!(said.starts_with("0\n"), "{said}");
    for path in ["/usr/x", "/etc/x"] {
        assert!(
            said.contains(&format!("'{path}': Read-only file system")),
            "{said}"
        );
        assert!(!std::path::Path::new(path).exists());
    }
    assert!(said.contains("domainname: Read-only file system"), "{said}");
    for device in ["/tmp/disk", "/dev/disk"] {
        assert!(
            said.contains(&format!("'{device}' for reading: Permission denied")),
            "{said}"
        );
    }
    assert!(
        said.contains("unshare failed: Operation not permitted"),
        "{said}"
    );
    // The thirteen defaults.
    assert!(said.contains("CapBnd:\t00000000a80405fb"), "{said}");
    assert!(said.contains("NoNewPrivs:\t1"), "{said}");
    assert!(said.contains("Seccomp:\t2"), "{said}");
}

#[tokio::test]
async fn capabilities_are_those_of_the_job_within_the_nodes() {
    let Some(allowing) = bench(|config| config.allow_caps.push("net_raw".to_owned())) else {
        return;
    };
    let options = |user: &str, add: &[&str], bench: &ExecBench| {
        let config = serde_json::json!({
            "command": "grep", "args": ["Cap", "/proc/self/status"],
            "cap_add": add, "cap_drop": ["all"],
        });
        TaskConfig {
            user: user.to_owned(),
            ..bench.bench.config(config)
        }
    };
    let config = options("", &["net_raw"], &allowing);
    let said = allowing.run(config).await.1;
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert!(
            said.contains(&format!("{set}:\t0000000000002000")),
            "{said}"
        );
    }
    let refusing = bench(|_| {}).unwrap();
    let config = options("root", &["sys_admin"], &refusing);
    let error = refusing.driver.start(config).await.unwrap_err();
    let StartError::Config(message) = error else {
        panic!("{error}")
    };
    assert!(message.contains("does not allow sys_admin"), "{message}");
}

#[tokio::test]
async fn a_node_can_turn_the_filter_of_system_calls_off() {
    let Some(bench) = bench(|config| config.seccomp = false) else {
        return;
    };
    let said = bench.script("grep Seccomp: /proc/self/status").await;
    assert_eq!(said, "Seccomp:\t0\n");
}

#[tokio::test]
async fn a_task_has_its_directories_and_the_volumes_of_its_group() {
    let Some(bench) = bench(|_| {}) else { return };
    let dirs = bench.bench.dirs();
    let volume = tempfile::tempdir().unwrap();
    fs::set_permissions(volume.path(), fs::Permissions::from_mode(0o777)).unwrap();
    fs::write(dirs.local.join("tool"), "#!/bin/sh\necho tool\n").unwrap();
    fs::write(dirs.secrets.join("token"), "s").unwrap();
    let script = "exec 2>&1; pwd; cat /secrets/token; echo; echo l > /local/l; echo a > /alloc/data/a; \
                  echo v > /data/v; echo v > /fixed/v; echo x > /alloc/logs/x; echo t > /tmp/t; \
                  echo $HOME $USER $PATH; echo > /dev/null; ls /dev";
    let mut config = bench.bench.shell(script);
    config.mounts = [("/data", false), ("fixed", true)]
        .map(|(destination, read_only)| TaskMount {
            source: volume.path().display().to_string(),
            destination: destination.to_owned(),
            read_only,
            is_shared: false,
        })
        .into();
    // A second attempt finds what the first has left in the task's directory.
    bench.run_keeping(config.clone()).await;
    bench.driver.forget(&bench.bench.id(1)).await.unwrap();
    let said = bench.run_keeping(config).await;
    assert_eq!(said.matches("/\ns\n").count(), 2, "{said}");
    assert!(said.starts_with("/\ns\n"), "{said}");
    assert_eq!(fs::read_to_string(dirs.local.join("l")).unwrap(), "l\n");
    assert_eq!(fs::read_to_string(volume.path().join("v")).unwrap(), "v\n");
    assert_eq!(
        fs::read_to_string(dirs.shared.join("data/a")).unwrap(),
        "a\n"
    );
    for path in ["/fixed/v", "/alloc/logs/x"] {
        assert!(
            said.contains(&format!("cannot create {path}: Read-only file system")),
            "{said}"
        );
    }
    assert!(
        said.contains("/nonexistent nobody /usr/local/sbin:"),
        "{said}"
    );
    bench.finish().await;
}

impl ExecBench {
    async fn run_keeping(&self, config: TaskConfig) -> String {
        self.driver.start(config).await.unwrap();
        self.wait().await;
        self.bench.stdout()
    }
}

/// A task may leave anything in its directory before it is restarted.
#[tokio::test]
async fn a_link_in_a_tasks_directory_does_not_lead_a_mount_out_of_it() {
    let Some(bench) = bench(|_| {}) else { return };
    let elsewhere = tempfile::tempdir().unwrap();
    let link = bench.bench.dirs().root.join("run");
    std::os::unix::fs::symlink(elsewhere.path(), &link).unwrap();
    let sys = bench.bench.dirs().root.join("sys");
    std::os::unix::fs::symlink("/", &sys).unwrap();
    let config = bench.bench.shell("true");
    let error = bench.driver.start(config).await.unwrap_err().to_string();
    assert!(error.contains("cannot mount /"), "{error}");
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    bench.finish().await;
}

#[tokio::test]
async fn a_missing_program_is_named_and_the_tasks_own_comes_first() {
    let Some(own) = bench(|_| {}) else { return };
    let tool = own.bench.dirs().local.join("tool");
    fs::write(&tool, "#!/bin/sh\necho own tool\n").unwrap();
    let config = own.bench.config(serde_json::json!({"command": "tool"}));
    assert_eq!(own.run(config).await.1, "own tool\n");

    let missing = bench(|_| {}).unwrap();
    let config = serde_json::json!({"command": "no-such-program"});
    let config = missing.bench.config(config);
    let error = missing.driver.start(config).await.unwrap_err();
    let StartError::Failed {
        message,
        recoverable,
    } = error
    else {
        panic!("{error}")
    };
    assert!(!recoverable, "{message}");
    assert!(
        message.contains("no-such-program: it is neither in the task's directory nor in"),
        "{message}"
    );
    missing.finish().await;
}

#[tokio::test]
async fn a_stop_leaves_no_process_and_a_new_agent_finds_the_task() {
    let Some(mut bench) = bench(|_| {}) else {
        return;
    };
    let script = "trap 'exit 3' INT; sleep 1000 & setsid sleep 1000 & echo ready; wait; wait";
    let config = bench.bench.shell(script);
    bench.driver.start(config).await.unwrap();
    bench.bench.said("ready").await;
    let pid = bench.pid("task");
    let namespace = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/mnt")).unwrap();
    assert_ne!(namespace(&pid.to_string()), namespace("self"));
    bench.driver = Exec::new(
        bench.config.clone(),
        state_dir(&bench.bench),
        &bench.bench.driver,
    );
    let config = bench.bench.shell("exit 99");
    let never = Timestamp::NEVER;
    let recovery = bench.driver.recover(config, never, never).await;
    assert_eq!(recovery, Recovery::Running { note: None });
    assert!(is_alive(pid));
    let id = bench.bench.id(1);
    let grace = Duration::from_secs(5);
    bench.driver.stop(&id, "", grace).await.unwrap();
    assert_eq!(bench.wait().await.code, 3);
    assert!(!is_alive(pid));
    bench.finish().await;
}

#[tokio::test]
async fn a_task_outlives_its_supervisor() {
    let Some(bench) = bench(|_| {}) else { return };
    let config = bench.bench.shell("echo ready; sleep 1000 & wait");
    bench.driver.start(config).await.unwrap();
    bench.bench.said("ready").await;
    let (task, supervisor) = (bench.pid("task"), bench.pid("supervisor"));
    kill(supervisor, "KILL");
    wait_for("the supervisor to die", || {
        (!is_alive(supervisor)).then_some(())
    })
    .await;
    let config = bench.bench.shell("exit 99");
    let never = Timestamp::NEVER;
    let recovery = bench.driver.recover(config, never, never).await;
    assert!(
        matches!(recovery, Recovery::Running { note: Some(_) }),
        "{recovery:?}"
    );
    assert!(is_alive(task));
    let id = bench.bench.id(1);
    bench
        .driver
        .stop(&id, "", Duration::from_millis(10))
        .await
        .unwrap();
    assert!(!is_alive(task));
    bench.finish().await;
}

#[tokio::test]
async fn a_task_joins_the_network_of_its_allocation() {
    let Some(bench) = bench(|_| {}) else { return };
    let mut holder = Command::new("unshare")
        .args(["--net", "sleep", "60"])
        .spawn()
        .unwrap();
    let namespace = PathBuf::from(format!("/proc/{}/ns/net", holder.id()));
    let own = fs::read_link("/proc/self/ns/net").unwrap();
    wait_for("the namespace", || {
        fs::read_link(&namespace)
            .is_ok_and(|found| found != own)
            .then_some(())
    })
    .await;
    let files = tempfile::tempdir().unwrap();
    let (hosts, resolv_conf) = (files.path().join("hosts"), files.path().join("resolv"));
    fs::write(&hosts, "10.0.0.9 the-allocation\n").unwrap();
    fs::write(&resolv_conf, "").unwrap();
    fs::set_permissions(&hosts, fs::Permissions::from_mode(0o644)).unwrap();
    let script = "cat /etc/hosts; grep -c : /proc/net/dev; ls /sys/class/net";
    let mut config = bench
        .bench
        .shell(&format!("exec 2>&1; {script}; echo up; sleep 600"));
    config.network = Some(TaskNetwork {
        namespace,
        hosts,
        resolv_conf,
    });
    bench.driver.start(config).await.unwrap();
    let said = bench.bench.said("up").await;
    let id = bench.bench.id(1);
    // A command, too.
    let (code, stdout, stderr) = run_in((&bench.driver, &id), shell(script), "").await;
    bench
        .driver
        .stop(&id, "SIGKILL", Duration::ZERO)
        .await
        .unwrap();
    bench.wait().await;
    bench.finish().await;
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert_eq!(said, "10.0.0.9 the-allocation\n1\nlo\nup\n");
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert_eq!(stdout, "10.0.0.9 the-allocation\n1\nlo\n");
}

/// Needs cgroup version 2 with its controllers.
#[tokio::test]
async fn a_task_beyond_its_memory_is_ended() {
    let Some(bench) = bench(|config| config.without_limits = false) else {
        return;
    };
    let mut config = bench
        .bench
        .shell("head -c 200M /dev/zero | tail > /dev/null; echo done");
    config.resources.memory_mib = 20;
    config.resources.memory_max = MemoryMax::Mib(30);
    let (exit, said) = bench.run(config).await;
    assert!(exit.oom_killed, "{exit:?}");
    assert_eq!(said, "");
}

/// A machine that cannot limit a task says so, and does not run it.
#[tokio::test]
async fn without_control_groups_the_driver_is_not_there_and_says_why() {
    let raw_exec = Bench::without_cgroups();
    let state_dir = state_dir(&raw_exec);
    let driver = Exec::new(ExecConfig::default(), state_dir.clone(), &raw_exec.driver);
    let found = driver.fingerprint();
    assert!(!found.detected && found.attributes.is_empty());
    let is_root = nix::unistd::geteuid().is_root();
    let reason = if is_root { "cgroup version 2" } else { "root" };
    assert!(found.description.contains(reason), "{found:?}");
    let error = driver.start(raw_exec.shell("true")).await.unwrap_err();
    assert!(error.to_string().contains(reason), "{error}");

    let config = ExecConfig {
        enabled: false,
        ..ExecConfig::default()
    };
    let driver = Exec::new(config, state_dir, &raw_exec.driver);
    assert_eq!(driver.fingerprint().description, "disabled");
    let error = driver.start(raw_exec.shell("true")).await.unwrap_err();
    assert!(error.to_string().contains("not enabled"), "{error}");
}

/// A script whose output tells the namespaces and rights of a process.
const RIGHTS: &str = "id; readlink /proc/self/ns/ipc /proc/self/ns/mnt /proc/self/ns/net /proc/self/ns/pid; \
                      grep -E '^(Cap|NoNewPrivs|Seccomp:|Groups)' /proc/self/status; cat /proc/self/cgroup; pwd; ls /";

#[tokio::test]
async fn a_command_in_a_task_has_the_tasks_namespaces_and_rights_and_no_more() {
    for user in ["", "root"] {
        let Some(bench) = bench(|_| {}) else { return };
        let mut config = bench
            .bench
            .shell(&format!("{RIGHTS}; echo ready; sleep 600"));
        config.user = user.to_owned();
        bench.driver.start(config).await.unwrap();
        let said = bench.bench.said("ready").await;
        let id = bench.bench.id(1);
        let (code, stdout, stderr) = run_in((&bench.driver, &id), shell(RIGHTS), "").await;
        assert_eq!((code, stderr.as_str()), (0, ""));
        assert_eq!(format!("{stdout}ready\n"), said);
        assert!(stdout.contains("NoNewPrivs:\t1\n"), "{stdout}");
        assert!(stdout.contains("Seccomp:\t2\n"), "{stdout}");
        bench
            .driver
            .stop(&id, "SIGKILL", Duration::ZERO)
            .await
            .unwrap();
        bench.wait().await;
        bench.finish().await;
    }
}

#[tokio::test]
async fn a_command_in_a_task_has_its_variables_an_input_and_an_exit_code() {
    let Some(bench) = bench(|_| {}) else { return };
    let config = bench.bench.shell("echo up; sleep 600");
    let script = "cat; echo $NOMAD_TASK_NAME; ls /proc | grep -c '^[0-9]'; echo oops >&2; exit 3";
    let (code, stdout, stderr) = bench.command(config, shell(script)).await;
    assert_eq!((code, stderr.as_str()), (3, "oops\n"));
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(lines[..2], ["typed", "web"]);
    // The task's shell and sleep; the command's shell, ls and grep.
    assert!(lines[2].parse::<u32>().unwrap() <= 5, "{stdout}");
}

#[tokio::test]
async fn a_command_in_a_task_that_is_no_program_or_is_killed_says_so() {
    for (line, want) in [
        (&["no-such-program"][..], 127),
        (&["/etc/passwd"], 126),
        (&["/bin/sh", "-c", "kill -TERM $$"], 128 + 15),
    ] {
        let Some(bench) = bench(|_| {}) else { return };
        let config = bench.bench.shell("echo up; sleep 600");
        let command = ExecCommand {
            line: line.iter().map(|word| (*word).to_owned()).collect(),
            terminal: None,
        };
        let (code, _, stderr) = bench.command(config, command).await;
        assert_eq!(code, want, "{stderr}");
    }
}

#[tokio::test]
async fn a_command_in_a_task_can_have_a_terminal_with_job_control() {
    let Some(bench) = bench(|_| {}) else { return };
    let config = bench.bench.shell("echo up; sleep 600");
    let command = ExecCommand {
        terminal: Some(TerminalSize {
            rows: 33,
            columns: 101,
        }),
        // A shell with jobs fails without a group that has the terminal.
        ..shell("set -m; stty size; : </dev/tty && cat && exit 4")
    };
    let (code, stdout, _) = bench.command(config, command).await;
    assert!(stdout.contains("33 101"), "{stdout:?}");
    assert!(!stdout.contains("tty"), "{stdout:?}");
    assert!(stdout.matches("typed").count() >= 2, "{stdout:?}");
    assert_eq!(code, 4);
}

#[tokio::test]
async fn a_command_in_a_task_dies_with_its_caller_and_with_the_task() {
    for ends_with_caller in [true, false] {
        let Some(bench) = bench(|_| {}) else { return };
        let config = bench.bench.shell("echo up; sleep 600");
        bench.driver.start(config).await.unwrap();
        bench.bench.said("up").await;
        let id = bench.bench.id(1);
        let (mut caller, io) = ends();
        let command = shell("trap '' HUP TERM INT; sleep 601 & sleep 602; true");
        let running = bench.driver.exec(&id, command, io);
        let ending = async {
            let sleeps = |pid: &i32| {
                let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                line.contains("sleep\u{0}601") || line.contains("sleep\u{0}602")
            };
            let found = wait_for("the command's processes", || {
                let found = bench.bench.processes().into_iter().filter(sleeps);
                Some(found.collect::<Vec<i32>>()).filter(|found| found.len() == 2)
            })
            .await;
            if ends_with_caller {
                caller.output.close();
            } else {
                bench
                    .driver
                    .stop(&id, "SIGKILL", Duration::ZERO)
                    .await
                    .unwrap();
            }
            found
        };
        let both = async { tokio::join!(running, ending) };
        let (result, found) = tokio::time::timeout(LIMIT, both).await.unwrap();
        assert_eq!(result.is_err(), ends_with_caller, "{result:?}");
        wait_for("the command to be gone", || {
            (!found.iter().any(|pid| is_alive(*pid))).then_some(())
        })
        .await;
        if ends_with_caller {
            assert!(is_alive(bench.pid("task")));
            bench
                .driver
                .stop(&id, "SIGKILL", Duration::ZERO)
                .await
                .unwrap();
        }
        bench.wait().await;
        bench.finish().await;
    }
}

/// A task's root that holds the agent's program open, as `/proc/<pid>/exe` of a process of its own, must not
/// write to it once it has ended.
#[tokio::test]
async fn the_agents_program_cannot_be_written_through_the_processes_of_a_task() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("agent");
    let raw = Bench::with(|settings| {
        fs::copy(&settings.supervisor.program, &program).unwrap();
        settings.supervisor.program.clone_from(&program);
    });
    let Some(bench) = isolated(raw, |_| {}) else {
        return;
    };
    let mut config = bench.bench.shell("echo up; sleep 600");
    config.user = "root".to_owned();
    bench.driver.start(config).await.unwrap();
    bench.bench.said("up").await;
    let held = fs::File::open(format!("/proc/{}/exe", bench.pid("supervisor"))).unwrap();
    let id = bench.bench.id(1);
    bench
        .driver
        .stop(&id, "SIGKILL", Duration::ZERO)
        .await
        .unwrap();
    bench.wait().await;
    bench.finish().await;
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&held));
    let refused = fs::OpenOptions::new().write(true).open(path).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(nix::libc::EROFS), "{refused}");
    // The file itself is writable.
    fs::OpenOptions::new().write(true).open(&program).unwrap();
}
