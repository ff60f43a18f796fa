//! The keys, with their defaults and the reasons for them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use ringback_music_services::{Endpoint, Service};
use ringback_service::http::{DEFAULT_LISTEN, DEFAULT_MAX_BODY_BYTES, DEFAULT_MAX_CONNECTIONS};

use super::quantity::{ByteSize, Seconds};
use super::section::section;
use super::value::{HootEndpoint, LogFilter, LogFormat, OtlpEndpoint, TlsFiles};

const MIB: u64 = 1024 * 1024;

/// Loopback, so that a fresh install is not reachable from outside; the port that HOOT01 peers
/// expect.
const HOOT_LISTEN: HootEndpoint = loopback(5580);

/// One port above the calls, as HOOT01 peers expect.
const HOOT_IOPUB: HootEndpoint = loopback(5581);

/// Bounds the memory for one message; larger content is sent in pieces.
const MESSAGE_MAX: ByteSize = ByteSize(64 * MIB);

/// One message of the largest size and 16 MiB of small ones after it.
const SEND_QUEUE: ByteSize = ByteSize(MESSAGE_MAX.0 + 16 * MIB);

/// Peers send a heartbeat every few seconds; half a minute survives several lost ones.
const PEER_IDLE: Seconds = Seconds::secs(30);

/// Four times what a busy client has in flight; the next call fails with `busy` immediately.
const CALLS_PER_PRINCIPAL: usize = 1024;

/// Most jobs wait for something else; this many waiting tasks cost little.
const JOBS_RUNNING: usize = 256;

/// Pending jobs are rows on disk: enough for a batch, and quick to read at the next start.
const JOBS_PENDING_MAX: usize = 10_000;

/// Minutes of events from a busy daemon, in a few MiB of memory.
const EVENT_RING: usize = 16_384;

/// Twice the largest recording sent so far.
const UPLOAD_MAX: ByteSize = ByteSize(4096 * MIB);

/// Each open upload holds a file; this many leave room under the usual open file limit.
const UPLOADS_OPEN: usize = 64;

/// A few MiB of MCP sessions; an agent has one or two.
const MCP_SESSIONS_MAX: usize = 4096;

/// An agent that thinks for a quarter of an hour still finds its MCP session.
const MCP_SESSION_IDLE: Seconds = Seconds::secs(30 * 60);

/// An hour makes a WAV file of 635 MB.
const RENDER_MAX: Seconds = Seconds::secs(60 * 60);

/// Half an hour of audio takes 160 MB to analyse.
const AUDIO_MAX: Seconds = Seconds::secs(30 * 60);

section! {
    /// The directories.
    pub struct Root = "" {
        /// Directory for everything that survives a restart: store, blobs, audit, the first token.
        /// Only its owner may enter it (mode 0700). By default `$XDG_DATA_HOME/ringback`, else
        /// `~/.local/share/ringback`.
        pub data_dir: PathBuf = PathBuf::new(),
        /// Directory for sockets. Only its owner may enter it (mode 0700), and anyone who can is
        /// trusted. By default `$XDG_RUNTIME_DIR/ringback`, else `run` in the data directory.
        pub runtime_dir: PathBuf = PathBuf::new(),
    }
}

section! {
    /// The HTTP listener.
    pub struct Http = "http" {
        /// Address of the HTTP listener; port 0 picks a free one.
        pub listen: SocketAddr = DEFAULT_LISTEN,
        /// Names allowed in a request's `Host` besides the loopback ones, with or without a port.
        pub hosts: Vec<String> = Vec::new(),
        /// Origins whose pages may send requests besides the loopback ones, such as
        /// `https://app.example`.
        pub origins: Vec<String> = Vec::new(),
        /// PEM files of a certificate (with its chain) and its key, `{ cert = "…", key = "…" }`.
        /// Makes the listener use TLS.
        pub tls: Option<TlsFiles> = None,
        /// States that a reverse proxy with TLS is in front. Beyond loopback, this or `http.tls` is
        /// required.
        pub behind_proxy: bool = false,
        /// Maximum number of concurrent connections, as far as the process's open file limit leaves
        /// room; further ones get 503.
        pub max_connections: usize = DEFAULT_MAX_CONNECTIONS,
        /// Largest request body; a larger one gets 413.
        pub max_body: ByteSize = ByteSize(DEFAULT_MAX_BODY_BYTES as u64),
    }
}

