//! `[sessions]` and `[caller_tools]`: how agents run, and how their callers are reached.

use ringback_agents::Permissions;
use ringback_proto::money::MicroUsd;

use super::agents::Agents;
use super::quantity::{ByteSize, Millis};
use super::section::section;

/// A caller answers promptly, or declares a longer limit for its tool.
const CALLER_TIMEOUT: Millis = Millis::secs(60);

/// Several polls of a caller that polls every few seconds.
const POLL_GRACE: Millis = Millis::secs(10);

/// Minutes of a talkative agent.
const EVENTS_KEPT: usize = 2000;

/// Far more than a reader needs at once.
const EVENT_MEMORY: ByteSize = ByteSize(16 << 20);

/// A daemon with a thousand sessions stays a small program.
const EVENT_MEMORY_TOTAL: ByteSize = ByteSize(64 << 20);

/// Enough for an agent to close its files; one that hangs does not delay its caller.
const END_GRACE: Millis = Millis::secs(3);

/// Time for a coffee break; most agents wait longer for their model.
const LIMIT_WAIT: Millis = Millis::secs(5 * 60);

/// Time for a meeting.
const IDLE: Millis = Millis::secs(30 * 60);

section! {
    /// How agents run.
    pub struct Sessions = "sessions" {
        /// Agent of projects that name none. `scripted` is always available: it runs its message
        /// line by line.
        pub agent: String = "scripted".to_owned(),
        /// Further agents by name: `[sessions.agents.NAME]` with `preset = "goose"` (`ringback
        /// agents list` shows the presets), or with `command = ["program", "argument"]`, where the
        /// word `{inside}` stands for the session's MCP server, and a `protocol` of `lines`, `acp`
        /// or `one-shot`. Both may have `env = { NAME = "value" }` and `permissions`. With
        /// `provider = "NAME"` the agent may use the models of that entry of `providers`: `{model}`
        /// in its arguments and environment stands for the address, and a preset uses `model =
        /// "MODEL"`.
        pub agents: Agents = Agents::default(),
        /// Maximum depth of sessions started by sessions.
        pub max_depth: usize = 3,
        /// Maximum number of sessions that one session may start in total.
        pub max_agents: usize = 50,
        /// Maximum number of sessions of one project that have not ended.
        pub max_sessions: usize = 10,
        /// How long a session may be idle.
        pub idle: Millis = IDLE,
        /// Number of events of a session kept in memory; its journal has more.
        pub events_kept: usize = EVENTS_KEPT,
        /// Memory for a session's events, until it ends.
        pub event_memory: ByteSize = EVENT_MEMORY,
        /// Memory for the events of all sessions; beyond it, the sessions with the most lose their
        /// oldest.
        pub event_memory_total: ByteSize = EVENT_MEMORY_TOTAL,
        /// Answer to agents' permission requests: `ask` passes the question on as an event of the
        /// session, `allow` and `deny` answer immediately. An agent's own `permissions` take
        /// precedence.
        pub permissions: Permissions = Permissions::Ask,
        /// How long an agent may take to end when asked to.
        pub end_grace: Millis = END_GRACE,
        /// Model tokens after which a session's caller is asked. A session or its project may set
        /// another number; the same applies to the next two.
        pub max_tokens: Option<u64> = None,
        /// Working time after which the caller is asked.
        pub max_time: Option<Millis> = None,
        /// Cost after which the caller is asked, such as `"$2.50"`. Needs `prices` of the provider.
        pub max_cost: Option<MicroUsd> = None,
        /// How long a session at a limit waits for an answer; then its agent is stopped.
        pub limit_wait: Millis = LIMIT_WAIT,
    }
}

section! {
    /// Tools that a session's caller offers its agent.
    pub struct CallerTools = "caller_tools" {
        /// Time limit of a call if its tool does not set one.
        pub timeout: Millis = CALLER_TIMEOUT,
        /// How long after its last poll a polling caller counts as connected.
        pub poll_grace: Millis = POLL_GRACE,
    }
}
