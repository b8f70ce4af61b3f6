//! The network of an allocation: made before its first task starts, checked before every start, removed
//! after its last task.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use alloc_network::{Mode, Names, Network, Networks, Plan, Source};
use lifecycle::Assignment;
use model::{AllocId, NetworkStatus, TaskGroup};
use task_drivers::{Driver, NetworkAsk, NetworkSupport, TaskEnv, TaskNetwork};
use tracing::{info, warn};

use crate::context::Context;

/// The network of one allocation, shared by its runner and its attempts.
#[derive(Debug, Default)]
pub(crate) struct AllocNetwork {
    /// Held during a set-up or removal.
    changing: tokio::sync::Mutex<()>,
    current: Mutex<Current>,
}

#[derive(Clone, Debug, Default)]
struct Current {
    network: Option<Network>,
    /// Known before `network`, from an earlier run of the agent.
    status: Option<NetworkStatus>,
}

impl AllocNetwork {
    /// The network that an earlier run of the agent has set up, if any. It is not checked yet.
    pub(crate) fn restored(context: &Context, alloc_id: AllocId) -> Self {
        let networks = context.networks.as_ref();
        let current = Current {
            network: None,
            status: networks.and_then(|networks| networks.status(alloc_id)),
        };
        Self {
            current: Mutex::new(current),
            ..Self::default()
        }
    }

    /// Returns the addresses to report; `None`: the tasks use the node's network.
    pub(crate) fn status(&self) -> Option<NetworkStatus> {
        self.current().status
    }

    /// Returns the network of the tasks.
    pub(crate) fn task_network(&self) -> Option<TaskNetwork> {
        let network = self.current().network?;
        Some(TaskNetwork {
            namespace: network.namespace,
            hosts: network.hosts,
            resolv_conf: network.resolv_conf,
        })
    }

    fn current(&self) -> Current {
        self.current
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn set(&self, network: Option<Network>) {
        let status = network.as_ref().map(|network| network.status.clone());
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Current { network, status };
    }

    /// Sets the network up unless it is there. A network that was checked before is checked for its
    /// namespace alone.
    ///
    /// # Errors
    /// A message for the user: the step that failed, or a driver that cannot use the network.
    pub(crate) async fn ensure(
        &self,
        context: &Context,
        assignment: &Assignment,
    ) -> Result<(), String> {
        let (job, alloc) = (&assignment.job, &assignment.alloc);
        let Some(group) = job.task_group(&alloc.task_group) else {
            return Ok(());
        };
        let Some(networks) = context
            .networks
            .as_ref()
            .filter(|_| Mode::of(group).is_some())
        else {
            return Ok(());
        };
        let _changing = self.changing.lock().await;
        let names = names(assignment, group, context);
        let Some(plan) = Plan::new(job, group, alloc, names, networks.config()) else {
            return Ok(());
        };
        let source = match maker(context, group)? {
            None => Source::Agent,
            Some(driver) => {
                let (networks, intended) = (Arc::clone(networks), plan.clone());
                let name = driver.name();
                on_thread(move || networks.intend(&intended, name)).await?;
                let ask = NetworkAsk {
                    alloc_id: alloc.id,
                    hostname: plan.hostname.clone(),
                };
                Source::Driver {
                    name: name.to_owned(),
                    pid: driver.make_network(ask).await?,
                }
            }
        };
        let is_checked = self.current().network.is_some();
        if is_checked && networks.is_pinned(alloc.id, &source) {
            return Ok(());
        }
        let _slot = context.network_slots.acquire().await;
        let networks = Arc::clone(networks);
        let found = on_thread(move || match networks.find(&plan, &source) {
            Some(network) => Ok(network),
            None => networks.set_up(&plan, &source),
        });
        self.set(Some(found.await?));
        Ok(())
    }

    /// Removes the network; one that does not exist is no error.
    pub(crate) async fn remove(&self, context: &Context, alloc_id: AllocId) -> Result<(), String> {
        let _changing = self.changing.lock().await;
        remove(context, alloc_id).await?;
        self.set(None);
        Ok(())
    }
}

/// Lists the allocations with networks that are not among `wanted`. Reads a directory.
pub fn unwanted(networks: &Networks, wanted: &BTreeSet<AllocId>) -> Vec<AllocId> {
    let all = networks.all().into_iter().map(|(alloc_id, _)| alloc_id);
    all.filter(|alloc_id| !wanted.contains(alloc_id)).collect()
}

/// Removes the networks of `unwanted` allocations.
pub async fn sweep(context: &Context, unwanted: Vec<AllocId>) {
    for alloc_id in unwanted {
        info!(%alloc_id, "removing the network of an allocation that is gone");
        if let Err(error) = remove(context, alloc_id).await {
            warn!(%alloc_id, error, "cannot remove a network");
        }
    }
}

async fn remove(context: &Context, alloc_id: AllocId) -> Result<(), String> {
    let Some(networks) = &context.networks else {
        return Ok(());
    };
    let Some(owner) = networks.owner(alloc_id) else {
        return Ok(());
    };
    let _slot = context.network_slots.acquire().await;
    let clearing = Arc::clone(networks);
    on_thread(move || clearing.clear(alloc_id)).await?;
    if let Some(driver) = context.drivers.get(owner.as_str()) {
        driver.remove_network(alloc_id).await?;
    }
    let forgetting = Arc::clone(networks);
    on_thread(move || forgetting.forget(alloc_id)).await
}

/// Returns the driver that makes the namespace; `None`: the agent does.
fn maker<'a>(
    context: &'a Context,
    group: &TaskGroup,
) -> Result<Option<&'a Arc<dyn Driver>>, String> {
    let mut maker = None::<&Arc<dyn Driver>>;
    for task in &group.tasks {
        let Some(driver) = context.drivers.get(task.driver.as_str()) else {
            continue;
        };
        match driver.network_support() {
            NetworkSupport::Joins => {}
            NetworkSupport::HostOnly => {
                return Err(format!(
                    "task {:?}: driver {} cannot use the group's own network: write mode = \"host\"",
                    task.name, task.driver
                ));
            }
            NetworkSupport::Makes => match maker {
                Some(other) if other.name() != driver.name() => {
                    return Err(format!(
                        "drivers {} and {} cannot share a network: use one of them in the group",
                        other.name(),
                        driver.name()
                    ));
                }
                _ => maker = Some(driver),
            },
        }
    }
    Ok(maker)
}

fn names(assignment: &Assignment, group: &TaskGroup, context: &Context) -> Names {
    let Some(network) = group.networks.first() else {
        return Names::default();
    };
    let (job, alloc) = (&assignment.job, &assignment.alloc);
    let env = TaskEnv::of_group(job, group, alloc, &context.facts);
    let args = network.cni_args.iter();
    Names {
        hostname: env.interpolate(&network.hostname),
        dns: network.dns.clone().unwrap_or_default(),
        cni_args: args
            .map(|(name, value)| (name.clone(), env.interpolate(value)))
            .collect(),
    }
}

async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, alloc_network::Error> + Send + 'static,
) -> Result<T, String> {
    match blocking::spawn(work).await {
        Ok(result) => result.map_err(|error| service_kit::run::chain(&error)),
        Err(error) => Err(format!("the set-up of the network ended: {error}")),
    }
}
