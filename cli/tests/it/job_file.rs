//! Job files for the tests.

use std::path::PathBuf;

use tempfile::TempDir;

pub(crate) const WEB: &str = r#"
job "web" {
  group "app" {
    count = 2
    task "server" {
      driver = "raw_exec"
      config {
        command = "/bin/sleep"
        args    = ["600"]
      }
      resources {
        cpu    = 500
        memory = 256
      }
    }
  }
}
"#;

/// A directory with one job file.
pub(crate) struct File {
    pub(crate) directory: TempDir,
    pub(crate) path: PathBuf,
}

impl File {
    pub(crate) fn new(name: &str, text: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        Self { directory, path }
    }

    pub(crate) fn web() -> Self {
        Self::new("web.hcl", WEB)
    }
}
