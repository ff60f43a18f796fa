//! The arguments and environment of the program.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;

use ringback_mcp_bridge::Uri;

use crate::Forward;

/// The session's socket in a sandbox.
const SOCKET_DEFAULT: &str = "/mcp/relay.sock";
/// The socket of the model proxy in a sandbox.
const MODEL_SOCKET_DEFAULT: &str = "/mcp/model.sock";
/// The subcommands.
const FORWARD: &str = "forward";
const WAIT: &str = "wait";
/// Keys come only from the environment: arguments are visible to everyone.
const KEY_NAMES: [&str; 2] = ["OUBLIETTE_API_KEY", "RINGBACK_API_KEY"];
const BEARER_NAMES: [&str; 2] = ["OUBLIETTE_SESSION_TOKEN", "RINGBACK_SESSION_TOKEN"];
const SOCKET_NAME: &str = "RINGBACK_SOCKET";

const HELP: &str = "\
The MCP server that an agent starts in its sandbox. It offers the tools of the session.

Usage: ringback-inside [--socket PATH | --url URL] [--session-tools]
       ringback-inside forward [--socket PATH] [--proxy PATH] -- COMMAND [ARG...]
       ringback-inside wait

  --socket PATH     the session's socket; RINGBACK_SOCKET, else /mcp/relay.sock
  --url URL         the session's URL, http://HOST:PORT/mcp/s/ID, in place of a socket
  --session-tools   also offer `session_message` and `session_events`, for child sessions
  --version         print the version

OUBLIETTE_API_KEY or RINGBACK_API_KEY holds the key for the daemon's own tools. With
--url, OUBLIETTE_SESSION_TOKEN or RINGBACK_SESSION_TOKEN holds the session's token,
and the session's own key is the default key.

`forward` runs COMMAND and, until it ends, makes the socket of the model proxy
(/mcp/model.sock) available as an address. {model} in COMMAND's arguments and
environment stands for it, as in OPENAI_BASE_URL={model}/v1. With --proxy it does the
same for the socket of the network proxy, with {proxy}, as in HTTPS_PROXY={proxy}.

`wait` does nothing until it gets a signal to end. It runs in a container that has no
command of its own.";

/// What to serve.
#[derive(Debug, Clone)]
pub struct Options {
    /// The address of the session.
    pub target: Target,
    /// The key for the daemon's own tools; without it there are only caller tools.
    pub key: Option<Key>,
    /// Whether child sessions can be started without a key, by tools with reserved names.
    pub has_session_tools: bool,
}

/// The address of a session.
#[derive(Debug, Clone)]
pub enum Target {
    /// A socket.
    Socket(PathBuf),
    /// A URL, with its token.
    Url(Uri, Option<Key>),
}

/// A key. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

/// What the arguments ask for.
#[derive(Debug)]
pub enum Parsed {
    /// To serve.
    Run(Options),
    /// To run a command that reaches its model by an address.
    Forward(Forward),
    /// To do nothing until a signal.
    Wait,
    /// To print a text.
    Say(String),
}

