//! State of the fake gateway: objects, prepared answers and recorded requests.

use std::collections::{BTreeMap, HashMap, VecDeque};

use proto::v1;
use tonic::Status;

use crate::fixtures;

/// Lists are in the order in which the gateway returns them.
#[derive(Default)]
pub(crate) struct FakeState {
    pub(crate) stubs: Vec<v1::JobStub>,
    /// All versions of each job, the current one last.
    pub(crate) jobs: Vec<v1::Job>,
    pub(crate) allocs: Vec<v1::Allocation>,
    pub(crate) evals: Vec<v1::Evaluation>,
    pub(crate) deployments: Vec<v1::Deployment>,
    pub(crate) nodes: Vec<v1::Node>,
    pub(crate) introduction_tokens: Vec<v1::IntroductionToken>,
    pub(crate) variables: Vec<v1::Variable>,
    /// The lock of every variable.
    pub(crate) lock: Option<String>,
    pub(crate) revocations: Vec<v1::NodeRevocation>,
    pub(crate) signing_keys: Vec<v1::SigningKey>,
    pub(crate) node_pools: Vec<v1::NodePool>,
    pub(crate) namespaces: Vec<v1::Namespace>,
    /// Concurrent changes of the namespace, one before each write.
    pub(crate) other_namespaces: VecDeque<v1::Namespace>,
    pub(crate) deleted_evals: Vec<String>,
    pub(crate) scaling_policies: Vec<v1::ScalingPolicy>,
    pub(crate) registrations: Vec<v1::ServiceRegistration>,
    pub(crate) leaders: Vec<v1::Leader>,
    pub(crate) processes: Vec<v1::Process>,
    /// Address of a process -> the error that a question to it gets.
    pub(crate) silent_processes: BTreeMap<String, Status>,
    pub(crate) log_level: v1::LogLevel,
    /// In a field of the log; empty: there is no such field.
    pub(crate) log_secret: String,
    pub(crate) scheduler_config: v1::SchedulerConfiguration,
    /// Concurrent changes of the configuration, one before each write.
    pub(crate) other_configs: VecDeque<v1::SchedulerConfiguration>,
    pub(crate) set_config_requests: Vec<v1::SetSchedulerConfigurationRequest>,
    pub(crate) garbage: v1::CollectGarbageResponse,
    pub(crate) etcd: v1::GetEtcdStatusResponse,
    /// Endpoints of defragmented members, in order.
    pub(crate) defragmented: Vec<String>,
    /// The bytes of a saved snapshot, and the revision in its header.
    pub(crate) snapshot: Vec<u8>,
    pub(crate) snapshot_min_revision: u64,
    /// Next states of an object, one for each read of it.
    pub(crate) next_evals: VecDeque<v1::Evaluation>,
    pub(crate) next_deployments: VecDeque<v1::Deployment>,
    /// Answers of Register, in order; the last one repeats.
    pub(crate) registered: VecDeque<Result<v1::RegisterJobResponse, Status>>,
    pub(crate) validated: v1::ValidateJobResponse,
    pub(crate) planned: Option<Result<v1::PlanJobResponse, Status>>,
    pub(crate) deregistered: v1::DeregisterJobResponse,
    /// Answer to changes of a deployment.
    pub(crate) updated: Option<Result<v1::UpdateDeploymentResponse, Status>>,
    /// Diffs between versions, newest first.
    pub(crate) diffs: Vec<v1::JobDiff>,
    /// (task, stream) → chunks of output.
    pub(crate) logs: HashMap<(String, i32), Vec<Vec<u8>>>,
    /// Chunks written after a follower has connected.
    pub(crate) later_logs: HashMap<(String, i32), Vec<Vec<u8>>>,
    /// If set, the answer to every call.
    pub(crate) broken: Option<Status>,
    /// If set, no call is answered.
    pub(crate) mute: bool,
    pub(crate) seen: Vec<Seen>,
    /// Job IDs of evaluation lists.
    pub(crate) asked_jobs: Vec<String>,
    pub(crate) register_requests: Vec<v1::RegisterJobRequest>,
    pub(crate) plan_requests: Vec<v1::PlanJobRequest>,
    pub(crate) deregister_requests: Vec<v1::DeregisterJobRequest>,
    pub(crate) explain_requests: Vec<v1::ExplainEvaluationRequest>,
    pub(crate) logs_requests: Vec<v1::LogsRequest>,
    pub(crate) exec_starts: Vec<v1::ExecStart>,
    /// Path → contents.
    pub(crate) files: HashMap<String, String>,
    pub(crate) read_requests: Vec<v1::ReadFileRequest>,
    pub(crate) signal_requests: Vec<v1::SignalAllocationRequest>,
    pub(crate) node_meta: v1::NodeMeta,
    pub(crate) meta_requests: Vec<v1::ApplyNodeMetaRequest>,
    /// Parts that the next refresh finds changed.
    pub(crate) node_changes: Vec<String>,
    pub(crate) restart_requests: Vec<v1::RestartAllocationRequest>,
    /// Refusals of the next restarts.
    pub(crate) restart_refusals: VecDeque<Status>,
    pub(crate) stop_requests: Vec<v1::StopAllocationRequest>,
    pub(crate) promote_requests: Vec<v1::PromoteDeploymentRequest>,
    pub(crate) revert_requests: Vec<v1::RevertJobRequest>,
    pub(crate) tag_requests: Vec<v1::TagJobVersionRequest>,
    pub(crate) versions_requests: Vec<v1::ListJobVersionsRequest>,
    /// Next launch of every periodic job.
    pub(crate) next_launch_ns: u64,
    pub(crate) dispatched: v1::DispatchJobResponse,
    pub(crate) dispatch_requests: Vec<v1::DispatchJobRequest>,
    pub(crate) forced: v1::ForcePeriodicJobResponse,
    pub(crate) force_requests: Vec<v1::ForcePeriodicJobRequest>,
    pub(crate) evaluated: v1::EvaluateJobResponse,
    pub(crate) evaluate_requests: Vec<v1::EvaluateJobRequest>,
    pub(crate) scaled: v1::ScaleJobResponse,
    pub(crate) scale_requests: Vec<v1::ScaleJobRequest>,
    pub(crate) scale_status: v1::GetJobScaleStatusResponse,
}

