//! Test bench: a driver with a node id and directories of its own, whose containers are removed when it
//! is dropped.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bollard::query_parameters::{
    CreateImageOptionsBuilder, ListContainersOptionsBuilder, RemoveContainerOptionsBuilder,
    RemoveImageOptions,
};
use bollard::{API_DEFAULT_VERSION, body_full};
use docker_driver::{Docker, EngineConfig, EngineKind, Settings};
use futures::StreamExt;
use model::{AllocId, ExitResult, Timestamp};
use task_drivers::log_files::{self, LogStream};
use task_drivers::{
    AllocDirs, Driver, MachineSize, Recovery, StartError, TaskConfig, TaskDirs, TaskId,
};
use tokio::sync::{OnceCell, mpsc};
use tokio::time::{sleep, timeout};

pub(crate) const SOCKET: &str = "/var/run/docker.sock";
/// The image of these tests: a shell.
pub(crate) const IMAGE: &str = "kafila-driver-test:1";
/// Timeout of these tests; an idle machine takes seconds.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);
const TASK: &str = "web";
const LABEL: &str = "io.kafila.node_id";

pub(crate) struct Bench {
    folder: tempfile::TempDir,
    /// Podman's process, if the bench is of it.
    service: Option<Child>,
    pub(crate) alloc_id: AllocId,
    pub(crate) settings: Settings,
    pub(crate) driver: Docker,
    pub(crate) client: bollard::Docker,
    /// Names of images to remove with the bench.
    pub(crate) images: Vec<String>,
}

impl Bench {
    /// Returns `None`, after a notice, on a machine without an engine.
    pub(crate) async fn new() -> Option<Self> {
        let client = match connect(Path::new(SOCKET)).await {
            Ok(client) => client,
            Err(error) => {
                let is_required = std::env::var("KAFILA_REQUIRE_CONTAINERS").is_ok();
                assert!(!is_required, "no Docker Engine: {error}");
                eprintln!("skipped: no Docker Engine at {SOCKET}: {error}");
                return None;
            }
        };
        static IMPORTED: OnceCell<()> = OnceCell::const_new();
        IMPORTED.get_or_init(|| import_image(&client)).await;
        let folder = tempfile::tempdir().unwrap();
        Some(Self::of(folder, client, None, |_| {}))
    }

    /// A bench of podman, with a service of its own. Returns `None`, after a notice, on a machine without.
    pub(crate) async fn podman() -> Option<Self> {
        Self::podman_with(None).await
    }

