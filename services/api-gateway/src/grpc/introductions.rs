//! The introduction tokens of `kafila.v1.Nodes`.

use admission::nodes::hashes::sha256;
use admission::nodes::introduction::{self, TokenRequest, token_text};
use gateway_core::{Error, Step};
use listing::find;
use model::{FieldErrors, Indexed, IntroductionToken, IntroductionTokenId};
use proto::{required_duration, v1};
use state::{Snapshot, Table};
use tonic::{Request, Response, Status};
use tracing::info;

use super::query::{Api, List, open};

const TABLES: [Table; 1] = [Table::Introductions];

impl Api {
    pub(super) async fn create_token(
        &self,
        request: v1::CreateIntroductionTokenRequest,
    ) -> Result<v1::CreateIntroductionTokenResponse, Error> {
        let token_request = read(request)?;
        token_request.check()?;
        // A token that no gateway can honour would only be found out at the node.
        self.gateway.node.node_ca()?;
        let core = &self.gateway.core;
        let id = IntroductionTokenId::from_random(core.ids.next_u128());
        let secret = format!("{:032x}{:032x}", core.ids.next_u128(), core.ids.next_u128());
        let hash = sha256(&[secret.as_bytes()]);
        let token = token_request.token(id, hash, core.now());
        let decide = |_: &Snapshot| {
            let stored = token.clone();
            Ok(Step::Commit {
                writes: vec![introduction::create(&token)],
                answer: Box::new(move |index| Indexed {
                    create_index: index,
                    modify_index: index,
                    value: stored,
                }),
            })
        };
        let what = || format!("introduction token {id}");
        let stored: Indexed<IntroductionToken> = core.execute(what, decide).await?;
        info!(
            token_id = %id,
            uses = stored.value.uses_max,
            node_pool = stored.value.node_pool,
            "introduction token created"
        );
        Ok(v1::CreateIntroductionTokenResponse {
            token: token_text(id, &secret),
            introduction_token: Some((&stored).into()),
        })
    }

    pub(super) async fn list_tokens(
        &self,
        request: Request<v1::ListIntroductionTokensRequest>,
    ) -> Result<Response<v1::ListIntroductionTokensResponse>, Status> {
        let (request, timeout) = open(request);
        let list = List::<String>::new(request.options, timeout)?.by_id()?;
        let answer = |snapshot: &Snapshot| {
            let tokens = snapshot.introduction_tokens();
            let tokens = tokens.filter(|token| list.has_id(token.value.id.0));
            let keyed = tokens.map(|token| (token.value.id.to_string(), token));
            Ok(list.page(keyed, |token| (&**token).into()))
        };
        let (introduction_tokens, meta) = Api::list(self, &list, &TABLES, answer).await?;
        Ok(Response::new(v1::ListIntroductionTokensResponse {
            meta,
            introduction_tokens,
        }))
    }

    pub(super) async fn delete_token(
        &self,
        request: v1::DeleteIntroductionTokenRequest,
    ) -> Result<v1::DeleteIntroductionTokenResponse, Error> {
        let text = request.token_id.as_str();
        let decide = |snapshot: &Snapshot| {
            let id = find::introduction_token(snapshot, text)?;
            let stored = snapshot.introduction_token(id);
            let stored = stored.expect("found in this snapshot");
            Ok(Step::Commit {
                writes: vec![introduction::delete(stored)],
                answer: Box::new(move |index| v1::DeleteIntroductionTokenResponse {
                    index,
                    token_id: id.to_string(),
                }),
            })
        };
        let what = || format!("introduction token {text}");
        let response = self.gateway.core.execute(what, decide).await?;
        info!(token_id = response.token_id, "introduction token deleted");
        Ok(response)
    }
}

fn read(request: v1::CreateIntroductionTokenRequest) -> Result<TokenRequest, FieldErrors> {
    let mut errors = FieldErrors::default();
    let ttl = request.ttl.map(|ttl| required_duration("ttl", Some(ttl)));
    let ttl = ttl.transpose().unwrap_or_else(|invalid| {
        errors.0.extend(invalid.0);
        None
    });
    let node_id = match request.node_id.as_str() {
        "" => None,
        text => text
            .parse()
            .map_err(|error: model::ids::InvalidId| errors.push("node_id", error.to_string()))
            .ok(),
    };
    errors.into_result(TokenRequest {
        ttl,
        uses: request.uses,
        node_id,
        node_name: request.node_name,
        node_pool: request.node_pool,
    })
}
