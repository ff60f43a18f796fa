//! Every key with its default and the reason for it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use ringback_models::{Endpoint, Service};
use ringback_service::http::{DEFAULT_LISTEN, DEFAULT_MAX_BODY_BYTES, DEFAULT_MAX_CONNECTIONS};

use super::section::section;
use super::value::{HootEndpoint, LogFilter, LogFormat, OtlpEndpoint, TlsFiles};

const MIB: u64 = 1024 * 1024;

/// Loopback, so that a fresh install is reachable by nobody else; the port that HOOT01 peers expect.
const HOOT_LISTEN: HootEndpoint = loopback(5580);

/// One above the calls, as HOOT01 peers expect.
const HOOT_IOPUB: HootEndpoint = loopback(5581);

/// Bounds what one message can make the daemon hold; larger content goes in pieces.
const MESSAGE_BYTES_MAX: u64 = 64 * MIB;

/// One message of the largest size and 16 MiB of small ones behind it.
const SEND_QUEUE_BYTES: u64 = MESSAGE_BYTES_MAX + 16 * MIB;

/// Peers send a heartbeat every few seconds; half a minute survives several lost ones.
const PEER_IDLE_SECS: u64 = 30;

/// Four times what a busy client has in flight; the next call is `busy` at once.
const CALLS_PER_PRINCIPAL: usize = 1024;

/// Most jobs wait for somebody else; this many waiting tasks cost little.
const JOBS_RUNNING: usize = 256;

/// Pending jobs are rows on disk: enough for a batch, little to read at the next start.
const JOBS_PENDING_MAX: usize = 10_000;

/// Minutes of events of a busy daemon in a few MiB of memory.
const EVENT_RING: usize = 16_384;

/// Twice the largest recording anybody has sent so far.
const UPLOAD_BYTES_MAX: u64 = 4096 * MIB;

/// Each open upload holds a file; this many leave room under the usual limit of open files.
const UPLOADS_OPEN: usize = 64;

/// A few MiB of sessions; an agent has one or two.
const MCP_SESSIONS_MAX: usize = 4096;

/// An agent that thinks for a quarter of an hour still finds its session.
const MCP_SESSION_IDLE_SECS: u64 = 30 * 60;

/// An hour makes a WAV file of 635 MB.
const RENDER_SECONDS_MAX: u64 = 3600;

/// Half an hour of sound takes 160 MB to analyse.
const AUDIO_SECONDS_MAX: u64 = 1800;

section! {
    /// Where files live.
    pub struct Root = "" {
        /// Everything that survives a restart: store, blobs, audit, the first token. Only its owner may
        /// enter it (mode 0700).
        /// By default `$XDG_DATA_HOME/ringback`, else `~/.local/share/ringback`.
        pub data_dir: PathBuf = PathBuf::new(),
        /// Sockets. Only its owner may enter it (mode 0700), and whoever can is trusted.
        /// By default `$XDG_RUNTIME_DIR/ringback`, else `run` in the data directory.
        pub runtime_dir: PathBuf = PathBuf::new(),
    }
}

section! {
    /// The HTTP listener.
    pub struct Http = "http" {
        /// Where to listen; port 0 takes any free one.
        pub listen: SocketAddr = DEFAULT_LISTEN,
        /// Names that a request's `Host` may carry besides the loopback ones, with or without a port.
        pub hosts: Vec<String> = Vec::new(),
        /// Origins whose pages may send requests besides the loopback ones, such as `https://app.example`.
        pub origins: Vec<String> = Vec::new(),
        /// PEM files of a certificate (with its chain) and its key, `{ cert = "…", key = "…" }`: the listener speaks TLS.
        pub tls: Option<TlsFiles> = None,
        /// States that a reverse proxy with TLS stands in front; beyond loopback it is this or `http.tls`.
        pub behind_proxy: bool = false,
        /// Connections served at once, and at most as many as a quarter of the open files that this process may have; the next one is answered 503.
        pub max_connections: usize = DEFAULT_MAX_CONNECTIONS,
        /// Largest request body; a larger one is answered 413.
        pub max_body_bytes: usize = DEFAULT_MAX_BODY_BYTES,
    }
}

section! {
    /// HOOT01 over ZeroMQ.
    pub struct Hoot = "hoot" {
        /// Where calls come in; port 0 takes any free one.
        pub listen: HootEndpoint = HOOT_LISTEN,
        /// Where events go out.
        pub iopub: HootEndpoint = HOOT_IOPUB,
        /// Whether both also exist as `ipc://` sockets in the runtime directory.
        pub ipc: bool = true,
        /// Largest message; larger content goes in pieces.
        pub message_bytes_max: u64 = MESSAGE_BYTES_MAX,
        /// What may wait to be sent to one peer; a peer that reads too slowly for it is disconnected.
        pub send_queue_bytes: u64 = SEND_QUEUE_BYTES,
        /// A peer that says nothing for this long is gone.
        pub peer_idle_secs: u64 = PEER_IDLE_SECS,
        /// File with the server's CURVE secret key; needed to listen beyond loopback.
        pub curve_secret_key_file: Option<PathBuf> = None,
    }
}