    /// `registry`: address of a registry without TLS.
    pub(crate) async fn podman_with(registry: Option<&str>) -> Option<Self> {
        let found = Command::new("podman").arg("--version").output();
        if !found.is_ok_and(|found| found.status.success()) {
            let is_required = std::env::var("KAFILA_REQUIRE_PODMAN").is_ok();
            assert!(!is_required, "no podman");
            eprintln!("skipped: no podman");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("podman.sock");
        if let Some(registry) = registry {
            let text = format!("[[registry]]\nlocation = \"{registry}\"\ninsecure = true\n");
            fs::write(socket.with_file_name(REGISTRIES), text).unwrap();
        }
        let service = serve_podman(&socket);
        let client = until_connected(&socket).await;
        static IMPORTED: OnceCell<()> = OnceCell::const_new();
        IMPORTED.get_or_init(|| import_image(&client)).await;
        let edit = |settings: &mut Settings| {
            settings.engine_kind = EngineKind::Podman;
            settings.config = EngineConfig {
                socket,
                ..EngineConfig::podman()
            };
        };
        Some(Self::of(folder, client, Some(service), edit))
    }

    /// Ends podman's service and starts another.
    pub(crate) async fn restart_service(&mut self) {
        let socket = &self.settings.config.socket;
        end(self.service.take());
        let _ = fs::remove_file(socket);
        self.service = Some(serve_podman(socket));
        self.client = until_connected(socket).await;
    }

    fn of(
        folder: tempfile::TempDir,
        client: bollard::Docker,
        service: Option<Child>,
        edit: impl FnOnce(&mut Settings),
    ) -> Self {
        let alloc_id = AllocId::from_random(rand::random());
        let node_id = format!("test-{:x}", rand::random::<u64>());
        let mut settings = Settings::new(folder.path().join("state"), node_id);
        edit(&mut settings);
        let bench = Self {
            folder,
            service,
            alloc_id,
            driver: Docker::new(settings.clone()),
            settings,
            client,
            images: Vec::new(),
        };
        let dirs = bench.dirs();
        for directory in [&dirs.logs, &dirs.local, &dirs.secrets, &dirs.tmp] {
            fs::create_dir_all(directory).unwrap();
        }
        bench
    }

    /// Replaces the driver, as a restart of the agent does.
    pub(crate) fn restart_agent(&mut self) {
        self.driver = Docker::new(self.settings.clone());
    }

    /// Makes an attempt's record one of an earlier boot of the machine.
    pub(crate) fn pretend_reboot(&self, attempt: u32) {
        let state = &self.settings.state_dir;
        let attempts = state.join(self.alloc_id.to_string()).join(TASK);
        let file = attempts.join(attempt.to_string()).join("container.json");
        let text = fs::read_to_string(&file).unwrap();
        let text = text.replace(&task_drivers::boot_id(), "earlier");
        assert!(text.contains("earlier"), "{text}");
        fs::write(&file, text).unwrap();
    }

    pub(crate) fn dirs(&self) -> TaskDirs {
        AllocDirs::new(self.folder.path(), self.alloc_id).task(TASK)
    }

    pub(crate) fn id(&self, attempt: u32) -> TaskId {
        TaskId {
            alloc_id: self.alloc_id,
            task: TASK.to_owned(),
            attempt,
        }
    }

    pub(crate) fn name(&self) -> String {
        format!("{TASK}-{}", self.alloc_id)
    }

    pub(crate) fn shell(&self, attempt: u32, script: &str) -> TaskConfig {
        let mut task = TaskConfig::new(self.id(attempt));
        let config =
            serde_json::json!({"image": IMAGE, "command": "/bin/sh", "args": ["-c", script]});
        task.config = config.as_object().unwrap().clone();
        task.env = [("GREETING".to_owned(), "hello".to_owned())].into();
        task.dirs = Some(self.dirs());
        task.resources.cpu_mhz = 100;
        task.resources.memory_mib = 64;
        task.machine = MachineSize {
            cpu_mhz: 4_000,
            cores: 2,
        };
        task.logs.max_files = 10;
        task.logs.max_file_size_mib = 10;
        task
    }

    pub(crate) async fn start(&self, attempt: u32, script: &str) -> Result<(), StartError> {
        let started = self.driver.start(self.shell(attempt, script));
        timeout(LIMIT, started).await.expect("the start ends")
    }

    pub(crate) async fn recover(&self, attempt: u32) -> Recovery {
        let (task, now) = (self.shell(attempt, ""), Timestamp::default());
        timeout(LIMIT, self.driver.recover(task, now, now))
            .await
            .expect("the recovery ends")
    }

    pub(crate) async fn wait(&self, attempt: u32) -> ExitResult {
        let (messages, _keep) = mpsc::channel(16);
        let id = self.id(attempt);
        let waited = timeout(LIMIT, self.driver.wait(&id, &messages)).await;
        waited.expect("the task ends").unwrap()
    }

    pub(crate) async fn stop(&self, attempt: u32, signal: &str, grace: Duration) {
        let id = self.id(attempt);
        timeout(LIMIT, self.driver.stop(&id, signal, grace))
            .await
            .expect("the stop ends")
            .unwrap();
    }

    /// Runs the wait, which copies the output, until the output contains `text`.
    pub(crate) async fn wait_for_output(&self, attempt: u32, text: &str) {
        let (messages, _keep) = mpsc::channel(16);
        let id = self.id(attempt);
        let waiting = self.driver.wait(&id, &messages);
        let found = async {
            while !self.output(LogStream::Stdout).contains(text) {
                sleep(Duration::from_millis(20)).await;
            }
        };
        let found = timeout(LIMIT, async {
            tokio::select! {
                biased;
                () = found => true,
                _ = waiting => self.output(LogStream::Stdout).contains(text),
            }
        });
        assert!(found.await.expect("the output comes"), "no {text:?}");
    }

    pub(crate) fn output(&self, stream: LogStream) -> String {
        let logs = self.dirs().logs;
        let numbers = log_files::numbers(&logs, TASK, stream).unwrap();
        let files = numbers.into_iter();
        files
            .map(|number| fs::read_to_string(log_files::path(&logs, TASK, stream, number)).unwrap())
            .collect()
    }

    /// Returns the names of this bench's containers.
    pub(crate) async fn containers(&self) -> Vec<String> {
        list(&self.client, &self.settings.node_id).await
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let node_id = self.settings.node_id.clone();
        let socket = self.settings.config.socket.clone();
        let images = std::mem::take(&mut self.images);
        // A thread of its own: this one may be a runtime's, or panicking.
        let removed = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let client = connect(&socket).await.unwrap();
                for name in list(&client, &node_id).await {
                    let options = RemoveContainerOptionsBuilder::default().force(true).build();
                    let _ = client.remove_container(&name, Some(options)).await;
                }
                for image in images {
                    let removed = client.remove_image(&image, None::<RemoveImageOptions>, None);
                    let _ = removed.await;
                }
            });
        });
        let _ = removed.join();
        end(self.service.take());
    }
}

