//! The vault block of tasks.

use super::check;
use crate::support::{admit, file};

#[test]
fn values_of_a_vault_block_are_checked() {
    check(&[
        (
            "",
            "",
            "vault {\ncluster = \"eu\"\n}",
            "$t.vault.cluster",
            "Vault cluster \"eu\" is not known",
        ),
        (
            "",
            "",
            "vault {\nchange_mode = \"script\"\n}",
            "$t.vault.change_mode",
            "use restart, signal or noop",
        ),
        (
            "",
            "",
            "vault {\nchange_mode = \"signal\"\nchange_signal = \"HUPP\"\n}",
            "$t.vault.change_signal",
            "unknown signal",
        ),
    ]);
}

#[test]
fn a_vault_block_restricts_the_nodes() {
    let block = "vault {\nrole = \"web\"\nchange_mode = \"signal\"\nchange_signal = \"SIGUSR1\"\n}";
    let admitted = admit(&file("", "", block)).unwrap();
    assert_eq!(admitted.warnings, [""; 0]);
    let constraints = &admitted.job.task_groups[0].constraints;
    let has = |left: &str, right: &str| {
        constraints
            .iter()
            .any(|constraint| constraint.left == left && constraint.right == right)
    };
    assert!(has("${attr.vault.version}", ">= 0.6.1"), "{constraints:?}");
    assert!(has("${attr.os.signals}", "SIGUSR1"), "{constraints:?}");
    // The stored job is read again as the same job.
    let again = jobspec::canonicalise(&job_fields::Job::from(&admitted.job), crate::support::NOW);
    assert_eq!(again.unwrap().job, admitted.job);
}

#[test]
fn policies_are_accepted_with_a_warning() {
    let block = "vault {\npolicies = [\"app\"]\n}";
    let warnings = admit(&file("", "", block)).unwrap().warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("vault.policies has no effect"),
        "{warnings:?}"
    );
    assert!(
        warnings[0].contains("the node's default role"),
        "{warnings:?}"
    );
}
