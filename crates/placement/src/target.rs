//! Targets: a side of a constraint, resolved on a node. It is a literal or a fact about the node.

use std::borrow::Cow;

use model::Node;
use model::node::UNIQUE_PREFIX;

/// One side of a constraint, parsed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    Literal(String),
    NodeId,
    NodeName,
    Datacenter,
    NodeClass,
    NodePool,
    /// A fingerprinted attribute, as in `kernel.name`.
    Attribute(String),
    /// The operator's metadata, as in `rack`.
    Meta(String),
    /// An unknown interpolation, which is never found.
    Unknown,
}

impl Target {
    /// Parses `text`; without a leading `${` it is a literal.
    pub fn parse(text: &str) -> Self {
        let Some(rest) = text.strip_prefix("${") else {
            return Self::Literal(text.to_owned());
        };
        let Some(name) = rest.strip_suffix('}') else {
            return Self::Unknown;
        };
        match name {
            "node.unique.id" => Self::NodeId,
            "node.unique.name" => Self::NodeName,
            "node.datacenter" => Self::Datacenter,
            "node.class" => Self::NodeClass,
            "node.pool" => Self::NodePool,
            _ => {
                if let Some(key) = name.strip_prefix("attr.") {
                    Self::Attribute(key.to_owned())
                } else if let Some(key) = name.strip_prefix("meta.") {
                    Self::Meta(key.to_owned())
                } else if name.starts_with("unique.") {
                    Self::Attribute(name.to_owned())
                } else {
                    Self::Unknown
                }
            }
        }
    }

    /// Returns the value on `node`; `None`: the node has none.
    ///
    /// A literal and the node's own fields are always found, though they may be empty.
    pub fn resolve<'a>(&'a self, node: &'a Node) -> Option<Cow<'a, str>> {
        let found = match self {
            Self::Literal(text) => text.as_str(),
            Self::NodeId => return Some(Cow::Owned(node.id.to_string())),
            Self::NodeName => node.name.as_str(),
            Self::Datacenter => node.datacenter.as_str(),
            Self::NodeClass => node.node_class.as_str(),
            Self::NodePool => node.node_pool.as_str(),
            Self::Attribute(key) => node.attributes.get(key)?.as_str(),
            Self::Meta(key) => node.meta.get(key)?.as_str(),
            Self::Unknown => return None,
        };
        Some(Cow::Borrowed(found))
    }

    /// Tells whether values can differ between nodes of one computed class.
    pub fn escapes_class(&self) -> bool {
        match self {
            Self::NodeId | Self::NodeName => true,
            Self::Attribute(key) | Self::Meta(key) => key.starts_with(UNIQUE_PREFIX),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tests::node;

    #[test]
    fn every_form_of_target_finds_its_fact() {
        let node = node();
        let resolve = |text: &str| Target::parse(text).resolve(&node).map(Cow::into_owned);
        assert_eq!(resolve("plain").as_deref(), Some("plain"));
        assert_eq!(resolve("${node.unique.id}"), Some(node.id.to_string()));
        assert_eq!(resolve("${node.unique.name}").as_deref(), Some("n1"));
        assert_eq!(resolve("${node.datacenter}").as_deref(), Some("dc1"));
        assert_eq!(resolve("${node.class}").as_deref(), Some("big"));
        assert_eq!(resolve("${node.pool}").as_deref(), Some("default"));
        assert_eq!(resolve("${attr.kernel.name}").as_deref(), Some("linux"));
        assert_eq!(
            resolve("${attr.unique.hostname}").as_deref(),
            Some("host-1")
        );
        assert_eq!(resolve("${unique.hostname}").as_deref(), Some("host-1"));
        assert_eq!(resolve("${meta.rack}").as_deref(), Some("r1"));
        assert_eq!(resolve("${meta.absent}"), None);
        assert_eq!(resolve("${attr.kernel.name"), None);
        assert_eq!(resolve("${device.model}"), None);
    }

    #[test]
    fn only_unique_facts_escape_the_class() {
        for text in [
            "${node.unique.id}",
            "${node.unique.name}",
            "${attr.unique.x}",
            "${meta.unique.x}",
            "${unique.x}",
        ] {
            assert!(Target::parse(text).escapes_class(), "{text}");
        }
        for text in [
            "x",
            "${attr.x}",
            "${meta.x}",
            "${node.class}",
            "${node.datacenter}",
        ] {
            assert!(!Target::parse(text).escapes_class(), "{text}");
        }
    }
}
