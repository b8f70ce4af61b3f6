//! Host name, operating system and kernel.

use model::signal::SIGNALS;

use crate::attributes::{Attributes, read};

/// Returns the host name.
pub(crate) fn name() -> String {
    let name = read("/proc/sys/kernel/hostname");
    if name.is_empty() {
        "localhost".to_owned()
    } else {
        name
    }
}

/// Returns the host name.
pub(crate) fn fingerprint(attributes: &mut Attributes) -> String {
    let release = read("/etc/os-release");
    let hostname = name();
    for (name, value) in [
        ("os.name", field(&release, "ID")),
        ("os.version", field(&release, "VERSION_ID")),
        ("os.signals", SIGNALS.join(",")),
        ("os.cgroups.version", cgroups_version()),
        ("kernel.name", std::env::consts::OS.to_owned()),
        ("kernel.version", read("/proc/sys/kernel/osrelease")),
        ("kernel.arch", std::env::consts::ARCH.to_owned()),
        ("unique.hostname", hostname.clone()),
    ] {
        attributes.insert(name.to_owned(), value);
    }
    hostname
}

/// Returns a value of os-release(5), without its quotes.
fn field(release: &str, name: &str) -> String {
    let value = release
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
        .unwrap_or_default();
    value.trim_matches(['"', '\'']).to_owned()
}

fn cgroups_version() -> String {
    let mounts = read("/proc/self/mounts");
    let kind = mounts.lines().find_map(|line| {
        let mut words = line.split(' ');
        (words.nth(1)? == "/sys/fs/cgroup").then(|| words.next())?
    });
    match kind {
        Some("cgroup2") => "2".to_owned(),
        Some("tmpfs") => "1".to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_not_part_of_a_value() {
        let release = "NAME=\"Debian GNU/Linux\"\nID=debian\nVERSION_ID=\"12\"\n";
        assert_eq!(field(release, "ID"), "debian");
        assert_eq!(field(release, "VERSION_ID"), "12");
        assert_eq!(field(release, "BUILD_ID"), "");
    }
}
