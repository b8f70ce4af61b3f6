//! A stand-in for an image registry on this machine, with images of one layer.
//!
//! Engines call registries on loopback addresses without TLS, podman where its settings say so.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

const MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const CONFIG: &str = "application/vnd.docker.container.image.v1+json";
const LAYER: &str = "application/vnd.docker.image.rootfs.diff.tar.gzip";

/// Path → content type, digest, bytes.
type Files = Arc<Mutex<HashMap<String, (&'static str, String, Vec<u8>)>>>;

/// Serves until the test's process ends.
pub(crate) struct Registry {
    pub(crate) address: String,
    files: Files,
}

impl Registry {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let files = Files::default();
        let served = Arc::clone(&files);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let files = Arc::clone(&served);
                std::thread::spawn(move || answer(stream, &files));
            }
        });
        Self { address, files }
    }

    /// Puts an image with the files of `archive` under a tag; each call makes another image. Returns its
    /// full name.
    pub(crate) fn put(&self, name: &str, tag: &str, archive: &[u8]) -> String {
        let layer = run("gzip", &["-n"], archive);
        let architecture = match std::env::consts::ARCH {
            "aarch64" => "arm64",
            _ => "amd64",
        };
        let config = json!({
            "architecture": architecture, "os": "linux", "config": {},
            "author": format!("{:x}", rand::random::<u64>()),
            "rootfs": {"type": "layers", "diff_ids": [digest(archive)]},
        });
        let config = config.to_string().into_bytes();
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": part(CONFIG, &config), "layers": [part(LAYER, &layer)],
        });
        let manifest = manifest.to_string().into_bytes();
        let mut files = self.files.lock().unwrap();
        for (kind, bytes) in [(CONFIG, config), (LAYER, layer)] {
            let digest = digest(&bytes);
            let path = format!("/v2/{name}/blobs/{digest}");
            files.insert(path, (kind, digest, bytes));
        }
        let digest = digest(&manifest);
        for reference in [tag, &digest] {
            let path = format!("/v2/{name}/manifests/{reference}");
            files.insert(path, (MANIFEST, digest.clone(), manifest.clone()));
        }
        format!("{}/{name}:{tag}", self.address)
    }
}

fn part(kind: &str, bytes: &[u8]) -> Value {
    json!({"mediaType": kind, "size": bytes.len(), "digest": digest(bytes)})
}

fn digest(bytes: &[u8]) -> String {
    let sum = String::from_utf8(run("sha256sum", &[], bytes)).unwrap();
    format!("sha256:{}", sum.split(' ').next().unwrap())
}

fn run(program: &str, args: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writing = std::thread::spawn(move || stdin.write_all(&input).unwrap());
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap();
    assert!(output.status.success(), "{program}: {output:?}");
    output.stdout
}

fn answer(stream: TcpStream, files: &Files) {
    let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
    let request = lines.next().unwrap_or_default();
    let _rest: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let mut words = request.split(' ');
    let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let found = files.lock().unwrap().get(path).cloned();
    let (status, (kind, digest, body)) = match found {
        Some(found) => ("200 OK", found),
        None if path == "/v2/" => ("200 OK", ("application/json", String::new(), b"{}".into())),
        None => (
            "404 Not Found",
            ("application/json", String::new(), b"{}".into()),
        ),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nDocker-Content-Digest: {digest}\r\n\
         Docker-Distribution-Api-Version: registry/2.0\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let mut stream = &stream;
    // The engine may have gone.
    let _ = stream.write_all(head.as_bytes());
    if method != "HEAD" {
        let _ = stream.write_all(&body);
    }
}
