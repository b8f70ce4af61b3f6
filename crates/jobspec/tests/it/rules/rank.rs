//! Constraints, affinities and spreads, and warnings.

use super::check;
use crate::support::{admit, file};

#[test]
#[rustfmt::skip]
fn constraints_affinities_and_spreads() {
    let constraint =
        |body: &str| -> &'static str { format!("    constraint {{\n{body}\n    }}").leak() };
    let affinity = |body: &str| -> &'static str {
        format!("    affinity {{\nattribute = meta.x\nvalue = \"1\"\n{body}\n    }}").leak()
    };
    let spread = |body: &str| -> &'static str { format!("    spread {{\n{body}\n    }}").leak() };
    check(&[
        ("", constraint("attribute = meta.x\noperator = \"\"\nvalue = 1"), "",
            "$g.constraint[0].operator", "Missing constraint operand"),
        ("", constraint("attribute = meta.x\noperator = \"~\"\nvalue = 1"), "",
            "$g.constraint[0].operator", "Unknown constraint type \"~\""),
        ("", constraint("attribute = meta.x"), "",
            "$g.constraint[0].value", "Operator \"=\" requires an RTarget"),
        ("", constraint("value = meta.x"), "",
            "$g.constraint[0].attribute", "Operator \"=\" requires an LTarget"),
        ("", constraint("attribute = meta.x\noperator = \"is_set\"\nvalue = 1"), "",
            "$g.constraint[0].value", "Operator \"is_set\" does not support an RTarget"),
        ("", constraint("attribute = meta.x\nregexp = \"(\""), "",
            "$g.constraint[0].value", "Regular expression failed to compile"),
        ("", constraint("attribute = meta.x\nversion = \"new\""), "",
            "$g.constraint[0].value", "Version constraint is invalid"),
        ("", constraint("attribute = meta.x\nsemver = \"=> 1\""), "",
            "$g.constraint[0].value", "Version constraint is invalid"),
        ("", constraint("operator = \"distinct_hosts\"\nvalue = \"maybe\""), "",
            "$g.constraint[0].value", "distinct_hosts takes true or false"),
        ("", constraint("operator = \"distinct_property\""), "",
            "$g.constraint[0].attribute", "distinct_property needs an attribute"),
        ("", constraint("distinct_property = meta.x\nvalue = 0"), "",
            "$g.constraint[0].value", "1 to 4294967295; got \"0\""),
        ("", constraint("distinct_property = meta.x\nvalue = 5000000000"), "",
            "$g.constraint[0].value", "1 to 4294967295; got \"5000000000\""),
        ("", constraint("attribute = \"$${foo}\"\nvalue = 1"), "",
            "$g.constraint[0].attribute", "\"${foo}\" names nothing of a node"),
        ("", constraint("attribute = \"$${env.X}\"\noperator = \"is_set\""), "",
            "$g.constraint[0].attribute", "names nothing of a node"),
        ("", constraint("attribute = \"$${node.nope}\"\nvalue = 1"), "",
            "$g.constraint[0].attribute", "names nothing of a node"),
        ("", constraint("attribute = \"$${attr.a}-b\"\nvalue = 1"), "",
            "$g.constraint[0].attribute", "names nothing of a node"),
        ("", affinity("weight = 0"), "", "$g.affinity[0].weight", "Affinity weight cannot be zero"),
        ("", affinity("weight = 101"), "",
            "$g.affinity[0].weight", "must be within the range [-100,100]; got"),
        ("", affinity("operator = \"distinct_hosts\"") .replace("\"1\"", "\"true\"") .leak(), "",
            "$g.affinity[0].operator", "Unknown affinity operator"),
        ("", spread(""), "", "$g.spread[0].attribute", "Missing spread attribute"),
        ("", spread("attribute = meta.x\nweight = 101"), "",
            "$g.spread[0].weight", "must be within the range [1,100]; got 101"),
        ("", spread("attribute = meta.x\nweight = 0"), "",
            "$g.spread[0].weight", "must be within the range [1,100]; got 0"),
        ("", spread( "attribute = meta.x\ntarget \"a\" {\npercent = 60\n}\ntarget \"b\" {\npercent = 41\n}", ),
            "", "$g.spread[0]", "percentages must not be greater than 100%; got"),
        ("", spread("attribute = meta.x\ntarget \"a\" {\npercent = -1\n}"), "",
            "$g.spread[0].target[\"a\"].percent", "within the range [0,100]; got"),
        ("", spread("attribute = meta.x\ntarget \"a\" {\n}\ntarget \"a\" {\n}"), "",
            "$g.spread[0].target[\"a\"]", "already defined"),
    ]);
    for body in [
        "attribute = meta.x\noperator = \"is_not_set\"",
        "attribute = meta.x\nregexp = \"${meta.y}\"",
        "distinct_property = meta.x",
        "distinct_hosts = false",
        "attribute = node.datacenter\nvalue = \"dc1\"",
        "attribute = node.unique.id\noperator = \"is_set\"",
        "attribute = \"$${unique.hostname}\"\nvalue = 1",
        "attribute = meta.x\noperator = \"set_contains_any\"\nvalue = \"a,b\"",
    ] {
        admit(&file("", constraint(body), "")).unwrap();
    }
    let job = admit(&file("", affinity(""), "")).unwrap().job;
    assert_eq!(job.task_groups[0].affinities[0].weight, 50);
}

