//! Sprig's defaults, conditions, types, JSON, hashes, encodings, paths and versions.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest;
use semver::{Version, VersionReq};

use super::super::convert::{decoded, sha};
use crate::format::json::{self, Style};
use crate::function::{Failure, Function, between, exact, many};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    between("sprig_default", 1, 2, |call| {
        let given = call.count() == 2 && call.value(1).is_true();
        Ok(call.value(usize::from(given)).clone())
    }),
    exact("sprig_empty", 1, |call| {
        Ok(Value::Bool(!call.value(0).is_true()))
    }),
    many("sprig_coalesce", 0, |call| {
        Ok(call
            .arguments
            .iter()
            .find(|value| value.is_true())
            .cloned()
            .unwrap_or(Value::Nil))
    }),
    many("sprig_all", 0, |call| {
        Ok(Value::Bool(call.arguments.iter().all(Value::is_true)))
    }),
    many("sprig_any", 0, |call| {
        Ok(Value::Bool(call.arguments.iter().any(Value::is_true)))
    }),
    exact("sprig_ternary", 3, |call| match call.value(2) {
        Value::Bool(condition) => Ok(call.value(usize::from(!condition)).clone()),
        _ => Err(call.wrong(2, "true or false")),
    }),
    exact("sprig_fail", 1, |call| {
        Err(call.text(0)?.to_string().into())
    }),
    exact("sprig_toString", 1, |call| {
        Ok(call.value(0).to_string().into())
    }),
    exact("sprig_typeOf", 1, |call| {
        Ok(call.value(0).type_name().into())
    }),
    exact("sprig_typeIs", 2, |call| {
        Ok(Value::Bool(*call.text(0)? == *call.value(1).type_name()))
    }),
    exact("sprig_typeIsLike", 2, |call| {
        Ok(Value::Bool(
            call.text(0)?.trim_start_matches('*') == call.value(1).type_name(),
        ))
    }),
    exact("sprig_kindOf", 1, |call| Ok(kind(call.value(0)).into())),
    exact("sprig_kindIs", 2, |call| {
        Ok(Value::Bool(*call.text(0)? == *kind(call.value(1))))
    }),
    exact("sprig_deepEqual", 2, |call| {
        Ok(Value::Bool(call.value(0) == call.value(1)))
    }),
    exact("sprig_deepCopy", 1, |call| Ok(call.value(0).clone())),
    exact("sprig_mustDeepCopy", 1, |call| Ok(call.value(0).clone())),
    exact("sprig_fromJson", 1, |call| {
        Ok(json::read(&call.text(0)?).unwrap_or(Value::Nil))
    }),
    exact("sprig_mustFromJson", 1, |call| {
        Ok(json::read(&call.text(0)?)?)
    }),
    exact("sprig_toJson", 1, |call| {
        Ok(json::write(call.value(0), LINE)?.into())
    }),
    exact("sprig_mustToJson", 1, |call| {
        Ok(json::write(call.value(0), LINE)?.into())
    }),
    exact("sprig_toPrettyJson", 1, |call| {
        Ok(json::write(
            call.value(0),
            Style {
                pretty: true,
                ..LINE
            },
        )?
        .into())
    }),
    exact("sprig_mustToPrettyJson", 1, |call| {
        Ok(json::write(
            call.value(0),
            Style {
                pretty: true,
                ..LINE
            },
        )?
        .into())
    }),
    exact("sprig_toRawJson", 1, |call| {
        Ok(json::write(
            call.value(0),
            Style {
                escapes_html: false,
                ..LINE
            },
        )?
        .into())
    }),
    exact("sprig_mustToRawJson", 1, |call| {
        Ok(json::write(
            call.value(0),
            Style {
                escapes_html: false,
                ..LINE
            },
        )?
        .into())
    }),
    exact("sprig_sha1sum", 1, |call| {
        Ok(sha(&digest::SHA1_FOR_LEGACY_USE_ONLY, &call.text(0)?).into())
    }),
    exact("sprig_sha256sum", 1, |call| {
        Ok(sha(&digest::SHA256, &call.text(0)?).into())
    }),
    exact("sprig_sha512sum", 1, |call| {
        Ok(sha(&digest::SHA512, &call.text(0)?).into())
    }),
    exact("sprig_adler32sum", 1, |call| {
        Ok(adler32(call.text(0)?.as_bytes()).to_string().into())
    }),
    exact("sprig_b64enc", 1, |call| {
        Ok(STANDARD.encode(&*call.text(0)?).into())
    }),
    exact("sprig_b64dec", 1, |call| {
        decoded(STANDARD.decode(&*call.text(0)?))
    }),
    exact("sprig_base", 1, |call| Ok(base(&call.text(0)?).into())),
    exact("sprig_osBase", 1, |call| Ok(base(&call.text(0)?).into())),
    exact("sprig_dir", 1, |call| Ok(dir(&call.text(0)?).into())),
    exact("sprig_osDir", 1, |call| Ok(dir(&call.text(0)?).into())),
    exact("sprig_clean", 1, |call| Ok(clean(&call.text(0)?).into())),
    exact("sprig_osClean", 1, |call| Ok(clean(&call.text(0)?).into())),
    exact("sprig_ext", 1, |call| Ok(ext(&call.text(0)?).into())),
    exact("sprig_osExt", 1, |call| Ok(ext(&call.text(0)?).into())),
    exact("sprig_isAbs", 1, |call| {
        Ok(Value::Bool(call.text(0)?.starts_with('/')))
    }),
    exact("sprig_osIsAbs", 1, |call| {
        Ok(Value::Bool(call.text(0)?.starts_with('/')))
    }),
    exact("sprig_semver", 1, |call| {
        let version = version(&call.text(0)?)?;
        Ok(Value::record([
            ("Major", Value::Uint(version.major)),
            ("Minor", Value::Uint(version.minor)),
            ("Patch", Value::Uint(version.patch)),
            ("Prerelease", version.pre.as_str().into()),
            ("Metadata", version.build.as_str().into()),
            ("Original", call.value(0).clone()),
        ]))
    }),
    exact("sprig_semverCompare", 2, |call| {
        Ok(Value::Bool(satisfies(
            &call.text(0)?,
            &version(&call.text(1)?)?,
        )?))
    }),
];

