//! Operations against a stand-in for S3, with faults.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::PathBuf;
use std::time::Duration;

use s3::{Backoff, Bucket, Credentials, Error, Settings};
use s3_test_kit::{ACCESS_KEY, BUCKET, Fault, REGION, S3};
use tempfile::TempDir;

/// Larger than two parts of 8 MiB.
const LARGE: usize = (16 << 20) + 5;

fn settings(store: &S3) -> Settings {
    let mut settings = Settings::new(REGION);
    settings.endpoint = Some(store.endpoint());
    settings.timeout = Duration::from_millis(500);
    settings.backoff = Backoff {
        attempts: 3,
        first: Duration::from_millis(1),
    };
    settings
}

fn credentials(id: &str) -> Credentials {
    Credentials {
        access_key_id: id.to_owned(),
        secret_access_key: "secret".to_owned(),
        session_token: None,
    }
}

fn open(store: &S3) -> Bucket {
    Bucket::open(BUCKET, &settings(store), &credentials(ACCESS_KEY)).unwrap()
}

fn file(directory: &TempDir, bytes: usize) -> (PathBuf, Vec<u8>) {
    let content: Vec<u8> = (0..bytes)
        .map(|at| u8::try_from(at % 251).unwrap())
        .collect();
    let path = directory.path().join("file");
    std::fs::write(&path, &content).unwrap();
    (path, content)
}

fn refused(result: Result<impl Sized, Error>) -> (u16, String) {
    match result.err().unwrap() {
        Error::Refused(refusal) => (refusal.status, refusal.code),
        other => panic!("{other}"),
    }
}

#[test]
fn a_small_file_is_one_object_and_a_large_one_has_parts() {
    let store = S3::start(1000);
    let (bucket, directory) = (open(&store), TempDir::new().unwrap());
    for (key, bytes, posts) in [("p/small", 1000, 0), ("p/large", LARGE, 2)] {
        let (path, content) = file(&directory, bytes);
        let sent = bucket.upload(key, &path).unwrap();
        assert_eq!(sent, u64::try_from(bytes).unwrap());
        assert!(store.objects()[key] == content, "{key} differs");
        let requests = store.requests();
        let posted = requests.iter().filter(|line| line.starts_with("POST"));
        assert_eq!(posted.count(), posts, "{requests:?}");
    }
    assert_eq!(store.open_uploads(), 0);
    let parts = store.requests();
    let parts = parts.iter().filter(|line| line.contains("partNumber="));
    assert_eq!(parts.count(), 3);
}

#[test]
fn a_list_has_all_pages_and_no_deeper_objects() {
    let store = S3::start(2);
    for key in ["p/a", "p/b", "p/c", "p/d", "p/e", "p/deep/x", "q/a", "p"] {
        store.put(key, b"1234");
    }
    let listed = open(&store).list("p/").unwrap();
    let keys: Vec<&str> = listed.iter().map(|object| object.key.as_str()).collect();
    assert_eq!(keys, ["p/a", "p/b", "p/c", "p/d", "p/e"]);
    assert!(listed.iter().all(|object| object.bytes == 4));
    assert_eq!(store.requests().len(), 3);
}

#[test]
fn an_object_is_deleted_and_its_size_is_known() {
    let store = S3::start(1000);
    let bucket = open(&store);
    store.put("a", b"123");
    assert_eq!(bucket.size("a").unwrap(), Some(3));
    bucket.delete("a").unwrap();
    assert_eq!(bucket.size("a").unwrap(), None);
    bucket.delete("a").unwrap();
}

