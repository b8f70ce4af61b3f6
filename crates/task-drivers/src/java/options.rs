//! Options of a `java` task, and the command line of its virtual machine.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::driver::StartError;
use crate::exec;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Options {
    /// Archive with the program, as the task sees it.
    jar_path: String,
    /// Name of the class with the program.
    class: String,
    /// As the machine's option `-cp`.
    class_path: String,
    /// Options of the machine.
    jvm_options: Vec<String>,
    /// Arguments of the program.
    args: Vec<String>,
    pid_mode: String,
    ipc_mode: String,
    cap_add: Vec<String>,
    cap_drop: Vec<String>,
    work_dir: Option<PathBuf>,
    oom_score_adj: i32,
}

impl Options {
    /// Returns the options of the isolated process that runs `java`, a path in the task.
    ///
    /// # Errors
    /// The options name no program.
    pub(super) fn process(self, java: &Path) -> Result<exec::Options, StartError> {
        Ok(exec::Options {
            command: java.display().to_string(),
            args: self.command_line()?,
            pid_mode: self.pid_mode,
            ipc_mode: self.ipc_mode,
            cap_add: self.cap_add,
            cap_drop: self.cap_drop,
            work_dir: self.work_dir,
            oom_score_adj: self.oom_score_adj,
        })
    }

    /// Returns the machine's options, then the program, then the program's arguments.
    ///
    /// Source: Nomad's public behaviour. With `jar_path` and `class`, the archive is the program and the class its
    /// first argument.
    fn command_line(&self) -> Result<Vec<String>, StartError> {
        if self.jar_path.is_empty() && self.class.is_empty() {
            let text =
                "the task has neither jar_path nor class: name the archive or the class to run";
            return Err(StartError::Config(text.to_owned()));
        }
        let mut line = self.jvm_options.clone();
        let valued = [("-cp", &self.class_path), ("-jar", &self.jar_path)];
        for (option, value) in valued.into_iter().filter(|(_, value)| !value.is_empty()) {
            line.extend([option.to_owned(), value.clone()]);
        }
        line.extend(Some(self.class.clone()).filter(|class| !class.is_empty()));
        line.extend(self.args.iter().cloned());
        Ok(line)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn process(config: Value) -> Result<exec::Options, StartError> {
        let options: Options = serde_json::from_value(config).unwrap();
        options.process(Path::new("/usr/bin/java"))
    }

    #[test]
    fn command_lines_have_the_machines_options_then_the_program_then_its_arguments() {
        let table: [(Value, &[&str]); 5] = [
            (json!({"jar_path": "local/a.jar"}), &["-jar", "local/a.jar"]),
            (
                json!({"jar_path": "a.jar", "jvm_options": ["-Xmx64m", "-Da=b c"], "args": ["-v", "x y"]}),
                &["-Xmx64m", "-Da=b c", "-jar", "a.jar", "-v", "x y"],
            ),
            (json!({"class": "org.x.Main"}), &["org.x.Main"]),
            (
                json!({"class": "Main", "class_path": "/local/lib/*:/alloc", "args": ["1"]}),
                &["-cp", "/local/lib/*:/alloc", "Main", "1"],
            ),
            (
                json!({"class": "Main", "class_path": "lib", "jar_path": "a.jar"}),
                &["-cp", "lib", "-jar", "a.jar", "Main"],
            ),
        ];
        for (config, want) in table {
            let process = process(config.clone()).unwrap();
            assert_eq!(process.args, want, "{config}");
            assert_eq!(process.command, "/usr/bin/java");
        }
    }

    #[test]
    fn rights_and_directory_are_those_of_an_isolated_process() {
        let config = json!({
            "class": "Main", "pid_mode": "host", "ipc_mode": "private", "cap_add": ["net_raw"],
            "cap_drop": ["chown"], "work_dir": "/local", "oom_score_adj": 5,
        });
        let want = exec::Options {
            command: "/usr/bin/java".to_owned(),
            args: vec!["Main".to_owned()],
            pid_mode: "host".to_owned(),
            ipc_mode: "private".to_owned(),
            cap_add: vec!["net_raw".to_owned()],
            cap_drop: vec!["chown".to_owned()],
            work_dir: Some("/local".into()),
            oom_score_adj: 5,
        };
        assert_eq!(process(config).unwrap(), want);
    }

    #[test]
    fn a_task_without_a_program_is_refused() {
        let error = process(json!({"class_path": "/local", "args": ["x"]})).unwrap_err();
        assert!(
            error.to_string().contains("neither jar_path nor class"),
            "{error}"
        );
    }
}
