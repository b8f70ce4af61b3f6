//! HCL as a language: expressions, templates, heredocs, and names that only the node knows.

use serde_json::json;

use crate::support::{file, spec, value_of, value_with};
use jobspec::{Inputs, parse};

#[test]
fn expressions_have_their_values() {
    let before = "locals {\n  l = [\"a\", \"b\", \"c\"]\n  o = { b = 2, a = 1 }\n  \
                  n = [{ x = { y = 1 } }, { x = { y = 2 } }]\n}\n";
    for (expression, value) in [
        ("1 + 2 * 3", json!(7)),
        ("(1 + 2) * 3", json!(9)),
        ("10 % 4 - 1", json!(1)),
        ("7 / 2", json!(3.5)),
        ("-(-3)", json!(3)),
        ("!true || 1 < 2 && 2 <= 2", json!(true)),
        ("1 == 1.0", json!(true)),
        ("\"1\" == 1", json!(false)),
        ("[1, 2] != [1, 2]", json!(false)),
        ("true ? \"a\" : \"b\"", json!("a")),
        ("false ? 1 / 0 : 5", json!(5)),
        ("false && 1 / 0 == 1", json!(false)),
        ("local.l[1]", json!("b")),
        ("local.l.2", json!("c")),
        ("local.o[\"a\"]", json!(1)),
        ("local.o.b", json!(2)),
        ("local.n[*].x.y", json!([1, 2])),
        ("local.n.*.x", json!([{"y": 1}, {"y": 2}])),
        ("local.o[*].a", json!([1])),
        ("null[*]", json!([])),
        ("[for v in local.l : upper(v)]", json!(["A", "B", "C"])),
        (
            "[for i, v in local.l : \"${i}${v}\" if i != 1]",
            json!(["0a", "2c"]),
        ),
        (
            "{for k, v in local.o : upper(k) => v * 10}",
            json!({"A": 10, "B": 20}),
        ),
        (
            "{for v in [\"a\", \"b\", \"ab\"] : strlen(v) => v...}",
            json!({"1": ["a", "b"], "2": ["ab"]}),
        ),
        ("[for k, v in local.o : k]", json!(["a", "b"])),
        (
            "{ \"a-b\" = 1, (local.l[0]) = 2, c : 3 }",
            json!({"a-b": 1, "a": 2, "c": 3}),
        ),
        ("\"${1 + 1}\"", json!(2)),
        ("\"n=${1 + 1}\"", json!("n=2")),
        ("\"%{ if true }yes%{ else }no%{ endif }\"", json!("yes")),
        ("\"%{ for v in local.l }${v},%{ endfor }\"", json!("a,b,c,")),
        (
            "\"%{ for i, v in local.l ~}  ${i}  %{~ endfor }\"",
            json!("012"),
        ),
        ("\"a  ${~ 1 ~}  b\"", json!("a1b")),
        ("\"a  ${~ 1 }  b\"", json!("a1  b")),
        ("\"a  ${ 1 ~}  b\"", json!("a  1b")),
        ("\"a %{~ if true }  b  %{ endif ~} c\"", json!("a  b  c")),
        ("\"\\u00e4\\t\\\"\\\\\"", json!("ä\t\"\\")),
        ("\"$${x} %%{y} $5 %d\"", json!("${x} %{y} $5 %d")),
        ("1e3", json!(1000)),
        ("0.5", json!(0.5)),
        (
            "18446744073709551615",
            json!(18_446_744_073_709_551_615_u64),
        ),
    ] {
        let got = value_with(expression, before, &Inputs::default());
        assert_eq!(got, Ok(value), "{expression}");
    }
}

#[test]
fn heredocs_keep_their_lines_and_lose_a_common_indentation() {
    let value = value_of("<<-EOT\n          a ${meta.x}\n            b\n          EOT");
    assert_eq!(value, Ok(json!("a ${meta.x}\n  b\n")));
    let value = value_of("<<EOT\n  a\n    %{ if true ~}\n  b\n  %{~ endif }\nEOT");
    assert_eq!(value, Ok(json!("  a\n      b\n")));
}

