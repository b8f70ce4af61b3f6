//! A task's image: found on the node, or pulled.

use task_drivers::{StartError, TaskConfig};
use tracing::info;

use crate::auth;
use crate::engine::Problem;
use crate::image::{self, Image};
use crate::options::Options;
use crate::podman::{self, Names, Registries};
use crate::pull::{Pull, PullError, send_message};
use crate::settings::EngineKind;
use crate::start_failure::failed;
use crate::tasks::Docker;

impl Docker {
    /// Makes the task's image available on the node, and returns the name by which the engine knows it.
    pub(crate) async fn get_image(
        &self,
        config: &TaskConfig,
        options: &Options,
    ) -> Result<String, StartError> {
        let names = match self.settings.engine_kind {
            EngineKind::Docker => Names::one(image::plain(&options.image)),
            EngineKind::Podman => podman::names(&options.image, &Registries::read()),
        };
        for name in &names.local {
            let image = Image::parse(name).map_err(StartError::Config)?;
            let is_usable = !image.is_moving() || image.is_of_node();
            if is_usable && !options.force_pull && self.has_image(name).await? {
                return Ok(name.clone());
            }
        }
        let mut refused = None;
        for name in names.remote {
            match self.pull_image(config, options, &name).await {
                Ok(()) => return Ok(name),
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
        let client = self.engine.client().await;
        let client = client.map_err(|problem| failed(problem.to_string(), true))?;
        match client.inspect_image(name).await.map_err(Problem::from) {
            Ok(_) => Ok(true),
            Err(Problem::NotFound(_)) => Ok(false),
            Err(problem) => Err(failed(problem.to_string(), true)),
        }
    }

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
        send_message(&config.messages, format!("Downloading image {name}"));
        let pulled = tokio::select! {
            pulled = self.pulls.pull(client, pull, name, &config.messages) => pulled,
            () = config.cancel.cancelled() => {
                return Err(failed("the start was cancelled".to_owned(), false));
            }
        };
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
