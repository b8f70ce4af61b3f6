//! Operator RPCs of the fake gateway.

use proto::v1::operator_server::Operator;
use proto::v1::*;
use tonic::{Request, Response, Status};

use super::fake::{Answer, Fake, meta};

#[tonic::async_trait]
impl Operator for Fake {
    async fn list_leaders(
        &self,
        request: Request<ListLeadersRequest>,
    ) -> Answer<ListLeadersResponse> {
        let options = request.get_ref().options.as_ref();
        self.seen("ListLeaders", &request, options).await?;
        let leaders = self.state().leaders.clone();
        Ok(Response::new(ListLeadersResponse {
            meta: Some(meta(100)),
            leaders,
        }))
    }

    async fn collect_garbage(
        &self,
        request: Request<CollectGarbageRequest>,
    ) -> Answer<CollectGarbageResponse> {
        self.seen("CollectGarbage", &request, None).await?;
        Ok(Response::new(self.state().garbage))
    }

    async fn get_version(&self, request: Request<GetVersionRequest>) -> Answer<GetVersionResponse> {
        self.seen("GetVersion", &request, None).await?;
        Ok(Response::new(GetVersionResponse {
            version: "9.8.7".to_owned(),
        }))
    }

    async fn get_scheduler_configuration(
        &self,
        request: Request<GetSchedulerConfigurationRequest>,
    ) -> Answer<GetSchedulerConfigurationResponse> {
        self.seen("GetSchedulerConfiguration", &request, None)
            .await?;
        let config = self.state().scheduler_config.clone();
        Ok(Response::new(GetSchedulerConfigurationResponse {
            meta: Some(meta(100)),
            scheduler_config: Some(config),
        }))
    }

    async fn set_scheduler_configuration(
        &self,
        request: Request<SetSchedulerConfigurationRequest>,
    ) -> Answer<SetSchedulerConfigurationResponse> {
        self.seen("SetSchedulerConfiguration", &request, None)
            .await?;
        let message = request.into_inner();
        let mut state = self.state();
        state.set_config_requests.push(message.clone());
        let mut modify_index = state.scheduler_config.modify_index;
        if let Some(other) = state.other_configs.pop_front() {
            modify_index += 1;
            state.scheduler_config = SchedulerConfiguration {
                modify_index,
                ..other
            };
        }
        if message.check_index.is_some_and(|it| it != modify_index) {
            return Err(Status::aborted("conflicting change"));
        }
        modify_index += 1;
        state.scheduler_config = SchedulerConfiguration {
            modify_index,
            ..message.scheduler_config.unwrap()
        };
        Ok(Response::new(SetSchedulerConfigurationResponse {
            modify_index,
        }))
    }
}
