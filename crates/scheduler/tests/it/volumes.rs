//! Commands of scripts about registered volumes.

use std::fmt::Write as _;

use model::job::{VolumeRequest, VolumeType};
use model::{AccessMode, AttachmentMode, Capability, Timestamp, Volume, VolumeId, VolumeKey};
use state::{Entity, Key};

use crate::cluster::TestCluster;

/// Registers a volume with the modes in `words`.
pub(crate) fn register(cluster: &mut TestCluster, node: &str, name: &str, words: &[&str]) {
    let node_id = cluster.node_named(node).id;
    let key = key(cluster, node, name);
    let capabilities = words.iter().map(|word| Capability {
        access_mode: mode(word).unwrap_or_else(|| panic!("no such access mode: {word}")),
        attachment_mode: AttachmentMode::FileSystem,
    });
    let volume = Volume {
        namespace: "default".into(),
        name: name.into(),
        node_id,
        id: VolumeId::from_random(cluster.snapshot().index().into()),
        host_path: format!("/srv/{name}"),
        capabilities: capabilities.collect(),
        deleting: false,
        create_time: Timestamp(1),
        modify_time: Timestamp(1),
    };
    cluster.put(Key::Volume(key), Entity::Volume(Box::new(volume)));
}

pub(crate) fn delete(cluster: &mut TestCluster, node: &str, name: &str) {
    let key = key(cluster, node, name);
    cluster.apply(vec![(Key::Volume(key), None)]);
}

fn key(cluster: &TestCluster, node: &str, name: &str) -> VolumeKey {
    VolumeKey {
        namespace: "default".into(),
        name: name.into(),
        node_id: cluster.node_named(node).id,
    }
}

fn mode(word: &str) -> Option<AccessMode> {
    Some(match word {
        "reader" => AccessMode::SingleNodeReaderOnly,
        "writer" => AccessMode::SingleNodeWriter,
        "alone" => AccessMode::SingleNodeSingleWriter,
        "multi" => AccessMode::SingleNodeMultiWriter,
        _ => return None,
    })
}

/// Reads `SOURCE[/alone|multi|…][/read_only][/sticky][/per_alloc]`.
pub(crate) fn request(text: &str) -> VolumeRequest {
    let mut words = text.split('/');
    let mut request = VolumeRequest {
        volume_type: VolumeType::Host,
        source: words.next().unwrap_or_default().into(),
        read_only: false,
        sticky: false,
        per_alloc: false,
        access_mode: None,
        attachment_mode: None,
        mount_options: Default::default(),
    };
    for word in words {
        match word {
            "read_only" => request.read_only = true,
            "sticky" => request.sticky = true,
            "per_alloc" => request.per_alloc = true,
            _ => {
                let mode = mode(word);
                assert!(mode.is_some(), "no such word of a volume: {word}");
                request.access_mode = mode;
            }
        }
    }
    request
}

/// Lists claims by group and node.
pub(crate) fn claims(cluster: &TestCluster) -> String {
    let snapshot = cluster.snapshot();
    let claims = snapshot.volume_claims().map(|claim| &claim.value);
    let mut lines: Vec<String> = claims
        .map(|claim| {
            let node = snapshot.node(claim.node_id).expect("the node is there");
            let (job, group) = (&claim.job_id, &claim.task_group);
            format!(
                "{job}.{group} claims {} on {}",
                claim.volume_name, node.value.name
            )
        })
        .collect();
    lines.sort();
    let mut text = String::new();
    for line in lines {
        writeln!(text, "{line}").unwrap();
    }
    text
}

/// Deletes the claims of a job's groups on a node.
pub(crate) fn drop_claims(cluster: &mut TestCluster, job: &str, node: &str) {
    let (snapshot, node_id) = (cluster.snapshot(), cluster.node_named(node).id);
    let claims = snapshot.volume_claims().map(|claim| &claim.value);
    let claims = claims.filter(|claim| claim.job_id == job && claim.node_id == node_id);
    let keys: Vec<_> = claims
        .map(|claim| (Key::VolumeClaim(claim.id()), None))
        .collect();
    cluster.apply(keys);
}
