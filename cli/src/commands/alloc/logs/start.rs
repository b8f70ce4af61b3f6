//! Start position in a task's output, by the flags.

use crate::args::alloc::Logs;

/// Lines of `-tail` without -n or -c. Source: Nomad's command line.
const DEFAULT_TAIL_LINES: u32 = 10;

/// Start position in the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    Beginning,
    LastBytes(u64),
    LastLines(u32),
}

impl Start {
    pub(super) fn of(args: &Logs) -> Self {
        match (args.bytes, args.lines) {
            (Some(bytes), _) => Self::LastBytes(bytes),
            (None, Some(lines)) => Self::LastLines(lines),
            (None, None) if args.tail => Self::LastLines(DEFAULT_TAIL_LINES),
            (None, None) => Self::Beginning,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::args;
    use super::*;

    #[test]
    fn a_number_of_lines_or_bytes_means_the_end() {
        assert_eq!(Start::of(&args()), Start::Beginning);
        assert_eq!(
            Start::of(&Logs {
                tail: true,
                ..args()
            }),
            Start::LastLines(10)
        );
        let lines = Logs {
            lines: Some(3),
            ..args()
        };
        assert_eq!(Start::of(&lines), Start::LastLines(3));
        let bytes = Logs {
            tail: true,
            bytes: Some(9),
            ..args()
        };
        assert_eq!(Start::of(&bytes), Start::LastBytes(9));
    }
}
