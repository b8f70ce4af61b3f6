//! All plugins of a node: one for each executable file of `plugin_dir`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::join_all;
use task_drivers::Driver;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::launch::Program;
use crate::plugin::Plugin;
use crate::records::Records;
use crate::settings::Settings;
use crate::supervise::{self, Running};

/// Maximum number of programs in `plugin_dir`. Further ones are not started; a warning names each.
const FILES_MAX: usize = 64;

/// The plugins of a node. Cheap to clone; the default is none.
#[derive(Clone, Debug, Default)]
pub struct Plugins {
    plugins: Vec<Arc<Plugin>>,
    /// File → the reason why it is no plugin, or of no use.
    problems: BTreeMap<String, String>,
    changes: watch::Sender<()>,
    closing: CancellationToken,
    supervisors: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

/// A file with its driver.
struct Opened {
    program: Program,
    plugin: Plugin,
    running: Option<Running>,
}

impl Plugins {
    /// Starts every plugin, or finds its process. A file that is no plugin is logged and has an attribute.
    pub async fn start(settings: Settings) -> Self {
        let settings = Arc::new(settings);
        let files = discover(&settings);
        for name in settings
            .plugins
            .keys()
            .filter(|name| !files.contains(*name))
        {
            let directory = settings.plugin_dir.display();
            warn!(name, %directory, "a plugin with settings is no executable file of plugin_dir");
        }
        let changes = watch::Sender::new(());
        let opened = files.iter().map(|file| open(file, &settings, &changes));
        let opened = join_all(opened).await;
        let mut found = Self {
            changes,
            ..Self::default()
        };
        let mut names = BTreeMap::new();
        for (file, opened) in files.iter().zip(opened) {
            let problem = match opened {
                Ok(opened) => match found.refusal(&opened.plugin, &names) {
                    None => {
                        names.insert(opened.plugin.name, file.clone());
                        found.supervise(opened);
                        continue;
                    }
                    Some(problem) => {
                        if let Some(running) = opened.running {
                            running.discard(settings.timing.end_limit).await;
                        }
                        problem
                    }
                },
                Err(problem) => problem,
            };
            error!(
                file,
                problem, "a file of plugin_dir is not used as a plugin"
            );
            found.problems.insert(file.clone(), problem);
        }
        found
    }

    fn refusal(&self, plugin: &Plugin, names: &BTreeMap<&str, String>) -> Option<String> {
        let name = plugin.name;
        if plugin.settings.built_in.contains(name) {
            return Some(format!(
                "the agent itself has the driver {name}: turn it off in [drivers], or remove the file"
            ));
        }
        let other = names.get(name)?;
        Some(format!(
            "{other} has the driver {name} already: remove one of the files"
        ))
    }

    fn supervise(&mut self, opened: Opened) {
        let plugin = Arc::new(opened.plugin);
        self.plugins.push(Arc::clone(&plugin));
        let file = opened.program.file;
        info!(file, driver = plugin.name, "a plugin provides a driver");
        let running = supervise::run(plugin, opened.running, self.closing.clone());
        let mut supervisors = self
            .supervisors
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        supervisors.push(tokio::spawn(running));
    }

    /// Returns the drivers by name.
    pub fn drivers(&self) -> impl Iterator<Item = (&'static str, Arc<dyn Driver>)> {
        let plugins = self.plugins.iter();
        plugins.map(|plugin| (plugin.name, Arc::clone(plugin) as Arc<dyn Driver>))
    }

    /// Returns attributes of the node: versions of plugins, and problems of files that are none.
    pub fn attributes(&self) -> BTreeMap<String, String> {
        let mut attributes = BTreeMap::new();
        for plugin in &self.plugins {
            let name = format!("plugins.driver.{}.version", plugin.program.file);
            attributes.insert(name, plugin.facts().version);
        }
        for (file, problem) in &self.problems {
            let name = format!("plugins.driver.{file}.problem");
            attributes.insert(name, problem.chars().take(200).collect());
        }
        attributes
    }

    /// Sees every change of a driver's health.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Ends the plugins, except for those with running tasks.
    pub async fn close(&self) {
        self.closing.cancel();
        let supervisors = {
            let mut all = self
                .supervisors
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *all)
        };
        for supervisor in supervisors {
            // A supervisor that panicked has nothing to end.
            let _ = supervisor.await;
        }
    }
}

/// Opens one file.
///
/// # Errors
/// It is no plugin, and never was one.
async fn open(
    file: &str,
    settings: &Arc<Settings>,
    changes: &watch::Sender<()>,
) -> Result<Opened, String> {
    let config = settings.plugins.get(file).cloned().unwrap_or_default();
    let program = Program {
        file: file.to_owned(),
        path: settings.plugin_dir.join(file),
        args: config.args.clone(),
        directory: settings.state_dir.join(file),
    };
    let opened = supervise::open(&program, &config, settings.timing).await;
    let (facts, running, problem) = match opened {
        Ok(running) => (running.facts.clone(), Some(running), None),
        Err(problem) => {
            // The driver of a program that worked before waits for it, with its tasks.
            let records = Records::new(program.directory.clone());
            let Some(known) = records.plugin() else {
                return Err(problem);
            };
            (known.facts, None, Some(problem))
        }
    };
    let settings = Arc::clone(settings);
    let plugin = Plugin::new(facts, program.clone(), config, settings, changes.clone());
    if let Some(problem) = problem {
        warn!(file, problem, "a plugin does not start");
        plugin.set_unhealthy(&format!("the plugin does not run: {problem}"));
    }
    Ok(Opened {
        program,
        plugin,
        running,
    })
}

/// Lists the executable files of the directory.
fn discover(settings: &Settings) -> BTreeSet<String> {
    let directory = &settings.plugin_dir;
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) => {
            let directory = directory.display();
            error!(%directory, %error, "plugin_dir cannot be read: there are no plugins");
            return BTreeSet::new();
        }
    };
    let mut files = BTreeSet::new();
    for entry in entries.flatten() {
        // Follows links, as the start of the program does.
        let Ok(found) = fs::metadata(entry.path()) else {
            continue;
        };
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let is_executable = found.is_file() && found.permissions().mode() & 0o111 != 0;
        if !is_executable || name.starts_with('.') {
            info!(file = name, "a file of plugin_dir is no program");
        } else if files.len() == FILES_MAX {
            warn!(
                file = name,
                most = FILES_MAX,
                "plugin_dir has too many programs"
            );
        } else {
            files.insert(name);
        }
    }
    files
}
