//! Advice below an error of the gateway: the command or the flag that helps.
//!
//! The gateway's words are for every client and name no command.

use kafila_client::Code;

/// Returns lines to add to the error of a call, each after a line break; `doing` completes "Error …".
pub(super) fn below(doing: &str, error: &kafila_client::Error) -> String {
    let message = error.message();
    match of(doing, error.code(), &message) {
        Some(advice) => format!("\n{advice}"),
        None if message.starts_with("the connection broke") => {
            on_plaintext(error.address()).to_owned()
        }
        None => String::new(),
    }
}

/// Returns a line about TLS, after a line break, for a plaintext connection that the server broke: a
/// server or a load balancer with TLS may say nothing else.
pub(super) fn on_plaintext(url: &str) -> &'static str {
    if url.starts_with("http://") {
        "\nIf that server needs TLS, use https:// in the address."
    } else {
        ""
    }
}

fn of(doing: &str, code: Code, message: &str) -> Option<String> {
    let is_read = doing.starts_with("querying") || doing.starts_with("retrieving");
    let lacks_etcd = message.contains("fresh state") || message.contains("return its revision");
    if is_read && code == Code::Unavailable && lacks_etcd {
        let text = "Reads with -stale show the gateway's copy of the state, without asking etcd.";
        return Some(text.to_owned());
    }
    if message.contains("reject_job_registration is true") {
        let text = "An operator enables them again with 'kafila operator scheduler set-config \
                    -reject-job-registration=false'.";
        return Some(text.to_owned());
    }
    if let Some((_, rest)) = message.split_once("blocked due to active deployment ") {
        let id = rest.split([':', ' ']).next().unwrap_or_default();
        return Some(format!(
            "'kafila deployment status {id}' shows it. 'kafila deployment promote {id}' promotes \
             canaries that it waits for."
        ));
    }
    if doing.starts_with("dispatching") && code == Code::InvalidArgument {
        let text =
            "A dispatch with metadata and a payload: kafila job dispatch -meta KEY=VALUE JOB FILE";
        return Some(text.to_owned());
    }
    if code == Code::NotFound {
        let lists = [
            ("namespace", "kafila namespace list"),
            ("node pool", "kafila node pool list"),
            ("volume", "kafila volume status"),
        ];
        let mut lists = lists.into_iter();
        let (_, list) = lists.find(|(noun, _)| doing.contains(noun))?;
        return Some(format!("'{list}' shows those that exist."));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_gateway_is_followed_by_the_command_that_helps() {
        let table = [
            (
                "querying jobs",
                Code::Unavailable,
                "cannot answer with fresh state: try again",
                Some("-stale"),
            ),
            // A write cannot be stale.
            (
                "submitting job",
                Code::Unavailable,
                "cannot answer with fresh state: try again",
                None,
            ),
            (
                "submitting job",
                Code::PermissionDenied,
                "disabled by the scheduler configuration: reject_job_registration is true",
                Some("set-config -reject-job-registration=false"),
            ),
            (
                "scaling job",
                Code::FailedPrecondition,
                "job scaling blocked due to active deployment 5e6f7a8b: wait for it",
                Some("'kafila deployment promote 5e6f7a8b'"),
            ),
            (
                "dispatching job",
                Code::InvalidArgument,
                "payload: Payload is not provided",
                Some("-meta KEY=VALUE JOB FILE"),
            ),
            (
                "retrieving namespace",
                Code::NotFound,
                "namespace \"nope\" not found",
                Some("'kafila namespace list'"),
            ),
            (
                "querying nodes of the node pool",
                Code::NotFound,
                "node pool \"nope\" not found",
                Some("'kafila node pool list'"),
            ),
            (
                "querying volume",
                Code::NotFound,
                "no volume \"nope\"",
                Some("'kafila volume status'"),
            ),
            ("querying job \"a\"", Code::NotFound, "no job \"a\"", None),
        ];
        for (doing, code, message, expected) in table {
            let advice = of(doing, code, message);
            assert_eq!(advice.is_some(), expected.is_some(), "{doing}: {advice:?}");
            let text = advice.unwrap_or_default();
            assert!(
                text.contains(expected.unwrap_or_default()),
                "{doing}: {text}"
            );
        }
    }
}
