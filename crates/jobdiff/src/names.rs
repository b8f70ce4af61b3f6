//! Names: how the fields of a job show in its diff.
//!
//! A field shows by its type under its JSON key; the tables here are the exceptions. Source: the names
//! and the omissions are Nomad's, because programs read them.

use job_fields::fields::{Field, Kind, Message};

/// The form in which one key of an object shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Does not count.
    Hidden,
    /// Counts, but is not listed.
    Unshown,
    /// A field.
    Value,
    /// A field that gives the size of base64 instead of its content.
    Size,
    /// A field for each entry, as in `Env[PORT]`.
    Entries,
    /// An object with one field for each text of a set.
    Words(&'static str),
    /// An object with one field for each value in any depth.
    Tree(&'static str),
    /// One object.
    Object(&'static str),
    /// Objects identified by their content.
    Set(&'static str),
    /// Objects identified by the field of this key.
    Keyed(&'static str, &'static str),
    /// Objects identified by their position.
    Numbered(&'static str),
    /// Objects identified by their key.
    Named(&'static str),
}

/// Names of messages that a diff calls otherwise.
const NOUNS: &[(&str, &str)] = &[
    ("Cni", "CNI"),
    ("CsiMountOptions", "MountOptions"),
    ("CsiPluginConfig", "CSIPluginConfig"),
    ("DisconnectStrategy", "Disconnect"),
    ("Dns", "DNS"),
    ("DeviceRequest", "Device"),
    ("MigrateStrategy", "Migrate"),
    ("Parameterized", "ParameterizedJob"),
    ("TaskScaling", "Scaling"),
    ("TemplateWait", "Wait"),
    ("Ui", "UI"),
    ("UiLink", "Link"),
    ("UpdateStrategy", "Update"),
    ("VolumeRequest", "Volume"),
];

/// Noun and key of fields that show otherwise than by their type.
const EXCEPTIONS: &[(&str, &str, Form)] = &[
    // The same on both sides, or it would be another job.
    ("Job", "ID", Form::Hidden),
    ("Job", "Payload", Form::Size),
    // Set by the store, not by the user.
    ("Job", "SubmitTime", Form::Hidden),
    ("Job", "Version", Form::Hidden),
    // Shows at the groups, which inherit it.
    ("Job", "Update", Form::Hidden),
    // Parts have a place of their own in the tree, and their names with it.
    ("Job", "TaskGroups", Form::Hidden),
    ("TaskGroup", "Name", Form::Hidden),
    ("TaskGroup", "Tasks", Form::Hidden),
    ("TaskGroup", "Networks", Form::Numbered("Network")),
    ("TaskGroup", "Services", Form::Numbered("Service")),
    ("Task", "Name", Form::Hidden),
    ("Task", "Services", Form::Numbered("Service")),
    ("Service", "Checks", Form::Numbered("Check")),
    // Shows at the group, though a task may have one of its own.
    ("Task", "RestartPolicy", Form::Unshown),
    ("Resources", "Devices", Form::Keyed("Device", "Name")),
    // Has no effect any more.
    ("Update", "Stagger", Form::Hidden),
    (
        "Network",
        "ReservedPorts",
        Form::Keyed("Static Port", "Label"),
    ),
    (
        "Network",
        "DynamicPorts",
        Form::Keyed("Dynamic Port", "Label"),
    ),
    ("Dynamic Port", "IgnoreCollision", Form::Hidden),
    ("Dynamic Port", "Value", Form::Hidden),
];

/// Noun, key and text of an absent value that shows all the same.
const ABSENT: &[(&str, &str, &str)] = &[
    ("Disconnect", "LostAfter", "0"),
    ("Disconnect", "StopOnClientAfter", "nil"),
    ("Dynamic Port", "To", "0"),
    ("Static Port", "To", "0"),
];

/// Noun, key and text of a value that shows as absent.
const DEFAULTS: &[(&str, &str, &str)] = &[
    ("Network", "Mode", "host"),
    ("TaskGroup", "ShutdownDelay", "0"),
];

/// Noun, name and value of fields that jobs here only have at this value.
const IMPLIED: &[(&str, &[(&str, &str)])] = &[
    ("TaskGroup", &[("PreventRescheduleOnLost", "false")]),
    ("Resources", &[("IOPS", "0"), ("SecretsMB", "0")]),
];

/// Returns how a field of `noun` shows.
pub(crate) fn form(noun: &str, field: &Field) -> Form {
    let exception = EXCEPTIONS
        .iter()
        .find(|(of, key, _)| (*of, *key) == (noun, field.json));
    if let Some((_, _, form)) = exception {
        return *form;
    }
    match field.kind {
        Kind::Text | Kind::Whole | Kind::Unsigned | Kind::Flag | Kind::Duration | Kind::Bytes => {
            Form::Value
        }
        Kind::TextMap => Form::Entries,
        Kind::TextList => Form::Words(field.json),
        Kind::Object => Form::Tree(field.json),
        Kind::One(message) => Form::Object(self::noun(message)),
        Kind::Many(message) => Form::Set(self::noun(message)),
        Kind::Named(message) => Form::Named(self::noun(message)),
    }
}

fn noun(message: &'static Message) -> &'static str {
    let other = NOUNS.iter().find(|(name, _)| *name == message.name);
    other.map_or(message.name, |(_, noun)| noun)
}

/// Returns the text of an absent value; empty: it does not show.
pub(crate) fn absent(noun: &str, key: &str) -> &'static str {
    let found = ABSENT
        .iter()
        .find(|(of, name, _)| (*of, *name) == (noun, key));
    found.map_or("", |(_, _, text)| text)
}

pub(crate) fn is_default(noun: &str, key: &str, text: &str) -> bool {
    DEFAULTS.contains(&(noun, key, text))
}

pub(crate) fn implied(noun: &str) -> &'static [(&'static str, &'static str)] {
    let found = IMPLIED.iter().find(|(of, _)| *of == noun);
    found.map_or(&[], |(_, fields)| fields)
}
