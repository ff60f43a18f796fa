//! `/v1/tokens`, for admins.

use axum::Json;
use axum::extract::State as With;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, LOCATION};
use axum::response::{IntoResponse, Response};
use ringback_proto::request::{
    AckResponse, TokenCreateRequest, TokenCreatedResponse, TokenListRequest, TokenListResponse,
    TokenRevokeRequest,
};
use ringback_proto::tool::tools::{TokenCreate, TokenList, TokenRevoke};

use super::{ask, id};
use crate::api::{Content, Operation, Route};
use crate::caller::ToolCaller;
use crate::edge::State;
use crate::error::HttpError;
use crate::extractors::{JsonBody, PathValue};

const PATH: &str = "/v1/tokens";

pub(super) fn routes() -> Vec<Route> {
    const TAG: &str = "tokens";
    vec![
        Route::get(
            PATH,
            list,
            Operation::new(TAG, "list_tokens", "Lists the tokens, without their secrets.")
                .answers(200, "The tokens.", Content::json::<TokenListResponse>())
                .fails([504]),
        ),
        Route::post(
            PATH,
            create,
            Operation::new(TAG, "create_token", "Creates a token.")
                .body(Content::json::<TokenCreateRequest>())
                .answers(
                    201,
                    "The token with its secret, which is shown only once.",
                    Content::json::<TokenCreatedResponse>(),
                )
                .with("Location", "The URL that revokes the token.")
                .fails([504]),
        ),
        Route::delete(
            "/v1/tokens/{token_id}",
            revoke,
            Operation::new(
                TAG,
                "revoke_token",
                "Revokes a token and closes everything it has open.",
            )
            .answers(200, "The token is revoked.", Content::json::<AckResponse>())
            .fails([404, 504]),
        ),
    ]
}

async fn list(
    With(state): With<State>,
    ToolCaller(credential, _): ToolCaller<TokenList>,
) -> Result<Json<TokenListResponse>, HttpError> {
    ask::<TokenList>(&state, &credential, TokenListRequest {}).await.map(Json)
}

async fn create(
    With(state): With<State>,
    ToolCaller(credential, _): ToolCaller<TokenCreate>,
    JsonBody(request): JsonBody<TokenCreateRequest>,
) -> Result<Response, HttpError> {
    let created = ask::<TokenCreate>(&state, &credential, request).await?;
    let location = format!("{PATH}/{}", created.token_id);
    let headers = [(LOCATION, location), (CACHE_CONTROL, "no-store".to_owned())];
    Ok((StatusCode::CREATED, headers, Json(created)).into_response())
}

async fn revoke(
    With(state): With<State>,
    ToolCaller(credential, _): ToolCaller<TokenRevoke>,
    PathValue(token_id): PathValue<String>,
) -> Result<Json<AckResponse>, HttpError> {
    let request = TokenRevokeRequest { token_id: id("token_id", &token_id)? };
    ask::<TokenRevoke>(&state, &credential, request).await.map(Json)
}
