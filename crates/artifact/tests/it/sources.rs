//! Sources of real job files and of the documentation, and those that are refused.

use std::collections::BTreeMap;
use std::path::PathBuf;

use artifact::{Archive, Checksum, Compression, Getter, Problem, Source};
use proptest::prelude::*;

fn parse(source: &str) -> Result<Source, Problem> {
    Source::parse(source, &BTreeMap::new())
}

fn with(source: &str, options: &[(&str, &str)]) -> Result<Source, Problem> {
    let options = options
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Source::parse(source, &options.collect())
}

fn http(source: &str) -> (String, Option<String>, Option<Archive>) {
    let source = parse(source).unwrap();
    match source.getter {
        Getter::Http(url) => (url.into(), source.name, source.archive),
        other => panic!("not http: {other:?}"),
    }
}

#[test]
fn files_over_http_have_a_name_and_a_kind() {
    let gz = Some(Archive::Tar(Compression::Gzip));
    for (source, name, kind) in [
        ("https://go.dev/dl/go1.22.linux-amd64.tar.gz", Some("go1.22.linux-amd64.tar.gz"), gz),
        ("http://localhost:8888/files/consul.zip", Some("consul.zip"), Some(Archive::Zip)),
        ("https://raw.githubusercontent.com/hashicorp/go-set/main/go.mod", Some("go.mod"), None),
        ("https://github.com/fabiolb/fabio/releases/download/v1.5.2/fabio-1.5.2-go1.8.3-linux_amd64", Some("fabio-1.5.2-go1.8.3-linux_amd64"), None),
        ("https://google.com", None, None),
        ("https://example.org/a%20b.zip", Some("a b.zip"), Some(Archive::Zip)),
        ("https://example.org/a%2Fb", None, None),
        ("http://[::1]:8080/x.tgz?token=a%2Bb&x", Some("x.tgz"), gz),
    ] {
        let (url, found, archive) = http(source);
        let canonical = if source == "https://google.com" { "https://google.com/" } else { source };
        assert_eq!((url.as_str(), found.as_deref(), archive), (canonical, name, kind));
    }
}

#[test]
fn options_are_parameters_and_those_of_the_getter_do_not_reach_the_server() {
    let hex = "a".repeat(64);
    let checksum = format!("sha256:{hex}");
    let of_query = parse(&format!("https://h.test/x.zip?checksum={checksum}&token=t&archive=false&filename=y")).unwrap();
    let of_options = with(
        "https://h.test/x.zip?token=t",
        &[("checksum", &checksum), ("archive", "false"), ("filename", "y")],
    )
    .unwrap();
    assert_eq!(of_query, of_options);
    let Getter::Http(url) = &of_query.getter else { panic!() };
    assert_eq!(url.as_str(), "https://h.test/x.zip?token=t");
    assert_eq!((of_query.archive, of_query.name.as_deref()), (None, Some("y")));
    assert!(matches!(&of_query.checksum, Some(Checksum::Digest(digest)) if digest.hex == hex));
    // An option that the getter does not know is a parameter for the server, encoded.
    let Getter::Http(url) = with("https://h.test/x", &[("a b", "1&2")]).unwrap().getter else { panic!() };
    assert_eq!(url.as_str(), "https://h.test/x?a%20b=1%262");
    assert_eq!(with("https://h.test/x", &[("archive", "tgz")]).unwrap().archive, Some(Archive::Tar(Compression::Gzip)));
}

#[test]
fn repositories_have_a_url_a_subdirectory_and_a_reference() {
    for (source, url, subdir, reference) in [
        ("git::https://github.com/hashicorp/go-set", "https://github.com/hashicorp/go-set.git", None, None),
        ("github.com/hashicorp/go-set", "https://github.com/hashicorp/go-set.git", None, None),
        ("github.com/hashicorp/go-set.git?ref=v1.0", "https://github.com/hashicorp/go-set.git", None, Some("v1.0")),
        ("github.com/o/n/sub/dir", "https://github.com/o/n.git", Some("sub/dir"), None),
        ("github.com/o/n//sub?ref=main", "https://github.com/o/n.git", Some("sub"), Some("main")),
        ("git@github.com:o/n.git//sub", "ssh://git@github.com/o/n.git", Some("sub"), None),
        ("git::git@example.org:o/n.git", "ssh://git@example.org/o/n.git", None, None),
        ("git::ssh://git@example.org:2222/o/n.git?ref=a1b2", "ssh://git@example.org:2222/o/n.git", None, Some("a1b2")),
        ("gitlab.com/group/sub/project", "https://gitlab.com/group/sub/project", None, None),
        ("git::file:///srv/repo.git", "file:///srv/repo.git", None, None),
        ("git::/srv/repo.git", "file:///srv/repo.git", None, None),
        ("git::https://user:pass@h.test/r.git?depth=1", "https://user:pass@h.test/r.git", None, None),
    ] {
        let parsed = parse(source).unwrap();
        let Getter::Git(git) = parsed.getter else { panic!("{source}") };
        assert_eq!(git.url.as_str(), url, "{source}");
        assert_eq!(parsed.subdir, subdir.map(PathBuf::from), "{source}");
        assert_eq!(git.reference.as_deref(), reference, "{source}");
    }
    let scheme = |source: &str| parse(source).unwrap().getter.scheme().to_owned();
    assert_eq!(scheme("git::/srv/repo.git"), "file");
    assert_eq!(scheme("github.com/o/n"), "git");
}

