//! `kafila job history`

use proto::v1;

use super::inspect::to_json;
use crate::args::job::versions::History;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::json;
use crate::output::json::pretty;
use crate::render;
use crate::resolve;

pub(crate) async fn run(context: &Context, args: &History) -> Result<Exit, Error> {
    let connection = &context.connection;
    let stub = resolve::job(connection, &args.id, &context.style_err(false)).await?;
    let message = v1::ListJobVersionsRequest {
        options: Some(connection.options(&stub.namespace)),
        job_id: stub.id.clone(),
        diffs: args.differences,
        diff_version: args.diff_version,
        diff_tag: args.diff_tag.clone().unwrap_or_default(),
    };
    let answer = connection.job_versions(message).await?;
    let versions = chosen(answer, args.version, &stub.id)?;
    let text = if args.json {
        as_json(versions, args.differences)?
    } else {
        as_text(context, versions, args.full)?
    };
    context.printer.out(&text)?;
    Ok(Exit::Success)
}

/// A version and its diff.
type Version = (v1::Job, Option<v1::JobDiff>);

/// Returns the versions to show, newest first.
fn chosen(
    answer: v1::ListJobVersionsResponse,
    version: Option<u64>,
    job_id: &str,
) -> Result<Vec<Version>, Error> {
    // The oldest version has no diff, unless all are compared with one version.
    let diffs = answer.diffs.into_iter().map(Some);
    let diffs = diffs.chain(std::iter::repeat(None));
    let mut versions: Vec<Version> = answer.jobs.into_iter().zip(diffs).collect();
    let Some(version) = version else {
        return Ok(versions);
    };
    let kept: Vec<String> = versions
        .iter()
        .map(|(job, _)| job.version().to_string())
        .collect();
    versions.retain(|(job, _)| job.version() == version);
    if versions.is_empty() {
        return Err(Error::text(format!(
            "Job {job_id:?} has no version {version}. It has {}",
            kept.join(", ")
        )));
    }
    Ok(versions)
}

fn as_json(versions: Vec<Version>, differences: bool) -> Result<String, Error> {
    let (jobs, diffs): (Vec<v1::Job>, Vec<Option<v1::JobDiff>>) = versions.into_iter().unzip();
    let jobs: Result<Vec<v1::Job>, Error> = jobs.into_iter().map(to_json).collect();
    let jobs = jobs?;
    if !differences {
        return Ok(pretty(&jobs));
    }
    let diffs = diffs.iter().flatten().map(Into::into).collect();
    Ok(pretty(&json::job::Versions {
        versions: jobs,
        diffs,
    }))
}

fn as_text(context: &Context, versions: Vec<Version>, full: bool) -> Result<String, Error> {
    let style = context.style(false);
    let mut shown = Vec::new();
    for (job, diff) in versions {
        let mut text = render::version::version(&job, diff.as_ref(), &style);
        if full {
            let job = pretty(&to_json(job)?);
            text.push_str(&style.section("Full", &format!("{job}\n")));
        }
        shown.push(text);
    }
    Ok(shown.join("\n"))
}
