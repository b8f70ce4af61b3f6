//! Launches, dispatches and scaling, as a user may write them.

use serde::{Deserialize, Serialize};

use crate::launch;
use crate::scaling;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Periodic {
    pub enabled: Option<bool>,
    /// One cron expression; either this or `specs`.
    pub spec: Option<String>,
    pub specs: Option<Vec<String>>,
    /// `cron`.
    pub spec_type: Option<String>,
    pub prohibit_overlap: Option<bool>,
    pub time_zone: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Parameterized {
    pub payload: Option<String>,
    pub meta_required: Option<Vec<String>>,
    pub meta_optional: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DispatchPayload {
    pub file: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Scaling {
    pub enabled: Option<bool>,
    pub min: Option<i64>,
    pub max: Option<i64>,
    /// `horizontal`.
    #[serde(rename = "Type")]
    pub scaling_type: Option<String>,
    pub policy: Option<serde_json::Map<String, serde_json::Value>>,
}

impl From<&launch::Periodic> for Periodic {
    fn from(periodic: &launch::Periodic) -> Self {
        let (spec, specs) = match periodic.crons.as_slice() {
            [one] => (Some(one.clone()), None),
            several => (None, Some(several.to_vec())),
        };
        Self {
            enabled: Some(periodic.enabled),
            spec,
            specs,
            spec_type: Some("cron".to_owned()),
            prohibit_overlap: Some(periodic.prohibit_overlap),
            time_zone: Some(periodic.time_zone.clone()),
        }
    }
}

impl From<&launch::Parameterized> for Parameterized {
    fn from(parameterized: &launch::Parameterized) -> Self {
        Self {
            payload: Some(parameterized.payload.as_str().to_owned()),
            meta_required: Some(parameterized.meta_required.clone()),
            meta_optional: Some(parameterized.meta_optional.clone()),
        }
    }
}

impl From<&launch::DispatchPayload> for DispatchPayload {
    fn from(payload: &launch::DispatchPayload) -> Self {
        Self {
            file: Some(payload.file.clone()),
        }
    }
}

impl From<&scaling::Scaling> for Scaling {
    fn from(scaling: &scaling::Scaling) -> Self {
        Self {
            enabled: Some(scaling.enabled),
            min: Some(i64::from(scaling.min)),
            max: Some(i64::from(scaling.max)),
            scaling_type: Some("horizontal".to_owned()),
            policy: Some(scaling.policy.clone()),
        }
    }
}
