//! Removal of images that the agent pulled and that no container uses any more.
//!
//! A look at the engine's containers at each probe: what an earlier run of the agent pulled, or a start that
//! failed, is found like everything else. The engine itself refuses to remove an image with a container.

use std::collections::HashSet;

use tracing::{debug, info, warn};

use crate::engine::{FoundImage, Problem};
use crate::image;
use crate::tasks::Docker;

impl Docker {
    /// Removes the pulled images that are unused for the delay.
    pub(crate) async fn remove_unused_images(&self) {
        let Some(delay) = self.settings.image_delay() else {
            return;
        };
        for name in self.images.open_pulls() {
            match self.engine.find_image(&name).await {
                Ok(found) => self
                    .images
                    .end_pull(&name, found.as_ref().map(|it| it.id.as_str())),
                Err(problem) => warn!(name, %problem, "cannot look for an image"),
            }
        }
        if !self.images.has_pulled() {
            return;
        }
        let in_use: HashSet<String> = match self.engine.images_in_use().await {
            Ok(in_use) => in_use,
            Err(problem) => {
                warn!(%problem, "cannot list the engine's containers");
                return;
            }
        };
        for id in self.images.due(&in_use, delay) {
            match self.remove_image(&id).await {
                Ok(()) => {}
                Err(Problem::Refused {
                    status: 409,
                    message,
                }) => debug!(id, message, "an unused image is in use after all"),
                Err(problem) => warn!(id, %problem, "cannot remove an unused image"),
            }
        }
    }

    /// Removes an image, or only the agent's names of it if it has others.
    async fn remove_image(&self, id: &str) -> Result<(), Problem> {
        let Some(found) = self.engine.find_image(id).await? else {
            self.images.forget(id);
            return Ok(());
        };
        let all: Vec<String> = found.tags.iter().chain(&found.digests).cloned().collect();
        let Some(_removal) = self.images.begin_removal(id, &all) else {
            debug!(id, "a start uses an image that was unused");
            return Ok(());
        };
        let parts = parts(&found, &self.images.names(id));
        for tag in &parts.tags {
            self.engine.remove_image(tag).await?;
        }
        if parts.is_whole {
            self.engine.remove_image(id).await?;
        }
        self.images.forget(id);
        info!(id, names = ?parts.tags, is_whole = parts.is_whole, "unused image removed");
        Ok(())
    }
}

/// Parts of an image that the agent may remove.
#[derive(Debug, PartialEq, Eq)]
struct Parts {
    /// Its tags that the agent pulled.
    tags: Vec<String>,
    /// It has no other tags.
    is_whole: bool,
}

fn parts(found: &FoundImage, pulled: &[String]) -> Parts {
    let pulled: HashSet<String> = pulled.iter().map(|name| image::key(name)).collect();
    let is_own = |tag: &&String| pulled.contains(&image::key(tag));
    Parts {
        tags: found.tags.iter().filter(is_own).cloned().collect(),
        is_whole: found.tags.iter().all(|tag| is_own(&tag)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_that_the_agent_did_not_pull_keep_the_image() {
        type Row<'a> = (&'a [&'a str], &'a [&'a str], &'a [&'a str], bool);
        let digest = format!("redis@sha256:{}", "ab".repeat(32));
        let table: [Row<'_>; 6] = [
            // Tags, names of pulls → tags to remove, and whether the image goes.
            (&["redis:7"], &["redis:7"], &["redis:7"], true),
            (
                &["redis:latest"],
                &["docker.io/library/redis"],
                &["redis:latest"],
                true,
            ),
            (
                &["docker.io/library/redis:7", "localhost/mine:1"],
                &["redis:7"],
                &["docker.io/library/redis:7"],
                false,
            ),
            (
                &["redis:7", "redis:7.2"],
                &["redis:7", "redis:7.2"],
                &["redis:7", "redis:7.2"],
                true,
            ),
            // Pulled by its digest, or without the tag, which has moved to a later image.
            (&[], &[&digest], &[], true),
            (&["mine:1"], &[&digest], &[], false),
        ];
        for (tags, pulled, want, is_whole) in table {
            let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
            let found = FoundImage {
                id: "a".to_owned(),
                tags: texts(tags),
                digests: vec![digest.clone()],
            };
            let pulled: Vec<String> = texts(pulled);
            let want = Parts {
                tags: texts(want),
                is_whole,
            };
            assert_eq!(parts(&found, &pulled), want, "{tags:?} {pulled:?}");
        }
    }
}
