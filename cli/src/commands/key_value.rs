//! Values of `-meta` flags.

use std::collections::HashMap;

use crate::error::Error;

/// Parses `KEY=VALUE` words; a later value of the same key wins.
pub(super) fn parse(words: &[String]) -> Result<HashMap<String, String>, Error> {
    let mut meta = HashMap::new();
    for word in words {
        let Some((key, value)) = word.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return Err(Error::text(format!(
                "Error parsing meta value {word:?}: expected KEY=VALUE, for example -meta \
                 input=a.csv"
            )));
        };
        meta.insert(key.to_owned(), value.to_owned());
    }
    Ok(meta)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meta_is_keys_with_values() {
        let words = ["a=1", "b=x=y", "c=", "a=2"].map(str::to_owned);
        let meta = parse(&words).unwrap();
        assert_eq!(
            (meta["a"].as_str(), meta["b"].as_str(), meta["c"].as_str()),
            ("2", "x=y", "")
        );
        for wrong in ["a", "=1", ""] {
            let error = parse(&[wrong.to_owned()]).unwrap_err().to_string();
            assert!(error.contains("expected KEY=VALUE"), "{error}");
        }
    }
}
