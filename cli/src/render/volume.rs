//! Volumes, and claims of them.

use proto::v1;

use super::Style;
use crate::output::fields::Fields;
use crate::output::table::Table;

pub(crate) fn table(volumes: &[v1::Volume], style: &Style) -> Table {
    let header = ["ID", "Name", "Namespace", "Node ID", "Node Pool", "State"];
    let mut table = Table::new(header);
    for volume in volumes {
        table.row([
            style.id(&volume.id),
            volume.name.clone(),
            volume.namespace.clone(),
            style.id(&volume.node_id),
            volume.node_pool.clone(),
            volume.state.clone(),
        ]);
    }
    table
}

/// One volume: its header, capabilities and allocations.
pub(crate) fn info(volume: &v1::Volume, alloc_ids: &[String], style: &Style) -> String {
    let mut fields = Fields::new();
    fields
        .add("ID", volume.id.as_str())
        .add("Name", volume.name.as_str())
        .add("Namespace", volume.namespace.as_str())
        .add("Type", volume.r#type.as_str())
        .add("Node ID", style.id(&volume.node_id))
        .add("Node Pool", volume.node_pool.as_str())
        .add("State", volume.state.as_str())
        .add("Host Path", volume.host_path.as_str())
        .add("Registered", style.time(volume.create_time_ns));
    let mut out = fields.render();
    let mut table = Table::new(["Access Mode", "Attachment Mode"]);
    for capability in &volume.capabilities {
        let attachment_mode = capability.attachment_mode.clone();
        table.row([capability.access_mode.clone(), attachment_mode]);
    }
    out.push_str(&style.section("Capabilities", &table.render()));
    let users = if alloc_ids.is_empty() {
        "No allocations use it".to_owned()
    } else {
        let ids: Vec<String> = alloc_ids.iter().map(|id| style.id(id)).collect();
        ids.join("\n")
    };
    out.push_str(&style.section("Allocations", &users));
    out
}

pub(crate) fn claims(claims: &[v1::VolumeClaim], style: &Style) -> Table {
    let mut table = Table::new([
        "ID",
        "Namespace",
        "Job ID",
        "Task Group",
        "Volume Name",
        "Volume ID",
        "Node ID",
        "Alloc ID",
    ]);
    for claim in claims {
        table.row([
            style.id(&claim.id),
            claim.namespace.clone(),
            claim.job_id.clone(),
            claim.task_group.clone(),
            claim.volume_name.clone(),
            style.id(&claim.volume_id),
            style.id(&claim.node_id),
            style.id(&claim.alloc_id),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::tests::style;

    fn volume() -> v1::Volume {
        v1::Volume {
            namespace: "default".to_owned(),
            id: "5a1f0000-0b4d-4a7e-9c5f-6d7e8f901234".to_owned(),
            name: "data".to_owned(),
            r#type: "host".to_owned(),
            node_id: "4d2ba53b-0b4d-4a7e-9c5f-6d7e8f901234".to_owned(),
            host_path: "/srv/data".to_owned(),
            capabilities: vec![v1::VolumeCapability {
                access_mode: "single-node-single-writer".to_owned(),
                attachment_mode: "file-system".to_owned(),
            }],
            node_pool: "default".to_owned(),
            state: "ready".to_owned(),
            ..v1::Volume::default()
        }
    }

    #[test]
    fn a_volume_is_shown_with_its_allocations() {
        let volume = self::volume();
        let shown = table(std::slice::from_ref(&volume), &style(false)).render();
        let expected = "ID        Name  Namespace  Node ID   Node Pool  State\n\
                        5a1f0000  data  default    4d2ba53b  default    ready";
        assert_eq!(shown.trim_end(), expected);
        let users = ["17c0ffee-0b4d-4a7e-9c5f-6d7e8f901234".to_owned()];
        let shown = info(&volume, &users, &style(false));
        for part in [
            "Host Path  = /srv/data",
            "single-node-single-writer  file-system",
            "Allocations\n17c0ffee",
        ] {
            assert!(shown.contains(part), "{shown}");
        }
        let shown = info(&volume, &[], &style(true));
        assert!(shown.contains("Node ID    = 4d2ba53b-"), "{shown}");
        assert!(shown.contains("No allocations use it"), "{shown}");
    }

    #[test]
    fn claims_show_their_job_and_volume() {
        let claim = v1::VolumeClaim {
            id: "aaaaaaaa-0b4d-4a7e-9c5f-6d7e8f901234".to_owned(),
            namespace: "default".to_owned(),
            job_id: "db".to_owned(),
            task_group: "server".to_owned(),
            volume_name: "data".to_owned(),
            volume_id: "bbbbbbbb-0b4d-4a7e-9c5f-6d7e8f901234".to_owned(),
            node_id: "cccccccc-0b4d-4a7e-9c5f-6d7e8f901234".to_owned(),
            alloc_id: "dddddddd-0b4d-4a7e-9c5f-6d7e8f901234".to_owned(),
            ..v1::VolumeClaim::default()
        };
        let shown = claims(&[claim], &style(false)).render();
        let row = shown.lines().nth(1).unwrap();
        let cells: Vec<&str> = row.split_whitespace().collect();
        let expected = [
            "aaaaaaaa", "default", "db", "server", "data", "bbbbbbbb", "cccccccc", "dddddddd",
        ];
        assert_eq!(cells, expected);
    }
}
