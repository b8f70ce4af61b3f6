//! The pause container of an allocation: it does nothing, and owns the network namespace that the
//! allocation's containers join. The engine joins namespaces of containers alone, not of files.

use bollard::models::{ContainerCreateBody, HostConfig};
use bollard::query_parameters::CreateImageOptionsBuilder;
use bytes::Bytes;
use futures::StreamExt;
use model::AllocId;
use task_drivers::{NetworkAsk, TaskConfig, TaskId};
use tracing::info;

use crate::container::{self, State};
use crate::engine::Problem;
use crate::image_store::Hold;
use crate::options::Options;
use crate::tasks::Docker;

/// The built-in image, which is made on the node: no registry is needed.
const IMAGE: &str = "kafila/pause:1";
/// Its program.
const PROGRAM: &str = "pause";

/// Returns the name of an allocation's pause container.
pub(crate) fn name(alloc_id: AllocId) -> String {
    format!("kafila_init_{alloc_id}")
}

impl Docker {
    /// Makes the pause container, or finds it. Returns the id of its process.
    pub(crate) async fn make_pause(&self, ask: &NetworkAsk) -> Result<i32, String> {
        let name = name(ask.alloc_id);
        let failed = |problem: Problem| format!("cannot make the pause container: {problem}");
        if let Some(found) = self.engine.find(&name).await.map_err(failed)? {
            if found.state == State::Running && found.pid > 0 {
                return Ok(found.pid);
            }
            // Its namespace went with its process.
            self.engine.remove(&found.id, true).await.map_err(failed)?;
        }
        let (image, _hold) = self.pause_image().await?;
        let body = body(ask, image, &self.settings.node_id);
        let id = self.engine.create(&name, body).await.map_err(failed)?;
        self.engine.start(&id).await.map_err(failed)?;
        let found = self.engine.find(&name).await.map_err(failed)?;
        match found {
            Some(found) if found.pid > 0 => Ok(found.pid),
            _ => Err("the pause container ended at once".to_owned()),
        }
    }

    pub(crate) async fn remove_pause(&self, alloc_id: AllocId) -> Result<(), String> {
        let removed = self.engine.remove(&name(alloc_id), true).await;
        removed.map_err(|problem| format!("cannot remove the pause container: {problem}"))
    }

    /// Makes the image available on the node, and returns its name. The built-in one needs no hold: the agent
    /// makes it, so it never removes it.
    async fn pause_image(&self) -> Result<(String, Option<Hold<'_>>), String> {
        let configured = &self.settings.config.infra_image;
        if !configured.is_empty() {
            let options = Options {
                image: configured.clone(),
                ..Options::default()
            };
            // No task waits for the messages.
            let config = TaskConfig::new(TaskId {
                alloc_id: AllocId::from_random(0),
                task: PROGRAM.to_owned(),
                attempt: 1,
            });
            let got = self.get_image(&config, &options).await;
            let (name, hold) = got.map_err(|error| error.to_string())?;
            return Ok((name, Some(hold)));
        }
        let name = IMAGE.to_owned();
        let failed = |problem: Problem| format!("cannot make the image {name}: {problem}");
        // Allocations start at once; the image is made once.
        let _one_at_a_time = self.making_image.lock().await;
        let client = self.engine.client().await.map_err(failed)?;
        match client.inspect_image(&name).await.map_err(Problem::from) {
            Ok(_) => return Ok((name, None)),
            Err(Problem::NotFound(_)) => {}
            Err(problem) => return Err(failed(problem)),
        }
        let archive =
            archive().map_err(|error| format!("cannot make the image {name}: {error}"))?;
        let options = CreateImageOptionsBuilder::default()
            .from_src("-")
            // With its tag: podman does not take that apart from it.
            .repo(IMAGE)
            .build();
        let body = bollard::body_full(Bytes::from(archive));
        let mut answers = Box::pin(client.create_image(Some(options), Some(body), None));
        while let Some(answer) = answers.next().await {
            answer.map_err(|error| failed(error.into()))?;
        }
        info!(image = name, "image of pause containers made");
        Ok((name, None))
    }
}

