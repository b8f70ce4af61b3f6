//! Volumes of groups, and where tasks mount them.

use jobspec::{canonicalise, parse_api_json};
use model::job::{VolumeMount, VolumeRequest, VolumeType};
use model::{AccessMode, AttachmentMode, CsiPluginTask, CsiPluginType, MountOptions};
use serde_json::json;

use super::check;
use crate::support::{NOW, admit, file};

fn volume(body: &str) -> &'static str {
    format!("    volume \"data\" {{\n      {body}\n    }}").leak()
}

fn mount(body: &str) -> &'static str {
    format!("      volume_mount {{\n        {body}\n      }}").leak()
}

fn csi(access_mode: &str, more: &str) -> String {
    format!(
        "type = \"csi\"\n      source = \"disk\"\n      attachment_mode = \"file-system\"\n      \
         access_mode = \"{access_mode}\"\n      {more}"
    )
}

const HOST: &str = "type = \"host\"\n      source = \"disk\"";

#[test]
#[rustfmt::skip]
fn an_error_of_a_volume_names_its_field() {
    let own = format!("{HOST}\n      per_alloc = true");
    let sticky = format!("{own}\n      sticky = true");
    let mode = |mode: &str| format!("{HOST}\n      {mode}");
    let v = "$g.volume[\"data\"]";
    let field = |name: &str| -> &'static str { format!("{v}.{name}").leak() };
    let m = "$t.volume_mount[0]";
    let mount_field = |name: &str| -> &'static str { format!("{m}.{name}").leak() };
    check(&[
        ("", volume("source = \"disk\""), "", field("type"), "volume has unrecognized type"),
        ("", volume("type = \"nfs\"\n      source = \"disk\""), "",
            field("type"), "volume has unrecognized type nfs"),
        ("", volume("type = \"csi\"\n      source = \"disk\"\n      attachment_mode = \"file-system\""), "",
            field("access_mode"), "CSI volumes must have an access mode"),
        ("", volume("type = \"csi\"\n      source = \"disk\"\n      access_mode = \"single-node-writer\""), "",
            field("attachment_mode"), "CSI volumes must have an attachment mode"),
        ("", volume(&csi("single-node-single-writer", "")), "",
            field("access_mode"), "unknown access_mode \"single-node-single-writer\""),
        ("", volume(&csi("multi-node-reader-only", "")), "",
            field("access_mode"), "needs read_only = true"),
        ("", volume(&csi("multi-node-multi-writer", "sticky = true")), "",
            field("sticky"), "CSI volumes cannot be sticky"),
        ("", volume(&csi("multi-node-multi-writer", "").replace("file-system", "block-device")), "",
            field("attachment_mode"), "is not supported by this version of Kafila"),
        ("", volume(&csi("multi-node-multi-writer", "").replace("file-system", "glue")), "",
            field("attachment_mode"), "unknown attachment_mode \"glue\""),
        ("", volume(&format!("{HOST}\n      mount_options {{}}")), "",
            field("mount_options"), "host volumes are directories"),
        ("", volume("type = \"host\""), "", field("source"), "volume has an empty source"),
        ("", volume(&mode("access_mode = \"multi-node-multi-writer\"")), "",
            field("access_mode"), "host volumes are on one node"),
        ("", volume(&mode("access_mode = \"often\"")), "",
            field("access_mode"), "unknown access_mode \"often\""),
        ("", volume(&mode("access_mode = \"single-node-reader-only\"")), "",
            field("access_mode"), "needs read_only = true"),
        ("", volume(&mode("access_mode = \"single-node-writer\"\n      read_only = true")), "",
            field("access_mode"), "cannot be read_only"),
        ("", volume(&mode("attachment_mode = \"block-device\"")), "",
            field("attachment_mode"), "host volumes are directories"),
        ("", volume(&mode("attachment_mode = \"glue\"")), "",
            field("attachment_mode"), "unknown attachment_mode \"glue\""),
        ("  type = \"system\"", volume(&own), "",
            field("per_alloc"), "volume cannot be per_alloc for system or sysbatch jobs"),
        ("  type = \"sysbatch\"", volume(&own), "",
            field("per_alloc"), "volume cannot be per_alloc for system or sysbatch jobs"),
        ("", volume(&sticky), "",
            field("per_alloc"), "volume cannot be per_alloc and sticky at the same time"),
        ("", "", mount("volume = \"data\"\n        destination = \"/data\""),
            mount_field("volume"), "Volume Mount (0) references undefined volume data"),
        ("", volume(HOST), mount("volume = \"data\""),
            mount_field("destination"), "Volume Mount (0) has an empty destination"),
        ("", volume(HOST), mount("volume = \"data\"\n        destination = \"/d\"\n        propagation_mode = \"bidirectional\""),
            mount_field("propagation_mode"), "is not supported by this version of Kafila"),
        ("", volume(HOST), mount("volume = \"data\"\n        destination = \"/d\"\n        propagation_mode = \"public\""),
            mount_field("propagation_mode"), "unknown propagation_mode \"public\""),
    ]);
    let twice = format!("{}\n{}", volume(HOST), volume(HOST));
    let message = admit(&file("", &twice, "")).unwrap_err();
    assert!(message.contains("there are two volumes \"data\": rename one of them"), "{message}");
}

