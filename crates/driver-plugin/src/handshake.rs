//! The handshake: the environment of a plugin, and the line with its address that it prints.
//!
//! Source: go-plugin and Nomad 1.6.1 (both MPL-2.0), the wire facts alone.

use std::path::{Path, PathBuf};

/// The variable by which a plugin knows that a host starts it, and its value for Nomad's plugins.
pub const COOKIE: (&str, &str) = (
    "NOMAD_PLUGIN_MAGIC_COOKIE",
    "e4327c2e01eabfd75a8a67adb114fb34a757d57eee7728d857a8cec6e91a7255",
);
/// Version of the handshake itself.
const CORE_VERSION: u32 = 1;
/// Version of Nomad's plugins with gRPC.
const APP_VERSION: u32 = 2;
/// Ports for helpers of plugins on systems without socket files. Source: Nomad's public default.
pub(crate) const PORTS: (u32, u32) = (14_000, 14_512);
/// Longest line: paths of sockets have at most 108 bytes, and certificates some thousand.
pub const LINE_BYTES_MAX: usize = 8 << 10;
/// Longest path of a socket file. Source: unix(7).
pub(crate) const SOCKET_PATH_MAX: usize = 107;
/// Bytes of a line that a message quotes.
const QUOTE_MAX: usize = 120;

/// Returns the variables of a plugin, besides those of the agent.
pub fn environment(sockets: &Path) -> Vec<(&'static str, String)> {
    let mut variables = vec![
        (COOKIE.0, COOKIE.1.to_owned()),
        ("PLUGIN_PROTOCOL_VERSIONS", APP_VERSION.to_string()),
        ("PLUGIN_MIN_PORT", PORTS.0.to_string()),
        ("PLUGIN_MAX_PORT", PORTS.1.to_string()),
    ];
    // The plugin adds a name of up to 20 bytes. In a deeper directory it could not listen; without the
    // variable it uses the directory for temporary files.
    let text = sockets.to_str();
    if let Some(path) = text.filter(|path| path.len() + 20 <= SOCKET_PATH_MAX) {
        variables.push(("PLUGIN_UNIX_SOCKET_DIR", path.to_owned()));
    }
    variables
}

/// Reads the line of a plugin, `core|app|network|address|protocol` and optionally a certificate, and
/// returns the path of its socket.
///
/// # Errors
/// The part that this agent does not support.
pub fn parse(line: &str) -> Result<PathBuf, String> {
    let line = line.trim();
    let parts: Vec<&str> = line.split('|').collect();
    let &[core, app, network, address, ..] = parts.as_slice() else {
        return Err(format!(
            "it is no plugin of Nomad's protocol: its first line is {:?}, want 1|2|unix|<path>|grpc",
            quote(line)
        ));
    };
    version("handshake", core, CORE_VERSION)?;
    version("protocol", app, APP_VERSION)?;
    // Before gRPC existed, the part was missing.
    let protocol = parts.get(4).copied().unwrap_or("netrpc");
    if protocol != "grpc" {
        return Err(format!(
            "it speaks {:?}: only gRPC is supported",
            quote(protocol)
        ));
    }
    if network != "unix" {
        return Err(format!(
            "it listens on {:?}: only socket files (unix) are supported",
            quote(network)
        ));
    }
    if parts.get(5).is_some_and(|cert| !cert.is_empty()) {
        return Err("it asks for TLS: only plain socket files are supported".to_owned());
    }
    let path = PathBuf::from(address);
    if !path.is_absolute() || address.len() > SOCKET_PATH_MAX {
        return Err(format!(
            "{:?} is no address: want an absolute path of at most {SOCKET_PATH_MAX} bytes",
            quote(address)
        ));
    }
    Ok(path)
}

fn version(what: &str, text: &str, want: u32) -> Result<(), String> {
    if text.parse() == Ok(want) {
        return Ok(());
    }
    Err(format!(
        "version {:?} of its {what} is not supported: want {want}",
        quote(text)
    ))
}

fn quote(text: &str) -> String {
    text.chars().take(QUOTE_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_a_socket() {
        for line in [
            "1|2|unix|/tmp/plugin1|grpc",
            "1|2|unix|/tmp/plugin1|grpc|",
            "1|2|unix|/tmp/plugin1|grpc||true",
            "  1|2|unix|/tmp/plugin1|grpc|\r",
        ] {
            assert_eq!(parse(line), Ok(PathBuf::from("/tmp/plugin1")), "{line:?}");
        }
    }

    #[test]
    fn what_is_not_supported_is_named() {
        let long = format!("1|2|unix|/{}|grpc", "a".repeat(120));
        for (line, want) in [
            ("", "it is no plugin of Nomad's protocol"),
            ("hello", "its first line is \"hello\""),
            ("2|2|unix|/a|grpc", "version \"2\" of its handshake"),
            ("x|2|unix|/a|grpc", "version \"x\" of its handshake"),
            ("1|1|unix|/a|grpc", "version \"1\" of its protocol"),
            ("1|2|unix|/a", "it speaks \"netrpc\""),
            ("1|2|unix|/a|netrpc", "it speaks \"netrpc\""),
            ("1|2|tcp|127.0.0.1:1|grpc", "it listens on \"tcp\""),
            ("1|2|unix|/a|grpc|MIIB", "it asks for TLS"),
            ("1|2|unix|a/b|grpc", "is no address"),
            (&long, "is no address"),
        ] {
            let message = parse(line).unwrap_err();
            assert!(message.contains(want), "{line:?}: {message}");
        }
    }

    #[test]
    fn a_deep_directory_is_not_offered_for_sockets() {
        let names = |path: &str| {
            let variables = environment(Path::new(path)).into_iter();
            variables.map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert!(names("/var/lib/kafila").contains(&"PLUGIN_UNIX_SOCKET_DIR"));
        let deep = format!("/{}", "d".repeat(100));
        assert_eq!(names(&deep).len(), 4);
    }
}
