//! Operations on a bucket.
//!
//! S3 shows an object once all of it has arrived, so a list has no partial uploads.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest as _, Md5};
use rusty_s3::actions::{CompleteMultipartUploadResponse, CreateMultipartUpload, ListObjectsV2};
use rusty_s3::{S3Action, UrlStyle};

use crate::credentials::Credentials;
use crate::error::Error;
use crate::request::{Answer, Request, Sender};
use crate::settings::Settings;

/// Bytes of a part, and of the largest file that is sent as one object. S3 wants 5 MiB or more.
const PART_BYTES: u64 = 8 << 20;
/// Parts of an object, at most: 80 GB, ten times what etcd is made for. Source: the API reference.
const MAX_PARTS: u64 = 10_000;
/// Validity of a signature: longer than all attempts of a request.
const VALIDITY: Duration = Duration::from_secs(3600);
/// Pages of a list, at most: a million keys.
const MAX_PAGES: u32 = 1000;

/// An object in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    pub key: String,
    pub bytes: u64,
}

/// A bucket with the right to use it.
pub struct Bucket {
    bucket: rusty_s3::Bucket,
    credentials: rusty_s3::Credentials,
    sender: Sender,
}

impl Bucket {
    /// Prepares access to a bucket; nothing is sent.
    ///
    /// Buckets are named in the path of URLs, except at Amazon's own endpoint.
    ///
    /// # Errors
    /// A setting is invalid.
    pub fn open(name: &str, settings: &Settings, credentials: &Credentials) -> Result<Self, Error> {
        let endpoint = settings.url().map_err(Error::Settings)?;
        // Amazon's certificate does not cover names with a period.
        let style = match &settings.endpoint {
            None if !name.contains('.') => UrlStyle::VirtualHost,
            _ => UrlStyle::Path,
        };
        let invalid = |problem: &dyn std::fmt::Display| {
            Error::Settings(format!("endpoint {endpoint:?}, bucket {name:?}: {problem}"))
        };
        let url = endpoint.parse().map_err(|error| invalid(&error))?;
        let bucket = rusty_s3::Bucket::new(url, style, name.to_owned(), settings.region.clone());
        let bucket = bucket.map_err(|error| invalid(&error))?;
        let (id, secret) = (&credentials.access_key_id, &credentials.secret_access_key);
        let credentials = match &credentials.session_token {
            Some(token) => rusty_s3::Credentials::new_with_token(id, secret, token),
            None => rusty_s3::Credentials::new(id, secret),
        };
        let host = bucket.base_url().host_str().unwrap_or_default().to_owned();
        let sender = Sender::build(settings, host)?;
        Ok(Self {
            bucket,
            credentials,
            sender,
        })
    }

