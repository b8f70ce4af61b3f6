//! Rendering of a task's templates into its directories.

use std::fs;

use test_kit::builders::template;

use super::*;

struct Task {
    _base: tempfile::TempDir,
    input: Input,
}

fn task(templates: Vec<Template>) -> Task {
    let base = tempfile::tempdir().unwrap();
    let alloc = base.path().join("alloc-1");
    let root = alloc.join("web");
    let dirs = TaskDirs {
        shared: alloc.join("alloc"),
        logs: alloc.join("alloc/logs"),
        local: root.join("local"),
        secrets: root.join("secrets"),
        tmp: root.join("tmp"),
        root,
    };
    for dir in [&dirs.logs, &dirs.local, &dirs.secrets] {
        fs::create_dir_all(dir).unwrap();
    }
    let env = BTreeMap::from([("NOMAD_PORT_http".to_owned(), "8080".to_owned())]);
    let input = Input {
        templates,
        dirs,
        env,
        namespace: "default".to_owned(),
        region: "global".to_owned(),
    };
    Task { _base: base, input }
}

fn render_all(task: &Task) -> Result<Outcome, String> {
    let rendering = render(&task.input, Timestamp(0), Snapshot::default());
    Ok(rendering.map_err(|failure| failure.message)?.outcome)
}

#[test]
fn templates_become_files_and_variables() {
    let mut env = template(
        "secrets/app.env",
        "PORT={{ env \"NOMAD_PORT_http\" }}\n# comment\nNAME=\"a b\"\n",
    );
    env.env = true;
    let mut custom = template("/alloc/data/x.json", "{{ [[ env \"NOMAD_PORT_http\" ]] }}");
    (custom.left_delimiter, custom.right_delimiter) = ("[[".to_owned(), "]]".to_owned());
    let task = task(vec![
        env,
        custom,
        template("etc/deep/a", "{{ timestamp \"2006\" }}"),
    ]);
    let want = BTreeMap::from([
        ("PORT".to_owned(), "8080".to_owned()),
        ("NAME".to_owned(), "a b".to_owned()),
    ]);
    assert_eq!(render_all(&task).unwrap(), Outcome::Written(want));
    let dirs = &task.input.dirs;
    assert_eq!(
        fs::read_to_string(dirs.shared.join("data/x.json")).unwrap(),
        "{{ 8080 }}"
    );
    assert_eq!(
        fs::read_to_string(dirs.root.join("etc/deep/a")).unwrap(),
        "1970"
    );
    assert!(
        fs::read_to_string(dirs.secrets.join("app.env"))
            .unwrap()
            .starts_with("PORT=8080\n")
    );
}

#[test]
fn a_path_of_the_node_below_the_task_names_the_same_file() {
    let mut task = task(vec![]);
    let local = task.input.dirs.local.display().to_string();
    task.input.templates = vec![template(&format!("{local}/a.conf"), "x")];
    render_all(&task).unwrap();
    assert_eq!(
        fs::read_to_string(task.input.dirs.local.join("a.conf")).unwrap(),
        "x"
    );
    // Elsewhere on the node: the path is taken below the task.
    task.input.templates = vec![template("/etc/a.conf", "y")];
    render_all(&task).unwrap();
    assert_eq!(
        fs::read_to_string(task.input.dirs.root.join("etc/a.conf")).unwrap(),
        "y"
    );
    task.input.templates = vec![template(&format!("{local}/../../../x"), "y")];
    assert!(
        render_all(&task)
            .unwrap_err()
            .contains("is not a file below the task's directory")
    );
}

