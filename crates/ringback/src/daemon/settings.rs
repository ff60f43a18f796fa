//! Converts the daemon's configuration to that of its parts.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use ringback_agents::preset::{preset, presets};
use ringback_broker::{
    AgentCommand, ConfigView, Confinement, ContainerSettings, InsideProgram, LineSettings,
    NoGardenProcess, SandboxRules, SessionDoors, SessionSettings,
};
use ringback_edge_hoot::{Clock, Ipc, ListenAddresses};
use ringback_edge_http::ClientToolSettings;
use ringback_edge_mcp::{Door, SessionLimits};
use ringback_egress::{
    KeyFile, KeySource, ModelDoors, Provider, ProviderError, SecretError, Vault,
};
use ringback_inside_embed::Unpacked;
use ringback_proto::request::SpendLimits;
use ringback_proto::secret::Secret;
use ringback_proto::value::Value;
use ringback_service::http::{BodyLimit, Timeouts};
use ringback_service::{HttpConfig, HttpListener, OpenFiles, Tls};
use ringback_studio_tools::Studio;

use super::VERSION;
use crate::cli::SCRIPTED;
use crate::config::{Config, ConfigError, KnownProvider, Millis, ProviderEntry, Seconds, TlsFiles};
use crate::telemetry;

/// A day: the longest known work took hours. It ends calls that would otherwise never end.
const CALL_MS_MAX: u64 = 24 * 60 * 60 * 1000;

/// The built-in agent.
const SCRIPTED_NAME: &str = "scripted";

const CURVE_KEY: &str = "hoot.curve_secret_key_file";
const TLS: &str = "http.tls";

/// The configuration as `config_get` shows it.
#[derive(Debug)]
struct View(Config);

impl ConfigView for View {
    fn get(&self, section: Option<&str>, key: Option<&str>) -> Option<Value> {
        self.0.lookup(section, key).ok().map(|value| value.map_or(Value::Null, shown))
    }
}

/// Returns the configuration of the broker: the one place where keys become limits.
pub(super) fn broker(config: &Config) -> Result<ringback_broker::Config, ConfigError> {
    let limits = &config.limits;
    let jobs_live_max = limits.jobs_running.saturating_add(limits.jobs_pending_max);
    let root = |path: &Path| utf8(config, "files.roots", path);
    Ok(ringback_broker::Config {
        data_dir: utf8(config, "data_dir", &config.root.data_dir)?,
        file_roots: config.files.roots.iter().map(|path| root(path)).collect::<Result<_, _>>()?,
        version: VERSION.to_owned(),
        view: Arc::new(View(config.clone())),
        calls_per_principal_max: limits.calls_per_principal,
        jobs_running_max: limits.jobs_running,
        jobs_live_max,
        // A quarter stays free, so that no single principal keeps all others out.
        jobs_per_principal_max: jobs_live_max - jobs_live_max / 4,
        events_kept_max: limits.event_ring,
        uploads_open_max: limits.uploads_open,
        upload_bytes_max: limits.upload_max.0,
        call_ms_max: CALL_MS_MAX,
        lines: LineSettings {
            client_call_ms_default: config.client_tools.defaultTimeout.0,
            caller_call_ms_default: config.caller_tools.timeout.as_millis(),
            poll_grace_ms: config.caller_tools.poll_grace.as_millis(),
            ..LineSettings::default()
        },
        studio: Arc::new(studio(config)?),
        garden: Arc::new(NoGardenProcess),
        sessions: sessions(config)?,
        containers: containers(config),
    })
}

/// Returns the agent that runs its message line by line, with the program inside as its MCP server.
fn scripted_agent() -> Option<AgentCommand> {
    let program = std::env::current_exe().ok()?.into_os_string().into_string().ok()?;
    let words = [program.as_str(), SCRIPTED, "--", "{inside}", "--session-tools"];
    Some(AgentCommand { command: words.map(str::to_owned).into(), ..AgentCommand::default() })
}