const LINE: Style = Style {
    pretty: false,
    escapes_html: true,
};

fn kind(value: &Value) -> &'static str {
    match value {
        Value::List(_) => "slice",
        Value::Map(_) => "map",
        Value::Nil | Value::Nothing => "invalid",
        Value::Loop(..) => "chan",
        _ => value.type_name(),
    }
}

fn adler32(bytes: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    let (mut low, mut high) = (1, 0);
    for byte in bytes {
        low = (low + u32::from(*byte)) % MODULUS;
        high = (high + low) % MODULUS;
    }
    (high << 16) | low
}

fn base(path: &str) -> String {
    match path.trim_end_matches('/') {
        "" if path.is_empty() => ".".to_owned(),
        "" => "/".to_owned(),
        path => path.rsplit('/').next().unwrap_or_default().to_owned(),
    }
}

fn dir(path: &str) -> String {
    clean(path.rfind('/').map_or("", |position| &path[..=position]))
}

/// The shortest path that names the same file, without a look at the disk.
fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if rooted => {}
            part => parts.push(part),
        }
    }
    match (rooted, parts.join("/")) {
        (true, path) => format!("/{path}"),
        (false, path) if path.is_empty() => ".".to_owned(),
        (false, path) => path,
    }
}

fn ext(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.rfind('.')
        .map_or("", |position| &name[position..])
        .to_owned()
}

/// A version, perhaps with a `v`, perhaps without its last parts.
fn version(text: &str) -> Result<Version, Failure> {
    let plain = text.trim().trim_start_matches('v');
    let core_end = plain.find(['-', '+']).unwrap_or(plain.len());
    let (core, rest) = plain.split_at(core_end);
    let missing = 2_usize.saturating_sub(core.matches('.').count());
    Version::parse(&format!("{core}{}{rest}", ".0".repeat(missing)))
        .map_err(|_| format!("{text:?} is not a version").into())
}

fn satisfies(constraint: &str, version: &Version) -> Result<bool, Failure> {
    let wrong = || format!("{constraint:?} is not a version constraint");
    for alternative in constraint.split("||") {
        let mut all = true;
        // Conditions are separated by commas or by spaces in front of an operator.
        for condition in alternative.split(',').flat_map(split_conditions) {
            let condition = condition.replace("v", "").replace(' ', "");
            if let Some(unwanted) = condition.strip_prefix("!=") {
                all &= self::version(unwanted)? != *version;
            } else {
                // A version without an operator means this version.
                let bare = condition.starts_with(|first: char| first.is_ascii_digit())
                    && !condition.contains(['x', 'X', '*']);
                let condition = if bare {
                    format!("={condition}")
                } else {
                    condition
                };
                all &= VersionReq::parse(&condition)
                    .map_err(|_| wrong())?
                    .matches(version);
            }
        }
        if all {
            return Ok(true);
        }
    }
    Ok(false)
}

fn split_conditions(text: &str) -> Vec<String> {
    let mut conditions: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match conditions.last_mut() {
            Some(last) if last.chars().all(|letter| "<>=!~^".contains(letter)) => {
                last.push_str(word)
            }
            _ => conditions.push(word.to_owned()),
        }
    }
    conditions
}
