//! Storage systems' volumes, plugins and snapshots.

use proto::v1;

use super::Style;
use crate::output::fields::Fields;
use crate::output::table::Table;

pub(crate) fn table(volumes: &[v1::CsiVolume]) -> Table {
    let header = [
        "ID",
        "Name",
        "Namespace",
        "Plugin ID",
        "Schedulable",
        "Access Mode",
    ];
    let mut table = Table::new(header);
    for volume in volumes {
        table.row([
            volume.id.clone(),
            volume.name.clone(),
            volume.namespace.clone(),
            volume.plugin_id.clone(),
            volume.schedulable.to_string(),
            modes(volume),
        ]);
    }
    table
}

/// The access modes that jobs may request, each once.
fn modes(volume: &v1::CsiVolume) -> String {
    let mut modes: Vec<&str> = Vec::new();
    for capability in &volume.capabilities {
        if !modes.contains(&capability.access_mode.as_str()) {
            modes.push(&capability.access_mode);
        }
    }
    modes.join(",")
}

/// One volume: its header, capabilities, users and attachments.
pub(crate) fn info(found: &v1::GetCsiVolumeResponse, style: &Style) -> String {
    let none = v1::CsiVolume::default();
    let volume = found.volume.as_ref().unwrap_or(&none);
    let capacity = match volume.capacity_bytes {
        0 => "<none>".to_owned(),
        bytes => format!("{} MiB", bytes >> 20),
    };
    let mut fields = Fields::new();
    fields
        .add("ID", volume.id.as_str())
        .add("Name", volume.name.as_str())
        .add("Namespace", volume.namespace.as_str())
        .add("External ID", volume.external_id.as_str())
        .add("Plugin ID", volume.plugin_id.as_str())
        .add("Provider", volume.provider.as_str())
        .add("Version", volume.provider_version.as_str())
        .add("Capacity", capacity)
        .add("Schedulable", volume.schedulable.to_string())
        .add(
            "Controllers Healthy",
            volume.controllers_healthy.to_string(),
        )
        .add(
            "Controllers Expected",
            volume.controllers_expected.to_string(),
        )
        .add("Nodes Healthy", volume.nodes_healthy.to_string())
        .add("Nodes Expected", volume.nodes_expected.to_string())
        .add("Registered", style.time(volume.create_time_ns));
    let mut out = fields.render();
    let mut table = Table::new(["Access Mode", "Attachment Mode"]);
    for capability in &volume.capabilities {
        let attachment_mode = capability.attachment_mode.clone();
        table.row([capability.access_mode.clone(), attachment_mode]);
    }
    out.push_str(&style.section("Capabilities", &table.render()));
    if !volume.topologies.is_empty() {
        let lines = volume.topologies.iter().map(|topology| {
            let mut segments: Vec<String> = topology
                .segments
                .iter()
                .map(|(key, value)| format!("{key}={value}"))
                .collect();
            segments.sort_unstable();
            segments.join(", ")
        });
        let lines: Vec<String> = lines.collect();
        out.push_str(&style.section("Topologies", &lines.join("\n")));
    }
    let users = if found.users.is_empty() {
        "No allocations use it".to_owned()
    } else {
        let mut table = Table::new(["Alloc ID", "Node ID", "Job ID", "Access"]);
        for user in &found.users {
            let access = if user.read_only { "read" } else { "write" };
            table.row([
                style.id(&user.alloc_id),
                style.id(&user.node_id),
                user.job_id.clone(),
                access.to_owned(),
            ]);
        }
        table.render()
    };
    out.push_str(&style.section("Allocations", &users));
    if !found.attachments.is_empty() {
        let mut table = Table::new(["Node ID", "State", "Alloc ID", "Failures", "Last Failure"]);
        for attachment in &found.attachments {
            table.row([
                style.id(&attachment.node_id),
                attachment.state.clone(),
                style.id(&attachment.alloc_id),
                attachment.failures.to_string(),
                attachment.error.clone(),
            ]);
        }
        out.push_str(&style.section("Attachments", &table.render()));
    }
    out
}

pub(crate) fn external(volumes: &[v1::ExternalCsiVolume]) -> Table {
    let mut table = Table::new(["External ID", "Capacity", "Condition", "Nodes"]);
    for volume in volumes {
        let condition = if volume.abnormal { "Abnormal" } else { "OK" };
        let condition = match volume.status.as_str() {
            "" => condition.to_owned(),
            status => format!("{condition} ({status})"),
        };
        table.row([
            volume.external_id.clone(),
            format!("{} MiB", volume.capacity_bytes >> 20),
            condition,
            volume.attached_node_ids.join(","),
        ]);
    }
    table
}

pub(crate) fn plugins(plugins: &[v1::CsiPlugin]) -> Table {
    let header = [
        "ID",
        "Provider",
        "Controllers Healthy/Expected",
        "Nodes Healthy/Expected",
    ];
    let mut table = Table::new(header);
    for plugin in plugins {
        table.row([
            plugin.id.clone(),
            plugin.provider.clone(),
            format!(
                "{}/{}",
                plugin.controllers_healthy, plugin.controllers_expected
            ),
            format!("{}/{}", plugin.nodes_healthy, plugin.nodes_expected),
        ]);
    }
    table
}

