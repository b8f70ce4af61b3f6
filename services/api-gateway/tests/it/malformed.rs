//! Malformed requests, each answered with an error that names the field and how to mend it.
//!
//! To add one: a line in [`CASES`], with the request, the code, the field in the error's detail
//! (empty: none) and pieces of the message: the problem and the fix.

use std::future::Future;
use std::pin::Pin;

use proto::internal::v1 as internal;
use proto::v1;
use tonic::{Code, Status};

use crate::support::{Suite, ask, job, node};

type Call = for<'a> fn(&'a Suite) -> Pin<Box<dyn Future<Output = Status> + Send + 'a>>;

struct Case {
    name: &'static str,
    call: Call,
    code: Code,
    field: &'static str,
    says: &'static [&'static str],
}

/// Makes the request and returns the error it must be answered with.
macro_rules! refused {
    ($client:ident . $method:ident, $request:expr) => {
        |suite| {
            Box::pin(async move {
                suite
                    .$client(0)
                    .$method(ask($request))
                    .await
                    .map(|_| ())
                    .unwrap_err()
            })
        }
    };
}

/// A registration of a job that `edit` has spoilt.
fn spoilt(edit: impl FnOnce(&mut v1::Job)) -> v1::RegisterJobRequest {
    let mut job = v1::Job::from(&job("web"));
    edit(&mut job);
    v1::RegisterJobRequest {
        job: Some(job),
        ..Default::default()
    }
}

fn task(job: &mut v1::Job) -> &mut v1::Task {
    &mut job.task_groups[0].tasks[0]
}

fn options(edit: impl FnOnce(&mut v1::QueryOptions)) -> Option<v1::QueryOptions> {
    let mut options = v1::QueryOptions::default();
    edit(&mut options);
    Some(options)
}

fn register_node(edit: impl FnOnce(&mut v1::Node)) -> internal::RegisterNodeRequest {
    let mut record = v1::Node::from(&node(1));
    edit(&mut record);
    internal::RegisterNodeRequest {
        node: Some(record),
        secret: "secret-1".to_owned(),
    }
}

fn report(alloc_id: &str, client: Option<v1::AllocClient>) -> internal::ReportAllocationsRequest {
    internal::ReportAllocationsRequest {
        node_id: node(1).id.to_string(),
        secret: node(1).secret,
        reports: vec![internal::AllocationReport {
            alloc_id: alloc_id.to_owned(),
            client,
        }],
    }
}

fn client(status: &str) -> Option<v1::AllocClient> {
    Some(v1::AllocClient {
        status: status.to_owned(),
        ..Default::default()
    })
}

const ALLOC: &str = "8a3f2c1e-0b4d-4a7e-9c5f-6d7e8f901234";

