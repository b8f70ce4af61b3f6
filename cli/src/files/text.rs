//! The text of a file or of standard input.

use std::io::Read as _;
use std::path::Path;

use jobspec::MAX_TEXT_BYTES;

/// The path that means standard input.
pub(crate) const STDIN: &str = "-";

/// Returns the name of a file beside lines and columns: the last part of its path, as in Nomad's.
pub(super) fn name_of(path: &Path) -> String {
    if path.as_os_str() == STDIN {
        return "stdin".to_owned();
    }
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

/// Returns the path of a file in messages, as given.
pub(super) fn shown(path: &Path) -> String {
    if path.as_os_str() == STDIN {
        return "stdin".to_owned();
    }
    path.display().to_string()
}

/// Tells JSON from HCL, which never begins with a brace.
pub(super) fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// Reads a file or standard input, up to one byte more than the longest job file.
///
/// The parser refuses the longer text, and reading `/dev/zero` ends.
pub(crate) fn text_of(path: &Path) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(MAX_TEXT_BYTES)
        .unwrap_or(u64::MAX)
        .saturating_add(1);
    if path.as_os_str() == STDIN {
        std::io::stdin()
            .lock()
            .take(limit)
            .read_to_end(&mut bytes)?;
    } else {
        std::fs::File::open(path)?
            .take(limit)
            .read_to_end(&mut bytes)?;
    }
    String::from_utf8(bytes).map_err(|error| {
        let line = error.as_bytes()[..error.utf8_error().valid_up_to()]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count();
        let message = format!("line {} is not UTF-8: save the file as UTF-8", line + 1);
        std::io::Error::new(std::io::ErrorKind::InvalidData, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_differs_from_hcl_by_its_brace() {
        assert!(is_json(" \n{}") && !is_json("job \"a\" {}"));
    }

    #[test]
    fn a_file_has_its_path_in_messages_and_its_name_beside_lines() {
        assert_eq!(shown(Path::new("/jobs/web.hcl")), "/jobs/web.hcl");
        assert_eq!(name_of(Path::new("/jobs/web.hcl")), "web.hcl");
        assert_eq!(shown(Path::new("-")), "stdin");
        assert_eq!(name_of(Path::new("-")), "stdin");
    }

    #[test]
    fn a_file_that_is_no_text_says_where() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"job \"a\" {\n  x = \"\xff\"\n}\n").unwrap();
        let error = text_of(file.path()).unwrap_err().to_string();
        assert!(error.contains("line 2 is not UTF-8"), "{error}");
    }
}