#[test]
fn volumes_with_canaries_are_shared() {
    let own = format!("{HOST}\n      per_alloc = true");
    let group = format!("{}\n    update {{\n      canary = 1\n    }}", volume(&own));
    let message = admit(&file("", &group, "")).unwrap_err();
    let want = "volume cannot be per_alloc when canaries are in use";
    assert!(message.contains(want), "{message}");
}

#[test]
fn both_notations_ask_for_the_same_volumes() {
    let body = format!(
        "{HOST}\n      read_only = true\n      per_alloc = true\n      \
         access_mode = \"single-node-reader-only\"\n      attachment_mode = \"file-system\""
    );
    let mounted = mount(
        "volume = \"data\"\n        destination = \"/srv\"\n        read_only = true\n        \
         propagation_mode = \"private\"",
    );
    let from_hcl = admit(&file("", volume(&body), mounted)).unwrap().job;
    let group = &from_hcl.task_groups[0];
    let want = VolumeRequest {
        volume_type: VolumeType::Host,
        source: "disk".into(),
        read_only: true,
        sticky: false,
        per_alloc: true,
        access_mode: Some(AccessMode::SingleNodeReaderOnly),
        attachment_mode: Some(AttachmentMode::FileSystem),
        mount_options: Default::default(),
    };
    assert_eq!(group.volumes["data"], want);
    let want = VolumeMount {
        volume: "data".into(),
        destination: "/srv".into(),
        read_only: true,
    };
    assert_eq!(group.tasks[0].volume_mounts, [want]);
    let text = json!({"Job": {
        "ID": "a",
        "TaskGroups": [{
            "Name": "g",
            "Volumes": {"data": {
                "Name": "data", "Type": "host", "Source": "disk", "ReadOnly": true,
                "Sticky": false, "PerAlloc": true, "AccessMode": "single-node-reader-only",
                "AttachmentMode": "file-system",
                "MountOptions": null,
            }},
            "Tasks": [{
                "Name": "t", "Driver": "raw_exec", "Config": {"command": "/bin/true"},
                "VolumeMounts": [{
                    "Volume": "data", "Destination": "/srv", "ReadOnly": true,
                    "PropagationMode": "private", "SELinuxLabel": "",
                }],
            }],
        }],
    }});
    let parsed = parse_api_json("j.json", &text.to_string()).unwrap();
    let from_json = canonicalise(&parsed.job, NOW).unwrap().job;
    assert_eq!(from_json.task_groups, from_hcl.task_groups);
    let wrong = text.to_string().replace("\"host\"", "\"nfs\"");
    let parsed = parse_api_json("j.json", &wrong).unwrap();
    let errors = canonicalise(&parsed.job, NOW).unwrap_err();
    let message = parsed.places.locate(&errors).to_string();
    assert!(message.contains("volume[\"data\"].type"), "{message}");
    let list = r#"{"ID": "a", "TaskGroups": [{"Name": "g", "Volumes": []}]}"#;
    let message = parse_api_json("j.json", list).unwrap_err().to_string();
    assert!(
        message.contains("Volumes is an object by name"),
        "{message}"
    );
}

