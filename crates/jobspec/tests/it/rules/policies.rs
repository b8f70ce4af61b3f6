//! Restarting, rescheduling, updating and migrating.

use std::time::Duration;

use model::job::{DelayFunction, RestartMode};

use super::check;
use crate::support::{admit, file};

#[test]
#[rustfmt::skip]
fn restarts() {
    let restart = |body: &str| -> &'static str { format!("    restart {{\n{body}\n    }}").leak() };
    check(&[
        ("", restart("mode = \"never\""), "", "$g.restart.mode", "Unsupported restart mode: \"never\""),
        ("", restart("interval = \"4s\""), "",
            "$g.restart.interval", "Interval can not be less than 5s; got 4s"),
        ("", restart("attempts = 5\ninterval = \"10s\""), "",
            "$g.restart.interval", "the tasks cannot restart 5 times in an interval of 10s with a delay of 15s"),
        ("", restart("attempts = 0\nmode = \"delay\""), "",
            "$g.restart.mode", "Restart policy \"delay\" with 0 attempts is ambiguous"),
        ("", restart("attempts = -1"), "", "$g.restart.attempts", "must be between 0 and"),
        ("", "", restart("interval = \"4s\""),
            "$t.restart.interval", "Interval can not be less than 5s; got 4s"),
    ]);
    // A task's restarts may exceed the interval.
    admit(&file("", "", restart("delay = \"20m\""))).unwrap();
    // The limits themselves are accepted.
    admit(&file("", restart("attempts = 2\ninterval = \"30s\""), "")).unwrap();
    admit(&file("", restart("attempts = 1\ninterval = \"5s\"\ndelay = \"5s\""), "")).unwrap();
    let job = admit(&file(
        "",
        restart("attempts = 4\nmode = \"delay\""),
        restart("delay = \"1s\"\nattempts = 0\nmode = \"fail\""),
    ))
    .unwrap()
    .job;
    let rendering = restart("render_templates = true");
    let rendering = admit(&file("", rendering, restart("attempts = 0"))).unwrap().job;
    assert!(rendering.task_groups[0].tasks[0].restart.render_templates);
    assert!(!job.task_groups[0].restart.render_templates);
    let group = &job.task_groups[0];
    assert_eq!(
        (group.restart.attempts, group.restart.mode),
        (4, RestartMode::Delay)
    );
    let task = group.tasks[0].restart;
    assert_eq!((task.attempts, task.mode), (0, RestartMode::Fail));
    assert_eq!(
        (task.delay, task.interval),
        (Duration::from_secs(1), group.restart.interval)
    );
}

#[test]
#[rustfmt::skip]
fn reschedules() {
    let block =
        |body: &str| -> &'static str { format!("    reschedule {{\n{body}\n    }}").leak() };
    let limited = "unlimited = false\ndelay_function = \"constant\"\n";
    let limited = |body: &str| block(&format!("{limited}{body}"));
    check(&[
        ("", block("delay = \"4s\""), "",
            "$g.reschedule.delay", "Delay cannot be less than 5s; got 4s"),
        ("", block("delay_function = \"linear\""), "",
            "$g.reschedule.delay_function", "Invalid delay function \"linear\", must be one of [\"constant\""),
        ("", block("max_delay = \"10s\""), "",
            "$g.reschedule.max_delay", "Max Delay cannot be less than Delay"),
        ("", block("attempts = 1"), "",
            "$g.reschedule.attempts", "If Attempts >0, Unlimited cannot also be set to true"),
        ("", limited("attempts = 1"), "",
            "$g.reschedule.interval", "Interval must be a non zero value if Attempts > 0"),
        ("", limited("attempts = 1\ninterval = \"14s\""), "",
            "$g.reschedule.interval", "Interval cannot be less than 15s; got 14s"),
        ("", limited("attempts = 4\ninterval = \"1m\""), "",
            "$g.reschedule.interval", "interval of 2m0s or more; got 1m0s"),
        ("  reschedule {\n    delay = \"1s\"\n  }", "", "",
            "$g.reschedule.delay", "Delay cannot be less than 5s"),
    ]);
    // The limits themselves are accepted.
    admit(&file("", limited("attempts = 4\ninterval = \"2m\""), "")).unwrap();
    admit(&file("", limited("attempts = 1\ninterval = \"15s\"\ndelay = \"5s\""), "")).unwrap();
    admit(&file("", block("max_delay = \"30s\""), "")).unwrap();
    // Switched off: what else stands there is never used.
    admit(&file(
        "",
        block("attempts = 0\nunlimited = false\ndelay = \"1s\""),
        "",
    ))
    .unwrap();
    let job = admit(&file(
        "  reschedule {\n    delay = \"10s\"\n    delay_function = \"fibonacci\"\n  }",
        block("delay = \"20s\""),
        "",
    ));
    let policy = job.unwrap().job.task_groups[0].reschedule.unwrap();
    assert_eq!(
        (policy.delay, policy.delay_function),
        (Duration::from_secs(20), DelayFunction::Fibonacci)
    );
    assert_eq!(
        (policy.max_delay, policy.unlimited),
        (Duration::from_secs(3_600), true)
    );
}

