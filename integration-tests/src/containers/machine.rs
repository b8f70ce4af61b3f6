//! A machine with systemd, in a container: the Debian package is installed, set up by the commands of
//! docs/operations.md, upgraded, stopped and removed, while jobs run.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::command::{docker, repository, run};
use super::stack::Stack;
use crate::api::eventually;
use crate::documents::shell_block;

const TIMEOUT: Duration = Duration::from_secs(60);

/// The units of the package; the agent last.
const UNITS: [&str; 7] = [
    "api-gateway",
    "eval-broker",
    "scheduler-worker",
    "plan-applier",
    "deployment-watcher",
    "cluster-controller",
    "client-node",
];

/// What systemd needs. `--privileged` would do as well, but not on machines that lack a capability themselves.
const RIGHTS: [&str; 9] = [
    "--cap-add=ALL",
    "--cap-drop=SYS_RESOURCE",
    "--security-opt=seccomp=unconfined",
    "--security-opt=apparmor=unconfined",
    "--cgroupns=host",
    "--volume=/sys/fs/cgroup:/sys/fs/cgroup:rw",
    "--tmpfs=/run",
    "--tmpfs=/run/lock",
    "--tmpfs=/tmp:exec",
];

/// The script of the tasks: writes to its own directory and to the machine's, then counts.
const SCRIPT: &str = "echo kept > \\\"$NOMAD_TASK_DIR/file\\\"; touch /usr/local/$NOMAD_JOB_NAME; \
                      echo started; while :; do sleep 0.2; done";

/// The pattern of the tasks' processes: their shells, not their supervisors.
const TASKS: &str = "^/bin/sh -c echo kept";

/// Runs the package from its installation to its removal.
///
/// # Errors
/// The first step that fails, with the end of the machine's log.
pub async fn run_package(stack: &Stack, binary: &Path) -> Result<()> {
    let machine = Machine::start(stack, binary).await?;
    let result = machine.steps().await;
    if result.is_err() {
        let log = machine.shell("journalctl --no-pager -n 60").await;
        eprintln!("{}", log.unwrap_or_default());
    }
    stack.remove_machine().await?;
    result
}

struct Machine {
    container: String,
}

impl Machine {
    async fn start(stack: &Stack, binary: &Path) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let context = folder.path().to_str().context("a path is no text")?;
        let binary = binary.to_str().context("the binary's path is no text")?;
        let uncompressed = [("KAFILA_DEB_COMPRESSION".to_owned(), "none".to_owned())];
        let package = run("scripts/build-deb", &[binary, context], &uncompressed).await?;
        std::fs::rename(package, folder.path().join("kafila.deb"))?;
        stack.build_machine(folder.path()).await?;

