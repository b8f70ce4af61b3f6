//! Advice for connections to etcd that TLS refuses.

use tls::Problem;

/// Describes `problem` with the setting or the file to change.
pub(super) fn describe(problem: &Problem) -> String {
    let advice = match problem {
        Problem::NotTls => "use http:// in `etcd.endpoints`, or start etcd with certificates",
        Problem::NeedsTls => "use https:// in `etcd.endpoints`, and set `etcd.ca_file`",
        Problem::UnknownAuthority => {
            "`etcd.ca_file` has to be the certificate of the CA of etcd's certificates"
        }
        Problem::Expired => "replace the certificate of that member of etcd",
        Problem::NotYetValid => "compare the clocks of this machine and of etcd's",
        Problem::WrongName { .. } | Problem::WrongServer(_) => {
            "use an address in `etcd.endpoints` that etcd's certificate names"
        }
        Problem::CertificateRequired => "set `etcd.cert_file` and `etcd.key_file`",
        Problem::CertificateRefused { .. } => {
            "`etcd.cert_file` has to be valid, and issued by the CA in etcd's --trusted-ca-file"
        }
        Problem::Other(_) => "compare the certificates of this service and of etcd",
    };
    format!("{problem}: {advice}")
}
