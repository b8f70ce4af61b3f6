//! Look-ups: their answers, and renderings that wait for them.

use std::collections::BTreeSet;

use template::{NoSource, Rendered, Template};

use crate::support::{render, text, with};

fn waits(source: &str) -> Vec<String> {
    match render(source) {
        Ok(Rendered::Waiting(lookups)) => lookups.iter().map(ToString::to_string).collect(),
        other => panic!("{source}: {other:?}"),
    }
}

#[test]
fn a_rendering_waits_for_all_of_its_missing_data() {
    assert_eq!(
        waits("{{ with nomadVar `app/no` }}x{{ end }}"),
        ["nomad.var.block(app/no@default.global)"]
    );
    assert_eq!(
        waits("{{ nomadVar `a@ns` }}{{ nomadVar `a@ns.eu` }}"),
        ["nomad.var.block(a@ns.eu)", "nomad.var.block(a@ns.global)"]
    );
    assert_eq!(
        waits("{{ key `a` }}{{ range service `web` `any` }}{{ end }}{{ secret `kv/x` `a=b` }}"),
        [
            "consul.key(a)",
            "consul.service(web, any)",
            "vault.write(kv/x)",
        ]
    );
    assert_eq!(
        waits("{{ range nomadVarListSafe `none` }}{{ end }}"),
        ["nomad.var.list(none@default.global)"]
    );
}

#[test]
fn an_error_behind_missing_data_is_no_error() {
    assert_eq!(waits("{{ (secret `kv/x`).Data.y }}"), ["vault.read(kv/x)"]);
    assert_eq!(
        waits("{{ index (service `web`) 0 }}"),
        ["consul.service(web)"]
    );
}

#[test]
fn without_a_source_each_look_up_is_missing() {
    for (call, want) in [
        ("nomadVarExists `a`", "nomad.var.block(a@default.global)"),
        ("nomadVarList", "nomad.var.list(@default.global)"),
        ("nomadService 2 `k` `web`", "nomad.service(web, 2 of k)"),
        ("nomadServices", "nomad.services"),
        ("keyOrDefault `a` `b`", "consul.keyOrDefault(a)"),
    ] {
        let rendered = with(
            |context| context.source = &NoSource,
            |context| {
                Template::parse(&format!("{{{{ {call} }}}}"), "", "")
                    .unwrap()
                    .render(context)
                    .unwrap()
            },
        );
        let Rendered::Waiting(lookups) = rendered else {
            panic!("{call}: {rendered:?}")
        };
        assert_eq!(
            lookups.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [want]
        );
    }
}

#[test]
fn the_look_ups_of_a_template_are_known_before_it_is_rendered() {
    let source = "{{ define `t` }}{{ key `a` }}{{ end }}{{ if eq (len (services)) 0 }}{{ else }}{{ $x := nomadVar `x` | toJSON }}{{ end }}{{ env `A` }}";
    let look_ups = Template::parse(source, "", "").unwrap().look_ups();
    assert_eq!(look_ups, BTreeSet::from(["key", "nomadVar", "services"]));
}

#[test]
fn data_of_consul_has_fields() {
    for (source, want) in [
        ("{{ key `app/name` }}", "shop"),
        (
            "{{ keyExists `app/name` }} {{ keyExists `app/none` }}",
            "true false",
        ),
        (
            "{{ keyOrDefault `app/name` `d` }} {{ keyOrDefault `app/none` `d` }} {{ keyOrDefault `app/empty` 7 }}",
            "shop d 7",
        ),
        (
            "{{ range ls `app` }}{{ .Key }}={{ .Value }} {{ .Path }}{{ end }}",
            "name=shop app/name",
        ),
        ("{{ len (ls `none`) }}", "0"),
        (
            "{{ with tree `app` | explode }}{{ .db.host }}:{{ .db.port }} {{ .name }}{{ end }}",
            "h:5432 shop",
        ),
        (
            "{{ range $first, $pairs := tree `app` | byKey }}{{ $first }}:{{ range $key, $pair := $pairs }}{{ $key }}={{ .Value }};{{ end }}{{ end }}",
            "db:host=h;port=5432;name:=shop;",
        ),
        (
            "{{ range $i, $s := service `srv` }}{{ $i }} {{ .Name }} {{ .Address }}:{{ .Port }} {{ .Tags }}{{ end }}",
            "0 srv 10.0.0.7:8080 [a b]",
        ),
        (
            "{{ range $zone, $list := service `srv` | byMeta `zone` }}{{ $zone }}{{ len $list }}{{ end }}",
            "z11",
        ),
        (
            "{{ range $tag, $list := service `srv` | byTag }}{{ $tag }}{{ end }}",
            "ab",
        ),
        (
            "{{ with node `n1` }}{{ .Node.Node }}{{ end }}{{ with node `none` }}x{{ end }}",
            "n1",
        ),
        ("{{ range datacenters }}{{ . }} {{ end }}", "dc1 dc2 "),
    ] {
        assert_eq!(text(source), want, "{source}");
    }
    assert_eq!(waits("{{ key `app/none` }}"), ["consul.key(app/none)"]);
    assert_eq!(
        waits("{{ range safeLs `none` }}{{ end }}"),
        ["consul.safeLs(none)"]
    );
}

