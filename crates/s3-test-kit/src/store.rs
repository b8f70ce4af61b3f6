//! Objects, uploads in parts, and the answers to requests. Source: the API reference of Amazon S3.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest as _, Md5};

use crate::http::{Answer, Request};

/// The bucket, its region, and the access key with all rights; any secret is accepted.
pub const BUCKET: &str = "backups";
pub const REGION: &str = "test-1";
pub const ACCESS_KEY: &str = "AKIATEST";

pub(crate) struct Store {
    pub(crate) objects: BTreeMap<String, Vec<u8>>,
    /// By upload id: the key, and the parts by number.
    pub(crate) uploads: BTreeMap<String, (String, BTreeMap<u16, Vec<u8>>)>,
    created: usize,
    page: usize,
}

impl Store {
    pub(crate) fn new(page: usize) -> Self {
        Self {
            objects: BTreeMap::new(),
            uploads: BTreeMap::new(),
            created: 0,
            page,
        }
    }
}

const NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";

fn xml(status: u16, body: &str) -> Answer {
    let body = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{body}");
    Answer {
        status,
        headers: vec![("content-type", "application/xml".to_owned())],
        body: body.into_bytes(),
    }
}

fn empty(status: u16, headers: Vec<(&'static str, String)>) -> Answer {
    Answer {
        status,
        headers,
        body: Vec::new(),
    }
}

pub(crate) fn refusal(status: u16, code: &str) -> Answer {
    let body = format!("<Error><Code>{code}</Code><Message>by the test</Message></Error>");
    xml(status, &body)
}

/// Returns the refusal of a request that is not signed as it must be.
fn check_signature(request: &Request) -> Option<Answer> {
    let parameter = |name: &str| request.query.get(name).map_or("", String::as_str);
    if parameter("X-Amz-Algorithm") != "AWS4-HMAC-SHA256" {
        return Some(refusal(403, "AccessDenied"));
    }
    let scope: Vec<&str> = parameter("X-Amz-Credential").split('/').collect();
    let date = parameter("X-Amz-Date")
        .split('T')
        .next()
        .unwrap_or_default();
    match scope.as_slice() {
        [id, ..] if *id != ACCESS_KEY => return Some(refusal(403, "InvalidAccessKeyId")),
        [_, day, REGION, "s3", "aws4_request"] if *day == date && day.len() == 8 => {}
        _ => return Some(refusal(400, "AuthorizationQueryParametersError")),
    }
    let signature = parameter("X-Amz-Signature");
    if signature.len() != 64 || !signature.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Some(refusal(403, "SignatureDoesNotMatch"));
    }
    let signed: Vec<&str> = parameter("X-Amz-SignedHeaders").split(';').collect();
    if !signed.contains(&"host") {
        return Some(refusal(403, "SignatureDoesNotMatch"));
    }
    if matches!(request.method.as_str(), "PUT" | "POST") {
        let sent = request.headers.get("content-md5");
        let right = STANDARD.encode(Md5::digest(&request.body));
        if !signed.contains(&"content-md5") || sent != Some(&right) {
            return Some(refusal(400, "BadDigest"));
        }
        if !request.headers.contains_key("content-length") {
            return Some(refusal(411, "MissingContentLength"));
        }
    }
    None
}

