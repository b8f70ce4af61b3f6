//! The options of each driver in a task's `config`, as a table.
//!
//! The agent's drivers read the same options; a job that passes here can be started by them.

mod docker;
mod java;
mod option;
mod podman;
mod qemu;

use duration::parse_nanoseconds;
use model::capability;
use prost_types::Struct;
use serde_json::{Map, Value};

use self::option::{Driver, DriverOption, Kind, MODES, REMOVE, option, required};
use super::environment;
use super::validation::{Path, Validation};

const I32: Kind = Kind::Whole(i32::MIN as i64, i32::MAX as i64);
const U32: Kind = Kind::Whole(0, u32::MAX as i64);

const DRIVERS: [Driver; 7] = [
    Driver {
        name: "raw_exec",
        options: &[
            required("command", "/bin/sh"),
            option("args", Kind::TextList),
            option("work_dir", Kind::AbsolutePath),
            // The range that Linux accepts.
            option("oom_score_adj", Kind::Whole(-1_000, 1_000)),
            option("denied_envvars", Kind::TextList),
        ],
        refused: &[
            ("cgroup_v1_override", REMOVE),
            ("cgroup_v2_override", REMOVE),
        ],
    },
    Driver {
        name: "exec",
        options: &[
            required("command", "/bin/sh"),
            option("args", Kind::TextList),
            option("pid_mode", MODES),
            option("ipc_mode", MODES),
            option("cap_add", Kind::Capabilities),
            option("cap_drop", Kind::Capabilities),
            option("work_dir", Kind::AbsolutePath),
            option("oom_score_adj", Kind::Whole(-1_000, 1_000)),
        ],
        refused: &[],
    },
    docker::DOCKER,
    podman::PODMAN,
    java::JAVA,
    qemu::QEMU,
    Driver {
        name: "mock_driver",
        options: &[
            option("run_for", Kind::Duration),
            option("exit_code", I32),
            option("exit_signal", I32),
            option("exit_err_msg", Kind::Text),
            option("fail_attempts", U32),
            option("ignore_kill", Kind::Flag),
            option("start_error", Kind::Text),
            option("start_error_recoverable", Kind::Flag),
            option("start_block_for", Kind::Duration),
            option("kill_after", Kind::Duration),
            option("signal_error", Kind::Text),
            option("stdout_string", Kind::Text),
            option("stdout_repeat", U32),
            option("stdout_repeat_duration", Kind::Duration),
            option("stderr_string", Kind::Text),
            option("stderr_repeat", U32),
            option("stderr_repeat_duration", Kind::Duration),
        ],
        refused: &[
            ("driver_advertise", REMOVE),
            ("driver_ip", REMOVE),
            ("driver_port_map", REMOVE),
            ("exec_command", REMOVE),
            ("plugin_exit_after", REMOVE),
        ],
    },
];

pub(super) fn is_known(driver: &str) -> bool {
    DRIVERS.iter().any(|known| known.name == driver)
}

/// Returns whether nodes can run commands in tasks of a driver. A driver that is not known may.
pub(super) fn runs_commands(driver: &str) -> bool {
    !matches!(driver, "mock_driver" | "qemu")
}

/// Returns the known drivers for a message, as in `"raw_exec", "exec" or "mock_driver"`.
pub(super) fn names() -> String {
    let quoted: Vec<String> = DRIVERS
        .iter()
        .map(|driver| format!("{:?}", driver.name))
        .collect();
    suggest::list(quoted.iter().map(String::as_str), "or")
}

/// Returns the config with its values in the driver's types; of an unknown driver, as it is.
pub(super) fn config(
    check: &mut Validation,
    path: &Path,
    driver: &str,
    config: Option<&Struct>,
) -> Map<String, Value> {
    let config = check.object(path.field("config"), config);
    let Some(driver) = DRIVERS.iter().find(|known| known.name == driver) else {
        return config;
    };
    let path = path.block("config");
    let mut canonical = Map::new();
    for (name, value) in &config {
        let Some(option) = driver.options.iter().find(|option| option.name == name) else {
            check.error(path.field(name), unexpected(driver, name));
            continue;
        };
        match convert(option.kind, value) {
            Ok(Value::Null) => {}
            Ok(value) => drop(canonical.insert(name.clone(), value)),
            Err(message) => check.error(path.field(name), message),
        }
    }
    for (name, example) in missing(driver.options, &config) {
        let message = format!(
            "missing {name}: the driver {} needs it, as in {name} = {example:?}",
            driver.name,
        );
        check.error(path.field(name), message);
    }
    canonical
}