#[test]
fn a_job_on_every_node_has_a_reschedule_policy_only_if_that_grants_attempts() {
    for job_type in ["system", "sysbatch"] {
        let policy = |of_job: &str, of_group: &str| {
            let of_job = format!("  type = \"{job_type}\"\n{of_job}");
            let job = admit(&file(of_job.leak(), String::from(of_group).leak(), ""));
            job.map(|job| job.job.task_groups[0].reschedule)
        };
        assert_eq!(policy("", "").unwrap(), None, "{job_type}");
        let unlimited = "    reschedule {\n      unlimited = true\n    }";
        let found = policy("", unlimited).unwrap().unwrap();
        assert_eq!((found.attempts, found.unlimited), (0, true));
        assert_eq!(
            (found.delay, found.delay_function, found.max_delay),
            (
                Duration::from_secs(30),
                DelayFunction::Exponential,
                Duration::from_secs(3_600)
            )
        );
        let limited = "  reschedule {\n    attempts = 2\n    interval = \"1h\"\n  }";
        let found = policy(limited, "").unwrap().unwrap();
        assert_eq!((found.attempts, found.unlimited), (2, false));
        // The job provides the fields that the group leaves out.
        let own = "    reschedule {\n      delay = \"10s\"\n    }";
        let found = policy(limited, own).unwrap().unwrap();
        assert_eq!((found.attempts, found.delay), (2, Duration::from_secs(10)));
        for refused in [
            "    reschedule {\n      attempts = 0\n    }",
            "    reschedule {\n      delay = \"10s\"\n    }",
            "    reschedule {\n      attempts = 3\n    }",
        ] {
            assert!(policy("", refused).is_err(), "{job_type}: {refused}");
        }
    }
}

#[test]
fn canaries_are_promoted_by_themselves_where_every_group_that_has_some_says_so() {
    let group = |name: &str, update: &str| {
        format!(
            "  group \"{name}\" {{\n    update {{\n{update}\n    }}\n    task \"t\" {{\n      driver = \
             \"raw_exec\"\n      config {{ command = \"/bin/true\" }}\n    }}\n  }}\n"
        )
    };
    let warnings = |groups: &[&str]| {
        let groups: String = groups
            .iter()
            .enumerate()
            .map(|(number, update)| group(&format!("g{number}"), update))
            .collect();
        let admitted = admit(&format!("job \"web\" {{\n{groups}}}\n")).unwrap();
        let update = admitted.job.task_groups[0].update.unwrap();
        assert_eq!((update.canary, update.auto_promote), (1, true));
        admitted.warnings
    };
    let (auto, asks, none) = ("canary = 1\nauto_promote = true", "canary = 1", "");
    assert_eq!(warnings(&[auto, auto, none]), [""; 0]);
    assert_eq!(
        warnings(&[auto, asks]),
        ["auto_promote must be true for all groups to enable automatic promotion"]
    );
}

#[test]
#[rustfmt::skip]
fn updates_and_migrations() {
    let update = |body: &str| -> &'static str { format!("    update {{\n{body}\n    }}").leak() };
    let migrate = |body: &str| -> &'static str { format!("    migrate {{\n{body}\n    }}").leak() };
    check(&[
        ("", update("health_check = \"http\""), "",
            "$g.update.health_check", "Invalid health check given"),
        ("", update("max_parallel = -1"), "", "$g.update.max_parallel", "must be between 0 and"),
        ("", update("canary = -1"), "", "$g.update.canary", "must be between 0 and"),
        ("  type = \"system\"", update("canary = 101"), "", "$g.update.canary", "a percentage of them, 0 to 100"),
        ("", update("auto_promote = true"), "",
            "$g.update.auto_promote", "Auto Promote requires a Canary count greater than zero"),
        ("", update("min_healthy_time = \"5m\""), "",
            "$g.update.min_healthy_time", "must be shorter than healthy_deadline"),
        ("", update("healthy_deadline = \"10m\""), "",
            "$g.update.healthy_deadline", "must be shorter than progress_deadline"),
        ("", update("stagger = \"0s\""), "", "$g.update.stagger", "stagger must be longer than zero"),
        ("  update {\n    canary = -1\n  }", "", "", "$g.update.canary", "must be between 0 and"),
        ("", migrate("health_check = \"manual\""), "",
            "$g.migrate.health_check", "Invalid health check given"),
        ("", migrate("min_healthy_time = \"6m\""), "",
            "$g.migrate.min_healthy_time", "must be shorter than healthy_deadline"),
    ]);
    admit(&file(
        "",
        update("healthy_deadline = \"10m\"\nprogress_deadline = \"0s\""),
        "",
    ))
    .unwrap();
    let job = admit(&file(
        "  update {\n    canary = 2\n    auto_revert = true\n    max_parallel = 3\n  }",
        update("max_parallel = 0\ncanary = 0"),
        "",
    ))
    .unwrap()
    .job;
    let update = job.task_groups[0].update.unwrap();
    assert_eq!(
        (update.canary, update.max_parallel, update.auto_revert),
        (0, 0, true),
        "attribute by attribute, the group wins"
    );
}
