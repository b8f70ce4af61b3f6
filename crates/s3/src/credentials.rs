//! Credentials from the environment, or from a file with the sections of Amazon's command.
//!
//! Source: the environment variables and the credentials file of the AWS command line.

use std::fmt;
use std::path::Path;

/// An access key, its secret, and the token of temporary ones.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub access_key_id: String,
    pub secret_access_key: String,
    pub session_token: Option<String>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("access_key_id", &self.access_key_id)
            .finish_non_exhaustive()
    }
}

impl Credentials {
    /// Returns the credentials of `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and
    /// `AWS_SESSION_TOKEN`; `None` if the first two are not set.
    ///
    /// # Errors
    /// One of the two is set without the other.
    pub fn from_environment(
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, String> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let (id, secret) = (set("AWS_ACCESS_KEY_ID"), set("AWS_SECRET_ACCESS_KEY"));
        match (id, secret) {
            (None, None) => Ok(None),
            (Some(access_key_id), Some(secret_access_key)) => Ok(Some(Self {
                access_key_id,
                secret_access_key,
                session_token: set("AWS_SESSION_TOKEN"),
            })),
            (None, Some(_)) => {
                Err("AWS_SECRET_ACCESS_KEY is set, and AWS_ACCESS_KEY_ID is not".to_owned())
            }
            (Some(_), None) => {
                Err("AWS_ACCESS_KEY_ID is set, and AWS_SECRET_ACCESS_KEY is not".to_owned())
            }
        }
    }

    /// Reads the section `profile` of a credentials file.
    ///
    /// # Errors
    /// The file cannot be read, or the section is missing or incomplete; secrets are not in the text.
    pub fn from_file(path: &Path, profile: &str) -> Result<Self, String> {
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read credentials file {shown}: {error}"))?;
        Self::parse(&text, profile).map_err(|error| format!("credentials file {shown}: {error}"))
    }

    fn parse(text: &str, profile: &str) -> Result<Self, String> {
        let mut section = None;
        let mut is_found = false;
        let (mut id, mut secret, mut token) = (None, None, None);
        for line in text.lines() {
            let line = line.trim();
            if let Some(name) = line
                .strip_prefix('[')
                .and_then(|rest| rest.strip_suffix(']'))
            {
                section = Some(name.trim());
                is_found |= section == Some(profile);
                continue;
            }
            if section != Some(profile) || line.starts_with(['#', ';']) {
                continue;
            }
            let Some((name, value)) = line.split_once('=') else {
                continue;
            };
            let value = Some(value.trim().to_owned()).filter(|value| !value.is_empty());
            match name.trim() {
                "aws_access_key_id" => id = value,
                "aws_secret_access_key" => secret = value,
                "aws_session_token" => token = value,
                _ => {}
            }
        }
        if !is_found {
            return Err(format!(
                "section [{profile}] is missing: add it, or choose another one with AWS_PROFILE"
            ));
        }
        let missing = |name: &str| format!("section [{profile}] has no {name}");
        Ok(Self {
            access_key_id: id.ok_or_else(|| missing("aws_access_key_id"))?,
            secret_access_key: secret.ok_or_else(|| missing("aws_secret_access_key"))?,
            session_token: token,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
# keys
[default]
aws_access_key_id = A
aws_secret_access_key=S=1
region = r

[backup]
aws_access_key_id = B
;aws_secret_access_key = X
aws_session_token = T
";

    #[test]
    fn a_file_has_sections() {
        let found = Credentials::parse(FILE, "default").unwrap();
        assert_eq!(found.access_key_id, "A");
        assert_eq!(found.secret_access_key, "S=1");
        assert_eq!(found.session_token, None);
        let error = Credentials::parse(FILE, "backup").unwrap_err();
        assert_eq!(error, "section [backup] has no aws_secret_access_key");
        let error = Credentials::parse(FILE, "other").unwrap_err();
        assert!(error.contains("[other] is missing"), "{error}");
        assert!(!format!("{found:?}").contains("S=1"));
    }

    #[test]
    fn the_environment_has_both_or_none() {
        let only = |set: &'static [(&str, &str)]| {
            Credentials::from_environment(move |name| {
                let found = set.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(only(&[]), Ok(None));
        assert_eq!(only(&[("AWS_ACCESS_KEY_ID", "")]), Ok(None));
        let error = only(&[("AWS_ACCESS_KEY_ID", "A")]).unwrap_err();
        assert!(error.contains("AWS_SECRET_ACCESS_KEY is not"), "{error}");
        let both = only(&[
            ("AWS_ACCESS_KEY_ID", "A"),
            ("AWS_SECRET_ACCESS_KEY", "S"),
            ("AWS_SESSION_TOKEN", "T"),
        ]);
        let both = both.unwrap().unwrap();
        assert_eq!(both.session_token.as_deref(), Some("T"));
    }
}
