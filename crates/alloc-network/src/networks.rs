//! Networks of a node's allocations: set up, found again, removed.

mod repair;

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use model::job::Dns;
use model::{AllocId, NetworkStatus};
use tracing::{debug, info, warn};

use crate::answer;
use crate::config::NetworkConfig;
use crate::conflist::ConfList;
use crate::dns;
use crate::error::Error;
use crate::iptables;
use crate::netns;
use crate::nft;
use crate::offer;
use crate::plan::{Mode, Plan};
use crate::plugins::Chain;
use crate::records::{Done, Record, Records};
use crate::ruleset;

/// Pauses between tries of ADD. Source: Nomad's public behaviour for their number and size.
const ADD_PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(2)];
/// The file of a host's resolver that names its own servers. Source: systemd-resolved's documentation.
const UPSTREAM_RESOLV_CONF: &str = "/run/systemd/resolve/resolv.conf";

/// Facts about the node.
#[derive(Clone, Debug)]
pub struct Settings {
    pub config: NetworkConfig,
    /// Directory of the records; private to the agent.
    pub state_dir: PathBuf,
    /// The machine's boot.
    pub boot_id: String,
}

/// Owner of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The agent makes it.
    Agent,
    /// A process of this driver has made it.
    Driver { name: String, pid: i32 },
}

/// An allocation's network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// The file that pins the namespace.
    pub namespace: PathBuf,
    /// Without addresses in mode `none`.
    pub status: NetworkStatus,
    pub hostname: String,
    /// Files for the tasks' `/etc`.
    pub hosts: PathBuf,
    pub resolv_conf: PathBuf,
}

/// The networks of one node.
#[derive(Debug)]
pub struct Networks {
    settings: Settings,
    records: Records,
}

impl Networks {
    pub fn new(settings: Settings) -> Self {
        let records = Records::new(settings.state_dir.clone());
        Self { settings, records }
    }

    pub fn config(&self) -> &NetworkConfig {
        &self.settings.config
    }

    /// Returns the modes that the node can set up. Runs programs.
    pub fn offer(&self) -> offer::Offer {
        offer::probe(&self.settings.config)
    }

    /// Returns the network that an earlier call has set up, after a check; `None`: there is none, or not
    /// all of it is left.
    pub fn find(&self, plan: &Plan, source: &Source) -> Option<Network> {
        let record = self.records.get(plan.alloc_id)?;
        let done = record.done.as_ref().filter(|_| !record.is_ending)?;
        let is_same = record.boot_id == self.settings.boot_id && record.plan == *plan;
        let namespace = self.namespace(plan.alloc_id);
        if !is_same || record.owner != source.parts().0 {
            return None;
        }
        self.pin_again(plan.alloc_id, source);
        if !netns::is_pinned(&namespace, source.parts().1) {
            return None;
        }
        if let (Some(list), Some(result)) = (&record.list, &done.result) {
            let chain = self.chain(list, plan, &namespace);
            if let Err(error) = chain.check(result) {
                let error = service_kit::run::chain(&error);
                warn!(alloc_id = %plan.alloc_id, error, "the network has changed; it is set up again");
                return None;
            }
        }
        // Another program may have flushed the rules.
        if let Err(error) = self.map_ports(&record, &done.status) {
            let error = service_kit::run::chain(&error);
            warn!(alloc_id = %plan.alloc_id, error, "cannot check the port mappings");
            return None;
        }
        Some(self.network(plan, done.status.clone()))
    }

    /// Writes the record of a network that is about to be made, unless it has one. Call it before a driver
    /// makes the namespace.
    ///
    /// # Errors
    /// The plan's network does not exist, or the disk refuses.
    pub fn intend(&self, plan: &Plan, owner: &str) -> Result<(), Error> {
        if self.records.get(plan.alloc_id).is_some() {
            return Ok(());
        }
        self.records.put(&self.record(plan, owner)?)
    }

    /// Sets a network up. An earlier one is replaced in the same namespace, if that is left, so that
    /// running tasks get the new one as well.
    ///
    /// # Errors
    /// The step that failed. What was made stays until [`Self::clear`].
    pub fn set_up(&self, plan: &Plan, source: &Source) -> Result<Network, Error> {
        if let Some(earlier) = self.records.get(plan.alloc_id) {
            self.pin_again(plan.alloc_id, source);
            self.disconnect(&earlier)?;
        }
        let record = self.record(plan, source.parts().0)?;
        self.records.put(&record)?;
        self.make(record, source)
    }

