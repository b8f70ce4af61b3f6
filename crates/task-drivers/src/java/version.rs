//! The version of a Java virtual machine, from what `java -version` prints.

/// Lines of `java -version`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Version {
    /// As in `17.0.15`.
    pub(super) version: String,
    /// The line about the runtime, as in `OpenJDK Runtime Environment (build …)`.
    pub(super) runtime: String,
    /// The line about the machine, as in `OpenJDK 64-Bit Server VM (build …)`.
    pub(super) vm: String,
}

/// Reads the output; `None`: it names no version. Lines before the version, such as a notice of
/// `JAVA_TOOL_OPTIONS`, are left out.
pub(super) fn parse(output: &str) -> Option<Version> {
    let mut lines = output.lines().map(str::trim);
    let version = lines.find_map(|line| {
        let (_, quoted) = line.split_once(" version \"")?;
        Some(quoted.split_once('"')?.0)
    })?;
    Some(Version {
        version: version.to_owned(),
        runtime: lines.next().unwrap_or_default().to_owned(),
        vm: lines.next().unwrap_or_default().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_several_makers_are_read() {
        for (output, version, runtime, vm) in [
            (
                "openjdk version \"17.0.15\" 2025-04-15\n\
                 OpenJDK Runtime Environment (build 17.0.15+6-Debian-1deb12u1)\n\
                 OpenJDK 64-Bit Server VM (build 17.0.15+6-Debian-1deb12u1, mixed mode, sharing)\n",
                "17.0.15",
                "OpenJDK Runtime Environment (build 17.0.15+6-Debian-1deb12u1)",
                "OpenJDK 64-Bit Server VM (build 17.0.15+6-Debian-1deb12u1, mixed mode, sharing)",
            ),
            (
                "Picked up JAVA_TOOL_OPTIONS: -Dversion=\"9\"\njava version \"1.8.0_201\"\nA\nB\n",
                "1.8.0_201",
                "A",
                "B",
            ),
            ("java version \"21\"", "21", "", ""),
        ] {
            let found = parse(output).unwrap();
            assert_eq!(found.version, version);
            assert_eq!((found.runtime.as_str(), found.vm.as_str()), (runtime, vm));
        }
    }

    #[test]
    fn other_output_names_no_version() {
        for output in [
            "",
            "java: command not found",
            "version 7",
            "java version \"7",
        ] {
            assert_eq!(parse(output), None, "{output}");
        }
    }
}
