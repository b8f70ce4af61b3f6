//! Services and checks of a Consul agent: as they are registered, and as the agent lists them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};

/// A service to register, with its checks.
///
/// The JSON is that of Consul's `/v1/agent/service/register`; absent members are left out, and `Check` is null
/// beside `Checks`, as other programs of a Consul installation know it from Nomad.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Registration {
    #[serde(rename = "ID")]
    pub id: String,
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// 0: none.
    #[serde(skip_serializing_if = "is_zero")]
    pub port: u16,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub address: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tagged_addresses: BTreeMap<String, TaggedAddress>,
    /// Others may change the tags in the catalog; the agent then keeps theirs.
    #[serde(skip_serializing_if = "is_false")]
    pub enable_tag_override: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub meta: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights: Option<Weights>,
    /// Always null.
    pub check: (),
    pub checks: Vec<CheckRegistration>,
}

/// An address of a service under a name of its own, as in `lan` or `wan`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TaggedAddress {
    pub address: String,
    pub port: u16,
}

/// Weights of a service in DNS, by the state of its checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Weights {
    pub passing: u32,
    pub warning: u32,
}

/// A check to register.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct CheckRegistration {
    #[serde(rename = "CheckID")]
    pub id: String,
    pub name: String,
    #[serde(skip_serializing_if = "is_none", serialize_with = "go_duration")]
    pub interval: Option<Duration>,
    #[serde(skip_serializing_if = "is_none", serialize_with = "go_duration")]
    pub timeout: Option<Duration>,
    #[serde(flatten)]
    pub probe: CheckProbe,
    /// State before the first result; empty: critical.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub status: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub notes: String,
    #[serde(skip_serializing_if = "is_zero_u32")]
    pub success_before_passing: u32,
    #[serde(skip_serializing_if = "is_zero_u32")]
    pub failures_before_critical: u32,
    #[serde(skip_serializing_if = "is_zero_u32")]
    pub failures_before_warning: u32,
}

/// The request of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum CheckProbe {
    #[serde(rename_all = "PascalCase")]
    Http {
        /// URL of the request.
        #[serde(rename = "HTTP")]
        url: String,
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        header: BTreeMap<String, Vec<String>>,
        #[serde(skip_serializing_if = "String::is_empty")]
        method: String,
        #[serde(skip_serializing_if = "String::is_empty")]
        body: String,
        #[serde(rename = "TLSServerName", skip_serializing_if = "String::is_empty")]
        tls_server_name: String,
        #[serde(rename = "TLSSkipVerify", skip_serializing_if = "is_false")]
        tls_skip_verify: bool,
    },
    Tcp {
        /// `host:port`.
        #[serde(rename = "TCP")]
        target: String,
    },
    Grpc {
        /// `host:port`, then `/` and the service of the request if there is one.
        #[serde(rename = "GRPC")]
        target: String,
        #[serde(rename = "GRPCUseTLS", skip_serializing_if = "is_false")]
        use_tls: bool,
        #[serde(rename = "TLSServerName", skip_serializing_if = "String::is_empty")]
        tls_server_name: String,
        #[serde(rename = "TLSSkipVerify", skip_serializing_if = "is_false")]
        tls_skip_verify: bool,
    },
    /// The results are sent to the agent; without one for this time the check is critical.
    Ttl {
        #[serde(rename = "TTL", serialize_with = "go_duration_of")]
        ttl: Duration,
    },
}

impl Default for CheckProbe {
    fn default() -> Self {
        Self::Tcp {
            target: String::new(),
        }
    }
}

/// State of a check in Consul.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckState {
    Passing,
    Warning,
    #[default]
    #[serde(other)]
    Critical,
}

/// A service as the agent lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AgentService {
    #[serde(rename = "ID")]
    pub id: String,
    #[serde(rename = "Service")]
    pub name: String,
    pub kind: String,
    #[serde(deserialize_with = "or_default")]
    pub tags: Vec<String>,
    pub port: u16,
    pub address: String,
    #[serde(deserialize_with = "or_default")]
    pub tagged_addresses: BTreeMap<String, TaggedAddress>,
    pub enable_tag_override: bool,
    #[serde(deserialize_with = "or_default")]
    pub meta: BTreeMap<String, String>,
    pub weights: Weights,
}

/// A check as the agent lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AgentCheck {
    #[serde(rename = "CheckID")]
    pub id: String,
    pub name: String,
    #[serde(rename = "ServiceID")]
    pub service_id: String,
    pub status: CheckState,
    pub output: String,
}

/// Parts of the answer to `/v1/agent/self`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AgentSelf {
    pub config: SelfConfig,
    pub debug_config: DebugConfig,
    /// Text -> text, or numbers.
    pub stats: BTreeMap<String, serde_json::Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SelfConfig {
    pub datacenter: String,
    pub node_name: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
    pub revision: String,
    pub server: bool,
    pub version: String,
    /// Of Consul Enterprise.
    pub partition: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DebugConfig {
    pub connect_enabled: bool,
    #[serde(rename = "GRPCPort")]
    pub grpc_port: i64,
    #[serde(rename = "DNSPort")]
    pub dns_port: i64,
    pub segment_name: String,
}

/// The body of `/v1/agent/check/update`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct CheckUpdate<'a> {
    pub(crate) status: CheckState,
    pub(crate) output: &'a str,
}

/// Consul writes null for empty lists and maps.
pub(crate) fn or_default<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

fn go_duration<S: Serializer>(value: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    go_duration_of(&value.unwrap_or_default(), to)
}

fn go_duration_of<S: Serializer>(value: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&duration::show(*value))
}

fn is_none(value: &Option<Duration>) -> bool {
    value.is_none()
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_false(value: &bool) -> bool {
    !*value
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(value: &u16) -> bool {
    *value == 0
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero_u32(value: &u32) -> bool {
    *value == 0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn absent_members_are_left_out_and_times_are_written_as_go_writes_them() {
        let service = Registration {
            id: "s".to_owned(),
            name: "web".to_owned(),
            checks: vec![CheckRegistration {
                id: "c".to_owned(),
                name: "alive".to_owned(),
                timeout: Some(Duration::from_secs(90)),
                probe: CheckProbe::Ttl {
                    ttl: Duration::from_secs(36),
                },
                ..CheckRegistration::default()
            }],
            ..Registration::default()
        };
        let want = json!({"ID": "s", "Name": "web", "Check": null,
            "Checks": [{"CheckID": "c", "Name": "alive", "Timeout": "1m30s", "TTL": "36s"}]});
        assert_eq!(serde_json::to_value(&service).unwrap(), want);
    }

    #[test]
    fn nulls_and_unknown_states_of_an_agent_are_read() {
        let read = r#"{"ID":"s","Service":"web","Tags":null,"Meta":null,"TaggedAddresses":null,"Port":80}"#;
        let service: AgentService = serde_json::from_str(read).unwrap();
        assert_eq!((service.port, service.tags.len()), (80, 0));
        let of = |status: &str| {
            let text = format!(r#"{{"CheckID":"c","Status":{status:?}}}"#);
            serde_json::from_str::<AgentCheck>(&text).unwrap().status
        };
        assert_eq!(of("passing"), CheckState::Passing);
        assert_eq!(of("warning"), CheckState::Warning);
        assert_eq!(of("maintenance"), CheckState::Critical);
    }
}