/// The program inside, unpacked when a session first needs it: until then it uses no memory.
#[derive(Debug)]
struct Embedded(Unpacked);

impl InsideProgram for Embedded {
    fn path(&self) -> io::Result<Utf8PathBuf> {
        let path = self.0.path().map_err(io::Error::other)?;
        Utf8PathBuf::try_from(path).map_err(io::Error::other)
    }
}

/// Returns the settings of sessions, with the configured agents.
fn sessions(config: &Config) -> Result<SessionSettings, ConfigError> {
    let keys = &config.sessions;
    let mut agents = keys.agents.0.clone();
    let is_known = |name: &String| agents.contains_key(name) || preset(name).is_some();
    if keys.agent != SCRIPTED_NAME && !is_known(&keys.agent) {
        let presets = presets().iter().map(|preset| preset.name.as_str());
        let names = agents.keys().map(String::as_str).chain([SCRIPTED_NAME]).chain(presets);
        let names = names.collect::<Vec<_>>().join(", ");
        let reason = format!("unknown agent `{}`; known agents: {names}", keys.agent);
        return Err(bad(config, "sessions.agent", reason));
    }
    if let Some(scripted) = scripted_agent() {
        agents.entry(SCRIPTED_NAME.to_owned()).or_insert(scripted);
    }
    let run_dir = utf8(config, "runtime_dir", &config.root.runtime_dir)?;
    let inside = Arc::new(Embedded(Unpacked::new(run_dir.join("bin").into())));
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Ok(SessionSettings {
        run_dir,
        agents,
        path: std::env::var_os("PATH").unwrap_or_default(),
        agent_default: keys.agent.clone(),
        limits: ringback_broker::SessionLimits {
            depth_max: count(keys.max_depth),
            agents_max: count(keys.max_agents),
            live_max: count(keys.max_sessions),
            idle_ms: keys.idle.as_millis(),
        },
        events_kept: ringback_broker::EventLimits {
            events_max: keys.events_kept,
            bytes_max: keys.event_memory.as_usize(),
            total_bytes_max: keys.event_memory_total.as_usize(),
        },
        end_grace: keys.end_grace.0,
        permissions: keys.permissions,
        inside: Some(inside),
        doors: SessionDoors::default(),
        confinement: confinement(config)?,
        spending: SpendLimits {
            max_tokens: keys.max_tokens,
            max_time_ms: keys.max_time.map(Millis::as_millis),
            max_micro_usd: keys.max_cost,
        },
        limit_wait: keys.limit_wait.0,
        disk: config.sandbox.disk(),
    })
}

/// Returns the model proxies of the configured providers; checks their keys and roots.
pub(super) fn model_doors(config: &Config) -> Result<ModelDoors, ConfigError> {
    let vault = Arc::new(config.vault());
    let used: BTreeSet<_> =
        config.sessions.agents.0.values().filter_map(|agent| agent.provider.as_deref()).collect();
    let providers = config.providers_in_use().into_iter();
    let providers = providers.map(|(name, entry)| (provider(&name, &entry, &vault), name));
    // A session may bring the key of a known provider that no configured agent uses.
    let is_strict = |(provider, name): &(Provider, String)| {
        used.contains(name.as_str())
            || provider.variable.is_none()
            || !matches!(provider.check(), Err(ProviderError::Key(SecretError::Missing { .. })))
    };
    let strict = providers.filter(is_strict).map(|(provider, name)| (name, provider)).collect();
    let doors = ModelDoors::new(ringback_egress::Config::default(), strict)
        .map_err(|(name, error)| bad(config, &format!("providers.{name}"), error.to_string()))?;
    let known = config.providers_to_name().into_iter().map(|(name, entry)| {
        let made = entry.map(|entry| provider(&name, &entry, &vault));
        (name, made)
    });
    Ok(doors.with_known(known.collect()))
}

