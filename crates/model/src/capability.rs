//! Capabilities of Linux by name.

/// The names in the order of the kernel's numbers, from 0.
pub const NAMES: [&str; 41] = [
    "chown",
    "dac_override",
    "dac_read_search",
    "fowner",
    "fsetid",
    "kill",
    "setgid",
    "setuid",
    "setpcap",
    "linux_immutable",
    "net_bind_service",
    "net_broadcast",
    "net_admin",
    "net_raw",
    "ipc_lock",
    "ipc_owner",
    "sys_module",
    "sys_rawio",
    "sys_chroot",
    "sys_ptrace",
    "sys_pacct",
    "sys_admin",
    "sys_boot",
    "sys_nice",
    "sys_resource",
    "sys_time",
    "sys_tty_config",
    "mknod",
    "lease",
    "audit_write",
    "audit_control",
    "setfcap",
    "mac_override",
    "mac_admin",
    "syslog",
    "wake_alarm",
    "block_suspend",
    "audit_read",
    "perfmon",
    "bpf",
    "checkpoint_restore",
];

/// Returns the number of the capability `name`: in any case, with or without `CAP_`.
pub fn number(name: &str) -> Option<u8> {
    let name = name.trim().to_ascii_lowercase();
    let name = name.strip_prefix("cap_").unwrap_or(&name);
    let position = NAMES.iter().position(|known| *known == name)?;
    u8::try_from(position).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_kernels_numbers() {
        // Of <linux/capability.h>.
        for (name, want) in [
            ("chown", 0),
            ("CAP_NET_BIND_SERVICE", 10),
            ("Sys_Admin", 21),
            ("cap_mknod", 27),
            ("checkpoint_restore", 40),
        ] {
            assert_eq!(number(name), Some(want), "{name}");
        }
        assert_eq!(number("all"), None);
        assert_eq!(number(""), None);
    }
}
