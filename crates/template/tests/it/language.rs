//! The language: actions, blocks, variables, constants, errors with their place.

use template::Template;

use crate::support::{error, text, with};

#[test]
fn blocks_and_variables() {
    for (source, want) in [
        ("a {{- 1 -}} b", "a1b"),
        ("a\n\t {{- /* c */ -}} \r\n b", "ab"),
        ("{{-1}}", "-1"),
        (
            "{{ if false }}a{{ else if 0 }}b{{ else if `x` }}c{{ else }}d{{ end }}",
            "c",
        ),
        (
            "{{ with 0 }}a{{ else with 2 }}{{ . }}{{ else }}c{{ end }}",
            "2",
        ),
        ("{{ with $x := 3 }}{{ . }}{{ $x }}{{ end }}", "33"),
        ("{{ range 3 }}{{ . }}{{ end }}", "012"),
        (
            "{{ range $i, $e := sprig_list `a` `b` }}{{ $i }}{{ $e }}{{ end }}",
            "0a1b",
        ),
        (
            "{{ $i := 0 }}{{ range $i = sprig_list 4 5 }}{{ end }}{{ $i }}",
            "5",
        ),
        (
            "{{ $x := 1 }}{{ if true }}{{ $x := 2 }}{{ $x }}{{ end }}{{ $x }}",
            "21",
        ),
        (
            "{{ $x := 1 }}{{ if true }}{{ $x = 2 }}{{ end }}{{ $x }}",
            "2",
        ),
        (
            "{{ range loop 2 }}{{ range loop 3 }}{{ if eq . 1 }}{{ continue }}{{ end }}{{ . }}{{ end }};{{ end }}",
            "02;02;",
        ),
        (
            "{{ define `t` }}<{{ . }}{{ with $ }}{{ . }}{{ end }}>{{ end }}{{ template `t` 7 }}",
            "<77>",
        ),
        (
            "{{ block `b` 5 }}[{{ . }}]{{ end }}{{ template `b` 6 }}",
            "[5][6]",
        ),
        (
            "{{ define `r` }}{{ if . }}{{ . }}{{ template `r` (subtract 1 .) }}{{ end }}{{ end }}{{ template `r` 3 }}",
            "321",
        ),
        (
            "{{ (index (parseJSON `{\"a\":{\"b\":[1]}}`) `a`).b }}",
            "[1]",
        ),
        ("{{ `x` | printf `%s-%s` `y` }}", "y-x"),
        (
            "{{ and 1 0 (mustEnv `NO`) }} {{ or 0 2 (mustEnv `NO`) }}",
            "0 2",
        ),
        ("{{ 1 | and 2 }} {{ 0 | or 0 }}", "1 0"),
        (
            "{{ '\\n' }} {{ '\\x41' }} {{ 'ä' }} {{ 1_000 }} {{ 0b11 }} {{ 0o17 }} {{ -0x1f }} {{ .5 }}",
            "10 65 228 1000 3 15 -31 0.5",
        ),
        ("{{ \"a\\tb\\u00e4\\\"\" }}", "a\tbä\""),
        ("{{ 18446744073709551615 }}", "18446744073709551615"),
        ("{{ printf\n `%d`\n 1 }}", "1"),
        (
            "{{ range $k, $v := sprig_dict `b` 1 `a` 2 }}{{ $k }}{{ $v }}{{ end }}",
            "a2b1",
        ),
        ("no action }} here", "no action }} here"),
        ("", ""),
    ] {
        assert_eq!(text(source), want, "{source}");
    }
}