#[test]
fn objects_have_an_endpoint_a_bucket_and_a_region() {
    for (source, endpoint, bucket, key, region) in [
        ("s3::https://s3.amazonaws.com/b/k/x.zip", "https://s3.amazonaws.com", "b", "k/x.zip", "us-east-1"),
        ("s3::https://s3-eu-west-1.amazonaws.com/b/k", "https://s3.eu-west-1.amazonaws.com", "b", "k", "eu-west-1"),
        ("s3::https://s3.eu-west-1.amazonaws.com/b/k", "https://s3.eu-west-1.amazonaws.com", "b", "k", "eu-west-1"),
        ("s3::https://b.s3-eu-west-1.amazonaws.com/k", "https://s3.eu-west-1.amazonaws.com", "b", "k", "eu-west-1"),
        ("a.b.s3.amazonaws.com/k", "https://s3.amazonaws.com", "a.b", "k", "us-east-1"),
        ("s3://us-ord-1.linodeobjects.com/openglide/openglide-1.tar", "https://us-ord-1.linodeobjects.com", "openglide", "openglide-1.tar", "us-east-1"),
        ("s3::http://127.0.0.1:9000/b/k?region=r1", "http://127.0.0.1:9000", "b", "k", "r1"),
    ] {
        let parsed = parse(source).unwrap();
        let Getter::S3(object) = &parsed.getter else { panic!("{source}") };
        assert_eq!((object.endpoint.as_str(), object.bucket.as_str()), (endpoint, bucket), "{source}");
        assert_eq!((object.key.as_str(), object.region.as_str()), (key, region), "{source}");
        assert!(object.keys.is_none());
    }
    let keys = [("aws_access_key_id", "AK"), ("aws_access_key_secret", "hidden")];
    let with_keys = with("s3::https://s3.amazonaws.com/b/x.zip", &keys).unwrap();
    assert_eq!(with_keys.archive, Some(Archive::Zip));
    assert!(!format!("{with_keys:?} {}", with_keys.getter).contains("hidden"));
    let Getter::S3(object) = with_keys.getter else { panic!() };
    assert_eq!(object.keys.unwrap().secret_access_key, "hidden");
}

#[test]
fn no_text_shows_a_secret() {
    let sources = [
        "https://user:hidden@h.test/x?token=hidden",
        "git::https://user:hidden@h.test/x?sshkey=hidden",
        "git::ssh://hidden@h.test/x",
    ];
    for source in sources {
        let parsed = parse(source).unwrap();
        assert!(!format!("{parsed:?} {}", parsed.getter).contains("hidden"), "{source}");
    }
    let error = parse("https://user:hidden@/x?token=hidden").unwrap_err();
    assert!(!error.to_string().contains("hidden"), "{error}");
}

#[test]
fn what_cannot_be_downloaded_is_refused_with_the_way_out() {
    for (source, want) in [
        ("", "is empty"),
        ("google.com", "want https://"),
        ("local/x", "want https://"),
        ("hg::https://h.test/x", "\"hg::\", which is not supported"),
        ("gcs::https://h.test/x", "\"gcs::\""),
        ("www.googleapis.com/storage/v1/bucket/foo", "\"gcs\""),
        ("ftp://h.test/x", "\"ftp://\""),
        ("git::ext::sh -c id", "not a URL"),
        ("git::ftp://h.test/x", "\"git::ftp\""),
        ("github.com/o", "OWNER/NAME"),
        ("https://", "not a URL"),
        ("file://relative", "absolute"),
        ("s3::https://s3.amazonaws.com/bucket", "BUCKET/KEY"),
        ("s3::https://s3.amazonaws.com/bucket/folder/", "BUCKET/KEY"),
        ("s3::https://s3.amazonaws.com/b/k?aws_access_key_id=x", "aws_access_key_secret"),
        ("s3::https://s3.amazonaws.com/b/k?aws_profile=x", "aws_profile"),
        ("https://h.test/x.zip//../up", "leaves"),
        ("https://h.test/x//sub", "needs an archive"),
        ("https://h.test/x?archive=rar", "tar.gz"),
        ("https://h.test/x?filename=a/b", "without `/`"),
        ("https://h.test/x?checksum=sha256:1", "\"checksum\""),
        ("git::https://h.test/r?ref=--upload-pack=x", "\"ref\""),
        ("git::https://h.test/r?depth=x", "\"depth\""),
        ("git::https://h.test/r?checksum=md5:c4aa853ad2215426eb7d70a21922e794", "`ref`"),
    ] {
        let error = parse(source).unwrap_err().to_string();
        assert!(error.contains(want), "{source}: {error}");
    }
    assert_eq!(parse(&"x".repeat(20_000)).unwrap_err(), Problem::Long);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(source in "(git::|s3::|https://|github.com/)?[a-z0-9:/?&=%@.# \\\\-]{0,60}") {
        if let Ok(source) = parse(&source) {
            if let Some(name) = &source.name {
                prop_assert!(!name.contains('/') && name != "..");
            }
            if let Some(subdir) = &source.subdir {
                prop_assert!(subdir.components().all(|it| matches!(it, std::path::Component::Normal(_))));
            }
        }
    }
}
