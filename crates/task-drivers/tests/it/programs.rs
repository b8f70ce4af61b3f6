//! Bench of the drivers whose tasks are isolated processes of one program: stand-ins for the program, and a
//! node that runs them. They are skipped as the tests of [`crate::exec`] are.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use model::ExitResult;
use task_drivers::{AllocDirs, Driver, ExecConfig, alloc_dirs};
use tokio::sync::mpsc;

use crate::bench::{Bench, LIMIT, wait_for};

/// Where tasks see the stand-ins.
const INSIDE: &str = "/opt/stand-ins";

pub(crate) struct Programs {
    pub(crate) bench: Bench,
    folder: tempfile::TempDir,
}

impl Programs {
    /// `scripts`: name → lines of a shell.
    pub(crate) fn new(scripts: &[(&str, &str)]) -> Self {
        let bench = Bench::new();
        let root = bench.dirs().root.parent().unwrap().to_owned();
        alloc_dirs::build(&AllocDirs { root }, ["web"].into_iter(), None).unwrap();
        let folder = tempfile::tempdir().unwrap();
        // Tasks are of another user.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for (name, script) in scripts {
            let path = folder.path().join(name);
            fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self { bench, folder }
    }

    /// Returns the directories of programs.
    pub(crate) fn search(&self) -> OsString {
        self.folder.path().into()
    }

    /// Returns settings with which tasks see the stand-ins, and no limits are needed.
    pub(crate) fn settings(&self) -> ExecConfig {
        let mut config = ExecConfig {
            without_limits: true,
            ..ExecConfig::default()
        };
        for path in ["/bin", "/lib", "/lib64", "/usr", "/etc"] {
            config.chroot_env.insert(path.into(), path.into());
        }
        let own = self.folder.path().canonicalize().unwrap();
        config
            .chroot_env
            .insert(own.display().to_string(), INSIDE.to_owned());
        config
    }

    /// Inside the bench's own, so that the bench finds the supervisors.
    pub(crate) fn state_dir(&self) -> PathBuf {
        self.bench.settings.state_dir.join("programs")
    }

    /// Probes the driver. Returns whether it can be tested here.
    pub(crate) async fn is_available(&self, driver: &dyn Driver) -> bool {
        driver.refresh().await;
        let found = driver.fingerprint();
        if !found.detected {
            let is_required = std::env::var_os("KAFILA_REQUIRE_NETWORKS").is_some();
            assert!(!is_required, "{}", found.description);
            eprintln!("SKIPPED: {}", found.description);
        }
        found.detected
    }

    pub(crate) async fn wait(&self, driver: &dyn Driver) -> ExitResult {
        let (sender, _receiver) = mpsc::channel(10);
        let id = self.bench.id(1);
        let waited = tokio::time::timeout(LIMIT, driver.wait(&id, &sender)).await;
        waited.expect("the task ends").unwrap()
    }

    pub(crate) async fn stop(&self, driver: &dyn Driver, signal: &str, grace: Duration) {
        let id = self.bench.id(1);
        let stopped = tokio::time::timeout(LIMIT, driver.stop(&id, signal, grace)).await;
        stopped.expect("the stop ends").unwrap();
    }

    /// Forgets the task, and checks that nothing of it is left.
    pub(crate) async fn finish(self, driver: &dyn Driver) {
        driver.forget(&self.bench.id(1)).await.unwrap();
        assert!(driver.leftovers().is_empty());
        assert_eq!(self.bench.processes(), Vec::<i32>::new());
        wait_for("supervisors to be gone", || {
            self.bench.supervisors().is_empty().then_some(())
        })
        .await;
    }
}