#[test]
fn values_print_as_go_prints_them() {
    for (source, want) in [
        (
            "{{ 1e20 }} {{ 1e21 }} {{ 0.0001 }} {{ 0.00001 }} {{ 100000.0 }}",
            "1e+20 1e+21 0.0001 1e-05 100000",
        ),
        (
            "{{ parseJSON `[1000000, 1e21, null, \"a\", {\"k\": true}]` }}",
            "[1e+06 1e+21 <nil> a map[k:true]]",
        ),
        ("{{ print nil `a` nil 1 2 `b` 3 }}", "<nil>a<nil> 1 2b3"),
        ("{{ println 1 `a` }}", "1 a\n"),
        (
            "{{ printf `%5d|%-5d|%05d|%+d|%x|%X|%o|%b|%c|%U` 42 42 -42 42 255 255 8 5 65 65 }}",
            "   42|42   |-0042|+42|ff|FF|10|101|A|U+0041",
        ),
        (
            "{{ printf `%s|%q|%x|%10s|%-6s|%.2s|%v` `hi` `h\"i` `hi` `hi` `hi` `hello` `v` }}",
            "hi|\"h\\\"i\"|6869|        hi|hi    |he|v",
        ),
        (
            "{{ printf `%f|%.1f|%8.2f|%e|%g|%G|%.3g` 1.5 2.25 3.14159 123456.789 0.5 1e30 1234.5 }}",
            "1.500000|2.2|    3.14|1.234568e+05|0.5|1E+30|1.23e+03",
        ),
        (
            "{{ printf `%t %v %T %T %T` true nil 1 `a` 1.5 }}",
            "true <nil> int string float64",
        ),
        ("{{ printf `%d %s` `x` 5 }}", "%!d(string=x) %!s(int=5)"),
        (
            "{{ printf `%d` }} {{ printf `a` 1 }} {{ printf `%` }} {{ printf `%%` }}",
            "%!d(MISSING) a%!(EXTRA int=1) %!(NOVERB) %",
        ),
        (
            "{{ printf `%[2]d %[1]d` 1 2 }} {{ printf `%*d` 4 7 }} {{ printf `%[9]d` 1 }}",
            "2 1    7 %!d(BADINDEX)",
        ),
        (
            "{{ printf `%v %d` (sprig_list 1 `a`) (sprig_list 1 2) }}",
            "[1 a] [1 2]",
        ),
        (
            "{{ printf `%#v %#v %#x` `a` (sprig_list 1 `b`) 255 }}",
            "\"a\" []interface {}{1, \"b\"} 0xff",
        ),
        (
            "{{ printf `%08.3f|%+.1f|% d` 3.14159 2.0 5 }}",
            "0003.142|+2.0| 5",
        ),
        (
            "{{ parseJSON `null` | printf `%v` }} {{ (parseJSON `{\"a\":null}`).a }} {{ (parseJSON `{}`).a }}",
            "<nil> <no value> <no value>",
        ),
    ] {
        assert_eq!(text(source), want, "{source}");
    }
}

#[test]
fn errors_name_the_place_and_the_mistake() {
    for (source, want) in [
        (
            "a\nb {{ nope }}",
            "line 2, column 6: there is no function nope",
        ),
        (
            "{{ envv `A` }}",
            "there is no function envv. Did you mean \"env\"?",
        ),
        (
            "ä {{ $x }}",
            "line 1, column 6: the variable $x is not declared",
        ),
        ("{{ if true }}x", "line 1, column 4: the if is not closed"),
        (
            "{{ range 1 }}{{ else }}{{ else }}{{ end }}",
            "column 27: the range has two else",
        ),
        ("{{ else }}", "column 4: {{else}} stands outside"),
        ("x{{ end }}y", "column 5: {{end}} closes nothing"),
        ("{{ break }}", "column 4: {{break}} stands outside range"),
        (
            "{{ define `x` }}{{ define `y` }}{{ end }}{{ end }}",
            "define stands outside all other blocks",
        ),
        (
            "{{ define `x` }}a{{ end }}{{ define `x` }}b{{ end }}",
            "the template \"x\" is defined twice",
        ),
        ("{{ define x }}{{ end }}", "define needs a name in quotes"),
        (
            "{{ template `no` }}",
            "column 4: the template \"no\" is not defined",
        ),
        ("{{ (1 }}", "column 4: the parenthesis is not closed"),
        ("{{ 1 ) }}", "unexpected \")\" behind the value"),
        ("{{ `a``b` }}", "arguments are separated by spaces"),
        ("{{ 1 | 2 }}", "only a function or method can follow |"),
        ("{{ 1 | }}", "missing value behind |"),
        ("{{ }}", "missing value for an empty action"),
        ("{{ \"a\\q\" }}", "unknown escape \\q"),
        ("{{ 'ab' }}", "single quotes hold one character"),
        ("{{ 1x }}", "\"1x\" is not a number"),
        ("{{ 08 }}", "\"08\" is not a number"),
        ("{{/* x }}", "the comment has no end"),
        (
            "{{ /* x */ 1 }}",
            "a comment stands directly behind the start of its action",
        ),
        ("{{/* x */ 1 }}", "a comment fills its action"),
        ("{{ 1", "line 1, column 1: the action has no end"),
        ("{{ `a", "no closing backquote"),
        ("{{ $x, $y := 1 }}", "only range declares two variables"),
        (
            "{{ range $i, $v := 3 }}{{ end }}",
            "range over a number has one variable",
        ),
        (
            "{{ range 1.5 }}{{ end }}",
            "range can't iterate over 1.5, of type float64",
        ),
        (
            "{{ 1 2 }}",
            "a value that is not a function takes no arguments",
        ),
        (
            "{{ (parseJSON `{\"a\":null}`).a.b }}",
            ".b of a value that is nil",
        ),
        (
            "{{ (env `FOO`).x }}",
            "a value of type string has no field .x",
        ),
        (
            "{{ eq 1 `1` }}",
            "eq: a value of type int can't be compared with one of type string",
        ),
        (
            "{{ lt 1 1.5 }}",
            "lt: a value of type int has no order with one of type float64",
        ),
        (
            "{{ index (sprig_list 1) 1 }}",
            "index: the index 1 is out of range: there are 1",
        ),
        (
            "{{ slice `abc` 2 5 }}",
            "slice: 2 to 5 is out of range: there are 3",
        ),
        (
            "{{ toLower 5 }}",
            "toLower: argument 1 is of type int, not a text",
        ),
        (
            "{{ toLower nil }}",
            "toLower: argument 1 is nil, not a text",
        ),
        ("{{ toLower }}", "toLower: takes 1 argument, not 0"),
        (
            "{{ regexMatch `(` `a` }}",
            "regexMatch: the regular expression \"(\" is wrong",
        ),
        (
            "{{ scratch.Nope 1 }}",
            "scratch.Nope: there is no such method; there are Key, Get",
        ),
        (
            "{{ plugin `x` }}",
            "the function plugin is not available in templates: it starts a program on the node",
        ),
        (
            "{{ sprig_uuidv4 }}",
            "the function sprig_uuidv4 is not available in templates: a template gives the same file",
        ),
        (
            "{{ sprig_set }}",
            "the function sprig_set is not available in templates: values do not change",
        ),
    ] {
        let error = error(source);
        assert!(
            error.contains(want),
            "{source}\n  want {want}\n  got  {error}"
        );
    }
}