#[test]
fn what_may_pass_is_tried_again() {
    let faults = [
        Fault::Refuse(503, "SlowDown"),
        Fault::Refuse(500, "InternalError"),
        Fault::Break,
        Fault::LoseAnswer,
        Fault::Stall(Duration::from_secs(20)),
    ];
    for fault in faults {
        let store = S3::start(1000);
        let (bucket, directory) = (open(&store), TempDir::new().unwrap());
        let (path, content) = file(&directory, 100);
        // The time limit of a body is long: only requests without one stall here.
        if !matches!(fault, Fault::Stall(_)) {
            store.fail("PUT", fault);
        }
        store.fail("HEAD", fault);
        bucket.upload("k", &path).unwrap();
        assert_eq!(store.objects()["k"], content, "{fault:?}");
    }
}

#[test]
fn attempts_are_bounded() {
    let store = S3::start(1000);
    for _ in 0..9 {
        store.fail("GET", Fault::Refuse(503, "SlowDown"));
    }
    let bucket = open(&store);
    assert_eq!(refused(bucket.list("")), (503, "SlowDown".to_owned()));
    assert_eq!(store.requests().len(), 3);
}

#[test]
fn what_a_repetition_would_not_change_is_not_repeated() {
    let store = S3::start(1000);
    for (status, code) in [
        (403, "AccessDenied"),
        (404, "NoSuchBucket"),
        (301, "PermanentRedirect"),
    ] {
        let before = store.requests().len();
        store.fail("GET", Fault::Refuse(status, code));
        assert_eq!(refused(open(&store).list("")), (status, code.to_owned()));
        assert_eq!(store.requests().len(), before + 1);
    }
}

#[test]
fn a_wrong_key_region_or_bucket_is_named() {
    let store = S3::start(1000);
    let other_key = Bucket::open(BUCKET, &settings(&store), &credentials("OTHER")).unwrap();
    assert_eq!(refused(other_key.list("")).1, "InvalidAccessKeyId");
    let mut elsewhere = settings(&store);
    elsewhere.region = "other-1".to_owned();
    let bucket = Bucket::open(BUCKET, &elsewhere, &credentials(ACCESS_KEY)).unwrap();
    let error = bucket.list("").err().unwrap().to_string();
    assert!(error.contains("Check the region"), "{error}");
    let bucket = Bucket::open("none", &settings(&store), &credentials(ACCESS_KEY)).unwrap();
    let error = bucket.list("").err().unwrap().to_string();
    assert!(error.contains("Create the bucket"), "{error}");
}

#[test]
fn a_failed_upload_leaves_neither_object_nor_parts() {
    let store = S3::start(1000);
    let (bucket, directory) = (open(&store), TempDir::new().unwrap());
    let (path, _) = file(&directory, LARGE);
    store.fail("partNumber=2", Fault::Refuse(403, "AccessDenied"));
    assert_eq!(refused(bucket.upload("k", &path)).0, 403);
    // The completion is refused within a success.
    store.fail("POST /backups/k?uploadId", Fault::LateError("InvalidPart"));
    assert_eq!(refused(bucket.upload("k", &path)).1, "InvalidPart");
    assert!(store.objects().is_empty());
    assert_eq!(store.open_uploads(), 0);
}

#[test]
fn a_completion_whose_answer_is_lost_has_succeeded() {
    let store = S3::start(1000);
    let (bucket, directory) = (open(&store), TempDir::new().unwrap());
    let (path, content) = file(&directory, LARGE);
    store.fail("POST /backups/k?uploadId", Fault::LoseAnswer);
    bucket.upload("k", &path).unwrap();
    assert!(store.objects()["k"] == content);
}

#[test]
fn another_server_is_no_s3() {
    let store = S3::start(1000);
    store.fail("GET", Fault::Refuse(200, "x"));
    assert_eq!(refused(open(&store).list("")), (200, "x".to_owned()));
    let mut unreachable = settings(&store);
    // Reserved (tcpmux).
    unreachable.endpoint = Some("http://127.0.0.1:1".to_owned());
    let bucket = Bucket::open(BUCKET, &unreachable, &credentials(ACCESS_KEY)).unwrap();
    let error = bucket.list("").err().unwrap().to_string();
    assert!(error.contains("no answer from 127.0.0.1"), "{error}");
}
