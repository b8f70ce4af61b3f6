//! Runs of CNI plugins: the chain of a network, forwards for ADD and CHECK, backwards for DEL.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tracing::debug;

use crate::answer;
use crate::conflist::{ConfList, plugin_type};
use crate::error::Error;
use crate::plan::Plan;
use crate::program;
use crate::request;

/// The interface in the namespace.
pub(crate) const INTERFACE: &str = "eth0";

/// One network of one namespace.
pub(crate) struct Chain<'a> {
    pub(crate) list: &'a ConfList,
    pub(crate) plan: &'a Plan,
    pub(crate) namespace: &'a Path,
    /// Directories of the plugins.
    pub(crate) path: &'a [String],
}

impl Chain<'_> {
    /// Runs every plugin. Returns the result of the last.
    ///
    /// # Errors
    /// The plugin that failed. The caller calls [`Self::del`].
    pub(crate) fn add(&self) -> Result<Value, Error> {
        let mut result = None;
        for plugin in &self.list.plugins {
            let answer = self.run("ADD", plugin, result.as_ref())?;
            let answer = serde_json::from_str(&answer)
                .map_err(|error| Error::Result(format!("{}: {error}", plugin_type(plugin))))?;
            result = Some(answer);
        }
        result.ok_or_else(|| Error::Result("the network has no plugins".to_owned()))
    }

    /// Checks that the network is as ADD left it.
    ///
    /// # Errors
    /// The plugin that found a difference.
    pub(crate) fn check(&self, result: &Value) -> Result<(), Error> {
        // Earlier versions have no CHECK.
        let is_early = ["0.1", "0.2", "0.3"]
            .iter()
            .any(|it| self.list.version.starts_with(it));
        if is_early || self.list.version.is_empty() {
            return Ok(());
        }
        for plugin in &self.list.plugins {
            self.run("CHECK", plugin, Some(result))?;
        }
        Ok(())
    }

    /// Removes what ADD made, also in part. `result`: that of ADD; `None`: it failed.
    ///
    /// # Errors
    /// The first plugin that failed; the others were run as well.
    pub(crate) fn del(&self, result: Option<&Value>) -> Result<(), Error> {
        let mut first = Ok(());
        for plugin in self.list.plugins.iter().rev() {
            let run = self.run("DEL", plugin, result);
            if first.is_ok() {
                first = run.map(drop);
            }
        }
        first
    }

    fn run(
        &self,
        verb: &'static str,
        plugin: &Value,
        previous: Option<&Value>,
    ) -> Result<String, Error> {
        let name = plugin_type(plugin);
        let program = find(self.path, name).ok_or_else(|| Error::NoPlugin {
            plugin: name.to_owned(),
            path: self.path.join(":"),
        })?;
        let input = request::input(self.list, plugin, self.plan, previous);
        let mut command = program::command(program);
        command
            .env("CNI_COMMAND", verb)
            .env("CNI_CONTAINERID", self.plan.alloc_id.to_string())
            .env("CNI_NETNS", self.namespace)
            .env("CNI_IFNAME", INTERFACE)
            .env("CNI_ARGS", &self.plan.cni_args)
            .env("CNI_PATH", self.path.join(":"));
        let output = program::run(&mut command, input.to_string().into_bytes())?;
        if output.is_success {
            debug!(plugin = name, verb, alloc_id = %self.plan.alloc_id, "CNI plugin succeeded");
            return Ok(output.stdout);
        }
        Err(Error::Plugin {
            plugin: name.to_owned(),
            command: verb,
            message: answer::failure(&output.stdout, &output.stderr),
        })
    }
}

/// Returns the program of a plugin; `None`: it is in none of the directories.
pub(crate) fn find(path: &[String], name: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let is_program = |file: &PathBuf| {
        file.metadata()
            .is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    path.iter()
        .map(|directory| Path::new(directory).join(name))
        .find(is_program)
}
