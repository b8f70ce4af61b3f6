//! What `kafila dev` tells the person at its terminal, and that person's signals.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use service_kit::CancellationToken;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::address::DEFAULT;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::printer::Printer;

/// What the folder of a node is called, before its number.
pub(super) const NODE: &str = "node-";

/// Prints lines until nobody reads them any more; asking to end is then all that is left to do.
#[derive(Clone, Debug)]
pub(super) struct Words {
    printer: Printer,
    drain: CancellationToken,
    /// Somebody closed standard output.
    unread: Arc<Mutex<bool>>,
}

impl Words {
    pub(super) fn new(printer: Printer, drain: CancellationToken) -> Self {
        Self {
            printer,
            drain,
            unread: Arc::default(),
        }
    }

    /// Prints a line. When the reader went away, the suite ends in order: nothing may be left that
    /// nobody knows of.
    pub(super) fn say(&self, line: &str) {
        if let Err(Error::Output(error)) = self.printer.out(line)
            && error.kind() == std::io::ErrorKind::BrokenPipe
        {
            *lock(&self.unread) = true;
            self.drain.cancel();
        }
    }

    pub(super) fn complain(&self, line: &str) {
        self.printer.err(line);
    }

    /// Returns how the process ends when nothing else went wrong.
    pub(super) fn exit(&self) -> Exit {
        if *lock(&self.unread) {
            Exit::BrokenPipe
        } else {
            Exit::Success
        }
    }
}

/// What is there to be left behind, as far as it has come. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Left(Arc<Mutex<Option<Place>>>);

/// Where tasks keep their files.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// For this run alone.
    Scratch(PathBuf),
    /// For the next start as well.
    Kept {
        directory: PathBuf,
        /// With how many nodes it was started.
        nodes: u16,
    },
}

impl Left {
    pub(super) fn is(&self, place: Place) {
        *lock(&self.0) = Some(place);
    }

    /// Returns what an end without draining leaves, and how to be rid of it.
    fn text(&self) -> String {
        match &*lock(&self.0) {
            None => "==> Ended at once; nothing had been started".to_owned(),
            Some(Place::Scratch(directory)) => format!(
                "==> Ended at once. Left: the tasks that ran, and their files in {}\n    \
                 To end and remove them: {}",
                directory.display(),
                removal(directory)
            ),
            Some(Place::Kept { directory, nodes }) => {
                format!("==> Ended at once. {}", how_to_stop(directory, *nodes))
            }
        }
    }
}

/// Returns the command line that ends the tasks of a node and removes its files.
///
/// A task's supervisor has the directory in its command line, and leads the session of its task.
fn removal(directory: &Path) -> String {
    let directory = directory.display();
    format!("pgrep -f '{directory}/' | xargs -n 1 pkill -KILL -s; rm -r '{directory}'")
}

/// Returns how the tasks are stopped that go on without the suite.
pub(super) fn how_to_stop(directory: &Path, nodes: u16) -> String {
    // A node that is not started again leaves its tasks to themselves.
    let nodes = match nodes {
        1 => String::new(),
        nodes => format!(" -nodes {nodes}"),
    };
    format!(
        "Tasks go on; to stop them: kafila dev -data-dir '{}'{nodes}, then kafila job stop JOB",
        directory.display()
    )
}

/// Returns what is said when the folder has nodes that are not started; `None`: it has not.
pub(super) fn nodes_left_out(directory: &Path, started: u16) -> Option<String> {
    let entries = std::fs::read_dir(directory).ok()?;
    let numbers = entries.flatten().filter_map(|entry| {
        let name = entry.file_name();
        name.to_str()?.strip_prefix(NODE)?.parse::<u16>().ok()
    });
    let all = numbers.max()?.checked_add(1)?;
    (all > started).then(|| {
        format!(
            "==> {} has {all} nodes, and {started} of them are started. What runs on the others goes \
             on unattended and is placed anew; -nodes {all} starts them as well",
            directory.display()
        )
    })
}

/// Returns the command that asks the gateway at `url`: the usual one is asked without being named.
pub(super) fn look_around(url: &str) -> String {
    if url == DEFAULT {
        "kafila status".to_owned()
    } else {
        format!("KAFILA_ADDR={url} kafila status")
    }
}

/// Returns a token that the first SIGINT or SIGTERM cancels; a second ends the process at once,
/// and says what it leaves.
///
/// Must be called within a tokio runtime.
///
/// # Errors
/// The system refuses to let signals be watched.
pub(super) fn on_signals(printer: Printer, left: Left) -> std::io::Result<CancellationToken> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let drain = CancellationToken::new();
    let token = drain.clone();
    tokio::spawn(async move {
        either(&mut interrupt, &mut terminate).await;
        token.cancel();
        either(&mut interrupt, &mut terminate).await;
        printer.err(&left.text());
        std::process::exit(i32::from(Exit::Interrupted.code()));
    });
    Ok(drain)
}

async fn either(one: &mut Signal, other: &mut Signal) {
    tokio::select! {
        _ = one.recv() => {}
        _ = other.recv() => {}
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is guarded is one value, whole at any time.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_an_earlier_start_that_are_left_out_are_told() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["store.redb", "node-0", "node-2", "node-x"] {
            std::fs::create_dir(directory.path().join(name)).unwrap();
        }
        let told = nodes_left_out(directory.path(), 1).unwrap();
        assert!(told.contains("has 3 nodes") && told.contains("-nodes 3"));
        assert_eq!(nodes_left_out(directory.path(), 3), None);
    }

    #[test]
    fn a_gateway_elsewhere_is_named_in_what_to_type() {
        assert_eq!(look_around("http://127.0.0.1:4646"), "kafila status");
        assert_eq!(
            look_around("http://127.0.0.1:5646"),
            "KAFILA_ADDR=http://127.0.0.1:5646 kafila status"
        );
    }

    #[test]
    fn what_is_left_behind_is_named_with_the_way_to_be_rid_of_it() {
        let left = Left::default();
        assert!(left.text().contains("nothing"));
        left.is(Place::Scratch("/tmp/kafila-dev-x".into()));
        assert!(left.text().contains("rm -r '/tmp/kafila-dev-x'"));
        let kept = |nodes| Place::Kept {
            directory: "/srv/k".into(),
            nodes,
        };
        left.is(kept(1));
        assert!(left.text().contains("kafila dev -data-dir '/srv/k', then"));
        assert!(left.text().contains("kafila job stop"));
        left.is(kept(2));
        assert!(left.text().contains("-data-dir '/srv/k' -nodes 2, then"));
    }
}
