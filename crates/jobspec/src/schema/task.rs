//! Tasks, their resources, lifecycle and logs.

use super::device::DEVICE;
use super::launches::DISPATCH_PAYLOAD;
use super::policies::RESTART;
use super::rank::{AFFINITY, CONSTRAINT};
use super::{
    Attribute, Child, Ignored, Kind, Label, Refused, Schema, attribute, many, once, plain,
    refused_argument, refused_block,
};

pub(super) static TASK: Schema = Schema {
    name: "task",
    label: Some(Label {
        noun: "name",
        json: "Name",
    }),
    attributes: ATTRIBUTES,
    blocks: BLOCKS,
    refused: REFUSED,
    ignored: &[],
    finish: None,
};

pub(super) const ATTRIBUTES: &[Attribute] = &[
    attribute("driver", "Driver", Kind::Text),
    attribute("user", "User", Kind::Text),
    attribute("config", "Config", Kind::Config),
    attribute("env", "Env", Kind::TextMap),
    attribute("meta", "Meta", Kind::TextMap),
    attribute("kill_timeout", "KillTimeout", Kind::Span),
    attribute("kill_signal", "KillSignal", Kind::Text),
    attribute("leader", "Leader", Kind::Flag),
    attribute("shutdown_delay", "ShutdownDelay", Kind::Span),
];

pub(super) const BLOCKS: &[Child] = &[
    once(&RESOURCES, "Resources"),
    once(&RESTART, "RestartPolicy"),
    once(&LIFECYCLE, "Lifecycle"),
    once(&LOGS, "LogConfig"),
    many(&CONSTRAINT, "Constraints"),
    many(&AFFINITY, "Affinities"),
    many(&VOLUME_MOUNT, "VolumeMounts"),
    once(&DISPATCH_PAYLOAD, "DispatchPayload"),
];

pub(super) const REFUSED: &[Refused] = &[
    refused_block(
        "template",
        "Templates",
        "write the file in the task's command, or pass the values with env",
    ),
    refused_block(
        "artifact",
        "Artifacts",
        "put the file on the nodes beforehand, or fetch it in a task with a prestart lifecycle",
    ),
    refused_block(
        "service",
        "Services",
        "remove it and let clients find the port by `kafila alloc status`, or by a static port",
    ),
    refused_block(
        "vault",
        "Vault",
        "hand secrets to the task by a file that the node keeps",
    ),
    refused_block("consul", "Consul", "remove it, Consul is not used"),
    refused_block(
        "identity",
        "Identities",
        "remove it, tasks get no identity tokens",
    ),
    refused_block("", "Identity", "tasks get no identity tokens"),
    refused_block(
        "secret",
        "Secrets",
        "hand secrets to the task by a file that the node keeps",
    ),
    refused_block(
        "scaling",
        "ScalingPolicies",
        "set resources, and register the job again",
    ),
    refused_block(
        "csi_plugin",
        "CSIPluginConfig",
        "run the plugin outside of Kafila",
    ),
    refused_block("action", "Actions", "run the command in a job of its own"),
    refused_block(
        "schedule",
        "Schedule",
        "register and stop the job from cron",
    ),
    refused_argument("kind", "Kind", "remove it, Consul Connect is not used"),
];

static RESOURCES: Schema = Schema {
    name: "resources",
    label: None,
    attributes: &[
        attribute("cpu", "CPU", Kind::Whole),
        attribute("memory", "MemoryMB", Kind::Whole),
        attribute("memory_max", "MemoryMaxMB", Kind::Whole),
        attribute("cores", "Cores", Kind::Whole),
    ],
    blocks: &[many(&DEVICE, "Devices")],
    refused: &[
        refused_argument("secrets", "SecretsMB", "remove it"),
        refused_argument(
            "disk",
            "DiskMB",
            "Task can't ask for disk resources, they have to be specified at the task group \
             level. Write ephemeral_disk { size = … } in the group",
        ),
        refused_block(
            "network",
            "Networks",
            "write the network block in the group instead",
        ),
        refused_block("numa", "NUMA", "remove it"),
    ],
    ignored: &[Ignored {
        name: "iops",
        json: "IOPS",
        warning: "iops in a resources block is deprecated and ignored: remove it",
    }],
    finish: None,
};

static VOLUME_MOUNT: Schema = Schema {
    refused: &[refused_argument(
        "selinux_label",
        "SELinuxLabel",
        "label the directory on the node",
    )],
    ..plain(
        "volume_mount",
        &[
            attribute("volume", "Volume", Kind::Text),
            attribute("destination", "Destination", Kind::Text),
            attribute("read_only", "ReadOnly", Kind::Flag),
            attribute("propagation_mode", "PropagationMode", Kind::Text),
        ],
    )
};

static LIFECYCLE: Schema = plain(
    "lifecycle",
    &[
        attribute("hook", "Hook", Kind::Text),
        attribute("sidecar", "Sidecar", Kind::Flag),
    ],
);

static LOGS: Schema = Schema {
    refused: &[refused_argument(
        "enabled",
        "Enabled",
        "write disabled = true or false instead",
    )],
    ..plain(
        "logs",
        &[
            attribute("max_files", "MaxFiles", Kind::Whole),
            attribute("max_file_size", "MaxFileSizeMB", Kind::Whole),
            attribute("disabled", "Disabled", Kind::Flag),
        ],
    )
};
