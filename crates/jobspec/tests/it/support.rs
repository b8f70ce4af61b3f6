//! Helpers of the tests: a valid job file to change, parsed and made canonical.

use jobspec::{CanonicalJob, Inputs, Parsed, canonicalise, parse};
use model::Timestamp;

/// Any point in time will do: nothing depends on it.
pub(crate) const NOW: Timestamp = Timestamp(1_790_000_000_000_000_000);

/// Reads a file and checks the job; warnings of both steps together, or all errors rendered.
pub(crate) fn admit(text: &str) -> Result<CanonicalJob, String> {
    admit_with(text, &Inputs::default())
}

pub(crate) fn admit_with(text: &str, inputs: &Inputs) -> Result<CanonicalJob, String> {
    let parsed = parse("test.hcl", text, inputs).map_err(|errors| errors.to_string())?;
    let mut warnings = parsed.warnings;
    let admitted = canonicalise(&parsed.job, NOW)
        .map_err(|errors| parsed.places.locate(&errors).to_string())?;
    warnings.extend(admitted.warnings);
    Ok(CanonicalJob {
        warnings,
        ..admitted
    })
}

pub(crate) fn spec(text: &str) -> job_fields::Job {
    parsed(text, &Inputs::default()).job
}

pub(crate) fn parsed(text: &str, inputs: &Inputs) -> Parsed {
    parse("test.hcl", text, inputs).unwrap_or_else(|errors| panic!("{errors}\nin\n{text}"))
}

/// A valid job file with further lines in its job, group and task.
pub(crate) fn file(job: &str, group: &str, task: &str) -> String {
    format!(
        "job \"a\" {{\n{job}\n  group \"g\" {{\n{group}\n    task \"t\" {{\n      driver = \
         \"raw_exec\"\n      config {{\n        command = \"/bin/true\"\n      }}\n{task}\n    \
         }}\n  }}\n}}\n"
    )
}

/// The value of an expression, which stands in a config, where any value may stand.
pub(crate) fn value_of(expression: &str) -> Result<serde_json::Value, String> {
    value_with(expression, "", &Inputs::default())
}

/// The value of an expression, with further blocks before the job.
pub(crate) fn value_with(
    expression: &str,
    before: &str,
    inputs: &Inputs,
) -> Result<serde_json::Value, String> {
    match config_value(expression, before, inputs) {
        Ok(value) if !value.is_array() => return Ok(value),
        Err(error) if !error.contains("write it in quotes") => return Err(error),
        // In a config a map becomes a list of one map, and large integers are refused.
        Ok(_) | Err(_) => {}
    }
    let encoded = config_value(&format!("jsonencode({expression})"), before, inputs)?;
    Ok(serde_json::from_str(encoded.as_str().unwrap()).unwrap())
}

fn config_value(
    expression: &str,
    before: &str,
    inputs: &Inputs,
) -> Result<serde_json::Value, String> {
    let text = format!(
        "{before}\njob \"a\" {{\n  group \"g\" {{\n    task \"t\" {{\n      config {{\n        \
         x = {expression}\n      }}\n    }}\n  }}\n}}\n"
    );
    let parsed = parse("test.hcl", &text, inputs).map_err(|errors| errors.one_line_each())?;
    let task = &parsed.job.task_groups[0].tasks[0];
    let config = job_fields::read_object(task.config.as_ref().unwrap()).unwrap();
    Ok(config["x"].clone())
}
