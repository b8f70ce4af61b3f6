//! Settings of a node's introduction: the section `[introduction]` of its configuration file.
//!
//! An agent prints the section with the doc comments of [`SOURCE`].

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The source of the section, for a configuration file that explains itself.
pub const SOURCE: &str = include_str!("config.rs");

/// The first certificate of a node that joins with a token. It needs `tls.ca_file`; the certificate and
/// its key are kept in `tls.cert_file` and `tls.key_file`, by default in `tls/` in `data_dir`, and the
/// node renews the certificate. Without effect once the node has one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IntroductionConfig {
    /// Token from `kafila node introduction create`; empty: none.
    pub token: Secret,
    /// File with the token, in place of `token`; also the output of `kafila node introduction create`.
    pub token_file: Option<PathBuf>,
}

/// A text that appears neither in logs nor in `-print-config`.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_empty() { "none" } else { "hidden" })
    }
}

impl Serialize for Secret {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(if self.0.is_empty() { "" } else { "(hidden)" })
    }
}

impl IntroductionConfig {
    /// Returns whether there is a token, or a file for one.
    pub fn is_set(&self) -> bool {
        !self.token.0.is_empty() || self.token_file.is_some()
    }

    /// Returns the token; `None`: there is none.
    ///
    /// # Errors
    /// A setting and its problem: both are set, or the file cannot be read or has no token.
    pub fn read(&self) -> Result<Option<String>, (&'static str, String)> {
        let wrong = |problem: String| Err(("introduction.token_file", problem));
        let inline = token_in(&self.token.0);
        match &self.token_file {
            None if inline.is_empty() => Ok(None),
            None => Ok(Some(inline.to_owned())),
            Some(_) if !inline.is_empty() => {
                wrong("is set beside `introduction.token`: want one of them".to_owned())
            }
            Some(path) => match std::fs::read_to_string(path) {
                Ok(text) if token_in(&text).is_empty() => {
                    wrong(format!("the file {path:?} is empty: want a token"))
                }
                Ok(text) => Ok(Some(token_in(&text).to_owned())),
                Err(error) => wrong(format!("cannot read the file {path:?}: {error}")),
            },
        }
    }
}

/// Returns the token in a text: after `Token =`, as `kafila node introduction create` prints it, else the
/// whole text.
fn token_in(text: &str) -> &str {
    let printed = text.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == "Token").then(|| value.trim())
    });
    printed.unwrap_or_else(|| text.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_from_one_setting() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let config = |token: &str, has_file: bool| IntroductionConfig {
            token: Secret::new(token),
            token_file: has_file.then(|| path.clone()),
        };
        let read = |token, has_file| config(token, has_file).read();
        assert_eq!(read("", false).unwrap(), None);
        assert_eq!(read(" t1 ", false).unwrap().as_deref(), Some("t1"));
        let (setting, problem) = read("", true).unwrap_err();
        assert_eq!(setting, "introduction.token_file");
        let quoted = format!("cannot read the file {path:?}: ");
        assert!(problem.starts_with(&quoted), "{problem}");
        std::fs::write(&path, "\n").unwrap();
        assert!(read("", true).unwrap_err().1.contains("empty"));
        std::fs::write(&path, "t2\n").unwrap();
        assert_eq!(read("", true).unwrap().as_deref(), Some("t2"));
        // As `kafila node introduction create` prints it: one line of the output, or all.
        for printed in [
            "Token = t3==\n",
            "ID        = 1a2b\nNode Name = n1\nToken     = t3==\n\nStart the node with this token",
        ] {
            std::fs::write(&path, printed).unwrap();
            assert_eq!(
                read("", true).unwrap().as_deref(),
                Some("t3=="),
                "{printed}"
            );
            assert_eq!(read(printed, false).unwrap().as_deref(), Some("t3=="));
        }
        std::fs::write(&path, "Token =\n").unwrap();
        assert!(read("", true).unwrap_err().1.contains("empty"));
        assert!(read("t1", true).unwrap_err().1.contains("one of"));
    }
}
