//! Images that the agent pulled, with the names by which it did: the images that it may remove. Kept on disk.
//!
//! An image that the node had under a name before the pull of that name is none of them, nor is one that
//! was made or loaded on the node. An open pull names the image from before it, so that a pull whose agent
//! ended in between is settled by the next run of the agent.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PulledImages {
    /// Image id → names by which the agent pulled it; at least one.
    pulled: BTreeMap<String, BTreeSet<String>>,
    /// Name → id of the image that had it before the pull; `None`: none had. A pull is open until it
    /// succeeds or is settled.
    open_pulls: BTreeMap<String, Option<String>>,
}

impl PulledImages {
    /// Records that a pull begins. Of pulls of one name at a time, the first counts.
    /// `before`: id of the image that has the name now.
    pub(crate) fn begin_pull(&mut self, name: &str, before: Option<String>) {
        self.open_pulls.entry(name.to_owned()).or_insert(before);
    }

    /// Records the end of a pull. An image that the name had already stays as it is.
    /// `after`: id of the image that has the name now.
    pub(crate) fn end_pull(&mut self, name: &str, after: Option<&str>) {
        let Some(before) = self.open_pulls.remove(name) else {
            return;
        };
        if let Some(after) = after
            && before.as_deref() != Some(after)
        {
            let names = self.pulled.entry(after.to_owned()).or_default();
            names.insert(name.to_owned());
        }
    }

    pub(crate) fn open_pulls(&self) -> Vec<String> {
        self.open_pulls.keys().cloned().collect()
    }

    /// Returns the ids of all pulled images.
    pub(crate) fn ids(&self) -> Vec<String> {
        self.pulled.keys().cloned().collect()
    }

    /// Returns the names by which an image was pulled; empty: the agent did not pull it.
    pub(crate) fn names(&self, id: &str) -> Vec<String> {
        let names = self.pulled.get(id).into_iter().flatten();
        names.cloned().collect()
    }

    pub(crate) fn forget(&mut self, id: &str) {
        self.pulled.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_that_were_there_before_the_pull_are_not_the_agents() {
        for (before, after, want) in [
            (None, Some("new"), vec!["new"]),
            // The tag moved.
            (Some("old"), Some("new"), vec!["new"]),
            (Some("old"), Some("old"), vec![]),
            // A pull that failed.
            (None, None, vec![]),
            (Some("old"), None, vec![]),
        ] {
            let mut images = PulledImages::default();
            images.begin_pull("redis:7", before.map(str::to_owned));
            assert_eq!(images.open_pulls(), ["redis:7"]);
            images.end_pull("redis:7", after);
            assert_eq!(images.ids(), want, "{before:?} {after:?}");
            assert!(images.open_pulls().is_empty());
        }
    }

    #[test]
    fn a_later_pull_that_brings_nothing_new_leaves_an_image_the_agents() {
        let mut images = PulledImages::default();
        images.begin_pull("redis", None);
        images.end_pull("redis", Some("a"));
        images.begin_pull("redis", Some("a".to_owned()));
        images.end_pull("redis", Some("a"));
        assert_eq!(images.names("a"), ["redis"]);
        // Another name of the image, and another image of the name.
        for (name, before, after) in [("redis:7", None, "a"), ("redis", Some("a"), "b")] {
            images.begin_pull(name, before.map(str::to_owned));
            images.end_pull(name, Some(after));
        }
        assert_eq!(images.names("a"), ["redis", "redis:7"]);
        assert_eq!(images.names("b"), ["redis"]);
        images.forget("a");
        assert_eq!(images.ids(), ["b"]);
    }

    #[test]
    fn the_first_of_two_pulls_of_a_name_decides_what_was_there_before() {
        let mut images = PulledImages::default();
        images.begin_pull("redis:7", None);
        images.begin_pull("redis:7", Some("a".to_owned()));
        images.end_pull("redis:7", Some("a"));
        images.end_pull("redis:7", Some("a"));
        assert_eq!(images.ids(), ["a"]);
    }

    #[test]
    fn a_file_of_another_version_is_read_as_far_as_it_is_known() {
        let images: PulledImages =
            serde_json::from_str(r#"{"pulled":{"a":["x"]},"new":1}"#).unwrap();
        assert_eq!(images.names("a"), ["x"]);
        assert_eq!(PulledImages::default(), serde_json::from_str("{}").unwrap());
    }
}
