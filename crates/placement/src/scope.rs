//! Which nodes a job may use at all: its pool and its datacenters.

use model::{Job, Node};

/// The pool that stands for every node.
const POOL_ALL: &str = "all";

/// A job's pool and datacenters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Empty or `all`: every pool.
    node_pool: String,
    datacenters: Vec<String>,
}

impl Scope {
    pub fn new(job: &Job) -> Self {
        Self {
            node_pool: job.node_pool.clone(),
            datacenters: job.datacenters.clone(),
        }
    }

    /// Returns the job's pool, as it names it.
    pub fn node_pool(&self) -> &str {
        &self.node_pool
    }

    pub fn contains(&self, node: &Node) -> bool {
        self.contains_pool(node) && self.contains_datacenter(node)
    }

    pub fn contains_pool(&self, node: &Node) -> bool {
        self.node_pool.is_empty() || self.node_pool == POOL_ALL || self.node_pool == node.node_pool
    }

    pub fn contains_datacenter(&self, node: &Node) -> bool {
        self.datacenters
            .iter()
            .any(|glob| glob_matches(glob, &node.datacenter))
    }
}

/// Tells whether `text` matches `glob`, in which only `*` is special: any run of characters.
pub fn glob_matches(glob: &str, text: &str) -> bool {
    let Some((head, tail)) = glob.split_once('*') else {
        return glob == text;
    };
    let Some(mut rest) = text.strip_prefix(head) else {
        return false;
    };
    let mut parts = tail.split('*').collect::<Vec<_>>();
    let last = parts.pop().unwrap_or_default();
    // Each part where it comes first leaves the most for the others.
    for part in parts {
        match rest.find(part) {
            Some(position) => rest = &rest[position + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_star_is_special() {
        for (glob, text, want) in [
            ("*", "", true),
            ("*", "dc1", true),
            ("dc1", "dc1", true),
            ("dc1", "dc10", false),
            ("dc*", "dc10", true),
            ("*-west", "us-west", true),
            ("*-west", "us-west-2", false),
            ("us-*-1*", "us-east-1a", true),
            ("us-*-1*", "us-east", false),
            ("a*a", "a", false),
            ("a*b*a", "aba", true),
            ("dc?", "dc1", false),
            ("dc[12]", "dc1", false),
            ("**", "x", true),
        ] {
            assert_eq!(glob_matches(glob, text), want, "{glob} {text}");
        }
    }
}
