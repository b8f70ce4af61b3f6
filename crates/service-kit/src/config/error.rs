//! Errors of loading a configuration.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read the configuration file {}", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("override {text:?} is not of the form key=value, as in etcd.prefix=/kafila/v1/")]
    BadOverride { text: String },
    #[error(
        "the environment variable {name} is not a setting of {service}: two underscores stand between \
         the parts{hint}"
    )]
    UnknownVariable {
        service: String,
        name: String,
        /// A suggestion, with its punctuation; may be empty.
        hint: String,
    },
    /// `problem` says where, names the key, and the known keys when it is not one of them.
    #[error("configuration of {service}: {problem}")]
    Invalid { service: String, problem: String },
}
