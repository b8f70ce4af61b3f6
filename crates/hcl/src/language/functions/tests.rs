//! Results and errors of each function.

use std::collections::BTreeSet;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{SPECIAL, all};
use crate::inputs::Files;
use crate::language::eval::Host;
use crate::language::{Evaluator, Scope, Value, syntax};

fn with_host(text: &str, host: &Host) -> Result<Value, String> {
    let expression = syntax::expression(text).unwrap_or_else(|fault| panic!("{text}: {fault:?}"));
    Evaluator::new(text, host)
        .eval(&expression, &Scope::default())
        .map_err(|fault| fault.detail)
}

fn eval(text: &str) -> Result<Value, String> {
    with_host(text, &Host::default())
}

/// Calls and their values, both as expressions.
const VALUES: &[(&str, &str)] = &[
    // numbers
    ("abs(-3)", "3"),
    ("abs(-0.5)", "0.5"),
    ("ceil(1.2)", "2"),
    ("floor(-1.2)", "-2"),
    ("ceil(5)", "5"),
    ("log(8, 2)", "3"),
    ("max(3, 1.5, \"7\")", "7"),
    ("min(3, 1.5, 7)", "1.5"),
    ("parseint(\"ff\", 16)", "255"),
    ("parseint(\"-101\", 2)", "-5"),
    ("pow(2, 10)", "1024"),
    ("signum(-0.1)", "-1"),
    ("signum(0)", "0"),
    // identifiers
    (
        "uuidv5(\"dns\", \"www.terraform.io\")",
        "\"a5008fae-b28c-5ba5-96cd-82b4c53552d6\"",
    ),
    (
        "uuidv5(\"6ba7b811-9dad-11d1-80b4-00c04fd430c8\", \"a\") == uuidv5(\"url\", \"a\")",
        "true",
    ),
    ("strlen(uuidv4())", "36"),
    ("substr(uuidv4(), 14, 1)", "\"4\""),
    ("uuidv4() == uuidv4()", "false"),
    // texts
    ("chomp(\"a\\r\\n\\n\")", "\"a\""),
    ("indent(2, \"a\\nb\")", "\"a\\n  b\""),
    ("join(\"-\", [\"a\", 1], [true])", "\"a-1-true\""),
    ("lower(\"ÄB\")", "\"äb\""),
    ("upper(\"äb\")", "\"ÄB\""),
    ("regex_replace(\"a1b22\", \"[0-9]+\", \"#\")", "\"a#b#\""),
    ("regex_replace(\"ab\", \"(a)(b)\", \"$2$1\")", "\"ba\""),
    ("replace(\"a.b.c\", \".\", \"-\")", "\"a-b-c\""),
    ("reverse(\"abc\")", "\"cba\""),
    ("strrev(\"añ\")", "\"ña\""),
    ("split(\",\", \"a,b,\")", "[\"a\", \"b\", \"\"]"),
    ("split(\"\", \"ab\")", "[\"a\", \"b\"]"),
    ("split(\",\", \"\")", "[]"),
    ("strlen(\"añ\")", "2"),
    ("substr(\"hello\", 1, 3)", "\"ell\""),
    ("substr(\"hello\", -3, -1)", "\"llo\""),
    ("substr(\"hello\", 9, 3)", "\"\""),
    ("title(\"hello big world\")", "\"Hello Big World\""),
    ("trim(\"?!a?!\", \"!?\")", "\"a\""),
    ("trimprefix(\"v1.2\", \"v\")", "\"1.2\""),
    ("trimsuffix(\"a.hcl\", \".hcl\")", "\"a\""),
    ("trimspace(\" a \\n\")", "\"a\""),
    // formats
    ("format(\"%s-%d-%t\", \"a\", 5, true)", "\"a-5-true\""),
    (
        "format(\"%05d|%-5s|%5s|%+d\", 42, \"a\", \"b\", 7)",
        "\"00042|a    |    b|+7\"",
    ),
    (
        "format(\"%.2f %e %x %X %o %b %%\", 3.14159, 1500, 255, 255, 8, 5)",
        "\"3.14 1.500000e+03 ff FF 10 101 %\"",
    ),
    (
        "format(\"%q %v %v %#v\", \"a\\\"b\", [1], \"x\", \"x\")",
        "\"\\\"a\\\\\\\"b\\\" [1] x \\\"x\\\"\"",
    ),
    ("format(\"%[2]s %[1]s\", \"a\", \"b\")", "\"b a\""),
    ("format(\"%06.2f\", -3.14159)", "\"-03.14\""),
    (
        "formatlist(\"%s:%d\", [\"a\", \"b\"], 80)",
        "[\"a:80\", \"b:80\"]",
    ),
    // collections
    ("chunklist([1, 2, 3], 2)", "[[1, 2], [3]]"),
    ("chunklist([1, 2], 0)", "[[1, 2]]"),
    ("coalesce(null, \"\", \"a\")", "\"a\""),
    ("coalescelist([], [1])", "[1]"),
    ("compact([\"a\", \"\", null, \"b\"])", "[\"a\", \"b\"]"),
    ("concat([1], [2, 3], [])", "[1, 2, 3]"),
    ("contains([\"a\"], \"a\")", "true"),
    ("contains([1], \"1\")", "false"),
    ("distinct([1, 2, 1, 1.0])", "[1, 2]"),
    ("element([\"a\", \"b\"], 3)", "\"b\""),
    ("element([\"a\", \"b\"], -1)", "\"b\""),
    ("flatten([1, [2, [3]], []])", "[1, 2, 3]"),
    ("index([\"a\", \"b\"], \"b\")", "1"),
    ("keys({ b = 1, a = 2 })", "[\"a\", \"b\"]"),
    ("values({ b = 1, a = 2 })", "[2, 1]"),
    ("length([1, 2])", "2"),
    ("length({ a = 1 })", "1"),
    ("lookup({ a = 1 }, \"a\", 9)", "1"),
    ("lookup({ a = 1 }, \"b\", 9)", "9"),
    (
        "merge({ a = 1, b = 1 }, { b = 2 }, null)",
        "{ a = 1, b = 2 }",
    ),
    ("range(3)", "[0, 1, 2]"),
    ("range(1, 4)", "[1, 2, 3]"),
    ("range(3, 0, -1)", "[3, 2, 1]"),
    ("range(0, 1, 0.5)", "[0, 0.5]"),
    ("range(0)", "[]"),
    ("range(2, 0)", "[2, 1]"),
    ("slice([1, 2, 3], 1, 3)", "[2, 3]"),
    ("sort([\"b\", \"a\", \"B\"])", "[\"B\", \"a\", \"b\"]"),
    ("zipmap([\"a\", \"b\"], [1, 2])", "{ a = 1, b = 2 }"),
    ("setunion([\"b\"], [\"a\", \"b\"])", "[\"a\", \"b\"]"),
    ("setintersection([\"a\", \"b\"], [\"b\", \"c\"])", "[\"b\"]"),
    ("setproduct([1, 2], [\"a\"])", "[[1, \"a\"], [2, \"a\"]]"),
    // encodings
    // digests: the test vectors of RFC 1321, RFC 3174 and FIPS 180-2
    ("md5(\"abc\")", "\"900150983cd24fb0d6963f7d28e17f72\""),
    (
        "sha1(\"abc\")",
        "\"a9993e364706816aba3e25717850c26c9cd0d89d\"",
    ),
    (
        "sha256(\"abc\")",
        "\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"",
    ),
    ("strlen(sha512(\"abc\"))", "128"),
    (
        "sha512(\"abc\") == lower(\"DDAF35A193617ABACC417349AE20413112E6FA4E89A97EA20A9EEEE64B55D39A2192992A274FC1A836BA3C23A3FEEBBD454D4423643CE80E2A9AC94FA54CA49F\")",
        "true",
    ),
    // times
    (
        "formatdate(\"DD MMM YYYY hh:mm ZZZ\", \"2018-01-02T23:12:01Z\")",
        "\"02 Jan 2018 23:12 UTC\"",
    ),
    (
        "formatdate(\"EEEE, DD-MMM-YY hh:mm:ss ZZZ\", \"2018-01-02T23:12:01Z\")",
        "\"Tuesday, 02-Jan-18 23:12:01 UTC\"",
    ),
    (
        "formatdate(\"EEE, DD MMM YYYY hh:mm:ss ZZZ\", \"2018-01-02T23:12:01-08:00\")",
        "\"Tue, 02 Jan 2018 23:12:01 -0800\"",
    ),
    (
        "formatdate(\"MMM DD, YYYY\", \"2018-01-02T23:12:01Z\")",
        "\"Jan 02, 2018\"",
    ),
    (
        "formatdate(\"HH:mmaa\", \"2018-01-02T23:12:01Z\")",
        "\"11:12pm\"",
    ),
    (
        "formatdate(\"h'h'm'm' 'o''clock' H AA s MMMM M D YY ZZZZZ Z\", \"2018-03-04T00:02:01+01:00\")",
        "\"0h2m o'clock 12 AM 1 March 3 4 18 +01:00 +01:00\"",
    ),
    (
        "timeadd(\"2017-11-22T00:00:00Z\", \"10m\")",
        "\"2017-11-22T00:10:00Z\"",
    ),
    (
        "timeadd(\"2017-11-22T00:00:00+02:00\", \"-1h30m\")",
        "\"2017-11-21T22:30:00+02:00\"",
    ),
    // YAML
    ("yamlencode({a = \"b\"})", "\"\\\"a\\\": \\\"b\\\"\\n\""),
    (
        "yamlencode({foo = [1, {a = \"b\", c = [\"d\"]}, [2, 3]], bar = {}, baz = [], n = null})",
        "\"\\\"bar\\\": {}\\n\\\"baz\\\": []\\n\\\"foo\\\":\\n- 1\\n- \\\"a\\\": \\\"b\\\"\\n  \\\"c\\\":\\n  - \\\"d\\\"\\n- - 2\\n  - 3\\n\\\"n\\\": null\\n\"",
    ),
    ("yamlencode(\"a\\nb\")", "\"|-\\n  a\\n  b\\n\""),
    (
        "yamlencode({a = [\"x\\n\\ny\\n\"]})",
        "\"\\\"a\\\":\\n- |\\n  x\\n\\n  y\\n\"",
    ),
    ("yamlencode(\"\\n\")", "\"|2+\\n\\n...\\n\""),
    ("yamlencode(\"a \\nb\")", "\"\\\"a \\\\nb\\\"\\n\""),
    ("yamlencode(1.5)", "\"1.5\\n...\\n\""),
    ("yamlencode(\"\\t\\\"é\")", "\"\\\"\\\\t\\\\\\\"é\\\"\\n\""),
    (
        "length(split(\"\\n\", yamlencode({a = join(\" \", [for i in range(30) : \"word\"])})))",
        "3",
    ),
    (
        "yamldecode(\"a: [1, 2.5, x]\\nb: {c: yes, d: ~}\")",
        "{a = [1, 2.5, \"x\"], b = {c = true, d = null}}",
    ),
    (
        "yamldecode(\"- '1'\\n- 0x10\\n- 0o17\\n- 1e3\\n- -5\\n- 1.2.3\\n- !!str 7\")",
        "[\"1\", 16, 15, 1000, -5, \"1.2.3\", \"7\"]",
    ),
    (
        "yamldecode(\"x: &d {a: 1, b: 2}\\nz: {<<: *d, b: 3}\").z",
        "{a = 1, b = 3}",
    ),
    ("yamldecode(\"\")", "null"),
    (
        "yamldecode(yamlencode({a = [\"x\\ny\\n\", {b = false}]}))",
        "{a = [\"x\\ny\\n\", {b = false}]}",
    ),
    ("base64encode(\"hi!\")", "\"aGkh\""),
    ("base64encode(\"a\")", "\"YQ==\""),
    ("base64encode(\"\")", "\"\""),
    ("base64decode(\"YWI=\")", "\"ab\""),
    (
        "jsonencode({ a = [1, \"x\", null, true] })",
        "\"{\\\"a\\\":[1,\\\"x\\\",null,true]}\"",
    ),
    ("jsondecode(\"{\\\"a\\\":[1.0,2.5]}\")", "{ a = [1, 2.5] }"),
    ("urlencode(\"a b&c/ü\")", "\"a+b%26c%2F%C3%BC\""),
    (
        "csvdecode(\"a,b\\n1,\\\"x,\\\"\\\"y\\\"\\n\")",
        "[{ a = \"1\", b = \"x,\\\"y\" }]",
    ),
    (
        "csvdecode(\"a\\r\\n\\\"\\\"\\r\\n\\nz\")",
        "[{ a = \"\" }, { a = \"z\" }]",
    ),
    // networks
    ("cidrhost(\"10.1.0.0/16\", 258)", "\"10.1.1.2\""),
    ("cidrhost(\"10.1.0.0/24\", -2)", "\"10.1.0.254\""),
    ("cidrhost(\"2001:db8::/32\", 1)", "\"2001:db8::1\""),
    (
        "cidrhost(\"::/0\", -1)",
        "\"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff\"",
    ),
    ("cidrnetmask(\"172.16.0.0/12\")", "\"255.240.0.0\""),
    ("cidrsubnet(\"172.16.0.0/12\", 4, 2)", "\"172.18.0.0/16\""),
    ("cidrsubnet(\"0.0.0.0/0\", 0, 0)", "\"0.0.0.0/0\""),
    (
        "cidrsubnets(\"10.1.0.0/16\", 4, 4, 8, 4)",
        "[\"10.1.0.0/20\", \"10.1.16.0/20\", \"10.1.32.0/24\", \"10.1.48.0/20\"]",
    ),
    // special forms
    ("can(1 / 0)", "false"),
    ("can(1)", "true"),
    ("try(1 / 0, [][0], \"z\")", "\"z\""),
    ("convert([\"1\", 2], list(number))", "[1, 2]"),
    (
        "convert([\"b\", \"a\", \"b\"], set(string))",
        "[\"a\", \"b\"]",
    ),
    // expansion of the last argument
    ("max([1, 5, 3]...)", "5"),
    ("join(\",\", [\"a\"], [[\"b\"], [\"c\"]]...)", "\"a,b,c\""),
];

