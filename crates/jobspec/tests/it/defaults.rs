//! Defaults: job files and the canonical values that Nomad was recorded to make of them.
//!
//! Left out: node pool, datacenters, network mode and host network, the payload rule of a parameterized
//! job, identities and implied constraints, which Nomad's server fills in later than its canonical form;
//! and the job's own reschedule and migrate blocks, which it drops later.

use serde_json::{Value, json};

use crate::support::{admit, file};

/// Returns the canonical job in the JSON of the HTTP API.
fn canonical(job: &str, group: &str, task: &str) -> Value {
    let text = file(job, group, task);
    let admitted = admit(&text).unwrap_or_else(|errors| panic!("{errors}\nin\n{text}"));
    serde_json::to_value(job_fields::Job::from(&admitted.job)).unwrap()
}

/// Checks that `found` has the members of `expected`; members of Nomad that no job has here are
/// absent from both.
fn has(found: &Value, expected: &Value, of: &str) {
    let (Some(found), Some(expected)) = (found.as_object(), expected.as_object()) else {
        assert_eq!(found, expected, "{of}");
        return;
    };
    for (key, value) in expected {
        let found = found.get(key).unwrap_or(&Value::Null);
        assert_eq!(found, value, "{key} of {of}");
    }
}

#[test]
fn a_job_has_the_recorded_defaults() {
    let job = canonical("", "", "");
    let expected = json!({
        "AllAtOnce": false, "Dispatched": false, "Name": "a", "Namespace": "default",
        "Priority": 50, "Region": "global", "Stop": false, "Type": "service", "Version": 0,
    });
    has(&job, &expected, "a job");
}

#[test]
fn a_group_has_the_recorded_defaults_of_its_type() {
    let service_restart = json!({"Attempts": 2, "Delay": 15_000_000_000_u64,
        "Interval": 1_800_000_000_000_u64, "Mode": "fail", "RenderTemplates": false});
    let batch_restart = json!({"Attempts": 3, "Delay": 15_000_000_000_u64,
        "Interval": 86_400_000_000_000_u64, "Mode": "fail", "RenderTemplates": false});
    let update = json!({"AutoPromote": false, "AutoRevert": false, "Canary": 0,
        "HealthCheck": "checks", "HealthyDeadline": 300_000_000_000_u64, "MaxParallel": 1,
        "MinHealthyTime": 10_000_000_000_u64, "ProgressDeadline": 600_000_000_000_u64,
        "Stagger": 30_000_000_000_u64});
    let migrate = json!({"HealthCheck": "checks", "HealthyDeadline": 300_000_000_000_u64,
        "MaxParallel": 1, "MinHealthyTime": 10_000_000_000_u64});
    let service_reschedule = json!({"Attempts": 0, "Delay": 30_000_000_000_u64,
        "DelayFunction": "exponential", "Interval": 0, "MaxDelay": 3_600_000_000_000_u64,
        "Unlimited": true});
    let batch_reschedule = json!({"Attempts": 1, "Delay": 5_000_000_000_u64,
        "DelayFunction": "constant", "Interval": 86_400_000_000_000_u64, "MaxDelay": 0,
        "Unlimited": false});
    let null = Value::Null;
    for (job_type, restart, reschedule, update, migrate) in [
        (
            "service",
            &service_restart,
            &service_reschedule,
            &update,
            &migrate,
        ),
        ("batch", &batch_restart, &batch_reschedule, &null, &null),
        ("system", &service_restart, &null, &update, &null),
        ("sysbatch", &batch_restart, &null, &null, &null),
    ] {
        let job = canonical(&format!("  type = {job_type:?}"), "", "");
        let expected = json!({
            "Count": 1,
            "EphemeralDisk": {"Migrate": false, "SizeMB": 300, "Sticky": false},
            "RestartPolicy": restart, "ReschedulePolicy": reschedule, "Update": update,
            "Migrate": migrate,
        });
        has(&job["TaskGroups"][0], &expected, job_type);
        // The job shows the strategy that its groups inherit.
        has(&job["Update"], update, job_type);
        has(
            &job["TaskGroups"][0]["Tasks"][0]["RestartPolicy"],
            restart,
            job_type,
        );
    }
}

