//! What the program is started with.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

/// Where a sandbox has its session's socket.
const SOCKET_DEFAULT: &str = "/mcp/relay.sock";
/// The environment has it, and nothing else: arguments are for everybody to see.
const KEY_NAMES: [&str; 2] = ["OUBLIETTE_API_KEY", "RINGBACK_API_KEY"];
const SOCKET_NAME: &str = "RINGBACK_SOCKET";

const HELP: &str = "\
The MCP server that an agent starts in its sandbox: its tools are those of its session.

Usage: ringback-inside [--socket PATH] [--session-tools]

  --socket PATH     the session's socket; RINGBACK_SOCKET, else /mcp/relay.sock
  --session-tools   also offer `session_message` and `session_events`, for child sessions
  --version         say which version this is

OUBLIETTE_API_KEY or RINGBACK_API_KEY has the key for the daemon's own tools.";

/// What to serve.
#[derive(Debug, Clone)]
pub struct Options {
    /// The session's socket.
    pub socket: PathBuf,
    /// The key for the daemon's own tools; without it there are only those of the callers.
    pub key: Option<Key>,
    /// Whether child sessions can be started without a key, by tools with reserved names.
    pub has_session_tools: bool,
}

/// A key. It is shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

/// What the arguments ask for.
#[derive(Debug)]
pub enum Parsed {
    /// To serve.
    Run(Options),
    /// To say something.
    Say(String),
}

/// Arguments that cannot be understood.
#[derive(Debug, thiserror::Error)]
#[error("{0}; `--help` shows what there is")]
pub struct UsageError(#[from] lexopt::Error);

impl Key {
    /// A key, if the text is one.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Parsed {
    /// Reads arguments, without the program's own name, and the environment.
    ///
    /// # Errors
    /// When the arguments cannot be understood.
    pub fn read(
        args: impl IntoIterator<Item = OsString>,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, UsageError> {
        use lexopt::Arg::{Long, Short, Value};
        let mut parser = lexopt::Parser::from_args(args);
        let (mut socket, mut has_session_tools) = (None, false);
        while let Some(arg) = parser.next()? {
            match arg {
                Long("help") | Short('h') => return Ok(Self::Say(HELP.to_owned())),
                Long("version") | Short('V') => {
                    let version = env!("CARGO_PKG_VERSION");
                    return Ok(Self::Say(format!("ringback-inside {version}")));
                }
                Long("socket") => socket = Some(PathBuf::from(parser.value()?)),
                Long("session-tools") => has_session_tools = true,
                // Programs of this kind have taken the socket without a word before it.
                Value(path) if socket.is_none() => socket = Some(PathBuf::from(path)),
                Long(_) | Short(_) | Value(_) => return Err(arg.unexpected().into()),
            }
        }
        let socket = socket
            .or_else(|| env(SOCKET_NAME).filter(|path| !path.is_empty()).map(PathBuf::from))
            .unwrap_or_else(|| PathBuf::from(SOCKET_DEFAULT));
        let key = KEY_NAMES.iter().find_map(|name| Key::new(&env(name)?));
        Ok(Self::Run(Options { socket, key, has_session_tools }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str], env: &[(&str, &str)]) -> Result<Options, String> {
        let args = args.iter().map(OsString::from);
        let value = |name: &str| {
            env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        match Parsed::read(args, value) {
            Ok(Parsed::Run(options)) => Ok(options),
            Ok(Parsed::Say(text)) => Err(text),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn the_socket_is_an_argument_or_in_the_environment_or_where_sandboxes_have_it() {
        let socket = |args: &[&str], env: &[(&str, &str)]| read(args, env).unwrap().socket;
        assert_eq!(socket(&[], &[]), PathBuf::from("/mcp/relay.sock"));
        assert_eq!(socket(&[], &[("RINGBACK_SOCKET", "/a")]), PathBuf::from("/a"));
        assert_eq!(socket(&["--socket", "/b"], &[("RINGBACK_SOCKET", "/a")]), PathBuf::from("/b"));
        assert_eq!(socket(&["/c"], &[]), PathBuf::from("/c"));
        assert!(read(&["--key", "x"], &[]).unwrap_err().contains("--help"));
    }

    /// REQ: seed 002 "API Key in Environment": never logged.
    #[test]
    fn the_key_comes_from_the_environment_and_is_never_shown() {
        let options = read(&[], &[("OUBLIETTE_API_KEY", "oub_secret")]).unwrap();
        assert_eq!(options.key.as_ref().unwrap().expose(), "oub_secret");
        assert!(!format!("{options:?}").contains("secret"));
        assert!(read(&[], &[("RINGBACK_API_KEY", "k")]).unwrap().key.is_some());
        assert!(read(&[], &[("OUBLIETTE_API_KEY", " ")]).unwrap().key.is_none());
    }
}