const REFUSALS: &[(&str, &str)] = &[
    (
        "uuidv5(\"ip\", \"a\")",
        "is not a valid namespace: want dns, url, oid, x500 or a UUID",
    ),
    ("abs(\"x\")", "argument 1 must be a number; got a string"),
    ("abs()", "got 0 arguments, call it as abs(number)"),
    ("abs(1, 2)", "got 2 arguments"),
    ("log(0, 2)", "the result is not a number"),
    ("pow(10, 400)", "the result is not a number"),
    ("parseint(\"x\", 10)", "is not a whole number in base 10"),
    ("parseint(\"1\", 99)", "the base must be between 2 and 36"),
    ("reverse([1])", "it reverses a text, not a list"),
    ("indent(-1, \"a\")", "must be between 0 and"),
    (
        "regex_replace(\"a\", \"(\", \"\")",
        "is not a valid regular expression",
    ),
    ("format(\"%d\", \"x\")", "%d takes a whole number"),
    ("format(\"%s\")", "there is no argument 1"),
    ("format(\"a\", 1)", "uses 0 of its 1 arguments"),
    ("format(\"%\")", "ends in the middle of a % directive"),
    ("format(\"%y\", 1)", "there is no %y"),
    (
        "format(\"%99999999999d\", 1)",
        "widths and precisions go up to",
    ),
    ("formatlist(\"%s%s\", [1], [1, 2])", "must be equally long"),
    ("coalesce(null)", "all of its arguments are null"),
    ("element([], 0)", "the list is empty"),
    ("length(\"abc\")", "use strlen"),
    ("lookup({ a = 1 }, \"b\")", "there is no key \"b\""),
    ("range(5000)", "at most 1024"),
    ("range(0, 5, 0)", "the step must lead"),
    ("range(0, 5, -1)", "the step must lead"),
    ("slice([1], 1, 5)", "is not within the 1 elements"),
    ("slice([1], 1, 0)", "is not within the 1 elements"),
    ("zipmap([\"a\"], [])", "there are 1 keys and 0 values"),
    ("yamldecode(\"a: [\")", "not YAML"),
    ("yamldecode(\"--- 1\\n--- 2\")", "several documents"),
    ("yamldecode(\"a: .inf\")", "not supported"),
    ("yamldecode(\"!x a\")", "not supported"),
    ("yamldecode(\"{[a]: b}\")", "a key of an object"),
    (
        "formatdate(\"YYYYY\", \"2018-01-02T23:12:01Z\")",
        "single quotes",
    ),
    (
        "formatdate(\"'a\", \"2018-01-02T23:12:01Z\")",
        "quote without its end",
    ),
    ("formatdate(\"YYYY\", \"2018-01-02\")", "RFC 3339"),
    (
        "timeadd(\"2018-01-02T23:12:01Z\", \"1d\")",
        "is not a duration",
    ),
    ("base64decode(\"a\")", "is not base64"),
    ("base64decode(\"YR==\")", "is not base64"),
    ("base64decode(\"/w==\")", "is not UTF-8"),
    ("jsondecode(\"{\")", "is not JSON"),
    (
        "csvdecode(\"a,b\\n1\")",
        "record 1 has 1 fields instead of 2",
    ),
    ("csvdecode(\"a\\n\\\"\")", "has no end"),
    ("cidrhost(\"10.0.0.0/30\", 4)", "has no host 4"),
    ("cidrhost(\"10.0.0.0/33\", 1)", "is not a valid prefix"),
    ("cidrsubnet(\"10.0.0.0/30\", 4, 0)", "do not fit behind /30"),
    ("cidrsubnet(\"10.0.0.0/8\", 1, 2)", "there is no subnet 2"),
    (
        "cidrsubnets(\"10.0.0.0/31\", 1, 1, 1)",
        "do not fit into the prefix",
    ),
    ("cidrnetmask(\"::/0\")", "only IPv4"),
    ("convert(\"x\", number)", "a number is required"),
    ("can()", "call it as can(expression)"),
    ("max(5...)", "... takes a list; got a number"),
    ("upper(attr.x...)", "... takes a list"),
    ("abs(meta.x)", "is known only when the task runs"),
    ("file(\"x\")", "filesystem function disabled"),
    ("basename(\"x\")", "filesystem function disabled"),
];

