//! A hostile template ends, with an error instead of a crash.

use proptest::prelude::*;
use template::{Limits, Template};

use crate::support::{render, with};

#[test]
fn a_template_without_end_meets_a_limit() {
    let nested = format!("{}{}", "{{ if true }}".repeat(200), "{{ end }}".repeat(200));
    let parentheses = format!("{{{{ {}1{} }}}}", "(".repeat(200), ")".repeat(200));
    let chained = format!(
        "{{{{ if 0 }}}}{}{{{{ end }}}}",
        "{{ else if 0 }}".repeat(1_000)
    );
    for (source, want) in [
        (
            "{{ range loop 1000000000000 }}{{ end }}",
            "more than 1000000 steps",
        ),
        (
            "{{ range loop 10000 }}{{ range loop 10000 }}{{ end }}{{ end }}",
            "more than 1000000 steps",
        ),
        (
            "{{ define `t` }}{{ template `t` }}{{ end }}{{ template `t` }}",
            "nested deeper than 150",
        ),
        (
            "{{ define `t` }}{{ executeTemplate `t` }}{{ end }}{{ executeTemplate `t` }}",
            "nested deeper than 150",
        ),
        (&nested, "nested deeper than 50"),
        (&parentheses, "nested deeper than 50"),
        (&chained, "nested deeper than 50"),
        (
            "{{ $x := `a` }}{{ range loop 100 }}{{ $x = print $x $x }}{{ end }}",
            "larger than 16 MiB",
        ),
        (
            "{{ $x := sprig_list 1 }}{{ range loop 60 }}{{ $x = sprig_list $x $x }}{{ end }}",
            "larger than 16 MiB",
        ),
        (
            "{{ $x := sprig_list }}{{ range loop 100 }}{{ $x = sprig_list $x }}{{ end }}",
            "more than 64 levels",
        ),
        (
            "{{ $x := sprig_dict }}{{ range loop 100 }}{{ $x = sprig_dict `a` $x }}{{ end }}",
            "more than 64 levels",
        ),
        (
            "{{ $x := sprig_repeat 1000000 `abc` }}{{ range loop 10 }}{{ $x }}{{ end }}",
            "the output is larger",
        ),
        (
            "{{ $x := sprig_repeat 4000000 `abc` }}{{ range loop 1000 }}{{ toUpper $x | len }}{{ end }}",
            "work on more than 256 MiB",
        ),
        ("{{ sprig_repeat 1000000000000 `a` }}", "larger than 16 MiB"),
        ("{{ sprig_until 100000000000 }}", "larger than 16 MiB"),
        ("{{ indent 100000000000 `a` }}", "larger than 16 MiB"),
        (
            "{{ sprig_repeat 100000 `a` | replaceAll `a` (sprig_repeat 100000 `b`) }}",
            "larger than 16 MiB",
        ),
        (
            "{{ sprig_repeat 100000 `a` | regexReplaceAll `a` (sprig_repeat 100000 `b`) }}",
            "larger than 16 MiB",
        ),
        ("{{ sprig_seq 0 1 9223372036854775807 }}", "too large"),
        (
            "{{ parseYAML (print `a: &a [x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c]\n` `e: &e [*d, *d, *d, *d, *d, *d, *d, *d]\nf: &f [*e, *e, *e, *e, *e, *e, *e, *e]\ng: &g [*f, *f, *f, *f, *f, *f, *f, *f]\nh: &h [*g, *g, *g, *g, *g, *g, *g, *g]\n`) }}",
            "larger than 16 MiB",
        ),
        ("{{ parseYAML (sprig_repeat 1000 `[`) }}", "limit"),
        ("{{ parseJSON (sprig_repeat 1000 `[`) }}", "not JSON"),
        ("{{ sockaddr `range loop 1000000000000` }}", "sockaddr"),
        (
            "{{ regexMatch `((a{100}){100}){100}` `a` }}",
            "regular expression",
        ),
        (
            "{{ add 9223372036854775807 1 }}",
            "does not fit into 64 bits",
        ),
        ("{{ sprig_mod 1 0 }}", "by zero"),
        ("{{ sprig_div -9223372036854775808 -1 }}", "64 bits"),
    ] {
        let error = render(source).expect_err(source).to_string();
        assert!(
            error.contains(want),
            "{}\n  want {want}\n  got  {error}",
            &source[..source.len().min(200)]
        );
    }
}