const CASES: &[Case] = &[
    Case {
        name: "no job",
        call: refused!(jobs.register, v1::RegisterJobRequest::default()),
        code: Code::InvalidArgument,
        field: "job",
        says: &["missing", "want the job"],
    },
    Case {
        name: "a job without a name of its own",
        call: refused!(jobs.register, spoilt(|job| job.id = None)),
        code: Code::InvalidArgument,
        field: "id",
        says: &["id"],
    },
    Case {
        name: "a job without groups",
        call: refused!(jobs.register, spoilt(|job| job.task_groups.clear())),
        code: Code::InvalidArgument,
        field: "group",
        says: &["group"],
    },
    Case {
        name: "a type that does not exist",
        call: refused!(
            jobs.register,
            spoilt(|job| job.r#type = Some("cron".to_owned()))
        ),
        code: Code::InvalidArgument,
        field: "type",
        says: &["cron", "service"],
    },
    Case {
        name: "canaries that are to be promoted, and are none",
        call: refused!(
            jobs.register,
            spoilt(|job| {
                job.task_groups[0].update = Some(v1::UpdateStrategy {
                    auto_promote: Some(true),
                    ..Default::default()
                })
            })
        ),
        code: Code::InvalidArgument,
        field: "group[\"web\"].update.auto_promote",
        says: &["Canary count greater than zero", "set canary"],
    },
    Case {
        name: "a priority beyond the scale",
        call: refused!(jobs.register, spoilt(|job| job.priority = Some(101))),
        code: Code::InvalidArgument,
        field: "priority",
        says: &["101", "100"],
    },
    Case {
        name: "a negative count",
        call: refused!(
            jobs.register,
            spoilt(|job| job.task_groups[0].count = Some(-1))
        ),
        code: Code::InvalidArgument,
        field: "group[\"web\"].count",
        says: &["can't be negative", "write 0"],
    },
    Case {
        name: "a task without a driver",
        call: refused!(jobs.register, spoilt(|job| task(job).driver = None)),
        code: Code::InvalidArgument,
        field: "group[\"web\"].task[\"server\"].driver",
        says: &["driver"],
    },
    Case {
        name: "a negative amount of memory",
        call: refused!(
            jobs.register,
            spoilt(|job| {
                task(job).resources = Some(v1::Resources {
                    memory_mib: Some(-5),
                    ..Default::default()
                });
            })
        ),
        code: Code::InvalidArgument,
        field: "group[\"web\"].task[\"server\"].resources.memory",
        says: &["-5"],
    },
    Case {
        name: "a duration whose parts disagree",
        call: refused!(
            jobs.register,
            spoilt(|job| {
                task(job).kill_timeout = Some(prost_types::Duration {
                    seconds: 5,
                    nanos: -1,
                });
            })
        ),
        code: Code::InvalidArgument,
        field: "group[\"web\"].task[\"server\"].kill_timeout",
        says: &["5 s and -1 ns", "of the same sign"],
    },
    Case {
        name: "a duration without end",
        call: refused!(
            jobs.register,
            spoilt(|job| {
                let endless = prost_types::Duration {
                    seconds: i64::MAX,
                    nanos: 0,
                };
                job.task_groups[0].shutdown_delay = Some(endless);
            })
        ),
        code: Code::InvalidArgument,
        field: "group[\"web\"].shutdown_delay",
        says: &["too long", "want at most 292 years"],
    },
    Case {
        name: "a config with a number that is none",
        call: refused!(
            jobs.register,
            spoilt(|job| {
                let kind = prost_types::value::Kind::NumberValue(f64::NAN);
                let value = prost_types::Value { kind: Some(kind) };
                let fields = [("n".to_owned(), value)].into();
                task(job).config = Some(prost_types::Struct { fields });
            })
        ),
        code: Code::InvalidArgument,
        field: "group[\"web\"].task[\"server\"].config.n",
        says: &["NaN is not a number"],
    },
    Case {
        name: "an operator that does not exist",
        call: refused!(
            jobs.register,
            spoilt(|job| {
                job.constraints = vec![v1::Constraint {
                    left: Some("${attr.kernel.name}".to_owned()),
                    operator: Some("resembles".to_owned()),
                    right: Some("linux".to_owned()),
                }];
            })
        ),
        code: Code::InvalidArgument,
        field: "constraint[0].operator",
        says: &["resembles"],
    },
    Case {
        name: "an evaluation's priority beyond the scale",
        call: refused!(
            jobs.register,
            v1::RegisterJobRequest {
                eval_priority: 500,
                ..spoilt(|_| {})
            }
        ),
        code: Code::InvalidArgument,
        field: "eval_priority",
        says: &["500", "want 1 to 100"],
    },
    Case {
        name: "an endless request id",
        call: refused!(
            jobs.register,
            v1::RegisterJobRequest {
                request_id: "x".repeat(300),
                ..spoilt(|_| {})
            }
        ),
        code: Code::InvalidArgument,
        field: "request_id",
        says: &["300 bytes", "want at most 256"],
    },
    Case {
        name: "a check index of a job that does not exist",
        call: refused!(
            jobs.register,
            v1::RegisterJobRequest {
                check_index: Some(7),
                ..spoilt(|_| {})
            }
        ),
        code: Code::Aborted,
        field: "",
        says: &["Enforcing job modify index 7: job does not exist"],
    },
    Case {
        name: "stopping a job without an id",
        call: refused!(jobs.deregister, v1::DeregisterJobRequest::default()),
        code: Code::InvalidArgument,
        field: "job_id",
        says: &["missing", "want the job's id"],
    },
    Case {
        name: "stopping a job of every namespace",
        call: refused!(
            jobs.deregister,
            v1::DeregisterJobRequest {
                namespace: "*".to_owned(),
                job_id: "web".to_owned(),
                ..Default::default()
            }
        ),
        code: Code::InvalidArgument,
        field: "namespace",
        says: &["every namespace", "want that of the job"],
    },
    Case {
        name: "reading a job without an id",
        call: refused!(jobs.get, v1::GetJobRequest::default()),
        code: Code::InvalidArgument,
        field: "job_id",
        says: &["missing"],
    },
    Case {
        name: "reading a job that does not exist",
        call: refused!(
            jobs.get,
            v1::GetJobRequest {
                job_id: "ghost".to_owned(),
                ..Default::default()
            }
        ),
        code: Code::NotFound,
        field: "",
        says: &["no job \"ghost\" in namespace \"default\""],
    },
    Case {
        name: "a consistency that does not exist",
        call: refused!(
            jobs.list,
            v1::ListJobsRequest {
                options: options(|options| options.consistency = 9),
            }
        ),
        code: Code::InvalidArgument,
        field: "options.consistency",
        says: &["9 is not known", "want 1 (linearizable"],
    },
    Case {
        name: "a negative wait",
        call: refused!(
            jobs.list,
            v1::ListJobsRequest {
                options: options(|options| {
                    options.wait = Some(prost_types::Duration {
                        seconds: -1,
                        nanos: 0,
                    });
                }),
            }
        ),
        code: Code::InvalidArgument,
        field: "options.wait",
        says: &["negative", "want 0 or more"],
    },
    Case {
        name: "a page that nothing ended with",
        call: refused!(
            evaluations.list,
            v1::ListEvaluationsRequest {
                options: options(|options| options.next_token = "page 2".to_owned()),
                ..Default::default()
            }
        ),
        code: Code::InvalidArgument,
        field: "options.next_token",
        says: &["page 2", "meta.next_token"],
    },
    Case {
        name: "a prefix that no id has",
        call: refused!(
            allocations.list,
            v1::ListAllocationsRequest {
                options: options(|options| options.prefix = "web".to_owned()),
            }
        ),
        code: Code::InvalidArgument,
        field: "options.prefix",
        says: &[
            "\"web\" is not the start of an id",
            "want hexadecimal digits",
        ],
    },
    Case {
        name: "a status that evaluations do not have",
        call: refused!(
            evaluations.list,
            v1::ListEvaluationsRequest {
                status: "cancelled".to_owned(),
                ..Default::default()
            }
        ),
        code: Code::InvalidArgument,
        field: "status",
        says: &[
            "cancelled",
            "want one of pending, blocked, complete, failed, canceled",
        ],
    },
    Case {
        name: "an evaluation's id that is none",
        call: refused!(
            evaluations.get,
            v1::GetEvaluationRequest {
                eval_id: "my-eval".to_owned(),
                ..Default::default()
            }
        ),
        code: Code::InvalidArgument,
        field: "eval_id",
        says: &["\"my-eval\" is not the id of a", "want hexadecimal digits"],
    },
    Case {
        name: "an allocation's id that is too short",
        call: refused!(
            allocations.get,
            v1::GetAllocationRequest {
                alloc_id: "8".to_owned(),
                ..Default::default()
            }
        ),
        code: Code::InvalidArgument,
        field: "alloc_id",
        says: &["too short", "at least two characters"],
    },
    Case {
        name: "an allocation that does not exist",
        call: refused!(
            allocations.get,
            v1::GetAllocationRequest {
                alloc_id: ALLOC.to_owned(),
                ..Default::default()
            }
        ),
        code: Code::NotFound,
        field: "",
        says: &["no allocation with prefix or id", ALLOC],
    },
    Case {
        name: "a deployment without an id",
        call: refused!(deployments.get, v1::GetDeploymentRequest::default()),
        code: Code::InvalidArgument,
        field: "deployment_id",
        says: &["missing", "want the id of a deployment"],
    },
    Case {
        name: "a node that does not exist",
        call: refused!(
            nodes.get,
            v1::GetNodeRequest {
                node_id: "abcdef".to_owned(),
                ..Default::default()
            }
        ),
        code: Code::NotFound,
        field: "",
        says: &["no node with prefix or id \"abcdef\""],
    },
    Case {
        name: "output of no stream",
        call: refused!(
            allocations.logs,
            v1::LogsRequest {
                alloc_id: ALLOC.to_owned(),
                ..Default::default()
            }
        ),
        code: Code::InvalidArgument,
        field: "stream",
        says: &["0 is not a stream", "want 1 (stdout) or 2 (stderr)"],
    },
    Case {
        name: "output of an allocation that does not exist",
        call: refused!(
            allocations.logs,
            v1::LogsRequest {
                alloc_id: ALLOC.to_owned(),
                stream: 1,
                ..Default::default()
            }
        ),
        code: Code::NotFound,
        field: "",
        says: &["no allocation"],
    },
    Case {
        name: "a registration without a node",
        call: refused!(sessions.register, internal::RegisterNodeRequest::default()),
        code: Code::InvalidArgument,
        field: "node",
        says: &["missing", "want the node's record"],
    },
    Case {
        name: "a node with an id that is none",
        call: refused!(
            sessions.register,
            register_node(|node| node.id = "n1".to_owned())
        ),
        code: Code::InvalidArgument,
        field: "node.id",
        says: &["\"n1\" is not the id of", "want a whole UUID"],
    },
    Case {
        name: "a node with a port that does not exist",
        call: refused!(
            sessions.register,
            register_node(|node| node.reserved_ports = vec![22, 70_000])
        ),
        code: Code::InvalidArgument,
        field: "node.reserved_ports[1]",
        says: &["70000 is too large", "want at most 65535"],
    },
    Case {
        name: "a node that cannot be dialled",
        call: refused!(
            sessions.register,
            register_node(|node| node.address = "10.0.0.9".to_owned())
        ),
        code: Code::InvalidArgument,
        field: "node.address",
        says: &["cannot be dialled", "http://"],
    },
    Case {
        name: "a node in every pool",
        call: refused!(
            sessions.register,
            register_node(|node| node.node_pool = "all".to_owned())
        ),
        code: Code::InvalidArgument,
        field: "node.node_pool",
        says: &["every pool", "want the name of one"],
    },
    Case {
        name: "a heartbeat without a node id",
        call: refused!(sessions.heartbeat, internal::HeartbeatRequest::default()),
        code: Code::InvalidArgument,
        field: "node_id",
        says: &["\"\" is not the id of", "want a whole UUID"],
    },
    Case {
        name: "a heartbeat of a node that never registered",
        call: refused!(
            sessions.heartbeat,
            internal::HeartbeatRequest {
                node_id: node(99).id.to_string(),
                secret: "s".to_owned(),
            }
        ),
        code: Code::NotFound,
        field: "",
        says: &["is not registered: register it first"],
    },
    Case {
        name: "a report of no allocation",
        call: refused!(
            sessions.report_allocations,
            report("web", client("running"))
        ),
        code: Code::InvalidArgument,
        field: "reports[0].alloc_id",
        says: &["\"web\" is not the id of an allocation"],
    },
    Case {
        name: "a report without content",
        call: refused!(sessions.report_allocations, report(ALLOC, None)),
        code: Code::InvalidArgument,
        field: "reports[0].client",
        says: &["missing", "want the allocation's client side"],
    },
    Case {
        name: "a report with a status that does not exist",
        call: refused!(sessions.report_allocations, report(ALLOC, client("runing"))),
        code: Code::InvalidArgument,
        field: "reports[0].client.status",
        says: &["runing", "want one of pending, running"],
    },
    Case {
        name: "a report of what only servers can say",
        call: refused!(sessions.report_allocations, report(ALLOC, client("lost"))),
        code: Code::InvalidArgument,
        field: "reports[0].client.status",
        says: &[
            "set by the servers only",
            "want pending, running, complete or failed",
        ],
    },
    Case {
        name: "a promotion of a deployment by the start of its id",
        call: refused!(
            deployments.promote,
            v1::PromoteDeploymentRequest {
                deployment_id: "5e6f".to_owned(),
                all: true,
                ..Default::default()
            }
        ),
        code: Code::InvalidArgument,
        field: "deployment_id",
        says: &[
            "\"5e6f\" is not the id of a deployment",
            "want a whole UUID",
        ],
    },
    Case {
        name: "a promotion of nothing",
        call: refused!(
            deployments.promote,
            v1::PromoteDeploymentRequest {
                deployment_id: ALLOC.to_owned(),
                ..Default::default()
            }
        ),
        code: Code::InvalidArgument,
        field: "task_groups",
        says: &["missing", "want the task groups to promote, or all"],
    },
    Case {
        name: "a promotion of a deployment that there is not",
        call: refused!(
            deployments.promote,
            v1::PromoteDeploymentRequest {
                deployment_id: ALLOC.to_owned(),
                all: true,
                ..Default::default()
            }
        ),
        code: Code::NotFound,
        field: "",
        says: &["no deployment with prefix or id"],
    },
    Case {
        name: "health of no allocation",
        call: refused!(
            deployments.set_alloc_health,
            v1::SetAllocHealthRequest {
                deployment_id: ALLOC.to_owned(),
                healthy_alloc_ids: vec!["web".to_owned()],
                ..Default::default()
            }
        ),
        code: Code::InvalidArgument,
        field: "healthy_alloc_ids[0]",
        says: &[
            "\"web\" is not the id of an allocation",
            "want a whole UUID",
        ],
    },
    Case {
        name: "a revert to nothing",
        call: refused!(
            jobs.revert,
            v1::RevertJobRequest {
                job_id: "web".to_owned(),
                ..Default::default()
            }
        ),
        code: Code::InvalidArgument,
        field: "target",
        says: &["missing", "want the version to go back to, or its tag"],
    },
    Case {
        name: "versions compared with two",
        call: refused!(
            jobs.list_versions,
            v1::ListJobVersionsRequest {
                job_id: "web".to_owned(),
                diff_version: Some(1),
                diff_tag: "gold".to_owned(),
                ..Default::default()
            }
        ),
        code: Code::InvalidArgument,
        field: "diff_tag",
        says: &["there is a diff_version too", "want one"],
    },
];

#[tokio::test]
async fn every_malformed_request_is_answered_with_its_field_and_a_fix() {
    let suite = Suite::start(1).await;
    suite.put_node(&node(1)).await;
    assert!(CASES.len() >= 30);
    let mut failures = Vec::new();
    for case in CASES {
        let status = (case.call)(&suite).await;
        let fields: Vec<String> = v1::ErrorDetail::from_status(&status)
            .map(|detail| {
                detail
                    .violations
                    .into_iter()
                    .map(|found| found.field)
                    .collect()
            })
            .unwrap_or_default();
        let names_field = case.field.is_empty() || fields.iter().any(|field| field == case.field);
        let says_all = case
            .says
            .iter()
            .all(|piece| status.message().contains(piece));
        if status.code() != case.code || !names_field || !says_all {
            failures.push(format!(
                "{}: {:?} {fields:?}: {}",
                case.name,
                status.code(),
                status.message()
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