/// Returns the provider behind a model proxy.
pub(crate) fn provider(name: &str, model: &ProviderEntry, vault: &Arc<Vault>) -> Provider {
    let file = model.key_file.clone().map(|path| KeySource::File(KeyFile::new(path)));
    let known = KnownProvider::of(name);
    let secret = model.secret.clone();
    let secret = secret.map(|name| KeySource::Secret { name, vault: Arc::clone(vault) });
    Provider {
        url: model.url.clone(),
        key: file.or(secret),
        header: model.header,
        ca_file: model.ca_file.clone(),
        requests_max: model.max_requests,
        prices: model.prices.clone(),
        api: known.and_then(|known| known.api),
        variable: known.and_then(|known| known.variables.first().copied()),
    }
}

/// Returns how agents are confined.
fn confinement(config: &Config) -> Result<Confinement, ConfigError> {
    let data_dir = utf8(config, "data_dir", &config.root.data_dir)?;
    let path = |path: &PathBuf| utf8(config, "sandbox.read_only", path);
    let program = config.sandbox.bwrap.as_ref().map(|path| utf8(config, "sandbox.bwrap", path));
    let Some(backend) = config.sandbox.choice() else { return Ok(Confinement::Unconfined) };
    Ok(Confinement::Sandbox(Box::new(SandboxRules {
        state_dir: data_dir.join("sandbox"),
        limits: config.sandbox.limits(),
        read_only: config.sandbox.read_only.iter().map(path).collect::<Result<_, _>>()?,
        hidden: config.private(),
        home: std::env::home_dir(),
        backend,
        program: program.transpose()?,
        docker: config.sandbox.docker(),
    })))
}

/// Returns the settings of containers.
fn containers(config: &Config) -> ContainerSettings {
    let sandbox = &config.sandbox;
    ContainerSettings { containers_max: sandbox.containers_max, images: sandbox.images.0.clone() }
}

/// Returns the music tools.
fn studio(config: &Config) -> Result<Studio, ConfigError> {
    let studio = &config.studio;
    let font = |path: &PathBuf| utf8(config, "studio.soundfont", path);
    let seconds = |time: Seconds| u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
    Ok(Studio::new(ringback_studio_tools::Settings {
        soundfont: studio.soundfont.as_ref().map(font).transpose()?,
        render_seconds_max: seconds(studio.render_max),
        audio_seconds_max: seconds(studio.audio_max),
        services: services(config),
        traceparent: telemetry::traceparent,
    }))
}

/// Returns the addresses of the music services.
fn services(config: &Config) -> ringback_music_services::Settings {
    let endpoints = config.services.endpoints().into_iter();
    ringback_music_services::Settings {
        endpoints: endpoints.map(|(service, endpoint)| (service, endpoint.clone())).collect(),
        patience: config.services.timeout.map(|timeout| timeout.0),
        ..ringback_music_services::Settings::default()
    }
}

/// Returns the configuration of the HTTP listener. Reads the certificate, before anything is
/// opened.
pub(super) fn http(config: &Config, files: OpenFiles) -> Result<HttpConfig, ConfigError> {
    let http = &config.http;
    let max_connections = files.http(http.max_connections);
    if max_connections < http.max_connections {
        let (limit, wanted) = (files.limit(), http.max_connections);
        tracing::warn!(
            limit,
            wanted,
            max_connections,
            "the open file limit is too low for `http.max_connections`; raise it with `ulimit -n`"
        );
    }
    let load = |files: &TlsFiles| {
        Tls::load(&files.cert, &files.key).map_err(|error| bad(config, TLS, error.to_string()))
    };
    Ok(HttpConfig {
        listen: http.listen,
        hosts: http.hosts.clone(),
        origins: http.origins.clone(),
        tls: http.tls.as_ref().map(load).transpose()?,
        behind_proxy: http.behind_proxy,
        max_connections,
        max_body_bytes: http.max_body.as_usize(),
        pages: ringback_edge_http::PAGES.into(),
        larger_bodies: vec![BodyLimit {
            path: ringback_edge_http::BLOBS,
            max_bytes: config.limits.upload_max.0,
        }],
        patience: Timeouts::default(),
    })
}

