//! Nodes.

use std::collections::HashMap;

use proto::v1;

use super::{Style, alloc, sorted};
use crate::alloc_state::has_ended;
use crate::output::fields::Fields;
use crate::output::size::mib;
use crate::output::table::Table;
use crate::output::time::show_duration;

/// Optional columns of a list.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Columns<'a> {
    pub(crate) os: bool,
    /// Node ID → number of running allocations.
    pub(crate) running: Option<&'a HashMap<String, usize>>,
}

/// IDs, one a line.
pub(crate) fn ids(nodes: &[v1::Node], style: &Style) -> String {
    let ids: Vec<String> = nodes.iter().map(|node| style.id(&node.id)).collect();
    ids.join("\n")
}

pub(crate) fn table(nodes: &[v1::Node], columns: Columns<'_>, style: &Style) -> Table {
    let mut header = vec!["ID", "Node Pool", "DC", "Name", "Class"];
    if columns.os {
        header.push("OS");
    }
    if style.verbose {
        header.extend(["Address", "Version"]);
    }
    header.extend(["Drain", "Eligibility", "Status"]);
    if columns.running.is_some() {
        header.push("Running Allocs");
    }
    let mut table = Table::new(header);
    for node in nodes {
        let mut cells = vec![
            style.id(&node.id),
            node.node_pool.clone(),
            node.datacenter.clone(),
            node.name.clone(),
            node.node_class.clone(),
        ];
        if columns.os {
            cells.push(attribute(node, &["os.name", "kernel.name"]));
        }
        if style.verbose {
            cells.push(host(&node.address).to_owned());
            cells.push(attribute(node, &["kafila.version", "nomad.version"]));
        }
        cells.extend([
            node.drain.is_some().to_string(),
            node.eligibility.clone(),
            node.status.clone(),
        ]);
        if let Some(running) = columns.running {
            cells.push(
                running
                    .get(&node.id)
                    .copied()
                    .unwrap_or_default()
                    .to_string(),
            );
        }
        table.row(cells);
    }
    table
}

/// Returns the sorted names, for example `private,public`.
fn names<T>(named: &HashMap<String, T>) -> String {
    let names = sorted(named).into_iter().map(|(name, _)| name);
    names.collect::<Vec<_>>().join(",")
}

/// Returns the first of the attributes that the node has.
fn attribute(node: &v1::Node, names: &[&str]) -> String {
    let mut found = names.iter().filter_map(|name| node.attributes.get(*name));
    found.next().cloned().unwrap_or_default()
}

/// Returns the host of an address such as `http://10.0.0.7:7201`.
fn host(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    rest.rsplit_once(':').map_or(rest, |(host, _)| host)
}

/// A node and its allocations.
pub(crate) struct Status<'a> {
    pub(crate) node: &'a v1::Node,
    pub(crate) allocs: &'a [v1::Allocation],
    pub(crate) short: bool,
}