#[test]
fn delimiters_are_chosen() {
    let rendered = with(
        |_| {},
        |context| {
            let template =
                Template::parse("{{ a }} [[ env \"FOO\" ]][[- /* x */ -]] .", "[[", "]]").unwrap();
            template.render(context).unwrap()
        },
    );
    assert_eq!(
        rendered,
        template::Rendered::Text("{{ a }} bar.".to_owned())
    );
}

#[test]
fn a_missing_key_is_no_value_or_an_error() {
    let missing = "{{ (parseJSON `{\"a\":1}`).b }}";
    assert_eq!(text(missing), "<no value>");
    let error = with(
        |context| context.missing_key_is_error = true,
        |context| {
            Template::parse(missing, "", "")
                .unwrap()
                .render(context)
                .unwrap_err()
        },
    );
    assert_eq!(
        error.to_string(),
        "line 1, column 4: the map has no key \"b\", and error_on_missing_key is set"
    );
}

#[test]
fn yaml_and_toml_are_read_and_written() {
    for (source, want) in [
        (
            "{{ parseYAML \"a: &x {b: 1}\\nc: *x\\nd:\\n  <<: *x\\n  e: yes\\nf: '1'\\ng: 0x1f\\nh: ~\\n\" }}",
            "map[a:map[b:1] c:map[b:1] d:map[b:1 e:true] f:1 g:31 h:<nil>]",
        ),
        (
            "{{ parseYAML \"- 1.5\\n- .inf\\n- 1e3\\n- v1.2\\n\" }}",
            "[1.5 +Inf 1000 v1.2]",
        ),
        (
            "{{ parseJSON `{\"l\":[1,{\"a\":[2],\"b\":{}}],\"s\":\"yes\",\"t\":\"a\\nb\",\"e\":[],\"q\":\"'x\"}` | toYAML }}",
            "e: []\nl:\n- 1\n- a:\n  - 2\n  b: {}\nq: '''x'\ns: \"yes\"\nt: |-\n  a\n  b",
        ),
        (
            "{{ parseJSON `{\"b\":{\"c\":[1,2],\"d\":{\"e\":\"x\"}},\"a\":\"q\\\"\"}` | toTOML }}",
            "a = \"q\\\"\"\n\n[b]\n  c = [1.0, 2.0]\n\n  [b.d]\n    e = \"x\"",
        ),
    ] {
        assert_eq!(text(source), want, "{source}");
    }
    assert!(error("{{ parseYAML `a: [` }}").contains("not YAML"));
    assert!(error("{{ toTOML 1 }}").contains("a TOML document is a map"));
}
