//! Refused settings, and failures to read the machine.

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("`{field}`: {problem}")]
    Setting { field: String, problem: String },
    #[error("cannot list the machine's network interfaces")]
    Interfaces(#[source] std::io::Error),
}

impl Error {
    pub(crate) fn setting(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Setting {
            field: field.into(),
            problem: problem.into(),
        }
    }
}
