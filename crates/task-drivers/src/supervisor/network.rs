//! The network of a task: its process starts in the namespace of its allocation.

use std::fs::File;
use std::io;
use std::path::Path;
use std::thread;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};

use crate::driver::TaskNetwork;

/// Runs `start` on a thread in the task's namespaces, which a process that it starts inherits. The
/// supervisor itself stays in the host's.
///
/// # Errors
/// The namespace is gone or cannot be entered, or `start` failed.
pub(super) fn within<T: Send>(
    network: Option<&TaskNetwork>,
    start: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    let Some(network) = network else {
        return start();
    };
    thread::scope(|scope| {
        let starting = scope.spawn(|| {
            enter(network).map_err(|error| {
                let text = format!("cannot enter the allocation's network: {error}");
                io::Error::new(error.kind(), text)
            })?;
            start()
        });
        starting
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Moves the thread into the namespace, and into a view of the file system with the allocation's own
/// resolver. Mounts of the host still appear in that view; mounts of the task do not leave it.
pub(super) fn enter(network: &TaskNetwork) -> io::Result<()> {
    let namespace = File::open(&network.namespace)?;
    setns(namespace, CloneFlags::CLONE_NEWNET)?;
    unshare(CloneFlags::CLONE_NEWNS)?;
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_SLAVE, none)?;
    let files = [
        (&network.hosts, "/etc/hosts"),
        (&network.resolv_conf, "/etc/resolv.conf"),
    ];
    for (source, target) in files {
        // A machine without the file has nothing to mount over.
        if Path::new(target).exists() {
            mount(Some(source), target, none, MsFlags::MS_BIND, none)?;
        }
    }
    Ok(())
}
