//! Snapshots in a bucket of S3: settings, and operations in a thread of their own.

use std::path::PathBuf;

use s3::{Bucket, Credentials, Location, Settings};
use tempfile::TempDir;
use tokio::sync::oneshot;

use super::download::save;
use super::verified::Verified;
use crate::args::operator::snapshot::S3;
use crate::context::Context;
use crate::error::Error;

/// A bucket, and where its credentials are; these are read anew for each operation, as they may be
/// temporary.
pub(super) struct Store {
    pub(super) location: Location,
    settings: Settings,
    credentials: Source,
}

/// The source of the credentials.
#[derive(Clone)]
struct Source {
    /// The flag; comes before the environment.
    file: Option<PathBuf>,
}

impl Store {
    pub(super) fn new(location: Location, args: &S3) -> Self {
        let region = args.s3_region.clone();
        let region = region.or_else(|| first_of(&["AWS_REGION", "AWS_DEFAULT_REGION"]));
        let mut settings = Settings::new(region.unwrap_or_else(|| "us-east-1".to_owned()));
        let endpoint = args.s3_endpoint.clone();
        settings.endpoint =
            endpoint.or_else(|| first_of(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]));
        let ca_file = args.s3_ca_file.clone();
        settings.ca_file = ca_file.or_else(|| first_of(&["AWS_CA_BUNDLE"]).map(PathBuf::from));
        settings.allow_plaintext = args.s3_dangerously_allow_plaintext;
        Self {
            location,
            settings,
            credentials: Source {
                file: args.s3_credentials_file.clone(),
            },
        }
    }

    /// Returns the size of an object; `None` if it does not exist.
    pub(super) async fn size(&self, key: &str) -> Result<Option<u64>, Error> {
        let key = key.to_owned();
        self.call(move |bucket| bucket.size(&key)).await
    }

    /// Returns the names of the objects directly below the location.
    pub(super) async fn names(&self) -> Result<Vec<String>, Error> {
        let prefix = self.location.key_of("");
        let listed = self.call({
            let prefix = prefix.clone();
            move |bucket| bucket.list(&prefix)
        });
        let names = listed.await?.into_iter().filter_map(|object| {
            let name = object.key.strip_prefix(&prefix)?;
            Some(name.to_owned())
        });
        Ok(names.collect())
    }

    /// Deletes the object of that name below the location.
    pub(super) async fn delete(&self, name: &str) -> Result<(), Error> {
        let key = self.location.key_of(name);
        self.call(move |bucket| bucket.delete(&key)).await
    }

    /// Saves a snapshot into a temporary file, which is verified, and uploads it as `key`.
    pub(super) async fn save(&self, context: &Context, key: &str) -> Result<Verified, Error> {
        let directory = TempDir::new().map_err(|error| {
            let shown = std::env::temp_dir();
            let shown = shown.display();
            Error::text(format!(
                "Error writing a snapshot below {shown}: {error}\n\
                 Set TMPDIR to a directory with room for the database."
            ))
        })?;
        let path = directory.path().join("snapshot.db");
        let saved = save(context, &path).await?;
        let key = key.to_owned();
        self.call(move |bucket| bucket.upload(&key, &path)).await?;
        Ok(saved)
    }

    /// Runs an operation on the bucket in a thread, which does not delay the end of the process.
    async fn call<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&Bucket) -> Result<T, s3::Error> + Send + 'static,
    ) -> Result<T, Error> {
        let credentials = self
            .credentials
            .read()
            .map_err(|problem| Error::text(format!("Error reading S3 credentials: {problem}")))?;
        let (name, settings) = (self.location.bucket.clone(), self.settings.clone());
        let (sender, receiver) = oneshot::channel();
        let work = move || {
            let opened = Bucket::open(&name, &settings, &credentials);
            // The receiver is gone when the command has ended.
            let _ = sender.send(opened.and_then(|bucket| operation(&bucket)));
        };
        let started = std::thread::Builder::new()
            .name("s3".to_owned())
            .spawn(work);
        started.map_err(|error| Error::Start(Box::new(error)))?;
        let failed = |cause: &dyn std::fmt::Display| {
            Error::text(format!(
                "Error using bucket {}: {cause}",
                self.location.bucket
            ))
        };
        let answer = receiver.await.map_err(|error| failed(&error))?;
        answer.map_err(|error| failed(&error))
    }
}

impl Source {
    fn read(&self) -> Result<Credentials, String> {
        let variable = |name: &str| first_of(&[name]);
        let profile = variable("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
        if let Some(file) = &self.file {
            return Credentials::from_file(file, &profile);
        }
        if let Some(found) = Credentials::from_environment(variable)? {
            return Ok(found);
        }
        let file = variable("AWS_SHARED_CREDENTIALS_FILE").map(PathBuf::from);
        let usual = || {
            let home = PathBuf::from(variable("HOME")?);
            Some(home.join(".aws/credentials")).filter(|path| path.exists())
        };
        match file.or_else(usual) {
            Some(file) => Credentials::from_file(&file, &profile),
            None => Err(
                "there are none. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or use \
                 -s3-credentials-file."
                    .to_owned(),
            ),
        }
    }
}

/// Returns the first of these environment variables that is set.
fn first_of(names: &[&str]) -> Option<String> {
    let set = names.iter().filter_map(|name| std::env::var(name).ok());
    set.into_iter().find(|value| !value.is_empty())
}
