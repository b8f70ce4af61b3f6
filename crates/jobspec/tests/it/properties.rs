//! Properties of any text and any job.

use std::sync::LazyLock;

use jobspec::{Colour, Inputs, canonicalise, parse, parse_api_json};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::examples;
use crate::support::NOW;

/// Whatever is read is checked and shown, too: none of it may panic.
fn read(text: &str) {
    for result in [
        parse("f", text, &Inputs::default()),
        parse_api_json("f", text),
    ] {
        match result {
            Ok(parsed) => {
                if let Err(errors) = canonicalise(&parsed.job, NOW) {
                    assert!(!errors.0.is_empty());
                    parsed.places.locate(&errors).render(Colour::Always);
                }
            }
            Err(errors) => {
                assert!(!errors.0.is_empty());
                for error in &errors.0 {
                    assert!(error.line >= 1 && error.column >= 1, "{error:?}");
                    assert!(
                        !error.summary.is_empty() && !error.detail.is_empty(),
                        "{error:?}"
                    );
                }
                errors.render(Colour::Never);
                errors.one_line_each();
            }
        }
    }
}

/// Pieces of job files, so that random ones get further than the first letter.
const PIECES: [&str; 48] = [
    "job",
    "group",
    "task",
    " ",
    "\n",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "\"",
    "=",
    "\"a\"",
    "${",
    "%{",
    "}\"",
    "<<EOT\n",
    "<<-EOT\n",
    "EOT\n",
    "# x\n",
    "/*",
    "*/",
    "//",
    ",",
    ".",
    "*",
    "[*]",
    "...",
    "=>",
    "for x in ",
    " : ",
    " if ",
    " ? ",
    "var.",
    "local.",
    "upper(",
    "variable \"a\" {\n",
    "locals {\n",
    "dynamic \"port\" {\n",
    "1",
    "1e9",
    "-",
    "!",
    "null",
    "é",
    "\\u00",
    "\u{feff}",
];

/// One change of a text.
#[derive(Clone, Debug)]
enum Edit {
    Delete { at: Index, len: usize },
    Insert { at: Index, piece: &'static str },
    Double { at: Index, len: usize, to: Index },
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        (any::<Index>(), 1..20_usize).prop_map(|(at, len)| Edit::Delete { at, len }),
        (any::<Index>(), select(&PIECES[..])).prop_map(|(at, piece)| Edit::Insert { at, piece }),
        (any::<Index>(), 1..80_usize, any::<Index>()).prop_map(|(at, len, to)| Edit::Double {
            at,
            len,
            to
        }),
    ]
}

fn apply(text: &str, edits: &[Edit]) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for edit in edits {
        if chars.is_empty() {
            break;
        }
        match edit {
            Edit::Delete { at, len } => {
                let start = at.index(chars.len());
                chars.drain(start..(start + len).min(chars.len()));
            }
            Edit::Insert { at, piece } => {
                let start = at.index(chars.len());
                chars.splice(start..start, piece.chars());
            }
            Edit::Double { at, len, to } => {
                let start = at.index(chars.len());
                let part: Vec<char> = chars[start..(start + len).min(chars.len())].to_vec();
                let to = to.index(chars.len());
                chars.splice(to..to, part);
            }
        }
    }
    chars.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_the_parser_panic(text in any::<String>()) {
        read(&text);
    }

    #[test]
    fn no_heap_of_pieces_makes_the_parser_panic(
        pieces in prop::collection::vec(select(&PIECES[..]), 0..60),
    ) {
        read(&pieces.concat());
        read(&format!("job \"a\" {{\n  meta = {}\n}}\n", pieces.concat()));
    }

    #[test]
    fn no_changed_example_makes_the_parser_panic(
        file in any::<Index>(),
        edits in prop::collection::vec(edit(), 1..6),
    ) {
        static FILES: LazyLock<Vec<(String, String)>> = LazyLock::new(examples::files);
        let files = &*FILES;
        let text = &files[file.index(files.len())].1;
        read(&apply(text, &edits));
        // The same in the API's JSON.
        let job = parse("f", text, &Inputs::default()).unwrap().job;
        read(&apply(&serde_json::to_string_pretty(&job).unwrap(), &edits));
    }

    #[test]
    fn a_canonical_job_stays_as_it_is(job in job()) {
        let Ok(admitted) = canonicalise(&job, NOW) else { return Ok(()) };
        let written = job_fields::Job::from(&admitted.job);
        let again = canonicalise(&written, NOW).map_err(|errors| TestCaseError::fail(errors.to_string()))?;
        prop_assert_eq!(&again.job, &admitted.job);
        // And through JSON.
        let json = serde_json::to_string(&written).unwrap();
        let parsed = parse_api_json("f", &json).map_err(|errors| TestCaseError::fail(errors.to_string()))?;
        prop_assert_eq!(canonicalise(&parsed.job, NOW).unwrap().job, admitted.job);
    }
}

