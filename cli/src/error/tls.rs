//! Messages for connections that TLS refuses.

use tls::Problem;

use crate::address::Address;

/// Describes `problem` with the remedy; `doing` completes "Error …".
pub(super) fn text(doing: &str, address: &Address, problem: &Problem) -> String {
    let Address { url, source } = address;
    let (what, remedy) = describe(problem, &format!(" at {url} ({source})"));
    format!("Error {doing}: {what}.\n{remedy}")
}

/// Returns the problem and the remedy; `at` follows the server and names its address, if it is not empty.
pub(super) fn describe(problem: &Problem, at: &str) -> (String, String) {
    let (what, remedy): (String, &str) = match problem {
        Problem::NotTls => (
            format!("the server{at} does not speak TLS"),
            "Use http:// in -address or KAFILA_ADDR if this is a cluster for development.",
        ),
        Problem::NeedsTls => (
            format!("the gateway{at} requires TLS"),
            "Use https:// in -address or KAFILA_ADDR, and set -ca-cert, -client-cert and -client-key \
             (KAFILA_CACERT, KAFILA_CLIENT_CERT, KAFILA_CLIENT_KEY).",
        ),
        Problem::UnknownAuthority => (
            format!("the certificate of the gateway{at} is from an unknown authority"),
            "Name the certificate of the cluster's authority with -ca-cert or KAFILA_CACERT.",
        ),
        Problem::Expired => (
            format!("the certificate of the gateway{at} has expired"),
            "Replace it on the gateway's machine (`kafila tls cert create`); it is reloaded without a \
             restart.",
        ),
        Problem::NotYetValid => (
            format!("the certificate of the gateway{at} is not valid yet"),
            "Compare the clocks of this machine and of the gateway.",
        ),
        Problem::WrongName {
            expected,
            presented,
        } => return wrong_name(expected, presented, at),
        Problem::WrongServer(what) => (
            format!("the certificate of the server{at} is {what}"),
            "Use the address of a gateway. For another process of Kafila set its name with \
             -tls-server-name or KAFILA_TLS_SERVER_NAME,\nas in worker.global.kafila. If this is a proxy in \
             front of gateways, -tls-skip-role-check or KAFILA_TLS_SKIP_ROLE_CHECK=true accepts it.",
        ),
        Problem::CertificateRequired => (
            format!("the gateway{at} requires a client certificate"),
            "Set -client-cert and -client-key, or KAFILA_CLIENT_CERT and KAFILA_CLIENT_KEY.",
        ),
        Problem::CertificateRefused { reason } => (
            format!("the gateway{at} refused the client certificate: {reason}"),
            "Create a new one with `kafila tls cert create -role operator`, and set it with \
             -client-cert and -client-key.",
        ),
        Problem::Other(text) => (
            format!("TLS with the server{at} failed: {text}"),
            "Compare the versions and certificates of both sides.",
        ),
    };
    (what, remedy.to_owned())
}

/// Describes a certificate for other names, which are DNS names and addresses.
fn wrong_name(expected: &str, presented: &[String], at: &str) -> (String, String) {
    let names = match presented {
        [] => "none".to_owned(),
        names => names.join(", "),
    };
    let what =
        format!("the certificate of the server{at} does not name {expected} (its names: {names})");
    let is_of_gateway = |name: &&String| name.starts_with("gateway.") && name.ends_with(".kafila");
    let Some(gateway) = presented.iter().find(is_of_gateway) else {
        let remedy = "Use the address of a gateway. For another process of Kafila set its name with \
                      -tls-server-name or KAFILA_TLS_SERVER_NAME, as in worker.global.kafila.";
        return (what, remedy.to_owned());
    };
    let flag = match expected.parse::<std::net::IpAddr>() {
        Ok(_) => "-additional-ipaddress",
        Err(_) => "-additional-dnsname",
    };
    let remedy = format!(
        "Set the name of gateways with -tls-server-name={gateway} or KAFILA_TLS_SERVER_NAME, use an address \
         that the certificate names,\nor create it with the name: \
         'kafila tls cert create -role=gateway {flag}={expected}'."
    );
    (what, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Source;

    fn wrong(presented: &[&str]) -> (String, String) {
        let problem = Problem::WrongName {
            expected: "10.0.0.9".to_owned(),
            presented: presented.iter().map(|it| (*it).to_owned()).collect(),
        };
        describe(&problem, "")
    }

    #[test]
    fn the_address_follows_the_server() {
        let address = Address {
            url: "https://10.0.0.9:4646".to_owned(),
            source: Source::Variable("KAFILA_ADDR"),
        };
        let text = text("querying jobs", &address, &Problem::Expired);
        let start = "Error querying jobs: the certificate of the gateway at https://10.0.0.9:4646 (from \
                     KAFILA_ADDR) has expired.\n";
        assert!(text.starts_with(start), "{text}");
    }

    #[test]
    fn a_missing_name_is_listed_with_the_present_names_and_the_fix() {
        let (what, remedy) = wrong(&["gateway.eu.kafila", "10.0.0.1"]);
        let expected = "the certificate of the server does not name 10.0.0.9 (its names: \
                        gateway.eu.kafila, 10.0.0.1)";
        assert_eq!(what, expected);
        for part in [
            "-tls-server-name=gateway.eu.kafila",
            "-additional-ipaddress=10.0.0.9",
        ] {
            assert!(remedy.contains(part), "{part}: {remedy}");
        }
        let (what, remedy) = wrong(&["worker.eu.kafila"]);
        assert!(what.contains("(its names: worker.eu.kafila)"), "{what}");
        assert!(
            remedy.starts_with("Use the address of a gateway."),
            "{remedy}"
        );
    }
}
