//! `kafila job plan`

use jobspec::Parsed;
use proto::v1;

use crate::args::job::{JobFile, Plan};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::files::diagnostic;
use crate::files::job as job_file;
use crate::json;
use crate::output::colour::Colour;
use crate::output::json::pretty;
use crate::output::shell::quoted;
use crate::output::template::GoTemplate;
use crate::render;
use crate::render::deployment_hold::DeploymentHold;

/// Shows what running a job file would change.
pub(crate) async fn run(context: &Context, args: &Plan) -> Result<Exit, Error> {
    if args.json_output && args.template.is_some() {
        return Err(Error::text(
            "Both json and template formatting are not allowed\n\
             Leave out -json-output or -t.",
        ));
    }
    let template = args
        .template
        .as_deref()
        .map(GoTemplate::parse)
        .transpose()?;
    let colour = context.printer.colour_err;
    let parsed = job_file::read(&args.file, colour)?;
    let mut job = parsed.job.clone();
    job.namespace = Some(job_file::namespace(
        &job,
        context.namespace_flag.as_deref(),
        context.connection.namespace(),
    )?);
    let (namespace, job_id) = (job.namespace().to_owned(), job.id().to_owned());
    let job_type = job.r#type().to_owned();
    let planned = context.connection.plan(job).await;
    let answer = planned.map_err(|error| explained(error, &parsed, colour))?;
    let stored = if is_stored(&answer) {
        let found = Box::pin(context.connection.job_with_allocs(&namespace, &job_id)).await;
        // The job may have been purged in the meantime.
        match found {
            Err(error) if error.is_not_found() => None,
            found => Some(found?),
        }
    } else {
        None
    };
    let hold = stored
        .as_ref()
        .and_then(|it| DeploymentHold::find(&it.job, &it.deployments, &it.allocs));
    let style = context.style(args.verbose);
    let mut warnings = [parsed.warnings.as_slice(), &answer.warnings].concat();
    if args.json_output || template.is_some() {
        warnings.extend(hold.as_ref().map(|hold| hold.sentence(&style)));
        let object = json::plan::Plan::new(&answer, &warnings, args.diff);
        let text = match template {
            Some(template) => template.fill(&object)?,
            None => pretty(&object),
        };
        context.printer.out(&text)?;
        return Ok(exit(&answer));
    }
    if !warnings.is_empty() {
        context
            .printer
            .err(&diagnostic::warnings(&warnings, colour));
    }
    let shown = render::plan::Plan {
        answer: &answer,
        job_type: &job_type,
        hold: hold.as_ref(),
        show_diff: args.diff,
        run: &run_command(&args.file, answer.job_modify_index),
    };
    context.printer.out(&shown.render(&style))?;
    Ok(exit(&answer))
}

