//! Requests about images.

use std::collections::HashSet;

use bollard::query_parameters::{ListContainersOptionsBuilder, RemoveImageOptions};

use super::{Engine, Problem};

/// An image on the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundImage {
    pub(crate) id: String,
    /// As in `redis:7`.
    pub(crate) tags: Vec<String>,
    /// As in `redis@sha256:…`.
    pub(crate) digests: Vec<String>,
}

impl Engine {
    /// Returns the image of a name or id; `None`: the node has none.
    pub(crate) async fn find_image(&self, name: &str) -> Result<Option<FoundImage>, Problem> {
        let client = self.client().await?;
        match client.inspect_image(name).await.map_err(Problem::from) {
            Ok(found) => Ok(Some(FoundImage {
                id: id(found.id.unwrap_or_default()),
                tags: found.repo_tags.unwrap_or_default(),
                digests: found.repo_digests.unwrap_or_default(),
            })),
            Err(Problem::NotFound(_)) => Ok(None),
            Err(problem) => Err(problem),
        }
    }

    /// Returns the ids of the images of all containers, running or not, other programs' included.
    pub(crate) async fn images_in_use(&self) -> Result<HashSet<String>, Problem> {
        let options = ListContainersOptionsBuilder::default().all(true).build();
        let listed = self.client().await?.list_containers(Some(options)).await?;
        let ids = listed.into_iter().filter_map(|it| it.image_id);
        Ok(ids.map(id).collect())
    }

    /// Removes a name of an image, and the image with its last name. A missing one is not an error.
    pub(crate) async fn remove_image(&self, name: &str) -> Result<(), Problem> {
        let client = self.client().await?;
        let removed = client.remove_image(name, None::<RemoveImageOptions>, None);
        match removed.await.map_err(Problem::from) {
            Ok(_) | Err(Problem::NotFound(_)) => Ok(()),
            Err(problem) => Err(problem),
        }
    }
}

/// Podman has ids with and without the prefix.
fn id(id: String) -> String {
    if id.contains(':') {
        id
    } else {
        format!("sha256:{id}")
    }
}
