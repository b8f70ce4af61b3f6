//! A task's image: found on the node, or pulled.

use task_drivers::{StartError, TaskConfig};
use tracing::info;

use crate::auth;
use crate::image::{self, Image};
use crate::image_store::Hold;
use crate::options::Options;
use crate::podman::{self, Names, Registries};
use crate::pull::{Pull, PullError, send_message};
use crate::settings::EngineKind;
use crate::start_failure::failed;
use crate::tasks::Docker;

impl Docker {
    /// Makes the task's image available on the node, and returns the name by which the engine knows it. The
    /// image is not removed while it is held, up to the creation of its container.
    pub(crate) async fn get_image(
        &self,
        config: &TaskConfig,
        options: &Options,
    ) -> Result<(String, Hold<'_>), StartError> {
        let names = match self.settings.engine_kind {
            EngineKind::Docker => Names::one(image::plain(&options.image)),
            EngineKind::Podman => podman::names(&options.image, &Registries::read()),
        };
        let all = names.local.iter().chain(&names.remote);
        let all: Vec<&str> = all.map(String::as_str).collect();
        let hold = self.images.hold(&all).await;
        for name in &names.local {
            let image = Image::parse(name).map_err(StartError::Config)?;
            let is_usable = !image.is_moving() || image.is_of_node();
            if is_usable && !options.force_pull && self.has_image(name).await? {
                return Ok((name.clone(), hold));
            }
        }
        let mut refused = None;
        for name in names.remote {
            match self.pull_image(config, options, &name).await {
                Ok(()) => return Ok((name, hold)),
                // The next registry may have it. A failure that a retry may mend is kept: it says more.
                Err(error) => {
                    if !matches!(
                        &refused,
                        Some(StartError::Failed {
                            recoverable: true,
                            ..
                        })
                    ) {
                        refused = Some(error);
                    }
                }
            }
            if config.cancel.is_cancelled() {
                break;
            }
        }
        let nothing = || {
            let text = format!(
                "the node has no image {}, and no registry has it",
                options.image
            );
            failed(text, false)
        };
        Err(refused.unwrap_or_else(nothing))
    }

    async fn has_image(&self, name: &str) -> Result<bool, StartError> {
        let id = self.image_id(name).await?;
        if let Some(id) = &id {
            self.images.mark_used(id);
        }
        Ok(id.is_some())
    }

    async fn image_id(&self, name: &str) -> Result<Option<String>, StartError> {
        let found = self.engine.find_image(name).await;
        let found = found.map_err(|problem| failed(problem.to_string(), true))?;
        Ok(found.map(|found| found.id))
    }

    /// Pulls an image, and records the one that it brings as the agent's.
    async fn pull_image(
        &self,
        config: &TaskConfig,
        options: &Options,
        name: &str,
    ) -> Result<(), StartError> {
        let image = Image::parse(name).map_err(StartError::Config)?;
        let client = self.engine.client().await;
        let client = client.map_err(|problem| failed(problem.to_string(), true))?;
        let credentials = match auth::credentials(options, &self.settings, &image).await {
            Ok(credentials) => credentials,
            Err(problem) if options.auth_soft_fail => {
                info!(problem, "pulling an image without credentials");
                None
            }
            Err(problem) => return Err(failed(problem, true)),
        };
        let pull = Pull {
            image,
            credentials,
            limit: options
                .image_pull_timeout
                .unwrap_or(self.settings.config.image_pull_timeout),
            activity_limit: self.settings.config.pull_activity_timeout,
        };
        self.images.begin_pull(name, self.image_id(name).await?);
        send_message(&config.messages, format!("Downloading image {name}"));
        let pulled = tokio::select! {
            pulled = self.pulls.pull(client, pull, name, &config.messages) => pulled,
            () = config.cancel.cancelled() => {
                return Err(failed("the start was cancelled".to_owned(), false));
            }
        };
        if pulled.is_ok() {
            let id = self.image_id(name).await?;
            self.images.end_pull(name, id.as_deref());
            if let Some(id) = id {
                self.images.mark_used(&id);
            }
        }
        pulled.map_err(|error| match error {
            PullError::NotFound(message) => {
                let text = format!("the registry has no image {name}: {message}");
                failed(text, false)
            }
            PullError::Unauthorised(message) => {
                let text = format!(
                    "the registry denies access to the image {name}; check its name and the task's auth \
                     block: {message}"
                );
                failed(text, false)
            }
            PullError::Failed(message) => {
                failed(format!("cannot pull the image {name}: {message}"), true)
            }
        })
    }
}
