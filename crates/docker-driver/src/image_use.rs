//! Use of images: the time since which one is unused, and the exclusion of starts and removals that concern
//! the same name.
//!
//! Pure: time is an argument. Memory alone: after a restart of the agent the delay of unused images begins
//! anew.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

#[derive(Debug, Default)]
pub(crate) struct ImageUse {
    /// Name → starts that look it up, pull it, or create a container of it.
    holds: HashMap<String, usize>,
    /// Names of images that are being removed.
    removing: HashSet<String>,
    /// Image id → time at which it was first seen without a container. Of pulled images alone.
    unused_since: HashMap<String, Duration>,
}

impl ImageUse {
    /// Holds names for a start, so that no image of theirs is removed; false: one is being removed.
    pub(crate) fn hold(&mut self, names: &[String]) -> bool {
        if names.iter().any(|name| self.removing.contains(name)) {
            return false;
        }
        for name in names {
            *self.holds.entry(name.clone()).or_default() += 1;
        }
        true
    }

    /// Ends a hold.
    pub(crate) fn release(&mut self, names: &[String]) {
        for name in names {
            if let Some(count) = self.holds.get_mut(name) {
                *count -= 1;
                if *count == 0 {
                    self.holds.remove(name);
                }
            }
        }
    }

    pub(crate) fn is_held(&self, name: &str) -> bool {
        self.holds.contains_key(name)
    }

    /// Records that a start uses an image, which cancels its removal.
    pub(crate) fn mark_used(&mut self, id: &str) {
        self.unused_since.remove(id);
    }

    /// Returns the images that are unused for at least `delay`, in the order of `pulled`.
    /// `in_use`: ids of the images of all containers, other programs' included.
    pub(crate) fn due(
        &mut self,
        now: Duration,
        pulled: &[String],
        in_use: &HashSet<String>,
        delay: Duration,
    ) -> Vec<String> {
        self.unused_since
            .retain(|id, _| pulled.contains(id) && !in_use.contains(id));
        let mut due = Vec::new();
        for id in pulled.iter().filter(|id| !in_use.contains(*id)) {
            let since = *self.unused_since.entry(id.clone()).or_insert(now);
            if now.saturating_sub(since) >= delay {
                due.push(id.clone());
            }
        }
        due
    }

    /// Begins the removal of an image with these names; false: a start holds one, which cancels the removal.
    pub(crate) fn begin_removal(&mut self, id: &str, names: &[String]) -> bool {
        if names.iter().any(|name| self.is_held(name)) {
            self.unused_since.remove(id);
            return false;
        }
        // A start that held a name since the image was due.
        if !self.unused_since.contains_key(id) {
            return false;
        }
        self.removing.extend(names.iter().cloned());
        true
    }

    /// Ends a removal. The delay of an image that is still there begins anew.
    pub(crate) fn end_removal(&mut self, id: &str, names: &[String]) {
        self.unused_since.remove(id);
        for name in names {
            self.removing.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Duration = Duration::from_secs(180);

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    /// Looks at the images at a second, with containers of some.
    fn due(images: &mut ImageUse, second: u64, pulled: &[&str], in_use: &[&str]) -> Vec<String> {
        let in_use = names(in_use).into_iter().collect();
        images.due(Duration::from_secs(second), &names(pulled), &in_use, DELAY)
    }

    #[test]
    fn an_image_is_due_once_it_was_unused_for_the_delay() {
        type Look<'a> = (u64, &'a [&'a str], &'a [&'a str]);
        let table: [(&str, &[Look<'_>]); 5] = [
            (
                "the delay begins when the image is first seen unused",
                &[
                    (0, &["a", "b"], &[]),
                    (60, &["b"], &[]),
                    (239, &["b"], &[]),
                    (240, &["b"], &["a"]),
                ],
            ),
            (
                "a container in between begins it anew",
                &[
                    (0, &["b"], &[]),
                    (60, &["a", "b"], &[]),
                    (120, &["b"], &[]),
                    (299, &["b"], &[]),
                    (300, &["b"], &["a"]),
                ],
            ),
            (
                "each image has its own",
                &[
                    (0, &["b"], &[]),
                    (100, &[], &[]),
                    (180, &[], &["a"]),
                    (280, &[], &["a", "b"]),
                ],
            ),
            (
                "late looks find it as well",
                &[(0, &[], &[]), (9_000, &[], &["a", "b"])],
            ),
            ("the first look finds none", &[(9_000, &[], &[])]),
        ];
        for (what, looks) in table {
            let mut images = ImageUse::default();
            for (second, in_use, want) in looks {
                let found = due(&mut images, *second, &["a", "b"], in_use);
                assert_eq!(found, *want, "{what}, at {second} s");
            }
        }
    }

    #[test]
    fn a_start_within_the_delay_cancels_the_removal() {
        let mut images = ImageUse::default();
        due(&mut images, 0, &["a"], &[]);
        images.mark_used("a");
        // Its container was created and ended between two looks.
        assert!(due(&mut images, 180, &["a"], &[]).is_empty());
        assert!(due(&mut images, 359, &["a"], &[]).is_empty());
        assert_eq!(due(&mut images, 360, &["a"], &[]), ["a"]);
    }

    #[test]
    fn a_start_and_a_removal_of_a_name_exclude_each_other() {
        let mut images = ImageUse::default();
        let (tag, both) = (names(&["redis:7"]), names(&["redis:7", "redis@sha256:1"]));
        due(&mut images, 0, &["a"], &[]);
        assert_eq!(due(&mut images, 180, &["a"], &[]), ["a"]);
        assert!(images.hold(&tag) && images.hold(&tag));
        assert!(!images.begin_removal("a", &both), "a start holds it");
        images.release(&tag);
        assert!(images.is_held("redis:7"), "the other start");
        images.release(&tag);
        assert!(!images.begin_removal("a", &both), "the delay begins anew");

        due(&mut images, 200, &["a"], &[]);
        assert_eq!(due(&mut images, 380, &["a"], &[]), ["a"]);
        assert!(images.begin_removal("a", &both));
        assert!(!images.hold(&names(&["other", "redis@sha256:1"])));
        assert!(!images.is_held("other"), "all names, or none");
        assert!(images.hold(&names(&["other"])));
        images.end_removal("a", &both);
        assert!(images.hold(&both));
    }

    #[test]
    fn a_start_between_the_look_and_the_removal_cancels_it() {
        let mut images = ImageUse::default();
        let tag = names(&["redis:7"]);
        due(&mut images, 0, &["a"], &[]);
        assert_eq!(due(&mut images, 180, &["a"], &[]), ["a"]);
        assert!(images.hold(&tag));
        images.mark_used("a");
        images.release(&tag);
        assert!(!images.begin_removal("a", &tag));
    }

    #[test]
    fn a_removal_that_failed_is_tried_again_after_the_delay() {
        let mut images = ImageUse::default();
        due(&mut images, 0, &["a"], &[]);
        assert_eq!(due(&mut images, 180, &["a"], &[]), ["a"]);
        assert!(images.begin_removal("a", &[]));
        images.end_removal("a", &[]);
        assert!(due(&mut images, 240, &["a"], &[]).is_empty());
        assert_eq!(due(&mut images, 420, &["a"], &[]), ["a"]);
    }
}
