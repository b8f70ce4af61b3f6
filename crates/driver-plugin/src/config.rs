//! Settings of plugins: the sections `[plugins.<file name>]` of a node's configuration file.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Settings of one plugin, as Nomad's `plugin "name" { args = [], config {} }`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PluginConfig {
    /// Arguments of the program.
    pub args: Vec<String>,
    /// The plugin's own settings, in the form that it asks for.
    pub config: serde_json::Map<String, serde_json::Value>,
}

/// Refuses settings that no plugin could have.
///
/// # Errors
/// The first setting that is wrong, and its problem.
pub fn check(
    plugin_dir: Option<&Path>,
    plugins: &BTreeMap<String, PluginConfig>,
) -> Result<(), (&'static str, String)> {
    if let Some(directory) = plugin_dir
        && !directory.is_absolute()
    {
        let shown = directory.display();
        let problem = format!("{shown} is not absolute: write it from / on");
        return Err(("plugin_dir", problem));
    }
    let Some(name) = plugins.keys().next() else {
        return Ok(());
    };
    if plugin_dir.is_none() {
        let problem = format!(
            "{name:?} has settings, and there is no plugin_dir: set it to the directory of the program"
        );
        return Err(("plugins", problem));
    }
    let mut names = plugins.keys();
    match names.find(|name| name.is_empty() || name.contains('/') || name.starts_with('.')) {
        Some(name) => {
            let problem = format!("{name:?} is no file name: want that of a file in plugin_dir");
            Err(("plugins", problem))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_need_a_directory_and_a_file_name() {
        let plugins = |name: &str| BTreeMap::from([(name.to_owned(), PluginConfig::default())]);
        let directory = Some(Path::new("/opt/plugins"));
        assert_eq!(check(None, &BTreeMap::new()), Ok(()));
        assert_eq!(check(directory, &plugins("nomad-driver-x")), Ok(()));
        for (directory, plugins, field, want) in [
            (
                Some(Path::new("a/b")),
                plugins("x"),
                "plugin_dir",
                "is not absolute",
            ),
            (None, plugins("x"), "plugins", "there is no plugin_dir"),
            (directory, plugins("a/b"), "plugins", "is no file name"),
            (directory, plugins(""), "plugins", "is no file name"),
        ] {
            let (found, problem) = check(directory, &plugins).unwrap_err();
            assert_eq!(found, field);
            assert!(problem.contains(want), "{problem}");
        }
    }
}
