//! Actions of tasks.

use super::check;
use crate::support::{admit, file};

#[test]
#[rustfmt::skip]
fn the_fields_of_an_action_are_checked() {
    check(&[
        ("", "", "action \"a\" {\n}", "$t.action[\"a\"].command", "has no command"),
        ("", "", "action \"a b\" {\ncommand = \"x\"\n}", "$t.action[\"a b\"].name", "letters, digits and dashes"),
        ("", "", "action \"a\" {\ncommand = \"x\"\n}\naction \"a\" {\ncommand = \"y\"\n}", "$t.action[\"a\"]", "is defined twice"),
    ]);
}

#[test]
fn an_action_has_its_command_and_arguments() {
    let task = "action \"flush-2\" {\n  command = \"/bin/sh\"\n  args = [\"-c\", \"echo hi\"]\n}";
    let admitted = admit(&file("", "", task)).unwrap();
    let actions = &admitted.job.task_groups[0].tasks[0].actions;
    assert_eq!(actions.len(), 1);
    assert_eq!(
        (actions[0].name.as_str(), actions[0].command.as_str()),
        ("flush-2", "/bin/sh")
    );
    assert_eq!(actions[0].args, ["-c", "echo hi"]);
}
