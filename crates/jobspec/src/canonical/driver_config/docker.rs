//! Options of the driver `docker`.

use super::option::{Driver, DriverOption, Kind, REMOVE, option, required};

/// Any size that the engine's API holds and a double keeps.
const SIZE: Kind = Kind::Whole(0, 1 << 53);

pub(super) const AUTH: &[DriverOption] = &[
    option("username", Kind::Text),
    option("password", Kind::Text),
    option("email", Kind::Text),
    option("server_address", Kind::Text),
];

const MOUNT: &[DriverOption] = &[
    option("type", Kind::Text),
    required("target", "/data"),
    option("source", Kind::Text),
    option("readonly", Kind::Flag),
    option(
        "bind_options",
        Kind::Block(&[option("propagation", Kind::Text)]),
    ),
    option(
        "tmpfs_options",
        Kind::Block(&[option("size", SIZE), option("mode", SIZE)]),
    ),
    option(
        "volume_options",
        Kind::Block(&[
            option("no_copy", Kind::Flag),
            option("labels", Kind::TextMap),
            option(
                "driver_config",
                Kind::Block(&[option("name", Kind::Text), option("options", Kind::TextMap)]),
            ),
        ]),
    ),
];

const DEVICE: &[DriverOption] = &[
    required("host_path", "/dev/fuse"),
    option("container_path", Kind::Text),
    option("cgroup_permissions", Kind::Text),
];

const LOGGING: &[DriverOption] = &[
    option("type", Kind::Text),
    option("driver", Kind::Text),
    option("config", Kind::TextMap),
];

pub(super) const DOCKER: Driver = Driver {
    name: "docker",
    options: &[
        required("image", "redis:7"),
        option("command", Kind::Text),
        option("args", Kind::TextList),
        option("entrypoint", Kind::TextList),
        option("work_dir", Kind::Text),
        option("ports", Kind::TextList),
        option("port_map", Kind::TextMap),
        option("auth", Kind::Block(AUTH)),
        option("auth_soft_fail", Kind::Flag),
        option("force_pull", Kind::Flag),
        option("image_pull_timeout", Kind::Duration),
        option("volumes", Kind::TextList),
        option("volume_driver", Kind::Text),
        option("mount", Kind::Blocks(MOUNT)),
        option("mounts", Kind::Blocks(MOUNT)),
        option("labels", Kind::TextMap),
        option("extra_labels", Kind::TextList),
        option("network_mode", Kind::Text),
        option("network_aliases", Kind::TextList),
        option("ipv4_address", Kind::Text),
        option("ipv6_address", Kind::Text),
        option("mac_address", Kind::Text),
        option("hostname", Kind::Text),
        option("extra_hosts", Kind::TextList),
        option("dns_servers", Kind::TextList),
        option("dns_search_domains", Kind::TextList),
        option("dns_options", Kind::TextList),
        option("privileged", Kind::Flag),
        option("cap_add", Kind::TextList),
        option("cap_drop", Kind::TextList),
        option("security_opt", Kind::TextList),
        option("devices", Kind::Blocks(DEVICE)),
        option("sysctl", Kind::TextMap),
        option("ulimit", Kind::TextMap),
        option("shm_size", SIZE),
        option("init", Kind::Flag),
        option("runtime", Kind::Text),
        option("userns_mode", Kind::Text),
        option("uts_mode", Kind::Text),
        option("pid_mode", Kind::Text),
        option("ipc_mode", Kind::Text),
        option("cgroupns", Kind::Text),
        option("cpu_hard_limit", Kind::Flag),
        // The kernel's range, in microseconds.
        option("cpu_cfs_period", Kind::Whole(1_000, 1_000_000)),
        option("cpuset_cpus", Kind::Text),
        option("memory_hard_limit", Kind::Whole(0, u32::MAX as i64)),
        option("pids_limit", Kind::Whole(0, i32::MAX as i64)),
        option("oom_score_adj", Kind::Whole(-1_000, 1_000)),
        option("logging", Kind::Block(LOGGING)),
        option("tty", Kind::Flag),
        option("interactive", Kind::Flag),
        option("readonly_rootfs", Kind::Flag),
        option("storage_opt", Kind::TextMap),
        option("group_add", Kind::TextList),
        option(
            "healthchecks",
            Kind::Block(&[option("disable", Kind::Flag)]),
        ),
    ],
    refused: &[
        ("advertise_ipv6_address", REMOVE),
        ("container_exists_attempts", REMOVE),
        ("credential_spec", REMOVE),
        ("isolation", REMOVE),
        ("load", REMOVE),
    ],
};