/// Limits of containers, because podman's own are above those of a test machine that is a container itself.
const PODMAN_CONFIG: &str = r#"
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
"#;

/// The file of podman's registries, beside its socket, for a bench with one.
const REGISTRIES: &str = "registries.conf";

/// Starts podman's service at a socket.
fn serve_podman(socket: &Path) -> Child {
    let config = socket.with_file_name("containers.conf");
    fs::write(&config, PODMAN_CONFIG).unwrap();
    let mut command = Command::new("podman");
    let registries = socket.with_file_name(REGISTRIES);
    if registries.exists() {
        command.env("CONTAINERS_REGISTRIES_CONF", registries);
    }
    command
        .env("CONTAINERS_CONF", config)
        // Its monitors write a file `oom` there for a task without memory.
        .current_dir(socket.parent().unwrap())
        .args(["system", "service", "--time=0"])
        .arg(format!("unix://{}", socket.display()))
        .stdin(Stdio::null())
        .spawn()
        .unwrap()
}

fn end(service: Option<Child>) {
    if let Some(mut service) = service {
        let _ = service.kill();
        let _ = service.wait();
    }
}

async fn until_connected(socket: &Path) -> bollard::Docker {
    let connected = async {
        loop {
            if let Ok(client) = connect(socket).await {
                return client;
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(LIMIT, connected).await.expect("podman answers")
}

async fn connect(socket: &Path) -> Result<bollard::Docker, bollard::errors::Error> {
    bollard::Docker::connect_with_unix(&socket.display().to_string(), 60, API_DEFAULT_VERSION)?
        .negotiate_version()
        .await
}

async fn list(client: &bollard::Docker, node_id: &str) -> Vec<String> {
    let label = format!("{LABEL}={node_id}");
    let options = ListContainersOptionsBuilder::default()
        .all(true)
        .filters(&HashMap::from([("label", vec![label])]))
        .build();
    let found = client.list_containers(Some(options)).await.unwrap();
    let names = found
        .into_iter()
        .flat_map(|it| it.names.unwrap_or_default());
    names
        .map(|name| name.trim_start_matches('/').to_owned())
        .collect()
}

/// Makes the image, of this machine's shell, `sleep` and their libraries.
async fn import_image(client: &bollard::Docker) {
    let options = CreateImageOptionsBuilder::default()
        .from_src("-")
        .repo(IMAGE)
        .build();
    let earlier = client.inspect_image(IMAGE).await.ok();
    let body = body_full(archive().into());
    let mut steps = Box::pin(client.create_image(Some(options), Some(body), None));
    while let Some(step) = steps.next().await {
        step.unwrap();
    }
    // Without its name it would stay on the machine for ever.
    if let Some(earlier) = earlier.and_then(|image| image.id) {
        let _ = client
            .remove_image(&earlier, None::<RemoveImageOptions>, None)
            .await;
    }
}

pub(crate) fn archive() -> Vec<u8> {
    let mut files = vec![PathBuf::from("/bin/sh"), PathBuf::from("/bin/sleep")];
    for program in files.clone() {
        files.extend(libraries(&program));
    }
    files.sort();
    files.dedup();
    let relative = files.iter().map(|path| path.strip_prefix("/").unwrap());
    let made = Command::new("tar")
        .args(["--create", "--dereference", "--file=-", "--directory=/"])
        .args(relative)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    made.stdout
}

fn libraries(program: &Path) -> Vec<PathBuf> {
    let listed = Command::new("ldd").arg(program).output().unwrap();
    let text = String::from_utf8(listed.stdout).unwrap();
    let words = text.split_whitespace().filter(|word| word.starts_with('/'));
    words.map(PathBuf::from).collect()
}
