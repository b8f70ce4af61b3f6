//! The agent as a program of its own. The `kafila` binary has it as a subcommand as well.

use std::process::ExitCode;

use client_node::{ARTIFACT_SUBCOMMAND, App, Config, SERVICE, SUPERVISOR_SUBCOMMAND};
use service_kit::run_service;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1).peekable();
    if args.next_if(|arg| arg == SUPERVISOR_SUBCOMMAND).is_some() {
        return task_drivers::supervisor::main(args);
    }
    if args.peek().is_some_and(|arg| arg == ARTIFACT_SUBCOMMAND) {
        return artifact_fetch::helper::main();
    }
    let file = args.next().map(std::path::PathBuf::from);
    let config = match service_kit::load::<Config>(SERVICE, file.as_deref(), &[]) {
        Ok(config) => config,
        Err(error) => {
            eprintln!(
                "usage: client-node [FILE]; {}",
                service_kit::run::chain(&error)
            );
            return ExitCode::from(2);
        }
    };
    let telemetry = config.telemetry.clone();
    run_service(SERVICE, &telemetry, |drain| async move {
        let app = tokio::select! {
            app = App::build_service(config) => app?,
            () = drain.cancelled() => return Ok(()),
        };
        Box::pin(app.run(drain)).await
    })
}