/// Returns the public URL of the HTTP listener: with the first name in `http.hosts`, else with its
/// address.
pub(super) fn public_url(config: &Config, listener: &HttpListener) -> String {
    let scheme = if listener.is_tls() || config.http.behind_proxy { "https" } else { "http" };
    let address = listener.local_addr();
    match config.http.hosts.first() {
        // A proxy has its own port, which is part of the name unless it is the default.
        Some(host) if host.contains(':') || config.http.behind_proxy => {
            format!("{scheme}://{host}")
        }
        Some(host) => format!("{scheme}://{host}:{}", address.port()),
        None => format!("{scheme}://{address}"),
    }
}

/// Returns the settings of the client tool routes.
pub(super) fn client_tools(config: &Config) -> ClientToolSettings {
    ClientToolSettings {
        keepalive: Duration::from_millis(config.client_tools.keepaliveInterval.0),
        timeout_ms_max: config.client_tools.maxTimeout.0,
    }
}

/// Returns the configuration of the HOOT01 edge.
pub(super) fn hoot(
    config: &Config,
    open: bool,
    files: OpenFiles,
) -> Result<ringback_edge_hoot::Config, ConfigError> {
    let hoot = &config.hoot;
    let curve_secret_key = hoot
        .curve_secret_key_file
        .as_deref()
        .map(|path| curve_key(path).map_err(|reason| bad(config, CURVE_KEY, reason)))
        .transpose()?;
    Ok(ringback_edge_hoot::Config {
        tcp: Some(ListenAddresses {
            calls: hoot.listen.to_string(),
            events: hoot.iopub.to_string(),
        }),
        ipc: config.ipc_sockets().map(|sockets| Ipc { calls: sockets.hoot, events: sockets.iopub }),
        curve_secret_key,
        open,
        message_bytes_max: hoot.message_max.as_usize(),
        peer_backlog_bytes_max: hoot.send_queue.as_usize(),
        peers_max: files.hoot(files.http(config.http.max_connections)),
        peer_idle: hoot.peer_idle.0,
        clock: Clock::default(),
        set_trace_parent: telemetry::set_parent,
    })
}

/// Returns the configuration of the MCP edge.
pub(super) fn mcp(config: &Config, open: bool) -> ringback_edge_mcp::Config {
    let max = config.mcp.sessions_max;
    ringback_edge_mcp::Config {
        door: if open { Door::Open } else { Door::Token },
        version: VERSION.to_owned(),
        sessions: SessionLimits {
            max,
            // The other half stays free, so that no single token keeps all others out.
            per_principal_max: max.div_ceil(2),
            idle: config.mcp.session_idle.0,
            ..SessionLimits::default()
        },
        message_bytes_max: config.http.max_body.as_usize(),
        authorization_servers: config.mcp.authorization_servers.clone(),
        is_https: config.http.behind_proxy || config.http.tls.is_some(),
        ..ringback_edge_mcp::Config::default()
    }
}

/// Reads the daemon's secret key from a file that only its owner may read.
fn curve_key(path: &Path) -> Result<Secret, String> {
    let failed = |error| format!("cannot read `{}`: {error}", path.display());
    let mode = std::fs::metadata(path).map_err(failed)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let path = path.display();
        return Err(format!(
            "other users can access `{path}` (mode {mode:03o}); run `chmod 600` on it"
        ));
    }
    let text = std::fs::read_to_string(path).map_err(failed)?;
    Ok(Secret::new(text.trim().to_owned()))
}

fn utf8(config: &Config, key: &str, path: &Path) -> Result<Utf8PathBuf, ConfigError> {
    Utf8PathBuf::from_path_buf(path.to_owned()).map_err(|path| {
        bad(config, key, format!("expected a path in UTF-8, found `{}`", path.display()))
    })
}

