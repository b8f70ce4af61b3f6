//! The revocations of nodes of `kafila.v1.Nodes`.

use admission::cluster::change::OneWrite;
use admission::nodes::introduction;
use admission::nodes::revocation::{self, Revocation};
use gateway_core::{Error, Step};
use identity::Caller;
use listing::find;
use model::NodeId;
use proto::v1;
use state::{Snapshot, Table};
use tonic::{Request, Response, Status};
use tracing::info;

use super::query::{Api, List, open};

const TABLES: [Table; 1] = [Table::NodeRevocations];

impl Api {
    pub(super) async fn revoke_node(
        &self,
        caller: &Caller,
        request: v1::RevokeNodeRequest,
    ) -> Result<v1::RevokeNodeResponse, Error> {
        let v1::RevokeNodeRequest { node_id, reason } = request;
        revocation::check_reason(&reason)?;
        let core = &self.gateway.core;
        let now = core.now();
        let decide = |snapshot: &Snapshot| {
            let id = find::any_node(snapshot, &node_id)?;
            let Revocation { node_name, change } = revocation::revoke(snapshot, id, &reason, now);
            let usable_token = introduction::usable_token(snapshot, id, now);
            let answer = move |index| v1::RevokeNodeResponse {
                index,
                node_id: id.to_string(),
                node_name,
                usable_token_id: usable_token.map_or_else(String::new, |id| id.to_string()),
            };
            Ok(match change {
                OneWrite::Unchanged { modify_index } => Step::IfFresh(answer(modify_index)),
                OneWrite::Write(write) => Step::Commit {
                    writes: vec![*write],
                    answer: Box::new(answer),
                },
            })
        };
        let what = || format!("the revocation of node {node_id}");
        let response = core.execute(what, decide).await?;
        info!(node_id = response.node_id, %caller, reason, "node revoked");
        Ok(response)
    }

    pub(super) async fn reinstate_node(
        &self,
        caller: &Caller,
        request: v1::ReinstateNodeRequest,
    ) -> Result<v1::ReinstateNodeResponse, Error> {
        let text = request.node_id.as_str();
        let decide = |snapshot: &Snapshot| {
            let id = find::revoked_node(snapshot, text)?;
            Ok(Step::Commit {
                writes: vec![revocation::reinstate(snapshot, id)?],
                answer: Box::new(move |index| v1::ReinstateNodeResponse {
                    index,
                    node_id: id.to_string(),
                }),
            })
        };
        let what = || format!("the revocation of node {text}");
        let response = self.gateway.core.execute(what, decide).await?;
        info!(node_id = response.node_id, %caller, "node reinstated");
        Ok(response)
    }

    pub(super) async fn list_revoked(
        &self,
        request: Request<v1::ListRevocationsRequest>,
    ) -> Result<Response<v1::ListRevocationsResponse>, Status> {
        let (request, timeout) = open(request);
        let list = List::<NodeId>::new(request.options, timeout)?.by_id()?;
        let answer = |snapshot: &Snapshot| {
            let revoked = snapshot.node_revocations();
            let revoked = revoked.filter(|(id, _)| list.has_id(id.0));
            let keyed = revoked.map(|(id, stored)| (id, (id, stored)));
            Ok(list.page(keyed, |(id, stored)| v1::NodeRevocation::new(id, stored)))
        };
        let (revocations, meta) = Api::list(self, &list, &TABLES, answer).await?;
        Ok(Response::new(v1::ListRevocationsResponse {
            meta,
            revocations,
        }))
    }
}
