//! `sockaddr`: an expression over the node's interfaces, in the template language with functions of its own.

use std::rc::Rc;

use crate::function::{Call, Failure, Function, exact};
use crate::sockaddr::Interface;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    exact("GetAllInterfaces", 0, |call| interfaces(call, |_| true)),
    exact("GetDefaultInterfaces", 0, |call| {
        interfaces(call, |interface| interface.is_default)
    }),
    exact("GetPrivateInterfaces", 0, |call| {
        interfaces(call, Interface::is_private)
    }),
    exact("GetPublicInterfaces", 0, |call| {
        interfaces(call, Interface::is_public)
    }),
    exact("GetPrivateIP", 0, |call| first(call, Interface::is_private)),
    exact("GetPrivateIPs", 0, |call| all(call, Interface::is_private)),
    exact("GetPublicIP", 0, |call| first(call, Interface::is_public)),
    exact("GetPublicIPs", 0, |call| all(call, Interface::is_public)),
    exact("GetInterfaceIP", 1, |call| {
        let name = call.text(0)?;
        first(call, |interface| {
            interface.name == *name && interface.is_forwardable()
        })
    }),
    exact("GetInterfaceIPs", 1, |call| {
        let name = call.text(0)?;
        all(call, |interface| {
            interface.name == *name && interface.is_forwardable()
        })
    }),
    exact("include", 3, |call| filter(call, true)),
    exact("exclude", 3, |call| filter(call, false)),
    exact("limit", 2, |call| {
        let (count, list) = (call.size(0)?, call.list(1)?);
        Ok(Value::list(
            list.items.iter().take(count).cloned().collect(),
        )?)
    }),
    exact("attr", 2, |call| {
        let name = call.text(0)?;
        let value = match call.value(1) {
            // Of a list, the first interface has the attribute.
            Value::List(list) => list.items.first().cloned().unwrap_or(Value::Nil),
            value => value.clone(),
        };
        Ok(attribute(&value, &name)?.as_ref().into())
    }),
    exact("join", 3, |call| {
        let (name, separator, list) = (call.text(0)?, call.text(1)?, call.list(2)?);
        let words = list
            .items
            .iter()
            .map(|value| attribute(value, &name))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(words.join(&*separator).into())
    }),
];

/// Interfaces with the default route first, IPv4 before IPv6.
fn chosen<'a>(call: &'a Call<'_>, accept: impl Fn(&Interface) -> bool) -> Vec<&'a Interface> {
    let mut chosen: Vec<_> = call
        .interpreter
        .context()
        .interfaces
        .iter()
        .filter(|interface| accept(interface))
        .collect();
    chosen.sort_by_key(|interface| (!interface.is_default, interface.address.is_ipv6()));
    chosen
}

fn interfaces(call: &mut Call<'_>, accept: impl Fn(&Interface) -> bool) -> Result<Value, Failure> {
    let records = chosen(call, accept).into_iter().map(|interface| {
        let kind = if interface.address.is_ipv4() {
            "IPv4"
        } else {
            "IPv6"
        };
        Value::record([
            ("name", interface.name.as_str().into()),
            ("address", interface.address.to_string().into()),
            ("type", kind.into()),
        ])
    });
    Ok(Value::list(records.collect())?)
}

fn first(call: &mut Call<'_>, accept: impl Fn(&Interface) -> bool) -> Result<Value, Failure> {
    Ok(chosen(call, accept)
        .first()
        .map(|interface| interface.address.to_string())
        .unwrap_or_default()
        .into())
}

fn all(call: &mut Call<'_>, accept: impl Fn(&Interface) -> bool) -> Result<Value, Failure> {
    let addresses: Vec<_> = chosen(call, accept)
        .iter()
        .map(|interface| interface.address.to_string())
        .collect();
    Ok(addresses.join(" ").into())
}

fn attribute(value: &Value, name: &str) -> Result<Rc<str>, Failure> {
    let Value::Record(record) = value else {
        return Err("there is no interface".into());
    };
    let known = record.fields.get(name).and_then(Value::as_text);
    known.cloned().ok_or_else(|| {
        format!("an interface has no attribute {name:?} here; it has address, name, type").into()
    })
}

fn filter(call: &mut Call<'_>, keeps: bool) -> Result<Value, Failure> {
    let (name, wanted, list) = (call.text(0)?, call.text(1)?, call.list(2)?);
    let pattern = call.pattern(1)?;
    let mut kept = Vec::new();
    for value in &list.items {
        let attribute = attribute(value, &name)?;
        let fits = match &*name {
            "type" => attribute.eq_ignore_ascii_case(&wanted) || wanted.eq_ignore_ascii_case("ip"),
            _ => pattern.is_match(&attribute),
        };
        if fits == keeps {
            kept.push(value.clone());
        }
    }
    Ok(Value::list(kept)?)
}
