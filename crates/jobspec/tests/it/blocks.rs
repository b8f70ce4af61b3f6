//! Blocks that one level hands down to another, or that split by their label or name.

use jobspec::{Inputs, parse};

use crate::support::{admit, file, spec};

#[test]
fn tasks_without_a_vault_block_get_their_groups_else_their_jobs() {
    let text = r#"
job "a" {
  vault {
    role = "of-job"
  }
  group "g" {
    vault {
      role = "of-group"
      env  = false
    }
    task "own" {
      driver = "raw_exec"
      vault {
        role        = "own"
        change_mode = "noop"
      }
    }
    task "inherits" {
      driver = "raw_exec"
    }
  }
  group "h" {
    task "inherits" {
      driver = "raw_exec"
    }
  }
}
"#;
    let job = parse("f", text, &Inputs::default()).unwrap().job;
    let vault = |group: usize, task: usize| {
        let vault = job.task_groups[group].tasks[task].vault.as_ref().unwrap();
        let text = |text: &Option<String>| text.clone().unwrap();
        (
            text(&vault.role),
            vault.env.unwrap(),
            text(&vault.change_mode),
        )
    };
    let want = |role: &str, env, mode: &str| (role.to_owned(), env, mode.to_owned());
    assert_eq!(vault(0, 0), want("own", true, "noop"));
    assert_eq!(vault(0, 1), want("of-group", false, "restart"));
    assert_eq!(vault(1, 0), want("of-job", true, "restart"));
}

#[test]
fn two_vault_blocks_of_one_level_are_refused() {
    let text = file("  vault {}\n  vault {}", "", "");
    let errors = parse("f", &text, &Inputs::default())
        .unwrap_err()
        .to_string();
    assert!(errors.contains("there are two vault blocks"), "{errors}");
}

#[test]
fn an_identity_without_a_name_is_the_default_one() {
    let identities = "      identity {\n        aud = [\"x\"]\n      }\n      identity {\n        name = \"vault_default\"\n        ttl = \"1h\"\n      }";
    let job = spec(&file("", "", identities));
    let task = &job.task_groups[0].tasks[0];
    assert_eq!(task.identity.as_ref().unwrap().audience, ["x"]);
    assert_eq!(task.identities.len(), 1);
    let admitted = admit(&file("", "", identities)).unwrap();
    let task = &admitted.job.task_groups[0].tasks[0];
    let names: Vec<_> = task
        .identities
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(names, ["default", "vault_default"]);
    assert_eq!(task.default_identity().audience, ["x"]);
    assert_eq!(task.identities[1].ttl.as_secs(), 3600);

    let twice = "      identity {}\n      identity {}";
    let errors = parse("f", &file("", "", twice), &Inputs::default()).unwrap_err();
    assert!(
        errors
            .to_string()
            .contains("there are two default identities"),
        "{errors}"
    );
}

#[test]
fn a_default_identity_without_settings_is_not_stored() {
    let admitted = admit(&file("", "", "      identity {}")).unwrap();
    assert_eq!(admitted.job.task_groups[0].tasks[0].identities, []);
}

#[test]
fn scaling_of_a_task_is_stored_by_its_resource() {
    let block = "      scaling \"cpu\" {\n        max = 500\n        policy {\n          cooldown = \"1m\"\n        }\n      }";
    let admitted = admit(&file("", "", block)).unwrap();
    let policy = &admitted.job.task_groups[0].tasks[0].scaling_policies[0];
    assert_eq!(
        (policy.resource.as_str(), policy.max),
        ("vertical_cpu", 500)
    );
    let wrong = block.replace("\"cpu\"", "\"disk\"");
    let errors = parse("f", &file("", "", &wrong), &Inputs::default()).unwrap_err();
    assert!(
        errors
            .to_string()
            .contains("for \"cpu\" or \"mem\"; got \"disk\""),
        "{errors}"
    );
}

#[test]
fn blocks_without_effect_are_warned_about() {
    for (group, task, warning) in [
        ("    consul {}", "", None),
        (
            "    consul {\n      namespace = \"default\"\n    }",
            "",
            None,
        ),
        ("    consul {\n      namespace = \"apple\"\n    }", "", None),
        (
            "",
            "      resources {\n        disk = 500\n      }",
            Some("Task \"g.t\": disk in a resources block is ignored"),
        ),
    ] {
        let warnings = admit(&file("", group, task)).unwrap().warnings;
        match warning {
            None => assert_eq!(warnings, [""; 0]),
            Some(warning) => assert!(
                warnings.iter().any(|text| text.contains(warning)),
                "{warnings:?}"
            ),
        }
    }
}
