//! Templates of a task.

use std::time::Duration;

use model::template;

use super::to_message;
use crate::{ChangeScript, Template, TemplateWait};

impl From<&template::Template> for Template {
    fn from(template: &template::Template) -> Self {
        Self {
            source: Some(template.source.clone()),
            destination: Some(template.destination.clone()),
            data: Some(template.data.clone()),
            change_mode: Some(template.change_mode.as_str().to_owned()),
            change_signal: Some(template.change_signal.clone()),
            change_script: template.change_script.as_ref().map(Into::into),
            once: Some(template.once),
            splay: to_message(template.splay),
            perms: Some(template.perms.clone()),
            uid: template.uid.map(i64::from),
            gid: template.gid.map(i64::from),
            left_delimiter: Some(template.left_delimiter.clone()),
            right_delimiter: Some(template.right_delimiter.clone()),
            env: Some(template.env),
            vault_grace: to_message(Duration::ZERO),
            wait: template.wait.as_ref().map(Into::into),
            error_on_missing_key: Some(template.error_on_missing_key),
        }
    }
}

impl From<&template::ChangeScript> for ChangeScript {
    fn from(script: &template::ChangeScript) -> Self {
        Self {
            command: Some(script.command.clone()),
            args: script.args.clone(),
            timeout: to_message(script.timeout),
            fail_on_error: Some(script.fail_on_error),
        }
    }
}

impl From<&template::TemplateWait> for TemplateWait {
    fn from(wait: &template::TemplateWait) -> Self {
        Self {
            min: to_message(wait.min),
            max: to_message(wait.max),
        }
    }
}
