//! Settings of artifacts: the section `[artifact]` of a node's configuration file.
//!
//! An agent prints the section with the doc comments of [`SOURCE`].

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use service_kit::config::{duration, list};

/// The source of the section, for a configuration file that explains itself.
pub const SOURCE: &str = include_str!("config.rs");

/// Schemes that a node may allow.
const SCHEMES: [&str; 5] = ["http", "https", "git", "s3", "file"];

/// Downloads of tasks' artifacts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ArtifactConfig {
    /// Schemes that jobs may use, of `http`, `https`, `git`, `s3` and `file`. `file` lets jobs read every
    /// file of the machine that `user` may read.
    #[serde(with = "list")]
    pub schemes: Vec<String>,
    /// Limit of a download with its retries, and of an archive's unpacking. Source: Nomad's default.
    #[serde(with = "duration")]
    pub timeout: Duration,
    /// Time without a byte after which a connection has failed.
    #[serde(with = "duration")]
    pub stall_timeout: Duration,
    /// Attempts of a download whose failure may pass, 1 or more. A failed download counts as one failed
    /// start of the task, whatever this setting.
    pub attempts: u32,
    /// Downloads and unpackings of the node at one time.
    pub parallel: usize,
    /// Bytes of one download, at most. Source: Nomad's default, as are the next two.
    pub download_bytes_max: u64,
    /// Bytes that one archive may unpack to. An archive that leaves less than 5 percent or 1 GiB of the
    /// file system free is refused as well.
    pub unpacked_bytes_max: u64,
    /// Entries of one archive, at most.
    pub unpacked_entries_max: u64,
    /// Bytes of downloaded files that the node keeps for further allocations; 0: none.
    pub cache_bytes_max: u64,
    /// Landlock for the helper process: `auto` where the kernel has it, `required` to refuse downloads
    /// elsewhere, `off`.
    pub sandbox: Sandbox,
    /// User of the helper process when the agent is root.
    pub user: String,
    /// Files and directories that the helper may read besides those of the system, as a certificate
    /// authority's.
    #[serde(with = "list")]
    pub read_paths: Vec<String>,
    /// Program that downloads, and its arguments; empty: the agent's own program with its hidden
    /// subcommand.
    #[serde(with = "list")]
    pub helper: Vec<String>,
    /// Variables of the agent's environment that the helper gets.
    #[serde(with = "list")]
    pub environment: Vec<String>,
}

/// Use of landlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sandbox {
    Auto,
    Required,
    Off,
}

impl Default for ArtifactConfig {
    fn default() -> Self {
        let texts = |texts: &[&str]| texts.iter().map(|it| (*it).to_owned()).collect();
        Self {
            schemes: texts(&["http", "https", "git", "s3"]),
            timeout: Duration::from_secs(30 * 60),
            stall_timeout: Duration::from_secs(60),
            attempts: 5,
            parallel: 4,
            download_bytes_max: 100 << 30,
            unpacked_bytes_max: 100 << 30,
            unpacked_entries_max: 4096,
            cache_bytes_max: 10 << 30,
            sandbox: Sandbox::Auto,
            user: "nobody".to_owned(),
            read_paths: Vec::new(),
            helper: Vec::new(),
            environment: texts(&[
                "HTTP_PROXY",
                "HTTPS_PROXY",
                "NO_PROXY",
                "http_proxy",
                "https_proxy",
                "no_proxy",
                "SSL_CERT_FILE",
                "SSL_CERT_DIR",
            ]),
        }
    }
}

impl ArtifactConfig {
    /// Refuses settings with which no download could succeed.
    ///
    /// # Errors
    /// The first setting that is wrong, below `artifact`, and its problem.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let unknown = self
            .schemes
            .iter()
            .find(|it| !SCHEMES.contains(&it.as_str()));
        if let Some(scheme) = unknown {
            let problem = format!("{scheme:?} is unknown: want some of {}", SCHEMES.join(", "));
            return Err(("schemes", problem));
        }
        for (field, value) in [
            ("timeout", self.timeout),
            ("stall_timeout", self.stall_timeout),
        ] {
            if value.is_zero() {
                let problem = "is 0s: every download would fail at once; want a duration, as in 1m";
                return Err((field, problem.to_owned()));
            }
        }
        for (field, value) in [
            ("attempts", u64::from(self.attempts)),
            ("parallel", u64::try_from(self.parallel).unwrap_or(u64::MAX)),
            ("download_bytes_max", self.download_bytes_max),
            ("unpacked_bytes_max", self.unpacked_bytes_max),
            ("unpacked_entries_max", self.unpacked_entries_max),
        ] {
            if value == 0 {
                let problem = "is 0: no download could succeed; want 1 or more".to_owned();
                return Err((field, problem));
            }
        }
        let relative = self.read_paths.iter().find(|path| !path.starts_with('/'));
        if let Some(path) = relative {
            let problem = format!("{path:?} is not absolute: want a path that starts with /");
            return Err(("read_paths", problem));
        }
        Ok(())
    }

    pub(crate) fn extra_paths(&self) -> Vec<PathBuf> {
        self.read_paths.iter().map(PathBuf::from).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_with_which_no_download_succeeds_are_refused() {
        assert_eq!(ArtifactConfig::default().check(), Ok(()));
        type Change = fn(&mut ArtifactConfig);
        let table: [(&str, Change); 5] = [
            ("schemes", |it| it.schemes = vec!["ftp".to_owned()]),
            ("timeout", |it| it.timeout = Duration::ZERO),
            ("attempts", |it| it.attempts = 0),
            ("parallel", |it| it.parallel = 0),
            ("read_paths", |it| it.read_paths = vec!["etc".to_owned()]),
        ];
        for (field, change) in table {
            let mut config = ArtifactConfig::default();
            change(&mut config);
            assert_eq!(config.check().unwrap_err().0, field);
        }
    }
}
