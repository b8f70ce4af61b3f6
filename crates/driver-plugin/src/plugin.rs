//! State of one plugin, as a driver.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use task_drivers::{Fingerprint, Messages, TaskId, Usage};
use tokio::sync::watch;
use tracing::info;

use crate::calls::bounded;
use crate::config::PluginConfig;
use crate::connect::Facts;
use crate::instance::Instance;
use crate::launch::Program;
use crate::records::Records;
use crate::settings::Settings;

/// The driver of one plugin. Dropping it leaves the plugin and its tasks running.
#[derive(Debug)]
pub(crate) struct Plugin {
    /// The driver's name.
    pub(crate) name: &'static str,
    pub(crate) program: Program,
    pub(crate) config: PluginConfig,
    pub(crate) settings: Arc<Settings>,
    pub(crate) records: Records,
    /// The process; `None`: there is none at the moment.
    pub(crate) instance: watch::Sender<Option<Arc<Instance>>>,
    /// Sent with every change of the fingerprint.
    changes: watch::Sender<()>,
    facts: Mutex<Facts>,
    fingerprint: watch::Sender<Fingerprint>,
    usage: Mutex<HashMap<TaskId, Usage>>,
    /// Plugin's id of a task → the queue of its messages, while it is waited for.
    messages: Mutex<HashMap<String, Messages>>,
}

/// Fingerprint of a plugin that has not reported its health yet.
const NOT_YET: &str = "the plugin has not reported its health yet";

impl Plugin {
    pub(crate) fn new(
        facts: Facts,
        program: Program,
        config: PluginConfig,
        settings: Arc<Settings>,
        changes: watch::Sender<()>,
    ) -> Self {
        let fingerprint = Fingerprint {
            description: NOT_YET.to_owned(),
            ..Fingerprint::default()
        };
        Self {
            name: intern(&facts.name),
            records: Records::new(program.directory.clone()),
            program,
            config,
            settings,
            instance: watch::Sender::new(None),
            changes,
            facts: Mutex::new(facts),
            fingerprint: watch::Sender::new(fingerprint),
            usage: Mutex::default(),
            messages: Mutex::default(),
        }
    }

    /// Returns the facts of the last process.
    pub(crate) fn facts(&self) -> Facts {
        lock(&self.facts).clone()
    }

    pub(crate) fn set_facts(&self, facts: Facts) {
        *lock(&self.facts) = facts;
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.fingerprint.borrow().clone()
    }

    pub(crate) fn set_fingerprint(&self, found: Fingerprint) {
        let changed = self.fingerprint.send_if_modified(|known| {
            let is_new = *known != found;
            *known = found;
            is_new
        });
        if changed {
            let found = self.fingerprint();
            let (driver, description) = (self.name, &found.description);
            let (detected, healthy) = (found.detected, found.healthy);
            info!(
                driver,
                detected, healthy, description, "the driver of a plugin has changed"
            );
            self.changes.send_replace(());
        }
    }

    /// The driver does not work, for a reason of the agent's; what it detected stays.
    pub(crate) fn set_unhealthy(&self, reason: &str) {
        let mut found = self.fingerprint();
        found.healthy = false;
        found.description = bounded(reason);
        self.set_fingerprint(found);
    }

    /// Waits until the plugin has reported its health.
    pub(crate) async fn first_fingerprint(&self) {
        let mut fingerprints = self.fingerprint.subscribe();
        let reported = fingerprints.wait_for(|found| found.description != NOT_YET);
        // The sender is in `self`.
        let _ = reported.await;
    }

    pub(crate) fn usage(&self, id: &TaskId) -> Option<Usage> {
        lock(&self.usage).get(id).copied()
    }

    pub(crate) fn set_usage(&self, id: &TaskId, usage: Option<Usage>) {
        let mut known = lock(&self.usage);
        match usage {
            Some(usage) => drop(known.insert(id.clone(), usage)),
            None => drop(known.remove(id)),
        }
    }

    pub(crate) fn set_messages(&self, task_id: &str, messages: Option<&Messages>) {
        let mut known = lock(&self.messages);
        match messages {
            Some(messages) => drop(known.insert(task_id.to_owned(), messages.clone())),
            None => drop(known.remove(task_id)),
        }
    }

    /// Passes a message about a task on; without a reader it is dropped.
    pub(crate) fn send_message(&self, task_id: &str, text: &str) {
        if let Some(messages) = lock(&self.messages).get(task_id) {
            let _ = messages.try_send(bounded(text));
        }
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a name for the rest of the process's life. There are as many as plugins, however often an agent is
/// made in the process.
fn intern(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = lock(&NAMES);
    if let Some(known) = names.get(name) {
        return known;
    }
    let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(name);
    name
}
