//! Requests about etcd: the revision of a compaction, the member of a defragmentation.

use model::FieldErrors;

/// Returns the revision to compact at; 0 asks for the newest one.
///
/// # Errors
/// It is in the future.
pub fn compaction(requested: u64, newest: u64) -> Result<u64, FieldErrors> {
    let mut errors = FieldErrors::default();
    if requested > newest {
        let message =
            format!("{requested} is in the future: want at most {newest}, or 0 for the newest");
        errors.push("revision", message);
    }
    errors.into_result(match requested {
        0 => newest,
        revision => revision,
    })
}

/// Checks that `endpoint` is one of etcd's members, by which the gateway reaches it.
///
/// # Errors
/// It is none.
pub fn check_endpoint(endpoint: &str, members: &[String]) -> Result<(), FieldErrors> {
    let mut errors = FieldErrors::default();
    if !members.iter().any(|member| member == endpoint) {
        let message = format!(
            "{endpoint:?} is not a member of etcd: want one of {}",
            members.join(", ")
        );
        errors.push("endpoint", message);
    }
    errors.into_result(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compaction_is_at_the_newest_revision_or_before() {
        assert_eq!(compaction(0, 9), Ok(9));
        assert_eq!(compaction(7, 9), Ok(7));
        assert_eq!(compaction(9, 9), Ok(9));
        assert_eq!(compaction(10, 9).unwrap_err().0[0].field, "revision");
    }

    #[test]
    fn only_a_known_member_is_defragmented() {
        let members = ["http://a:2379".to_owned(), "http://b:2379".to_owned()];
        assert_eq!(check_endpoint("http://b:2379", &members), Ok(()));
        let errors = check_endpoint("http://c:2379", &members).unwrap_err();
        assert_eq!(errors.0[0].field, "endpoint");
        assert!(errors.0[0].message.contains("http://a:2379, http://b:2379"));
    }
}
