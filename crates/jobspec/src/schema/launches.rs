//! When a job is launched, what it is told then, and within which counts it is scaled.

use super::{Kind, Schema, attribute, plain};

pub(super) static PERIODIC: Schema = plain(
    "periodic",
    &[
        attribute("enabled", "Enabled", Kind::Flag),
        attribute("cron", "Spec", Kind::Text),
        attribute("crons", "Specs", Kind::TextList),
        attribute("", "SpecType", Kind::Text),
        attribute("prohibit_overlap", "ProhibitOverlap", Kind::Flag),
        attribute("time_zone", "TimeZone", Kind::Text),
    ],
);

pub(super) static PARAMETERIZED: Schema = plain(
    "parameterized",
    &[
        attribute("payload", "Payload", Kind::Text),
        attribute("meta_required", "MetaRequired", Kind::TextList),
        attribute("meta_optional", "MetaOptional", Kind::TextList),
    ],
);

pub(super) static DISPATCH_PAYLOAD: Schema =
    plain("dispatch_payload", &[attribute("file", "File", Kind::Text)]);

pub(super) static SCALING: Schema = plain(
    "scaling",
    &[
        attribute("enabled", "Enabled", Kind::Flag),
        attribute("min", "Min", Kind::Whole),
        attribute("max", "Max", Kind::Whole),
        attribute("type", "Type", Kind::Text),
        attribute("policy", "Policy", Kind::Config),
    ],
);
