//! The create request of podman tasks, option by option.

use serde_json::{Value, json};

use super::{added, request, task};
use crate::config::EngineConfig;
use crate::settings::{EngineKind, Settings};

/// A node that allows everything.
fn open() -> Settings {
    let config = EngineConfig {
        allow_privileged: true,
        allow_caps: vec!["all".to_owned()],
        volumes: true,
        ..EngineConfig::podman()
    };
    Settings {
        engine_kind: EngineKind::Podman,
        config,
        ..Settings::new("/s".into(), "node".to_owned())
    }
}

/// A node with the defaults.
fn plain() -> Settings {
    Settings {
        config: EngineConfig::podman(),
        ..open()
    }
}

#[test]
fn every_option_adds_its_part() {
    let host = |part: Value| json!({"HostConfig": part});
    let alloc = task(&json!({})).id.alloc_id;
    let binds = |more: &str| {
        host(json!({"Binds": [
            format!("/a/{alloc}/alloc:/alloc"),
            format!("/a/{alloc}/web/local:/local"),
            format!("/a/{alloc}/web/secrets:/secrets"),
            format!("/a/{alloc}/alloc/logs:/alloc/logs:ro"),
            more,
        ]}))
    };
    let binding = json!([{"HostIp": "10.0.0.1", "HostPort": "20001"}]);
    let published = |inside: &str| {
        let (tcp, udp) = (format!("{inside}/tcp"), format!("{inside}/udp"));
        json!({
            "ExposedPorts": {tcp.clone(): {}, udp.clone(): {}},
            "HostConfig": {"PortBindings": {tcp: binding, udp: binding}},
        })
    };
    let device = |inside: &str, rights: &str| {
        host(json!({"Devices": [
            {"PathOnHost": "/dev/a", "PathInContainer": inside, "CgroupPermissions": rights},
        ]}))
    };
    let table = [
        (
            json!({"image": "docker://a/b:1"}),
            json!({"Image": "a/b:1"}),
        ),
        (
            json!({"image": "docker.io/a/b:1"}),
            json!({"Image": "docker.io/a/b:1"}),
        ),
        (
            json!({"command": "serve", "args": ["-p", "80"]}),
            json!({"Cmd": ["serve", "-p", "80"]}),
        ),
        (json!({"entrypoint": "/e"}), json!({"Entrypoint": ["/e"]})),
        (
            json!({"entrypoint": ["/e", "f"]}),
            json!({"Entrypoint": ["/e", "f"]}),
        ),
        (json!({"working_dir": "/w"}), json!({"WorkingDir": "/w"})),
        (json!({"hostname": "h"}), json!({"Hostname": "h"})),
        (json!({"tty": true}), json!({"Tty": true})),
        (json!({"init": true}), host(json!({"Init": true}))),
        (json!({"labels": [{"a": 1}]}), json!({"Labels": {"a": "1"}})),
        (
            json!({"extra_labels": ["task_n*"]}),
            json!({"Labels": {"com.hashicorp.nomad.task_name": "web"}}),
        ),
        // Ports and networks.
        (json!({"ports": ["http"]}), published("80")),
        (json!({"port_map": [{"http": 8080}]}), published("8080")),
        (
            json!({"network_mode": "host"}),
            host(json!({"NetworkMode": "host"})),
        ),
        (
            json!({"network_mode": "slirp4netns"}),
            host(json!({"NetworkMode": "slirp4netns"})),
        ),
        (
            json!({"network_mode": "container:db"}),
            host(json!({"NetworkMode": "container:db"})),
        ),
        (
            json!({"network_mode": "task:pod"}),
            host(json!({"NetworkMode": format!("container:pod-{alloc}")})),
        ),
        (
            json!({"extra_hosts": ["a:1.2.3.4"]}),
            host(json!({"ExtraHosts": ["a:1.2.3.4"]})),
        ),
        // Files.
        (
            json!({"volumes": ["/x:/y:ro,noexec"]}),
            binds("/x:/y:ro,noexec"),
        ),
        (
            json!({"volumes": ["local/x:/y"]}),
            binds(&format!("/a/{alloc}/web/local/x:/y")),
        ),
        (
            json!({"tmpfs": ["/run", "/t:size=64m,noexec"]}),
            host(json!({"Tmpfs": {"/run": "", "/t": "size=64m,noexec"}})),
        ),
        (
            json!({"readonly_rootfs": true}),
            host(json!({"ReadonlyRootfs": true})),
        ),
        (json!({"devices": ["/dev/a"]}), device("/dev/a", "rwm")),
        (
            json!({"devices": ["/dev/a:/dev/b:r"]}),
            device("/dev/b", "r"),
        ),
        // Limits.
        (
            json!({"memory_reservation": "32m"}),
            host(json!({"MemoryReservation": 33_554_432})),
        ),
        (
            json!({"memory_swap": "1G"}),
            host(json!({"MemorySwap": 1_073_741_824})),
        ),
        (
            json!({"memory_swap": "-1"}),
            host(json!({"MemorySwap": -1})),
        ),
        (
            json!({"memory_swappiness": 60}),
            host(json!({"MemorySwappiness": 60})),
        ),
        (
            json!({"cpu_hard_limit": true, "cpu_cfs_period": 50_000}),
            host(json!({"CpuPeriod": 50_000, "CpuQuota": 12_500})),
        ),
        (json!({"pids_limit": 9}), host(json!({"PidsLimit": 9}))),
        (json!({"shm_size": "1024"}), host(json!({"ShmSize": 1_024}))),
        (
            json!({"sysctl": [{"net.x": "1"}]}),
            host(json!({"Sysctls": {"net.x": "1"}})),
        ),
        (
            json!({"ulimit": [{"nofile": "10:20"}]}),
            host(json!({"Ulimits": [{"Name": "nofile", "Soft": 10, "Hard": 20}]})),
        ),
        // Rights.
        (
            json!({"privileged": true}),
            host(json!({"Privileged": true})),
        ),
        (
            json!({"cap_add": ["sys_time"]}),
            host(json!({"CapAdd": ["CAP_SYS_TIME"]})),
        ),
        (
            json!({"cap_drop": ["MKNOD"]}),
            host(json!({"CapDrop": ["CAP_MKNOD"]})),
        ),
        (
            json!({"security_opt": ["no-new-privileges"], "apparmor_profile": "unconfined", "selinux_opts": ["type:t"]}),
            host(
                json!({"SecurityOpt": ["no-new-privileges", "apparmor=unconfined", "label=type:t"]}),
            ),
        ),
        (
            json!({"userns": "keep-id:uid=5"}),
            host(json!({"UsernsMode": "keep-id:uid=5"})),
        ),
        // Output.
        (json!({"logging": [{"driver": "nomad"}]}), json!({})),
        (
            json!({"logging": [{"driver": "journald", "options": [{"tag": "redis"}]}]}),
            host(json!({"LogConfig": {"Type": "journald", "Config": {"tag": "redis"}}})),
        ),
        // Pulls do not change the request.
        (
            json!({
                "auth": [{"username": "u", "password": "p", "tls_verify": false}],
                "auth_soft_fail": true, "force_pull": true, "image_pull_timeout": "1m", "socket": "default",
            }),
            json!({}),
        ),
    ];
    for (config, want) in table {
        assert_eq!(added(&config, &open()), want, "{config}");
    }
}

