//! Objects that are shown and applied: the JSON of a shown object describes it again.

use nomad_json::namespace::Namespace;
use nomad_json::node_pool::NodePool;
use nomad_json::volume::Volume;
use proto::v1;
use serde_json::{Value, json};

fn namespace() -> v1::Namespace {
    v1::Namespace {
        name: "dev".to_owned(),
        description: "For trying out".to_owned(),
        meta: [("owner".to_owned(), "sre".to_owned())].into(),
        capabilities: Some(v1::NamespaceCapabilities {
            enabled_task_drivers: vec!["raw_exec".to_owned()],
            disabled_task_drivers: Vec::new(),
        }),
        node_pool_configuration: Some(v1::NamespaceNodePoolConfiguration {
            default: "batch".to_owned(),
            allowed: Some(v1::NodePoolPatterns::default()),
            denied: vec!["gpu-*".to_owned()],
        }),
        ..v1::Namespace::default()
    }
}

#[test]
fn a_shown_namespace_can_be_applied() {
    let stored = v1::Namespace {
        create_index: 3,
        modify_index: 7,
        ..namespace()
    };
    let shown = serde_json::to_value(Namespace::from(&stored)).unwrap();
    assert_eq!(
        (&shown["CreateIndex"], &shown["ModifyIndex"]),
        (&json!(3), &json!(7))
    );
    let read: Namespace = serde_json::from_value(shown).unwrap();
    assert_eq!(v1::Namespace::try_from(read).unwrap(), namespace());
}

#[test]
fn a_namespace_of_nomad_is_read_unless_it_has_a_quota() {
    let with_quota = |quota: &str| -> Result<v1::Namespace, String> {
        let text = json!({"Name": "dev", "Quota": quota, "Meta": null, "Hash": "x="});
        let read: Namespace = serde_json::from_value(text).unwrap();
        read.try_into()
    };
    assert_eq!(with_quota("").unwrap().name, "dev");
    assert!(
        with_quota("q")
            .unwrap_err()
            .contains("remove it (\"Quota\")")
    );
}

#[test]
fn a_shown_node_pool_can_be_applied() {
    let pool = v1::NodePool {
        name: "gpu".to_owned(),
        scheduler_configuration: Some(v1::NodePoolSchedulerConfiguration {
            scheduler_algorithm: "spread".to_owned(),
            memory_oversubscription_enabled: None,
        }),
        ..v1::NodePool::default()
    };
    let stored = v1::NodePool {
        create_index: 3,
        ..pool.clone()
    };
    let shown = serde_json::to_value(NodePool::from(&stored)).unwrap();
    assert_eq!(shown["CreateIndex"], 3);
    let read: NodePool = serde_json::from_value(shown).unwrap();
    assert_eq!(v1::NodePool::from(read), pool);
}

#[test]
fn a_shown_volume_can_be_registered() {
    let volume = v1::Volume {
        namespace: "default".to_owned(),
        name: "data".to_owned(),
        r#type: "host".to_owned(),
        node_id: "8a3f2c1e".to_owned(),
        host_path: "/srv/data".to_owned(),
        capabilities: vec![v1::VolumeCapability {
            access_mode: "single-node-writer".to_owned(),
            attachment_mode: "file-system".to_owned(),
        }],
        ..v1::Volume::default()
    };
    let stored = v1::Volume {
        state: "ready".to_owned(),
        node_pool: "default".to_owned(),
        create_time_ns: 5,
        ..volume.clone()
    };
    let shown = serde_json::to_value(Volume::from(&stored)).unwrap();
    assert_eq!(
        (&shown["State"], &shown["CreateTime"]),
        (&json!("ready"), &json!(5))
    );
    let read: Volume = serde_json::from_value(shown).unwrap();
    assert_eq!(v1::Volume::from(read), volume);
}

fn refused<T: serde::de::DeserializeOwned>(text: &Value) -> bool {
    let read = serde_json::from_value::<T>(text.clone());
    read.is_err_and(|error| error.to_string().contains("unknown field `Path`"))
}

#[test]
fn unknown_keys_are_refused() {
    let text = json!({"Name": "x", "Path": "y"});
    assert!(refused::<Namespace>(&text));
    assert!(refused::<NodePool>(&text));
    assert!(refused::<Volume>(&text));
}
