//! The engine's create request, option by option: a `config` block and the part of the request that
//! comes of it, or the refusal. Recorded from Nomad's public driver where it has the option.

mod podman;

use std::path::Path;

use model::{AllocId, AllocatedPort, MemoryMax};
use serde_json::{Map, Value, json};
use task_drivers::{AllocDirs, MachineSize, TaskConfig, TaskId, TaskMount};

use super::{create, host_paths};
use crate::config::EngineConfig;
use crate::settings::{EngineKind, Settings};

fn task(config: &Value) -> TaskConfig {
    let id = TaskId {
        alloc_id: AllocId::from_random(1),
        task: "web".to_owned(),
        attempt: 1,
    };
    let mut config = config.as_object().unwrap().clone();
    config.entry("image").or_insert(json!("redis:7"));
    let mut task = TaskConfig::new(id);
    task.dirs = Some(AllocDirs::new(Path::new("/a"), task.id.alloc_id).task("web"));
    task.config = config;
    task.resources.cpu_mhz = 500;
    task.resources.memory_mib = 64;
    task.machine = MachineSize {
        cpu_mhz: 4_000,
        cores: 2,
    };
    let port = |label: &str, value, to| AllocatedPort {
        label: label.to_owned(),
        value,
        to,
        host_ip: "10.0.0.1".to_owned(),
        ..AllocatedPort::default()
    };
    task.ports = vec![port("http", 20_001, 80), port("db", 5_432, 0)];
    task
}

/// A node that allows everything.
fn open() -> Settings {
    let config = EngineConfig {
        allow_privileged: true,
        allow_caps: vec!["all".to_owned()],
        volumes: true,
        ..EngineConfig::default()
    };
    Settings {
        config,
        ..Settings::new("/s".into(), "node".to_owned())
    }
}

fn request(task: &TaskConfig, settings: &Settings) -> Result<Value, String> {
    let options =
        crate::config_block::read(task, settings.engine_kind).map_err(|error| error.to_string())?;
    create(task, &options, settings).map(|body| serde_json::to_value(body).unwrap())
}

/// Returns the members of `one` that `other` lacks or has otherwise.
fn difference(one: &Value, other: &Value) -> Value {
    let (Some(one), Some(other)) = (one.as_object(), other.as_object()) else {
        return one.clone();
    };
    let mut result = Map::new();
    for (key, value) in one {
        match other.get(key) {
            Some(same) if same == value => {}
            Some(another) => drop(result.insert(key.clone(), difference(value, another))),
            None => drop(result.insert(key.clone(), value.clone())),
        }
    }
    Value::Object(result)
}

/// Returns the fields that the options add to the request of a task without options.
fn added(config: &Value, settings: &Settings) -> Value {
    let plain = request(&task(&json!({})), settings).unwrap();
    difference(&request(&task(config), settings).unwrap(), &plain)
}

