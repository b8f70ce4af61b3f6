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

/// Prints the version of the installed package.
const PACKAGE_VERSION: &str = "dpkg-query --show --showformat='${Version}' kafila";

/// Runs the package of `first` from its installation to its removal. The upgrade is to a package of `second` with a
/// higher version; without `second`, to one of the same program. Returns the versions of the agent before and after it.
///
/// # Errors
/// The first step that fails, with the end of the machine's log.
pub async fn run_package(
    stack: &Stack,
    first: &Path,
    second: Option<&Path>,
) -> Result<[String; 2]> {
    let machine = Machine::start(stack, first, second).await?;
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
    /// The packages are of two builds.
    has_second: bool,
}

impl Machine {
    async fn start(stack: &Stack, first: &Path, second: Option<&Path>) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        for (binary, revision) in [(first, "1"), (second.unwrap_or(first), "2")] {
            build_package(binary, revision, folder.path()).await?;
        }
        stack.build_machine(folder.path()).await?;

        let (name, image) = (stack.machine(), stack.machine_image());
        let mut words = vec!["run", "-d", "--name", &name];
        words.extend(RIGHTS);
        words.push(&image);
        docker(&words).await?;
        let machine = Self {
            container: name,
            has_second: second.is_some(),
        };
        eventually(TIMEOUT, || async {
            // `degraded`: a unit of Debian's has failed.
            machine.shell("systemctl is-system-running").await.map(drop)
        })
        .await?;
        Ok(machine)
    }

    async fn steps(&self) -> Result<[String; 2]> {
        self.shell("apt-get install -y --no-install-recommends /root/kafila-1.deb")
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
        let versions = self.upgrade(&command).await?;
        ensure!(tasks == self.tasks().await?, "tasks were restarted");
        for unit in UNITS {
            self.stop(unit).await?;
        }
        ensure!(tasks == self.tasks().await?, "tasks ended with the agent");
        self.start_again_and_remove(&command, &tasks).await?;
        Ok(versions)
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

    /// The package's own scripts restart what runs. Returns the versions of the agent before and after.
    async fn upgrade(&self, command: &str) -> Result<[String; 2]> {
        let agent = self.process("client-node").await?;
        let version = self.agent_version().await?;
        let package = self.shell(PACKAGE_VERSION).await?;
        // Settings that were changed are kept.
        self.shell("dpkg --force-confold -i /root/kafila-2.deb")
            .await?;
        let new_package = self.shell(PACKAGE_VERSION).await?;
        let is_higher = format!("dpkg --compare-versions {new_package} gt {package}");
        self.shell(&is_higher)
            .await
            .with_context(|| format!("{package} was upgraded to {new_package}"))?;
        ensure!(
            agent != self.process("client-node").await?,
            "the upgrade did not restart the agent"
        );
        let new_version = self.agent_version().await?;
        ensure!(
            !self.has_second || new_version != version,
            "the agent is still {new_version}"
        );
        for unit in UNITS {
            let state = self.state(unit).await?;
            ensure!(state == "enabled active", "{unit} is {state}");
        }
        self.shell(command).await?;
        Ok([version, new_version])
    }

    /// Returns what the program of the running agent prints as its version.
    async fn agent_version(&self) -> Result<String> {
        let process = self.process("client-node").await?;
        self.shell(&format!("/proc/{process}/exe version")).await
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

/// Builds the package of a program as `kafila-<revision>.deb` in `folder`.
async fn build_package(binary: &Path, revision: &str, folder: &Path) -> Result<()> {
    let binary = binary.to_str().context("the binary's path is no text")?;
    let context = folder.to_str().context("a path is no text")?;
    let environment = [
        ("KAFILA_DEB_COMPRESSION".to_owned(), "none".to_owned()),
        ("KAFILA_DEB_REVISION".to_owned(), revision.to_owned()),
    ];
    let package = run("scripts/build-deb", &[binary, context], &environment).await?;
    std::fs::rename(package, folder.join(format!("kafila-{revision}.deb")))?;
    Ok(())
}
