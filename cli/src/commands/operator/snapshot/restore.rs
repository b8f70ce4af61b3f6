//! `kafila operator snapshot restore`: a verified snapshot, through etcdutl.

use tokio::process::Command;

use super::save::now;
use super::verified::verify;
use crate::args::operator::snapshot::Restore;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

pub(super) async fn run(context: &Context, args: &Restore) -> Result<Exit, Error> {
    if args.bump_revision == 0 {
        return Err(Error::text(
            "-bump-revision must be more than 0: with revisions that go back, services and nodes would \
             take old state for new",
        ));
    }
    // etcdutl takes an empty one, such as that of a new volume.
    let entries = std::fs::read_dir(&args.data_dir);
    if entries.is_ok_and(|mut entries| entries.next().is_some()) {
        let directory = args.data_dir.display();
        return Err(Error::text(format!(
            "Error restoring {}: {directory} exists already and is not empty, perhaps from an earlier \
             restore.\nName a new directory with -data-dir, or move this one away if no member of etcd uses it.",
            args.file.display()
        )));
    }
    let verified = verify(&args.file, "")?;
    let revision = verified.contents.revision;
    let Some(restored) = revision.checked_add(args.bump_revision) else {
        return Err(Error::text(format!(
            "-bump-revision is too large: the snapshot has revision {revision}"
        )));
    };
    let token = match &args.initial_cluster_token {
        Some(token) => token.clone(),
        // Another cluster id than before: services that reconnect see that the store was replaced.
        None => format!("restored-{}", now(context).as_second()),
    };
    let cluster = match &args.initial_cluster {
        Some(cluster) => cluster.clone(),
        None => format!("{}={}", args.name, args.initial_advertise_peer_urls),
    };
    let mut command = Command::new(&args.etcdutl);
    command
        .args(["snapshot", "restore"])
        .arg(&args.file)
        .arg("--data-dir")
        .arg(&args.data_dir)
        .args(["--bump-revision", &args.bump_revision.to_string()])
        .arg("--mark-compacted")
        .args(["--name", &args.name])
        .args(["--initial-cluster", &cluster])
        .args(["--initial-cluster-token", &token])
        .args([
            "--initial-advertise-peer-urls",
            &args.initial_advertise_peer_urls,
        ]);
    let program = args.etcdutl.display();
    let output = command.kill_on_drop(true).output().await.map_err(|error| {
        Error::text(format!(
            "Error starting {program}: {error}\nIt comes with etcd; name it with -etcdutl=PROGRAM."
        ))
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Error::text(format!(
            "Error restoring {}: {program} failed ({}): {}",
            args.file.display(),
            output.status,
            said.trim()
        )));
    }
    context.finish(&format!(
        "Created {} from revision {revision}; the store continues from revision {restored}\n\
         Start etcd with --data-dir {} --name {} --max-txn-ops 2048 --max-request-bytes 4194304, and \
         then the services.",
        args.data_dir.display(),
        args.data_dir.display(),
        args.name
    ))
}