fn bad(config: &Config, key: &str, reason: String) -> ConfigError {
    ConfigError::Invalid { key: key.to_owned(), origin: config.origin(key), reason }
}

fn shown(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => Value::Text(text),
        toml::Value::Integer(number) => Value::Int(number),
        toml::Value::Float(number) => Value::Float(number),
        toml::Value::Boolean(value) => Value::Bool(value),
        toml::Value::Datetime(moment) => Value::Text(moment.to_string()),
        toml::Value::Array(items) => Value::List(items.into_iter().map(shown).collect()),
        toml::Value::Table(table) => {
            Value::Map(table.into_iter().map(|(name, value)| (name, shown(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use ringback_broker::ConfigView;
    use ringback_proto::value::Value;

    use super::{Confinement, View, broker, confinement, curve_key};
    use crate::config::{Config, Environment, ServeFlags};

    fn config() -> Config {
        let environment: Environment =
            [("HOME", "/home/ada"), ("RINGBACK_LIMITS__JOBS_RUNNING", "3")].into_iter().collect();
        Config::load(&ServeFlags::default(), &environment).unwrap()
    }

    #[test]
    fn limits_reach_the_broker() {
        let broker = broker(&config()).unwrap();
        assert_eq!(broker.jobs_running_max, 3);
        assert_eq!(broker.jobs_live_max, 10_003);
        assert!(broker.jobs_per_principal_max < broker.jobs_live_max);
        assert_eq!(broker.data_dir, "/home/ada/.local/share/ringback");
    }

    /// Rule: everything private to the daemon is hidden from every agent: its directories, its
    /// configuration, and every key file.
    #[test]
    fn everything_private_is_hidden_from_agents() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("ringback.toml");
        let text = "[http]\ntls = { cert = '/k/cert.pem', key = '/k/tls.pem' }\n\
            [hoot]\ncurve_secret_key_file = '/k/curve'\n\
            [providers.one]\nurl = 'https://example.org'\nkey_file = '/k/provider'\n";
        std::fs::write(&file, text).unwrap();
        let environment = [("HOME", home.path().to_str().unwrap())].into_iter().collect();
        let flags = ServeFlags { config: Some(file.clone()), ..ServeFlags::default() };
        let config = Config::load(&flags, &environment).unwrap();
        let Confinement::Sandbox(rules) = confinement(&config).unwrap() else { panic!() };
        let keys = ["/k/tls.pem", "/k/curve", "/k/provider"].map(std::path::PathBuf::from);
        for path in keys.iter().chain([&file, &config.root.data_dir, &config.root.runtime_dir]) {
            assert!(rules.hidden.contains(path), "{}: {:?}", path.display(), rules.hidden);
        }
    }

    #[test]
    fn a_curve_key_that_others_can_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        std::fs::write(&path, "secret\n").unwrap();
        let mode = |mode| std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        mode(0o640);
        assert!(curve_key(&path).unwrap_err().contains("chmod 600"));
        mode(0o600);
        assert_eq!(curve_key(&path).unwrap().expose(), "secret");
        assert!(curve_key(&dir.path().join("none")).unwrap_err().contains("none"));
    }

    #[test]
    fn tools_see_the_configuration_whole_by_section_and_by_key() {
        let view = View(config());
        let whole = view.get(None, None).unwrap();
        let limits = view.get(Some("limits"), None).unwrap();
        assert_eq!(whole.get("limits"), Some(&limits));
        assert_eq!(view.get(Some("limits"), Some("jobs_running")), Some(Value::Int(3)));
        assert_eq!(view.get(Some("telemetry"), Some("otlp_endpoint")), Some(Value::Null));
        assert_eq!(view.get(Some("limits"), Some("zebra")), None);
        assert_eq!(view.get(Some("zebra"), None), None);
    }
}