/// Most of these jobs are valid; [`generated_jobs_are_mostly_valid`] keeps it so.
fn job() -> impl Strategy<Value = job_fields::Job> {
    let policies = (
        prop::option::of(update()),
        prop::option::of(0..100_i64),
        prop::option::of(prop::collection::vec("[a-z]{1,5}", 1..3)),
    );
    let job_type = select(&["service", "batch", "system", "sysbatch"][..]);
    let groups = prop::collection::vec(group(), 1..4);
    (job_type, policies, groups, any::<bool>()).prop_map(|(job_type, policies, groups, stop)| {
        let (update, priority, datacenters) = policies;
        let service = job_type == "service";
        let named = groups.into_iter().enumerate().map(
            |(position, mut group): (usize, job_fields::TaskGroup)| {
                group.name = Some(format!("g{position}"));
                if job_type == "system" {
                    group.count = group.count.map(|count| count.min(1));
                    group.affinities.clear();
                }
                if !service {
                    group.update = None;
                    group.reschedule = None;
                }
                group
            },
        );
        job_fields::Job {
            id: Some("a".to_owned()),
            r#type: Some(job_type.to_owned()),
            priority: priority.map(|priority| priority + 1),
            datacenters: datacenters.unwrap_or_default(),
            update: update.filter(|_| service),
            task_groups: named.collect(),
            stop: Some(stop),
            ..Default::default()
        }
    })
}

fn duration() -> impl Strategy<Value = prost_types::Duration> {
    (30_000_000_000..100_000_000_000_i64).prop_map(job_fields::duration)
}

fn update() -> impl Strategy<Value = job_fields::UpdateStrategy> {
    (
        prop::option::of(0..5_i64),
        prop::option::of(duration()),
        any::<Option<bool>>(),
    )
        .prop_map(
            |(max_parallel, min_healthy_time, auto_revert)| job_fields::UpdateStrategy {
                max_parallel,
                min_healthy_time,
                auto_revert,
                ..Default::default()
            },
        )
}

fn reschedule() -> impl Strategy<Value = job_fields::ReschedulePolicy> {
    let function = select(&["constant", "exponential", "fibonacci"][..]);
    (function, duration(), 1..4_i64, any::<bool>()).prop_map(
        |(function, delay, attempts, limited)| job_fields::ReschedulePolicy {
            attempts: limited.then_some(attempts),
            unlimited: limited.then_some(false),
            interval: limited.then(|| job_fields::duration(7_200_000_000_000)),
            delay: Some(delay),
            delay_function: Some(function.to_owned()),
            ..Default::default()
        },
    )
}

