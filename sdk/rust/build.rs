//! Generates one method for each RPC of `kafila.v1` from /proto: a new RPC needs no code here.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

use prost_types::field_descriptor_proto::Label;
use prost_types::{DescriptorProto, FileDescriptorProto, MethodDescriptorProto};

const PACKAGE: &str = "kafila.v1";

/// Names of RPCs that change nothing begin so. Source: proto/kafila/v1/common.proto.
const READS: [&str; 5] = ["Get", "List", "Explain", "Plan", "Validate"];

/// Writes that set a state: a second one changes nothing. With a `check_index` they are not repeated,
/// because the first attempt changes the index.
const SETTING: [&str; 18] = [
    "Agent/SetLogLevel",
    "CsiVolumes/Create",
    "CsiVolumes/Detach",
    "CsiVolumes/Register",
    "Jobs/SetStable",
    "Jobs/TagVersion",
    "Namespaces/Upsert",
    "NodePools/Upsert",
    "Nodes/ApplyMeta",
    "Nodes/Refresh",
    "Nodes/Revoke",
    "Nodes/UpdateDrain",
    "Nodes/UpdateEligibility",
    "Operator/CompactEtcd",
    "Operator/DisarmEtcd",
    "Operator/SetSchedulerConfiguration",
    "Variables/Put",
    "Volumes/Register",
];

/// Fields that make a repeated write take effect once.
const REQUEST_IDS: [&str; 2] = ["request_id", "idempotency_token"];

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../proto");
    println!("cargo:rerun-if-changed={}", root.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(root.join("kafila/v1"))? {
        let name = entry?
            .file_name()
            .into_string()
            .map_err(|_| "a file name")?;
        if name.ends_with(".proto") {
            names.push(format!("kafila/v1/{name}"));
        }
    }
    names.sort();
    let descriptors = protox::compile(names, [root])?;
    let files: Vec<_> = descriptors
        .file
        .iter()
        .filter(|file| file.package() == PACKAGE)
        .collect();
    let api = Api {
        messages: files.iter().flat_map(|file| &file.message_type).collect(),
    };
    let mut code = String::new();
    let mut handles = String::new();
    for file in &files {
        for (position, service) in file.service.iter().enumerate() {
            let name = service.name();
            api.service(&mut code, file, position)?;
            writeln!(handles, "    /// RPCs of `{PACKAGE}.{name}`.")?;
            writeln!(
                handles,
                "    pub fn {}(&self) -> {name}<'_> {{ {name}(self) }}",
                snake(name)
            )?;
        }
    }
    writeln!(code, "impl crate::Client {{\n{handles}}}")?;
    api.reads(&mut code, &files)?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("rpc.rs"), code)?;
    Ok(())
}

struct Api<'a> {
    messages: Vec<&'a DescriptorProto>,
}

