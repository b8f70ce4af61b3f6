//! Agent RPCs of the fake gateway: a log of two lines.

use futures::stream::{self, BoxStream, StreamExt as _};
use proto::v1::agent_server::Agent;
use proto::v1::*;
use tonic::{Request, Response, Status};

use super::fake::{Answer, Fake};

#[tonic::async_trait]
impl Agent for Fake {
    type MonitorStream = BoxStream<'static, Result<LogLines, Status>>;

    async fn monitor(&self, request: Request<MonitorRequest>) -> Answer<Self::MonitorStream> {
        self.seen("Monitor", &request, None).await?;
        let request = request.into_inner();
        let line = |level: &str, message: String| LogLine {
            time_ns: 1_795_262_400_000_000_000,
            level: level.to_owned(),
            target: "store::election".to_owned(),
            message,
            ..LogLine::default()
        };
        let secret = self.state().log_secret.clone();
        let fields = (!secret.is_empty()).then(|| LogField {
            name: "token".to_owned(),
            value: secret,
        });
        let fields = fields.into_iter().collect();
        let target = request.target.unwrap_or_default();
        let service = [target.service, target.process, target.node_id].concat();
        let lines = LogLines {
            lines: vec![
                line("INFO", format!("read at {} of {service:?}", request.filter)),
                LogLine {
                    fields,
                    ..line("DEBUG", format!("recent {}", request.recent))
                },
            ],
            dropped: 3,
        };
        let end: BoxStream<'static, _> = if request.recent_only {
            stream::empty().boxed()
        } else {
            stream::pending().boxed()
        };
        Ok(Response::new(stream::iter([Ok(lines)]).chain(end).boxed()))
    }

    async fn get_log_level(
        &self,
        request: Request<GetLogLevelRequest>,
    ) -> Answer<GetLogLevelResponse> {
        self.seen("GetLogLevel", &request, None).await?;
        let process = request.into_inner().target.unwrap_or_default().process;
        if let Some(refusal) = self.state().silent_processes.get(&process) {
            return Err(refusal.clone());
        }
        let level = Some(self.state().log_level.clone());
        Ok(Response::new(GetLogLevelResponse { level }))
    }

    async fn set_log_level(
        &self,
        request: Request<SetLogLevelRequest>,
    ) -> Answer<SetLogLevelResponse> {
        self.seen("SetLogLevel", &request, None).await?;
        let request = request.into_inner();
        let mut state = self.state();
        let configured = state.log_level.configured.clone();
        let filter = match request.filter.as_str() {
            "" => configured.clone(),
            filter => filter.to_owned(),
        };
        let level = LogLevel {
            filter,
            configured,
            expires_after: request.expires_after,
        };
        let before = std::mem::replace(&mut state.log_level, level.clone());
        Ok(Response::new(SetLogLevelResponse {
            previous: before.filter,
            level: Some(level),
        }))
    }
}