fn group() -> impl Strategy<Value = job_fields::TaskGroup> {
    let network = prop::collection::vec(
        (prop::option::of(1..3_i64), prop::option::of(-1..99_i64)),
        0..4,
    );
    (
        prop::option::of(0..9_i64),
        prop::collection::vec(task(), 1..3),
        prop::option::of(update()),
        prop::option::of(reschedule()),
        prop::option::of(network),
        prop::option::of((duration(), any::<bool>())),
        prop::collection::vec(constraint(), 0..3),
    )
        .prop_map(
            |(count, tasks, update, reschedule, ports, disconnect, constraints)| {
                let affinities =
                    constraints
                        .iter()
                        .take(1)
                        .map(|constraint| job_fields::Affinity {
                            left: constraint.left.clone(),
                            operator: Some("is".to_owned()),
                            right: Some("x".to_owned()),
                            weight: Some(-7),
                        });
                let tasks = tasks.into_iter().enumerate().map(
                    |(position, mut task): (usize, job_fields::Task)| {
                        task.name = Some(format!("t{position}"));
                        if position == 0 {
                            task.lifecycle = None;
                        }
                        task
                    },
                );
                job_fields::TaskGroup {
                    count,
                    affinities: affinities.collect(),
                    tasks: tasks.collect(),
                    update,
                    reschedule,
                    networks: ports.iter().map(|ports| network_of(ports)).collect(),
                    disconnect: disconnect.map(|(lost_after, replace)| {
                        job_fields::DisconnectStrategy {
                            lost_after: Some(lost_after),
                            replace: Some(replace),
                            ..Default::default()
                        }
                    }),
                    constraints,
                    ..Default::default()
                }
            },
        )
}

fn network_of(ports: &[(Option<i64>, Option<i64>)]) -> job_fields::Network {
    let port = |(position, (value, to)): (usize, &(Option<i64>, Option<i64>))| job_fields::Port {
        label: Some(format!("p{position}")),
        value: value.map(|value| value * 100 + i64::try_from(position).unwrap()),
        to: *to,
        host_network: None,
        ignore_collision: None,
    };
    let ports: Vec<job_fields::Port> = ports.iter().enumerate().map(port).collect();
    let (reserved, dynamic) = ports.into_iter().partition(|port| port.value.is_some());
    job_fields::Network {
        mode: None,
        reserved_ports: reserved,
        dynamic_ports: dynamic,
        ..Default::default()
    }
}

fn constraint() -> impl Strategy<Value = job_fields::Constraint> {
    let operators = [
        ("is", "a"),
        ("version", ">= 1"),
        ("distinct_hosts", ""),
        ("is_set", ""),
        ("not", "b"),
    ];
    prop::sample::select(operators.to_vec()).prop_map(|(operator, right)| job_fields::Constraint {
        left: Some("${meta.x}".to_owned()),
        operator: Some(operator.to_owned()),
        right: Some(right.to_owned()),
    })
}

fn task() -> impl Strategy<Value = job_fields::Task> {
    let lifecycle = select(&["prestart", "poststart", "poststop"][..]);
    let config = select(vec![
        serde_json::json!({"run_for": "1s", "exit_code": "3", "kill_after": "10000h"}),
        serde_json::json!({"run_for": 5, "stdout_string": true, "start_error_recoverable": "true"}),
        serde_json::json!({}),
    ]);
    (
        config,
        prop::option::of((lifecycle, any::<bool>())),
        prop::option::of((1..500_i64, 10..500_i64)),
        prop::option::of(duration()),
        prop::option::of(0..3_i64),
        prop::collection::btree_map("[A-Z]{1,3}", ".{0,5}", 0..3),
    )
        .prop_map(
            |(config, lifecycle, resources, kill_timeout, attempts, env)| job_fields::Task {
                driver: Some("mock_driver".to_owned()),
                config: config
                    .as_object()
                    .map(|config| job_fields::object(config).unwrap()),
                lifecycle: lifecycle.map(|(hook, sidecar)| job_fields::Lifecycle {
                    hook: Some(hook.to_owned()),
                    sidecar: Some(sidecar),
                    wait_for: None,
                }),
                resources: resources.map(|(cpu, memory)| job_fields::Resources {
                    cpu_mhz: (cpu % 3 > 0).then_some(cpu),
                    cores: (cpu % 3 == 0).then_some(cpu % 4 + 1),
                    memory_mib: Some(memory),
                    memory_max_mib: match cpu % 5 {
                        0 => Some(-1),
                        1 => Some(memory),
                        _ => None,
                    },
                    devices: (memory % 2 == 0).then(|| device(cpu)).into_iter().collect(),
                    ..Default::default()
                }),
                kill_signal: kill_timeout.is_some().then(|| "SIGINT".to_owned()),
                kill_timeout,
                restart: attempts.map(|attempts| job_fields::RestartPolicy {
                    attempts: Some(attempts),
                    ..Default::default()
                }),
                env,
                ..Default::default()
            },
        )
}