fn body(ask: &NetworkAsk, image: String, node_id: &str) -> ContainerCreateBody {
    let is_built_in = image == IMAGE;
    ContainerCreateBody {
        image: Some(image),
        // An operator's image has a program of its own.
        entrypoint: is_built_in.then(|| vec![format!("/{PROGRAM}")]),
        hostname: Some(ask.hostname.clone()),
        labels: Some(container::network_labels(ask.alloc_id, node_id)),
        host_config: Some(HostConfig {
            network_mode: Some("none".to_owned()),
            readonly_rootfs: Some(true),
            cap_drop: Some(vec!["ALL".to_owned()]),
            security_opt: Some(vec!["no-new-privileges".to_owned()]),
            // The runtime needs some threads before it becomes the program.
            pids_limit: Some(64),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    }
}

/// Returns the file system of the image: one program that waits for ever.
fn archive() -> std::io::Result<Vec<u8>> {
    let program = program();
    let mut header = tar::Header::new_gnu();
    header.set_size(program.len() as u64);
    header.set_mode(0o755);
    let mut archive = tar::Builder::new(Vec::new());
    archive.append_data(&mut header, PROGRAM, program.as_slice())?;
    archive.into_inner()
}

/// Instructions of the program. Source: the kernel's system calls `pause` (34) and, where that does
/// not exist, `ppoll` (73) without descriptors and timeout.
#[cfg(target_arch = "x86_64")]
const CODE: (u16, &[u8]) = (
    62,
    &[
        0xb8, 34, 0, 0, 0, // mov eax, 34
        0x0f, 0x05, // syscall
        0xeb, 0xf7, // jmp to the start
    ],
);
#[cfg(target_arch = "aarch64")]
const CODE: (u16, &[u8]) = (
    183,
    &[
        0x00, 0x00, 0x80, 0xd2, // mov x0, 0
        0x01, 0x00, 0x80, 0xd2, // mov x1, 0
        0x02, 0x00, 0x80, 0xd2, // mov x2, 0
        0x03, 0x00, 0x80, 0xd2, // mov x3, 0
        0x28, 0x09, 0x80, 0xd2, // mov x8, 73
        0x01, 0x00, 0x00, 0xd4, // svc 0
        0xfa, 0xff, 0xff, 0x17, // b to the start
    ],
);

/// Returns an executable of the format ELF with one segment that holds the headers and the code.
fn program() -> Vec<u8> {
    const HEADERS: u64 = 64 + 56;
    const BASE: u64 = 0x40_0000;
    let (machine, code) = CODE;
    let size = HEADERS + code.len() as u64;
    let mut file = Vec::new();
    // 64 bits, little endian, version 1.
    file.extend([0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    // An executable.
    file.extend(2_u16.to_le_bytes());
    file.extend(machine.to_le_bytes());
    file.extend(1_u32.to_le_bytes());
    // The entry, the program headers, no section headers.
    for number in [BASE + HEADERS, 64, 0] {
        file.extend(number.to_le_bytes());
    }
    file.extend(0_u32.to_le_bytes());
    for number in [64_u16, 56, 1, 0, 0, 0] {
        file.extend(number.to_le_bytes());
    }
    // The segment: loaded, to be read and executed.
    file.extend(1_u32.to_le_bytes());
    file.extend(5_u32.to_le_bytes());
    for number in [0, BASE, BASE, size, size, 0x1000] {
        file.extend(number.to_le_bytes());
    }
    file.extend(code);
    file
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_program_waits_until_it_is_killed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(PROGRAM);
        let archive = archive().unwrap();
        tar::Archive::new(archive.as_slice())
            .unpack(directory.path())
            .unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
        let mut child = std::process::Command::new(&path).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert_eq!(child.try_wait().unwrap(), None, "it has ended");
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        assert!(stat.contains(") S "), "it does not sleep: {stat}");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn the_container_has_no_rights() {
        let ask = NetworkAsk {
            alloc_id: AllocId::from_random(1),
            hostname: "web".to_owned(),
        };
        let built_in = body(&ask, "kafila/pause:1".to_owned(), "node-1");
        let host = built_in.host_config.unwrap();
        assert_eq!(host.network_mode.as_deref(), Some("none"));
        assert_eq!(host.cap_drop, Some(vec!["ALL".to_owned()]));
        assert_eq!(built_in.hostname.as_deref(), Some("web"));
        assert_eq!(built_in.entrypoint, Some(vec!["/pause".to_owned()]));
        assert_eq!(
            body(&ask, "registry/pause:3".to_owned(), "").entrypoint,
            None
        );
    }
}
