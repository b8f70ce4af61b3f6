//! Options of the driver `podman`.

use super::docker::AUTH;
use super::option::{Driver, DriverOption, Kind, option, required};

const PODMAN_AUTH: &[DriverOption] = &[
    AUTH[0],
    AUTH[1],
    AUTH[2],
    AUTH[3],
    option("tls_verify", Kind::Flag),
];

const LOGGING: &[DriverOption] = &[
    option("driver", Kind::Text),
    option("options", Kind::TextMap),
];

pub(super) const PODMAN: Driver = Driver {
    name: "podman",
    options: &[
        required("image", "docker.io/library/redis:7"),
        option("image_pull_timeout", Kind::Duration),
        option("auth", Kind::Block(PODMAN_AUTH)),
        option("auth_soft_fail", Kind::Flag),
        option("force_pull", Kind::Flag),
        option("command", Kind::Text),
        option("args", Kind::TextList),
        option("entrypoint", Kind::TextOrList),
        option("working_dir", Kind::Text),
        option("hostname", Kind::Text),
        option("ports", Kind::TextList),
        option("port_map", Kind::TextMap),
        option("network_mode", Kind::Text),
        option("extra_hosts", Kind::TextList),
        option("volumes", Kind::TextList),
        option("tmpfs", Kind::TextList),
        option("devices", Kind::TextList),
        option("init", Kind::Flag),
        option("tty", Kind::Flag),
        option("labels", Kind::TextMap),
        option("extra_labels", Kind::TextList),
        option("logging", Kind::Block(LOGGING)),
        option("memory_reservation", Kind::Text),
        option("memory_swap", Kind::Text),
        option("memory_swappiness", Kind::Whole(0, 100)),
        option("cpu_hard_limit", Kind::Flag),
        // The kernel's range, in microseconds.
        option("cpu_cfs_period", Kind::Whole(1_000, 1_000_000)),
        option("pids_limit", Kind::Whole(0, i32::MAX as i64)),
        option("shm_size", Kind::Text),
        option("sysctl", Kind::TextMap),
        option("ulimit", Kind::TextMap),
        option("readonly_rootfs", Kind::Flag),
        option("privileged", Kind::Flag),
        option("cap_add", Kind::TextList),
        option("cap_drop", Kind::TextList),
        option("security_opt", Kind::TextList),
        option("apparmor_profile", Kind::Text),
        option("selinux_opts", Kind::TextList),
        option("userns", Kind::Text),
        option("socket", Kind::Text),
    ],
    refused: &[
        (
            "init_path",
            "write init = true, and set init_path in containers.conf of the node",
        ),
        (
            "load",
            "load the archive on the node with podman load, and write the image's name",
        ),
        (
            "secrets",
            "write a template block with a destination in secrets/",
        ),
        (
            "static_ips",
            "share the group's network with a network block of mode bridge",
        ),
    ],
};
