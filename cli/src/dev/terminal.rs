//! Terminal of `kafila dev`: output and signals.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use service_kit::CancellationToken;
use service_kit::drain::StopSignals;

use crate::address::DEFAULT;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::printer::Printer;

/// Prefix of the directory names of nodes.
pub(super) const NODE_PREFIX: &str = "node-";

/// Output of the process. A closed pipe starts the shutdown.
#[derive(Clone, Debug)]
pub(super) struct Terminal {
    printer: Printer,
    drain: CancellationToken,
    /// Standard output is a closed pipe.
    is_closed: Arc<Mutex<bool>>,
}

impl Terminal {
    pub(super) fn new(printer: Printer, drain: CancellationToken) -> Self {
        Self {
            printer,
            drain,
            is_closed: Arc::default(),
        }
    }

    /// Prints a line. If the pipe is closed, the process shuts down in order.
    pub(super) fn print(&self, line: &str) {
        if let Err(Error::Output(error)) = self.printer.out(line)
            && error.kind() == std::io::ErrorKind::BrokenPipe
        {
            *lock(&self.is_closed) = true;
            self.drain.cancel();
        }
    }

    pub(super) fn warn(&self, line: &str) {
        self.printer.err(line);
    }

    /// Returns the exit code of a process without other errors.
    pub(super) fn exit(&self) -> Exit {
        if *lock(&self.is_closed) {
            Exit::BrokenPipe
        } else {
            Exit::Success
        }
    }
}

/// The directory of tasks and files that remain after an immediate exit, if any. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Leftovers(Arc<Mutex<Option<DataDirectory>>>);

/// The directory of state and allocations.
#[derive(Clone, Debug)]
pub(super) enum DataDirectory {
    /// Temporary, for this run.
    Scratch(PathBuf),
    /// Kept for the next start.
    Kept {
        directory: PathBuf,
        /// The number of nodes of this run.
        nodes: u16,
    },
}

impl Leftovers {
    pub(super) fn set(&self, directory: DataDirectory) {
        *lock(&self.0) = Some(directory);
    }

    /// Describes the tasks and files that an immediate exit leaves behind, and their removal.
    fn text(&self) -> String {
        match &*lock(&self.0) {
            None => "==> Stopped immediately; nothing was started".to_owned(),
            Some(DataDirectory::Scratch(directory)) => format!(
                "==> Stopped immediately. Running tasks and their files in {} remain.\n    \
                 To stop and remove them: {}",
                directory.display(),
                removal(directory)
            ),
            Some(DataDirectory::Kept { directory, nodes }) => {
                format!(
                    "==> Stopped immediately. {}",
                    remaining_tasks(directory, *nodes)
                )
            }
        }
    }
}

/// Returns the command that stops the tasks of a node and removes its files.
///
/// The supervisor of a task has the directory in its command line, and leads the session of the task.
fn removal(directory: &Path) -> String {
    let directory = directory.display();
    format!("pgrep -f '{directory}/' | xargs -n 1 pkill -KILL -s; rm -r '{directory}'")
}

/// Describes the tasks and files that a killed run left behind, and their removal.
pub(super) fn left_over(directory: &Path) -> String {
    format!(
        "==> An earlier kafila dev was killed. Its tasks may still run, and their files are in {}.\n    \
         To stop and remove them: {}",
        directory.display(),
        removal(directory)
    )
}

/// Describes how to stop tasks that continue without this process.
pub(super) fn remaining_tasks(directory: &Path, nodes: u16) -> String {
    // All nodes have to be started again to stop their tasks.
    let nodes = match nodes {
        1 => String::new(),
        nodes => format!(" -nodes {nodes}"),
    };
    format!(
        "Tasks continue to run. To stop them: kafila dev -data-dir '{}'{nodes}, then kafila job stop JOB",
        directory.display()
    )
}

/// Returns a warning if the directory has more nodes than are started.
pub(super) fn nodes_left_out(directory: &Path, started: u16) -> Option<String> {
    let entries = std::fs::read_dir(directory).ok()?;
    let numbers = entries.flatten().filter_map(|entry| {
        let name = entry.file_name();
        name.to_str()?
            .strip_prefix(NODE_PREFIX)?
            .parse::<u16>()
            .ok()
    });
    let all = numbers.max()?.checked_add(1)?;
    (all > started).then(|| {
        format!(
            "==> {} has {all} nodes, but only {started} of them start. Tasks on the others continue \
             unmanaged and are replaced; -nodes {all} starts all nodes",
            directory.display()
        )
    })
}

/// Returns a status command for the gateway at `url`, which is left out if it is the default.
pub(super) fn status_command(url: &str) -> String {
    if url == DEFAULT {
        "kafila status".to_owned()
    } else {
        format!("KAFILA_ADDR={url} kafila status")
    }
}

/// Returns a token that the first SIGINT or SIGTERM cancels. A second one exits immediately and
/// names the remaining tasks and files.
///
/// Must be called within a tokio runtime.
///
/// # Errors
/// Signal handlers cannot be installed.
pub(super) fn on_signals(
    printer: Printer,
    leftovers: Leftovers,
) -> std::io::Result<CancellationToken> {
    let mut signals = StopSignals::watch()?;
    let drain = CancellationToken::new();
    let token = drain.clone();
    tokio::spawn(async move {
        signals.next().await;
        token.cancel();
        signals.second().await;
        printer.err(&leftovers.text());
        std::process::exit(i32::from(Exit::Interrupted.code()));
    });
    Ok(drain)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The guarded value is consistent at any time.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_left_out_since_an_earlier_start_are_reported() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["store.redb", "node-0", "node-2", "node-x"] {
            std::fs::create_dir(directory.path().join(name)).unwrap();
        }
        let warning = nodes_left_out(directory.path(), 1).unwrap();
        assert!(warning.contains("has 3 nodes") && warning.contains("-nodes 3"));
        assert_eq!(nodes_left_out(directory.path(), 3), None);
    }

    #[test]
    fn the_status_command_names_another_gateway() {
        assert_eq!(status_command("http://127.0.0.1:4646"), "kafila status");
        assert_eq!(
            status_command("http://127.0.0.1:5646"),
            "KAFILA_ADDR=http://127.0.0.1:5646 kafila status"
        );
    }

    #[test]
    fn remains_are_described_with_the_command_that_removes_them() {
        let leftovers = Leftovers::default();
        assert!(leftovers.text().contains("nothing"));
        leftovers.set(DataDirectory::Scratch("/tmp/kafila-dev-x".into()));
        assert!(leftovers.text().contains("rm -r '/tmp/kafila-dev-x'"));
        let kept = |nodes| DataDirectory::Kept {
            directory: "/srv/k".into(),
            nodes,
        };
        leftovers.set(kept(1));
        assert!(
            leftovers
                .text()
                .contains("kafila dev -data-dir '/srv/k', then")
        );
        assert!(leftovers.text().contains("kafila job stop"));
        leftovers.set(kept(2));
        assert!(
            leftovers
                .text()
                .contains("-data-dir '/srv/k' -nodes 2, then")
        );
    }
}
