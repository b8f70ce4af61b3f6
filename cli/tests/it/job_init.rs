//! `kafila job init`

use crate::command::{UNREACHABLE, kafila};

#[tokio::test]
async fn an_example_is_written_once_and_is_valid() {
    let folder = tempfile::tempdir().unwrap();
    let run = async |line: &str| {
        kafila(line)
            .current_dir(folder.path())
            .at(UNREACHABLE)
            .await
    };
    for (flags, file) in [("", "example.nomad.hcl"), ("-short short.hcl", "short.hcl")] {
        let said = run(&format!("job init {flags}")).await;
        let expected = format!("Example job file written to {file}\n");
        assert_eq!(said.ended(0).stdout, expected);
        let said = run(&format!("job validate {file}")).await;
        said.ended(0).printed(&["Job validation successful"]);
        let path = folder.path().join(file);
        std::fs::write(&path, "mine").unwrap();
        for line in ["job init", "init"] {
            let said = run(&format!("{line} {flags}")).await;
            let first = format!("Job '{file}' already exists");
            said.ended(1).complained(&[&first]);
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), "mine");
    }
    let said = run("job init none/a.hcl").await;
    said.ended(1)
        .complained(&["Failed to write 'none/a.hcl'", "No such file"]);
    let said = run("job init -connect").await;
    said.ended(1).complained(&["there is no service mesh"]);
}

#[tokio::test]
async fn the_long_example_explains_itself_and_the_short_one_is_short() {
    let folder = tempfile::tempdir().unwrap();
    let run = async |line: &str| {
        kafila(line)
            .current_dir(folder.path())
            .at(UNREACHABLE)
            .await
    };
    run("job init long.hcl").await.ended(0);
    run("job init -short short.hcl").await.ended(0);
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(read("long.hcl").matches('#').count() > 10);
    assert!(!read("short.hcl").contains('#'));
    assert!(read("short.hcl").len() < read("long.hcl").len() / 2);
}