#[test]
fn variables_and_services_have_fields() {
    assert_eq!(
        text(
            "{{ with nomadVar `app/db` }}{{ .Metadata.ModifyIndex }} {{ .user | toUpper }} {{ toJSON . }}{{ end }}"
        ),
        "7 U {\"pass\":\"p w\",\"user\":\"u\"}"
    );
    assert_eq!(
        text("{{ range nomadService `srv` }}{{ .Address }}:{{ .Port }}{{ end }}"),
        "127.0.0.1:23111"
    );
    assert_eq!(
        text(
            "{{ range $tag, $services := nomadService `srv` | byTag }}{{ $tag }}={{ len $services }};{{ end }}"
        ),
        "a=1;b=1;"
    );
    assert!(
        render("{{ range nomadService `srv` }}{{ .Nope }}{{ end }}")
            .unwrap_err()
            .message
            .contains("there are .Address")
    );
}

#[test]
fn secrets_have_data_and_a_lease() {
    assert_eq!(
        text(
            "{{ with secret `kv/app` }}{{ .Data.data.user }} {{ .Data.data.port }} {{ .LeaseDuration }} {{ .LeaseID }} \
             {{ .Renewable }} {{ .Data.data | toJSON }}{{ end }}"
        ),
        "u 5432 60 l true {\"list\":[\"a\"],\"port\":5432,\"user\":\"u\"}"
    );
    assert_eq!(
        text("{{ range secrets `kv` }}{{ . }};{{ end }}"),
        "app;more/;"
    );
    assert_eq!(text("{{ (secret `kv/app`).Data.data.none }}"), "<no value>");
}

#[test]
fn a_write_has_a_result_and_its_values_are_in_no_message() {
    let call = "secret `pki/issue/web` `common_name=PLANTED`";
    let write = format!("{{{{ with {call} }}}}{{{{ .Data.certificate }}}}{{{{ end }}}}");
    assert_eq!(text(&write), "C of PLANTED\n");
    let cert = "{{ with pkiCert `pki/issue/web` `common_name=a` }}{{ .Cert }}{{ .Key }}{{ .CA }}{{ index .CAChain 1 }}{{ end }}";
    assert_eq!(text(cert), "C of a\nKAB");
    assert_eq!(
        waits("{{ secret `kv/x` `a=PLANTED` `b=` }}"),
        ["vault.write(kv/x)"]
    );
    let Ok(Rendered::Waiting(lookups)) = render("{{ secret `kv/x` `a=PLANTED` }}") else {
        panic!("it does not wait")
    };
    assert!(!format!("{lookups:?}").contains("PLANTED"));
    let wrong = render("{{ secret `kv/x` `PLANTED` }}").unwrap_err().message;
    assert!(
        wrong.contains("NAME=VALUE") && !wrong.contains("PLANTED"),
        "{wrong}"
    );
    let wrong = render("{{ secret `` }}").unwrap_err().message;
    assert!(wrong.contains("path"), "{wrong}");
}

#[test]
fn a_missing_key_of_a_secret_is_an_error_on_request() {
    let strict = with(
        |context| context.missing_key_is_error = true,
        |context| {
            Template::parse("{{ (secret `kv/app`).Data.data.none }}", "", "")
                .unwrap()
                .render(context)
        },
    );
    let message = strict.unwrap_err().message;
    assert!(message.contains("\"none\""), "{message}");
}