section! {
    /// MCP, at `/mcp` of the HTTP listener.
    pub struct Mcp = "mcp" {
        /// Sessions that may be open at once; half of them may belong to one token.
        pub sessions_max: usize = MCP_SESSIONS_MAX,
        /// A session without a request, an open stream or a running call ends after this.
        pub session_idle_secs: u64 = MCP_SESSION_IDLE_SECS,
        /// Where tokens are issued, for clients that can get one by OAuth; none by default.
        pub authorization_servers: Vec<String> = Vec::new(),
    }
}

section! {
    /// How much of everything.
    pub struct Limits = "limits" {
        /// Calls of one principal that run at once.
        pub calls_per_principal: usize = CALLS_PER_PRINCIPAL,
        /// Jobs that run at once; the others wait.
        pub jobs_running: usize = JOBS_RUNNING,
        /// Jobs that may wait; the next one is refused as busy.
        pub jobs_pending_max: usize = JOBS_PENDING_MAX,
        /// Events kept in memory for subscribers that come back.
        pub event_ring: usize = EVENT_RING,
        /// Largest blob that can be uploaded.
        pub upload_bytes_max: u64 = UPLOAD_BYTES_MAX,
        /// Uploads in pieces that may be open at once.
        pub uploads_open: usize = UPLOADS_OPEN,
    }
}

section! {
    /// Files of this machine that tools may read.
    pub struct Files = "files" {
        /// Directories that `cas_upload_file` and `artifact_upload` may read from; none by default.
        pub roots: Vec<PathBuf> = Vec::new(),
    }
}

section! {
    /// Music tools.
    pub struct Studio = "studio" {
        /// SoundFont that is used when a call names none. By default the usual places are searched,
        /// such as `/usr/share/sounds/sf2`.
        pub soundfont: Option<PathBuf> = None,
        /// Longest MIDI file that is rendered, in seconds; a longer one is refused.
        pub render_seconds_max: u64 = RENDER_SECONDS_MAX,
        /// Longest sound that is analysed, in seconds; a longer one is refused.
        pub audio_seconds_max: u64 = AUDIO_SECONDS_MAX,
    }
}

section! {
    /// Model services, which answer `POST /predict`.
    pub struct Models = "models" {
        /// Service for `orpheus_generate`, `orpheus_generate_seeded` and `orpheus_continue`, such as `http://127.0.0.1:2000`; the embedded model by default.
        pub orpheus: Option<Endpoint> = None,
        /// Service for `orpheus_classify`; the embedded method by default.
        pub orpheus_classifier: Option<Endpoint> = None,
        /// Service for `orpheus_bridge`; the embedded model by default.
        pub orpheus_bridge: Option<Endpoint> = None,
        /// Service for `orpheus_loops`; the embedded model by default.
        pub orpheus_loops: Option<Endpoint> = None,
        /// Service for `musicgen_generate`; without it the tool fails.
        pub musicgen: Option<Endpoint> = None,
        /// Service for `yue_generate`; without it the tool fails.
        pub yue: Option<Endpoint> = None,
        /// Service for `clap_analyze`; the embedded method by default.
        pub clap: Option<Endpoint> = None,
        /// Service for `beatthis_analyze`; the embedded method by default.
        pub beatthis: Option<Endpoint> = None,
        /// Longest time any of them may take, in seconds; by default each has its own, 30 to 600.
        pub timeout_secs: Option<u64> = None,
    }
}

section! {
    /// What is logged, to standard error.
    pub struct Log = "log" {
        /// `text` for people, `json` for one object per line.
        pub format: LogFormat = LogFormat::Text,
        /// What appears, such as `info` or `info,ringback_store=debug`.
        pub filter: LogFilter = LogFilter::info(),
    }
}

section! {
    /// What is sent to other systems.
    pub struct Telemetry = "telemetry" {
        /// OpenTelemetry collector that gets traces, such as `http://127.0.0.1:4317`; none by default.
        pub otlp_endpoint: Option<OtlpEndpoint> = None,
    }
}

impl Models {
    /// The services that are configured.
    #[must_use]
    pub fn endpoints(&self) -> Vec<(Service, &Endpoint)> {
        let endpoint = |service: &Service| match service {
            Service::Orpheus => self.orpheus.as_ref(),
            Service::OrpheusClassifier => self.orpheus_classifier.as_ref(),
            Service::OrpheusBridge => self.orpheus_bridge.as_ref(),
            Service::OrpheusLoops => self.orpheus_loops.as_ref(),
            Service::Musicgen => self.musicgen.as_ref(),
            Service::Yue => self.yue.as_ref(),
            Service::Clap => self.clap.as_ref(),
            Service::Beatthis => self.beatthis.as_ref(),
        };
        let services = Service::ALL.iter();
        services.filter_map(|service| endpoint(service).map(|found| (*service, found))).collect()
    }
}

const fn loopback(port: u16) -> HootEndpoint {
    HootEndpoint(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
}