#[test]
fn every_function_returns_the_value_in_its_table() {
    for (call, expected) in VALUES {
        assert_eq!(eval(call), Ok(eval(expected).unwrap()), "{call}");
    }
}

#[test]
fn errors_of_functions_state_the_reason() {
    for (call, reason) in REFUSALS {
        let error = eval(call).expect_err(call);
        assert!(error.contains(reason), "{call}: {error}");
    }
}

#[test]
fn no_function_is_untested_and_no_name_is_taken_twice() {
    let mut names = BTreeSet::new();
    let tested = |name: &str| {
        let start = format!("{name}(");
        VALUES
            .iter()
            .chain(REFUSALS)
            .any(|(call, _)| call.starts_with(&start))
    };
    for name in all()
        .map(|function| function.name)
        .chain(SPECIAL.map(|(name, _)| name))
    {
        assert!(names.insert(name), "{name} is there twice");
        assert!(
            super::unavailable::instead(name).is_none(),
            "{name} is said to be unavailable"
        );
        assert!(
            tested(name)
                || name.starts_with("file")
                || ["abspath", "dirname", "pathexpand"].contains(&name),
            "{name} is untested"
        );
    }
}

/// `motd`, `binary`, `conf/a.conf`, `conf/sub/b.conf` and `conf/c.txt` below `/jobs`.
struct SomeFiles;