/// Invalid arguments.
#[derive(Debug, thiserror::Error)]
pub enum UsageError {
    /// An unknown argument, or a missing value.
    #[error("{0}; `--help` lists the options")]
    Argument(#[from] lexopt::Error),
    /// An unsupported URL.
    #[error("`--url` takes http://HOST:PORT/mcp/s/ID; use a proxy for anything else")]
    Url,
    /// No command to run.
    #[error("`forward` needs a command: `forward --socket PATH -- COMMAND`")]
    NoCommand,
    /// Two addresses.
    #[error("use either `--socket` or `--url`, not both")]
    TwoTargets,
}

impl Key {
    /// Returns a key, if the text is one.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => write!(f, "{}", path.display()),
            Self::Url(uri, _) => write!(f, "{uri}"),
        }
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
    /// When the arguments are invalid.
    pub fn read(
        args: impl IntoIterator<Item = OsString>,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, UsageError> {
        use lexopt::Arg::{Long, Short, Value};
        let mut args = args.into_iter().peekable();
        if args.next_if(|first| first == FORWARD).is_some() {
            return forward(lexopt::Parser::from_args(args)).map(Self::Forward);
        }
        if args.next_if(|first| first == WAIT).is_some() {
            return match args.next() {
                None => Ok(Self::Wait),
                Some(more) => Err(Value(more).unexpected().into()),
            };
        }
        let mut parser = lexopt::Parser::from_args(args);
        let (mut socket, mut url, mut has_session_tools) = (None, None, false);
        while let Some(arg) = parser.next()? {
            match arg {
                Long("help") | Short('h') => return Ok(Self::Say(HELP.to_owned())),
                Long("version") | Short('V') => {
                    let version = env!("CARGO_PKG_VERSION");
                    return Ok(Self::Say(format!("ringback-inside {version}")));
                }
                Long("socket") => socket = Some(PathBuf::from(parser.value()?)),
                Long("url") => url = Some(parser.value()?),
                Long("session-tools") => has_session_tools = true,
                // Earlier programs of this kind accepted the socket as a bare argument.
                Value(path) if socket.is_none() => socket = Some(PathBuf::from(path)),
                Long(_) | Short(_) | Value(_) => return Err(arg.unexpected().into()),
            }
        }
        let secret = |names: [&str; 2]| names.iter().find_map(|name| Key::new(&env(name)?));
        let target = match (socket, url) {
            (Some(_), Some(_)) => return Err(UsageError::TwoTargets),
            (None, Some(url)) => Target::Url(uri(&url)?, secret(BEARER_NAMES)),
            (socket, None) => Target::Socket(
                socket
                    .or_else(|| env(SOCKET_NAME).filter(|path| !path.is_empty()).map(PathBuf::from))
                    .unwrap_or_else(|| PathBuf::from(SOCKET_DEFAULT)),
            ),
        };
        Ok(Self::Run(Options { target, key: secret(KEY_NAMES), has_session_tools }))
    }
}

fn forward(mut parser: lexopt::Parser) -> Result<Forward, UsageError> {
    use lexopt::Arg::{Long, Short, Value};
    let (mut model, mut proxy) = (None, None);
    while let Some(arg) = parser.next()? {
        match arg {
            Long("socket") => model = Some(PathBuf::from(parser.value()?)),
            Long("proxy") => proxy = Some(PathBuf::from(parser.value()?)),
            Value(command) => {
                let args = parser.raw_args()?.collect();
                if model.is_none() && proxy.is_none() {
                    model = Some(PathBuf::from(MODEL_SOCKET_DEFAULT));
                }
                return Ok(Forward { model, proxy, command, args });
            }
            Long(_) | Short(_) => return Err(arg.unexpected().into()),
        }
    }
    Err(UsageError::NoCommand)
}

fn uri(text: &OsStr) -> Result<Uri, UsageError> {
    let uri: Uri = text.to_str().and_then(|text| text.parse().ok()).ok_or(UsageError::Url)?;
    let is_usable = uri.scheme_str() == Some("http") && uri.host().is_some();
    if is_usable { Ok(uri) } else { Err(UsageError::Url) }
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
            Ok(Parsed::Forward(forward)) => Err(format!("{forward:?}")),
            Ok(Parsed::Wait) => Err("waits".to_owned()),
            Ok(Parsed::Say(text)) => Err(text),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn the_socket_is_an_argument_or_in_the_environment_or_where_sandboxes_have_it() {
        let socket = |args: &[&str], env: &[(&str, &str)]| match read(args, env).unwrap().target {
            Target::Socket(socket) => socket,
            Target::Url(..) => unreachable!("no URL was given"),
        };
        assert_eq!(socket(&[], &[]), PathBuf::from("/mcp/relay.sock"));
        assert_eq!(socket(&[], &[("RINGBACK_SOCKET", "/a")]), PathBuf::from("/a"));
        assert_eq!(socket(&["--socket", "/b"], &[("RINGBACK_SOCKET", "/a")]), PathBuf::from("/b"));
        assert_eq!(socket(&["/c"], &[]), PathBuf::from("/c"));
        assert!(read(&["--key", "x"], &[]).unwrap_err().contains("--help"));
    }

    #[test]
    fn a_url_takes_the_place_of_a_socket_and_its_token_is_never_shown() {
        let url = "http://127.0.0.1:7180/mcp/s/gogol_x";
        let options = read(&["--url", url], &[("OUBLIETTE_SESSION_TOKEN", "secret")]).unwrap();
        assert!(
            matches!(&options.target, Target::Url(uri, Some(_)) if uri.path() == "/mcp/s/gogol_x")
        );
        assert!(!format!("{options:?}").contains("secret"));
        for wrong in ["https://h/mcp/s/x", "h", "", "/mcp"] {
            assert!(read(&["--url", wrong], &[]).is_err(), "{wrong}");
        }
        assert!(read(&["--url", url, "--socket", "/a"], &[]).is_err());
    }

    #[test]
    fn forward_takes_a_command_and_leaves_its_arguments_alone() {
        let forward = |args: &[&str]| {
            let args = ["forward"].iter().chain(args).map(OsString::from);
            match Parsed::read(args, |_| None) {
                Ok(Parsed::Forward(forward)) => Ok(forward),
                Ok(Parsed::Run(_) | Parsed::Wait | Parsed::Say(_)) => {
                    unreachable!("it was not asked for")
                }
                Err(error) => Err(error.to_string()),
            }
        };
        let made = forward(&["--socket", "/s", "--", "agent", "--socket", "/mine", "--"]).unwrap();
        assert_eq!((made.model, made.proxy), (Some("/s".into()), None));
        assert_eq!((made.command, made.args.len()), ("agent".into(), 3));
        let usual = forward(&["agent"]).unwrap();
        assert_eq!((usual.model, usual.proxy), (Some("/mcp/model.sock".into()), None));
        let proxied = forward(&["--proxy", "/n", "agent"]).unwrap();
        assert_eq!((proxied.model, proxied.proxy), (None, Some("/n".into())));
        assert!(forward(&["--", "--help"]).is_ok_and(|made| made.command == "--help"));
        for wrong in [&[][..], &["--"], &["--socket"], &["--proxy"], &["--colour", "agent"]] {
            assert!(forward(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn wait_takes_nothing() {
        assert_eq!(read(&["wait"], &[]).unwrap_err(), "waits");
        assert!(read(&["wait", "--long"], &[]).unwrap_err().contains("--help"));
        assert!(read(&["--socket", "wait"], &[]).is_ok());
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
