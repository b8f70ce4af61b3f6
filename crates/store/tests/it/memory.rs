//! Budget of memory: bytes that a replica holds for an allocation, its job and the indexes included.
//!
//! Counts of the allocator, not of the operating system, so a busy machine makes no difference.

use model::{AllocClient, AllocId, Allocation, Job, NodeId, Timestamp};
use state::{Change, Key, State};
use store::{Interest, codec};
use test_kit::builders;

const ALLOCS: u32 = 20_000;
const ALLOCS_OF_A_JOB: u32 = 200;
const NODES: u128 = 500;

/// Bytes of an allocation that runs and has reported three times, by the part that a replica holds.
const BUDGET: [(Interest, i64); 2] = [(WITHOUT_TEXTS, 1_200), (Interest::ALL, 1_600)];

const WITHOUT_TEXTS: Interest = Interest {
    without: &[],
    task_texts: false,
};

/// A placement as its plan stores it, with a port and a deployment.
const PLACED: &str = r#"{"eval":"ee134dce-9a6e-4837-b4ae-66d4f0e3bbba",
    "node":"a958b6ee-f5ef-43c7-bdf8-87482d4960f7","ns":"default","job":"web","v":0,"jci":15,"group":"app",
    "n":1,"res":{"sum":{"cpu":100,"mem":300,"disk":300},"ports":[{"label":"http","value":20776,"to":20776,
    "host_ip":"10.0.0.1"}]},"dep":"6c418cb4-8638-4f95-b88d-6faa9dc9b1ba","t":1795613540647557520,
    "m":{"ev":500,"pool":500,"s":-922,"p":{"b":78,"a":-1000}}}"#;

/// The report of its node once it is healthy.
const REPORTED: &str = r#"{"status":"running","description":"Tasks are running","task_states":{"server":
    {"phase":"running","failed":false,"restarts":0,"last_restart":0,"started_at":1795613540703967364,
    "finished_at":0,"events":[
    {"type":"Received","time":1795613540659996970,"message":"Task received by node"},
    {"type":"Task Setup","time":1795613540662334527,"message":"Building the task's directory"},
    {"type":"Started","time":1795613540703967364,"message":"Task started"}]}},
    "health":{"healthy":true,"time":1795613550704947461,
    "deployment_id":"6c418cb4-8638-4f95-b88d-6faa9dc9b1ba"},"report":4,"modify_time":1795613550715334847}"#;

fn job(number: u32) -> Job {
    let mut job = builders::service(&format!("web-{number}"), ALLOCS_OF_A_JOB);
    job.task_groups[0].name = "app".into();
    job
}

/// Returns the stored values of one allocation: the placement and the report.
fn values(number: u32) -> [(Key, Vec<u8>); 2] {
    let id = AllocId::from_random(u128::from(number) + 1);
    let mut alloc: Allocation = serde_json::from_str(PLACED).unwrap();
    alloc.id = id;
    alloc.job_id = format!("web-{}", number / ALLOCS_OF_A_JOB).into();
    alloc.name_index = number % ALLOCS_OF_A_JOB;
    alloc.node_id = NodeId::from_random(u128::from(number) % NODES + 1);
    let mut client: AllocClient = serde_json::from_str(REPORTED).unwrap();
    client.modify_time = Timestamp(u64::from(number));
    [
        (Key::Alloc(id), serde_json::to_vec(&alloc).unwrap()),
        (Key::AllocClient(id), serde_json::to_vec(&client).unwrap()),
    ]
}

#[test]
fn an_allocation_takes_its_budget_of_memory() {
    let jobs = (0..ALLOCS / ALLOCS_OF_A_JOB).map(job);
    let jobs = jobs.map(|job| {
        (
            Key::JobVersion(job.key(), 0),
            serde_json::to_vec(&job).unwrap(),
        )
    });
    let values: Vec<(Key, Vec<u8>)> = jobs.chain((0..ALLOCS).flat_map(values)).collect();
    for (interest, budget) in BUDGET {
        let mut state = State::default();
        let info = allocation_counter::measure(|| {
            for (revision, (key, text)) in (1..).zip(&values) {
                let mut entity = codec::decode(key, text).unwrap();
                interest.strip(&mut entity);
                let change = Change::Put {
                    key: key.clone(),
                    entity,
                    create_index: revision,
                    modify_index: revision,
                };
                state.apply(revision, [change]);
            }
        });
        assert_eq!(state.snapshot().allocs().count(), ALLOCS as usize);
        let bytes = info.bytes_current / i64::from(ALLOCS);
        println!("{interest:?}: {bytes} bytes");
        assert!(bytes <= budget, "{bytes} bytes of {budget}, {interest:?}");
    }
}
