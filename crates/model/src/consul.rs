//! References of groups and tasks to a Consul cluster.

use serde::{Deserialize, Serialize};

/// A Consul cluster, its namespace and partition: of a task's logins and look-ups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consul {
    pub cluster: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub partition: String,
}

impl Consul {
    pub const DEFAULT_CLUSTER: &str = "default";

    /// Tells whether a change from the block `old` to `new` moves tasks to another part of Consul, which
    /// needs new tasks; `None`: there is no block.
    ///
    /// Source: Nomad's public behaviour. A missing block has an empty namespace, while cluster and
    /// partition are compared only between two blocks.
    pub fn moves(old: Option<&Self>, new: Option<&Self>) -> bool {
        let [was, is] = [old, new].map(|block| block.map_or("", |block| &block.namespace));
        if was != is {
            return true;
        }
        let (Some(old), Some(new)) = (old, new) else {
            return false;
        };
        (&old.cluster, &old.partition) != (&new.cluster, &new.partition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(cluster: &str, namespace: &str, partition: &str) -> Option<Consul> {
        Some(Consul {
            cluster: cluster.to_owned(),
            namespace: namespace.to_owned(),
            partition: partition.to_owned(),
        })
    }

    #[test]
    fn a_block_moves_with_its_namespace_and_with_cluster_and_partition_of_two_blocks() {
        let plain = || block("default", "", "");
        let in_a = || block("default", "a", "");
        let in_p = || block("default", "", "p");
        for (name, old, new, expected) in [
            ("no block", None, None, false),
            ("the same block", in_a(), in_a(), false),
            ("another namespace", in_a(), block("default", "b", ""), true),
            ("a namespace more", plain(), in_a(), true),
            ("a block more, without a namespace", None, plain(), false),
            ("a block more, with a namespace", None, in_a(), true),
            ("a block more, with a partition", None, in_p(), false),
            (
                "a block more, of another cluster",
                None,
                block("eu", "", ""),
                false,
            ),
            ("another partition", in_p(), block("default", "", "q"), true),
            ("a partition more", plain(), in_p(), true),
            ("another cluster", plain(), block("eu", "", ""), true),
        ] {
            assert_eq!(
                Consul::moves(old.as_ref(), new.as_ref()),
                expected,
                "{name}"
            );
            assert_eq!(
                Consul::moves(new.as_ref(), old.as_ref()),
                expected,
                "{name}, back"
            );
        }
    }
}
