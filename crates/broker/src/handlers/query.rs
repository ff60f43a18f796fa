//! Queries: `graph_query`.

use ringback_proto::request::{GraphQueryRequest, GraphQueryResponse};
use ringback_proto::tool::tools;
use ringback_proto::{Error, Result};
use ringback_store::query::Query;

use super::Native;
use crate::handler::{Context, Handler};

/// The default number of rows.
const ROWS: u32 = 100;
/// The most rows.
const ROWS_MAX: u32 = 1000;

impl Handler<tools::GraphQuery> for Native {
    async fn handle(ctx: Context, request: GraphQueryRequest) -> Result<GraphQueryResponse> {
        let limit = request.limit.unwrap_or(ROWS);
        if limit == 0 || limit > ROWS_MAX {
            let message = format!("`limit` must be 1 to {ROWS_MAX}");
            return Err(Error::invalid_field("limit", message));
        }
        let query = Query {
            sql: request.query,
            variables: request.variables.unwrap_or_default().into_iter().collect(),
            rows_max: limit as usize,
            visible: ctx.visible(),
        };
        let answer = ctx.rooms.queries.ask(ctx.principal.id, query, &ctx.stop).await?;
        Ok(GraphQueryResponse {
            count: answer.rows.len() as u64,
            results: answer.rows,
            truncated: answer.is_truncated,
        })
    }
}