    /// Pins the namespace of a driver's process, if the pin is lost: an agent in a container loses its
    /// mounts when the container is replaced.
    fn pin_again(&self, alloc_id: AllocId, source: &Source) {
        let Source::Driver { pid, .. } = source else {
            return;
        };
        let namespace = self.namespace(alloc_id);
        // Another namespace that is pinned still has its interfaces, which have to be removed first.
        if netns::is_pinned(&namespace, None) {
            return;
        }
        let pinned = netns::remove(&namespace).and_then(|()| netns::adopt(*pid, &namespace));
        if let Err(error) = pinned {
            let error = service_kit::run::chain(&error);
            warn!(%alloc_id, error, "cannot pin the namespace of a driver");
        }
    }

    fn record(&self, plan: &Plan, owner: &str) -> Result<Record, Error> {
        Ok(Record {
            boot_id: self.settings.boot_id.clone(),
            plan: plan.clone(),
            owner: owner.to_owned(),
            list: self.list(&plan.mode)?,
            done: None,
            is_ending: false,
        })
    }

    fn make(&self, mut record: Record, source: &Source) -> Result<Network, Error> {
        let plan = record.plan.clone();
        let namespace = self.namespace(plan.alloc_id);
        if !netns::is_pinned(&namespace, source.parts().1) {
            netns::remove(&namespace)?;
            match source {
                Source::Agent => netns::create(&namespace)?,
                Source::Driver { pid, .. } => netns::adopt(*pid, &namespace)?,
            }
        }
        let mut asked = vec![plan.dns.clone()];
        let mut done = Done {
            result: None,
            status: NetworkStatus::default(),
        };
        if let Some(list) = &record.list {
            let result = add(&self.chain(list, &plan, &namespace))?;
            let (status, dns) = answer::read(&result).map_err(Error::Result)?;
            asked.push(dns);
            done = Done {
                result: Some(result),
                status,
            };
        }
        let status = done.status.clone();
        self.map_ports(&record, &status)?;
        self.write_files(&plan, &status, &asked)?;
        record.done = Some(done);
        self.records.put(&record)?;
        info!(alloc_id = %plan.alloc_id, address = status.address, "network set up");
        Ok(self.network(&plan, status))
    }

    /// Removes an allocation's network, but for its record; one that does not exist is no error.
    ///
    /// # Errors
    /// A step that failed; a later call tries again.
    pub fn clear(&self, alloc_id: AllocId) -> Result<(), Error> {
        if let Some(record) = self.records.get(alloc_id) {
            self.disconnect(&record)?;
        }
        netns::remove(&self.namespace(alloc_id))
    }