#[test]
fn modes_that_reach_the_volume_alone_are_allowed_everywhere() {
    let config = json!({"volumes": ["local/x:/y:ro,Z,U,noexec", "local/z:/z"]});
    let host = &request(&task(&config), &plain()).unwrap()["HostConfig"];
    let binds = host["Binds"].as_array().unwrap();
    let is_kept = |bind: &Value| {
        bind.as_str()
            .unwrap()
            .ends_with("/local/x:/y:ro,Z,U,noexec")
    };
    assert!(binds.iter().any(is_kept), "{binds:?}");
    let overlay = json!({"volumes": ["local/x:/y:O,upperdir=/u,workdir=/w"]});
    request(&task(&overlay), &open()).unwrap();
}

#[test]
fn a_task_without_options_has_the_defaults_of_the_node() {
    let made = request(&task(&json!({})), &plain()).unwrap();
    let host = &made["HostConfig"];
    assert_eq!(
        host["LogConfig"],
        json!({"Type": "k8s-file", "Config": {"max-size": "4m"}})
    );
    assert_eq!(host["MemorySwap"], host["Memory"]);
    // Podman gives no capability that the node does not allow.
    assert_eq!(host.get("CapDrop"), None);
    let mut strict = plain();
    strict.config.allow_caps = vec!["chown".to_owned()];
    let dropped = &request(&task(&json!({})), &strict).unwrap()["HostConfig"]["CapDrop"];
    assert!(
        dropped.as_array().unwrap().contains(&json!("CAP_SETUID")),
        "{dropped}"
    );
    assert!(
        !dropped.as_array().unwrap().contains(&json!("CAP_NET_RAW")),
        "{dropped}"
    );
}

#[test]
fn what_a_node_does_not_allow_or_podman_does_not_have_is_refused_with_what_to_do() {
    for (config, problem) in [
        (
            json!({"privileged": true}),
            "drivers.podman.allow_privileged",
        ),
        (json!({"cap_add": ["net_raw"]}), "drivers.podman.allow_caps"),
        (json!({"volumes": ["/etc:/e"]}), "drivers.podman.volumes"),
        // Its upper directory is written to, wherever it is.
        (
            json!({"volumes": ["local/x:/y:O,upperdir=/etc,workdir=/w"]}),
            "option volumes: \"O\" can reach any path of the host: set drivers.podman.volumes = true",
        ),
        (
            json!({"volumes": ["local/x:/y:ro,upperdir=/etc"]}),
            "option volumes: \"upperdir=/etc\" can reach",
        ),
        (
            json!({"logging": [{"driver": "k8s-file", "options": [{"path": "/etc/cron.d/x"}]}]}),
            "option logging: \"path\" can reach any path of the host",
        ),
        (
            json!({"userns": "ns:/proc/1/ns/user"}),
            "option userns: \"ns:\" can reach any path of the host",
        ),
        (json!({"socket": "app1"}), "one socket of podman"),
        (json!({"image": "oci-archive:/x.tar"}), "podman load"),
        (json!({"network_mode": "pod:x"}), "task:<name>"),
        (
            json!({"memory_swap": "much"}),
            "memory_swap: \"much\" is no size",
        ),
        (
            json!({"memory_swap": "-2"}),
            "memory_swap: \"-2\" is no size",
        ),
        (
            json!({"memory_swappiness": 101}),
            "memory_swappiness: want 0 to 100",
        ),
        (
            json!({"tmpfs": ["run"]}),
            "tmpfs: \"run\" has no absolute path",
        ),
        (
            json!({"devices": ["/a:/b:r:w"]}),
            "devices: \"/a:/b:r:w\" is not of the form",
        ),
        (json!({"work_dir": "/x"}), "unknown field `work_dir`"),
    ] {
        let error = request(&task(&config), &plain()).unwrap_err();
        assert!(error.contains(problem), "{config}: {error}");
    }
}