impl Files for SomeFiles {
    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        match path.to_str() {
            Some("motd") => Ok(b"hello\n".to_vec()),
            Some("binary") => Ok(vec![0xff]),
            _ => Err(Error::from(ErrorKind::NotFound)),
        }
    }

    fn list(&self, directory: &Path, _: usize) -> std::io::Result<Vec<PathBuf>> {
        match directory.to_str() {
            Some("conf") => Ok(["sub/b.conf", "c.txt", "a.conf"].map(PathBuf::from).into()),
            _ => Err(Error::from(ErrorKind::NotFound)),
        }
    }

    fn working_directory(&self) -> std::io::Result<PathBuf> {
        Ok(PathBuf::from("/jobs"))
    }

    fn home(&self) -> Option<PathBuf> {
        Some(PathBuf::from("/home/me"))
    }
}

#[test]
fn files_are_read_through_what_the_caller_gives() {
    let host = Host {
        files: Some(Arc::new(SomeFiles)),
        ..Host::default()
    };
    for (call, expected) in [
        ("file(\"motd\")", "\"hello\\n\""),
        ("filebase64(\"binary\")", "\"/w==\""),
        ("fileexists(\"motd\")", "true"),
        ("fileexists(\"gone\")", "false"),
        ("basename(\"/a/b.txt\")", "\"b.txt\""),
        ("basename(\"/a/b/\")", "\"b\""),
        ("dirname(\"/a/b.txt\")", "\"/a\""),
        ("dirname(\"b.txt\")", "\".\""),
        ("dirname(\"/b.txt\")", "\"/\""),
        ("abspath(\"a/./b/../c\")", "\"/jobs/a/c\""),
        ("abspath(\"/../etc/\")", "\"/etc\""),
        ("pathexpand(\"~/key\")", "\"/home/me/key\""),
        ("pathexpand(\"~\")", "\"/home/me\""),
        ("pathexpand(\"a~\")", "\"a~\""),
        ("fileset(\"conf\", \"*.conf\")", "[\"a.conf\"]"),
        (
            "fileset(\"conf\", \"**/*.conf\")",
            "[\"a.conf\", \"sub/b.conf\"]",
        ),
        (
            "fileset(\"conf\", \"*.{txt,conf}\")",
            "[\"a.conf\", \"c.txt\"]",
        ),
    ] {
        assert_eq!(
            with_host(call, &host),
            Ok(eval(expected).unwrap()),
            "{call}"
        );
    }
    let binary = with_host("file(\"binary\")", &host).unwrap_err();
    assert!(binary.contains("use filebase64"), "{binary}");
    assert!(
        with_host("file(\"gone\")", &host)
            .unwrap_err()
            .contains("cannot read \"gone\"")
    );
    for (call, part) in [
        ("fileset(\"gone\", \"*\")", "cannot list \"gone\""),
        (
            "fileset(\"conf\", \"[\")",
            "is not a valid pattern of paths",
        ),
        ("pathexpand(\"~root/x\")", "write the whole path"),
    ] {
        let error = with_host(call, &host).unwrap_err();
        assert!(error.contains(part), "{call}: {error}");
    }
}

#[test]
fn results_that_grow_without_bound_are_stopped() {
    for call in [
        "[for a in range(1000) : [for b in range(1000) : [for c in range(1000) : c]]]",
        "setproduct(range(1000), range(1000), range(1000))",
        "regex_replace(join(\"\", [for i in range(1000) : \"aaaaaaaaaa\"]), \"a*\", join(\"\", [for i in range(1000) : \"$0$0$0$0$0$0\"]))",
        "replace(join(\"\", [for i in range(1000) : \"aaaaaaaaaa\"]), \"a\", join(\"\", [for i in range(1000) : \"aaaaaaaaaa\"]))",
    ] {
        let error = eval(call).unwrap_err();
        assert!(
            error.contains("too many steps") || error.contains("grow too large"),
            "{error}"
        );
    }
}
