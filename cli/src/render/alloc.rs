//! Allocations.

use proto::v1;

use super::{Style, metric, task};
use crate::output::fields::Fields;
use crate::output::table::Table;
use crate::output::time::show_duration;

/// The object whose allocations a table shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Job,
    Node,
}

/// Returns the table of allocations in the status of a job, evaluation or deployment.
pub(crate) fn table(allocs: &[v1::Allocation], style: &Style) -> Table {
    table_of(Owner::Job, allocs, style)
}

fn table_of(owner: Owner, allocs: &[v1::Allocation], style: &Style) -> Table {
    let columns = [
        ("ID", true),
        ("Eval ID", style.verbose),
        ("Node ID", true),
        ("Node Name", style.verbose),
        ("Job ID", owner == Owner::Node),
        ("Task Group", true),
        ("Version", true),
        ("Desired", true),
        ("Status", true),
        ("Created", true),
        ("Modified", true),
    ];
    let shown = columns.iter().filter(|(_, is_shown)| *is_shown);
    let mut table = Table::new(shown.map(|(title, _)| *title));
    for alloc in newest_first(allocs) {
        let mut cells = vec![style.id(&alloc.id)];
        if style.verbose {
            cells.push(style.id(&alloc.eval_id));
        }
        cells.push(style.id(&alloc.node_id));
        if style.verbose {
            cells.push(alloc.node_name.clone());
        }
        if owner == Owner::Node {
            cells.push(alloc.job_id.clone());
        }
        cells.extend([
            alloc.task_group.clone(),
            alloc.job_version.to_string(),
            alloc.desired_status.clone(),
            alloc.client_status.clone(),
            style.time(alloc.create_time_ns),
            style.time(alloc.modify_time_ns),
        ]);
        table.row(cells);
    }
    table
}

/// Returns the table of allocations, or a sentence if there are none.
pub(crate) fn section(allocs: &[v1::Allocation], style: &Style) -> String {
    if allocs.is_empty() {
        "No allocations placed\n".to_owned()
    } else {
        table(allocs, style).render()
    }
}

/// As [`section`], for the allocations of a node: with their jobs.
pub(crate) fn section_of_node(allocs: &[v1::Allocation], style: &Style) -> String {
    if allocs.is_empty() {
        "No allocations placed\n".to_owned()
    } else {
        table_of(Owner::Node, allocs, style).render()
    }
}

/// Returns the dedicated cores of each task, for example `server: 0, 3`.
fn cores(resources: &v1::AllocatedResources) -> String {
    let tasks = resources.cores.iter().map(|cores| {
        let ids: Vec<_> = cores.ids.iter().map(ToString::to_string).collect();
        format!("{}: {}", cores.task, ids.join(", "))
    });
    tasks.collect::<Vec<_>>().join("; ")
}

/// Returns the devices of each task, for example `server: nvidia/gpu/t4 GPU-1, GPU-2`.
fn devices(resources: &v1::AllocatedResources) -> String {
    let tasks = resources.devices.iter().map(|device| {
        let (vendor, kind, name) = (&device.vendor, &device.r#type, &device.name);
        let ids = device.instance_ids.join(", ");
        format!("{}: {vendor}/{kind}/{name} {ids}", device.task)
    });
    tasks.collect::<Vec<_>>().join("; ")
}

/// Sorts by creation, the newest first; equal ones by group and number.
fn newest_first(allocs: &[v1::Allocation]) -> Vec<&v1::Allocation> {
    let mut sorted: Vec<_> = allocs.iter().collect();
    sorted.sort_by(|a, b| {
        let by_age = b.create_index.cmp(&a.create_index);
        by_age
            .then_with(|| a.task_group.cmp(&b.task_group))
            .then_with(|| a.name_index.cmp(&b.name_index))
            .then_with(|| a.id.cmp(&b.id))
    });
    sorted
}

/// An allocation and its job version.
pub(crate) struct Status<'a> {
    pub(crate) alloc: &'a v1::Allocation,
    /// `None` if the version was deleted.
    pub(crate) job: Option<&'a v1::Job>,
    /// Leaves out task events.
    pub(crate) short: bool,
}

