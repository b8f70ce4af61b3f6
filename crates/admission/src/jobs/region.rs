//! The region of a job: that of the cluster, which runs jobs of no other region.

use model::job::DEFAULT_REGION;
use model::{FieldErrors, Job};

/// Puts a job without a region, or with the default one, into the cluster's region. Source: Nomad's public
/// behaviour.
///
/// # Errors
/// The job is for another region: nothing forwards it there.
pub fn put_in(job: &mut Job, cluster: &str) -> Result<(), FieldErrors> {
    if job.region == DEFAULT_REGION {
        cluster.clone_into(&mut job.region);
    }
    let mut errors = FieldErrors::default();
    if job.region != cluster {
        let message = format!(
            "the job is for region {:?}, and this cluster is region {cluster:?}: register the job with the \
             cluster of its region, or leave region out",
            job.region,
        );
        errors.push("region", message);
    }
    errors.into_result(())
}

#[cfg(test)]
mod tests {
    use test_kit::builders;

    use super::*;

    #[test]
    fn a_job_is_put_in_the_cluster_s_region_and_refused_in_another() {
        for (wanted, cluster, want) in [
            ("global", "global", Ok("global")),
            ("global", "eu", Ok("eu")),
            ("eu", "eu", Ok("eu")),
            ("us", "eu", Err(["\"us\"", "\"eu\""])),
            ("us", "global", Err(["\"us\"", "\"global\""])),
        ] {
            let mut job = builders::service("web", 1);
            wanted.clone_into(&mut job.region);
            let result = put_in(&mut job, cluster);
            match want {
                Ok(region) => {
                    assert!(result.is_ok(), "{wanted} in {cluster}: {result:?}");
                    assert_eq!(job.region, region);
                }
                Err(names) => {
                    let said = result.unwrap_err();
                    assert_eq!(said.0[0].field, "region");
                    let said = said.to_string();
                    assert!(names.iter().all(|name| said.contains(name)), "{said}");
                }
            }
        }
    }
}
