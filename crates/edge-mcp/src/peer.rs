//! The sender of a request: the holder of a token at `/mcp`, or a client at the URL of an agent
//! session. Each sees its own tools.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use ringback_broker::{Broker, Credential, SessionPass};
use ringback_proto::ids::SessionId;
use ringback_proto::principal::PrincipalId;

use crate::changes::on_lines;
use crate::state::{AGENT_INSTRUCTIONS, INSTRUCTIONS};

/// The sender of a request.
#[derive(Debug, Clone)]
pub(crate) enum Peer {
    /// The holder of a token.
    Caller(Credential),
    /// A client at the URL of an agent session.
    Agent(SessionPass),
}

/// The owner of an MCP session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// The holder of a token.
    Principal(PrincipalId),
    /// A client at the URL of this session.
    Agent(SessionId),
}

impl Peer {
    /// The owner of its MCP sessions.
    pub(crate) fn owner(&self) -> Owner {
        match self {
            Self::Caller(credential) => Owner::Principal(credential.id()),
            Self::Agent(pass) => Owner::Agent(pass.session()),
        }
    }

    /// Whether it has a token that defines its rights, so that another one could do more.
    pub(crate) const fn has_token(&self) -> bool {
        match self {
            Self::Caller(_) => true,
            Self::Agent(_) => false,
        }
    }

    /// How to use the server, for the model behind it.
    pub(crate) const fn instructions(&self) -> &'static str {
        match self {
            Self::Caller(_) => INSTRUCTIONS,
            Self::Agent(_) => AGENT_INSTRUCTIONS,
        }
    }

    /// Resolves when it loses access.
    pub(crate) async fn ended(&self) {
        match self {
            Self::Caller(credential) => credential.ended().await,
            Self::Agent(pass) => pass.ended().await,
        }
    }

    /// Whether it has lost access for good.
    pub(crate) fn is_gone(&self) -> bool {
        match self {
            Self::Caller(_) => false,
            Self::Agent(pass) => pass.is_ended(),
        }
    }

    /// A number that changes with its tool list.
    pub(crate) fn fingerprint(&self, broker: &Broker) -> u64 {
        let mut hasher = DefaultHasher::new();
        let on_lines = match self {
            Self::Caller(credential) => on_lines(broker, credential),
            Self::Agent(pass) => {
                for caller in broker.session_caller_tools(pass.session()) {
                    for tool in &caller.tools {
                        // Declaring the same tool again is not a change.
                        let shown = (&tool.info.description, tool.info.schema_json());
                        (&caller.caller_id, &tool.name, shown).hash(&mut hasher);
                    }
                }
                let (native, on_lines) = broker.key_tools(pass);
                native.len().hash(&mut hasher);
                on_lines
            }
        };
        for tool in on_lines {
            (&tool.full_name, tool.seq).hash(&mut hasher);
        }
        hasher.finish()
    }
}