#[test]
fn a_stored_volume_reads_back_the_same() {
    let mounted = mount("volume = \"data\"\n        destination = \"/srv\"");
    let job = admit(&file("", volume(HOST), mounted)).unwrap().job;
    let shown = job_fields::Job::from(&job);
    assert_eq!(
        canonicalise(&shown, NOW).unwrap().job.task_groups,
        job.task_groups
    );
}

#[test]
fn a_volume_of_a_storage_system_has_modes_and_options() {
    let body = csi(
        "multi-node-multi-writer",
        "mount_options {\n        fs_type = \"ext4\"\n        mount_flags = [\"noatime\"]\n      }",
    );
    let job = admit(&file("", volume(&body), "")).unwrap().job;
    let want = VolumeRequest {
        volume_type: VolumeType::Csi,
        source: "disk".into(),
        read_only: false,
        sticky: false,
        per_alloc: false,
        access_mode: Some(AccessMode::MultiNodeMultiWriter),
        attachment_mode: Some(AttachmentMode::FileSystem),
        mount_options: MountOptions {
            fs_type: "ext4".into(),
            mount_flags: vec!["noatime".into()],
        },
    };
    assert_eq!(job.task_groups[0].volumes["data"], want);
    let shown = job_fields::Job::from(&job);
    let again = canonicalise(&shown, NOW).unwrap().job;
    assert_eq!(again.task_groups, job.task_groups);
}

#[test]
fn a_volume_for_one_allocation_does_not_suit_several() {
    for (mode, is_valid) in [
        ("single-node-writer", false),
        ("multi-node-single-writer", false),
        ("multi-node-multi-writer", true),
    ] {
        let group = format!("{}\n    count = 2", volume(&csi(mode, "")));
        let admitted = admit(&file("", &group, ""));
        assert_eq!(admitted.is_ok(), is_valid, "{mode}");
        if let Err(message) = admitted {
            assert!(
                message.contains("does not suit a group with count 2"),
                "{message}"
            );
        }
        let each = format!("{}\n    count = 2", volume(&csi(mode, "per_alloc = true")));
        admit(&file("", &each, "")).unwrap();
    }
}

#[test]
fn a_plugin_of_a_task_has_the_usual_directories() {
    let plugin = |body: &str| format!("      csi_plugin {{\n        {body}\n      }}");
    let task = plugin("id = \"ebs\"\n        type = \"monolith\"");
    let job = admit(&file("", "", &task)).unwrap().job;
    let want = CsiPluginTask {
        id: "ebs".into(),
        plugin_type: CsiPluginType::Monolith,
        mount_dir: "/csi".into(),
        stage_publish_base_dir: "/local/csi".into(),
        health_timeout: std::time::Duration::from_secs(30),
    };
    assert_eq!(job.task_groups[0].tasks[0].csi_plugin, Some(want));
    let shown = job_fields::Job::from(&job);
    let again = canonicalise(&shown, NOW).unwrap().job;
    assert_eq!(again.task_groups, job.task_groups);
    for (body, problem) in [
        ("type = \"node\"", "must have a non-empty PluginID"),
        (
            "id = \"a/b\"\n        type = \"node\"",
            "is no id of a plugin",
        ),
        ("id = \"ebs\"", "CSIPluginConfig PluginType is not valid"),
        (
            "id = \"ebs\"\n        type = \"node\"\n        mount_dir = \"csi\"",
            "\"csi\" is no directory in the task",
        ),
        (
            "id = \"ebs\"\n        type = \"node\"\n        stage_publish_base_dir = \"/\"",
            "\"/\" is no directory in the task",
        ),
    ] {
        let message = admit(&file("", "", &plugin(body))).unwrap_err();
        assert!(message.contains(problem), "{body}: {message}");
    }
}