#[test]
#[rustfmt::skip]
fn legal_but_probably_unintended_values_are_warned_of() {
    for (job, group, task, message) in [
        ("", "    count = 2\n    update {\n      max_parallel = 3\n    }", "",
            "Update max parallel count is greater than task group count (3 > 2)"),
        ("", "", "      resources {\n        memory_max = 400\n      }",
            "Task \"g.t\" may use memory up to memory_max only where the scheduler configuration enables"),
        ("", "    constraint {\n      attribute = \"kernel.name\"\n      value = \"linux\"\n    }", "",
            "compares two fixed texts"),
        ("", "    network {\n      mbits = 10\n    }", "", "mbits in a network block is deprecated"),
        ("", "", "      resources {\n        iops = 10\n      }",
            "iops in a resources block is deprecated"),
        ("", "    task \"u\" {\n      driver = \"pot\"\n      config {\n        any = \"thing\"\n      }\n    }", "",
            "Task \"g.u\": nodes of this version have no driver \"pot\", so its group waits"),
    ] {
        let warnings = admit(&file(job, group, task)).unwrap().warnings;
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains(message), "{warnings:?}");
    }
}

#[test]
fn preferences_that_are_carried_out_need_no_warning() {
    let affinity = "  affinity {\n    attribute = meta.x\n    value = 1\n  }";
    let spread = "    spread {\n      attribute = meta.x\n    }";
    let warnings = admit(&file(affinity, spread, "")).unwrap().warnings;
    assert_eq!(warnings, Vec::<String>::new());
}

#[test]
fn max_parallel_is_compared_with_a_count_above_one() {
    let update = "    update {\n      max_parallel = 3\n    }";
    for (job_type, count, expected) in [("system", 1, 0), ("service", 1, 0), ("service", 2, 1)] {
        let job = format!("  type = {job_type:?}");
        let group = format!("    count = {count}\n{update}");
        let warnings = admit(&file(&job, &group, "")).unwrap().warnings;
        assert_eq!(warnings.len(), expected, "{warnings:?}");
    }
}

#[test]
fn a_preference_for_what_there_is_not_is_warned_about() {
    let affinity = "  affinity {\n    attribute = \"$${foo}\"\n    value = 1\n  }";
    let spread = "    spread {\n      attribute = \"$${foo}\"\n    }";
    let warnings = admit(&file(affinity, spread, "")).unwrap().warnings;
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(
        warnings[0].contains("names nothing of a node"),
        "{warnings:?}"
    );
}
