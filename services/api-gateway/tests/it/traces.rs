//! The caller's trace goes on in the evaluation.

use model::EvalId;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::trace::SdkTracerProvider;
use proto::v1;
use state::{Entity, Key};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::support::{Suite, ask, job};

const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[tokio::test]
async fn an_evaluation_continues_the_trace_of_the_request_that_made_it() {
    let provider = SdkTracerProvider::builder().build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
    let subscriber = tracing_subscriber::registry()
        .with(LevelFilter::INFO)
        .with(layer);
    // For every test of this binary: a gateway runs on threads of its own choosing.
    tracing::subscriber::set_global_default(subscriber).unwrap();

    let suite = Suite::start(1).await;
    let message = v1::RegisterJobRequest {
        job: Some((&job("web")).into()),
        ..Default::default()
    };
    let mut request = ask(message);
    request
        .metadata_mut()
        .insert("traceparent", CALLER.parse().unwrap());
    let answer = suite.jobs(0).register(request).await.unwrap().into_inner();
    let key = Key::Eval(answer.eval_id.parse::<EvalId>().unwrap());
    let Entity::Eval(eval) = suite.get(&key).await.unwrap().entity else {
        panic!()
    };
    assert_eq!(eval.trace_parent[..36], CALLER[..36], "the same trace");
    assert_ne!(
        eval.trace_parent[36..52],
        CALLER[36..52],
        "a span of the gateway's"
    );
}
