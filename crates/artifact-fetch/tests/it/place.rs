//! A node's downloads and a task's directory under test.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use artifact::Source;
use artifact_fetch::{
    ArtifactConfig, ArtifactRequest, Artifacts, Destination, Failure, Form, HelperCommand, Settings,
};

pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711)).unwrap();
        fs::create_dir(folder.path().join("task")).unwrap();
        Self { folder }
    }

    /// The folder of cache and work.
    pub(crate) fn node(&self) -> PathBuf {
        self.folder.path().join("node")
    }

    pub(crate) fn task(&self) -> PathBuf {
        self.folder.path().join("task")
    }

    pub(crate) fn open(&self) -> Artifacts {
        self.open_with(|_| {})
    }

    pub(crate) fn open_with(&self, change: impl FnOnce(&mut ArtifactConfig)) -> Artifacts {
        let mut config = ArtifactConfig {
            timeout: Duration::from_secs(60),
            stall_timeout: Duration::from_secs(10),
            attempts: 3,
            // Of the machine that runs the test: a proxy would not reach the test's server.
            environment: Vec::new(),
            ..ArtifactConfig::default()
        };
        change(&mut config);
        let settings = Settings {
            config,
            folder: self.node(),
            helper: HelperCommand {
                program: env!("CARGO_BIN_EXE_artifact-helper").into(),
                args: Vec::new(),
            },
            metrics: artifact_fetch::Metrics::default(),
        };
        Artifacts::open(settings).unwrap()
    }

    pub(crate) fn at(&self, path: &str, form: Form) -> Destination {
        Destination {
            base: self.task(),
            path: path.into(),
            form,
            owner: None,
        }
    }

    pub(crate) fn read(&self, path: &str) -> String {
        let path = self.task().join(path);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Paths below the task's directory, directories with a slash.
    pub(crate) fn listed(&self) -> Vec<String> {
        listed(&self.task())
    }

    /// Waits until nothing is left but the cache: folders are removed by a thread.
    pub(crate) async fn has_no_work(&self) -> bool {
        let count = |name: &str| fs::read_dir(self.node().join(name)).unwrap().count();
        for _ in 0..250 {
            if count("work") == 0 && count("parts") == 0 {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        false
    }
}

pub(crate) fn listed(root: &Path) -> Vec<String> {
    let (mut found, mut folders) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for item in fs::read_dir(folder).unwrap() {
            let item = item.unwrap();
            let below = item
                .path()
                .strip_prefix(root)
                .unwrap()
                .display()
                .to_string();
            if item.file_type().unwrap().is_dir() {
                folders.push(item.path());
                found.push(format!("{below}/"));
            } else {
                found.push(below);
            }
        }
    }
    found.sort();
    found
}

pub(crate) fn wanted(source: &str) -> ArtifactRequest {
    wanted_with(source, &[])
}

pub(crate) fn wanted_with(source: &str, options: &[(&str, &str)]) -> ArtifactRequest {
    let options: BTreeMap<String, String> = options
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    ArtifactRequest {
        source: Source::parse(source, &options).unwrap(),
        headers: BTreeMap::new(),
        insecure: false,
    }
}

pub(crate) fn message(result: Result<(), Failure>) -> String {
    result.unwrap_err().message
}
