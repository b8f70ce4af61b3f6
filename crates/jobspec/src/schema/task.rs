//! Tasks, their resources, devices, mounts and logs.

use hcl::schema::{Ignored, refused_argument, refused_block};

use super::extra::Extra;

pub(super) const TASK: Extra = Extra {
    refused: &[
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

pub(super) const RESOURCES: Extra = Extra {
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