/// Returns the required options without a value, with an example of one.
fn missing<'a>(
    options: &'a [DriverOption],
    values: &'a Map<String, Value>,
) -> impl Iterator<Item = (&'static str, &'static str)> + 'a {
    options.iter().filter_map(|option| {
        let example = option.required?;
        let value = values.get(option.name);
        let is_present = value.is_some_and(|value| !is_blank(value));
        (!is_present).then_some((option.name, example))
    })
}

fn is_blank(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(str::is_empty)
}

fn unexpected(driver: &Driver, name: &str) -> String {
    let known = || driver.options.iter().map(|option| option.name);
    let expected = suggest::list(known(), "and");
    if let Some((_, advice)) = driver.refused.iter().find(|(refused, _)| *refused == name) {
        return format!(
            "option {name:?} of the driver {} is not supported by this version of Kafila: {advice}; \
             supported are {expected}",
            driver.name,
        );
    }
    // The suggestion first: docker has some fifty options.
    format!(
        "unknown option {name:?} of the driver {}.{} Expected are {expected}",
        driver.name,
        suggest::hint(name, known()),
    )
}

/// Returns `value` in the option's type, or the problem.
fn convert(kind: Kind, value: &Value) -> Result<Value, String> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    match kind {
        Kind::Text => {
            let text = text(value).ok_or_else(|| mismatch("a string", value))?;
            fit(&text)?;
            Ok(Value::String(text))
        }
        Kind::TextList => {
            let items = value
                .as_array()
                .ok_or_else(|| mismatch("a list of strings", value))?;
            let mut texts = Vec::new();
            for (position, item) in items.iter().enumerate() {
                let text = text(item).ok_or_else(|| mismatch("a list of strings", value))?;
                fit(&text).map_err(|why| format!("item {position} {why}"))?;
                texts.push(Value::String(text));
            }
            Ok(Value::Array(texts))
        }
        Kind::TextOrList if value.is_array() => convert(Kind::TextList, value),
        Kind::TextOrList => convert(Kind::Text, value),
        Kind::OneOf(known) => match value.as_str() {
            Some(text) if known.contains(&text) || is_runtime(text) => Ok(value.clone()),
            _ => {
                let quoted: Vec<String> = known.iter().map(|text| format!("{text:?}")).collect();
                let wanted = suggest::list(quoted.iter().map(String::as_str), "or");
                Err(match value.as_str() {
                    Some(text) => format!("must be {wanted}; got {text:?}: write one of them"),
                    None => mismatch(&wanted, value),
                })
            }
        },
        Kind::Capabilities => {
            let names = convert(Kind::TextList, value)?;
            for name in names
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
            {
                if !name.eq_ignore_ascii_case("all")
                    && !is_runtime(name)
                    && capability::number(name).is_none()
                {
                    let known = capability::NAMES.into_iter();
                    let hint = suggest::hint(&name.to_ascii_lowercase(), known);
                    return Err(format!(
                        "has {name:?}, which is not a capability of Linux: remove it.{hint}"
                    ));
                }
            }
            Ok(names)
        }
        Kind::Whole(least, most) => whole(value, least, most),
        Kind::Flag => match value {
            Value::Bool(_) => Ok(value.clone()),
            Value::String(text) if text == "true" => Ok(Value::Bool(true)),
            Value::String(text) if text == "false" => Ok(Value::Bool(false)),
            _ => Err(mismatch("true or false", value)),
        },
        Kind::Duration => duration(value),
        Kind::AbsolutePath => match value.as_str() {
            Some(path) if path.starts_with('/') || is_runtime(path) => {
                fit(path)?;
                Ok(value.clone())
            }
            Some(path) => Err(format!(
                "must be an absolute path; got {path:?}: begin it with /"
            )),
            None => Err(mismatch("an absolute path", value)),
        },
        Kind::TextMap => each_object(value, |fields| {
            for (name, value) in fields {
                convert(Kind::Text, value).map_err(|why| format!("{name} {why}"))?;
            }
            // Numbers stay numbers for readers of the job, as in Nomad; the driver reads them as texts.
            Ok(fields.clone())
        }),
        Kind::Block(options) => {
            if value.as_array().is_some_and(|blocks| blocks.len() > 1) {
                return Err("can be written only once: remove the others".to_owned());
            }
            each_object(value, |fields| block(options, fields))
        }
        Kind::Blocks(options) => each_object(value, |fields| block(options, fields)),
    }
}

