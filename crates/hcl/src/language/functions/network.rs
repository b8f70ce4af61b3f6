//! Addresses: `cidrhost cidrnetmask cidrsubnet cidrsubnets`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::call::Call;
use super::function::Function;
use super::text::text;
use crate::language::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "cidrhost",
        parameters: "prefix, number",
        call: cidrhost,
    },
    Function {
        name: "cidrnetmask",
        parameters: "prefix",
        call: cidrnetmask,
    },
    Function {
        name: "cidrsubnet",
        parameters: "prefix, bits, number",
        call: cidrsubnet,
    },
    Function {
        name: "cidrsubnets",
        parameters: "prefix, bits…",
        call: cidrsubnets,
    },
];

/// A range of addresses; host bits of `base` are zero.
#[derive(Clone, Copy)]
struct Prefix {
    base: u128,
    length: u32,
    /// Bits of an address: 32 or 128.
    width: u32,
}

impl Prefix {
    fn read(text: &str) -> Result<Self, String> {
        let problem = || format!("{text:?} is not a valid prefix: write one as in \"10.1.0.0/16\"");
        let (address, length) = text.split_once('/').ok_or_else(problem)?;
        let address: IpAddr = address.parse().map_err(|_| problem())?;
        let (bits, width) = match address {
            IpAddr::V4(address) => (u128::from(u32::from(address)), 32),
            IpAddr::V6(address) => (u128::from(address), 128),
        };
        let length = length
            .parse()
            .ok()
            .filter(|length| *length <= width)
            .ok_or_else(problem)?;
        let prefix = Self {
            base: 0,
            length,
            width,
        };
        Ok(Self {
            base: bits & !prefix.host_mask(),
            ..prefix
        })
    }

    fn host_mask(&self) -> u128 {
        mask(self.width - self.length)
    }

    fn show(&self, address: u128) -> String {
        match u32::try_from(address) {
            Ok(address) if self.width == 32 => Ipv4Addr::from(address).to_string(),
            _ => Ipv6Addr::from(address).to_string(),
        }
    }

    /// Returns the subnet `number` of those that are `bits` longer.
    fn subnet(&self, bits: u32, number: u128) -> Result<Self, String> {
        let length = self.length.saturating_add(bits);
        if length > self.width {
            return Err(format!(
                "{bits} more bits do not fit behind /{}",
                self.length
            ));
        }
        if number > mask(bits) {
            return Err(format!("there is no subnet {number} with {bits} bits"));
        }
        let shift = self.width - length;
        // A shift of 128 leaves no bits, so the number is 0.
        let base = self.base | number.checked_shl(shift).unwrap_or(0);
        Ok(Self {
            base,
            length,
            width: self.width,
        })
    }
}

/// Returns a number of `bits` ones.
fn mask(bits: u32) -> u128 {
    1_u128
        .checked_shl(bits)
        .map_or(u128::MAX, |power| power - 1)
}

fn bits(call: &Call<'_>, position: usize) -> Result<u32, String> {
    u32::try_from(call.whole(position)?).map_err(|_| "the bits must not be negative".to_owned())
}

/// A negative number counts from the end of the range.
fn cidrhost(call: &Call<'_>) -> Result<Value, String> {
    let (prefix, number) = (Prefix::read(&call.text(0)?)?, call.whole(1)?);
    let hosts = prefix.host_mask();
    let distance = u128::from(number.unsigned_abs());
    let host = if number < 0 {
        hosts.checked_sub(distance - 1)
    } else {
        Some(distance)
    };
    let host = host.filter(|host| *host <= hosts);
    let host = host.ok_or_else(|| format!("the prefix has no host {number}"))?;
    text(&prefix.show(prefix.base | host))
}

fn cidrnetmask(call: &Call<'_>) -> Result<Value, String> {
    let prefix = Prefix::read(&call.text(0)?)?;
    if prefix.width != 32 {
        return Err("only IPv4 prefixes have a mask of this form".to_owned());
    }
    text(&prefix.show(!prefix.host_mask() & mask(32)))
}

fn cidrsubnet(call: &Call<'_>) -> Result<Value, String> {
    let prefix = Prefix::read(&call.text(0)?)?;
    let number = u128::try_from(call.whole(2)?).map_err(|_| "the number must not be negative")?;
    let subnet = prefix.subnet(bits(call, 1)?, number)?;
    text(&format!("{}/{}", subnet.show(subnet.base), subnet.length))
}

/// Returns consecutive subnets, one per argument, which is the number of added bits.
fn cidrsubnets(call: &Call<'_>) -> Result<Value, String> {
    let prefix = Prefix::read(&call.text(0)?)?;
    let mut next = Some(prefix.base);
    let mut subnets = Vec::new();
    for position in 1..call.arguments.len() {
        let longer = prefix.subnet(bits(call, position)?, 0)?;
        let hosts = longer.host_mask();
        // The next address that is a multiple of the subnet's size.
        let base = next
            .and_then(|next| next.checked_add(hosts))
            .map(|end| end & !hosts);
        let base = base.filter(|base| *base & !prefix.host_mask() == prefix.base);
        let base = base.ok_or_else(|| "the subnets do not fit into the prefix".to_owned())?;
        next = base.checked_add(hosts).and_then(|end| end.checked_add(1));
        subnets.push(Value::String(format!(
            "{}/{}",
            prefix.show(base),
            longer.length
        )));
    }
    Ok(Value::Array(subnets))
}
