//! Tasks, their resources, devices, mounts and logs.

use hcl::schema::{Ignored, refused_argument, refused_block};

use super::extra::{Extra, default, default_duration};

pub(super) const TASK: Extra = Extra {
    refused: &[
        refused_block(
            "artifact",
            "Artifacts",
            "put the file on the nodes beforehand, or fetch it in a task with a prestart lifecycle",
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
    ],
    ..Extra::labelled("Task", "name", "Name")
};

/// Source: `nomad job run -output` writes these defaults, other than those of most blocks.
pub(super) const TEMPLATE: Extra = Extra {
    finish: Some(|template| {
        default(template, "ChangeMode", "restart");
        default(template, "Perms", "0644");
        default_duration(template, "Splay", FIVE_SECONDS_NS);
        Ok(())
    }),
    ..Extra::of("Template")
};

pub(super) const CHANGE_SCRIPT: Extra = Extra {
    refused: &[refused_argument(
        "run_on_first_render",
        "RunOnFirstRender",
        "remove it, and run the command in the task itself, before its program",
    )],
    finish: Some(|script| {
        default_duration(script, "Timeout", FIVE_SECONDS_NS);
        Ok(())
    }),
    ..Extra::of("ChangeScript")
};

const FIVE_SECONDS_NS: i64 = 5_000_000_000;

pub(super) const RESOURCES: Extra = Extra {
    refused: &[
        refused_argument("secrets", "SecretsMB", "remove it"),
        refused_argument(
            "disk",
            "DiskMB",
            "Task can't ask for disk resources, they have to be specified at the task group \
             level. Write ephemeral_disk { size = … } in the group",
        ),
        refused_block("numa", "NUMA", "remove it"),
    ],
    ignored: &[Ignored {
        name: "iops",
        json: "IOPS",
        warning: "iops in a resources block is deprecated and ignored: remove it",
    }],
    ..Extra::of("Resources")
};

pub(super) const DEVICE_REQUEST: Extra = Extra::labelled("DeviceRequest", "name", "Name");

pub(super) const VOLUME_MOUNT: Extra = Extra {
    refused: &[refused_argument(
        "selinux_label",
        "SELinuxLabel",
        "label the directory on the node",
    )],
    ..Extra::of("VolumeMount")
};

pub(super) const LOG_CONFIG: Extra = Extra {
    refused: &[refused_argument(
        "enabled",
        "Enabled",
        "write disabled = true or false instead",
    )],
    ..Extra::of("LogConfig")
};
