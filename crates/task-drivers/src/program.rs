//! Programs of the node that drivers start: where they are, and what they say about their version.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

/// Timeout of a question for the version. A virtual machine on a busy machine takes a second.
const VERSION_LIMIT: Duration = Duration::from_secs(10);

/// Returns the first executable of this name in a list of directories, such as PATH.
pub(crate) fn find(name: &str, search: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(search)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|path| is_executable(path))
}

pub(crate) fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// What a program printed about itself, asked again when its file changes, and after a failure.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    known: Mutex<Option<(FileId, String)>>,
}

/// A file and its contents, as far as its times tell.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileId {
    path: PathBuf,
    inode: u64,
    changed: (i64, i64),
}

impl Versions {
    /// Runs the program with `flag`. Returns its standard error and standard output.
    ///
    /// # Errors
    /// The cause, with the program's name.
    pub(crate) async fn ask(&self, program: &Path, flag: &str) -> Result<String, String> {
        let failed = |why: &dyn std::fmt::Display| format!("{} {flag}: {why}", program.display());
        let found = fs::metadata(program).map_err(|error| failed(&error))?;
        let file = FileId {
            path: program.to_owned(),
            inode: found.ino(),
            changed: (found.ctime(), found.ctime_nsec()),
        };
        let known = self.lock().clone();
        if let Some((_, said)) = known.filter(|(known, _)| *known == file) {
            return Ok(said);
        }
        let said = ask(program, flag).await.map_err(|why| failed(&why))?;
        *self.lock() = Some((file, said.clone()));
        Ok(said)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<(FileId, String)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn ask(program: &Path, flag: &str) -> Result<String, String> {
    let asked = Command::new(program)
        .arg(flag)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let answer = timeout(VERSION_LIMIT, asked)
        .await
        .map_err(|_| format!("no answer within {VERSION_LIMIT:?}"))?
        .map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if !answer.status.success() {
        return Err(format!(
            "{}: {}",
            answer.status,
            text(&answer.stderr).trim()
        ));
    }
    Ok(text(&answer.stderr) + &text(&answer.stdout))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(path: &Path, text: &str) {
        fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn the_first_executable_of_the_name_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let [plain, first, second] = ["plain", "first", "second"].map(|name| {
            let directory = folder.path().join(name);
            fs::create_dir(&directory).unwrap();
            directory
        });
        fs::write(plain.join("tool"), "").unwrap();
        script(&first.join("tool"), "");
        script(&second.join("tool"), "");
        let search = std::env::join_paths([&plain, &first, &second]).unwrap();
        assert_eq!(find("tool", &search), Some(first.join("tool")));
        assert_eq!(find("other", &search), None);
        // A relative directory would depend on the agent's own.
        assert_eq!(find("tool", OsStr::new("first:.")), None);
    }

    #[tokio::test]
    async fn a_program_is_asked_again_when_its_file_changes() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("tool");
        let count = folder.path().join("count");
        script(
            &program,
            &format!("echo x >> {}; echo one >&2", count.display()),
        );
        let versions = Versions::default();
        for _ in 0..3 {
            assert_eq!(versions.ask(&program, "-v").await, Ok("one\n".to_owned()));
        }
        assert_eq!(fs::read_to_string(&count).unwrap(), "x\n");
        let newer = folder.path().join("newer");
        script(&newer, "echo two; exit 3");
        fs::rename(&newer, &program).unwrap();
        let error = versions.ask(&program, "-v").await.unwrap_err();
        assert!(error.contains("tool -v: exit status: 3"), "{error}");
        fs::remove_file(&program).unwrap();
        let error = versions.ask(&program, "-v").await.unwrap_err();
        assert!(error.contains("No such file"), "{error}");
    }
}