#[test]
fn source_and_file_read_below_the_task_only() {
    let mut from_source = template("local/out", "");
    from_source.source = "local/in.tpl".to_owned();
    let task = task(vec![
        from_source,
        template("local/copy", "{{ file \"local/word\" }}"),
    ]);
    let local = &task.input.dirs.local;
    assert!(
        render_all(&task)
            .unwrap_err()
            .contains("cannot read \"local/in.tpl\"")
    );
    fs::write(local.join("in.tpl"), "port {{ env \"NOMAD_PORT_http\" }}").unwrap();
    fs::write(local.join("word"), "w").unwrap();
    render_all(&task).unwrap();
    assert_eq!(fs::read_to_string(local.join("out")).unwrap(), "port 8080");
    assert_eq!(fs::read_to_string(local.join("copy")).unwrap(), "w");
    fs::remove_file(local.join("word")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", local.join("word")).unwrap();
    assert!(
        render_all(&task)
            .unwrap_err()
            .contains("cannot read \"local/word\"")
    );
}

#[test]
fn no_file_is_written_while_a_look_up_is_missing() {
    let four = "{{ key \"a\" }}{{ key \"b\" }}{{ with secret \"kv/x\" }}{{ .Data.y }}{{ end }}{{ with nomadVar \"app/db\" }}{{ .x }}{{ end }}";
    let task = task(vec![
        template("local/ready", "x"),
        template("local/waits", four),
    ]);
    let Outcome::Waiting(missing) = render_all(&task).unwrap() else {
        panic!("it does not wait")
    };
    assert_eq!(
        waiting(&missing, &BTreeMap::new(), Systems::default()),
        "Missing: nomad.var.block(app/db@default.global), consul.key(a), consul.key(b), and 1 more. The task has no \
         token of Vault: add a vault block to it. This node has no Consul, so the task waits until it is stopped: \
         set consul.enabled of the node, or pass the values with env or meta"
    );
    assert_eq!(fs::read_dir(&task.input.dirs.local).unwrap().count(), 0);
}

#[test]
fn an_error_names_the_template_and_the_place() {
    let mut lines = template("local/x.env", "A=1\nnothing");
    lines.env = true;
    for (template, want) in [
        (
            template("local/x", "a\n{{ mustEnv \"NO\" }}"),
            "template for \"local/x\": line 2, column 4: mustEnv",
        ),
        (
            lines,
            "template for \"local/x.env\": line 2, column 1: a line of an environment file",
        ),
    ] {
        let message = render_all(&task(vec![template])).unwrap_err();
        assert!(message.starts_with(want), "{message}");
    }
}

fn secret(path: &str) -> Lookup {
    Lookup::Secret {
        path: path.to_owned(),
    }
}

#[test]
fn a_waiting_message_has_the_reasons_of_failed_look_ups() {
    let missing = [secret("kv/a"), secret("kv/b")];
    let problems = BTreeMap::from([(secret("kv/a"), "Vault is sealed".to_owned())]);
    assert_eq!(
        waiting(
            &missing,
            &problems,
            Systems {
                vault: true,
                consul: false
            }
        ),
        "Missing: vault.read(kv/a) (Vault is sealed), vault.read(kv/b)"
    );
    let with_vault = Systems {
        vault: true,
        consul: false,
    };
    assert_eq!(
        first_message_delay(&missing, with_vault),
        FIRST_MESSAGE_DELAY
    );
    assert_eq!(
        first_message_delay(&missing, Systems::default()),
        Duration::ZERO
    );
}

#[test]
fn an_error_of_a_template_with_secrets_quotes_none_of_them() {
    let of = |message: &str| {
        let error = template::Error {
            line: 2,
            column: 3,
            message: message.to_owned(),
        };
        without_secrets(
            &error,
            "{{ (secret `a`).Data.port | parseInt }}{{ .Data.port }}",
        )
    };
    let hidden = of("parseInt: PLANTED is not a number");
    assert!(
        hidden.starts_with("line 2, column 3: parseInt: it cannot"),
        "{hidden}"
    );
    for message in [
        "PLANTED: x",
        "the map has no key \"PLANTED\"",
        "bad \"PLANTED\"",
    ] {
        assert!(!of(message).contains("PLANTED"), "{message}");
    }
    let key = "the map has no key \"port\", and error_on_missing_key is set";
    assert!(of(key).ends_with(key));
}

#[test]
fn a_file_is_written_again_only_with_another_text() {
    let task = task(vec![template("local/a", "x"), template("local/b", "y")]);
    render_all(&task).unwrap();
    let local = &task.input.dirs.local;
    let again =
        |ready: [bool; 2]| rerender(&task.input, Timestamp(0), Snapshot::default(), &ready).written;
    assert!(again([true, true]).is_empty());
    fs::write(local.join("a"), "other").unwrap();
    fs::write(local.join("b"), "yy").unwrap();
    assert_eq!(again([false, true]), [1]);
    assert_eq!(fs::read_to_string(local.join("a")).unwrap(), "other");
    assert_eq!(fs::read_to_string(local.join("b")).unwrap(), "y");
}
