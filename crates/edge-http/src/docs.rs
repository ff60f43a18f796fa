//! The document of all routes, and a page that shows it without requests to any other server.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::http::{HeaderName, header};
use axum::response::{Html, IntoResponse, Response};
use bytes::Bytes;
use ringback_proto::value::Value;

use crate::api::{self, Auth, Content, Operation, Route};

const PAGE: &str = include_str!("docs/page.html");
const SCRIPT: &str = include_str!("docs/page.js");

/// Nothing from other sites: the page works offline, and no other site learns that it was read.
const POLICY: (HeaderName, &str) = (
    header::CONTENT_SECURITY_POLICY,
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; \
     frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
);

/// Changes only with the build.
static DOCUMENT: LazyLock<Bytes> =
    LazyLock::new(|| serde_json::to_vec(&openapi()).expect("a JSON value can be written").into());

/// Returns the OpenAPI 3.1 document of every route, as served and committed.
#[must_use]
pub fn openapi() -> serde_json::Value {
    api::document(&api::routes())
}

pub(crate) fn routes() -> Vec<Route> {
    const TAG: &str = "docs";
    let open = |id, about| Operation::new(TAG, id, about).auth(Auth::Nobody);
    vec![
        Route::get(
            "/v1/openapi.json",
            document,
            open("get_openapi", "Returns this document.").answers(
                200,
                "The OpenAPI 3.1 document.",
                Content::json::<BTreeMap<String, Value>>(),
            ),
        ),
        Route::get(
            "/docs",
            page,
            open("get_docs", "Shows this document as a web page.").answers(
                200,
                "The page.",
                Content::Text("text/html"),
            ),
        ),
        Route::get(
            "/docs/page.js",
            script,
            open("get_docs_script", "Returns the script of the web page.").answers(
                200,
                "The script.",
                Content::Text("text/javascript"),
            ),
        ),
    ]
}

async fn document() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT.clone()).into_response()
}

async fn page() -> Response {
    ([POLICY], Html(PAGE)).into_response()
}

async fn script() -> Response {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], SCRIPT).into_response()
}
