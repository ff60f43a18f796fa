//! The HTTP listener of a world, and the edges that share it.

use std::net::{Ipv4Addr, SocketAddr};

use ringback_broker::Broker;
use ringback_service::{HttpConfig, HttpListener};

use crate::world::{EdgeTasks, Setup, World};

/// The most connections: more than any test opens.
const CONNECTIONS_MAX: usize = 4096;

/// The time between two pings of a stream, as in a daemon.
#[cfg(feature = "http")]
const PING_TIME: std::time::Duration = std::time::Duration::from_secs(20);
/// The longest call of a client's tool: longer than any test waits.
#[cfg(feature = "http")]
const CLIENT_CALL_MS_MAX: u64 = 60_000;

/// What the listener serves, before it starts.
#[derive(Debug)]
pub(crate) struct Web {
    listener: HttpConfig,
    /// Whether sessions get a URL at the listener.
    has_session_urls: bool,
    #[cfg(feature = "http")]
    http: Option<ringback_edge_http::ClientToolSettings>,
    #[cfg(feature = "mcp")]
    mcp: Option<ringback_edge_mcp::Config>,
}

impl Default for Web {
    fn default() -> Self {
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let max_connections = CONNECTIONS_MAX;
        Self {
            listener: HttpConfig { listen, max_connections, ..HttpConfig::default() },
            has_session_urls: false,
            #[cfg(feature = "http")]
            http: None,
            #[cfg(feature = "mcp")]
            mcp: None,
        }
    }
}

impl Web {
    pub(crate) const fn is_wanted(&self) -> bool {
        #[cfg(feature = "http")]
        if self.http.is_some() {
            return true;
        }
        #[cfg(feature = "mcp")]
        if self.mcp.is_some() {
            return true;
        }
        false
    }
}

/// What the listener serves.
#[derive(Debug)]
pub(crate) struct WebEdges {
    address: Option<SocketAddr>,
    #[cfg(feature = "mcp")]
    mcp: Option<ringback_edge_mcp::McpEdge>,
}

impl Setup {
    /// Changes the configuration of the listener.
    pub fn listener(mut self, change: impl FnOnce(&mut HttpConfig)) -> Self {
        change(&mut self.web.listener);
        self
    }

    /// Adds the HTTP edge.
    #[cfg(feature = "http")]
    pub const fn http(mut self, client_tools: ringback_edge_http::ClientToolSettings) -> Self {
        self.web.http = Some(client_tools);
        self
    }

    /// Adds the HTTP edge for tests without client tools.
    #[cfg(feature = "http")]
    pub const fn plain_http(self) -> Self {
        let (keepalive, timeout_ms_max) = (PING_TIME, CLIENT_CALL_MS_MAX);
        self.http(ringback_edge_http::ClientToolSettings { keepalive, timeout_ms_max })
    }

    /// Adds the MCP edge.
    #[cfg(feature = "mcp")]
    pub fn mcp(mut self, config: ringback_edge_mcp::Config) -> Self {
        self.web.mcp = Some(config);
        self
    }

    /// Gives sessions a URL at the MCP edge.
    #[cfg(feature = "mcp")]
    pub const fn session_urls(mut self) -> Self {
        self.web.has_session_urls = true;
        self
    }
}

impl World {
    /// Returns the address of the listener.
    ///
    /// # Panics
    /// Without an edge that uses it.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.web.address.expect("an edge with HTTP")
    }

    /// Returns the MCP edge.
    ///
    /// # Panics
    /// Without the MCP edge.
    #[cfg(feature = "mcp")]
    #[must_use]
    pub const fn mcp(&self) -> &ringback_edge_mcp::McpEdge {
        self.web.mcp.as_ref().expect("the MCP edge")
    }
}

/// Binds the listener before the broker starts, which may need its address.
pub(crate) async fn bind(setup: &mut Setup) -> Option<HttpListener> {
    if !setup.web.is_wanted() {
        return None;
    }
    let listener = HttpListener::bind(setup.web.listener.clone()).await.expect("a free port");
    if setup.web.has_session_urls {
        setup.config.sessions.doors.url = Some(format!("http://{}", listener.local_addr()));
    }
    Some(listener)
}

pub(crate) fn serve(
    setup: &Setup,
    listener: Option<HttpListener>,
    broker: &Broker,
    serving: &mut EdgeTasks,
) -> WebEdges {
    let address = listener.as_ref().map(HttpListener::local_addr);
    let mut routers = Vec::new();
    #[cfg(feature = "http")]
    if let Some(client_tools) = setup.web.http {
        routers.push(http_edge(broker, client_tools, serving).router());
    }
    #[cfg(feature = "mcp")]
    let mcp = setup.web.mcp.clone().map(|config| {
        let edge = ringback_edge_mcp::McpEdge::new(config, broker.clone());
        routers.push(edge.router());
        serving.tasks.spawn(edge.clone().serve(serving.stop.clone()));
        edge
    });
    let router = routers.into_iter().reduce(|one, other| one.merge(other));
    if let (Some(listener), Some(router)) = (listener, router) {
        serving.tasks.spawn(listener.serve(router, serving.stop.clone()));
    }
    WebEdges {
        address,
        #[cfg(feature = "mcp")]
        mcp,
    }
}

#[cfg(feature = "http")]
fn http_edge(
    broker: &Broker,
    client_tools: ringback_edge_http::ClientToolSettings,
    serving: &EdgeTasks,
) -> ringback_edge_http::HttpEdge {
    use ringback_edge_http::{Door, HttpEdge, ReadyFlag, Status};
    let ready = ReadyFlag::new();
    ready.set_ready();
    let metrics = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder().handle();
    HttpEdge {
        broker: broker.clone(),
        door: Door::Token,
        status: Status {
            version: "test",
            started: std::time::Instant::now(),
            readiness: std::sync::Arc::new(ready),
            metrics,
        },
        client_tools,
        stopping: serving.stop.clone(),
    }
}