/// One plugin: its header, and its services by node.
pub(crate) fn plugin(plugin: &v1::CsiPlugin, style: &Style) -> String {
    let mut fields = Fields::new();
    fields
        .add("ID", plugin.id.as_str())
        .add("Provider", plugin.provider.as_str())
        .add("Version", plugin.provider_version.as_str())
        .add(
            "Controllers Healthy",
            plugin.controllers_healthy.to_string(),
        )
        .add(
            "Controllers Expected",
            plugin.controllers_expected.to_string(),
        )
        .add("Nodes Healthy", plugin.nodes_healthy.to_string())
        .add("Nodes Expected", plugin.nodes_expected.to_string());
    let mut out = fields.render();
    let services = [("controller", &plugin.controllers), ("node", &plugin.nodes)];
    let rows = services.into_iter().flat_map(|(service, infos)| {
        let rows = infos.iter();
        rows.map(move |(node_id, info)| (service, node_id, info))
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(|(service, node_id, _)| (*service, (*node_id).clone()));
    let mut table = Table::new(["Service", "Node ID", "Alloc ID", "Healthy", "Description"]);
    for (service, node_id, info) in rows {
        table.row([
            service.to_owned(),
            style.id(node_id),
            style.id(&info.alloc_id),
            info.healthy.to_string(),
            info.description.clone(),
        ]);
    }
    out.push_str(&style.section("Services", &table.render()));
    out
}

pub(crate) fn snapshots(snapshots: &[v1::CsiSnapshot], style: &Style) -> Table {
    let mut table = Table::new(["Snapshot ID", "Volume ID", "Size", "Create Time", "Ready?"]);
    for snapshot in snapshots {
        table.row([
            snapshot.id.clone(),
            snapshot.external_volume_id.clone(),
            format!("{} MiB", snapshot.size_bytes >> 20),
            style.time(snapshot.create_time_ns),
            snapshot.ready.to_string(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::tests::style;

    #[test]
    fn a_volume_is_shown_with_its_users_and_attachments() {
        let volume = v1::CsiVolume {
            namespace: "default".to_owned(),
            id: "data".to_owned(),
            name: "data".to_owned(),
            external_id: "vol-1".to_owned(),
            plugin_id: "ebs".to_owned(),
            capabilities: vec![v1::VolumeCapability {
                access_mode: "single-node-writer".to_owned(),
                attachment_mode: "file-system".to_owned(),
            }],
            schedulable: true,
            nodes_healthy: 1,
            nodes_expected: 2,
            ..v1::CsiVolume::default()
        };
        let shown = table(std::slice::from_ref(&volume)).render();
        let expected = "ID    Name  Namespace  Plugin ID  Schedulable  Access Mode\n\
                        data  data  default    ebs        true         single-node-writer";
        assert_eq!(shown.trim_end(), expected);
        let found = v1::GetCsiVolumeResponse {
            meta: None,
            volume: Some(volume),
            users: vec![v1::CsiVolumeUser {
                alloc_id: "17c0ffee-0b4d-4a7e-9c5f-6d7e8f901234".to_owned(),
                node_id: "4d2ba53b-0b4d-4a7e-9c5f-6d7e8f901234".to_owned(),
                job_id: "db".to_owned(),
                read_only: false,
            }],
            attachments: vec![v1::CsiAttachment {
                node_id: "4d2ba53b-0b4d-4a7e-9c5f-6d7e8f901234".to_owned(),
                state: "detaching".to_owned(),
                alloc_id: "17c0ffee-0b4d-4a7e-9c5f-6d7e8f901234".to_owned(),
                error: "busy".to_owned(),
                failures: 2,
            }],
        };
        let shown = info(&found, &style(false));
        for part in [
            "External ID          = vol-1",
            "Nodes Healthy        = 1",
            "Nodes Expected       = 2",
            "17c0ffee  4d2ba53b  db      write",
            "4d2ba53b  detaching  17c0ffee  2         busy",
        ] {
            assert!(shown.contains(part), "{shown}");
        }
    }

    #[test]
    fn a_plugin_is_shown_with_the_reason_of_an_unhealthy_service() {
        let info = v1::CsiPluginInfo {
            alloc_id: "17c0ffee-0b4d-4a7e-9c5f-6d7e8f901234".to_owned(),
            description: "no answer".to_owned(),
            ..v1::CsiPluginInfo::default()
        };
        let ebs = v1::CsiPlugin {
            id: "ebs".to_owned(),
            provider: "ebs.csi.aws.com".to_owned(),
            nodes_expected: 1,
            nodes: [("4d2ba53b-0b4d-4a7e-9c5f-6d7e8f901234".to_owned(), info)].into(),
            ..v1::CsiPlugin::default()
        };
        let shown = plugins(std::slice::from_ref(&ebs)).render();
        assert!(shown.contains("ebs  ebs.csi.aws.com  0/0"), "{shown}");
        let shown = plugin(&ebs, &style(false));
        let row = "node     4d2ba53b  17c0ffee  false    no answer";
        assert!(shown.contains(row), "{shown}");
    }
}
