//! The jobs of a run: of each driver steady tasks and tasks that end again and again, and a group with a network
//! of its own.

use std::path::Path;

/// In the command line of every task.
pub const MARK: &str = "kafila-kill-rounds";
/// The image of the docker tasks: a shell, `sleep` and `flock`.
pub const IMAGE: &str = "kafila-kill-rounds:1";

/// Files in the directory of the locks: tasks that ran twice at the same time, and all starts.
pub const TWICE: &str = "twice";
pub const STARTS: &str = "starts";

/// A job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    pub name: &'static str,
    /// Allocations.
    pub count: usize,
    /// Drivers of its tasks.
    pub drivers: &'static [&'static str],
    /// Its tasks end only when they are killed.
    pub is_steady: bool,
    /// Its group has a network of its own, with a port.
    pub has_network: bool,
}

impl Job {
    /// Returns its processes while all of it runs.
    pub fn processes(&self) -> usize {
        self.count * self.drivers.len()
    }

    pub fn has_driver(&self, driver: &str) -> bool {
        self.drivers.contains(&driver)
    }
}

const fn steady(name: &'static str, driver: &'static [&'static str]) -> Job {
    Job {
        name,
        count: 2,
        drivers: driver,
        is_steady: true,
        has_network: false,
    }
}

pub const JOBS: [Job; 8] = [
    steady("raw", &["raw_exec"]),
    steady("exec", &["exec"]),
    steady("docker", &["docker"]),
    ending("raw-ending", &["raw_exec"]),
    ending("exec-ending", &["exec"]),
    ending("docker-ending", &["docker"]),
    Job {
        has_network: true,
        count: 1,
        ..steady("net", &["raw_exec", "exec"])
    },
    Job {
        has_network: true,
        count: 1,
        ..steady("net-docker", &["exec", "docker"])
    },
];

const fn ending(name: &'static str, driver: &'static [&'static str]) -> Job {
    Job {
        count: 1,
        is_steady: false,
        ..steady(name, driver)
    }
}

/// Holds a lock of the task for as long as it and its children live; a second process of the task finds it
/// taken and says so.
const SCRIPT: &str = r#": kafila-kill-rounds; exec 9>>"$LOCKS/$NOMAD_ALLOC_ID.$NOMAD_TASK_NAME"; flock -n 9 || echo "$NOMAD_JOB_NAME $NOMAD_TASK_NAME $NOMAD_ALLOC_ID" >> "$LOCKS/twice"; echo "$NOMAD_JOB_NAME" >> "$LOCKS/starts"; "#;
const STEADY: &str = "while :; do sleep 0.3; done";
/// Ends after a second, with a failure.
const ENDING: &str = "for i in 1 2 3 4; do sleep 0.3; done; exit 1";

/// Returns a job file. `locks`: the directory of the locks on the node, which is its host volume `locks`.
pub fn file(job: &Job, locks: &Path) -> String {
    let tasks: String = job
        .drivers
        .iter()
        .map(|driver| task(job, driver, locks))
        .collect();
    let network = match job.has_network {
        true => "network {\n mode = \"bridge\"\n port \"http\" { to = 8080 }\n }",
        false => "",
    };
    format!(
        r#"job "{}" {{
  update {{ max_parallel = 0 }}
  group "group" {{
    count = {}
    {network}
    volume "locks" {{
      type   = "host"
      source = "locks"
    }}
    restart {{
      attempts = 10000
      interval = "24h"
      delay    = "200ms"
      mode     = "delay"
    }}
    reschedule {{
      delay          = "5s"
      delay_function = "constant"
      unlimited      = true
    }}
{tasks}  }}
}}
"#,
        job.name, job.count
    )
}

fn task(job: &Job, driver: &str, locks: &Path) -> String {
    let script = match job.is_steady {
        true => STEADY,
        false => ENDING,
    };
    let script = format!("{SCRIPT}{script}")
        .replace('\\', "\\\\")
        .replace('"', "\\\"");
    let (image, mount, locks) = match driver {
        "raw_exec" => (String::new(), "", locks.display().to_string()),
        driver => {
            let image = match driver {
                "docker" => format!("image = \"{IMAGE}\"\n"),
                _ => String::new(),
            };
            let mount = "volume_mount {\n volume = \"locks\"\n destination = \"/locks\"\n }";
            (image, mount, "/locks".to_owned())
        }
    };
    // The run's engine has no network of its own.
    let network_mode = match driver {
        "docker" if !job.has_network => "network_mode = \"none\"\n",
        _ => "",
    };
    format!(
        r#"    task "{driver}" {{
      driver = "{driver}"
      kill_timeout = "1s"
      config {{
        {image}{network_mode}command = "/bin/sh"
        args = ["-c", "{script}"]
      }}
      env {{
        LOCKS = "{locks}"
        MARK  = "{MARK}"
      }}
      {mount}
      logs {{
        max_files     = 2
        max_file_size = 1
      }}
      resources {{
        cpu    = 20
        memory = 24
      }}
    }}
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_hold_the_lock_of_their_task() {
        assert!(SCRIPT.contains(MARK));
        for job in JOBS {
            let text = file(&job, Path::new("/l"));
            assert_eq!(
                text.matches("flock -n 9").count(),
                job.drivers.len(),
                "{text}"
            );
        }
        let raw = file(&JOBS[0], Path::new("/l"));
        assert!(
            raw.contains("LOCKS = \"/l\"") && !raw.contains("volume_mount"),
            "{raw}"
        );
    }
}
