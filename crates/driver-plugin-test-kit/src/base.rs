//! The plugin's identity and settings.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use driver_plugin::wire::base::base_plugin_server::BasePlugin;
use driver_plugin::wire::base::{
    ConfigSchemaRequest, ConfigSchemaResponse, PluginInfoRequest, PluginInfoResponse, PluginType,
    SetConfigRequest, SetConfigResponse,
};
use driver_plugin::wire::go_plugin::Empty;
use driver_plugin::wire::go_plugin::grpc_controller_server::GrpcController;
use driver_plugin::wire::hclspec::{
    Attr, BlockAttrs, Default as OrElse, Literal, Object, Spec, spec,
};
use tokio::sync::Notify;
use tonic::{Request, Response, Status};

use crate::control::{self, HANG};
use crate::decode::decode;
use crate::options::Options;
use crate::tasks::Tasks;

#[derive(Debug)]
pub(crate) struct StandIn {
    pub(crate) options: Options,
    pub(crate) greeting: Mutex<String>,
    pub(crate) tasks: Arc<Tasks>,
    /// Notified when the plugin is asked to end.
    pub(crate) ended: Notify,
}

impl StandIn {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            options,
            greeting: Mutex::default(),
            tasks: Arc::default(),
            ended: Notify::new(),
        }
    }

    pub(crate) fn is_on(&self, fault: &str) -> bool {
        control::is_on(self.options.control.as_deref(), fault)
    }

    /// Logs a call, which then hangs if the fault says so.
    pub(crate) async fn called(&self, method: &str, task_id: &str) {
        control::log_call(self.options.control.as_deref(), method, task_id);
        if self.is_on(HANG) {
            std::future::pending::<()>().await;
        }
    }
}

pub(crate) fn attr(kind: &str, required: bool) -> Spec {
    Spec {
        block: Some(spec::Block::Attr(Attr {
            name: String::new(),
            r#type: kind.to_owned(),
            required,
        })),
    }
}

pub(crate) fn named(name: &str, kind: &str) -> Spec {
    Spec {
        block: Some(spec::Block::Attr(Attr {
            name: name.to_owned(),
            r#type: kind.to_owned(),
            required: false,
        })),
    }
}

pub(crate) fn block_attrs(kind: &str) -> Spec {
    Spec {
        block: Some(spec::Block::BlockAttrs(BlockAttrs {
            name: String::new(),
            r#type: kind.to_owned(),
            required: false,
        })),
    }
}

pub(crate) fn or_else(primary: Spec, value: &str) -> Spec {
    let literal = Spec {
        block: Some(spec::Block::Literal(Literal {
            value: value.to_owned(),
        })),
    };
    Spec {
        block: Some(spec::Block::Default(Box::new(OrElse {
            primary: Some(Box::new(primary)),
            default: Some(Box::new(literal)),
        }))),
    }
}

pub(crate) fn object<const N: usize>(fields: [(&str, Spec); N]) -> Spec {
    let fields = fields.map(|(name, spec)| (name.to_owned(), spec));
    Spec {
        block: Some(spec::Block::Object(Object {
            attributes: BTreeMap::from(fields),
        })),
    }
}

#[tonic::async_trait]
impl BasePlugin for StandIn {
    async fn plugin_info(
        &self,
        _: Request<PluginInfoRequest>,
    ) -> Result<Response<PluginInfoResponse>, Status> {
        self.called("PluginInfo", "").await;
        let kind = match self.options.kind.as_str() {
            "device" => PluginType::Device,
            _ => PluginType::Driver,
        };
        Ok(Response::new(PluginInfoResponse {
            r#type: kind.into(),
            plugin_api_versions: vec!["v0.1.0".to_owned()],
            plugin_version: self.options.version.clone(),
            name: self.options.name.clone(),
        }))
    }

    async fn config_schema(
        &self,
        _: Request<ConfigSchemaRequest>,
    ) -> Result<Response<ConfigSchemaResponse>, Status> {
        let spec = object([(
            "greeting",
            or_else(named("greeting", "string"), "\"hello\""),
        )]);
        Ok(Response::new(ConfigSchemaResponse { spec: Some(spec) }))
    }

    async fn set_config(
        &self,
        request: Request<SetConfigRequest>,
    ) -> Result<Response<SetConfigResponse>, Status> {
        let request = request.into_inner();
        let config = decode(&request.msgpack_config).map_err(Status::invalid_argument)?;
        let greeting = config["greeting"].as_str();
        let greeting = greeting.ok_or_else(|| Status::invalid_argument("there is no greeting"))?;
        if greeting.is_empty() {
            return Err(Status::unknown("the greeting is empty"));
        }
        if let Ok(mut known) = self.greeting.lock() {
            *known = greeting.to_owned();
        }
        Ok(Response::new(SetConfigResponse {}))
    }
}

#[tonic::async_trait]
impl GrpcController for StandIn {
    async fn shutdown(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        self.called("Shutdown", "").await;
        self.ended.notify_one();
        Ok(Response::new(Empty {}))
    }
}
