//! `ringback token`: API tokens.

use std::str::FromStr;

use clap::{Args, Subcommand, ValueEnum};
use ringback_client::Client;
use ringback_proto::ids::{ProjectId, TokenId};
use ringback_proto::principal::Level;
use ringback_proto::request::{
    TokenCreateRequest, TokenInfo, TokenListRequest, TokenRevokeRequest,
};
use ringback_proto::tool::tools::{TokenCreate, TokenList, TokenRevoke};

use crate::config::Environment;
use crate::connection::ConnectArgs;
use crate::failure::Failure;
use crate::screen::{Screen, maybe_moment, moment};
use crate::units;

/// `ringback token`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ringback token create ci --scope write --expires-in 30d > ci.token\n  \
                  ringback token list\n  ringback token revoke tok_…\n\nThe secret is printed once, alone on \
                  standard output."
)]
pub struct TokenArgs {
    /// What to do
    #[command(subcommand)]
    pub action: TokenAction,
    /// Print one JSON document
    #[arg(long, global = true)]
    pub json: bool,
    /// The daemon.
    #[command(flatten)]
    pub connect: ConnectArgs,
}

/// Actions on tokens.
#[derive(Debug, Subcommand)]
pub enum TokenAction {
    /// Create a token and print its secret
    Create {
        /// Name of the token
        name: String,
        /// Scope of the token
        #[arg(long)]
        scope: Scope,
        /// Limit the token to this project; may be given several times
        #[arg(long = "project", value_name = "ID")]
        projects: Vec<ProjectId>,
        /// Lifetime, such as 90s, 15m, 12h, 30d or 2w [default: unlimited]
        #[arg(long, value_name = "TIME")]
        expires_in: Option<Lifetime>,
    },
    /// List tokens, without their secrets
    List,
    /// Revoke a token: close its connections, end its sessions and refuse further calls
    Revoke {
        /// Its public id
        id: TokenId,
    },
}

/// The scope of a token.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Scope {
    /// Read only
    Read,
    /// Read and write
    Write,
    /// Everything, including tokens
    Admin,
}

/// A time span, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime(pub u64);

impl FromStr for Lifetime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        units::duration(text)
            .filter(|time| !time.is_zero() && time.subsec_millis() == 0)
            .map(|time| Self(time.as_secs()))
            .ok_or_else(|| {
                format!("expected a time such as 90s, 15m, 12h, 30d or 2w, found `{text}`")
            })
    }
}

pub(crate) async fn run(args: TokenArgs, environment: &Environment) -> Result<(), Failure> {
    let screen = Screen::new(args.json);
    let target = args.connect.target(environment)?;
    target
        .run(async |client| match args.action {
            TokenAction::Create { name, scope, projects, expires_in } => {
                let request = TokenCreateRequest {
                    name,
                    scope: scope.into(),
                    projects: (!projects.is_empty()).then_some(projects),
                    expires_in: expires_in.map(|lifetime| lifetime.0),
                };
                create(client, screen, request).await
            }
            TokenAction::List => {
                let listed = client.call::<TokenList>(TokenListRequest {}).await?;
                screen.answer(&listed, |listed| table(screen, &listed.tokens))
            }
            TokenAction::Revoke { id } => {
                let done = client.call::<TokenRevoke>(TokenRevokeRequest { token_id: id }).await?;
                screen.answer(&done, |done| done.message.clone())
            }
        })
        .await
}

async fn create(
    client: &Client,
    screen: Screen,
    request: TokenCreateRequest,
) -> Result<(), Failure> {
    let created = client.call::<TokenCreate>(request).await?;
    screen.answer(&created, |created| created.token.expose().to_owned())?;
    let ends = created.expires_at.map(|at| format!(", until {}", moment(at))).unwrap_or_default();
    let (id, name, scope) = (created.token_id, &created.name, created.scope);
    screen.remark(format_args!(
        "created {id} `{name}` ({scope}{ends}); the secret is not shown again. Revoke it with `ringback \
         token revoke {id}`"
    ));
    Ok(())
}

impl From<Scope> for Level {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::Read => Self::Read,
            Scope::Write => Self::Write,
            Scope::Admin => Self::Admin,
        }
    }
}

fn table(screen: Screen, tokens: &[TokenInfo]) -> String {
    let rows = tokens.iter().map(|token| {
        let ends = token.revoked_at.map_or_else(
            || token.expires_at.map_or_else(|| "never".to_owned(), moment),
            |at| format!("revoked {}", moment(at)),
        );
        let projects = token.projects.as_ref().map_or_else(
            || "all".to_owned(),
            |projects| projects.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
        );
        [
            token.token_id.to_string(),
            token.name.clone(),
            token.scope.to_string(),
            projects,
            ends,
            maybe_moment(token.last_used_at),
        ]
    });
    screen.table(["ID", "NAME", "SCOPE", "PROJECTS", "ENDS", "LAST USED"], rows, "no tokens")
}

#[cfg(test)]
mod tests {
    use super::Lifetime;

    #[test]
    fn lifetimes_have_a_unit() {
        assert_eq!("30d".parse(), Ok(Lifetime(30 * 86_400)));
        assert_eq!("90s".parse(), Ok(Lifetime(90)));
        assert_eq!("1.5h".parse(), Ok(Lifetime(5400)));
        for text in ["", "30", "d", "0d", "-1d", "1.5s", "99999999999999999w", "3ä"] {
            assert!(text.parse::<Lifetime>().is_err(), "{text}");
        }
    }
}
