//! The options of each driver.

use super::check;
use crate::support::{admit, file};

#[test]
#[rustfmt::skip]
fn configs_of_drivers() {
    let raw = |config: &str| -> &'static str {
        format!("    task \"u\" {{\n      driver = \"raw_exec\"\n      config {{\n{config}\n      }}\n    }}").leak()
    };
    let mock = |config: &str| -> &'static str {
        format!("    task \"u\" {{\n      driver = \"mock_driver\"\n      config {{\n{config}\n      }}\n    }}").leak()
    };
    let c = |name: &str| -> &'static str { format!("$g.task[\"u\"].config.{name}").leak() };
    check(&[
        ("", raw(""), "", c("command"), "missing command"),
        ("", raw("command = \"\""), "", c("command"), "missing command"),
        ("", raw("command = []"), "", c("command"), "must be a string; got a"),
        ("", raw("command = \"x\"\nargs = \"y\""), "", c("args"), "must be a list of strings; got a"),
        ("", raw("command = \"x\"\nargs = [[]]"), "", c("args"), "must be a list of strings; got a"),
        ("", raw("command = \"a\\u0000\""), "", c("command"), "cannot include null characters"),
        ("", raw("command = \"x\"\nargs = [\"y\", \"a\\u0000\"]"), "",
            c("args"), "item 1 cannot include null characters, and has one after 1 others"),
        ("", raw("command = \"x\"\nwork_dir = \"/a\\u0000\""), "",
            c("work_dir"), "cannot include null characters"),
        ("", raw("command = \"x\"\narg = []"), "", c("arg"), "Did you mean \"args\""),
        ("", raw("command = \"x\"\ncgroup_v2_override = 1"), "",
            c("cgroup_v2_override"), "is not supported by this version"),
        ("", raw("command = \"x\"\nimage {\n}"), "", c("image"), "unknown option \"image\""),
        ("", mock("run_for = \"x\""), "", c("run_for"), "is not a duration"),
        ("", mock("run_for = \"-1s\""), "", c("run_for"), "must not be"),
        ("", mock("run_for = true"), "", c("run_for"), "must be a duration such as \"10s\"; got a"),
        ("", mock("exit_code = 1.5"), "", c("exit_code"), "must be a whole number; got a"),
        ("", mock("start_error_recoverable = \"no\""), "",
            c("start_error_recoverable"), "must be true or false; got a"),
        ("", mock("plugin_exit_after = \"1s\""), "",
            c("plugin_exit_after"), "is not supported by this version"),
    ]);
    let exec = |config: &str| -> &'static str {
        format!("    task \"u\" {{\n      driver = \"exec\"\n      config {{\n{config}\n      }}\n    }}").leak()
    };
    check(&[
        ("", exec(""), "", c("command"), "missing command"),
        ("", exec("command = \"x\"\npid_mode = \"shared\""), "",
            c("pid_mode"), "must be \"private\" or \"host\"; got \"shared\": write"),
        ("", exec("command = \"x\"\nipc_mode = true"), "",
            c("ipc_mode"), "must be \"private\" or \"host\"; got a"),
        ("", exec("command = \"x\"\ncap_add = \"kill\""), "", c("cap_add"), "must be a list of strings; got a"),
        ("", exec("command = \"x\"\ncap_add = [\"CAP_NET_RAW\", \"net_rawe\"]"), "",
            c("cap_add"), "has \"net_rawe\", which is not a capability of Linux: remove it. Did you mean \"net_raw\""),
        ("", exec("command = \"x\"\ncap_drop = [\"ALL\", \"fly\"]"), "", c("cap_drop"), "has \"fly\""),
        ("", exec("command = \"x\"\nwork_dir = \"a\""), "", c("work_dir"), "must be an absolute path"),
        ("", exec("command = \"x\"\noom_score_adj = 2000"), "", c("oom_score_adj"), "must be between"),
        ("", exec("command = \"x\"\nimage = \"y\""), "", c("image"), "unknown option \"image\" of the driver exec"),
    ]);
    let docker = |config: &str| -> &'static str {
        format!("    task \"u\" {{\n      driver = \"docker\"\n      config {{\nimage = \"redis:7\"\n{config}\n      }}\n    }}").leak()
    };
    check(&[
        ("", docker("image = \"\"").replacen("image = \"redis:7\"\n", "", 1).leak(), "", c("image"), "missing image"),
        ("", docker("imagee = \"x\""), "", c("imagee"), "Did you mean \"image\""),
        ("", docker("load = \"x.tar\""), "", c("load"), "is not supported by this version"),
        ("", docker("privileged = \"maybe\""), "", c("privileged"), "must be true or false; got a"),
        ("", docker("ports = \"http\""), "", c("ports"), "must be a list of strings; got a"),
        ("", docker("labels = \"x\""), "", c("labels"), "must be a block: { name = value }; got a"),
        ("", docker("labels {\na = [1]\n}"), "", c("labels"), "a must be a string; got a"),
        ("", docker("mount {\ntarget = \"/x\"\nsize = 1\n}"), "", c("mount"), "unknown option \"size\""),
        ("", docker("mount {\ntype = \"tmpfs\"\n}"), "", c("mount"), "has no target"),
        ("", docker("mount {\ntarget = \"/x\"\ntmpfs_options {\nsize = \"big\"\n}\n}"), "",
            c("mount"), "tmpfs_options size must be a whole number"),
        ("", docker("logging {\n}\nlogging {\n}"), "", c("logging"), "can be written only once"),
        ("", docker("devices = [\"/dev/x\"]"), "", c("devices"), "must be a block: { name = value }; got a"),
        ("", docker("image_pull_timeout = \"soon\""), "", c("image_pull_timeout"), "is not a duration"),
    ]);
    let of = |driver: &str, config: &str| -> &'static str {
        format!("    task \"u\" {{\n      driver = \"{driver}\"\n      config {{\n{config}\n      }}\n    }}").leak()
    };
    let podman = |config: &str| of("podman", &format!("image = \"docker://redis\"\n{config}"));
    check(&[
        ("", of("podman", "ports = []"), "", c("image"), "missing image"),
        ("", podman("devices {\nhost_path = \"/dev/x\"\n}"), "", c("devices"), "must be a list of strings; got a"),
        ("", podman("memory_swappiness = 101"), "", c("memory_swappiness"), "must be between 0 and 100"),
        ("", podman("entrypoint = {}"), "", c("entrypoint"), "must be a list of strings; got a"),
        ("", podman("workin_dir = \"/x\""), "", c("workin_dir"), "Did you mean \"working_dir\""),
        ("", podman("logging {\ndriver = \"journald\"\nconfig {\n}\n}"), "", c("logging"), "unknown option \"config\""),
        ("", podman("init_path = \"/x\""), "", c("init_path"), "is not supported by this version of Kafila: write init = true"),
        ("", of("java", "jar_path = \"a.jar\"\nargs = \"x\""), "", c("args"), "must be a list of strings; got a"),
        ("", of("java", "jar = \"a.jar\""), "", c("jar"), "unknown option \"jar\" of the driver java"),
        ("", of("java", "class = \"A\"\npid_mode = \"x\""), "", c("pid_mode"), "must be \"private\" or \"host\""),
        ("", of("qemu", "accelerator = \"kvm\""), "", c("image_path"), "missing image_path"),
        ("", of("qemu", "image_path = \"a\"\ndrive_interface = \"usb\""), "", c("drive_interface"), "must be \"ide\", "),
        ("", of("qemu", "image_path = \"a\"\ngraceful_shutdown = \"maybe\""), "", c("graceful_shutdown"), "must be true or false"),
    ]);
    let job = admit(&file(
        "",
        podman("entrypoint = \"/e\"\nlogging = {\ndriver = \"journald\"\noptions = [{\ntag = \"redis\"\n}]\n}\nmemory_swap = 5"),
        "",
    ))
    .unwrap()
    .job;
    let tasks = &job.task_groups[0].tasks;
    let config = &tasks.iter().find(|t| t.name == "u").unwrap().config;
    assert_eq!(
        serde_json::Value::Object(config.clone()),
        serde_json::json!({
            "image": "docker://redis", "entrypoint": "/e", "memory_swap": "5",
            "logging": [{"driver": "journald", "options": [{"tag": "redis"}]}],
        })
    );
    let job = admit(&file(
        "",
        docker("labels {\na = 1\n}\nmount {\ntarget = \"/x\"\nreadonly = \"true\"\ntmpfs_options {\nsize = \"5\"\n}\n}\nport_map {\nhttp = 80\n}"),
        "",
    ))
    .unwrap()
    .job;
    let tasks = &job.task_groups[0].tasks;
    let config = &tasks.iter().find(|t| t.name == "u").unwrap().config;
    assert_eq!(
        serde_json::Value::Object(config.clone()),
        serde_json::json!({
            "image": "redis:7",
            "labels": [{"a": 1}],
            "mount": [{"target": "/x", "readonly": true, "tmpfs_options": [{"size": 5}]}],
            "port_map": [{"http": 80}],
        })
    );
    let job = admit(&file(
        "",
        mock("run_for = \"10s\"\nexit_code = \"3\"\nkill_after = 5\nstart_block_for = \"10000h\"\nstart_error_recoverable = \"true\"\nstdout_repeat_duration = \"${meta.x}\""),
        "      config {\n        command = \"sh\"\n        args = [\"-p\", 80, true]\n      }",
    )
    .replacen("      config {\n        command = \"/bin/true\"\n      }\n", "", 1))
    .unwrap()
    .job;
    let tasks = &job.task_groups[0].tasks;
    let config = |name: &str| {
        serde_json::Value::Object(
            tasks
                .iter()
                .find(|t| t.name == name)
                .unwrap()
                .config
                .clone(),
        )
    };
    assert_eq!(
        config("t"),
        serde_json::json!({"command": "sh", "args": ["-p", "80", "true"]})
    );
    assert_eq!(
        config("u"),
        serde_json::json!({
            "run_for": "10s", "exit_code": 3, "kill_after": 5,
            "start_block_for": "10000h", "start_error_recoverable": true,
            "stdout_repeat_duration": "${meta.x}",
        })
    );
}
