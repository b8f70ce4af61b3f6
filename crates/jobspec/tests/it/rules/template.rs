//! Templates of tasks.

use std::time::Duration;

use model::template::{ChangeMode, ChangeScript, TemplateWait};

use super::check;
use crate::support::{admit, file};

const GOOD: &str = "data = \"x\"\ndestination = \"local/x\"";

/// A task with one template; `GOOD` and further lines.
fn with(lines: &str) -> &'static str {
    Box::leak(format!("template {{\n{GOOD}\n{lines}\n}}").into())
}

fn of(lines: &str) -> &'static str {
    Box::leak(format!("template {{\n{lines}\n}}").into())
}

#[test]
#[rustfmt::skip]
fn the_fields_of_a_template_are_checked() {
    check(&[
        ("", "", of("destination = \"x\""), "$t.template[0]", "Must specify a source path or have an embedded template"),
        ("", "", of("data = \"x\""), "$t.template[0].destination", "Must specify a destination for the template"),
        ("", "", with("source = \"local/y\""), "$t.template[0].source", "Only source or data may be used"),
        ("", "", of("data = \"x\"\ndestination = \"../x\""), "$t.template[0].destination", "escapes allocation directory"),
        ("", "", of("data = \"x\"\ndestination = \"local/../..\""), "$t.template[0].destination", "escapes allocation directory"),
        ("", "", of("data = \"x\"\ndestination = \"local/\""), "$t.template[0].destination", "not a file below the task's directory"),
        ("", "", of("source = \"../../x\"\ndestination = \"x\""), "$t.template[0].source", "escapes allocation directory"),
        ("", "", with("perms = \"0888\""), "$t.template[0].perms", "Failed to parse \"0888\" as octal"),
        ("", "", with("perms = \"10000\""), "$t.template[0].perms", "Failed to parse \"10000\" as octal"),
        ("", "", with("uid = -2"), "$t.template[0].uid", "got -2"),
        ("", "", with("gid = 4294967295"), "$t.template[0].gid", "got 4294967295"),
        ("", "", with("splay = \"-1s\""), "$t.template[0].splay", "Must specify positive splay value"),
        ("", "", with("right_delimiter = \"{{\""), "$t.template[0].right_delimiter", "both delimiters are the same"),
        ("", "", Box::leak(format!("{}\n{}", with(""), with("")).into()), "$t.template[1].destination", "two templates write \"local/x\""),
    ]);
}

#[test]
#[rustfmt::skip]
fn the_actions_of_a_change_of_a_template_are_checked() {
    check(&[
        ("", "", with("change_mode = \"reload\""), "$t.template[0].change_mode", "Invalid change mode given: \"reload\""),
        ("", "", with("change_mode = \"signal\"\nchange_signal = \"HUP\""), "$t.template[0].change_signal", "did you mean \"SIGHUP\"?"),
        ("", "", with("change_mode = \"signal\"\nenv = true"), "$t.template[0].change_mode", "cannot use signals with env var templates"),
        ("", "", with("change_mode = \"script\""), "$t.template[0].change_mode", "add a change_script block"),
        ("", "", with("change_mode = \"script\"\nchange_script {}"), "$t.template[0].change_script.command", "must specify script path value"),
        ("", "", with("wait {\nmax = \"1s\"\n}"), "$t.template[0].wait.min", "missing: wait needs min and max"),
        ("", "", with("wait {\nmin = \"5s\"\nmax = \"1s\"\n}"), "$t.template[0].wait.min", "wait min 5s is greater than max 1s"),
    ]);
}

#[test]
#[rustfmt::skip]
fn the_text_of_a_template_is_checked_with_its_place() {
    let text = |text: &str| of(&format!("destination = \"local/x\"\ndata = <<EOF\n{text}\nEOF"));
    check(&[
        ("", "", text("a\n  {{ if true }}"), "$t.template[0].data", "the template is wrong in its line 2, column 6: the if is not closed"),
        ("", "", text("{{ nope }}"), "$t.template[0].data", "line 1, column 4: there is no function nope"),
        ("", "", text("{{ plugin `x` }}"), "$t.template[0].data", "the function plugin is not available in templates: it starts a program on the node"),
        ("", "", text("{{ sprig_now }}"), "$t.template[0].data", "the function sprig_now is not available in templates: use timestamp"),
    ]);
    let other = text("{{ if }} [[ env \"A\" ]]").replace("destination", "left_delimiter = \"[[\"\nright_delimiter = \"]]\"\ndestination");
    admit(&file("", "", &other)).unwrap();
}

#[test]
fn a_template_has_the_recorded_defaults() {
    let admitted = admit(&file("", "", with(""))).unwrap();
    assert_eq!(admitted.warnings, [""; 0]);
    let template = admitted.job.task_groups[0].tasks[0].templates[0].clone();
    let json = serde_json::to_value(
        &job_fields::Job::from(&admitted.job).task_groups[0].tasks[0].templates,
    )
    .unwrap();
    let recorded = serde_json::json!([{
        "ChangeMode": "restart", "ChangeScript": null, "ChangeSignal": "", "DestPath": "local/x", "EmbeddedTmpl": "x",
        "Envvars": false, "ErrMissingKey": false, "Gid": null, "LeftDelim": "{{", "Once": false, "Perms": "0644",
        "RightDelim": "}}", "SourcePath": "", "Splay": 5_000_000_000_u64, "Uid": null, "VaultGrace": 0, "Wait": null
    }]);
    assert_eq!(json, recorded);
    assert_eq!(
        (template.change_mode, template.splay),
        (ChangeMode::Restart, Duration::from_secs(5))
    );
}