#[test]
fn work_is_counted_wherever_a_function_repeats_it() {
    // A part of the default, which takes minutes without optimization.
    let bytes_max = 16 << 20;
    for source in [
        "{{ range $i, $e := loop 1000000 }}{{ regexMatch (print `(a{5}){5}` $i) `a` }}{{ end }}",
        "{{ sprig_repeat 100000 `A` | regexReplaceAll `.*[^A-Z]|[A-Z]` `B` }}",
        "{{ $m := sprig_dict }}{{ range loop 2000 }}{{ $m = sprig_merge $m (sprig_dict (print .) .) }}{{ end }}{{ range loop 100000 }}{{ range $m }}{{ break }}{{ end }}{{ end }}",
        "{{ $l := sprig_until 100000 }}{{ containsNone $l $l }}",
        "{{ range loop 100000 }}{{ scratch.MapSet `m` (print .) . }}{{ end }}",
    ] {
        let error = with(
            |context| context.limits.bytes_max = bytes_max,
            |context| {
                Template::parse(source, "", "")
                    .unwrap()
                    .render(context)
                    .unwrap_err()
            },
        );
        let want = "work on more than 16 MiB";
        assert!(error.message.contains(want), "{source}: {error}");
    }
}

#[test]
fn limits_are_arguments() {
    let tight = Limits {
        steps_max: 10,
        bytes_max: 100,
        output_max: 5,
    };
    for (source, want) in [
        ("{{ range loop 20 }}{{ end }}", "10 steps"),
        ("123456", "larger than 5 bytes"),
    ] {
        let error = with(
            |context| context.limits = tight,
            |context| {
                Template::parse(source, "", "")
                    .unwrap()
                    .render(context)
                    .unwrap_err()
            },
        );
        assert!(error.message.contains(want), "{error}");
    }
}

/// Pieces of templates: random rows of them reach deep into the parser and the evaluator.
const PIECES: &[&str] = &[
    "{{",
    "}}",
    "{{-",
    "-}}",
    " ",
    "\n",
    "if",
    "else",
    "end",
    "range",
    "with",
    "define",
    "template",
    "block",
    "break",
    "continue",
    "`t`",
    "\"a\"",
    "'x'",
    "1",
    "-2",
    "3.5",
    "1e3",
    "$",
    "$x",
    ":=",
    "=",
    ",",
    "|",
    "(",
    ")",
    ".",
    ".a",
    "nil",
    "true",
    "printf",
    "`%[1]*v%q`",
    "index",
    "slice",
    "len",
    "loop",
    "env",
    "parseJSON",
    "parseYAML",
    "toYAML",
    "toTOML",
    "toJSON",
    "split",
    "join",
    "scratch",
    ".Set",
    "sprig_list",
    "sprig_dict",
    "sprig_substr",
    "sprig_trunc",
    "sprig_splitn",
    "sprig_wrap",
    "sprig_round",
    "sprig_seq",
    "sprig_untilStep",
    "sprig_semverCompare",
    "timestamp",
    "`2006-01-02.000 _2`",
    "explodeMap",
    "sockaddr",
    "executeTemplate",
    "nomadVar",
    "/*",
    "*/",
    "ä",
    "\\",
    "\0",
    "modulo",
    "divide",
    "sprig_chunk",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_row_of_words_panics(words in proptest::collection::vec(proptest::sample::select(PIECES), 0..40)) {
        let _ = render(&words.join(" "));
        let _ = render(&words.concat());
    }

    #[test]
    fn no_action_of_functions_panics(
        names in proptest::collection::vec(proptest::sample::select(template::function_names()), 1..4),
        arguments in proptest::collection::vec(proptest::sample::select(vec![
            "1", "0", "-1", "9223372036854775807", "-9223372036854775808", "1.5", "`a,b`", "``", "`ä`", "nil", "true", "(sprig_list 1 `a`)",
            "(sprig_dict `a` 1)", "(loop 3)", "scratch", "(sprig_list)", "`%d`", "`{\"a\":[1]}`",
        ]), 0..5),
    ) {
        let _ = render(&format!("{{{{ {} {} }}}}", names.join(" | "), arguments.join(" ")));
        for name in names {
            let _ = render(&format!("{{{{ {name} {} }}}}", arguments.join(" ")));
        }
    }

    #[test]
    fn any_text_without_an_action_stays_as_it_is(text in "[^{]*") {
        prop_assert_eq!(render(&text).unwrap(), template::Rendered::Text(text));
    }
}

#[test]
fn a_split_into_the_smallest_number_of_parts_ends() {
    let number = i64::MIN.to_string();
    let source = format!("{{{{ sprig_regexSplit `,` `a,b` {number} | len }}}}");
    let want = template::Rendered::Text("2".to_owned());
    assert_eq!(render(&source).unwrap(), want);
}