/// Tells whether the planned job equals the stored one: only then can its deployment block it.
fn is_stored(answer: &v1::PlanJobResponse) -> bool {
    let diff = answer.diff.as_ref();
    answer.job_modify_index > 0 && diff.is_some_and(|diff| diff.r#type() == v1::DiffType::None)
}

/// Returns the exit of a plan: changes if allocations would be created or destroyed. In-place updates
/// and pending placements of an unchanged job do not count. Source: Nomad.
fn exit(answer: &v1::PlanJobResponse) -> Exit {
    let diff = answer.diff.as_ref();
    if diff.is_some_and(|diff| diff.r#type() == v1::DiffType::None) {
        return Exit::Success;
    }
    let annotations = answer.annotations.iter();
    let mut updates = annotations.flat_map(|annotations| annotations.desired_updates.values());
    let changes = updates.any(|group| {
        let counts = [
            group.stop,
            group.place,
            group.migrate,
            group.destructive_update,
            group.canary,
        ];
        counts.iter().any(|count| *count > 0)
    });
    if changes {
        Exit::PlanChanges
    } else {
        Exit::Success
    }
}

/// Returns the command that submits the planned job with version verification.
fn run_command(file: &JobFile, job_modify_index: u64) -> String {
    let mut words = vec![format!("kafila job run -check-index {job_modify_index}")];
    if file.json {
        words.push("-json".to_owned());
    }
    if !file.hcl2_strict {
        words.push("-hcl2-strict=false".to_owned());
    }
    for variable in &file.variables {
        words.push(format!("-var {}", quoted(variable)));
    }
    for path in &file.variable_files {
        words.push(format!("-var-file {}", quoted(&path.to_string_lossy())));
    }
    words.push(quoted(&file.path.to_string_lossy()));
    words.join(" ")
}

/// Adds lines of the job file to a refusal.
fn explained(error: Error, parsed: &Parsed, colour: Colour) -> Error {
    let Some(errors) = error.field_errors() else {
        return error;
    };
    let places = parsed.places.locate(&errors);
    Error::text(format!(
        "Error planning job: {}\n{}",
        diagnostic::counted(&errors),
        diagnostic::errors(&places, colour)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(diff: Option<v1::DiffType>, group: v1::DesiredUpdates) -> v1::PlanJobResponse {
        let quiet = v1::DesiredUpdates {
            ignore: 7,
            ..v1::DesiredUpdates::default()
        };
        v1::PlanJobResponse {
            annotations: Some(v1::PlanAnnotations {
                desired_updates: [("a".to_owned(), quiet), ("b".to_owned(), group)].into(),
                ..v1::PlanAnnotations::default()
            }),
            diff: diff.map(|diff| v1::JobDiff {
                r#type: diff.into(),
                ..v1::JobDiff::default()
            }),
            ..v1::PlanJobResponse::default()
        }
    }

    #[test]
    fn created_and_destroyed_allocations_are_changes() {
        type Count = fn(&mut v1::DesiredUpdates) -> &mut u64;
        let table: [(Count, Exit); 12] = [
            (|group| &mut group.ignore, Exit::Success),
            (|group| &mut group.place, Exit::PlanChanges),
            (|group| &mut group.migrate, Exit::PlanChanges),
            (|group| &mut group.stop, Exit::PlanChanges),
            (|group| &mut group.in_place_update, Exit::Success),
            (|group| &mut group.destructive_update, Exit::PlanChanges),
            (|group| &mut group.canary, Exit::PlanChanges),
            (|group| &mut group.preemptions, Exit::Success),
            (|group| &mut group.disconnect, Exit::Success),
            (|group| &mut group.reconnect, Exit::Success),
            (|group| &mut group.reschedule_now, Exit::Success),
            (|group| &mut group.reschedule_later, Exit::Success),
        ];
        for (number, (count, expected)) in table.into_iter().enumerate() {
            let mut group = v1::DesiredUpdates::default();
            *count(&mut group) = 1;
            for diff in [None, Some(v1::DiffType::Edited), Some(v1::DiffType::Added)] {
                assert_eq!(exit(&answer(diff, group)), expected, "{number} {diff:?}");
            }
            let same = answer(Some(v1::DiffType::None), group);
            assert_eq!(exit(&same), Exit::Success, "{number}");
        }
    }

    #[test]
    fn the_run_command_is_quoted_for_a_shell() {
        let file = JobFile {
            path: "web.hcl".into(),
            hcl2_strict: true,
            ..JobFile::default()
        };
        assert_eq!(
            run_command(&file, 0),
            "kafila job run -check-index 0 web.hcl"
        );
        let file = JobFile {
            path: "my job's.json".into(),
            json: true,
            variables: vec!["image=web:2".to_owned(), "motd=a b".to_owned()],
            variable_files: vec!["prod.vars".into()],
            hcl2_strict: false,
        };
        assert_eq!(
            run_command(&file, 17),
            "kafila job run -check-index 17 -json -hcl2-strict=false -var image=web:2 \
             -var 'motd=a b' -var-file prod.vars 'my job'\\''s.json'"
        );
        assert_eq!(quoted(""), "''");
    }
}
