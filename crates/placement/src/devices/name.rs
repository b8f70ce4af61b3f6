//! Names in device requests.

use model::node::NodeDevice;

/// A name in a device request: `type`, `vendor/type` or `vendor/type/name`.
#[derive(Clone, Debug)]
pub(super) struct DeviceName {
    vendor: Option<String>,
    device_type: String,
    name: Option<String>,
}

impl DeviceName {
    pub(super) fn parse(text: &str) -> Self {
        let mut parts = text.splitn(3, '/').map(str::to_owned);
        let first = parts.next().unwrap_or_default();
        match (parts.next(), parts.next()) {
            (None, _) => Self {
                vendor: None,
                device_type: first,
                name: None,
            },
            (Some(device_type), name) => Self {
                vendor: Some(first),
                device_type,
                name,
            },
        }
    }

    pub(super) fn matches(&self, kind: &NodeDevice) -> bool {
        let is = |want: &Option<String>, has: &String| want.as_ref().is_none_or(|want| want == has);
        self.device_type == kind.device_type
            && is(&self.vendor, &kind.vendor)
            && is(&self.name, &kind.name)
    }
}
