//! Services and their registrations.

use proto::v1;

use super::Style;
use crate::output::fields::Fields;
use crate::output::table::Table;

/// Services by name, with the namespace of each if several are listed.
pub(crate) fn table(services: &[v1::ServiceSummary], with_namespace: bool) -> Table {
    if with_namespace {
        let mut table = Table::new(["Service Name", "Namespace", "Tags"]);
        for service in services {
            let namespace = service.namespace.clone();
            table.row([service.name.clone(), namespace, tags(&service.tags)]);
        }
        return table;
    }
    let mut table = Table::new(["Service Name", "Tags"]);
    for service in services {
        table.row([service.name.clone(), tags(&service.tags)]);
    }
    table
}

/// The registrations of a service.
pub(crate) fn registrations(found: &[v1::ServiceRegistration], style: &Style) -> Table {
    let mut table = Table::new(["Job ID", "Address", "Tags", "Node ID", "Alloc ID"]);
    for registration in found {
        table.row([
            registration.job_id.clone(),
            address(registration),
            tags(&registration.tags),
            style.id(&registration.node_id),
            style.id(&registration.alloc_id),
        ]);
    }
    table
}

/// The registrations of a service with all their fields, a block each.
pub(crate) fn details(found: &[v1::ServiceRegistration]) -> String {
    let block = |registration: &v1::ServiceRegistration| {
        let mut fields = Fields::new();
        fields
            .add("ID", registration.id.clone())
            .add("Service Name", registration.name.clone())
            .add("Namespace", registration.namespace.clone())
            .add("Job ID", registration.job_id.clone())
            .add("Alloc ID", registration.alloc_id.clone())
            .add("Node ID", registration.node_id.clone())
            .add("Datacenter", registration.datacenter.clone())
            .add("Address", address(registration))
            .add("Tags", tags(&registration.tags));
        fields.render()
    };
    let blocks: Vec<String> = found.iter().map(block).collect();
    blocks.join("\n\n")
}

/// The states of service checks, a block each.
pub(crate) fn checks(checks: &[v1::AllocationCheck], style: &Style) -> String {
    let mut text = format!("Status of {} Nomad Service Checks", checks.len());
    for check in checks {
        let time = match check.time_ns {
            0 => "none".to_owned(),
            time => style.time(time),
        };
        let or_group = |task: &str| if task.is_empty() { "(group)" } else { task }.to_owned();
        let mut fields = Fields::new();
        fields
            .add("ID", check.id.clone())
            .add("Name", check.check.clone())
            .add("Group", check.task_group.clone())
            .add("Task", or_group(&check.task))
            .add("Service", check.service.clone())
            .add("Status", check.status.clone());
        if check.status_code != 0 {
            fields.add("StatusCode", check.status_code.to_string());
        }
        fields
            .add("Mode", check.mode.clone())
            .add("Timestamp", time)
            .add_text("Output", &check.output);
        text.push_str("\n\n");
        text.push_str(&fields.render());
    }
    text
}

/// Host and port; the host alone of a service without a port. An IPv6 address is in brackets.
fn address(registration: &v1::ServiceRegistration) -> String {
    let (host, port) = (&registration.address, registration.port);
    match (port, host.contains(':')) {
        (0, _) => host.clone(),
        (_, true) => format!("[{host}]:{port}"),
        (_, false) => format!("{host}:{port}"),
    }
}

fn tags(tags: &[String]) -> String {
    let mut tags = tags.to_vec();
    tags.sort();
    format!("[{}]", tags.join(","))
}