        let (name, image) = (stack.machine(), stack.machine_image());
        let mut words = vec!["run", "-d", "--name", &name];
        words.extend(RIGHTS);
        words.push(&image);
        docker(&words).await?;
        let machine = Self { container: name };
        eventually(TIMEOUT, || async {
            // `degraded`: a unit of Debian's has failed.
            machine.shell("systemctl is-system-running").await.map(drop)
        })
        .await?;
        Ok(machine)
    }

    async fn steps(&self) -> Result<()> {
        self.shell("apt-get install -y --no-install-recommends /root/kafila.deb")
            .await?;
        for unit in UNITS {
            let state = self.state(unit).await?;
            ensure!(state == "disabled inactive", "{unit} is {state}");
        }
        let document = repository().join("docs/operations.md");
        for words in ["# certificates and settings", "# etcd, then"] {
            self.shell(&shell_block(&document, words)?).await?;
        }
        let command = shell_block(&document, "# the command")?;
        eventually(TIMEOUT, || async {
            let said = self.shell(&command).await?;
            ensure!(said.contains("ready"), "no node is ready: {said}");
            Ok(())
        })
        .await?;

        // Machines without control groups of version 2 reserve memory of `exec`, and do not limit it.
        self.shell(
            "printf '[drivers.exec]\\nwithout_limits = true\\n' >> /etc/kafila/client-node.toml
             systemctl restart kafila-client-node",
        )
        .await?;
        for driver in ["raw_exec", "exec"] {
            self.run_job(&command, driver).await?;
        }
        // `raw_exec` may write to the machine; the task of `exec` has the machine's programs read-only.
        self.shell("test -e /usr/local/raw_exec && test ! -e /usr/local/exec")
            .await?;
        let tasks = self.tasks().await?;
        ensure!(tasks.lines().count() == 2, "tasks: {tasks:?}");

        self.shell("systemctl restart kafila-client-node").await?;
        self.upgrade(&command).await?;
        ensure!(tasks == self.tasks().await?, "tasks were restarted");
        for unit in UNITS {
            self.stop(unit).await?;
        }
        ensure!(tasks == self.tasks().await?, "tasks ended with the agent");
        self.start_again_and_remove(&command, &tasks).await
    }

    async fn run_job(&self, command: &str, driver: &str) -> Result<()> {
        let job = format!(
            "job \"{driver}\" {{\n group \"group\" {{\n task \"task\" {{\n driver = \"{driver}\"\n config {{\n \
             command = \"/bin/sh\"\n args = [\"-c\", \"{SCRIPT}\"]\n }}\n \
             resources {{\n cpu = 50\n memory = 32\n }}\n }}\n }}\n}}\n"
        );
        let script = format!(
            "{command}\ncat > /root/{driver}.hcl <<'END'\n{job}END\nkafila job run /root/{driver}.hcl"
        );
        self.shell(&script).await?;
        let logs = format!("{command}\nkafila logs -job {driver}");
        let said = self.shell(&logs).await?;
        ensure!(said.contains("started"), "the task's output: {said}");
        Ok(())
    }

    /// The package's own scripts restart what runs.
    async fn upgrade(&self, command: &str) -> Result<()> {
        let agent = self.process("client-node").await?;
        self.shell("dpkg -i /root/kafila.deb").await?;
        ensure!(
            agent != self.process("client-node").await?,
            "the upgrade did not restart the agent"
        );
        for unit in UNITS {
            let state = self.state(unit).await?;
            ensure!(state == "enabled active", "{unit} is {state}");
        }
        self.shell(command).await.map(drop)
    }

    /// A stop drains: the unit ends by itself, with success, before systemd kills it.
    async fn stop(&self, unit: &str) -> Result<()> {
        let show = format!(
            "systemctl stop kafila-{unit}
             systemctl show --value -p Result,ExecMainStatus kafila-{unit}
             journalctl --no-pager -o cat -n 20 -u kafila-{unit}"
        );
        let said = self.shell(&show).await?;
        let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
        let (result, code) = (lines.next(), lines.next());
        let facts = [result, code].map(Option::unwrap_or_default);
        ensure!(
            facts.contains(&"success") && facts.contains(&"0"),
            "{unit} ended with {facts:?}"
        );
        ensure!(
            said.contains("draining") && said.contains("stopped"),
            "{unit} did not drain: {said}"
        );
        Ok(())
    }

    /// Starts everything as at a boot, and removes the package: its units are stopped, tasks go on.
    async fn start_again_and_remove(&self, command: &str, tasks: &str) -> Result<()> {
        self.shell("systemctl start 'kafila-*.service' --all")
            .await?;
        for unit in UNITS {
            let start = format!("systemctl start kafila-{unit}");
            self.shell(&start).await?;
        }
        self.shell(command).await?;
        eventually(TIMEOUT, || async {
            let status = format!("{command}\nkafila job status raw_exec");
            let said = self.shell(&status).await?;
            ensure!(said.contains("running"), "{said}");
            ensure!(tasks == self.tasks().await?, "tasks were replaced");
            Ok(())
        })
        .await?;
        self.shell("dpkg --remove kafila").await?;
        let left = self.shell("pgrep -af '^/usr/bin/kafila' || true").await?;
        ensure!(left.is_empty(), "still running: {left}");
        ensure!(tasks == self.tasks().await?, "tasks ended with the package");
        self.shell("test -e /etc/kafila/client-node.toml && test -d /var/lib/kafila/client && test ! -e /usr/bin/kafila")
            .await
            .map(drop)
    }

    /// Returns whether a unit is enabled, and whether it is active.
    async fn state(&self, unit: &str) -> Result<String> {
        let ask = format!(
            "echo $(systemctl is-enabled kafila-{unit} || true) $(systemctl is-active kafila-{unit} || true)"
        );
        self.shell(&ask).await
    }

    async fn process(&self, unit: &str) -> Result<String> {
        let ask = format!("systemctl show --value -p MainPID kafila-{unit}");
        self.shell(&ask).await
    }

    /// Returns the process ids of the tasks.
    async fn tasks(&self) -> Result<String> {
        self.shell(&format!("pgrep -f '{TASKS}' | sort")).await
    }

    async fn shell(&self, script: &str) -> Result<String> {
        docker(&["exec", &self.container, "bash", "-ec", script]).await
    }
}