fn device(number: i64) -> job_fields::DeviceRequest {
    job_fields::DeviceRequest {
        name: Some("nvidia/gpu".to_owned()),
        count: (number % 2 == 0).then_some(number % 7 + 1),
        constraints: vec![job_fields::Constraint {
            left: Some("${device.attr.memory}".to_owned()),
            operator: Some(">=".to_owned()),
            right: Some(format!("{number} GiB")),
        }],
        affinities: Vec::new(),
    }
}

/// The property above says nothing about jobs that are refused.
#[test]
fn generated_jobs_are_mostly_valid() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut admitted = 0;
    for _ in 0..200 {
        let job = job().new_tree(&mut runner).unwrap().current();
        admitted += usize::from(canonicalise(&job, NOW).is_ok());
    }
    assert!(admitted > 120, "{admitted} of 200");
}

/// Everything that can stand within itself, so deep that recursion over it would overflow a stack.
#[test]
fn no_nesting_overflows_the_stack() {
    const NESTS: [(&str, &str); 20] = [
        ("[", "]"),
        ("(", ")"),
        ("{ a = ", " }"),
        ("{\"a\":", "}"),
        ("!", ""),
        ("-", ""),
        ("1 + ", ""),
        ("true && ", ""),
        ("true ? 1 : ", ""),
        ("upper(", ")"),
        ("\"${", "}\""),
        ("\"%{ if ", " }a%{ endif }\""),
        ("[for x in ", " : x]"),
        ("{for x in ", " : x => x}"),
        ("<<E\n${", "}\nE\n"),
        ("local.a[", "]"),
        ("list(", ")"),
        ("jsondecode(", ")"),
        ("local.a", ".a"),
        ("local.a", "[*]"),
    ];
    for (open, close) in NESTS {
        for count in [150, 10_000] {
            let nest = format!("{}1{}", open.repeat(count), close.repeat(count));
            read(&nest);
            read(&format!("job \"a\" {{\n  meta = {nest}\n}}\n"));
            read(&format!(
                "variable \"a\" {{\n  type = {nest}\n  default = {nest}\n}}\n"
            ));
            // As a template in JSON's notation and as the text that jsondecode reads.
            let quoted = serde_json::to_string(&nest).unwrap();
            let template = serde_json::to_string(&format!("${{{nest}}}")).unwrap();
            read(&format!(
                "{{\"locals\": {{\"a\": {template}}}, \"job\": {{\"a\": {{}}}}}}"
            ));
            read(&format!(
                "locals {{\n  a = jsondecode({quoted})\n}}\njob \"a\" {{\n}}\n"
            ));
            let given = Inputs {
                variables: vec![("a".to_owned(), nest)],
                ..Inputs::default()
            };
            let declares = "variable \"a\" {\n  type = any\n}\njob \"a\" {\n}\n";
            // Some are values: -1, even 150 times.
            let _ = parse("f", declares, &given);
        }
    }
    for count in [150, 10_000] {
        read(&format!("{}{}", "a {\n".repeat(count), "}\n".repeat(count)));
        let config = format!("{}{}", "a {\n".repeat(count), "}\n".repeat(count));
        read(&format!(
            "job \"a\" {{\n  group \"a\" {{\n    task \"a\" {{\n      config {{\n{config}}}\n}}\n}}\n}}\n"
        ));
    }
}

/// The JSON of the API and the JSON of job files alike.
#[test]
fn json_that_nests_too_deep_is_refused_with_its_place() {
    let nest = |count: usize| format!("{}{}", "[".repeat(count), "]".repeat(count));
    for text in [
        format!("{{\"Job\":\n {}}}", nest(20_000)),
        format!("{{\"job\":\n {}}}", nest(20_000)),
    ] {
        let errors = [
            parse_api_json("f", &text).unwrap_err(),
            parse("f.json", &text, &Inputs::default()).unwrap_err(),
        ];
        for errors in errors {
            let error = &errors.0[0];
            assert_eq!((error.line, error.column), (2, 129), "{error:?}");
            assert_eq!(error.summary, "Nested too deep");
            assert!(error.detail.contains("128"), "{}", error.detail);
        }
    }
}