#[test]
fn a_task_without_options_has_its_directories_limits_and_labels() {
    let alloc = AllocId::from_random(1).to_string();
    let mut plain = task(&json!({}));
    plain.env = [("B", "2"), ("A", "1")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    plain.user = "app".to_owned();
    let want = json!({
        "Image": "redis:7",
        "User": "app",
        "Env": ["A=1", "B=2"],
        "Labels": {
            "com.hashicorp.nomad.alloc_id": alloc,
            "io.kafila.node_id": "node",
            "io.kafila.task": "web",
            "io.kafila.attempt": "1",
        },
        "HostConfig": {
            "Binds": [
                format!("/a/{alloc}/alloc:/alloc"),
                format!("/a/{alloc}/web/local:/local"),
                format!("/a/{alloc}/web/secrets:/secrets"),
                format!("/a/{alloc}/alloc/logs:/alloc/logs:ro"),
            ],
            "LogConfig": {
                "Type": "json-file",
                "Config": {"max-file": "2", "max-size": "10m"},
            },
            "NetworkMode": "default",
            "CpuShares": 128,
            "Memory": 67_108_864,
            "MemorySwap": 67_108_864,
            "PidsLimit": -1,
        },
    });
    assert_eq!(request(&plain, &open()).unwrap(), want);
}

#[test]
fn every_option_adds_its_part() {
    let task_dir = format!("/a/{}/web", AllocId::from_random(1));
    let host = |part: Value| json!({"HostConfig": part});
    let bind = |source: &str, rest: &str| {
        let alloc = AllocId::from_random(1).to_string();
        host(json!({"Binds": [
            format!("/a/{alloc}/alloc:/alloc"),
            format!("/a/{alloc}/web/local:/local"),
            format!("/a/{alloc}/web/secrets:/secrets"),
            format!("/a/{alloc}/alloc/logs:/alloc/logs:ro"),
            format!("{source}{rest}"),
        ]}))
    };
    let published = |inside: &str, outside: &str| {
        let binding = json!([{"HostIp": "10.0.0.1", "HostPort": outside}]);
        let (tcp, udp) = (format!("{inside}/tcp"), format!("{inside}/udp"));
        json!({
            "ExposedPorts": {tcp.clone(): {}, udp.clone(): {}},
            "HostConfig": {"PortBindings": {tcp: binding, udp: binding}},
        })
    };
    let endpoint = |mode: &str, part: Value| {
        json!({
            "HostConfig": {"NetworkMode": mode},
            "NetworkingConfig": {"EndpointsConfig": {mode: part}},
        })
    };
    let table = [
        (json!({"image": "a/b:1"}), json!({"Image": "a/b:1"})),
        (
            json!({"image": "https://r.example/b"}),
            json!({"Image": "r.example/b"}),
        ),
        (
            json!({"command": "serve", "args": ["-p", "80"]}),
            json!({"Cmd": ["serve", "-p", "80"]}),
        ),
        (
            json!({"args": ["y"], "entrypoint": ["/e", "x"]}),
            json!({"Cmd": ["y"], "Entrypoint": ["/e", "x"]}),
        ),
        (json!({"entrypoint": "/e"}), json!({"Entrypoint": ["/e"]})),
        (json!({"work_dir": "/w"}), json!({"WorkingDir": "/w"})),
        (json!({"hostname": "h"}), json!({"Hostname": "h"})),
        (json!({"tty": true}), json!({"Tty": true})),
        (json!({"interactive": true}), json!({"OpenStdin": true})),
        (
            json!({"healthchecks": [{"disable": true}]}),
            json!({"Healthcheck": {"Test": ["NONE"]}}),
        ),
        (json!({"healthchecks": [{"disable": false}]}), json!({})),
        (
            json!({"labels": [{"a": "b"}, {"c": 1}]}),
            json!({"Labels": {"a": "b", "c": "1"}}),
        ),
        // Ports.
        (json!({"ports": ["http"]}), published("80", "20001")),
        (json!({"ports": ["db"]}), published("5432", "5432")),
        (
            json!({"port_map": [{"http": 8080, "other": 1}]}),
            published("8080", "20001"),
        ),
        (
            json!({"network_mode": "host"}),
            host(json!({"NetworkMode": "host"})),
        ),
        (
            json!({"network_mode": "n", "ipv4_address": "10.5.0.9", "network_aliases": ["a"]}),
            endpoint(
                "n",
                json!({"IPAMConfig": {"IPv4Address": "10.5.0.9"}, "Aliases": ["a"]}),
            ),
        ),
        (
            json!({"network_mode": "n", "ipv6_address": "fd00::5"}),
            endpoint("n", json!({"IPAMConfig": {"IPv6Address": "fd00::5"}})),
        ),
        (
            json!({"network_mode": "n", "mac_address": "02:42:ac:11:00:02"}),
            endpoint("n", json!({"MacAddress": "02:42:ac:11:00:02"})),
        ),
        (
            json!({"extra_hosts": ["a:1.2.3.4"]}),
            host(json!({"ExtraHosts": ["a:1.2.3.4"]})),
        ),
        (
            json!({"dns_servers": ["8.8.8.8", "example"], "dns_search_domains": ["x.y"], "dns_options": ["ndots:1"]}),
            host(json!({"Dns": ["8.8.8.8"], "DnsSearch": ["x.y"], "DnsOptions": ["ndots:1"]})),
        ),
        // Volumes.
        (
            json!({"volumes": ["local/x/:/y"]}),
            bind(&format!("{task_dir}/local/x"), ":/y"),
        ),
        (json!({"volumes": ["/x:/y:ro"]}), bind("/x", ":/y:ro")),
        (json!({"volumes": ["name:/v"], "volume_driver": "local"}), {
            let mut want = bind("name", ":/v");
            want["HostConfig"]["VolumeDriver"] = json!("local");
            want
        }),
        (
            json!({"mount": [{"type": "bind", "source": "./local/c", "target": "/c", "readonly": true}]}),
            host(
                json!({"Mounts": [{"Type": "bind", "Source": format!("{task_dir}/local/c"), "Target": "/c", "ReadOnly": true}]}),
            ),
        ),
        (
            json!({"mount": [{"type": "bind", "source": "/t", "target": "/m", "bind_options": [{"propagation": "rshared"}]}]}),
            host(
                json!({"Mounts": [{"Type": "bind", "Source": "/t", "Target": "/m", "BindOptions": {"Propagation": "rshared"}}]}),
            ),
        ),
        (
            json!({"mounts": [{"target": "/n", "source": "v", "volume_options": [{"no_copy": true, "labels": [{"a": "b"}],
            "driver_config": [{"name": "local", "options": [{"o": "size=1"}]}]}]}]}),
            host(
                json!({"Mounts": [{"Type": "volume", "Source": "v", "Target": "/n", "VolumeOptions": {"NoCopy": true,
                "Labels": {"a": "b"}, "DriverConfig": {"Name": "local", "Options": {"o": "size=1"}}}}]}),
            ),
        ),
        (
            json!({"mount": {"type": "tmpfs", "target": "/m", "tmpfs_options": {"size": 1_000_000}}}),
            host(
                json!({"Mounts": [{"Type": "tmpfs", "Target": "/m", "TmpfsOptions": {"SizeBytes": 1_000_000}}]}),
            ),
        ),
        (
            json!({"storage_opt": [{"size": "1G"}]}),
            host(json!({"StorageOpt": {"size": "1G"}})),
        ),
        (
            json!({"readonly_rootfs": true}),
            host(json!({"ReadonlyRootfs": true})),
        ),
        // Limits.
        (
            json!({"cpu_hard_limit": true}),
            host(json!({"CpuPeriod": 100_000, "CpuQuota": 25_000})),
        ),
        (
            json!({"cpu_hard_limit": true, "cpu_cfs_period": 50_000}),
            host(json!({"CpuPeriod": 50_000, "CpuQuota": 12_500})),
        ),
        (
            json!({"cpuset_cpus": "0-1"}),
            host(json!({"CpusetCpus": "0-1"})),
        ),
        (
            json!({"memory_hard_limit": 512}),
            host(
                json!({"Memory": 536_870_912, "MemorySwap": 536_870_912, "MemoryReservation": 67_108_864}),
            ),
        ),
        (json!({"pids_limit": 100}), host(json!({"PidsLimit": 100}))),
        (
            json!({"oom_score_adj": 500}),
            host(json!({"OomScoreAdj": 500})),
        ),
        (json!({"shm_size": 1024}), host(json!({"ShmSize": 1024}))),
        (
            json!({"sysctl": [{"net.core.somaxconn": "16384"}]}),
            host(json!({"Sysctls": {"net.core.somaxconn": "16384"}})),
        ),
        (
            json!({"ulimit": [{"nofile": "2048:4096", "nproc": 4242}]}),
            host(
                json!({"Ulimits": [{"Name": "nofile", "Soft": 2048, "Hard": 4096}, {"Name": "nproc", "Soft": 4242, "Hard": 4242}]}),
            ),
        ),
        // Rights.
        (
            json!({"privileged": true}),
            host(json!({"Privileged": true})),
        ),
        (
            json!({"cap_add": ["net_raw", "CAP_SYS_ADMIN"], "cap_drop": ["chown"]}),
            host(json!({"CapAdd": ["CAP_NET_RAW", "CAP_SYS_ADMIN"], "CapDrop": ["CAP_CHOWN"]})),
        ),
        (
            json!({"cap_drop": ["all"]}),
            host(json!({"CapDrop": ["ALL"]})),
        ),
        (
            json!({"security_opt": ["no-new-privileges"]}),
            host(json!({"SecurityOpt": ["no-new-privileges"]})),
        ),
        (
            json!({"devices": [{"host_path": "/dev/zero"}]}),
            host(
                json!({"Devices": [{"PathOnHost": "/dev/zero", "PathInContainer": "/dev/zero", "CgroupPermissions": "rwm"}]}),
            ),
        ),
        (
            json!({"devices": [{"host_path": "/dev/null", "container_path": "/dev/n", "cgroup_permissions": "r"}]}),
            host(
                json!({"Devices": [{"PathOnHost": "/dev/null", "PathInContainer": "/dev/n", "CgroupPermissions": "r"}]}),
            ),
        ),
        (
            json!({"group_add": ["video"]}),
            host(json!({"GroupAdd": ["video"]})),
        ),
        (
            json!({"ipc_mode": "host", "pid_mode": "host", "userns_mode": "host", "uts_mode": "host"}),
            host(
                json!({"IpcMode": "host", "PidMode": "host", "UsernsMode": "host", "UTSMode": "host"}),
            ),
        ),
        (
            json!({"cgroupns": "private"}),
            host(json!({"CgroupnsMode": "private"})),
        ),
        (
            json!({"runtime": "nvidia"}),
            host(json!({"Runtime": "nvidia"})),
        ),
        (json!({"init": true}), host(json!({"Init": true}))),
        // Logs.
        (
            json!({"logging": [{"type": "journald", "config": [{"tag": "t", "async": true}]}]}),
            host(
                json!({"LogConfig": {"Type": "journald", "Config": {"tag": "t", "async": "true"}}}),
            ),
        ),
        (
            json!({"logging": [{"driver": "fluentd"}]}),
            host(json!({"LogConfig": {"Type": "fluentd"}})),
        ),
        // Options of the pull, which the request does not have.
        (
            json!({"force_pull": true, "auth_soft_fail": true, "image_pull_timeout": "10m", "auth": [{"username": "u"}]}),
            json!({}),
        ),
    ];
    for (config, want) in table {
        assert_eq!(added(&config, &open()), want, "{config}");
    }
}

#[test]
fn a_node_refuses_what_its_operator_does_not_allow() {
    let config = EngineConfig {
        pids_limit: 50,
        allow_host_modes: Vec::new(),
        ..EngineConfig::default()
    };
    let closed = Settings {
        config,
        ..Settings::new("/s".into(), "node".to_owned())
    };
    let table = [
        (
            json!({"privileged": true}),
            "drivers.docker.allow_privileged",
        ),
        (
            json!({"cap_add": ["NET_RAW"]}),
            "option cap_add: this node does not allow NET_RAW",
        ),
        (
            json!({"runtime": "kata"}),
            "drivers.docker.allow_runtimes: runc, nvidia",
        ),
        (
            json!({"volumes": ["/etc:/e"]}),
            "\"/etc\" is outside of the allocation's directory",
        ),
        (
            json!({"volumes": ["../../../x:/e"]}),
            "drivers.docker.volumes = true",
        ),
        (
            json!({"volumes": ["v:/e"], "volume_driver": "nfs"}),
            "option volume_driver",
        ),
        (
            json!({"mount": [{"type": "bind", "source": "/etc", "target": "/e"}]}),
            "option mount: \"/etc\"",
        ),
        (
            json!({"mount": [{"target": "/e", "volume_options": [{"driver_config": [{"name": "local"}]}]}]}),
            "driver_config",
        ),
        (
            json!({"ipc_mode": "host"}),
            "option ipc_mode: this node does not share",
        ),
        (json!({"pid_mode": "host"}), "option pid_mode"),
        (json!({"userns_mode": "host"}), "option userns_mode"),
        (json!({"uts_mode": "host"}), "option uts_mode"),
        (json!({"pids_limit": 51}), "option pids_limit: 51 is above"),
    ];
    for (config, want) in table {
        let error = request(&task(&config), &closed).unwrap_err();
        assert!(error.contains(want), "{config}: {error}");
        // The same is possible where the operator allows it.
        let mut open = open();
        open.config.allow_runtimes.push("kata".to_owned());
        assert!(request(&task(&config), &open).is_ok(), "{config}");
    }
    // The engine gives NET_RAW by default, this node does not.
    let plain = request(&task(&json!({})), &closed).unwrap();
    assert_eq!(plain["HostConfig"]["CapDrop"], json!(["CAP_NET_RAW"]));
    assert_eq!(plain["HostConfig"]["PidsLimit"], json!(50));
    // Paths inside of the allocation's directory need no permission.
    let config = json!({"volumes": ["local/x:/y", "../alloc/data:/d"], "mount": [{"type": "bind", "source": "secrets/k", "target": "/k"}]});
    assert!(request(&task(&config), &closed).is_ok());
}

#[test]
fn wrong_options_are_named_with_their_correction() {
    let table = [
        (json!({"image": ""}), "option image is missing"),
        (
            json!({"image": "UPPER"}),
            "image \"UPPER\" has characters other than",
        ),
        (json!({"nope": 1}), "unknown field `nope`"),
        (json!({"ports": ["htp"]}), "the group has no port \"htp\""),
        (
            json!({"port_map": [{"http": "x"}]}),
            "\"x\" of \"http\" is not a valid port",
        ),
        (
            json!({"ports": ["http"], "port_map": [{"db": 1}]}),
            "exclude each other",
        ),
        (json!({"volumes": ["/data"]}), "has no target"),
        (json!({"volumes": [":/data"]}), "the source is empty"),
        (
            json!({"mount": [{"type": "npipe", "target": "/x"}]}),
            "use bind, volume or tmpfs",
        ),
        (json!({"mount": [{"type": "tmpfs"}]}), "target is missing"),
        (json!({"mount": ["/x"]}), "must be a block"),
        (
            json!({"mount": [{"type": "bind", "source": "/a", "target": "/b", "bind_options": [{"propagation": "wide"}]}]}),
            "unknown propagation",
        ),
        (json!({"devices": ["/dev/dri"]}), "must be a block"),
        (json!({"devices": [{}]}), "host_path is missing"),
        (
            json!({"devices": [{"host_path": "/dev/x", "cgroup_permissions": "rx"}]}),
            "others than r, w and m",
        ),
        (
            json!({"ulimit": [{"nofile": "many"}]}),
            "is not a valid limit",
        ),
        (
            json!({"cpu_hard_limit": true, "cpu_cfs_period": 10}),
            "outside of 1000 to 1000000",
        ),
        (
            json!({"logging": [{"type": "a", "driver": "b"}]}),
            "both type and driver",
        ),
        (json!({"logging": [{}, {}]}), "twice"),
        (json!({"cgroupns": "x"}), "use host or private"),
        (json!({"image_pull_timeout": "soon"}), "is not a duration"),
    ];
    for (config, want) in table {
        let error = request(&task(&config), &open()).unwrap_err();
        assert!(error.contains(want), "{config}: {error}");
    }
}

#[test]
fn resources_of_the_task_are_limits_of_the_container() {
    let limits = |change: fn(&mut TaskConfig)| {
        let mut task = task(&json!({}));
        change(&mut task);
        let plain = request(&self::task(&json!({})), &open()).unwrap();
        let request = request(&task, &open()).unwrap();
        (
            difference(&request["HostConfig"], &plain["HostConfig"]),
            difference(&plain["HostConfig"], &request["HostConfig"]),
        )
    };
    let (memory, _) = limits(|task| task.resources.memory_max = MemoryMax::Mib(128));
    let want =
        json!({"Memory": 134_217_728, "MemorySwap": 134_217_728, "MemoryReservation": 67_108_864});
    assert_eq!(memory, want);
    let (unlimited, lost) = limits(|task| task.resources.memory_max = MemoryMax::Unlimited);
    assert_eq!(unlimited, json!({"MemoryReservation": 67_108_864}));
    assert_eq!(
        lost,
        json!({"Memory": 67_108_864, "MemorySwap": 67_108_864})
    );
    let (cores, _) = limits(|task| task.resources.cores = vec![1, 2, 3]);
    assert_eq!(cores, json!({"CpusetCpus": "1-3"}));
    let (least, _) = limits(|task| task.resources.cpu_mhz = 1);
    assert_eq!(least, json!({"CpuShares": 2}));
    let (mount, _) = limits(|task| {
        task.mounts = vec![TaskMount {
            source: "/srv/data".to_owned(),
            destination: "/data".to_owned(),
            read_only: true,
            is_shared: false,
        }];
    });
    let want = json!({"Mounts": [{"Type": "bind", "Source": "/srv/data", "Target": "/data", "ReadOnly": true}]});
    assert_eq!(mount, want);
}

#[test]
fn ports_of_the_tasks_own_resources_are_published_unless_ports_are_named() {
    let published = |config: Value| -> Vec<String> {
        let mut task = task(&config);
        let own = |label: &str, value| AllocatedPort {
            label: label.to_owned(),
            value,
            to: value,
            host_ip: "10.0.0.1".to_owned(),
            task: "web".to_owned(),
            ..AllocatedPort::default()
        };
        let ports = [own("ui", 9_998), own("lb", 20_002)];
        task.ports = ports.into_iter().chain(task.ports).collect();
        let request = request(&task, &open()).unwrap();
        let bindings = request["HostConfig"]["PortBindings"].as_object();
        let all = bindings.into_iter().flatten();
        let tcp = all.filter(|(inside, _)| inside.ends_with("/tcp"));
        tcp.map(|(inside, at)| format!("{inside} {}", at[0]["HostPort"].as_str().unwrap()))
            .collect()
    };
    assert_eq!(
        published(json!({"network_mode": "host"})),
        ["20002/tcp 20002", "9998/tcp 9998"]
    );
    assert_eq!(
        published(json!({"port_map": [{"lb": 80, "db": 5433}]})),
        ["5433/tcp 5432", "80/tcp 20002", "9998/tcp 9998"]
    );
    assert_eq!(
        published(json!({"ports": ["http", "ui"]})),
        ["80/tcp 20001", "9998/tcp 9998"]
    );
}

#[test]
fn the_old_port_map_sets_the_ports_variable_to_the_port_inside() {
    let mut task = task(&json!({"port_map": [{"http": 8080}]}));
    task.env
        .insert("NOMAD_PORT_http".to_owned(), "20001".to_owned());
    let request = request(&task, &open()).unwrap();
    assert_eq!(request["Env"], json!(["NOMAD_PORT_http=8080"]));
}

#[test]
fn relative_sources_are_checked_on_disk() {
    let task = task(&json!({
        "volumes": ["local/x:/y", "/etc:/e"],
        "mount": [{"type": "bind", "source": "a/../b", "target": "/b"}, {"source": "v", "target": "/v"}],
    }));
    let options = crate::config_block::read(&task, EngineKind::Docker).unwrap();
    let root = format!("/a/{}/web", AllocId::from_random(1));
    let want = [format!("{root}/local/x"), format!("{root}/b")].map(std::path::PathBuf::from);
    assert_eq!(host_paths(&task, &options), want);
}

#[test]
fn a_task_in_its_allocations_network_joins_the_pause_container() {
    let mut task = task(&json!({
        "ports": ["http"],
        "hostname": "own",
        "network_mode": "host",
        "network_aliases": ["web"],
        "dns_servers": ["9.9.9.9"],
        "extra_hosts": ["db:10.0.0.5"],
    }));
    task.network = Some(task_drivers::TaskNetwork {
        namespace: "/run/kafila/netns/1".into(),
        hosts: "/s/hosts".into(),
        resolv_conf: "/s/resolv.conf".into(),
    });
    let request = request(&task, &open()).unwrap();
    let host = &request["HostConfig"];
    let pause = format!("container:kafila_init_{}", task.id.alloc_id);
    assert_eq!(host["NetworkMode"], pause);
    // The engine refuses all of these for a joined network.
    for name in [
        "PortBindings",
        "ExtraHosts",
        "Dns",
        "DnsSearch",
        "DnsOptions",
    ] {
        assert!(host.get(name).is_none_or(Value::is_null), "{name}: {host}");
    }
    for name in ["Hostname", "ExposedPorts", "NetworkingConfig"] {
        assert!(
            request.get(name).is_none_or(Value::is_null),
            "{name}: {request}"
        );
    }
    let binds = host["Binds"].as_array().unwrap();
    for bind in ["/s/hosts:/etc/hosts", "/s/resolv.conf:/etc/resolv.conf"] {
        assert!(binds.iter().any(|it| it == bind), "{binds:?}");
    }
}