#[test]
fn every_attribute_of_a_template_is_stored() {
    let all = r#"
      template {
        source          = "${NOMAD_ALLOC_DIR}/x.tpl"
        destination     = "${NOMAD_SECRETS_DIR}/x"
        change_mode     = "script"
        change_signal   = "sigusr1"
        change_script {
          command       = "/bin/reload"
          args          = ["-q"]
          timeout       = "10s"
          fail_on_error = true
        }
        splay           = "1m"
        perms           = "600"
        uid             = 1000
        gid             = 0
        left_delimiter  = "<<"
        right_delimiter = ">>"
        env             = true
        once            = true
        vault_grace     = "15s"
        error_on_missing_key = true
        wait {
          min = "1s"
          max = "10s"
        }
      }"#;
    let job = admit(&file("", "", all)).unwrap().job;
    let template = &job.task_groups[0].tasks[0].templates[0];
    let script = ChangeScript {
        command: "/bin/reload".to_owned(),
        args: vec!["-q".to_owned()],
        timeout: Duration::from_secs(10),
        fail_on_error: true,
    };
    assert_eq!(
        (template.change_mode, template.change_script.as_ref()),
        (ChangeMode::Script, Some(&script))
    );
    assert_eq!(template.change_signal, "SIGUSR1");
    assert_eq!(
        (template.perms.as_str(), template.uid, template.gid),
        ("600", Some(1000), Some(0))
    );
    let wait = TemplateWait {
        min: Duration::from_secs(1),
        max: Duration::from_secs(10),
    };
    assert_eq!(
        (template.wait, template.splay),
        (Some(wait), Duration::from_secs(60))
    );
    assert!(template.env && template.once && template.error_on_missing_key);
    // Only nodes that can send the signal are feasible.
    let constraints = &job.task_groups[0].constraints;
    assert!(
        constraints
            .iter()
            .any(|constraint| constraint.right == "SIGUSR1"),
        "{constraints:?}"
    );
    // The stored job is read again as the same job.
    let again = jobspec::canonicalise(&job_fields::Job::from(&job), crate::support::NOW)
        .unwrap()
        .job;
    assert_eq!(again, job);
}

#[test]
fn a_template_that_waits_for_data_no_node_has_is_warned_about() {
    let block = of(
        "destination = \"local/x\"\ndata = \"{{ with secret `a` }}{{ .Data.b }}{{ end }}{{ key `c` }}\"",
    );
    let warnings = admit(&file("", "", block)).unwrap().warnings;
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    for part in [
        "its template for \"local/x\" calls key, and waits on a node without Consul",
        "does not start: its template for \"local/x\" calls secret, and the task has no token",
    ] {
        let has_part =
            |warning: &String| warning.starts_with("Task \"t\"") && warning.contains(part);
        assert!(warnings.iter().any(has_part), "{warnings:?}");
    }
    let refused = of("destination = \"local/x\"\ndata = \"{{ range caRoots }}{{ end }}\"");
    let warnings = admit(&file("", "", refused)).unwrap().warnings;
    assert!(
        warnings[0].contains("calls caRoots, which this version of Kafila does not look up"),
        "{warnings:?}"
    );
    let with_vault = format!(
        "vault {{}}\n{}",
        of("destination = \"local/x\"\ndata = \"{{ secret `a` }}\"")
    );
    assert_eq!(admit(&file("", "", &with_vault)).unwrap().warnings, [""; 0]);
}

#[test]
fn a_template_that_reads_a_variable_of_others_is_warned_about() {
    let reading = |path: &str| {
        let block = of(&format!(
            "destination = \"local/x\"\ndata = \"{{{{ with nomadVar `{path}` }}}}{{{{ .a }}}}{{{{ end }}}}\""
        ));
        admit(&file("", "", block)).unwrap().warnings
    };
    let job = admit(&file("", "", of(GOOD))).unwrap().job;
    let own = model::variable::variable_paths(&job, &job.task_groups[0].name, "t");
    for path in &own {
        assert_eq!(reading(path), [""; 0], "{path}");
        assert_eq!(reading(&format!("{path}@default")), [""; 0], "{path}");
    }
    for path in ["app/db", "nomad/jobs/other", "nomad/jobs@prod"] {
        let warnings = reading(path);
        assert_eq!(warnings.len(), 1, "{path}: {warnings:?}");
        let (path, _) = path.split_once('@').unwrap_or((path, ""));
        let expected = format!(
            "Task \"t\" waits where its template for \"local/x\" reads the variable {path:?}"
        );
        assert!(warnings[0].starts_with(&expected), "{warnings:?}");
        assert!(warnings[0].contains(&own[3]), "{warnings:?}");
    }
    // A path that the template computes is not known before it runs.
    let computed = of(
        "destination = \"local/x\"\ndata = \"{{ with nomadVar (env `PATH_OF_VARIABLE`) }}{{ .a }}{{ end }}\"",
    );
    assert_eq!(admit(&file("", "", computed)).unwrap().warnings, [""; 0]);
}
