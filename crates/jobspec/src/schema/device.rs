//! Devices that a task asks for.

use super::rank::{AFFINITY, CONSTRAINT};
use super::{Kind, Label, Schema, attribute, many};

pub(super) static DEVICE: Schema = Schema {
    name: "device",
    label: Some(Label {
        noun: "name",
        json: "Name",
    }),
    attributes: &[attribute("count", "Count", Kind::Whole)],
    blocks: &[
        many(&CONSTRAINT, "Constraints"),
        many(&AFFINITY, "Affinities"),
    ],
    refused: &[],
    ignored: &[],
    finish: None,
};
