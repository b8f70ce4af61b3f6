//! Signals that tasks may get.

/// Names of the signals that nodes can send to tasks, in alphabetical order.
pub const SIGNALS: [&str; 28] = [
    "SIGABRT", "SIGALRM", "SIGBUS", "SIGCHLD", "SIGCONT", "SIGFPE", "SIGHUP", "SIGILL", "SIGINT",
    "SIGIO", "SIGKILL", "SIGPIPE", "SIGPROF", "SIGQUIT", "SIGSEGV", "SIGSTOP", "SIGSYS", "SIGTERM",
    "SIGTRAP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGUSR1", "SIGUSR2", "SIGWINCH",
    "SIGXCPU", "SIGXFSZ",
];

/// Returns whether a job may name the signal for its tasks: SIGSTOP and SIGCONT end nothing.
pub fn may_be_configured(name: &str) -> bool {
    SIGNALS.contains(&name) && !matches!(name, "SIGSTOP" | "SIGCONT")
}
