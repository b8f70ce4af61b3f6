//! The rule for a job's own arguments of the emulator.

/// Options of QEMU without a value. What follows one of them would be taken as a disk.
///
/// Source: the public manual of QEMU.
const WITHOUT_VALUE: [&str; 36] = [
    "S",
    "alt-grab",
    "ctrl-grab",
    "curses",
    "daemonize",
    "enable-fips",
    "enable-kvm",
    "enable-sync-profile",
    "full-screen",
    "h",
    "help",
    "mem-prealloc",
    "no-acpi",
    "no-fd-bootchk",
    "no-hpet",
    "no-quit",
    "no-reboot",
    "no-shutdown",
    "no-user-config",
    "nodefaults",
    "nodefconfig",
    "nographic",
    "old-param",
    "only-migratable",
    "portrait",
    "preconfig",
    "s",
    "semihosting",
    "show-cursor",
    "singlestep",
    "snapshot",
    "usb",
    "version",
    "win2k-hack",
    "xen-attach",
    "xen-domid-restrict",
];

/// Checks that arguments are options of `allowed`, with their values; empty: everything is allowed.
///
/// # Errors
/// The first argument that is not allowed, and what to do.
pub(super) fn check(args: &[String], allowed: &[String]) -> Result<(), String> {
    if allowed.is_empty() {
        return Ok(());
    }
    // QEMU takes an option with one - or two.
    let name = |option: &str| option.trim_start_matches('-').to_owned();
    let allowed: Vec<String> = allowed.iter().map(|option| name(option)).collect();
    let mut args = args.iter();
    while let Some(option) = args.next() {
        if !option.starts_with('-') {
            return Err(format!(
                "args: {option:?} follows no option, so that QEMU would take it as a disk: remove it"
            ));
        }
        let option_name = name(option);
        if !allowed.contains(&option_name) {
            return Err(format!(
                "args: this node does not allow {option}: add it to drivers.qemu.args_allowlist on \
                 the node, or leave it out"
            ));
        }
        if WITHOUT_VALUE.contains(&option_name.as_str()) {
            continue;
        }
        // QEMU takes whatever follows as the value; an option there would make its own value a disk.
        if args.next().is_none_or(|value| value.starts_with('-')) {
            return Err(format!("args: {option} has no value: add one"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    fn check(args: &[&str], allowed: &[&str]) -> Result<(), String> {
        let texts = |texts: &[&str]| texts.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        super::check(&texts(args), &texts(allowed))
    }

    #[test]
    fn without_a_list_everything_is_allowed() {
        assert_eq!(check(&["-drive", "file=/dev/sda", "/dev/sdb"], &[]), Ok(()));
    }

    #[test]
    fn options_of_the_list_are_allowed_with_their_values() {
        let allowed = ["-smp", "--snapshot", "-rtc"];
        for args in [
            &[][..],
            &["-smp", "2"],
            &["--smp", "2", "-snapshot", "-rtc", "base=utc"],
        ] {
            assert_eq!(check(args, &allowed), Ok(()), "{args:?}");
        }
    }

    #[test]
    fn no_argument_reaches_qemu_as_another_disk() {
        let allowed = ["-smp", "-snapshot", "-rtc"];
        for (args, problem) in [
            (&["-drive", "file=/x"][..], "does not allow -drive"),
            (&["/dev/sda"], "\"/dev/sda\" follows no option"),
            (&[""], "\"\" follows no option"),
            (&["-snapshot", "/dev/sda"], "\"/dev/sda\" follows no option"),
            (&["-smp", "2", "/dev/sda"], "\"/dev/sda\" follows no option"),
            // QEMU takes -rtc as the value of -smp.
            (&["-smp", "-rtc", "/dev/sda"], "-smp has no value"),
            (&["-smp"], "-smp has no value"),
            (&["-"], "does not allow -"),
        ] {
            let error = check(args, &allowed).unwrap_err();
            assert!(error.contains(problem), "{args:?}: {error}");
        }
    }
}