/// Converts a block, or a list of blocks, and keeps which of them it is.
fn each_object(
    value: &Value,
    convert: impl Fn(&Map<String, Value>) -> Result<Map<String, Value>, String>,
) -> Result<Value, String> {
    let one = |value: &Value| match value {
        Value::Object(fields) => convert(fields).map(Value::Object),
        _ => Err(mismatch("a block: { name = value }", value)),
    };
    match value {
        Value::Array(blocks) => blocks.iter().map(one).collect(),
        block => one(block),
    }
}

/// Converts the options of a block inside the config.
fn block(
    options: &[DriverOption],
    fields: &Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    let mut canonical = Map::new();
    for (name, value) in fields {
        let Some(option) = options.iter().find(|option| option.name == name) else {
            let known = || options.iter().map(|option| option.name);
            return Err(format!(
                "has an unknown option {name:?}: expected are {}.{}",
                suggest::list(known(), "and"),
                suggest::hint(name, known()),
            ));
        };
        match convert(option.kind, value).map_err(|why| format!("{name} {why}"))? {
            Value::Null => {}
            value => drop(canonical.insert(name.clone(), value)),
        }
    }
    match missing(options, fields).next() {
        Some((name, example)) => Err(format!(
            "has no {name}: it needs one, as in {name} = {example:?}"
        )),
        None => Ok(canonical),
    }
}

/// Refuses texts that cannot be passed to a process.
fn fit(text: &str) -> Result<(), String> {
    environment::unfit(text).map_or(Ok(()), Err)
}

fn whole(value: &Value, least: i64, most: i64) -> Result<Value, String> {
    let number = match value {
        Value::String(text) => text.parse().ok(),
        other => other.as_i64(),
    };
    let number: i64 = number.ok_or_else(|| mismatch("a whole number", value))?;
    if (least..=most).contains(&number) {
        return Ok(Value::from(number));
    }
    Err(format!("must be between {least} and {most}; got {number}"))
}

fn duration(value: &Value) -> Result<Value, String> {
    match value {
        // Known only on the node, where the driver reads it.
        Value::String(text) if is_runtime(text) => Ok(value.clone()),
        Value::String(text) => match parse_nanoseconds(text) {
            Ok(0..) => Ok(value.clone()),
            Ok(_) => Err("must not be negative: write a duration such as \"10s\"".to_owned()),
            Err(invalid) => Err(invalid.to_string()),
        },
        Value::Number(number) => match number.as_u64() {
            Some(length) => Ok(nanoseconds(length)),
            None => Err(mismatch("a duration such as \"10s\"", value)),
        },
        _ => Err(mismatch("a duration such as \"10s\"", value)),
    }
}

/// Returns the number of a duration as it is stored: an integer as long as a double holds it, which is what numbers
/// are on their way to a node; of more than 104 days a text, such as `36000000000000000ns`.
fn nanoseconds(length: u64) -> Value {
    const EXACT: u64 = 1 << 53;
    if length <= EXACT {
        Value::from(length)
    } else {
        Value::from(format!("{length}ns"))
    }
}

/// Tells whether the text is filled in on the node.
fn is_runtime(text: &str) -> bool {
    text.contains("${")
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

fn mismatch(wanted: &str, value: &Value) -> String {
    let got = match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a bool",
        Value::Number(_) => "a number",
        Value::String(text) if is_runtime(text) => "what is known only when the task runs",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    };
    format!("must be {wanted}; got {got}")
}

#[cfg(test)]
mod tests {
    use super::{DRIVERS, unexpected};

    #[test]
    fn the_suggestion_stands_before_the_list_of_options() {
        let docker = DRIVERS
            .iter()
            .find(|driver| driver.name == "docker")
            .unwrap();
        let said = unexpected(docker, "prots");
        let start =
            "unknown option \"prots\" of the driver docker. Did you mean \"ports\"? Expected are ";
        assert!(said.starts_with(start), "{said}");
    }

    #[test]
    fn the_pages_on_job_files_and_drivers_name_every_option() {
        let page = concat!(
            include_str!("../../../../docs/job-files.md"),
            include_str!("../../../../docs/drivers/docker.md"),
            include_str!("../../../../docs/drivers/exec.md"),
            include_str!("../../../../docs/drivers/java.md"),
            include_str!("../../../../docs/drivers/podman.md"),
            include_str!("../../../../docs/drivers/qemu.md"),
        );
        for driver in &DRIVERS {
            assert!(page.contains(&format!("`{}`", driver.name)));
            for option in driver.options {
                assert!(
                    page.contains(&format!("`{}`", option.name)),
                    "{}",
                    option.name
                );
            }
        }
    }
}
