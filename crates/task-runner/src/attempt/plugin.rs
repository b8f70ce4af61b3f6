//! The plugin of storage that a task provides: its directories in the task, and its supervision.

use std::path::{Path, PathBuf};
use std::time::Duration;

use csi_node::layout::SOCKET;
use csi_node::{PluginEvent, PluginPaths, Storage, TaskKey, supervision};
use lifecycle::{Event, StartFailure};
use model::{CsiPluginTask, Task, TaskGroup};
use task_drivers::driver::TaskMount;
use task_drivers::{Driver, MountSupport};
use tokio::sync::mpsc;
use tracing::warn;

use super::{Attempt, hook, invalid};

/// The variable with the socket's address. Source: Nomad's public documentation.
const ENDPOINT: &str = "CSI_ENDPOINT";
/// Kill timeout of a plugin that has not become healthy.
const GRACE: Duration = Duration::from_secs(5);

/// A plugin's directories.
pub(super) struct Directories {
    socket_dir: PathBuf,
    paths: PluginPaths,
    pub(super) mounts: Vec<TaskMount>,
    /// The socket's path as the task sees it.
    pub(super) endpoint: (String, String),
}

impl Attempt {
    /// Returns the directories of the task's plugin; `None`: it provides none.
    pub(super) fn plugin_directories(
        &self,
        group: &TaskGroup,
        task: &Task,
        driver: &dyn Driver,
    ) -> Result<Option<Directories>, StartFailure> {
        let Some(plugin) = &task.csi_plugin else {
            return Ok(None);
        };
        // A node without storage simulates its tasks.
        let Some(storage) = &self.context.storage else {
            return Ok(None);
        };
        let plugins = group.tasks.iter().filter(|task| task.csi_plugin.is_some());
        let position = plugins.map(|task| task.name.as_str());
        let position = position.take_while(|name| *name != task.name).count();
        let socket_dir = storage.layout.socket_dir(self.id.alloc_id, position);
        let volumes = storage.layout.volumes_of(&plugin.id);
        directories(plugin, socket_dir, volumes, driver).map(Some)
    }

    /// Creates the plugin's directories before the task starts.
    pub(super) async fn create_plugin_directories(&self) -> Result<(), StartFailure> {
        let (group, task) = self.task()?;
        let driver = self.driver(task)?;
        let directories = self.plugin_directories(group, task, driver.as_ref())?;
        let (Some(storage), Some(directories), Some(plugin)) =
            (&self.context.storage, directories, &task.csi_plugin)
        else {
            return Ok(());
        };
        let (layout, id) = (storage.layout.clone(), plugin.id.clone());
        let shows = driver.mount_support() == MountSupport::Shared && plugin.plugin_type.has_node();
        let created = blocking::spawn(move || {
            layout.create_for_plugin(&directories.socket_dir, &id)?;
            if shows {
                layout.share()?;
            }
            Ok::<(), std::io::Error>(())
        });
        let created = created
            .await
            .unwrap_or_else(|error| Err(std::io::Error::other(error)));
        created.map_err(|error| hook(format!("cannot prepare the CSI plugin: {error}")))
    }

    /// Supervises the plugin while its task runs. Stops the task if the plugin does not become healthy.
    pub(super) async fn follow_plugin(
        &self,
        driver: &dyn Driver,
        answers: &mpsc::Sender<Event>,
    ) -> std::convert::Infallible {
        if let (Ok((group, task)), Some(storage)) = (self.task(), &self.context.storage)
            && let Some(plugin) = &task.csi_plugin
            && let Ok(Some(directories)) = self.plugin_directories(group, task, driver)
        {
            self.supervise(storage, plugin, directories, driver, answers)
                .await;
        }
        std::future::pending().await
    }

    async fn tell_health(
        &self,
        plugin_id: &str,
        event: PluginEvent,
        answers: &mpsc::Sender<Event>,
    ) {
        let (is_healthy, message) = words(plugin_id, event);
        let task = self.id.task.clone();
        let event = Event::PluginHealth {
            task,
            is_healthy,
            message,
        };
        let _ = answers.send(event).await;
    }

