//! Context of the renderings in tests: a small environment, one variable, one service, two interfaces.

use std::collections::BTreeMap;

use template::sockaddr::Interface;
use template::source::{Answer, Lookup, Secret, ServiceInstance, ServiceName, Source, Variable};
use template::{Error, Files, Limits, RenderContext, Rendered, Template};

pub(crate) const SERVICE_PORT: u16 = 23111;

pub(crate) struct Data;

impl Data {
    fn variable() -> Variable {
        let items = BTreeMap::from([
            ("user".to_owned(), "u".to_owned()),
            ("pass".to_owned(), "p w".to_owned()),
        ]);
        Variable {
            namespace: "default".to_owned(),
            path: "app/db".to_owned(),
            items,
            modify_index: 7,
            ..Variable::default()
        }
    }

    fn service() -> ServiceInstance {
        ServiceInstance {
            name: "srv".to_owned(),
            address: "127.0.0.1".to_owned(),
            port: SERVICE_PORT,
            tags: vec!["a".to_owned(), "b".to_owned()],
            ..ServiceInstance::default()
        }
    }
}

impl Source for Data {
    fn look_up(&self, lookup: &Lookup) -> Answer {
        let (variable, service) = (Self::variable(), Self::service());
        match lookup {
            Lookup::Variable { path } if path.path == variable.path => Answer::Variable(variable),
            Lookup::Variable { .. } => Answer::Absent,
            Lookup::Variables { prefix } if variable.path.starts_with(&prefix.path) => {
                Answer::Variables(vec![variable])
            }
            Lookup::Variables { .. } => Answer::Variables(Vec::new()),
            Lookup::Service { name, .. } if *name == service.name => {
                Answer::Instances(vec![service])
            }
            Lookup::Service { .. } => Answer::Instances(Vec::new()),
            Lookup::Services => Answer::Services(vec![ServiceName {
                name: service.name,
                tags: service.tags,
            }]),
            Lookup::Secret { path } if path == "kv/app" => Answer::Secret(Secret {
                lease_id: "l".to_owned(),
                lease_duration: 60,
                renewable: true,
                data: serde_json::json!({ "data": { "user": "u", "port": 5432, "list": ["a"] } }),
                ..Secret::default()
            }),
            Lookup::Secrets { path } if path == "kv" => {
                Answer::Names(vec!["app".to_owned(), "more/".to_owned()])
            }
            Lookup::SecretWrite { path, values } if path == "pki/issue/web" => {
                Answer::Secret(Secret {
                    data: serde_json::json!({
                        "certificate": format!("C of {}\n", values.0["common_name"]),
                        "private_key": "K", "issuing_ca": "A", "ca_chain": ["A", "B"],
                    }),
                    ..Secret::default()
                })
            }
            Lookup::Consul {
                function,
                arguments,
            } => consul(function, arguments.first().map_or("", String::as_str)),
            Lookup::Secret { .. } | Lookup::Secrets { .. } | Lookup::SecretWrite { .. } => {
                Answer::Missing
            }
        }
    }
}

fn consul(function: &str, argument: &str) -> Answer {
    use template::source::Data;
    let pair = |key: &str, value: &str| {
        Data::record([
            ("Path", Data::text(format!("app/{key}"))),
            ("Key", Data::text(key)),
            ("Value", Data::text(value)),
        ])
    };
    match (function, argument) {
        ("key" | "keyExists" | "keyOrDefault", "app/name") => Answer::Data(Data::text("shop")),
        ("key" | "keyExists" | "keyOrDefault", "app/none") => Answer::Absent,
        ("keyOrDefault", "app/empty") => Answer::Data(Data::text("")),
        ("ls" | "safeLs", "app") => Answer::Data(Data::List(vec![pair("name", "shop")])),
        ("ls" | "safeLs", _) => Answer::Data(Data::List(Vec::new())),
        ("tree" | "safeTree", "app") => Answer::Data(Data::List(vec![
            pair("db/host", "h"),
            pair("db/port", "5432"),
            pair("name", "shop"),
        ])),
        ("service", "srv") => Answer::Data(Data::List(vec![Data::record([
            ("Name", Data::text("srv")),
            ("Address", Data::text("10.0.0.7")),
            ("Port", Data::Int(8080)),
            ("Tags", Data::texts(["a", "b"])),
            (
                "ServiceMeta",
                Data::text_map([("zone".to_owned(), "z1".to_owned())].into()),
            ),
        ])])),
        ("node", "n1") => Answer::Data(Data::record([(
            "Node",
            Data::record([("Node", Data::text("n1"))]),
        )])),
        ("node", _) => Answer::Data(Data::Nil),
        ("datacenters", _) => Answer::Data(Data::texts(["dc1", "dc2"])),
        _ => Answer::Missing,
    }
}

impl Files for Data {
    fn read(&self, path: &str, _: usize) -> Result<String, String> {
        match path {
            "local/motd" => Ok("hello".to_owned()),
            _ => Err(format!("{path:?} is outside of the task's directories")),
        }
    }
}

pub(crate) fn env() -> BTreeMap<String, String> {
    let pairs = [("FOO", "bar"), ("NOMAD_PORT_http", "8080"), ("EMPTY", "")];
    pairs
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

pub(crate) fn with<T>(
    change: impl FnOnce(&mut RenderContext<'_>),
    then: impl FnOnce(&RenderContext<'_>) -> T,
) -> T {
    let env = env();
    let interface = |name: &str, address: &str, is_default| Interface {
        name: name.to_owned(),
        address: address.parse().expect("an IP address"),
        is_default,
    };
    let interfaces = [
        interface("lo", "127.0.0.1", false),
        interface("eth1", "203.0.114.9", false),
        interface("eth0", "fd00::2", true),
        interface("eth0", "10.0.0.2", true),
    ];
    let mut context = RenderContext {
        env: &env,
        files: &Data,
        source: &Data,
        namespace: "default",
        region: "global",
        interfaces: &interfaces,
        now: template::timestamp(1_795_435_509_012_345_678),
        missing_key_is_error: false,
        limits: Limits::default(),
    };
    change(&mut context);
    then(&context)
}

pub(crate) fn render(source: &str) -> Result<Rendered, Error> {
    with(
        |_| {},
        |context| Template::parse(source, "", "")?.render(context),
    )
}

/// The text of a template that renders.
#[track_caller]
pub(crate) fn text(source: &str) -> String {
    match render(source) {
        Ok(Rendered::Text(text)) => text,
        other => panic!("{source}: {other:?}"),
    }
}

/// The error of a template that fails.
#[track_caller]
pub(crate) fn error(source: &str) -> String {
    match render(source) {
        Err(error) => error.to_string(),
        Ok(rendered) => panic!("{source}: {rendered:?}"),
    }
}