section! {
    /// HOOT01 over ZeroMQ.
    pub struct Hoot = "hoot" {
        /// Endpoint for calls; port 0 picks a free one.
        pub listen: HootEndpoint = HOOT_LISTEN,
        /// Endpoint for events.
        pub iopub: HootEndpoint = HOOT_IOPUB,
        /// Whether both are also available as `ipc://` sockets in the runtime directory.
        pub ipc: bool = true,
        /// Largest message; larger content is sent in pieces.
        pub message_max: ByteSize = MESSAGE_MAX,
        /// How much may be queued for one peer; a peer that reads too slowly is disconnected.
        pub send_queue: ByteSize = SEND_QUEUE,
        /// Silence after which a peer counts as gone.
        pub peer_idle: Seconds = PEER_IDLE,
        /// File with the server's CURVE secret key; required to listen beyond loopback.
        pub curve_secret_key_file: Option<PathBuf> = None,
    }
}

section! {
    /// MCP, at `/mcp` of the HTTP listener.
    pub struct Mcp = "mcp" {
        /// Maximum number of open MCP sessions; one token may have half of them.
        pub sessions_max: usize = MCP_SESSIONS_MAX,
        /// Time after which an MCP session without a request, an open stream or a running call ends.
        pub session_idle: Seconds = MCP_SESSION_IDLE,
        /// Servers that issue tokens, for clients that can get one by OAuth; none by default.
        pub authorization_servers: Vec<String> = Vec::new(),
    }
}

section! {
    /// Limits.
    pub struct Limits = "limits" {
        /// Maximum number of concurrent calls of one principal.
        pub calls_per_principal: usize = CALLS_PER_PRINCIPAL,
        /// Maximum number of running jobs; others wait.
        pub jobs_running: usize = JOBS_RUNNING,
        /// Maximum number of waiting jobs; the next one is refused as busy.
        pub jobs_pending_max: usize = JOBS_PENDING_MAX,
        /// Number of events kept in memory for subscribers that come back.
        pub event_ring: usize = EVENT_RING,
        /// Largest blob that can be uploaded.
        pub upload_max: ByteSize = UPLOAD_MAX,
        /// Maximum number of open uploads in pieces.
        pub uploads_open: usize = UPLOADS_OPEN,
    }
}

section! {
    /// Local files that tools may read.
    pub struct Files = "files" {
        /// Directories that `cas_upload_file` and `artifact_upload` may read; none by default.
        pub roots: Vec<PathBuf> = Vec::new(),
    }
}

section! {
    /// Music tools.
    pub struct Studio = "studio" {
        /// SoundFont for calls that name none. By default the usual places are searched, such as
        /// `/usr/share/sounds/sf2`.
        pub soundfont: Option<PathBuf> = None,
        /// Longest MIDI file that is rendered; a longer one is refused.
        pub render_max: Seconds = RENDER_MAX,
        /// Longest audio that is analysed; longer audio is refused.
        pub audio_max: Seconds = AUDIO_MAX,
    }
}

section! {
    /// Music services, which answer `POST /predict`.
    pub struct Services = "studio.services" {
        /// Music service for `orpheus_generate`, `orpheus_generate_seeded` and `orpheus_continue`,
        /// such as `http://127.0.0.1:2000`; the embedded model by default.
        pub orpheus: Option<Endpoint> = None,
        /// Music service for `orpheus_classify`; the embedded method by default.
        pub orpheus_classifier: Option<Endpoint> = None,
        /// Music service for `orpheus_bridge`; the embedded model by default.
        pub orpheus_bridge: Option<Endpoint> = None,
        /// Music service for `orpheus_loops`; the embedded model by default.
        pub orpheus_loops: Option<Endpoint> = None,
        /// Music service for `musicgen_generate`; without it the tool fails.
        pub musicgen: Option<Endpoint> = None,
        /// Music service for `yue_generate`; without it the tool fails.
        pub yue: Option<Endpoint> = None,
        /// Music service for `clap_analyze`; the embedded method by default.
        pub clap: Option<Endpoint> = None,
        /// Music service for `beatthis_analyze`; the embedded method by default.
        pub beatthis: Option<Endpoint> = None,
        /// Time limit of every music service; by default each has its own, 30 seconds to 10 minutes.
        pub timeout: Option<Seconds> = None,
    }
}

section! {
    /// The log, on standard error.
    pub struct Log = "log" {
        /// `text` for people, `json` for one object per line.
        pub format: LogFormat = LogFormat::Text,
        /// Which log lines appear, such as `info` or `info,ringback_store=debug`.
        pub filter: LogFilter = LogFilter::info(),
    }
}

section! {
    /// Data sent to other systems.
    pub struct Telemetry = "telemetry" {
        /// OpenTelemetry collector for traces, such as `http://127.0.0.1:4317`; none by default.
        pub otlp_endpoint: Option<OtlpEndpoint> = None,
    }
}

impl Services {
    /// Returns the configured services.
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
