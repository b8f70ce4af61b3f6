//! Objects in a bucket of S3 or a compatible store: upload, list and delete, with retries.
//!
//! In reading order: [`Location`] reads `s3://bucket/key`; [`Settings`] has the endpoint and the region,
//! and [`Credentials`] the keys; [`Bucket`] has the operations, which `request` sends;
//! [`PublicObject`] has the URL of one object.
//!
//! Calls block: async callers run them in a thread of their own. One part of a file, 8 MiB, is in memory
//! at a time.
//!
//! Source: the API reference of Amazon S3. Requests are signed in their URL (Signature Version 4).

mod bucket;
mod credentials;
mod error;
mod location;
mod object_url;
mod request;
mod settings;

pub use bucket::{Bucket, Object};
pub use credentials::Credentials;
pub use error::Error;
pub use location::Location;
pub use object_url::PublicObject;
pub use settings::{Backoff, Settings};