impl Status<'_> {
    /// Returns the output of `alloc status`.
    pub(crate) fn render(&self, style: &Style) -> String {
        let mut out = self.fields(style).render();
        out.push_str(&self.addresses(style));
        let group = self.group();
        if self.short {
            out.push_str(&task::table(self.alloc, group, style));
        } else {
            out.push_str(&task::sections(self.alloc, group, style));
        }
        if style.verbose {
            out.push_str(&self.placement(style));
        }
        out
    }

    fn group(&self) -> Option<&v1::TaskGroup> {
        let groups = &self.job?.task_groups;
        groups
            .iter()
            .find(|group| group.name() == self.alloc.task_group)
    }

    fn fields(&self, style: &Style) -> Fields {
        let alloc = self.alloc;
        let mut fields = Fields::new();
        fields
            .add("ID", style.id(&alloc.id))
            .add("Eval ID", style.id(&alloc.eval_id))
            .add("Name", alloc.name.as_str())
            .add("Node ID", style.id(&alloc.node_id))
            .add("Node Name", alloc.node_name.as_str())
            .add("Job ID", alloc.job_id.as_str())
            .add("Namespace", alloc.namespace.as_str())
            .add("Job Version", alloc.job_version.to_string())
            .add("Client Status", alloc.client_status.as_str())
            .add("Client Description", alloc.client_description.as_str())
            .add("Desired Status", alloc.desired_status.as_str())
            .add("Desired Description", alloc.desired_description.as_str())
            .add("Created", style.time(alloc.create_time_ns))
            .add("Modified", style.time(alloc.modify_time_ns));
        if !alloc.deployment_id.is_empty() {
            fields.add("Deployment ID", style.id(&alloc.deployment_id));
            fields.add("Deployment Health", health(alloc));
            if alloc.canary {
                fields.add("Canary", "true");
            }
        } else if alloc.deployment_health.is_some() {
            fields.add("Health", health(alloc));
        }
        if let Some(network) = &alloc.network_status {
            let addresses = [network.address.as_str(), network.address_ipv6.as_str()];
            let addresses: Vec<_> = addresses.into_iter().filter(|it| !it.is_empty()).collect();
            fields.add_some("Network Address", addresses.join(", "));
        }
        fields.add_some("Previous Alloc ID", style.id(&alloc.previous_alloc_id));
        fields.add_some("Replacement Alloc ID", style.id(&alloc.next_alloc_id));
        fields.add_some(
            "Preempted By Alloc ID",
            style.id(&alloc.preempted_by_alloc_id),
        );
        let preempted = alloc.preempted_alloc_ids.iter();
        let preempted: Vec<_> = preempted.map(|id| style.id(id)).collect();
        fields.add_some("Preempted Alloc IDs", preempted.join(", "));
        fields.add_some("Followup Eval ID", style.id(&alloc.followup_eval_id));
        if let Some(resources) = &alloc.resources {
            fields.add_some("Reserved Cores", cores(resources));
            fields.add_some("Devices", devices(resources));
        }
        if !alloc.reschedules.is_empty() {
            fields.add("Reschedule Attempts", self.attempts());
        }
        fields
    }

    /// Returns the reschedule attempts and their limit, for example `1/3`.
    fn attempts(&self) -> String {
        let made = self.alloc.reschedules.len();
        let policy = self.group().and_then(|group| group.reschedule.as_ref());
        match policy {
            Some(policy) if !policy.unlimited() => format!("{made}/{}", policy.attempts()),
            _ => made.to_string(),
        }
    }

    fn addresses(&self, style: &Style) -> String {
        let resources = self.alloc.resources.as_ref();
        let ports = resources
            .map(|resources| resources.ports.as_slice())
            .unwrap_or_default();
        if ports.is_empty() {
            return String::new();
        }
        let mut table = Table::new(["Label", "Dynamic", "Address"]);
        for port in ports {
            let dynamic = if self.is_static(port) { "no" } else { "yes" };
            let inside = match port.to {
                0 => String::new(),
                to if to == port.value => String::new(),
                to => format!(" -> {to}"),
            };
            table.row([
                match port.task.as_str() {
                    "" => format!("*{}", port.label),
                    task => format!("{task}.{}", port.label),
                },
                dynamic.to_owned(),
                format!("{}:{}{inside}", port.host_ip, port.value),
            ]);
        }
        let networks = self
            .group()
            .map(|group| group.networks.as_slice())
            .unwrap_or_default();
        let mode = networks
            .first()
            .map(v1::Network::mode)
            .filter(|mode| !mode.is_empty());
        let title = match mode {
            Some(mode) => format!("Allocation Addresses (mode = {mode:?}):"),
            None => "Allocation Addresses:".to_owned(),
        };
        style.section(&title, &table.render())
    }

    fn is_static(&self, port: &v1::AllocatedPort) -> bool {
        let Some(group) = self.group() else {
            return false;
        };
        let mut tasks = group.tasks.iter();
        let networks = match tasks.find(|task| !port.task.is_empty() && task.name() == port.task) {
            Some(task) => task.resources.as_ref().map_or(&[][..], |it| &it.networks),
            None => &group.networks,
        };
        let mut reserved = networks.iter().flat_map(|network| &network.reserved_ports);
        reserved.any(|fixed| fixed.label() == port.label)
    }

    /// Returns the scores of the chosen node and of the runners-up, with the mean last.
    fn scores(&self, metric: &v1::AllocMetric, style: &Style) -> String {
        let Some(chosen) = &metric.score_parts else {
            return String::new();
        };
        let mut rows = vec![(&self.alloc.node_id, *chosen, metric.score_per_mille)];
        for other in &metric.runners_up {
            rows.push((
                &other.node_id,
                other.parts.unwrap_or_default(),
                other.score_per_mille,
            ));
        }
        let likes_devices = rows.iter().any(|(_, parts, _)| parts.devices.is_some());
        let preempts = rows.iter().any(|(_, parts, _)| parts.preemption.is_some());
        let mut head = vec![
            "Node",
            "binpack",
            "job-anti-affinity",
            "node-affinity",
            "node-reschedule-penalty",
            "allocation-spread",
        ];
        if likes_devices {
            head.push("devices");
        }
        if preempts {
            head.push("preemption");
        }
        head.push("final score");
        let mut table = Table::new(head);
        for (node_id, parts, mean) in rows {
            let said = |part: Option<i32>| part.map_or_else(|| "-".to_owned(), score);
            let mut row = vec![
                style.id(node_id),
                score(parts.fit),
                said(parts.anti_affinity),
                said(parts.affinity),
                said(parts.reschedule_penalty),
                said(parts.spread),
            ];
            if likes_devices {
                row.push(said(parts.devices));
            }
            if preempts {
                row.push(said(parts.preemption));
            }
            row.push(score(mean));
            table.row(row);
        }
        format!("\n{}", table.render())
    }

    fn placement(&self, style: &Style) -> String {
        let Some(metric) = &self.alloc.metric else {
            return String::new();
        };
        let mut fields = Fields::new();
        fields
            .add("Evaluated Nodes", metric.nodes_evaluated.to_string())
            .add("Filtered Nodes", metric.nodes_filtered.to_string())
            .add("Exhausted Nodes", metric.nodes_exhausted.to_string())
            .add("Failures", metric.coalesced_failures.to_string());
        if metric.score_per_mille != 0 {
            fields.add("Score", score(metric.score_per_mille));
        }
        let mut body = fields.render();
        body.push_str(&self.scores(metric, style));
        // The allocation was placed, so the remaining reasons concern other nodes.
        for reason in metric::reasons(metric) {
            body.push_str(&reason);
            body.push('\n');
        }
        style.section("Placement Metrics", &body)
    }
}

/// Formats a score in thousandths.
fn score(per_mille: i32) -> String {
    format!("{:.3}", f64::from(per_mille) / 1000.0)
}

/// Formats the health of an allocation.
fn health(alloc: &v1::Allocation) -> &'static str {
    match &alloc.deployment_health {
        Some(health) if health.healthy => "healthy",
        Some(_) => "unhealthy",
        None => "unset",
    }
}

/// Returns one line about an allocation, for a list of matches.
pub(crate) fn one_line(alloc: &v1::Allocation, style: &Style) -> String {
    let age = style.times.now_ns.saturating_sub(alloc.create_time_ns) / 1_000_000_000;
    format!(
        "{} ({}, {}, placed {} ago)",
        style.id(&alloc.id),
        alloc.name,
        alloc.client_status,
        show_duration(age)
    )
}