/// One recorded call.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: &'static str,
    pub(crate) options: v1::QueryOptions,
    pub(crate) has_deadline: bool,
    pub(crate) trace_parent: Option<String>,
}

impl FakeState {
    /// One job running on one node.
    pub(crate) fn running() -> Self {
        let first = v1::Job {
            version: Some(0),
            priority: Some(40),
            ..fixtures::job()
        };
        Self {
            stubs: vec![fixtures::stub()],
            jobs: vec![first, fixtures::job()],
            allocs: vec![fixtures::old_alloc(), fixtures::alloc()],
            evals: vec![fixtures::eval()],
            deployments: vec![fixtures::deployment()],
            nodes: vec![fixtures::node()],
            node_pools: vec![fixtures::default_pool(), fixtures::node_pool()],
            namespaces: vec![fixtures::default_namespace(), fixtures::namespace()],
            scaling_policies: vec![fixtures::scaling_policy()],
            registrations: vec![fixtures::registration()],
            leaders: vec![fixtures::leader()],
            scheduler_config: fixtures::scheduler_config(),
            registered: [Ok(registered())].into(),
            deregistered: v1::DeregisterJobResponse {
                eval_id: fixtures::EVAL.to_owned(),
                ..v1::DeregisterJobResponse::default()
            },
            ..Self::default()
        }
    }

    pub(crate) fn updated_deployment(
        &self,
    ) -> Result<tonic::Response<v1::UpdateDeploymentResponse>, Status> {
        let answer = self.updated.clone().unwrap_or_else(|| {
            Ok(v1::UpdateDeploymentResponse {
                eval_id: fixtures::EVAL.to_owned(),
                ..v1::UpdateDeploymentResponse::default()
            })
        });
        answer.map(tonic::Response::new)
    }

    pub(crate) fn calls(&self, method: &str) -> usize {
        self.seen
            .iter()
            .filter(|seen| seen.method == method)
            .count()
    }
}

pub(crate) fn registered() -> v1::RegisterJobResponse {
    v1::RegisterJobResponse {
        eval_id: fixtures::EVAL.to_owned(),
        eval_create_index: 18,
        job_modify_index: 17,
        index: 18,
        changed: true,
        ..v1::RegisterJobResponse::default()
    }
}
