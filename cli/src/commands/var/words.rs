//! Words of `var put`: a path, a file, and items.

use std::path::PathBuf;

use crate::error::Error;
use crate::files::text::{STDIN, text_of};

/// The words of one command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) path: Option<String>,
    pub(super) file: Option<PathBuf>,
    /// Items with their values; `None`: the file's item is left out.
    pub(super) items: Vec<(String, Option<String>)>,
}

impl Words {
    /// Reads the words, and the files of values.
    ///
    /// # Errors
    /// A word is none of the three, a file cannot be read, or neither path nor file is there.
    pub(super) fn read(words: &[String]) -> Result<Self, Error> {
        let mut read = Self::default();
        for (position, word) in words.iter().enumerate() {
            let is_file = word == STDIN || word.starts_with('@');
            if is_file && read.file.is_none() && read.items.is_empty() {
                read.file = Some(word.strip_prefix('@').unwrap_or(word).into());
            } else if let Some((name, value)) = word.split_once('=') {
                read.items.push(item(name, value)?);
            } else if position == 0 && !is_file {
                read.path = Some(word.clone());
            } else {
                return Err(Error::text(format!(
                    "Error reading {word:?}: want NAME=VALUE behind the path and the file, for example \
                     kafila var put app/db user=web"
                )));
            }
        }
        if read.path.is_none() && read.file.is_none() {
            return Err(Error::text(
                "The variable has no path: write it first, for example kafila var put app/db user=web",
            ));
        }
        Ok(read)
    }
}

fn item(name: &str, value: &str) -> Result<(String, Option<String>), Error> {
    if name.is_empty() {
        return Err(Error::text(format!(
            "Error reading \"={value}\": an item needs a name, for example user=web"
        )));
    }
    let value = match value.strip_prefix('@') {
        Some(file) => {
            let text = text_of(file.as_ref());
            text.map_err(|error| {
                Error::text(format!(
                    "Error reading the value of {name} from {file}: {error}"
                ))
            })?
        }
        None => value.to_owned(),
    };
    Ok((
        name.to_owned(),
        Some(value).filter(|value| !value.is_empty()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Words, String> {
        let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
        Words::read(&words).map_err(|error| error.to_string())
    }

    #[test]
    fn a_path_a_file_and_items_are_distinguished() {
        let words = read("app/db @db.hcl user=web old= url=a=b").unwrap();
        assert_eq!(words.path.as_deref(), Some("app/db"));
        assert_eq!(words.file, Some("db.hcl".into()));
        let item = |name: &str, value: Option<&str>| (name.to_owned(), value.map(str::to_owned));
        let expected = [
            item("user", Some("web")),
            item("old", None),
            item("url", Some("a=b")),
        ];
        assert_eq!(words.items, expected);
        assert_eq!(read("- user=web").unwrap().file, Some("-".into()));
        assert_eq!(read("@db.hcl").unwrap().path, None);
    }

    #[test]
    fn a_value_is_read_from_a_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "secret\n").unwrap();
        let words = read(&format!("app key=@{}", file.path().display())).unwrap();
        assert_eq!(
            words.items,
            [("key".to_owned(), Some("secret\n".to_owned()))]
        );
    }

    #[test]
    fn other_words_are_refused_with_the_fix() {
        for (line, part) in [
            ("user=web", "has no path"),
            ("app db", "want NAME=VALUE"),
            ("app =x", "an item needs a name"),
            ("app a=@/no/such/file", "Error reading the value of a"),
            ("app a=b @f", "want NAME=VALUE"),
        ] {
            let error = read(line).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
