//! The table of routes: the only place that defines a route. The router and the OpenAPI document
//! both come from it, so every route is documented and every documented route exists.

mod openapi;
mod operation;

use std::collections::BTreeMap;

use axum::Router;
use axum::handler::Handler;
use axum::routing::{self, MethodRouter};

pub(crate) use self::openapi::document;
pub(crate) use self::operation::{Auth, Content, Operation};
use crate::edge::State;
use crate::{client_tools, docs, event, status, v1};

/// A method of a path.
pub(crate) struct Route {
    path: &'static str,
    method: &'static str,
    handler: MethodRouter<State>,
    operation: Operation,
}

/// Returns every route.
pub(crate) fn routes() -> Vec<Route> {
    let areas =
        [v1::routes(), client_tools::routes(), event::routes(), docs::routes(), status::routes()];
    areas.into_iter().flatten().collect()
}

/// Builds the router of the routes in the table.
pub(crate) fn router(routes: Vec<Route>) -> Router<State> {
    let mut paths = BTreeMap::<_, MethodRouter<State>>::new();
    for route in routes {
        let methods = paths.remove(route.path).unwrap_or_default();
        paths.insert(route.path, methods.merge(route.handler));
    }
    paths.into_iter().fold(Router::new(), |router, (path, methods)| router.route(path, methods))
}

macro_rules! methods {
    ($($(#[doc = $doc:literal])+ $method:ident;)+) => {$(
        $(#[doc = $doc])+
        pub(crate) fn $method<H, T>(
            path: &'static str,
            handler: H,
            operation: Operation,
        ) -> Self
        where
            H: Handler<T, State>,
            T: 'static,
        {
            let handler = routing::$method(handler);
            Self { path, method: stringify!($method), handler, operation }
        }
    )+};
}

impl Route {
    methods! {
        /// `GET`; also answers `HEAD`.
        get;
        /// `HEAD`, where it needs its own description.
        head;
        /// `POST`.
        post;
        /// `PUT`.
        put;
        /// `DELETE`.
        delete;
    }
}