    /// Removes the record of a network that is cleared, and whose driver has removed the namespace.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn forget(&self, alloc_id: AllocId) -> Result<(), Error> {
        self.records.remove(alloc_id)?;
        debug!(%alloc_id, "network removed");
        Ok(())
    }

    /// Removes port mappings, interfaces and addresses.
    fn disconnect(&self, record: &Record) -> Result<(), Error> {
        let Some(list) = &record.list else {
            return Ok(());
        };
        let alloc_id = record.plan.alloc_id;
        let is_current = record.boot_id == self.settings.boot_id;
        // From now on it is not kept up. The plugins' result stays, for another try.
        self.records.put(&Record {
            is_ending: true,
            ..record.clone()
        })?;
        if is_current {
            let comment = alloc_id.to_string();
            nft::remove(|of| of == comment)?;
        }
        let namespace = self.namespace(alloc_id);
        // A kill between the file of a pin and its mount leaves the file, which plugins refuse. They accept
        // that there is none.
        if !netns::is_pinned(&namespace, None) {
            netns::remove(&namespace)?;
        }
        let result = record.done.as_ref().and_then(|done| done.result.as_ref());
        let removed = self.chain(list, &record.plan, &namespace).del(result);
        // After a reboot the plugins have nothing to remove.
        if is_current { removed } else { Ok(()) }
    }

    /// Returns the addresses of a network as they were set up in this boot of the machine.
    pub fn status(&self, alloc_id: AllocId) -> Option<NetworkStatus> {
        let record = self.records.get(alloc_id)?;
        let done = record
            .done
            .filter(|_| record.boot_id == self.settings.boot_id)?;
        Some(done.status)
    }

    /// Tells whether the namespace of a network is as it was set up.
    pub fn is_pinned(&self, alloc_id: AllocId, source: &Source) -> bool {
        netns::is_pinned(&self.namespace(alloc_id), source.parts().1)
    }

    /// Lists the allocations with a network, or a part of one, and the driver that owns the namespace.
    pub fn all(&self) -> Vec<(AllocId, String)> {
        let owner = |alloc_id| self.records.get(alloc_id).map(|record| record.owner);
        let all = self.records.all().into_iter();
        all.map(|alloc_id| (alloc_id, owner(alloc_id).unwrap_or_default()))
            .collect()
    }

    /// Tells whether an allocation has a network or a part of one, and returns the driver that owns the
    /// namespace (empty: the agent).
    pub fn owner(&self, alloc_id: AllocId) -> Option<String> {
        if !self.records.directory(alloc_id).exists() {
            return None;
        }
        Some(
            self.records
                .get(alloc_id)
                .map(|record| record.owner)
                .unwrap_or_default(),
        )
    }

    fn map_ports(&self, record: &Record, status: &NetworkStatus) -> Result<(), Error> {
        let Some(list) = &record.list else {
            return Ok(());
        };
        let config = &self.settings.config;
        let is_bridge = record.plan.mode == Mode::Bridge;
        if is_bridge {
            let bridge = &config.bridge_name;
            allow_local_sources(bridge)?;
            iptables::ensure(bridge, !config.bridge_subnet_ipv6.is_empty())?;
        }
        let ports = if list.maps_ports() {
            &[][..]
        } else {
            &record.plan.ports
        };
        let bridge = is_bridge.then_some(config.bridge_name.as_str());
        nft::add(&ruleset::elements(
            record.plan.alloc_id,
            ports,
            status,
            bridge,
        ))
    }

    fn write_files(&self, plan: &Plan, status: &NetworkStatus, asked: &[Dns]) -> Result<(), Error> {
        let hosts = dns::hosts(&plan.hostname, status);
        self.records.put_file(plan.alloc_id, "hosts", &hosts)?;
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let asked: Vec<&Dns> = asked.iter().collect();
        let resolv_conf = dns::resolv_conf(
            &asked,
            &read("/etc/resolv.conf"),
            &read(UPSTREAM_RESOLV_CONF),
        );
        self.records
            .put_file(plan.alloc_id, "resolv.conf", &resolv_conf)?;
        Ok(())
    }

    fn network(&self, plan: &Plan, status: NetworkStatus) -> Network {
        let directory = self.records.directory(plan.alloc_id);
        Network {
            namespace: self.namespace(plan.alloc_id),
            status,
            hostname: plan.hostname.clone(),
            hosts: directory.join("hosts"),
            resolv_conf: directory.join("resolv.conf"),
        }
    }

    fn namespace(&self, alloc_id: AllocId) -> PathBuf {
        self.settings
            .config
            .run_dir
            .join("netns")
            .join(alloc_id.to_string())
    }

    fn list(&self, mode: &Mode) -> Result<Option<ConfList>, Error> {
        let config = &self.settings.config;
        match mode {
            Mode::None => Ok(None),
            Mode::Bridge => Ok(Some(ConfList::bridge(config))),
            Mode::Cni(name) => {
                let (lists, _) = offer::read_lists(&config.cni_config_dir);
                let list = lists.into_iter().find(|list| list.name == *name);
                let list = list.ok_or_else(|| Error::NoNetwork {
                    name: name.clone(),
                    directory: config.cni_config_dir.clone(),
                })?;
                Ok(Some(list))
            }
        }
    }

    fn chain<'a>(
        &'a self,
        list: &'a ConfList,
        plan: &'a Plan,
        namespace: &'a std::path::Path,
    ) -> Chain<'a> {
        Chain {
            list,
            plan,
            namespace,
            path: &self.settings.config.cni_path,
        }
    }
}

impl Source {
    fn parts(&self) -> (&str, Option<i32>) {
        match self {
            Self::Agent => ("", None),
            Self::Driver { name, pid } => (name, Some(*pid)),
        }
    }
}

/// Runs ADD until it succeeds. A failed try is undone before the next.
fn add(chain: &Chain<'_>) -> Result<serde_json::Value, Error> {
    let mut pauses = ADD_PAUSES.into_iter();
    loop {
        let error = match chain.add() {
            Ok(result) => return Ok(result),
            Err(error) => error,
        };
        let undone = chain.del(None);
        let Some(pause) = pauses.next() else {
            return Err(error);
        };
        let (error, undone) = (service_kit::run::chain(&error), undone.is_ok());
        warn!(alloc_id = %chain.plan.alloc_id, error, undone, "the CNI plugins failed; retrying");
        thread::sleep(pause);
    }
}

/// Lets the machine send packets from its loopback addresses to the bridge, so that its processes
/// reach mapped ports at 127.0.0.1. The table's chain `guard` drops the opposite direction.
fn allow_local_sources(bridge: &str) -> Result<(), Error> {
    let path = PathBuf::from(format!("/proc/sys/net/ipv4/conf/{bridge}/route_localnet"));
    fs::write(&path, "1").map_err(|source| Error::Path {
        what: "cannot set",
        path,
        source,
    })
}