#[test]
fn names_that_only_the_node_knows_survive_as_text() {
    for (expression, text) in [
        ("\"${NOMAD_PORT_http}\"", "${NOMAD_PORT_http}"),
        ("\"${node.unique.name}\"", "${node.unique.name}"),
        ("\"${env[\"HOME\"]}\"", "${env[\"HOME\"]}"),
        ("attr.kernel.name", "${attr.kernel.name}"),
        ("attr[\"cpu.arch\"]", "${attr[\"cpu.arch\"]}"),
        ("\"a-${ NOMAD_ALLOC_INDEX }-b\"", "a-${NOMAD_ALLOC_INDEX}-b"),
        (
            "\"${var.x}-${NOMAD_ALLOC_INDEX}\"",
            "v-${NOMAD_ALLOC_INDEX}",
        ),
        ("upper(meta.x)", "${META.X}"),
        ("\"${upper(meta.x)}\"", "${META.X}"),
        ("[for x in [\"a\"] : \"${x}${meta.y}\"][0]", "a${meta.y}"),
        ("true ? node.class : 1", "${node.class}"),
        ("count", "${count}"),
        ("device.attr.x", "${device.attr.x}"),
    ] {
        let got = value_with(
            expression,
            "variables {\n  x = \"v\"\n}\n",
            &Inputs::default(),
        );
        assert_eq!(got, Ok(json!(text)), "{expression}");
    }
}

#[test]
fn mistakes_in_expressions_are_named() {
    let before = "locals {\n  l = [1]\n  o = { alpha = 1 }\n}\n";
    for (expression, message) in [
        ("local.l[5]", "the list has 1 elements"),
        ("local.o.alhpa", "Did you mean \"alpha\"?"),
        ("local.o[\"beta\"]", "there is no key \"beta\""),
        ("local.l.x", "a list has no attribute \"x\""),
        ("1 ? 2 : 3", "a bool is required; got a number"),
        ("[for x in 5 : x]", "a list or an object is required"),
        ("{for x in [1, 1] : x => x}", "two items have the key \"1\""),
        ("{ (null) = 1 }", "a key must be a string"),
        (
            "\"x${null}\"",
            "a string, number or bool is required within a text; got null",
        ),
        ("\"x${local.l}\"", "got a list"),
        ("\"a\" + 1", "a number is required; got a string"),
        (
            "meta.x > 1",
            "\"${meta.x}\" is known only when the task runs",
        ),
        ("false ? local.typo : 1", "There is no local named \"typo\""),
        ("[for var in [1] : var]", "A loop's name may not be \"var\""),
    ] {
        let error = value_with(expression, before, &Inputs::default()).expect_err(expression);
        assert!(error.contains(message), "{expression}: {error}");
    }
}

#[test]
fn a_list_may_stand_over_several_lines_with_comments_and_a_last_comma() {
    let text = file(
        "  /* a\n     comment */\n  datacenters = [ # one\n    \"dc1\", // two\n    \"dc2\",\n  ]",
        "",
        "",
    );
    assert_eq!(
        spec(&text).datacenters,
        ["dc1".to_owned(), "dc2".to_owned()]
    );
}

#[test]
fn line_ends_of_windows_and_a_byte_order_mark_change_nothing() {
    let unix = file("  type = \"batch\"", "    count = 2", "");
    let windows = format!("\u{feff}{}", unix.replace('\n', "\r\n"));
    assert_eq!(spec(&windows), spec(&unix));
    let wrong = windows.replace("count", "cuont");
    let errors = parse("w.hcl", &wrong, &Inputs::default()).unwrap_err();
    assert_eq!((errors.0[0].line, errors.0[0].column), (4, 5));
    assert_eq!(errors.0[0].snippet, "    cuont = 2");
}

