//! URLs of objects for readers that have no [`Bucket`](crate::Bucket): signed, or of public objects.

use std::time::Duration;

use rusty_s3::actions::GetObject;
use rusty_s3::{Bucket, S3Action, UrlStyle};

use crate::credentials::Credentials;

/// Validity of a signature: a download that is continued is signed again.
const VALIDITY: Duration = Duration::from_secs(3600);

/// An object, public or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicObject {
    /// `https://host[:port]`.
    pub endpoint: String,
    pub bucket: String,
    pub region: String,
    pub key: String,
    pub version: Option<String>,
}

impl PublicObject {
    /// Returns the URL to read the object, signed if there are credentials. The bucket is in its path.
    ///
    /// # Errors
    /// The endpoint or the bucket is invalid.
    pub fn url(&self, credentials: Option<&Credentials>) -> Result<String, String> {
        let invalid = |problem: &dyn std::fmt::Display| {
            format!(
                "endpoint {:?}, bucket {:?}: {problem}",
                self.endpoint, self.bucket
            )
        };
        let endpoint = self.endpoint.parse().map_err(|error| invalid(&error))?;
        let region = self.region.clone();
        let bucket = Bucket::new(endpoint, UrlStyle::Path, self.bucket.clone(), region);
        let bucket = bucket.map_err(|error| invalid(&error))?;
        let credentials = credentials.map(|it| match &it.session_token {
            Some(token) => rusty_s3::Credentials::new_with_token(
                &it.access_key_id,
                &it.secret_access_key,
                token,
            ),
            None => rusty_s3::Credentials::new(&it.access_key_id, &it.secret_access_key),
        });
        let mut action = GetObject::new(&bucket, credentials.as_ref(), &self.key);
        if let Some(version) = &self.version {
            action.query_mut().insert("versionId", version.clone());
        }
        Ok(action.sign(VALIDITY).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_signed_with_credentials_alone() {
        let object = PublicObject {
            endpoint: "https://s3.test".to_owned(),
            bucket: "b".to_owned(),
            region: "r1".to_owned(),
            key: "dir/a b.zip".to_owned(),
            version: None,
        };
        assert_eq!(object.url(None).unwrap(), "https://s3.test/b/dir/a%20b.zip");
        let credentials = Credentials {
            access_key_id: "AK".to_owned(),
            secret_access_key: "hidden".to_owned(),
            session_token: None,
        };
        let url = object.url(Some(&credentials)).unwrap();
        assert!(url.contains("X-Amz-Signature=") && url.contains("r1"), "{url}");
        assert!(!url.contains("hidden"));
        let version = Some("3".to_owned());
        let url = PublicObject { version, ..object }.url(None).unwrap();
        assert!(url.ends_with("?versionId=3"), "{url}");
    }
}