impl Status<'_> {
    pub(crate) fn render(&self, style: &Style) -> String {
        let mut out = self.fields(style).render();
        if !self.short {
            out.push_str(&self.events(style));
            let table = self.allocated();
            out.push_str(&style.section("Allocated Resources", &table.render()));
        }
        let body = alloc::section_of_node(self.allocs, style);
        out.push_str(&style.section("Allocations", &body));
        if style.verbose {
            out.push_str(&self.details(style));
        }
        out
    }

    fn fields(&self, style: &Style) -> Fields {
        let node = self.node;
        let mut fields = Fields::new();
        fields
            .add("ID", node.id.as_str())
            .add("Name", node.name.as_str())
            .add("Node Pool", node.node_pool.as_str())
            .add("Class", node.node_class.as_str())
            .add("DC", node.datacenter.as_str())
            .add("Drain", self.drain(style))
            .add_some("Last Drain", self.last_drain(style))
            .add("Eligibility", node.eligibility.as_str())
            .add("Status", node.status.as_str())
            .add_some("Status Description", node.status_description.as_str())
            .add_some("Status Since", style.time(node.status_updated_at_ns))
            .add_some("Address", self.address(style))
            .add("Driver Status", self.drivers())
            .add_some("Reservable Cores", self.cores())
            .add_some("Devices", self.devices())
            .add_some("Host Networks", names(&self.node.host_networks).as_str())
            .add_some("Host Volumes", names(&self.node.host_volumes).as_str());
        fields
    }

    fn address(&self, style: &Style) -> String {
        if !style.verbose {
            return String::new();
        }
        let note = if self.node.dials_out {
            " (gateways do not dial it: dial_out)"
        } else {
            ""
        };
        format!("{}{note}", self.node.address)
    }

    /// Returns the state of the drain and its remaining time.
    fn drain(&self, style: &Style) -> String {
        let Some(drain) = &self.node.drain else {
            return "false".to_owned();
        };
        let ignores = drain.spec.is_some_and(|spec| spec.ignore_system_jobs);
        let now_ns = style.times.now_ns;
        let time = match drain.force_deadline_ns {
            0 => "no deadline".to_owned(),
            at if at <= now_ns => "deadline reached".to_owned(),
            at => format!(
                "deadline in {}",
                show_duration((at - now_ns) / 1_000_000_000)
            ),
        };
        let system = if ignores {
            "; ignoring system jobs"
        } else {
            ""
        };
        format!("true; {time}{system}")
    }

    /// Returns the result of the last drain, for example `complete, 3m ago: new disks`.
    fn last_drain(&self, style: &Style) -> String {
        let Some(last) = &self.node.last_drain else {
            return String::new();
        };
        let message = match last.meta.get("message") {
            Some(message) => format!(": {message}"),
            None => String::new(),
        };
        format!(
            "{}, {}{message}",
            last.status,
            style.time(last.updated_at_ns)
        )
    }

    /// Returns the table of node events, the newest first.
    fn events(&self, style: &Style) -> String {
        if self.node.events.is_empty() {
            return String::new();
        }
        let mut table = Table::new(["Time", "Subsystem", "Message"]);
        for event in self.node.events.iter().rev() {
            let mut message = event.message.clone();
            for (key, value) in sorted(&event.details) {
                message.push_str(&format!(" ({key}={value})"));
            }
            let time = style.time(event.time_ns);
            table.row([time, event.subsystem.clone(), message]);
        }
        style.section("Node Events", &table.render())
    }

    /// Returns the number of cores for dedicated use; empty if there are none.
    fn cores(&self) -> String {
        match self.node.core_mhz.len() {
            0 => String::new(),
            cores => cores.to_string(),
        }
    }

    /// Returns the kinds of devices, for example `nvidia/gpu/t4 (3, 1 unhealthy)`.
    fn devices(&self) -> String {
        let kinds = self.node.devices.iter().map(|device| {
            let (vendor, kind, name) = (&device.vendor, &device.r#type, &device.name);
            let instances = device.instances.len();
            match device.instances.iter().filter(|it| !it.healthy).count() {
                0 => format!("{vendor}/{kind}/{name} ({instances})"),
                ill => format!("{vendor}/{kind}/{name} ({instances}, {ill} unhealthy)"),
            }
        });
        kinds.collect::<Vec<_>>().join(", ")
    }

    /// Returns the detected drivers, for example `mock_driver,raw_exec (unhealthy)`.
    fn drivers(&self) -> String {
        let drivers = sorted(&self.node.drivers).into_iter();
        let found = drivers
            .filter(|(_, info)| info.detected)
            .map(|(name, info)| {
                if info.healthy {
                    name.to_owned()
                } else {
                    format!("{name} (unhealthy)")
                }
            });
        found.collect::<Vec<_>>().join(",")
    }

    /// Returns allocated and available resources; terminal allocations count as free.
    fn allocated(&self) -> Table {
        let all = self.node.resources.unwrap_or_default();
        let reserved = self.node.reserved.unwrap_or_default();
        let mut allocated = v1::NodeResources::default();
        let holds = |alloc: &&v1::Allocation| !has_ended(alloc);
        for alloc in self.allocs.iter().filter(holds) {
            if let Some(resources) = &alloc.resources {
                allocated.cpu_mhz = allocated.cpu_mhz.saturating_add(resources.cpu_mhz);
                allocated.memory_mib = allocated.memory_mib.saturating_add(resources.memory_mib);
                allocated.disk_mib = allocated.disk_mib.saturating_add(resources.disk_mib);
            }
        }
        let mut table = Table::new(["CPU", "Memory", "Disk"]);
        table.row([
            format!(
                "{}/{} MHz",
                allocated.cpu_mhz,
                all.cpu_mhz.saturating_sub(reserved.cpu_mhz)
            ),
            format!(
                "{}/{}",
                mib(allocated.memory_mib),
                mib(all.memory_mib.saturating_sub(reserved.memory_mib))
            ),
            format!(
                "{}/{}",
                mib(allocated.disk_mib),
                mib(all.disk_mib.saturating_sub(reserved.disk_mib))
            ),
        ]);
        table
    }

    /// Returns the tables of host volumes and networks, if there are any.
    fn host_parts(&self, style: &Style) -> String {
        let mut out = String::new();
        if !self.node.host_networks.is_empty() {
            let mut table = Table::new(["Name", "Addresses", "Reserved Ports"]);
            for (name, network) in sorted(&self.node.host_networks) {
                let ports = network.reserved_ports.iter().map(ToString::to_string);
                let ports = ports.collect::<Vec<_>>().join(",");
                table.row([name.to_owned(), network.addresses.join(","), ports]);
            }
            out.push_str(&style.section("Host Networks", &table.render()));
        }
        if !self.node.host_volumes.is_empty() {
            let mut table = Table::new(["Name", "Read Only", "Source"]);
            for (name, volume) in sorted(&self.node.host_volumes) {
                let read_only = volume.read_only.to_string();
                table.row([name.to_owned(), read_only, volume.path.clone()]);
            }
            out.push_str(&style.section("Host Volumes", &table.render()));
        }
        out
    }

    fn details(&self, style: &Style) -> String {
        let mut table = Table::new(["Driver", "Detected", "Healthy", "Message"]);
        for (name, info) in sorted(&self.node.drivers) {
            table.row([
                name.to_owned(),
                info.detected.to_string(),
                info.healthy.to_string(),
                info.description.clone(),
            ]);
        }
        let mut out = style.section("Drivers", &table.render());
        out.push_str(&self.host_parts(style));
        for (title, words) in [
            ("Attributes", &self.node.attributes),
            ("Meta", &self.node.meta),
        ] {
            let mut fields = Fields::new();
            for (key, value) in sorted(words) {
                fields.add(key, value.as_str());
            }
            if !fields.is_empty() {
                out.push_str(&style.section(title, &fields.render()));
            }
        }
        out
    }
}