#[test]
fn blocks_can_be_made_by_the_list() {
    let text = file(
        "",
        "    network {\n      dynamic \"port\" {\n        for_each = { http = 8080, admin = 0 }\n        \
         labels   = [port.key]\n        content {\n          static = port.value\n          \
         to     = 80\n        }\n      }\n    }",
        "      dynamic \"constraint\" {\n        for_each = [\"a\", \"b\"]\n        iterator = item\n        \
         content {\n          attribute = meta.role\n          operator  = \"!=\"\n          \
         value     = \"${item.key}${item.value}\"\n        }\n      }",
    );
    let job = spec(&text);
    let group = &job.task_groups[0];
    let network = &group.networks[0];
    let label = |ports: &[job_fields::Port]| ports[0].label.clone();
    assert_eq!(label(&network.reserved_ports).as_deref(), Some("http"));
    assert_eq!(label(&network.dynamic_ports).as_deref(), Some("admin"));
    let constraints = &group.tasks[0].constraints;
    let values: Vec<_> = constraints
        .iter()
        .map(|c| c.right.as_deref().unwrap())
        .collect();
    assert_eq!(values, ["0a", "1b"]);
}

#[test]
fn a_dynamic_block_of_an_unknown_or_refused_kind_is_refused() {
    for (kind, message) in [
        ("prot", "Did you mean \"port\"?"),
        ("device", "is not supported"),
    ] {
        let block = format!(
            "    network {{\n      dynamic \"{kind}\" {{\n        for_each = [1]\n        content {{}}\n      }}\n    }}",
        );
        let errors = parse("f", &file("", &block, ""), &Inputs::default()).unwrap_err();
        assert!(errors.to_string().contains(message), "{errors}");
    }
}

#[test]
fn hcl_in_its_json_syntax_means_the_same_as_hcl() {
    let hcl = "variable \"n\" {\n  type = number\n  default = 2\n}\nlocals {\n  a = \"x${var.n}\"\n}\n\
        job \"ex\" {\n  datacenters = [\"dc1\"]\n  group \"g\" {\n    count = var.n\n    network {\n      \
        port \"http\" {\n        to = 80\n      }\n      port \"admin\" {\n        static = 8080\n      }\n    }\n    \
        constraint {\n      attribute = attr.kernel.name\n      value = \"linux\"\n    }\n    \
        constraint {\n      distinct_hosts = true\n    }\n    task \"t\" {\n      driver = \"raw_exec\"\n      \
        config {\n        command = \"/bin/echo\"\n        args = [\"${local.a}\", \"${NOMAD_ALLOC_ID}\"]\n      }\n      \
        env = { A = \"1\" }\n    }\n  }\n}\n";
    let json = r#"{
        "variable": {"n": {"type": "number", "default": 2}},
        "locals": [{"a": "x${var.n}"}],
        "//": "a comment",
        "job": {"ex": {"datacenters": ["dc1"], "group": {"g": {
            "count": "${var.n}",
            "network": {"port": {"http": {"to": 80}, "admin": {"static": 8080}}},
            "constraint": [
                {"attribute": "${attr.kernel.name}", "value": "linux"},
                {"distinct_hosts": true}
            ],
            "task": {"t": {
                "driver": "raw_exec",
                "config": {"command": "/bin/echo", "args": ["${local.a}", "${NOMAD_ALLOC_ID}"]},
                "env": {"A": 1}
            }}
        }}}}
    }"#;
    assert_eq!(spec(json), spec(hcl));
}

#[test]
fn mistakes_in_json_syntax_have_places_too() {
    for (json, place, message) in [
        (
            r#"{"job": {"a": {"group": {"g": {"cuont": 1}}}}}"#,
            (1, 32),
            "Did you mean \"count\"?",
        ),
        (
            "{\"job\": {\"a\": {\n\"priority\": \"${local.x}\"}}}",
            (2, 13),
            "no local named \"x\"",
        ),
        (
            "{\"job\": {\"a\": {\n\"priority\": \"${\"}}}",
            (2, 13),
            "Invalid template",
        ),
        (
            r#"{"job": {"a": {"group": 5}}}"#,
            (1, 25),
            "a group block is a JSON object",
        ),
        (
            r#"{"job": {"a": {"group": {"g": {"secret": {}}}}}}"#,
            (1, 32),
            "is not supported",
        ),
    ] {
        let errors = parse("f.json", json, &Inputs::default()).unwrap_err();
        assert_eq!((errors.0[0].line, errors.0[0].column), place, "{errors}");
        assert!(errors.to_string().contains(message), "{errors}");
    }
}