pub(crate) fn respond(store: &mut Store, request: &Request) -> Answer {
    if let Some(refused) = check_signature(request) {
        return refused;
    }
    let Some(rest) = request.path.strip_prefix(&format!("/{BUCKET}")) else {
        return refusal(404, "NoSuchBucket");
    };
    let key = rest.trim_start_matches('/').to_owned();
    let parameter = |name: &str| request.query.get(name).map(String::as_str);
    match (request.method.as_str(), parameter("uploadId")) {
        ("GET", None) if key.is_empty() => list(store, request),
        ("HEAD", None) => match store.objects.get(&key) {
            Some(content) => empty(200, vec![("content-length", content.len().to_string())]),
            None => empty(404, Vec::new()),
        },
        ("PUT", None) => {
            store.objects.insert(key, request.body.clone());
            empty(200, vec![("etag", "\"whole\"".to_owned())])
        }
        ("DELETE", None) => {
            store.objects.remove(&key);
            empty(204, Vec::new())
        }
        ("POST", None) if parameter("uploads").is_some() => {
            store.created += 1;
            let id = format!("upload/{}", store.created);
            store
                .uploads
                .insert(id.clone(), (key.clone(), BTreeMap::new()));
            let body = format!(
                "<InitiateMultipartUploadResult xmlns=\"{NAMESPACE}\"><Bucket>{BUCKET}</Bucket>\
                 <Key>{key}</Key><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"
            );
            xml(200, &body)
        }
        (_, Some(id)) => match store.uploads.get_mut(id) {
            Some((of, _)) if *of != key => refusal(404, "NoSuchUpload"),
            None => refusal(404, "NoSuchUpload"),
            Some((_, parts)) => match request.method.as_str() {
                "PUT" => {
                    let number = parameter("partNumber").and_then(|text| text.parse().ok());
                    let Some(number) = number else {
                        return refusal(400, "InvalidArgument");
                    };
                    parts.insert(number, request.body.clone());
                    empty(200, vec![("etag", format!("\"part{number}\""))])
                }
                "POST" => complete(store, request, id, key),
                _ => {
                    store.uploads.remove(id);
                    empty(204, Vec::new())
                }
            },
        },
        _ => refusal(405, "MethodNotAllowed"),
    }
}

fn complete(store: &mut Store, request: &Request, id: &str, key: String) -> Answer {
    let Some((_, parts)) = store.uploads.get(id) else {
        return refusal(404, "NoSuchUpload");
    };
    let body = String::from_utf8_lossy(&request.body);
    let is_listed = |number: &u16| {
        body.contains(&format!("<PartNumber>{number}</PartNumber>"))
            && body.contains(&format!("part{number}"))
    };
    let named = body.matches("<PartNumber>").count();
    if named != parts.len() || !parts.keys().all(is_listed) {
        return refusal(400, "InvalidPart");
    }
    let content = parts.values().flatten().copied().collect();
    store.objects.insert(key.clone(), content);
    store.uploads.remove(id);
    let body = format!(
        "<CompleteMultipartUploadResult xmlns=\"{NAMESPACE}\"><Bucket>{BUCKET}</Bucket><Key>{key}</Key>\
         <ETag>\"all\"</ETag></CompleteMultipartUploadResult>"
    );
    xml(200, &body)
}

fn list(store: &Store, request: &Request) -> Answer {
    let parameter = |name: &str| request.query.get(name).map_or("", String::as_str);
    if parameter("list-type") != "2" || parameter("delimiter") != "/" {
        return refusal(400, "InvalidArgument");
    }
    let prefix = parameter("prefix");
    let after = parameter("continuation-token");
    let is_direct = |key: &&String| {
        let rest = key.strip_prefix(prefix);
        rest.is_some_and(|rest| !rest.contains('/'))
    };
    let keys = store.objects.keys().filter(is_direct);
    let keys: Vec<&String> = keys.filter(|key| key.as_str() > after).collect();
    let page = &keys[..keys.len().min(store.page)];
    let is_truncated = keys.len() > page.len();
    let mut body = format!(
        "<ListBucketResult xmlns=\"{NAMESPACE}\"><Name>{BUCKET}</Name><Prefix>{prefix}</Prefix>\
         <KeyCount>{}</KeyCount><MaxKeys>{}</MaxKeys><Delimiter>/</Delimiter>\
         <EncodingType>url</EncodingType><IsTruncated>{is_truncated}</IsTruncated>",
        page.len(),
        store.page
    );
    for key in page {
        let bytes = store.objects[*key].len();
        body.push_str(&format!(
            "<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>\
             <ETag>&quot;e&quot;</ETag><Size>{bytes}</Size><StorageClass>STANDARD</StorageClass></Contents>"
        ));
    }
    if let (true, Some(last)) = (is_truncated, page.last()) {
        body.push_str(&format!(
            "<NextContinuationToken>{last}</NextContinuationToken>"
        ));
    }
    body.push_str("</ListBucketResult>");
    xml(200, &body)
}
