//! Repositories, by the program `git` of the node.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::wire::{Git, Report, TREE};

/// Interval of looks at the program.
const LOOK: Duration = Duration::from_millis(50);
/// Looks between two measurements of the repository's size.
const LOOKS_PER_MEASUREMENT: u32 = 40;
/// Bytes of the program's errors that are read.
const ERRORS_MAX: u64 = 64 << 10;
/// Settings of the program. Repositories of other users: of the node itself. Hooks: none are run.
const SETTINGS: &str = "[safe]\n\tdirectory = *\n[core]\n\thooksPath = /dev/null\n\tfsmonitor = false\n\
                        [protocol \"ext\"]\n\tallow = never\n[advice]\n\tdetachedHead = false\n";

/// A failed step.
struct Failed {
    message: String,
    may_pass: bool,
}

/// Clones into the tree, with submodules.
pub(super) fn clone(work: &Git) -> Report {
    match try_clone(work) {
        Ok(()) => Report::Tree,
        Err(Failed { message, may_pass }) => Report::Failed { message, may_pass },
    }
}

fn try_clone(work: &Git) -> Result<(), Failed> {
    prepare(work).map_err(|error| lasting(format!("cannot prepare the repository: {error}")))?;
    let depth = work.depth.map(|depth| depth.to_string());
    let is_commit = work.reference.as_deref().is_some_and(is_commit);
    let mut args = vec!["clone", "--quiet"];
    // The history of one branch or tag can be cut; a commit is found in all of it.
    if let (Some(depth), false) = (&depth, is_commit) {
        args.extend(["--depth", depth, "--single-branch"]);
        if let Some(reference) = &work.reference {
            args.extend(["--branch", reference]);
        }
    }
    args.extend(["--", &work.url, TREE]);
    run(work, &args)?;
    if let Some(reference) = &work.reference
        && (depth.is_none() || is_commit)
    {
        run(work, &["-C", TREE, "checkout", "--quiet", reference, "--"])?;
    }
    if Path::new(TREE).join(".gitmodules").exists() {
        let mut args = vec![
            "-C",
            TREE,
            "submodule",
            "--quiet",
            "update",
            "--init",
            "--recursive",
        ];
        if let Some(depth) = &depth {
            args.extend(["--depth", depth]);
        }
        run(work, &args)?;
    }
    Ok(())
}

fn is_commit(reference: &str) -> bool {
    (7..=64).contains(&reference.len()) && reference.bytes().all(|it| it.is_ascii_hexdigit())
}

/// Creates the program's home with its settings and the key.
fn prepare(work: &Git) -> io::Result<()> {
    let _ = fs::remove_dir_all(TREE);
    fs::create_dir_all("home/.ssh")?;
    fs::create_dir_all("tmp")?;
    fs::write("home/.gitconfig", SETTINGS)?;
    if let Some(key) = &work.ssh_key {
        let bytes = data_encoding::BASE64.decode(key.trim().as_bytes());
        let bytes = bytes.map_err(|_| io::Error::other("option sshkey is not base64"))?;
        let mut file = fs::OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .mode(0o600)
            .open("home/.ssh/key")?;
        io::Write::write_all(&mut file, &bytes)?;
    }
    Ok(())
}

fn run(work: &Git, args: &[&str]) -> Result<(), Failed> {
    let mut child = match command(work, args) {
        Ok(mut command) => command.spawn(),
        Err(error) => Err(error),
    }
    .map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => lasting(
            "this node has no program `git` in its PATH: install it, or use an archive over https"
                .to_owned(),
        ),
        _ => lasting(format!("cannot start git: {error}")),
    })?;
    let errors = child.stderr.take().map(|stderr| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = stderr.take(ERRORS_MAX).read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        })
    });
    let ended = wait(&mut child, work.bytes_max);
    let errors = errors.and_then(|thread| thread.join().ok());
    let errors = errors.unwrap_or_default();
    match ended {
        Ok(true) => Ok(()),
        Ok(false) => {
            let message = summary(&errors, &work.url);
            let may_pass = may_pass(&errors);
            Err(Failed { message, may_pass })
        }
        Err(message) => Err(lasting(message)),
    }
}

fn command(work: &Git, args: &[&str]) -> io::Result<Command> {
    let here = std::env::current_dir()?;
    let home = here.join("home");
    let mut protocols = "http:https:ssh:git".to_owned();
    if work.allow_file {
        protocols.push_str(":file");
    }
    let mut ssh = "ssh -o BatchMode=yes -o StrictHostKeyChecking=yes".to_owned();
    if work.ssh_key.is_some() {
        // The path has no character of the shell: the agent names the folder.
        let key = home.join(".ssh/key");
        ssh.push_str(&format!(" -o IdentitiesOnly=yes -i '{}'", key.display()));
    }
    let mut command = Command::new("git");
    command
        .args(args)
        .env("HOME", &home)
        .env("GIT_CONFIG_GLOBAL", home.join(".gitconfig"))
        .env("TMPDIR", here.join("tmp"))
        .env("GIT_ALLOW_PROTOCOL", protocols)
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_SSH_COMMAND", ssh)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    if work.insecure {
        command.env("GIT_SSL_NO_VERIFY", "1");
    }
    Ok(command)
}

/// Waits for the end. Returns whether it was a success.
fn wait(child: &mut Child, bytes_max: u64) -> Result<bool, String> {
    let mut looks = 0_u32;
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            let bytes = size(Path::new(TREE));
            return if bytes > bytes_max {
                Err(super::disk_space::too_large(bytes_max))
            } else {
                Ok(status.success())
            };
        }
        looks += 1;
        if looks.is_multiple_of(LOOKS_PER_MEASUREMENT) {
            let is_full = super::disk_space::DiskSpaceGuard::default().wrote(0);
            let is_large = size(Path::new(TREE)) > bytes_max;
            if is_large || is_full.is_err() {
                let _ = child.kill();
                let _ = child.wait();
                return Err(is_full
                    .err()
                    .unwrap_or_else(|| super::disk_space::too_large(bytes_max)));
            }
        }
        std::thread::sleep(LOOK);
    }
}

fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => size(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    });
    sizes.fold(0, u64::saturating_add)
}

/// Returns the last lines of the program's errors, without the credentials of the URL.
fn summary(errors: &str, url: &str) -> String {
    let lines: Vec<&str> = errors
        .lines()
        .map(str::trim)
        .filter(|it| !it.is_empty())
        .collect();
    let last = lines[lines.len().saturating_sub(3)..].join("; ");
    let text = match url::Url::parse(url) {
        Ok(parsed) => {
            let mut text = last;
            for secret in [parsed.password(), Some(parsed.username()), parsed.query()] {
                if let Some(secret) = secret.filter(|it| !it.is_empty() && *it != "git") {
                    text = text.replace(secret, "…");
                }
            }
            text
        }
        Err(_) => String::new(),
    };
    let text: String = text.chars().take(500).collect();
    format!("git failed: {text}")
}

fn may_pass(errors: &str) -> bool {
    const PASSING: [&str; 8] = [
        "Could not resolve host",
        "Connection",
        "timed out",
        "early EOF",
        "unexpected disconnect",
        "RPC failed",
        "The requested URL returned error: 5",
        "Failed to connect",
    ];
    PASSING.iter().any(|text| errors.contains(text))
}

fn lasting(message: String) -> Failed {
    Failed {
        message,
        may_pass: false,
    }
}