    async fn supervise(
        &self,
        storage: &Storage,
        plugin: &CsiPluginTask,
        directories: Directories,
        driver: &dyn Driver,
        answers: &mpsc::Sender<Event>,
    ) {
        let key = TaskKey {
            alloc_id: self.id.alloc_id,
            task: self.id.task.clone(),
        };
        let socket = directories.socket_dir.join(SOCKET);
        let (events, mut happened) = mpsc::channel(EVENTS);
        let registry = &storage.registry;
        let paths = directories.paths;
        let supervising = supervision::supervise(registry, key, plugin, &socket, paths, &events);
        tokio::pin!(supervising);
        loop {
            let event = tokio::select! {
                biased;
                Some(event) = happened.recv() => event,
                () = &mut supervising => break,
            };
            self.tell_health(&plugin.id, event, answers).await;
        }
        while let Ok(event) = happened.try_recv() {
            self.tell_health(&plugin.id, event, answers).await;
        }
        // Its end is the attempt's own, and its restart policy's.
        if let Err(error) = driver.stop(&self.id, "", GRACE).await {
            let error = service_kit::run::chain(&error);
            warn!(id = %self.id, error, "cannot stop a plugin that is not healthy");
        }
    }
}

/// The most events of a plugin that wait for the runner: it takes them at once.
const EVENTS: usize = 4;

fn words(plugin_id: &str, event: PluginEvent) -> (bool, String) {
    match event {
        PluginEvent::Healthy => (true, format!("CSI plugin {plugin_id:?} is healthy")),
        PluginEvent::Unhealthy { reason } => (
            false,
            format!("CSI plugin {plugin_id:?} is not healthy: {reason}"),
        ),
        PluginEvent::TimedOut { reason } => (
            false,
            format!(
                "CSI plugin {plugin_id:?} did not become healthy within its health_timeout: {reason}"
            ),
        ),
    }
}

/// Returns a plugin's directories as the tasks of `driver` see them.
fn directories(
    plugin: &CsiPluginTask,
    socket_dir: PathBuf,
    volumes: PathBuf,
    driver: &dyn Driver,
) -> Result<Directories, StartFailure> {
    let support = driver.mount_support();
    let (mount_dir, base_dir) = match support {
        // The task sees the node's own directories.
        MountSupport::None => (socket_dir.clone(), volumes.clone()),
        MountSupport::Private | MountSupport::Shared => (
            PathBuf::from(&plugin.mount_dir),
            PathBuf::from(&plugin.stage_publish_base_dir),
        ),
    };
    let has_node = plugin.plugin_type.has_node();
    if support == MountSupport::Private && has_node {
        return Err(invalid(format!(
            "task driver {:?} hides the mounts of its tasks from the node, so it cannot run a CSI \
             plugin of type {:?}: use docker, podman or raw_exec",
            driver.name(),
            plugin.plugin_type.as_str()
        )));
    }
    let mut mounts = Vec::new();
    if support != MountSupport::None {
        mounts.push(mount(&socket_dir, &mount_dir, false));
        if has_node {
            mounts.push(mount(&volumes, &base_dir, true));
            // Devices appear while the plugin runs. Source: Nomad's public behaviour.
            mounts.push(mount(Path::new("/dev"), Path::new("/dev"), false));
        }
    }
    let socket = mount_dir.join(SOCKET);
    Ok(Directories {
        socket_dir,
        paths: PluginPaths {
            on_node: volumes,
            in_task: base_dir,
        },
        mounts,
        endpoint: (ENDPOINT.to_owned(), format!("unix://{}", socket.display())),
    })
}

fn mount(source: &Path, destination: &Path, is_shared: bool) -> TaskMount {
    TaskMount {
        source: source.display().to_string(),
        destination: destination.display().to_string(),
        read_only: false,
        is_shared,
    }
}
