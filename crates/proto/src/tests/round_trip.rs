//! Properties: model → wire → bytes → wire → model is the identity, for every noun.

use std::fmt::Debug;

use model::{AllocClient, Allocation, Deployment, Evaluation, FieldErrors, Node, Plan, PlanResult};
use proptest::prelude::*;
use prost::Message;

use super::draw::Draw;
use super::nouns;
use crate::{internal, v1};

/// Sends `message` through its bytes.
fn sent<M: Message + Default>(message: &M) -> M {
    M::decode(message.encode_to_vec().as_slice()).unwrap()
}

fn comes_back<T, W>(value: &T)
where
    T: TryFrom<W, Error = FieldErrors> + PartialEq + Debug,
    W: for<'a> From<&'a T> + Message + Default,
{
    let back = T::try_from(sent(&W::from(value))).unwrap();
    assert_eq!(&back, value);
}

proptest! {
    #[test]
    fn an_allocation_comes_back(seed: u64) {
        comes_back::<Allocation, v1::Allocation>(&nouns::allocation(&mut Draw::new(seed)));
    }

    #[test]
    fn a_client_side_comes_back(seed: u64) {
        comes_back::<AllocClient, v1::AllocClient>(&nouns::alloc_client(&mut Draw::new(seed)));
    }

    #[test]
    fn a_task_state_comes_back(seed: u64) {
        let state = nouns::task_state(&mut Draw::new(seed));
        comes_back::<model::TaskState, v1::TaskState>(&state);
    }

    #[test]
    fn an_evaluation_comes_back(seed: u64) {
        comes_back::<Evaluation, v1::Evaluation>(&nouns::evaluation(&mut Draw::new(seed)));
    }

    #[test]
    fn a_deployment_comes_back(seed: u64) {
        comes_back::<Deployment, v1::Deployment>(&nouns::deployment(&mut Draw::new(seed)));
    }

    #[test]
    fn a_node_comes_back(seed: u64) {
        comes_back::<Node, v1::Node>(&nouns::node(&mut Draw::new(seed)));
    }

    #[test]
    fn a_plan_comes_back(seed: u64) {
        comes_back::<Plan, internal::v1::Plan>(&nouns::plan(&mut Draw::new(seed)));
    }

    #[test]
    fn a_plan_result_comes_back(seed: u64) {
        let result = nouns::plan_result(&mut Draw::new(seed));
        comes_back::<PlanResult, internal::v1::SubmitPlanResponse>(&result);
    }

    #[test]
    fn a_metric_comes_back(seed: u64) {
        let metric = nouns::metric(&mut Draw::new(seed));
        comes_back::<model::AllocMetric, v1::AllocMetric>(&metric);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        // None of these may panic.
        if let Ok(wire) = internal::v1::Plan::decode(bytes.as_slice()) {
            let _ = Plan::try_from(wire);
        }
        if let Ok(wire) = v1::Node::decode(bytes.as_slice()) {
            let _ = Node::try_from(wire);
        }
    }
}
