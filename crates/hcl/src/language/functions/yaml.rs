//! YAML: `yamldecode yamlencode`.

mod read;
mod write;

use super::function::Function;
use crate::language::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "yamldecode",
        parameters: "text",
        call: |call| read::document(call, &call.text(0)?),
    },
    Function {
        name: "yamlencode",
        parameters: "value",
        call: |call| Ok(Value::String(write::document(call.value(0)))),
    },
];
