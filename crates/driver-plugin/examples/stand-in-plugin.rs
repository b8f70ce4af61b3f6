//! The stand-in for a plugin as a program, for tests. Its first argument `task-supervisor` makes it the agent's
//! own program for supervisors.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1).peekable();
    if args.next_if(|arg| arg == "task-supervisor").is_some() {
        return task_drivers::supervisor::main(args);
    }
    driver_plugin_test_kit::main(args.filter_map(|arg| arg.into_string().ok()))
}