    /// Returns the objects whose key is `prefix` and a name without `/`, by key.
    ///
    /// # Errors
    /// The store refuses or does not answer, or a page cannot be read.
    pub fn list(&self, prefix: &str) -> Result<Vec<Object>, Error> {
        let mut objects = Vec::new();
        let mut token: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let mut action = self.bucket.list_objects_v2(Some(&self.credentials));
            action.with_delimiter("/");
            if !prefix.is_empty() {
                action.with_prefix(prefix);
            }
            if let Some(token) = &token {
                action.with_continuation_token(token);
            }
            let answer = self.send(&action, None)?;
            let page = ListObjectsV2::parse_response(&answer.body)
                .map_err(|error| self.no_s3("its list cannot be read", &error))?;
            let listed = page.contents.into_iter().map(|content| Object {
                key: content.key,
                bytes: content.size.unwrap_or(0),
            });
            objects.extend(listed);
            match page.next_continuation_token {
                None => {
                    objects.sort_by(|a, b| a.key.cmp(&b.key));
                    return Ok(objects);
                }
                same if same == token => break,
                next => token = next,
            }
        }
        Err(self.no_s3("its list has no end", &format!("prefix {prefix:?}")))
    }

    /// Returns the size of an object; `None` if there is none of that key.
    ///
    /// # Errors
    /// The store refuses or does not answer.
    pub fn size(&self, key: &str) -> Result<Option<u64>, Error> {
        let action = self.bucket.head_object(Some(&self.credentials), key);
        match self.send(&action, None) {
            Ok(answer) => match answer.length {
                Some(bytes) => Ok(Some(bytes)),
                None => Err(self.no_s3("an answer to HEAD has no length", &key)),
            },
            Err(Error::Refused(refusal)) if refusal.status == 404 => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Uploads a file as the object `key` and returns its size, which the store has confirmed.
    ///
    /// Each part has a checksum, which the store verifies. A failed upload leaves no object.
    ///
    /// # Errors
    /// The file cannot be read, or the store refuses or does not answer.
    pub fn upload(&self, key: &str, path: &Path) -> Result<u64, Error> {
        let failed = |cause| Error::File {
            path: path.display().to_string(),
            cause,
        };
        let mut file = File::open(path).map_err(failed)?;
        let wanted = file.metadata().map_err(failed)?.len();
        if wanted.div_ceil(PART_BYTES) > MAX_PARTS {
            return Err(Error::TooLarge {
                size: wanted,
                parts: MAX_PARTS,
            });
        }
        let mut next_part = || {
            let mut part = Vec::new();
            let read = (&mut file).take(PART_BYTES).read_to_end(&mut part);
            read.map(|_| part).map_err(failed)
        };
        if wanted <= PART_BYTES {
            let body = next_part()?;
            let action = self.bucket.put_object(Some(&self.credentials), key);
            self.send(&action, Some(&body))?;
        } else {
            self.upload_parts(key, wanted, &mut next_part)?;
        }
        let found = self.size(key)?.unwrap_or(0);
        if found != wanted {
            let key = key.to_owned();
            return Err(Error::Incomplete { key, found, wanted });
        }
        Ok(wanted)
    }

    fn upload_parts(
        &self,
        key: &str,
        wanted: u64,
        next_part: &mut dyn FnMut() -> Result<Vec<u8>, Error>,
    ) -> Result<(), Error> {
        let credentials = Some(&self.credentials);
        let action = CreateMultipartUpload::new(&self.bucket, credentials, key);
        // A repetition after a lost answer leaves an upload without parts, which costs nothing.
        let answer = self.send(&action, Some(&[]))?;
        let created = CreateMultipartUpload::parse_response(&answer.body)
            .map_err(|error| self.no_s3("its answer to an upload cannot be read", &error))?;
        let upload_id = created.upload_id();
        let mut send_all = || {
            let mut etags: Vec<String> = Vec::new();
            loop {
                let part = next_part()?;
                if part.is_empty() {
                    break;
                }
                let number = u16::try_from(etags.len() + 1).unwrap_or(u16::MAX);
                let action = self.bucket.upload_part(credentials, key, number, upload_id);
                let answer = self.send(&action, Some(&part))?;
                let etag = answer.etag;
                etags.push(etag.ok_or_else(|| self.no_s3("a part has no ETag", &key))?);
            }
            let etags = etags.iter().map(String::as_str);
            let action = self
                .bucket
                .complete_multipart_upload(credentials, key, upload_id, etags);
            let body = action.clone().body();
            let answer = self.send(&action, Some(body.as_bytes()))?;
            CompleteMultipartUploadResponse::parse(&answer.body)
                .map(drop)
                .map_err(|error| self.no_s3("its answer to an upload cannot be read", &error))
        };
        let Err(error) = send_all() else {
            return Ok(());
        };
        // The upload may be complete, and its answer lost: a repetition is then refused.
        if matches!(self.size(key), Ok(Some(found)) if found == wanted) {
            return Ok(());
        }
        let action = self
            .bucket
            .abort_multipart_upload(credentials, key, upload_id);
        // The error above is the cause; parts that stay are left to the bucket's lifecycle rules.
        let _ = self.send(&action, None);
        Err(error)
    }

    /// Deletes an object; one that does not exist counts as deleted.
    ///
    /// # Errors
    /// The store refuses or does not answer.
    pub fn delete(&self, key: &str) -> Result<(), Error> {
        let action = self.bucket.delete_object(Some(&self.credentials), key);
        self.send(&action, None).map(drop)
    }

    /// Signs and sends `action`, with a checksum of the body.
    fn send<'a, A>(&self, action: &A, body: Option<&[u8]>) -> Result<Answer, Error>
    where
        A: S3Action<'a> + Clone,
    {
        let mut action = action.clone();
        let mut headers = Vec::new();
        if let Some(body) = body {
            let checksum = STANDARD.encode(Md5::digest(body));
            action.headers_mut().insert("content-md5", checksum.clone());
            headers.push(("content-md5", checksum));
        }
        self.sender.send(&Request {
            method: A::METHOD.to_str(),
            url: action.sign(VALIDITY).to_string(),
            headers,
            body,
        })
    }

    fn no_s3(&self, problem: &str, cause: &dyn std::fmt::Display) -> Error {
        Error::NoS3 {
            host: self.sender.host.clone(),
            problem: format!("{problem}: {cause}"),
        }
    }
}
