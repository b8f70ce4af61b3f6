//! Digests, in hexadecimal: `md5 sha1 sha256 sha512`.

use data_encoding::HEXLOWER;
use md5::Md5;
use sha1::{Digest, Sha1};
use sha2::{Sha256, Sha512};

use super::call::Call;
use super::function::Function;
use crate::language::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "md5",
        parameters: "text",
        call: digest::<Md5>,
    },
    Function {
        name: "sha1",
        parameters: "text",
        call: digest::<Sha1>,
    },
    Function {
        name: "sha256",
        parameters: "text",
        call: digest::<Sha256>,
    },
    Function {
        name: "sha512",
        parameters: "text",
        call: digest::<Sha512>,
    },
];

fn digest<D: Digest>(call: &Call<'_>) -> Result<Value, String> {
    let digest = D::digest(call.text(0)?.as_bytes());
    Ok(Value::String(HEXLOWER.encode(&digest)))
}
