//! TLS of the connection to the gateway: files and names from flags or the environment.

use kafila_client::Tls;

use crate::args::Global;

/// Settings of TLS; used for `https://` addresses only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TlsSettings(pub(crate) Tls);

impl TlsSettings {
    /// Chooses each setting: the flag, then the environment.
    pub(crate) fn choose(global: &Global, variable: impl Fn(&str) -> Option<String>) -> Self {
        let environment = Tls::from_variables(variable);
        Self(Tls {
            ca_cert: global.ca_cert.clone().or(environment.ca_cert),
            client_cert: global.client_cert.clone().or(environment.client_cert),
            client_key: global.client_key.clone().or(environment.client_key),
            server_name: global.tls_server_name.clone().or(environment.server_name),
            skip_role_check: global.tls_skip_role_check || environment.skip_role_check,
            skip_verify: global.tls_skip_verify || environment.skip_verify,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use clap::Parser as _;

    use super::*;
    use crate::args::Cli;

    fn choose(line: &[&str], variables: &[(&str, &str)]) -> Tls {
        let words = [&["kafila", "version"], line].concat();
        let global = Cli::try_parse_from(words).unwrap().global;
        TlsSettings::choose(&global, |name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
        .0
    }

    #[test]
    fn a_flag_wins_over_our_variable_and_that_over_nomads() {
        let variables = [
            ("NOMAD_CACERT", "n.pem"),
            ("KAFILA_CACERT", "k.pem"),
            ("NOMAD_SKIP_VERIFY", "true"),
            ("KAFILA_TLS_SERVER_NAME", "gateway.global.kafila"),
        ];
        let chosen = choose(&["--ca-cert", "f.pem"], &variables);
        assert_eq!(chosen.ca_cert, Some(PathBuf::from("f.pem")));
        assert!(chosen.skip_verify);
        assert_eq!(chosen.server_name.as_deref(), Some("gateway.global.kafila"));
        let chosen = choose(&[], &variables);
        assert_eq!(chosen.ca_cert, Some(PathBuf::from("k.pem")));
        let chosen = choose(&[], &variables[..1]);
        assert_eq!(chosen.ca_cert, Some(PathBuf::from("n.pem")));
        assert!(!choose(&[], &[("KAFILA_SKIP_VERIFY", "false")]).skip_verify);
        assert_eq!(choose(&[], &[]), Tls::default());
    }
}
