//! A task's image: found on the node, or pulled.

use task_drivers::{StartError, TaskConfig};
use tracing::info;

use crate::auth;
use crate::engine::Problem;
use crate::image::{self, Image};
use crate::options::Options;
use crate::pull::{Pull, PullError, send_message};
use crate::start::failed;
use crate::tasks::Docker;

impl Docker {
    /// Makes the task's image available on the node.
    pub(crate) async fn get_image(
        &self,
        config: &TaskConfig,
        options: &Options,
    ) -> Result<(), StartError> {
        let image = Image::parse(&options.image).map_err(StartError::Config)?;
        let client = self.engine.client().await;
        let client = client.map_err(|problem| failed(problem.to_string(), true))?;
        if !options.force_pull && !image.is_moving() {
            match client
                .inspect_image(image::plain(&options.image))
                .await
                .map_err(Problem::from)
            {
                Ok(_) => return Ok(()),
                Err(Problem::NotFound(_)) => {}
                Err(problem) => return Err(failed(problem.to_string(), true)),
            }
        }
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
        send_message(
            &config.messages,
            format!("Downloading image {}", options.image),
        );
        let pulled = tokio::select! {
            pulled = self.pulls.pull(client, pull, &options.image, &config.messages) => pulled,
            () = config.cancel.cancelled() => {
                return Err(failed("the start was cancelled".to_owned(), false));
            }
        };
        pulled.map_err(|error| match error {
            PullError::NotFound(message) => {
                let text = format!("the registry has no image {}: {message}", options.image);
                failed(text, false)
            }
            PullError::Unauthorised(message) => {
                let text = format!(
                    "the registry denies access to the image {}; check its name and the task's auth \
                     block: {message}",
                    options.image
                );
                failed(text, false)
            }
            PullError::Failed(message) => {
                failed(format!("cannot pull the image {}: {message}", options.image), true)
            }
        })
    }
}
