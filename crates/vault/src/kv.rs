//! Key-value secrets: the path to read or list, by the version of the engine that is mounted there.
//!
//! Version 2 has its data below `<mount>/data/` and its lists below `<mount>/metadata/`. Templates may
//! name the secret with or without that part, as in Nomad's.

use serde_json::Value;

/// A mount of Vault, as `sys/internal/ui/mounts/<path>` describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The path of the mount, with a slash at its end.
    pub path: String,
    pub is_kv2: bool,
}

/// The use of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Read,
    List,
}

impl Mount {
    /// Reads the data of the answer.
    pub(crate) fn read(data: &Value) -> Option<Self> {
        let path = data.get("path")?.as_str()?.to_owned();
        let version = data.get("options").and_then(|options| options.get("version"));
        Some(Self {
            path,
            is_kv2: version.and_then(Value::as_str) == Some("2"),
        })
    }

    /// The path of the API for `path` of a template.
    pub fn api_path(&self, path: &str, usage: Use) -> String {
        let path = path.trim_matches('/');
        let mount = self.path.trim_end_matches('/');
        let rest = path.strip_prefix(mount).map(|rest| rest.trim_start_matches('/'));
        let (true, Some(rest)) = (self.is_kv2, rest) else {
            return path.to_owned();
        };
        let part = match usage {
            Use::Read => "data",
            Use::List => "metadata",
        };
        let is_complete = rest == part || rest.strip_prefix(part).is_some_and(|rest| rest.starts_with('/'));
        match rest {
            _ if is_complete => path.to_owned(),
            "" => format!("{mount}/{part}"),
            rest => format!("{mount}/{part}/{rest}"),
        }
    }
}

/// The path of a template without its query, and the version that the query asks for: `kv/app?version=3`.
///
/// # Errors
/// The query is another one.
pub fn split_version(path: &str) -> Result<(&str, Option<u64>), String> {
    let Some((path, query)) = path.split_once('?') else {
        return Ok((path, None));
    };
    let number = query.strip_prefix("version=").and_then(|text| text.parse().ok());
    match number {
        Some(number) => Ok((path, Some(number))),
        None => Err(format!(
            "the path {path:?} has the query {query:?}: want ?version=NUMBER"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(path: &str, is_kv2: bool) -> Mount {
        Mount { path: path.to_owned(), is_kv2 }
    }

    #[test]
    fn version_2_has_its_data_below_data() {
        let kv2 = mount("secret/", true);
        for (path, want) in [
            ("secret/app/db", "secret/data/app/db"),
            ("/secret/app/", "secret/data/app"),
            ("secret/data/app", "secret/data/app"),
            ("secret/database", "secret/data/database"),
            ("secret", "secret/data"),
        ] {
            assert_eq!(kv2.api_path(path, Use::Read), want, "{path}");
        }
        assert_eq!(kv2.api_path("secret/app", Use::List), "secret/metadata/app");
        assert_eq!(kv2.api_path("secret/metadata/app", Use::List), "secret/metadata/app");
        assert_eq!(mount("a/b/", true).api_path("a/b/c", Use::Read), "a/b/data/c");
    }

    #[test]
    fn other_engines_keep_the_path() {
        assert_eq!(mount("kv/", false).api_path("kv/app", Use::Read), "kv/app");
        assert_eq!(mount("kv/", false).api_path("kv/app", Use::List), "kv/app");
    }

    #[test]
    fn a_mount_names_its_version() {
        let of = |text: &str| Mount::read(&serde_json::from_str(text).unwrap());
        assert_eq!(
            of(r#"{"path":"secret/","type":"kv","options":{"version":"2"}}"#),
            Some(mount("secret/", true))
        );
        assert_eq!(
            of(r#"{"path":"kv/","type":"kv","options":null}"#),
            Some(mount("kv/", false))
        );
        assert_eq!(of("{}"), None);
    }

    #[test]
    fn a_path_may_ask_for_a_version() {
        assert_eq!(split_version("kv/a"), Ok(("kv/a", None)));
        assert_eq!(split_version("kv/a?version=3"), Ok(("kv/a", Some(3))));
        assert!(split_version("kv/a?list=true").unwrap_err().contains("version=NUMBER"));
    }
}
