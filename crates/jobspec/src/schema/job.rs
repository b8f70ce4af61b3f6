//! The job block.

use super::group::{GROUP, JOB_TASK};
use super::launches::{PARAMETERIZED, PERIODIC};
use super::policies::{MIGRATE, RESCHEDULE, UPDATE};
use super::rank::{AFFINITY, CONSTRAINT, SPREAD};
use super::{
    Child, Form, Ignored, Kind, Label, Repeat, Schema, attribute, many, once, refused_argument,
    refused_block,
};

pub(crate) static JOB: Schema = Schema {
    name: "job",
    label: Some(Label {
        noun: "name",
        json: "ID",
    }),
    attributes: &[
        attribute("id", "ID", Kind::Text),
        attribute("name", "Name", Kind::Text),
        attribute("type", "Type", Kind::Text),
        attribute("region", "Region", Kind::Text),
        attribute("namespace", "Namespace", Kind::Text),
        attribute("priority", "Priority", Kind::Whole),
        attribute("all_at_once", "AllAtOnce", Kind::Flag),
        attribute("datacenters", "Datacenters", Kind::TextList),
        attribute("node_pool", "NodePool", Kind::Text),
        attribute("meta", "Meta", Kind::TextMap),
        attribute("", "Stop", Kind::Flag),
        attribute("", "ParentID", Kind::Text),
        attribute("", "Dispatched", Kind::Flag),
        attribute("", "Payload", Kind::Text),
        attribute("", "DispatchIdempotencyToken", Kind::Text),
    ],
    blocks: &[
        many(&GROUP, "TaskGroups"),
        Child {
            schema: &JOB_TASK,
            json: "hcl:task",
            repeat: Repeat::Many,
            form: Form::Hcl,
        },
        many(&CONSTRAINT, "Constraints"),
        many(&AFFINITY, "Affinities"),
        many(&SPREAD, "Spreads"),
        once(&UPDATE, "Update"),
        once(&RESCHEDULE, "Reschedule"),
        once(&MIGRATE, "Migrate"),
        once(&PERIODIC, "Periodic"),
        once(&PARAMETERIZED, "ParameterizedJob"),
    ],
    refused: &[
        refused_block(
            "multiregion",
            "Multiregion",
            "register the job in each region",
        ),
        refused_block(
            "vault",
            "Vault",
            "hand secrets to the task by a file that the node keeps",
        ),
        refused_block(
            "secret",
            "",
            "hand secrets to the task by a file that the node keeps",
        ),
        refused_argument("", "ConsulToken", "Consul is not used"),
        refused_argument("", "VaultToken", "Vault is not used"),
    ],
    ignored: &[Ignored {
        name: "ui",
        json: "UI",
        warning: "the ui block is ignored: this version of Kafila has no web UI to show it in",
    }],
    finish: Some(super::group::lift_job_tasks),
};
