//! Options of a read, checked.

use std::time::Duration;

use listing::UuidPrefix;
use model::{FieldErrors, JobKey, Namespace};
use proto::required_duration;
use proto::v1::{Consistency, QueryOptions};

/// The default wait of a blocking read. Source: Nomad's public behaviour.
const DEFAULT_WAIT: Duration = Duration::from_secs(300);
/// The maximum wait; beyond it the default applies.
const MAX_WAIT: Duration = Duration::from_secs(600);

/// Returns the name of one job.
///
/// # Errors
/// The id is missing, or the namespace is `*`.
pub fn job_key(
    namespace_field: &str,
    namespace: &str,
    job_id: &str,
) -> Result<JobKey, FieldErrors> {
    let mut errors = FieldErrors::default();
    if namespace == "*" {
        errors.push(
            namespace_field,
            "\"*\" means every namespace: want that of the job, or none for \"default\"",
        );
    }
    if job_id.is_empty() {
        errors.push(
            "job_id",
            "missing: want the job's id, as in its file's job \"web\"",
        );
    }
    errors.into_result(JobKey::new(Namespace::or_default(namespace), job_id))
}

/// Returns the prefix of ids; `None`: any.
///
/// # Errors
/// It is not the start of a UUID.
pub fn uuid_prefix(options: &QueryOptions) -> Result<Option<UuidPrefix>, FieldErrors> {
    if options.prefix.is_empty() {
        return Ok(None);
    }
    UuidPrefix::parse(&options.prefix).map(Some).ok_or_else(|| {
        let mut errors = FieldErrors::default();
        errors.push(
            "options.prefix",
            format!(
                "{:?} is not the start of an id: want hexadecimal digits, as in 8a3f2c1e",
                options.prefix
            ),
        );
        errors
    })
}

/// Freshness and blocking of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    pub stale: bool,
    /// 0: at once.
    pub min_index: u64,
    pub wait: Duration,
}

/// Reads the consistency and the wait.
///
/// # Errors
/// The consistency is unknown, or the wait is not a duration.
pub fn mode(options: &QueryOptions) -> Result<Mode, FieldErrors> {
    let mut errors = FieldErrors::default();
    let consistency = Consistency::try_from(options.consistency).unwrap_or_else(|_| {
        errors.push(
            "options.consistency",
            format!(
                "{} is not known: want 1 (linearizable, the default) or 2 (stale)",
                options.consistency
            ),
        );
        Consistency::Unspecified
    });
    let wait = match options.wait {
        None => DEFAULT_WAIT,
        Some(wait) => required_duration("options.wait", Some(wait)).unwrap_or_else(|found| {
            errors.0.extend(found.0);
            DEFAULT_WAIT
        }),
    };
    let wait = if wait > MAX_WAIT { DEFAULT_WAIT } else { wait };
    let stale = consistency == Consistency::Stale;
    errors.into_result(Mode {
        stale,
        min_index: options.min_index,
        wait,
    })
}

/// Returns the caller's timeout, from the request's `grpc-timeout`; `None`: it has none.
///
/// Source: gRPC over HTTP/2: up to eight digits and a unit.
pub fn caller_timeout(metadata: &tonic::metadata::MetadataMap) -> Option<Duration> {
    let text = metadata.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let amount: u64 = digits.parse().ok().filter(|_| digits.len() <= 8)?;
    Some(match unit {
        "H" => Duration::from_secs(amount * 3_600),
        "M" => Duration::from_secs(amount * 60),
        "S" => Duration::from_secs(amount),
        "m" => Duration::from_millis(amount),
        "u" => Duration::from_micros(amount),
        "n" => Duration::from_nanos(amount),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use tonic::metadata::MetadataMap;

    use super::*;

    #[test]
    fn the_callers_timeout_is_read_in_every_unit() {
        for (text, want) in [
            ("2H", Some(Duration::from_secs(7_200))),
            ("1M", Some(Duration::from_secs(60))),
            ("30S", Some(Duration::from_secs(30))),
            ("250m", Some(Duration::from_millis(250))),
            ("7u", Some(Duration::from_micros(7))),
            ("99999999n", Some(Duration::from_nanos(99_999_999))),
            ("123456789S", None),
            ("5", None),
            ("S", None),
            ("5X", None),
            ("", None),
        ] {
            let mut metadata = MetadataMap::new();
            metadata.insert("grpc-timeout", text.parse().unwrap());
            assert_eq!(caller_timeout(&metadata), want, "{text:?}");
        }
        assert_eq!(caller_timeout(&MetadataMap::new()), None);
    }

    #[test]
    fn a_wait_that_is_too_long_becomes_the_default() {
        let options = |seconds| QueryOptions {
            wait: Some(proto::duration_to_wire(Duration::from_secs(seconds))),
            ..QueryOptions::default()
        };
        assert_eq!(mode(&options(600)).unwrap().wait, MAX_WAIT);
        assert_eq!(mode(&options(601)).unwrap().wait, DEFAULT_WAIT);
        assert_eq!(mode(&QueryOptions::default()).unwrap().wait, DEFAULT_WAIT);
    }
}