#[test]
fn a_task_has_the_recorded_defaults() {
    let job = canonical("", "", "");
    let task = &job["TaskGroups"][0]["Tasks"][0];
    let expected = json!({
        "KillSignal": "", "KillTimeout": 5_000_000_000_u64, "Leader": false, "ShutdownDelay": 0,
        "User": "", "LogConfig": {"Disabled": false, "MaxFileSizeMB": 10, "MaxFiles": 10},
        "Resources": {"CPU": 100, "Cores": 0, "MemoryMB": 300, "MemoryMaxMB": 0, "Devices": null, "DiskMB": 0, "Networks": null},
    });
    has(task, &expected, "a task");
    // Shown by the server for every task.
    let expected = json!({"Name": "default", "Audience": ["nomadproject.io"], "Env": false,
        "File": false, "TTL": 0});
    has(&task["Identity"], &expected, "identity");
}

/// A block of a job, group or task, its place, and its value there.
type Row = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    Value,
);

#[test]
fn a_block_is_completed_as_recorded() {
    let table: [Row; 38] = [
        (
            "",
            "restart {\n attempts = 3\n delay = \"20s\"\n mode = \"delay\"\n }",
            "",
            "/TaskGroups/0/RestartPolicy",
            json!({"Attempts": 3, "Delay": 20_000_000_000_u64, "Interval": 1_800_000_000_000_u64, "Mode": "delay"}),
        ),
        (
            "",
            "restart {\n attempts = 5\n interval = \"3m\"\n delay = \"10s\"\n }",
            "",
            "/TaskGroups/0/RestartPolicy",
            json!({"Attempts": 5, "Delay": 10_000_000_000_u64, "Interval": 180_000_000_000_u64, "Mode": "fail"}),
        ),
        (
            "type = \"batch\"",
            "restart {\n attempts = 0\n mode = \"fail\"\n }",
            "",
            "/TaskGroups/0/RestartPolicy",
            json!({"Attempts": 0, "Delay": 15_000_000_000_u64, "Interval": 86_400_000_000_000_u64, "Mode": "fail", "RenderTemplates": false}),
        ),
        (
            "",
            "",
            "restart {\n attempts = 5\n delay = \"30s\"\n }",
            "/TaskGroups/0/Tasks/0/RestartPolicy",
            json!({"Attempts": 5, "Delay": 30_000_000_000_u64, "Interval": 1_800_000_000_000_u64, "Mode": "fail", "RenderTemplates": false}),
        ),
        (
            "",
            "reschedule {\n attempts = 2\n interval = \"5m\"\n unlimited = false\n }",
            "",
            "/TaskGroups/0/ReschedulePolicy",
            json!({"Attempts": 2, "Delay": 30_000_000_000_u64, "DelayFunction": "exponential",
                "Interval": 300_000_000_000_u64, "MaxDelay": 3_600_000_000_000_u64, "Unlimited": false}),
        ),
        (
            "",
            "reschedule {\n attempts = 0\n }",
            "",
            "/TaskGroups/0/ReschedulePolicy",
            json!({"Attempts": 0, "Delay": 30_000_000_000_u64, "DelayFunction": "exponential", "Interval": 0,
                "MaxDelay": 3_600_000_000_000_u64, "Unlimited": true}),
        ),
        (
            "",
            "reschedule {\n max_delay = \"30s\"\n }",
            "",
            "/TaskGroups/0/ReschedulePolicy",
            json!({"Attempts": 0, "Delay": 30_000_000_000_u64, "DelayFunction": "exponential", "Interval": 0,
                "MaxDelay": 30_000_000_000_u64, "Unlimited": true}),
        ),
        (
            "type = \"batch\"",
            "reschedule {\n attempts = 0\n unlimited = false\n }",
            "",
            "/TaskGroups/0/ReschedulePolicy",
            json!({"Attempts": 0, "Delay": 5_000_000_000_u64, "DelayFunction": "constant",
                "Interval": 86_400_000_000_000_u64, "MaxDelay": 0, "Unlimited": false}),
        ),
        (
            "update {\n max_parallel = 1\n stagger = \"10s\"\n }",
            "",
            "",
            "/TaskGroups/0/Update",
            json!({"AutoPromote": false, "AutoRevert": false, "Canary": 0, "HealthCheck": "checks",
                "HealthyDeadline": 300_000_000_000_u64, "MaxParallel": 1, "MinHealthyTime": 10_000_000_000_u64,
                "ProgressDeadline": 600_000_000_000_u64, "Stagger": 10_000_000_000_u64}),
        ),
        (
            "update {\n health_check = \"task_states\"\n min_healthy_time = \"1m\"\n }",
            "",
            "",
            "/Update",
            json!({"AutoPromote": false, "AutoRevert": false, "Canary": 0, "HealthCheck": "task_states",
                "HealthyDeadline": 300_000_000_000_u64, "MaxParallel": 1, "MinHealthyTime": 60_000_000_000_u64,
                "ProgressDeadline": 600_000_000_000_u64, "Stagger": 30_000_000_000_u64}),
        ),
        (
            "type = \"system\"\nupdate {\n canary = 1\n healthy_deadline = \"3m\"\n }",
            "update {\n canary = 2\n }",
            "",
            "/Update",
            json!({"Canary": 1, "HealthCheck": "checks", "HealthyDeadline": 180_000_000_000_u64, "MaxParallel": 1}),
        ),
        (
            "type = \"batch\"\nparameterized {\n meta_required = [\"repo\", \"folder\"]\n }",
            "",
            "",
            "/ParameterizedJob/MetaRequired",
            json!(["repo", "folder"]),
        ),
        (
            "type = \"batch\"\nparameterized {\n meta_optional = [\"requests\", \"clients\"]\n }",
            "",
            "",
            "/ParameterizedJob/MetaOptional",
            json!(["requests", "clients"]),
        ),
        (
            "",
            "task \"u\" {\n driver = \"docker\"\n config {\n image = \"redis:7\"\n image_pull_timeout = \"10m\"\n }\n }",
            "",
            "/TaskGroups/0/Tasks/0/Config/image_pull_timeout",
            json!("10m"),
        ),
        (
            "update {\n canary = 1\n }",
            "update {\n healthy_deadline = \"9m\"\n }",
            "",
            "/TaskGroups/0/Update",
            json!({"Canary": 1, "HealthyDeadline": 540_000_000_000_u64, "MaxParallel": 1}),
        ),
        (
            "",
            "migrate {\n max_parallel = 3\n }",
            "",
            "/TaskGroups/0/Migrate",
            json!({"HealthCheck": "checks", "HealthyDeadline": 300_000_000_000_u64, "MaxParallel": 3,
                "MinHealthyTime": 10_000_000_000_u64}),
        ),
        (
            "",
            "disconnect {\n lost_after = \"40s\"\n }",
            "",
            "/TaskGroups/0/Disconnect",
            json!({"LostAfter": 40_000_000_000_u64, "Reconcile": "best_score", "Replace": true}),
        ),
        (
            "",
            "ephemeral_disk {\n migrate = true\n }",
            "",
            "/TaskGroups/0/EphemeralDisk",
            json!({"Migrate": true, "SizeMB": 300, "Sticky": false}),
        ),
        (
            "",
            "ephemeral_disk {\n sticky = true\n }",
            "",
            "/TaskGroups/0/EphemeralDisk",
            json!({"Migrate": false, "SizeMB": 300, "Sticky": true}),
        ),
        (
            "",
            "spread {\n attribute = node.datacenter\n }",
            "",
            "/TaskGroups/0/Spreads/0",
            json!({"Attribute": "${node.datacenter}", "Weight": 50}),
        ),
        (
            "",
            "scaling {\n max = 10\n }",
            "",
            "/TaskGroups/0/Scaling",
            json!({"Enabled": true, "Min": 1, "Max": 10, "Type": "horizontal"}),
        ),
        (
            "",
            "scaling {\n min = 2\n max = 10\n }",
            "",
            "/TaskGroups/0/Count",
            json!(2),
        ),
        (
            "",
            "scaling {\n min = 0\n max = 10\n enabled = false\n }",
            "",
            "/TaskGroups/0/Count",
            json!(0),
        ),
        (
            "",
            "",
            "logs {\n max_files = 3\n }",
            "/TaskGroups/0/Tasks/0/LogConfig",
            json!({"Disabled": false, "MaxFileSizeMB": 10, "MaxFiles": 3}),
        ),
        (
            "",
            "",
            "resources {\n cores = 2\n }",
            "/TaskGroups/0/Tasks/0/Resources",
            json!({"CPU": 0, "Cores": 2, "MemoryMB": 300}),
        ),
        (
            "",
            "",
            "resources {\n device \"nvidia/gpu\" {}\n }",
            "/TaskGroups/0/Tasks/0/Resources/Devices/0",
            json!({"Name": "nvidia/gpu", "Count": 1}),
        ),
        (
            "type = \"batch\"\nperiodic {\n cron = \"@daily\"\n }",
            "",
            "",
            "/Periodic",
            json!({"Enabled": true, "ProhibitOverlap": false, "Spec": "@daily", "Specs": null,
                "SpecType": "cron", "TimeZone": "UTC"}),
        ),
        (
            "type = \"batch\"\nperiodic {\n crons = [\"@daily\"]\n prohibit_overlap = true\n }",
            "",
            "",
            "/Periodic",
            json!({"Enabled": true, "ProhibitOverlap": true, "Spec": null, "Specs": ["@daily"],
                "SpecType": "cron", "TimeZone": "UTC"}),
        ),
        (
            "reschedule {\n delay = \"9s\"\n delay_function = \"constant\"\n unlimited = true\n }",
            "",
            "",
            "/TaskGroups/0/ReschedulePolicy",
            json!({"Attempts": 0, "Delay": 9_000_000_000_u64, "DelayFunction": "constant", "Interval": 0,
                "MaxDelay": 3_600_000_000_000_u64, "Unlimited": true}),
        ),
        (
            "migrate {\n max_parallel = 3\n }",
            "",
            "",
            "/TaskGroups/0/Migrate",
            json!({"HealthCheck": "checks", "HealthyDeadline": 300_000_000_000_u64, "MaxParallel": 3,
                "MinHealthyTime": 10_000_000_000_u64}),
        ),
        (
            "spread {\n attribute = node.datacenter\n }",
            "",
            "",
            "/Spreads/0",
            json!({"Attribute": "${node.datacenter}", "Weight": 50}),
        ),
        (
            "",
            "volume \"data\" {\n type = \"host\"\n source = \"data\"\n }",
            "volume_mount {\n volume = \"data\"\n destination = \"/data\"\n }",
            "/TaskGroups/0/Tasks/0/VolumeMounts/0",
            json!({"Destination": "/data", "PropagationMode": "private", "ReadOnly": false, "Volume": "data"}),
        ),
        (
            "constraint {\n attribute = attr.cpu.arch\n value = \"amd64\"\n }",
            "",
            "",
            "/Constraints/0",
            json!({"LTarget": "${attr.cpu.arch}", "Operand": "=", "RTarget": "amd64"}),
        ),
        (
            "",
            "",
            "artifact {\n source = \"https://files.example/a.tar.gz\"\n }",
            "/TaskGroups/0/Tasks/0/Artifacts/0",
            json!({"GetterMode": "any", "GetterSource": "https://files.example/a.tar.gz", "RelativeDest": "local/"}),
        ),
        (
            "",
            "",
            "template {\n data = \"a\"\n destination = \"local/a\"\n }",
            "/TaskGroups/0/Tasks/0/Templates/0",
            json!({"LeftDelim": "{{", "RightDelim": "}}", "ChangeMode": "restart", "Perms": "0644",
                "Splay": 5_000_000_000_u64}),
        ),
        (
            "",
            "",
            "vault {\n change_mode = \"signal\"\n change_signal = \"sighup\"\n }",
            "/TaskGroups/0/Tasks/0/Vault",
            json!({"ChangeMode": "signal", "ChangeSignal": "SIGHUP", "Env": true}),
        ),
        (
            "",
            "",
            "resources {\n device \"nvidia/gpu\" {\n affinity {\n attribute = device.model\n value = \"a\"\n }\n }\n }",
            "/TaskGroups/0/Tasks/0/Resources/Devices/0/Affinities/0",
            json!({"LTarget": "${device.model}", "Operand": "=", "RTarget": "a", "Weight": 50}),
        ),
        (
            "",
            "service {\n name = \"s\"\n port = \"80\"\n check_restart {\n limit = 3\n grace = \"90s\"\n }\n check {\n type = \"tcp\"\n interval = \"10s\"\n timeout = \"2s\"\n }\n }",
            "",
            "/TaskGroups/0/Services/0/Checks/0/CheckRestart",
            json!({"Grace": 90_000_000_000_u64, "IgnoreWarnings": false, "Limit": 3}),
        ),
    ];
    for (job, group, task, pointer, expected) in table {
        let canonical = canonical(job, group, task);
        let found = canonical.pointer(pointer).unwrap_or(&Value::Null);
        has(
            found,
            &expected,
            &format!("{pointer} of {job}{group}{task}"),
        );
    }
}
