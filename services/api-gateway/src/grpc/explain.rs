//! `kafila.v1.Evaluations.Explain`: per-node verdicts for an evaluation's job.

use std::time::Duration;

use gateway_core::Error;
use listing::find;
use proto::v1;
use scheduler::explain::{ExplainRequest, explain};
use state::{Snapshot, Table};
use tracing::{Instrument as _, info_span};

use super::query::{Api, Read};

/// The tables that an explanation reads.
const TABLES: [Table; 4] = [Table::Evals, Table::Jobs, Table::Allocs, Table::Nodes];

impl Api {
    pub(super) async fn explain_evaluation(
        &self,
        request: v1::ExplainEvaluationRequest,
        timeout: Option<Duration>,
    ) -> Result<v1::ExplainEvaluationResponse, Error> {
        let read = Read::new(request.options, timeout);
        let find = |snapshot: &Snapshot| {
            let id = find::eval(snapshot, &request.eval_id)?;
            let node = match request.node_id.as_str() {
                "" => None,
                text => Some(find::node(snapshot, text)?),
            };
            Ok(((snapshot.clone(), id, node), String::new()))
        };
        let index = |snapshot: &Snapshot| snapshot.index().max(1);
        let ((snapshot, id, node), meta) = self.query(&read, &TABLES, index, find).await?;
        let eval = snapshot.eval(id).cloned();
        let eval = eval.expect("found in this snapshot");
        let evaluation = v1::Evaluation::from(&*eval);
        let gateway = &self.gateway;
        let (now, seed) = (gateway.core.now(), gateway.core.ids.next_u64());
        let work = move || {
            let request = ExplainRequest {
                eval: &eval,
                node,
                now,
                seed,
            };
            explain(&snapshot, &request)
        };
        let explanation = gateway
            .dry_runs
            .run(gateway.core.request_timeout(), work)
            .instrument(info_span!("explain", eval_id = %id))
            .await?;
        Ok(v1::ExplainEvaluationResponse {
            meta,
            evaluation: Some(evaluation),
            explanation: Some(api_view::explanation(&explanation)),
        })
    }
}