impl Api<'_> {
    fn has(&self, message: &str, field: &str) -> bool {
        self.field(message, |found| found == field).is_some()
    }

    /// Tells whether the message has a field of the message type `kafila.v1.<of_type>`.
    fn has_message(&self, message: &str, name: &str, of_type: &str) -> bool {
        let mut fields = self
            .messages
            .iter()
            .filter(|known| known.name() == message)
            .flat_map(|known| &known.field);
        fields.any(|field| {
            field.name() == name && field.type_name() == format!(".{PACKAGE}.{of_type}")
        })
    }

    fn field(&self, message: &str, is_wanted: impl Fn(&str) -> bool) -> Option<String> {
        let found = self.messages.iter().find(|known| known.name() == message)?;
        let mut names = found.field.iter().map(|field| field.name());
        names.find(|name| is_wanted(name)).map(str::to_owned)
    }

    /// Writes a handle with a method for each RPC of a service.
    fn service(
        &self,
        code: &mut String,
        file: &FileDescriptorProto,
        position: usize,
    ) -> Result<(), Box<dyn Error>> {
        let service = &file.service[position];
        let name = service.name();
        comment(code, "", file, &[6, i32::try_from(position)?])?;
        writeln!(code, "#[derive(Clone, Copy, Debug)]")?;
        writeln!(code, "pub struct {name}<'a>(&'a crate::Client);")?;
        writeln!(code, "impl<'a> {name}<'a> {{")?;
        for (index, method) in service.method.iter().enumerate() {
            let path = [6, i32::try_from(position)?, 2, i32::try_from(index)?];
            comment(code, "    ", file, &path)?;
            self.method(code, name, method)?;
        }
        writeln!(code, "}}")?;
        Ok(())
    }

    fn method(
        &self,
        code: &mut String,
        service: &str,
        method: &MethodDescriptorProto,
    ) -> Result<(), Box<dyn Error>> {
        let (input, output) = (
            message(method.input_type())?,
            message(method.output_type())?,
        );
        let rpc = method.name();
        if method.client_streaming() {
            writeln!(
                code,
                "    pub fn {}(self, requests: impl Stream<Item = v1::{input}> + Send + 'static) \
                 -> DuplexCall<'a, v1::{input}, v1::{output}> {{\n\
                 \x20       DuplexCall::new(self.0, \"/{PACKAGE}.{service}/{rpc}\", requests)\n    }}",
                snake(rpc),
            )?;
            return Ok(());
        }
        let (kind, call) = if method.server_streaming() {
            ("StreamCall", "StreamCall")
        } else {
            ("Call", "Call")
        };
        writeln!(
            code,
            "    pub fn {}(self, request: v1::{input}) -> {kind}<'a, v1::{input}, v1::{output}> {{\n\
             \x20       const METHOD: Method<v1::{input}, v1::{output}> = Method::new(\n\
             \x20           \"/{PACKAGE}.{service}/{rpc}\",\n\
             \x20           {},\n\
             \x20           {},\n\
             \x20       );\n\
             \x20       {call}::new(self.0, METHOD, request)\n    }}",
            snake(rpc),
            self.repeat(service, rpc, input),
            self.prepare(input),
        )?;
        Ok(())
    }

    /// Returns the function that tells whether a request may be repeated.
    fn repeat(&self, service: &str, rpc: &str, input: &str) -> String {
        let is_read = READS.iter().any(|prefix| rpc.starts_with(prefix));
        if is_read || self.request_id(input).is_some() {
            return "|_| Repeat::Safe".to_owned();
        }
        if !SETTING.contains(&format!("{service}/{rpc}").as_str()) {
            return "|_| Repeat::Once".to_owned();
        }
        if self.has(input, "check_index") {
            return "|request| Repeat::safe_if(request.check_index.is_none())".to_owned();
        }
        "|_| Repeat::Safe".to_owned()
    }

    /// Returns the function that fills in a request id.
    fn prepare(&self, input: &str) -> String {
        match self.request_id(input) {
            Some(field) => format!("|request| fill_in(&mut request.{field})"),
            None => "|_| ()".to_owned(),
        }
    }

    fn request_id(&self, input: &str) -> Option<String> {
        self.field(input, |name| REQUEST_IDS.contains(&name))
    }

    /// Implements the traits of reads for their requests and answers.
    fn reads(
        &self,
        code: &mut String,
        files: &[&FileDescriptorProto],
    ) -> Result<(), Box<dyn Error>> {
        let methods = files.iter().flat_map(|file| &file.service);
        let methods = methods.flat_map(|service| &service.method);
        let (mut inputs, mut outputs) = (BTreeSet::new(), BTreeSet::new());
        for method in methods {
            inputs.insert(message(method.input_type())?);
            outputs.insert(message(method.output_type())?);
        }
        for input in inputs
            .iter()
            .filter(|input| self.has_message(input, "options", "QueryOptions"))
        {
            writeln!(
                code,
                "impl Read for v1::{input} {{\n    fn options_mut(&mut self) -> &mut v1::QueryOptions \
                 {{ self.options.get_or_insert_default() }}\n}}"
            )?;
        }
        let answers = outputs
            .iter()
            .filter(|output| self.has_message(output, "meta", "QueryMeta"));
        for output in answers {
            writeln!(
                code,
                "impl Answer for v1::{output} {{\n    fn meta(&self) -> v1::QueryMeta \
                 {{ self.meta.clone().unwrap_or_default() }}\n}}"
            )?;
            if output.starts_with("List") {
                self.list(code, output)?;
            }
        }
        Ok(())
    }

    /// Implements the trait of lists for an answer with one repeated message.
    fn list(&self, code: &mut String, output: &str) -> Result<(), Box<dyn Error>> {
        let known = self.messages.iter().find(|known| known.name() == output);
        let fields = known.ok_or("an unknown message")?.field.iter();
        let mut repeated = fields.filter(|field| {
            field.label() == Label::Repeated && field.type_name().starts_with(".kafila.v1.")
        });
        if let (Some(field), None) = (repeated.next(), repeated.next()) {
            let item = field.type_name().trim_start_matches(".kafila.v1.");
            if item.contains('.') {
                return Ok(());
            }
            writeln!(
                code,
                "impl List for v1::{output} {{\n    type Item = v1::{item};\n    \
                 fn items(self) -> Vec<v1::{item}> {{ self.{} }}\n}}",
                field.name()
            )?;
        }
        Ok(())
    }
}

/// Writes the comment of the element at `path` as documentation.
fn comment(
    code: &mut String,
    indent: &str,
    file: &FileDescriptorProto,
    path: &[i32],
) -> Result<(), Box<dyn Error>> {
    let info = file
        .source_code_info
        .as_ref()
        .ok_or("no source code info")?;
    let location = info.location.iter().find(|found| found.path == path);
    for line in location
        .map(|found| found.leading_comments().lines())
        .into_iter()
        .flatten()
    {
        writeln!(code, "{indent}///{line}")?;
    }
    Ok(())
}

fn message(type_name: &str) -> Result<&str, String> {
    type_name
        .strip_prefix(".kafila.v1.")
        .ok_or_else(|| format!("{type_name} is not in {PACKAGE}"))
}

/// Returns `ListJobs` as `list_jobs`.
fn snake(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}
